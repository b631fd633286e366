//! Counters of hand-made machines.

#![allow(clippy::unwrap_used)]
use super::*;
use crate::backend::sim::{SimDevice, SimSpec};
use crate::backend::{Device as _, NullDevice};
use crate::clock::VirtualClock;
use crate::config::{Job, plan};
use crate::reactor::{Control, run_virtual_team};
use crate::session::step::setups;
use crate::sysfs::Sysfs;
use crate::units::Bytes;
use std::sync::Arc;

/// A machine in a folder: lines `path: text`, `path -> target`, `path/`.
struct Tree(tempfile::TempDir);

impl Tree {
    fn of(text: &str) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        for line in text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            if let Some(folder) = line.strip_suffix('/') {
                std::fs::create_dir_all(tree.0.path().join(folder)).unwrap();
            } else if let Some((path, target)) = line.split_once(" -> ") {
                std::os::unix::fs::symlink(target, tree.at(path)).unwrap();
            } else {
                let (path, value) = line.split_once(": ").unwrap();
                tree.file(path, value);
            }
        }
        tree
    }

    fn at(&self, path: &str) -> PathBuf {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    fn file(&self, path: &str, value: &str) {
        std::fs::write(self.at(path), format!("{value}\n")).unwrap();
    }

    fn sysfs(&self) -> Sysfs {
        Sysfs::at(std::fs::canonicalize(self.0.path()).unwrap())
    }

    /// Reads and writes with their 512-byte sectors.
    fn stat(&self, dir: &str, reads: (u64, u64), writes: (u64, u64)) {
        let line = format!(
            "{} 0 {} 9 {} 0 {} 9 0 9 9 0 0 0 0 0 0",
            reads.0, reads.1, writes.0, writes.1
        );
        self.file(&format!("{dir}/stat"), &line);
    }
}

/// A disk of 512-byte blocks with a partition.
fn disk() -> Tree {
    Tree::of(&format!(
        "sys/class/block/sdb -> ../../{SDB}\nsys/class/block/sdb1 -> ../../{SDB}/sdb1\n\
         sys/dev/block/8:16 -> ../../{SDB}\nsys/dev/block/8:17 -> ../../{SDB}/sdb1\n\
         sys/{SDB}/dev: 8:16\nsys/{SDB}/size: 65536\nsys/{SDB}/serial: S1\nsys/{SDB}/holders/\nsys/{SDB}/slaves/\n\
         sys/{SDB}/queue/physical_block_size: 4096\nsys/{SDB}/queue/max_sectors_kb: 128\nsys/{SDB}/queue/max_segments: 168\n\
         sys/{SDB}/sdb1/dev: 8:17\nsys/{SDB}/sdb1/partition: 1\nsys/{SDB}/sdb1/start: 2048\nsys/{SDB}/sdb1/size: 2048\n\
         sys/{SDB}/sdb1/holders/\ndev/sdb: b 8:16\ndev/sdb1: b 8:17\nproc/self/mountinfo: \nproc/swaps: \n"
    ))
}

const SDB: &str = "devices/virtual/block/sdb";

fn facts(path: &str, kind: DeviceKind) -> DeviceFacts {
    let device = NullDevice::new(path, Bytes(1 << 20));
    DeviceFacts {
        kind,
        ..device.facts().clone()
    }
}

fn own(sizes: &[(u64, u64)], flushes_count: u64) -> OwnIo {
    OwnIo {
        sizes: sizes.to_vec(),
        flushes_count,
    }
}

fn begin(sysfs: &Sysfs, facts: &DeviceFacts) -> Result<Counted, String> {
    Counted::begin(&Machine::read(sysfs).unwrap(), facts)
}

#[test]
fn what_is_counted_beyond_our_own_was_others() {
    let tree = disk();
    tree.stat(&format!("sys/{SDB}"), (100, 800), (10, 80));
    let sysfs = tree.sysfs();
    let mut counted = begin(&sysfs, &facts("/dev/sdb", DeviceKind::Block)).unwrap();
    // 50 reads and 5 writes of 4 KiB; 47 of them ours.
    tree.stat(&format!("sys/{SDB}"), (150, 1200), (15, 120));
    counted.end();
    let others = counted.others(&own(&[(4096, 47)], 0)).unwrap();
    assert_eq!((others.ios_count, others.bytes_count), (8, 8 * 4096));
    assert_eq!(others.counted_on, ["sdb"]);
    // All of them ours, some never sent, a flush that the kernel takes for a write.
    let none = counted.others(&own(&[(4096, 60)], 0)).unwrap();
    assert_eq!((none.ios_count, none.bytes_count), (0, 0));
    let flush = counted.others(&own(&[(4096, 54)], 1)).unwrap();
    assert_eq!(
        (flush.ios_count, flush.bytes_count),
        (1, 4096),
        "bytes cannot be a flush's"
    );
}

