//! Error counters of a path, before and after a window: which one grew, and what could not be read again.

use crate::guard_tree::{Tree, fixture};
use lanemark::ceiling::evidence::Evidence;
use lanemark::ceiling::share::Measured;
use lanemark::ceiling::verdict::judge;
use lanemark::record::{CounterDelta, DevicePath, VerdictKind};
use lanemark::session::path::{PathWatch, named_device};

/// What a window sees during which `happens`.
fn window(tree: &Tree, name: &str, happens: impl FnOnce()) -> DevicePath {
    let sysfs = tree.sysfs();
    let watch = PathWatch::new(&sysfs, vec![named_device(&sysfs, name).path]);
    happens();
    watch.finish(true).remove(0).record
}

/// Those that did not stay what they were, in words.
fn moved(path: &DevicePath) -> Vec<String> {
    let moved = path
        .counters
        .iter()
        .filter(|counter| counter.grown_count != Some(0));
    let text = |one: &CounterDelta| format!("{} {} {}", one.at, one.counter, one.words());
    moved.map(text).collect()
}

fn why(path: &DevicePath) -> String {
    let read = Measured {
        bytes_per_s: 1e9,
        iops: 1e3,
    };
    let mut counters = path.counters.iter();
    let verdict = judge(&Evidence {
        read: Some(read),
        errors: counters.find(|counter| counter.grown_count != Some(0)),
        ..Evidence::default()
    });
    assert_eq!(verdict.kind, VerdictKind::Undecided);
    verdict.why
}

#[test]
fn the_aer_counter_that_grew_is_named() {
    let tree = fixture("nvme-downgraded-hop.tree");
    let port = "sys/bus/pci/devices/0000:02:00.0";
    let quiet = window(&tree, "/dev/nvme0n1", || {});
    assert_eq!(moved(&quiet), Vec::<String>::new());
    let classes: Vec<&str> = (quiet.counters.iter())
        .filter(|counter| counter.at == "0000:02:00.0")
        .map(|counter| counter.counter.as_str())
        .collect();
    assert_eq!(classes, ["aer correctable", "aer nonfatal", "aer fatal"]);
    let path = window(&tree, "/dev/nvme0n1", || {
        tree.file(
            &format!("{port}/aer_dev_correctable"),
            "RxErr 17\nBadTLP 9\nBadDLLP 1\nTOTAL_ERR_COR 27\n",
        );
    });
    assert_eq!(
        moved(&path),
        [
            "0000:02:00.0 aer correctable BadTLP grew by 4",
            "0000:02:00.0 aer correctable BadDLLP grew by 1"
        ]
    );
    assert_eq!(
        why(&path),
        "aer correctable BadTLP of 0000:02:00.0 grew by 4 while it was measured: the verdict is void"
    );
}

#[test]
fn what_cannot_be_read_again_did_not_go_backwards() {
    let tree = fixture("nvme-downgraded-hop.tree");
    let port = "sys/bus/pci/devices/0000:02:00.0";
    let path = window(&tree, "/dev/nvme0n1", || {
        tree.file(
            &format!("{port}/aer_dev_correctable"),
            "RxErr 0\nBadTLP 0\nTOTAL_ERR_COR 0\n",
        );
    });
    assert_eq!(
        moved(&path),
        ["0000:02:00.0 aer correctable went backwards"]
    );
    assert!(
        why(&path).contains("went backwards while"),
        "{}",
        why(&path)
    );
    let path = window(&tree, "/dev/nvme0n1", || {
        tree.remove(&format!("{port}/aer_dev_correctable"));
    });
    assert_eq!(
        moved(&path),
        ["0000:02:00.0 aer correctable could not be read again"]
    );
    assert_eq!(
        why(&path),
        "aer correctable of 0000:02:00.0 could not be read again after it was measured: the verdict is void"
    );
    let tree = fixture("sas-expander.tree");
    let path = window(&tree, "/dev/sda", || {
        tree.remove("sys/class/sas_phy/phy-0:0:0/invalid_dword_count");
        tree.file("sys/class/sas_phy/phy-0:1/invalid_dword_count", "2\n");
    });
    assert_eq!(
        moved(&path),
        [
            "phy-0:1 invalid dwords grew by 2",
            "phy-0:0:0 invalid dwords could not be read again"
        ]
    );
}

/// The kernel's own counters of a SATA drive are read anew, not remembered.
#[test]
fn errors_of_a_sata_drive_are_read_again() {
    let tree = fixture("sata3-on-sata2.tree");
    let drive = "sys/devices/pci0000:00/0000:00:1f.2/ata1/link1/dev1.0/ata_device/dev1.0";
    let path = window(&tree, "/dev/sda", || {
        tree.file(
            &format!("{drive}/ering"),
            "[      112.360000000]ATA bus error\n",
        );
        tree.file(&format!("{drive}/spdn_cnt"), "1\n");
    });
    assert_eq!(
        moved(&path),
        [
            "ata1 times slowed after errors grew by 1",
            "ata1 recent errors grew by 1"
        ]
    );
}
