//! `devices` and `check` on captured and hand-made machines, whole and half broken.

use crate::guard_tree::{Tree, fixture};
use lanemark::cli::check::check;
use lanemark::cli::devices::devices;
use lanemark::cli::listing::ListFormat;
use lanemark::session::preflight::{Check, State, preflight};
use lanemark::session::scan::{DeviceEntry, scan};
use lanemark::sysfs::Sysfs;
use std::time::Instant;

fn entry(tree: &Tree, name: &str) -> DeviceEntry {
    let found = scan(&tree.sysfs()).unwrap().devices;
    found
        .into_iter()
        .find(|device| device.name == name)
        .unwrap()
}

fn checked(tree: &Tree, name: &str) -> Check {
    preflight(&tree.sysfs())
        .into_iter()
        .find(|check| check.name == name)
        .unwrap()
}

#[test]
fn a_captured_guest_is_listed_with_all_its_facts() {
    let tree = fixture("virtio-guest.tree");
    let disk = entry(&tree, "vda");
    assert_eq!(disk.path, "/dev/vda");
    assert_eq!(disk.size_bytes, Some(256 << 30));
    assert_eq!(
        (disk.logical_block_bytes, disk.physical_block_bytes),
        (Some(512), Some(4096))
    );
    assert_eq!(disk.serial.as_deref(), Some("SERIAL0001"));
    assert_eq!(disk.scheduler.as_deref(), Some("mq-deadline"));
    assert_eq!(
        (disk.driver.as_deref(), disk.transport.as_deref()),
        (Some("virtio_blk"), Some("virtio"))
    );
    assert_eq!(disk.pci.as_deref(), Some("0000:00:02.0"));
    assert_eq!(disk.rotational, Some(true));
    let uses = disk.in_use.unwrap();
    assert_eq!(
        uses,
        [
            "mounted at / (vda, ext4)",
            "holds the root file system (vda)"
        ]
    );
    assert!(disk.problems.is_empty(), "{:?}", disk.problems);
    let zram = entry(&tree, "zram0");
    assert_eq!(
        (zram.size_bytes, zram.logical_block_bytes),
        (Some(1 << 30), Some(4096))
    );
    assert_eq!((zram.scheduler, zram.serial), (None, None));
    assert_eq!(zram.in_use, Some(Vec::new()));
}

/// Name, model, PCI function, driver, other node, size, logical block. The namespace with 8 bytes of metadata
/// beside each block holds 516,222 blocks of its 256 MiB image.
const LAB: [LabDevice; 9] = [
    (
        "nvme0n1",
        Some("QEMU NVMe Ctrl"),
        Some("0000:01:00.0"),
        "nvme",
        Some("/dev/ng0n1"),
        mib(1024),
        512,
    ),
    (
        "nvme0n2",
        Some("QEMU NVMe Ctrl"),
        Some("0000:01:00.0"),
        "nvme",
        Some("/dev/ng0n2"),
        mib(512),
        4096,
    ),
    (
        "nvme1n1",
        Some("QEMU NVMe Ctrl"),
        Some("0000:04:00.0"),
        "nvme",
        Some("/dev/ng1n1"),
        Some(516_222 * 512),
        512,
    ),
    (
        "vda",
        None,
        Some("0000:00:08.0"),
        "virtio_blk",
        None,
        mib(128),
        512,
    ),
    (
        "sda",
        Some("LABSATA-DISK"),
        Some("0000:00:1f.2"),
        "sd",
        Some("/dev/sg0"),
        mib(320),
        512,
    ),
    (
        "sdb",
        Some("LABRAID VOLUME"),
        Some("0000:00:07.0"),
        "sd",
        Some("/dev/sg1"),
        mib(192),
        512,
    ),
    (
        "sdc",
        Some("LABDISK SAS-A"),
        Some("0000:00:06.0"),
        "sd",
        Some("/dev/sg2"),
        mib(256),
        512,
    ),
    (
        "sdd",
        Some("LABDISK SAS-B"),
        Some("0000:00:06.0"),
        "sd",
        Some("/dev/sg3"),
        mib(384),
        512,
    ),
    (
        "sde",
        Some("Linux scsi_debug"),
        None,
        "sd",
        Some("/dev/sg4"),
        mib(64),
        4096,
    ),
];

type LabDevice = (
    &'static str,
    Option<&'static str>,
    Option<&'static str>,
    &'static str,
    Option<&'static str>,
    Option<u64>,
    u32,
);