#[test]
fn io_through_another_partition_counts_and_partitions_of_one_disk_are_taken_together() {
    let tree = disk();
    tree.stat(&format!("sys/{SDB}"), (0, 0), (0, 0));
    tree.stat(&format!("sys/{SDB}/sdb1"), (0, 0), (0, 0));
    let sysfs = tree.sysfs();
    let on = |path: &str| begin(&sysfs, &facts(path, DeviceKind::Block));
    let mut all = vec![on("/dev/sdb1"), on("/dev/sdb")];
    tree.stat(&format!("sys/{SDB}"), (30, 240), (0, 0));
    all.iter_mut().flatten().for_each(Counted::end);
    let part = all[0].clone().unwrap();
    let owns = [own(&[(4096, 10)], 0), own(&[(4096, 20)], 0)];
    let mine = shared(&all, 0, &owns);
    assert_eq!(part.others(&mine).unwrap().ios_count, 0);
    assert_eq!(
        part.others(&owns[0]).unwrap().ios_count,
        20,
        "the disk's counters, not the partition's"
    );
}

#[test]
fn requests_that_the_kernel_cuts_are_our_own_and_commands_past_it_are_not_counted() {
    let tree = disk();
    tree.stat(&format!("sys/{SDB}"), (0, 0), (0, 0));
    let sysfs = tree.sysfs();
    let mut counted = begin(&sysfs, &facts("/dev/sdb", DeviceKind::Block)).unwrap();
    // 10 of 1 MiB become 8 each, since a request holds 128 KiB.
    tree.stat(&format!("sys/{SDB}"), (80, 10 * 2048), (0, 0));
    counted.end();
    let others = counted.others(&own(&[(1 << 20, 10)], 0)).unwrap();
    assert_eq!((others.ios_count, others.bytes_count), (0, 0));
    assert_eq!(
        (counted.parts.most(131_072), counted.parts.most(131_073)),
        (1, 2)
    );
    // A mapped device may count four for each of ours and show no limit that tells so: no bytes are left, and so
    // nobody else was there.
    let mut mapped = begin(&sysfs, &facts("/dev/sdb", DeviceKind::Block)).unwrap();
    tree.stat(&format!("sys/{SDB}"), (120, 10 * 2048 + 2560), (0, 0));
    mapped.end();
    let others = mapped.others(&own(&[(131_072, 10)], 0)).unwrap();
    assert_eq!((others.ios_count, others.bytes_count), (0, 0));
    tree.stat(&format!("sys/{SDB}"), (80, 10 * 2048), (0, 0));

    tree.file(&format!("sys/{SDB}/queue/chunk_sectors"), "256");
    let counted = begin(&sysfs, &facts("/dev/sdb", DeviceKind::Block)).unwrap();
    assert_eq!(counted.parts.most(4096), 2, "it may cross a border");

    let mut scsi = facts("/dev/sg1", DeviceKind::Scsi);
    scsi.block_path = Some("/dev/sdb".to_owned());
    let mut past = begin(&sysfs, &scsi).unwrap();
    tree.stat(&format!("sys/{SDB}"), (83, 10 * 2048 + 24), (0, 0));
    past.end();
    let others = past.others(&own(&[(4096, 1000)], 0)).unwrap();
    assert_eq!((others.ios_count, others.bytes_count), (3, 3 * 4096));
    tree.file(&format!("sys/{SDB}/queue/iostats_passthrough"), "1");
    let mut counted_too = begin(&sysfs, &scsi).unwrap();
    counted_too.end();
    assert!(counted_too.is_own_counted);
}

