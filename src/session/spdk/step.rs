//! What a step asks of SPDK's controllers and memory, looked at before any of its queues is opened.

use crate::backend::spdk::SpdkDevice;
use crate::backend::{BackendError, Device};
use crate::config::StepPlan;
use crate::spdk::{Controller, SpdkError, preflight};
use crate::sysfs::Sysfs;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Buffers start on a multiple of this.
const ALIGN_BYTES: u64 = 4096;

/// The queues of a step: each reactor has one for every device that its streams name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Queues {
    /// (reactor, device), each once.
    pairs: BTreeSet<(u32, u32)>,
}

impl Queues {
    fn of(plan: &StepPlan) -> Self {
        let devices = plan.streams.iter().map(|stream| stream.device_index);
        Self {
            pairs: plan.reactor_of.iter().copied().zip(devices).collect(),
        }
    }

    /// Queues that a controller must grant. `is_its` says whether a device is one of its namespaces.
    fn count(&self, is_its: impl Fn(u32) -> bool) -> u32 {
        let its = self.pairs.iter().filter(|(_, device)| is_its(*device));
        u32::try_from(its.count()).unwrap_or(u32::MAX)
    }
}

/// Whether every controller grants the queues, and the buffers fit into free hugepages.
///
/// # Errors
/// [`SpdkError::NoQueue`] with what is granted and asked; a lack of hugepages with what is free on each node.
pub(in crate::session) fn fits(
    devices: &[SpdkDevice],
    plan: &StepPlan,
    sysfs: &Sysfs,
) -> Result<(), BackendError> {
    let queues = Queues::of(plan);
    let controller = |device: u32| devices[device as usize].controller();
    for one in devices.iter().map(SpdkDevice::controller) {
        let asked_count = queues.count(|device| Arc::ptr_eq(controller(device), one));
        granted(one.name(), Controller::io_queues_count(one), asked_count)?;
    }
    let blocks = |device: u32| u64::from(devices[device as usize].facts().logical_block.bytes());
    let bytes = buffers_bytes(plan, &queues, blocks);
    preflight::check_io_hugepages(sysfs, bytes).map_err(SpdkError::from)?;
    Ok(())
}

fn granted(device: String, granted_count: u32, asked_count: u32) -> Result<(), SpdkError> {
    if asked_count <= granted_count {
        return Ok(());
    }
    Err(SpdkError::NoQueue {
        device,
        granted_count,
        asked_count,
        said: String::new(),
    })
}

/// Bytes of DMA memory for all buffers of a step: on each queue its slots, each as long as the longest I/O.
fn buffers_bytes(plan: &StepPlan, queues: &Queues, block_bytes: impl Fn(u32) -> u64) -> u64 {
    let of_queue = |(reactor, device): &(u32, u32)| {
        let own = plan.streams.iter().zip(&plan.reactor_of);
        let own = own.filter(|(stream, of)| stream.device_index == *device && **of == *reactor);
        let (mut slots, mut longest) = (0, 0);
        for (stream, _) in own {
            slots += u64::from(stream.depth);
            longest = longest.max(u64::from(stream.buffer_blocks()));
        }
        let bytes = longest.saturating_mul(block_bytes(*device));
        slots.saturating_mul(bytes.next_multiple_of(ALIGN_BYTES))
    };
    queues
        .pairs
        .iter()
        .map(of_queue)
        .fold(0, u64::saturating_add)
}

/// For the record: how many commands an I/O of the step takes, where it is more than one.
pub(in crate::session) fn commands_per_io(devices: &[SpdkDevice], plan: &StepPlan) -> Vec<String> {
    let mut notes = BTreeSet::new();
    let carrying = plan
        .streams
        .iter()
        .filter(|stream| stream.ops.carries_data());
    for stream in carrying {
        let device = &devices[stream.device_index as usize];
        let block_bytes = device.facts().logical_block.bytes();
        let most_blocks = (device.controller().max_transfer_bytes() / block_bytes).max(1);
        for size in &stream.sizes {
            let commands_count = size.blocks.div_ceil(most_blocks);
            if commands_count > 1 {
                let kib = (u64::from(size.blocks) * u64::from(block_bytes)) >> 10;
                notes.insert(format!("{commands_count} commands per I/O of {kib} KiB"));
            }
        }
    }
    notes.into_iter().collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::backend::NullDevice;
    use crate::config::{Job, plan};
    use crate::units::Bytes;

    /// A plan on devices of 512-byte blocks that only pretend.
    fn planned(keys: &str, devices_count: usize) -> StepPlan {
        let device = NullDevice::new("null", Bytes(1 << 30));
        let facts = vec![device.facts().clone(); devices_count];
        let yaml = format!("steps:\n  - {{ {keys} }}\n");
        let job = Job::from_yaml(&yaml, "job.yaml").unwrap();
        plan(&job, &facts, 1).unwrap().steps.remove(0)
    }

    #[test]
    fn each_reactor_asks_one_queue_of_each_device_it_names() {
        let four = planned("rw: randread, reactors: 4, iodepth: 2", 1);
        let queues = Queues::of(&four);
        let asked_count = queues.count(|_| true);
        assert_eq!(asked_count, 4);
        let refused = granted("disk".to_owned(), 2, asked_count).unwrap_err();
        assert!(
            matches!(
                refused,
                SpdkError::NoQueue {
                    granted_count: 2,
                    asked_count: 4,
                    ..
                }
            ),
            "{refused}"
        );
        let text = refused.to_string();
        assert!(text.contains("granted 2, 4 are needed"), "{text}");
        assert_eq!(granted("disk".to_owned(), 4, asked_count), Ok(()));
        assert_eq!(queues.count(|device| device == 7), 0, "another controller");
    }

    #[test]
    fn buffers_are_slots_times_the_longest_io_on_whole_pages() {
        let plan = planned("rw: randread, bs: 512, reactors: 2, iodepth: 8", 1);
        let queues = Queues::of(&plan);
        assert_eq!(buffers_bytes(&plan, &queues, |_| 512), 2 * 8 * 4096);
        let plan = planned("rw: randread, bs: 1M, iodepth: 128", 1);
        let queues = Queues::of(&plan);
        assert_eq!(buffers_bytes(&plan, &queues, |_| 512), 128 << 20);
    }
}