const fn mib(mib: u64) -> Option<u64> {
    Some(mib << 20)
}

/// Captured by `scripts/capture-sysfs` in the `default` topology of `scripts/lab`.
#[test]
fn the_captured_lab_is_listed_with_every_kind_of_controller() {
    let tree = fixture("lab-default.tree");
    let inventory = scan(&tree.sysfs()).unwrap();
    assert!(inventory.problems.is_empty(), "{:?}", inventory.problems);
    let names: Vec<&str> = inventory
        .devices
        .iter()
        .map(|device| device.name.as_str())
        .collect();
    assert_eq!(names, LAB.map(|line| line.0));
    for (device, (name, model, pci, driver, other, size_bytes, block_bytes)) in
        inventory.devices.iter().zip(LAB)
    {
        assert_eq!(device.model.as_deref(), model, "{name}");
        assert_eq!(device.pci.as_deref(), pci, "{name}");
        assert_eq!(device.driver.as_deref(), Some(driver), "{name}");
        assert_eq!(
            device.other_paths.first().map(String::as_str),
            other,
            "{name}"
        );
        assert_eq!(device.size_bytes, size_bytes, "{name}");
        assert_eq!(device.logical_block_bytes, Some(block_bytes), "{name}");
        assert_eq!(device.in_use.as_deref(), Some(&[][..]), "{name}");
        assert!(device.problems.is_empty(), "{name}: {:?}", device.problems);
        assert!(
            device.serial.is_some() && device.polls == Some(false),
            "{name}"
        );
    }
    // The made-up names are the same in the vital product data and in the kernel's own file.
    let sas = entry(&tree, "sdc");
    assert_eq!(sas.identity.as_deref(), Some("naa.5000c5066a40e4ac"));
    assert_eq!(sas.serial.as_deref(), Some("AJLHLB1275"));
}

#[test]
fn a_multipath_head_and_its_hidden_paths_are_one_namespace() {
    let tree = fixture("nvme-multipath.tree");
    let head = entry(&tree, "nvme0n1");
    assert_eq!(
        head.identity.as_deref(),
        Some("eui.01000000010000005cd2e4000000abcd")
    );
    assert_eq!(head.serial.as_deref(), Some("NVSER0001"));
    assert_eq!(head.firmware.as_deref(), Some("8DV10131"));
    // 1.6 TB of 4 KiB blocks: sysfs counts sectors of 512 bytes all the same.
    assert_eq!(head.size_bytes, Some(3_125_627_568 * 512));
    assert_eq!(
        head.other_paths,
        ["/dev/ng0n1", "0000:01:00.0", "0000:02:00.0"]
    );
    assert_eq!(
        head.in_use.unwrap(),
        ["mounted at /srv (partition nvme0n1p1, xfs)"]
    );
    // Its paths have no node: they are told with the head, each with its controller.
    let all = scan(&tree.sysfs()).unwrap().devices;
    assert_eq!(all.len(), 1, "{all:#?}");
    let paths: Vec<_> = head
        .controllers
        .iter()
        .map(|one| {
            (
                one.pci.clone().unwrap(),
                one.path.clone().unwrap(),
                one.numa_node,
            )
        })
        .collect();
    assert_eq!(
        paths,
        [
            (
                "0000:01:00.0".to_owned(),
                "nvme0c0n1 (optimized)".to_owned(),
                Some(0)
            ),
            (
                "0000:02:00.0".to_owned(),
                "nvme0c1n1 (non-optimized)".to_owned(),
                Some(1)
            ),
        ]
    );
    assert!(head.problems.is_empty(), "{:?}", head.problems);
}

#[test]
fn a_sas_disk_is_named_by_its_vital_product_data() {
    let disk = entry(&fixture("sas-garbled.tree"), "sda");
    assert_eq!(disk.identity.as_deref(), Some("naa.5000c50012345678"));
    assert_eq!(disk.serial.as_deref(), Some("3SK00001"));
    assert_eq!(disk.model.as_deref(), Some("SEAGATE ST3450857SS"));
    assert_eq!(disk.firmware.as_deref(), Some("0008"));
    // The 450 GB drive of the short-stroke review: 879,097,968 blocks.
    assert_eq!(disk.size_bytes, Some(450_098_159_616));
    assert_eq!(disk.other_paths, ["/dev/sg0"]);
    assert_eq!(disk.pci.as_deref(), Some("0000:03:00.0"));
}