#[test]
fn missing_garbled_and_strange_counters_are_told_and_never_zero() {
    let why =
        |tree: &Tree| begin(&tree.sysfs(), &facts("/dev/sdb", DeviceKind::Block)).unwrap_err();
    let tree = disk();
    assert!(why(&tree).contains("stat"), "{}", why(&tree));
    tree.file(&format!("sys/{SDB}/stat"), "1 2 three");
    assert!(why(&tree).contains("11 or more counters"), "{}", why(&tree));
    tree.stat(&format!("sys/{SDB}"), (9, 9), (0, 0));
    tree.file(&format!("sys/{SDB}/queue/iostats"), "0");
    assert!(why(&tree).contains("iostats is 0"), "{}", why(&tree));
    tree.file(&format!("sys/{SDB}/queue/iostats"), "1");
    let mut counted = begin(&tree.sysfs(), &facts("/dev/sdb", DeviceKind::Block)).unwrap();
    assert!(counted.others(&own(&[], 0)).is_err(), "not read again");
    tree.stat(&format!("sys/{SDB}"), (8, 9), (0, 0));
    counted.end();
    let back = counted.others(&own(&[], 0)).unwrap_err();
    assert!(back.contains("sdb went backwards"), "{back}");
    std::fs::remove_file(tree.at(&format!("sys/{SDB}/stat"))).unwrap();
    counted.end();
    assert!(counted.others(&own(&[], 0)).is_err());
    for kind in [
        DeviceKind::File,
        DeviceKind::Null,
        DeviceKind::Nvme,
        DeviceKind::Scsi,
    ] {
        assert!(why_not(&facts("x", kind)).is_some(), "{kind:?}");
    }
}

/// What eight I/Os of 64 KiB put on a disk of 512-byte blocks, by the books of a run.
fn own_of(rw: &str) -> OwnIo {
    let text = format!("device: sim\nsteps: [{{ rw: {rw}, bs: 64k, iodepth: 2, number_ios: 8 }}]");
    let job = Job::from_yaml(&text, "job.yaml").unwrap();
    let clock = VirtualClock::new();
    let devices = [SimDevice::new("sim", &SimSpec::default(), clock.clone())];
    let facts = [devices[0].facts().clone()];
    let plan = plan(&job, &facts, 1).unwrap();
    let step = &plan.steps[0];
    let setups = setups(step, &facts, &[]);
    let control = Arc::new(Control::default());
    let end = run_virtual_team(&devices, &setups, &clock, &control, &mut |_| {}).unwrap();
    OwnIo::of(step, &end.outcomes, &facts).remove(0)
}

/// Zeros are not sent: at most a block each is counted, whatever their length.
#[test]
fn zeros_of_our_own_do_not_hide_io_of_others() {
    let tree = disk();
    for (rw, own_writes) in [
        // WRITE SAME sends one block for each.
        ("writezeroes", (8, 8)),
        ("randwritezeroes", (8, 8)),
        // A trim is counted apart.
        ("trim", (0, 0)),
        ("write", (8, 8 * 128)),
    ] {
        tree.stat(&format!("sys/{SDB}"), (10, 80), (20, 160));
        let facts = facts("/dev/sdb", DeviceKind::Block);
        let mut counted = begin(&tree.sysfs(), &facts).unwrap();
        let writes = (20 + own_writes.0, 160 + own_writes.1);
        tree.stat(&format!("sys/{SDB}"), (13, 104), writes);
        counted.end();
        let others = counted.others(&own_of(rw)).unwrap();
        assert_eq!(
            (others.ios_count, others.bytes_count),
            (3, 3 * 4096),
            "{rw}"
        );
    }
}

#[test]
fn a_multipath_device_is_counted_on_its_paths() {
    let tree = Tree::of(include_str!(
        "../../../tests/fixtures/trees/nvme-multipath.tree"
    ));
    tree.file("proc/swaps", "");
    let paths = [
        "sys/devices/pci0000:00/0000:00:03.0/0000:01:00.0/nvme/nvme0/nvme0c0n1",
        "sys/devices/pci0000:00/0000:00:04.0/0000:02:00.0/nvme/nvme1/nvme0c1n1",
    ];
    for path in paths {
        tree.stat(path, (0, 0), (0, 0));
        tree.file(&format!("{path}/queue/max_sectors_kb"), "512");
        tree.file(&format!("{path}/queue/max_segments"), "128");
    }
    let mut counted = begin(&tree.sysfs(), &facts("/dev/nvme0n1", DeviceKind::Block)).unwrap();
    tree.stat(paths[0], (6, 48), (0, 0));
    tree.stat(paths[1], (4, 32), (1, 8));
    counted.end();
    let others = counted.others(&own(&[(4096, 10)], 0)).unwrap();
    assert_eq!((others.ios_count, others.bytes_count), (1, 4096));
    assert_eq!(others.counted_on, ["nvme0c0n1", "nvme0c1n1"]);
}
