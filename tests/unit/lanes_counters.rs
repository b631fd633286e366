//! Error counters of a path, before and after a window: which one grew, and what could not be read again.

use crate::guard_tree::{Tree, fixture};
use lanemark::ceiling::evidence::Evidence;
use lanemark::ceiling::share::Measured;
use lanemark::ceiling::verdict::judge;
use lanemark::cli::lanes::json;
use lanemark::record::{CounterDelta, DevicePath, VerdictKind};
use lanemark::report::{Style, render_lanes};
use lanemark::session::path::{PathWatch, all_devices, named_device};

fn one_path(tree: &Tree, name: &str) -> DevicePath {
    named_device(&tree.sysfs(), name).path.record
}

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

/// Without a window: what was counted so far, in text where it is not zero, in JSON always.
#[test]
fn a_path_shows_what_was_counted_so_far() {
    let tree = fixture("nvme-downgraded-hop.tree");
    let found = lanemark::method::lanes::report(&all_devices(&tree.sysfs()).unwrap());
    let style = Style {
        color: false,
        width: 200,
    };
    let text = render_lanes(&found, &style);
    for wanted in [
        "0000:02:00.0: aer correctable RxErr 17 so far",
        "0000:02:00.0: aer correctable BadTLP 5 so far",
    ] {
        // Below the one drive that this port leads to.
        assert_eq!(text.matches(wanted).count(), 1, "{text}");
    }
    assert_eq!(text.matches("so far").count(), 2, "{text}");
    let json: serde_json::Value = serde_json::from_str(&json(&found)).unwrap();
    let counted = json["devices"][0]["path"]["counters_before"]
        .as_array()
        .unwrap();
    // Four functions, of three classes each; one of them by its two names.
    assert_eq!(counted.len(), 4 * 3 + 1, "{counted:?}");
    let tree = fixture("sas-expander.tree");
    let path = one_path(&tree, "/dev/sda");
    let wide: Vec<u64> = (path.counters_before.iter())
        .filter(|counter| counter.at == "phy-0:2")
        .map(|counter| counter.total_count)
        .collect();
    assert_eq!((wide.len(), wide.iter().sum()), (4, 9_u64));
    // A window says what stood before it.
    let path = window(&tree, "/dev/sda", || {
        tree.file("sys/class/sas_phy/phy-0:1/invalid_dword_count", "2\n");
    });
    let before = path.counters_before.iter();
    let same: Vec<u64> = before
        .filter(|counter| {
            (counter.at.as_str(), counter.counter.as_str()) == ("phy-0:1", "invalid dwords")
        })
        .map(|counter| counter.total_count)
        .collect();
    assert_eq!(same, [0]);
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

/// A SATA drive behind a SAS HBA counts as well; what cannot be asked is said to be unseen, and of nothing else.
#[test]
fn a_sata_drive_behind_sas_is_asked_for_its_own() {
    let tree = fixture("sas-expander.tree");
    let path = window(&tree, "/dev/sdh", || {});
    let unseen: Vec<&str> = (path.counters_unseen.iter())
        .map(|one| one.name.as_str())
        .collect();
    // The sg node of the made machine is no device.
    assert_eq!(unseen, ["the drive's link error counters at port-0:0:7"]);
    let sas = window(&tree, "/dev/sda", || {});
    assert_eq!(sas.counters_unseen, []);
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