#[test]
fn garbled_facts_are_left_out_and_named_never_zero() {
    let tree = fixture("sas-garbled.tree");
    let disk = entry(&tree, "sdb");
    assert_eq!(disk.size_bytes, None);
    assert_eq!(
        (disk.logical_block_bytes, disk.physical_block_bytes),
        (None, None)
    );
    assert_eq!(
        (disk.rotational, disk.read_only, disk.scheduler),
        (None, None, None)
    );
    let text = disk.problems.join("\n");
    for word in [
        "`-1`",
        "`maybe`",
        "`0`, which is not a block size",
        "`4294967296`",
        "rotational says ``",
        "`none mq-deadline`",
        "`21`",
    ] {
        assert!(text.contains(word), "{word} in {text}");
    }
    assert_eq!(
        disk.in_use, None,
        "the swap list is garbled: cannot be told"
    );
    assert!(!text.contains("Nothing like"), "told once, for the machine");
    // 2^64 bytes: not a size, and not 0 either.
    let huge = entry(&tree, "cciss/c0d0");
    assert_eq!((huge.size_bytes, huge.read_only), (None, Some(true)));
    let inventory = scan(&tree.sysfs()).unwrap();
    let problems = inventory.problems.join("\n");
    for word in ["sdc", "`8/48`", "Nothing like a header"] {
        assert!(problems.contains(word), "{word} in {problems}");
    }
}

#[test]
fn a_missing_holders_folder_makes_the_use_unknown_and_is_named() {
    let tree = fixture("virtio-guest.tree");
    tree.remove(&format!("{}/holders", tree.dir("zram0")));
    let zram = entry(&tree, "zram0");
    assert_eq!(zram.in_use, None);
    assert!(zram.problems[0].contains("holders"), "{:?}", zram.problems);
}

#[test]
fn the_table_tells_what_matters_and_json_parses() {
    let tree = fixture("virtio-guest.tree");
    let text = devices(&tree.sysfs(), ListFormat::Text, None).unwrap();
    assert!(
        text.contains("/dev/vda") && text.contains("274.8 GB") && text.contains("mounted at /"),
        "{text}"
    );
    assert!(
        text.contains("and 1 idle loop, zram, ram or nbd devices"),
        "{text}"
    );
    assert!(!text.contains("/dev/loop0"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&devices(&tree.sysfs(), ListFormat::Json, None).unwrap()).unwrap();
    assert_eq!(json["schema_version"], 1);
    assert_eq!(json["devices"].as_array().unwrap().len(), 3);
    assert_eq!(json["devices"][1]["size_bytes"], 256_u64 << 30);
    let broken = devices(&fixture("sas-garbled.tree").sysfs(), ListFormat::Text, None).unwrap();
    assert!(
        broken.contains("problem: sdb: ") && broken.contains("unknown"),
        "{broken}"
    );
}

#[test]
fn a_machine_without_block_devices_is_said_to_have_none() {
    assert_eq!(
        devices(&Tree::new().sysfs(), ListFormat::Text, None).unwrap(),
        "no block devices\n"
    );
    let nothing = tempfile::tempdir().unwrap();
    assert!(devices(&Sysfs::at(nothing.path()), ListFormat::Text, None).is_err());
}

/// Time that this thread has been on a CPU (Documentation/scheduler/sched-stats.rst); 0 where the kernel keeps
/// no account.
fn on_cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().unwrap_or_default();
    first.parse().unwrap_or_default()
}

#[test]
fn sixty_four_disks_are_listed_in_a_tenth_of_a_second() {
    let mut tree = Tree::new();
    for number in 0..64 {
        let name = format!("sd{number:02}x");
        tree.scsi_disk(
            &name,
            &format!("8:{number}"),
            number,
            &format!("S{number}"),
            &format!("naa.5{number:015x}"),
        );
        tree.mount(
            &format!("8:{number}"),
            &format!("/mnt/{number}"),
            "ext4",
            &format!("/dev/{name}"),
        );
    }
    let sysfs = tree.sysfs();
    // Time on the CPU, best of five: the machine may be busy with other tests.
    let best_ms = (0..5)
        .map(|_| {
            let began_ns = on_cpu_ns();
            assert_eq!(scan(&sysfs).unwrap().devices.len(), 64);
            (on_cpu_ns() - began_ns) / 1_000_000
        })
        .min();
    assert!(best_ms.unwrap() < 100, "{best_ms:?} ms");
}

