//! What a step itself has put on its devices: the most that the kernel can have counted of it.

use crate::backend::DeviceFacts;
use crate::config::StepPlan;
use crate::reactor::{ReactorOutcome, StreamOutcome};
use crate::request::Op;
use crate::workload::OpMix;

/// One device's share, from start to end of the step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::session) struct OwnIo {
    /// Reads and writes by size: bytes of one, and how many.
    pub(super) sizes: Vec<(u64, u64)>,
    /// Flushes, which the kernel may count as writes.
    pub(super) flushes_count: u64,
}

impl OwnIo {
    /// Of every device, in order: what the generators have given, ramp and drain included. Some of it may never
    /// have been sent.
    pub(in crate::session) fn of(
        plan: &StepPlan,
        outcomes: &[ReactorOutcome],
        devices: &[DeviceFacts],
    ) -> Vec<Self> {
        let mut all = vec![Self::default(); devices.len()];
        for stream in outcomes.iter().flat_map(|outcome| &outcome.streams) {
            let index = plan.streams[stream.index as usize].device_index as usize;
            let block_bytes = u64::from(devices[index].logical_block.bytes());
            all[index].add_stream(plan, stream, block_bytes);
        }
        all
    }

    fn add_stream(&mut self, plan: &StepPlan, stream: &StreamOutcome, block_bytes: u64) {
        let spec = &plan.streams[stream.index as usize];
        let counts = stream.generator.op_counts();
        self.flushes_count += counts[Op::Flush as usize];
        match spec.ops {
            // Neither is counted among reads and writes.
            OpMix::Trim | OpMix::Probe => {}
            // Zeros are not sent: one block (WRITE SAME), or nothing (NVMe), where commands are counted at all.
            OpMix::WriteZeroes => self
                .sizes
                .push((block_bytes, stream.generator.size_counts().sum())),
            _ => {
                for (size, count) in spec.sizes.iter().zip(stream.generator.size_counts()) {
                    self.sizes
                        .push((u64::from(size.blocks) * block_bytes, count));
                }
            }
        }
    }

    /// Adds another device's.
    pub(super) fn add(&mut self, other: &Self) {
        self.sizes.extend_from_slice(&other.sizes);
        self.flushes_count += other.flushes_count;
    }

    /// Bytes read and written.
    pub(super) fn bytes(&self) -> u64 {
        let bytes = self
            .sizes
            .iter()
            .map(|(bytes, count)| bytes.saturating_mul(*count));
        bytes.fold(0, u64::saturating_add)
    }

    /// Requests at most, where one I/O of some bytes becomes so many of them.
    pub(super) fn requests(&self, parts: impl Fn(u64) -> u64) -> u64 {
        let requests = self.sizes.iter();
        let requests = requests.map(|(bytes, count)| parts(*bytes).saturating_mul(*count));
        requests.fold(self.flushes_count, u64::saturating_add)
    }
}
