//! `lanemark check` on what SPDK needs: captured and hand-made machines.

use crate::guard_tree::{Tree, fixture};
use lanemark::session::preflight::{Check, State, preflight};

fn rows(tree: &Tree, name: &str) -> Vec<Check> {
    let all = preflight(&tree.sysfs()).into_iter();
    all.filter(|check| check.name == name).collect()
}

#[test]
fn what_is_built_in_is_a_row() {
    let spdk = rows(&Tree::new(), "spdk").remove(0);
    match lanemark::spdk::absent() {
        Some(why) => {
            assert_eq!(spdk.state, State::Missing);
            assert_eq!(spdk.found, why);
            assert!(spdk.remedy.contains("scripts/install-spdk"), "{spdk:?}");
        }
        None => {
            assert_eq!(spdk.state, State::Ok);
            assert!(
                spdk.found.contains("PCIE") && spdk.found.contains("TCP"),
                "{spdk:?}"
            );
        }
    }
}

#[test]
fn rights_and_locked_memory_follow_capabilities() {
    let tree = Tree::new();
    let limits = "Limit  Soft  Hard  Units\nMax locked memory  8388608  8388608  bytes\nMax open files  4096  4096  files\n";
    tree.file("proc/self/limits", limits);
    let state = |name: &str| rows(&tree, name).remove(0).state;
    for (caps, rights, memlock) in [
        ("0000000000000000", State::Warn, State::Warn),
        ("0000000000004000", State::Warn, State::Ok), // CAP_IPC_LOCK
        ("000001ffffffffff", State::Ok, State::Ok),
        ("garbled", State::Warn, State::Warn),
    ] {
        tree.file("proc/self/status", &format!("Name:\tx\nCapEff:\t{caps}\n"));
        assert_eq!(
            (state("spdk-rights"), state("memlock")),
            (rights, memlock),
            "{caps}"
        );
    }
}

#[test]
fn every_nvme_controller_of_a_captured_machine_is_a_row() {
    let tree = fixture("lab-default.tree");
    let found = rows(&tree, "spdk-device");
    let said: Vec<_> = found
        .iter()
        .map(|check| (check.state, check.found.as_str(), check.remedy.as_str()))
        .collect();
    assert_eq!(
        said,
        [
            (
                State::Warn,
                "0000:01:00.0: on the kernel's nvme driver",
                "run lanemark claim 0000:01:00.0, or use --claim"
            ),
            (
                State::Warn,
                "0000:04:00.0: on the kernel's nvme driver",
                "run lanemark claim 0000:04:00.0, or use --claim"
            ),
        ]
    );
    assert!(rows(&fixture("virtio-guest.tree"), "spdk-device").is_empty());
}

#[test]
fn a_device_that_spdk_can_drive_and_one_whose_group_is_shared() {
    let tree = Tree::new();
    let device = "sys/bus/pci/devices/0000:01:00.0";
    tree.file(&format!("{device}/class"), "0x010802\n");
    tree.link(&format!("{device}/driver"), "../../drivers/vfio-pci");
    let row = || rows(&tree, "spdk-device").remove(0);
    assert_eq!(
        (row().state, row().found.as_str()),
        (State::Ok, "0000:01:00.0: SPDK can drive it")
    );
    tree.link(&format!("{device}/iommu_group"), "../../groups/7");
    tree.link(
        "sys/bus/pci/groups/7/devices/0000:01:00.1/driver",
        "../drivers/e1000e",
    );
    assert_eq!(row().state, State::Missing);
    assert_eq!(
        row().found,
        "0000:01:00.0: its IOMMU group 7 is not viable, 0000:01:00.1 (e1000e) is in it"
    );
    assert!(row().remedy.contains("vfio-pci"));
}

#[test]
fn a_narrow_iommu_is_handled_and_said_and_a_too_narrow_one_refused() {
    let tree = Tree::new();
    tree.folder("sys/kernel/iommu_groups/0");
    let cap = "sys/class/iommu/dmar0/intel-iommu/cap";
    for (value, state, words) in [
        ("d2008c222f0686", State::Ok, "1 units, 1 groups"),
        (
            "d2008c22260686",
            State::Ok,
            "39 bits wide: SPDK's memory is placed at 0x1000000000",
        ),
        (
            "d2008c221f0686",
            State::Missing,
            "32 bits wide, at least 38 are needed",
        ),
        ("nonsense", State::Ok, "1 units, 1 groups"),
    ] {
        tree.file(cap, &format!("{value}\n"));
        let row = rows(&tree, "iommu").remove(0);
        assert_eq!(row.state, state, "{row:?}");
        assert!(row.found.contains(words), "{row:?}");
        assert_eq!(row.remedy.is_empty(), state == State::Ok, "{row:?}");
    }
}
