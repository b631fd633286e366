//! Where I/Os really go on a device of 8 TiB: every command handed to io_uring is noted.

use crate::recorded::{Log, Recorded};
use crate::statistics::{chi_square, chi_square_limit};
use crate::support::{Loop, lab};
use lanemark::backend::uring::{UringDevice, UringOptions};
use lanemark::backend::{Batch, Device, Queue, QueueSpec, Sink, Wait};
use lanemark::config::{Job, StepPlan, plan};
use lanemark::reactor::{Control, ReactorSetup, StreamSetup, run_team};
use lanemark::request::{Io, Op, Slot, Status};
use lanemark::sys::clock::MachineClock;
use lanemark::sysfs::Sysfs;
use std::collections::HashSet;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const EIGHT_TIB: u64 = 8 << 40;

/// The reactors of a plan, as the session makes them, on any CPU.
fn setups(step: &StepPlan, block_bytes: u32) -> Vec<ReactorSetup> {
    let streams_count = u32::try_from(step.streams.len()).unwrap();
    let of = |index| {
        let numbered = (0_u32..).zip(&step.streams).zip(&step.reactor_of);
        let own = numbered.filter(move |(_, reactor)| **reactor == index);
        own.map(move |((number, spec), _)| StreamSetup {
            spec: spec.clone(),
            index: number,
            step_streams_count: streams_count,
            block_bytes,
        })
        .collect()
    };
    (0..step.reactors_count)
        .map(|index| ReactorSetup {
            index,
            cpu: None,
            streams: of(index),
            batch: step.batch,
            ramp_ns: step.limits.ramp.0,
            runtime_ns: step.limits.runtime.map(|runtime| runtime.0),
            grace_ns: step.limits.grace.0,
            max_errors: step.limits.max_errors,
            stamp: step.stamp,
        })
        .collect()
}

/// Everything that a job of one step hands to the device.
fn handed_over(path: &Path, keys: &str, seed: u64) -> Log {
    let device = UringDevice::open(path, UringOptions::default()).unwrap();
    let facts = device.facts().clone();
    let job = Job::from_yaml(&format!("steps:\n  - {{ {keys} }}\n"), "job.yaml").unwrap();
    let step = (plan(&job, std::slice::from_ref(&facts), seed)
        .unwrap()
        .steps)
        .remove(0);
    let log = Arc::new(Mutex::new(Log::new()));
    let recorded = Recorded {
        device,
        log: Arc::clone(&log),
    };
    let setups = setups(&step, facts.logical_block.bytes());
    let clock = MachineClock::new(&Sysfs::host());
    let control = Arc::new(Control::default());
    let end = run_team(&[recorded], &setups, &clock, &control, &mut |_| ()).unwrap();
    let log = log.lock().unwrap().clone();
    let submitted: u64 = end.outcomes.iter().map(|o| o.submitted_count).sum();
    let noted: usize = log.values().map(Vec::len).sum();
    assert_eq!(noted as u64, submitted, "all were noted");
    log
}

fn lbas(ios: &[Io]) -> Vec<u64> {
    ios.iter().map(|io| io.lba).collect()
}

#[test]
fn uniform_reads_reach_all_of_8_tib_and_repeat_with_their_seed() {
    let Some(_lab) = lab() else { return };
    let dir = tempfile::tempdir().unwrap();
    let huge = Loop::sparse(dir.path(), EIGHT_TIB, &["--sector-size", "512"]);
    let keys = "rw: randread, bs: 4k, iodepth: 16, reactors: 2, number_ios: 60000, ramp_time: 0s";
    let log = handed_over(&huge.path, keys, 7);
    assert_eq!(log.keys().collect::<Vec<_>>(), [&0, &1]);
    const CELLS: usize = 500;
    let cell_blocks = EIGHT_TIB / 512 / CELLS as u64 + 1;
    for (reactor, ios) in &log {
        assert!(ios.iter().all(|io| io.op == Op::Read && io.blocks == 8));
        assert!(ios.iter().all(|io| io.lba % 8 == 0), "aligned to 4 KiB");
        let mut counts = vec![0; CELLS];
        for io in ios {
            counts[usize::try_from(io.lba / cell_blocks).unwrap()] += 1;
        }
        let chi = chi_square(&counts);
        assert!(chi < chi_square_limit(CELLS), "reactor {reactor}: {chi}");
        // And not suspiciously even: a mere cycle through the cells would have 0.
        assert!(chi > 350.0, "reactor {reactor}: {chi}");
        // 3 of 4 blocks of 8 TiB lie above 2^32.
        let far = ios.iter().filter(|io| io.lba > 1 << 32).count();
        let share = far as f64 / ios.len() as f64;
        assert!((share - 0.75).abs() < 0.02, "reactor {reactor}: {share}");
    }
    let (first, second) = (lbas(&log[&0]), lbas(&log[&1]));
    let seen: HashSet<&u64> = first.iter().collect();
    let shared = second.iter().filter(|lba| seen.contains(lba)).count();
    // 30,000 of 2^31 places each: 0.4 by chance.
    assert!(shared < 20, "{shared} blocks read by both reactors");
    let again = handed_over(&huge.path, keys, 7);
    assert_eq!((lbas(&again[&0]), lbas(&again[&1])), (first, second));
    let other = handed_over(&huge.path, keys, 8);
    assert_ne!(lbas(&other[&0])[..100], lbas(&log[&0])[..100]);
}