#[test]
fn checks_of_a_good_machine_are_ok_and_of_a_bad_one_name_the_remedy() {
    let good = fixture("virtio-guest.tree");
    for name in ["io_uring", "clocksource", "smt", "governor"] {
        assert_eq!(checked(&good, name).state, State::Ok, "{name}");
    }
    assert_eq!(checked(&good, "hugepages").state, State::Missing);
    assert_eq!(checked(&good, "iommu").state, State::Missing);
    let bad = fixture("sas-garbled.tree");
    let expected = [
        ("hugepages", State::Unknown, "many", "readable"),
        ("memlock", State::Warn, "64 KiB", "ulimit -l"),
        ("open-files", State::Warn, "256", "ulimit -n"),
        (
            "io_uring",
            State::Missing,
            "io_uring_disabled = 2",
            "sysctl kernel.io_uring_disabled=0",
        ),
        ("governor", State::Warn, "powersave", "cpupower"),
        ("clocksource", State::Warn, "hpet", "echo tsc"),
        ("smt", State::Unknown, "`2`", "readable"),
        ("vfio", State::Missing, "not loaded", "modprobe vfio-pci"),
    ];
    for (name, state, found, remedy) in expected {
        let check = checked(&bad, name);
        assert_eq!(check.state, state, "{check:?}");
        assert!(
            check.found.contains(found) && check.remedy.contains(remedy),
            "{check:?}"
        );
    }
}

#[test]
fn huge_pages_are_counted_by_node_and_size() {
    let tree = Tree::new();
    for (node, size, total, free) in [(0, 2048, 512, 100), (1, 1_048_576, 4, 4)] {
        let dir = format!("sys/devices/system/node/node{node}/hugepages/hugepages-{size}kB");
        tree.file(&format!("{dir}/nr_hugepages"), &format!("{total}\n"));
        tree.file(&format!("{dir}/free_hugepages"), &format!("{free}\n"));
    }
    let check = checked(&tree, "hugepages");
    assert_eq!(check.state, State::Ok);
    assert_eq!(
        check.found,
        "node 0: 100 of 512 x 2 MiB free, node 1: 4 of 4 x 1 GiB free"
    );
    tree.file(
        "sys/devices/system/node/node1/hugepages/hugepages-1048576kB/free_hugepages",
        "0\n",
    );
    assert_eq!(
        checked(&tree, "hugepages").state,
        State::Warn,
        "200 MiB free"
    );
}

#[test]
fn iommu_and_vfio_are_seen() {
    let tree = Tree::new();
    tree.folder("sys/kernel/iommu_groups/0");
    tree.folder("sys/class/iommu/dmar0");
    tree.folder("sys/bus/pci/drivers/vfio-pci/0000:01:00.0");
    tree.file("dev/vfio/vfio", "c 10:196");
    assert_eq!(checked(&tree, "iommu").found, "1 units, 1 groups");
    let vfio = checked(&tree, "vfio");
    assert_eq!(
        (vfio.state, vfio.found.as_str()),
        (State::Ok, "vfio-pci loaded, 1 devices bound")
    );
}

#[test]
fn every_check_that_is_not_ok_has_a_remedy_and_json_parses() {
    for tree in [
        fixture("virtio-guest.tree"),
        fixture("sas-garbled.tree"),
        Tree::new(),
    ] {
        for found in preflight(&tree.sysfs()) {
            let needs = found.state != State::Ok;
            assert!(
                !found.found.is_empty() && (!needs || !found.remedy.is_empty()),
                "{found:?}"
            );
        }
        let json: serde_json::Value =
            serde_json::from_str(&check(&tree.sysfs(), ListFormat::Json)).unwrap();
        assert!(json["checks"].as_array().unwrap().len() >= 9);
        let text = check(&tree.sysfs(), ListFormat::Text);
        assert!(
            text.contains("hugepages") && text.ends_with("unknown\n"),
            "{text}"
        );
    }
}

/// Whatever machine the tests run on, its list is made, quickly, and parses.
#[test]
fn this_machine_is_listed() {
    let began = Instant::now();
    let json = devices(&Sysfs::host(), ListFormat::Json, None);
    let elapsed_ms = began.elapsed().as_millis();
    // A container may have no sysfs.
    if let Ok(json) = json {
        assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok());
        assert!(elapsed_ms < 2000, "{elapsed_ms} ms");
    }
}
