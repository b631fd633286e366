//! Shares achieved against shares asked.

use crate::backend::DeviceFacts;
use crate::config::StepPlan;
use crate::reactor::ReactorOutcome;
use crate::record::MixCheck;
use crate::request::Op;
use crate::units::Bytes;
use crate::workload::{Access, Generator, OpMix, StreamSpec};

/// What has a share, and how many of how many it got.
struct Share {
    name: String,
    asked_pct: f64,
    got_count: u64,
    all_count: u64,
}

/// Every share of the step's mixes, summed over the streams that ask for the same, and over how many I/Os the
/// one with the fewest was taken.
pub(in crate::session) fn mix_checks(
    plan: &StepPlan,
    outcomes: &[ReactorOutcome],
    devices: &[DeviceFacts],
) -> (Vec<MixCheck>, u64) {
    let mut shares: Vec<Share> = Vec::new();
    for stream in outcomes.iter().flat_map(|outcome| &outcome.streams) {
        let spec = &plan.streams[stream.index as usize];
        let block_bytes = u64::from(devices[spec.device_index as usize].logical_block.bytes());
        for share in shares_of(spec, &stream.generator, block_bytes) {
            let known = shares.iter_mut().find(|known| {
                known.name == share.name && (known.asked_pct - share.asked_pct).abs() < 1e-9
            });
            match known {
                Some(known) => {
                    known.got_count += share.got_count;
                    known.all_count += share.all_count;
                }
                None => shares.push(share),
            }
        }
    }
    shares.retain(|share| share.all_count > 0);
    let fewest_count = shares.iter().map(|share| share.all_count).min();
    #[allow(clippy::cast_precision_loss)]
    let check = |share: Share| MixCheck {
        achieved_pct: share.got_count as f64 * 100.0 / share.all_count as f64,
        share: share.name,
        asked_pct: share.asked_pct,
    };
    let checks = shares.into_iter().map(check).collect();
    (checks, fewest_count.unwrap_or(0))
}

fn shares_of(spec: &StreamSpec, generator: &Generator, block_bytes: u64) -> Vec<Share> {
    let ops = generator.op_counts();
    let all_count = ops.iter().sum::<u64>() - ops[Op::Flush as usize];
    let mut shares = Vec::new();
    if let OpMix::ReadWrite { read_pct } = spec.ops {
        let got_count = ops[Op::Read as usize];
        shares.push(Share {
            name: "read".to_owned(),
            asked_pct: read_pct,
            got_count,
            all_count,
        });
    }
    if let Access::Random { random_pct, .. } = spec.access
        && random_pct < 100.0
    {
        let got_count = generator.random_count();
        shares.push(Share {
            name: "random".to_owned(),
            asked_pct: random_pct,
            got_count,
            all_count,
        });
    }
    if spec.sizes.len() > 1 {
        for (size, got_count) in spec.sizes.iter().zip(generator.size_counts()) {
            let name = format!("bs {}", Bytes(u64::from(size.blocks) * block_bytes));
            shares.push(Share {
                name,
                asked_pct: size.share_pct,
                got_count,
                all_count,
            });
        }
    }
    shares
}
