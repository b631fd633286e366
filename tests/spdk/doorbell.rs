//! A bench, not a test: what it costs at depth 1 to ring at the end of a poll instead of with the command.
//! `scripts/bench/doorbell` runs it; figures are printed, nothing is asserted of them.

use crate::spdk_target::target;
use lanemark::backend::spdk::SpdkDevice;
use lanemark::backend::{Batch, Device, Queue, QueueSpec, Sink, Wait};
use lanemark::request::{Io, Op, Slot, Status};
use lanemark::sysfs::Sysfs;
use std::io::Write;
use std::time::{Duration, Instant};

const NQN: &str = "nqn.2026-01.io.lanemark:doorbell";
const IOS_COUNT: u64 = 20_000;
const ROUNDS_COUNT: usize = 100;

/// Sends the next read from inside the completion of the last.
struct Chain {
    left_count: u64,
}

impl Chain {
    fn next(&mut self) -> Option<Io> {
        self.left_count = self.left_count.checked_sub(1)?;
        Some(Io {
            lba: self.left_count.wrapping_mul(0x9E37_79B9) % (1 << 20),
            blocks: 1,
            op: Op::Read,
        })
    }
}

impl Sink for Chain {
    fn complete(&mut self, _slot: Slot, status: Status, _buffer: &mut [u8]) -> Option<Io> {
        assert_eq!(status, Status::Ok);
        self.next()
    }
}

/// Mean time of one read at depth 1.
fn mean_ns(device: &SpdkDevice, submit: u32) -> f64 {
    let spec = QueueSpec {
        reactor_index: 0,
        reactors_count: 1,
        // The second slot is never used: a queue with one always rings at the end.
        slots_count: 2,
        slot_bytes: 4096,
        batch: Batch {
            submit,
            complete_min: 1,
            complete_max: 1,
        },
        writes: false,
    };
    let mut queue = device.open_queue(spec).unwrap();
    let mut chain = Chain {
        left_count: IOS_COUNT,
    };
    let start = Instant::now();
    let first = chain.next().unwrap();
    queue.submit(Slot(0), first).unwrap();
    let mut done_count = 0;
    while done_count < IOS_COUNT {
        done_count += queue.poll(&mut chain, Wait::Never).unwrap() as u64;
    }
    let elapsed = start.elapsed();
    queue.close(Duration::from_secs(5));
    elapsed.as_nanos() as f64 / IOS_COUNT as f64
}

#[test]
fn ringing_at_depth_one() {
    // A bench that wants the tests' target: scripts/bench/doorbell runs it.
    if std::env::var_os("LANEMARK_BENCH").is_none_or(|value| value != "1") {
        return;
    }
    let Some(target) = target() else { return };
    lanemark::sys::cpu::pin_current_thread(1).unwrap();
    target.null("n0", 1 << 20);
    target.subsystem(NQN, &[(1, "n0")]);
    let mut out = std::io::stdout();
    for id in [target.vfio_user(NQN), target.tcp(NQN)] {
        let devices = SpdkDevice::open_all(&Sysfs::host(), &[&id]).unwrap();
        let (mut deferred, mut at_once) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS_COUNT {
            // A B, B A: drift falls on both.
            for deferred_now in [round % 2 == 0, round % 2 == 1] {
                let ns = mean_ns(&devices[0], if deferred_now { 2 } else { 1 });
                if deferred_now {
                    deferred.push(ns);
                } else {
                    at_once.push(ns);
                }
            }
        }
        let ratios: Vec<f64> = deferred.iter().zip(&at_once).map(|(a, b)| a / b).collect();
        writeln!(
            out,
            "{}: deferred {:.0} ns (best tenth under {:.0}), with the command {:.0} ns ({:.0}), \
             median ratio of pairs {:.4}",
            id.split(' ').next().unwrap(),
            share(&deferred, 0.5),
            share(&deferred, 0.1),
            share(&at_once, 0.5),
            share(&at_once, 0.1),
            share(&ratios, 0.5),
        )
        .unwrap();
    }
}

/// The value that this share of all is below.
fn share(values: &[f64], ratio: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[(sorted.len() as f64 * ratio) as usize]
}