#[test]
fn four_sequential_streams_never_read_a_block_twice_in_the_first_pass() {
    let Some(_lab) = lab() else { return };
    let dir = tempfile::tempdir().unwrap();
    let huge = Loop::sparse(dir.path(), EIGHT_TIB, &["--sector-size", "512"]);
    for reactors in [1, 2] {
        // Above 2^32 blocks; the size is no multiple of four stripes of whole I/Os.
        let keys = format!(
            "rw: read, bs: 64k, iodepth: 4, streams: 4, reactors: {reactors}, passes: 1, offset: 5T, size: 66M, ramp_time: 0s"
        );
        let log = handed_over(&huge.path, &keys, 1);
        assert_eq!(log.len(), reactors);
        let mut blocks = vec![0_u32; 66 << 11];
        for io in log.values().flatten() {
            let at = usize::try_from(io.lba - (5 << 31)).unwrap();
            blocks[at..at + io.blocks as usize]
                .iter_mut()
                .for_each(|count| *count += 1);
        }
        let most = blocks.iter().max().unwrap();
        let read = blocks.iter().filter(|count| **count == 1).count();
        assert_eq!((*most, read), (1, 66 << 11), "{reactors} reactors");
    }
}

#[derive(Default)]
struct Bytes(Option<Vec<u8>>);

impl Sink for Bytes {
    fn complete(&mut self, _slot: Slot, status: Status, buffer: &mut [u8]) -> Option<Io> {
        assert_eq!(status, Status::Ok);
        self.0 = Some(buffer.to_vec());
        None
    }
}

/// What is noted above as a block number is that block: its bytes come from that place of the file.
#[test]
fn a_block_above_32_bits_brings_its_own_bytes() {
    let Some(_lab) = lab() else { return };
    let dir = tempfile::tempdir().unwrap();
    let places = [0, (1_u64 << 32) - 8, 1 << 32, (1 << 33) + 8, (1 << 34) - 8];
    let huge = Loop::sparse(dir.path(), EIGHT_TIB, &["--sector-size", "512"]);
    let backing = std::fs::File::options()
        .write(true)
        .open(dir.path().join(format!("image-{EIGHT_TIB}")))
        .unwrap();
    for place in places {
        let text = [place.to_le_bytes(); 64].concat();
        backing.write_all_at(&text, place * 512).unwrap();
    }
    backing.sync_all().unwrap();
    let device = UringDevice::open(&huge.path, UringOptions::default()).unwrap();
    let spec = QueueSpec {
        reactor_index: 0,
        reactors_count: 1,
        slots_count: 1,
        slot_bytes: 4096,
        batch: Batch {
            submit: 1,
            complete_min: 1,
            complete_max: 1,
        },
        writes: false,
    };
    let mut queue = device.open_queue(spec).unwrap();
    for lba in places {
        let io = Io {
            lba,
            blocks: 8,
            op: Op::Read,
        };
        queue.submit(Slot(0), io).unwrap();
        let mut got = Bytes::default();
        while got.0.is_none() {
            queue.poll(&mut got, Wait::AtMostNs(100_000_000)).unwrap();
        }
        assert_eq!(got.0.unwrap()[..8], lba.to_le_bytes(), "block {lba}");
    }
    queue.close(Duration::ZERO);
}
