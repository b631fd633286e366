//! The smaller topologies of `scripts/lab`, a boot each. What runs there is `topologies.sh`. The boots of
//! `guest_claims` and of `compare` go along with them: an emulator keeps little more than one CPU busy.

use crate::emulated::{Boot, Guest, NoGuest, boot, came, told};
use crate::skipped::skipped;
use crate::{compare, guest_claims};
use std::collections::HashMap;
use std::sync::Mutex;

/// The last comes first.
const NAMES: [&str; 6] = [
    "shared-group",
    "noiommu",
    "mdts3",
    "aw39",
    compare::NAME,
    guest_claims::NAME,
];
const AT_ONCE: usize = 2;
/// Their times and rates are looked at: one after the other, with nothing else going on.
const TIMED: [&str; 2] = ["slow-link", "many-disks"];

type Guests = HashMap<&'static str, Result<Guest, NoGuest>>;

static GUESTS: Boot<Guests> = Boot::new();

/// What came of the boot of this name; nothing, with the reason told, where there can be none.
#[track_caller]
pub fn guest(name: &str) -> Option<&'static Guest> {
    came(&GUESTS.get(|| Ok(boot_all()))?[name])
}

fn boot_all() -> Guests {
    let left = Mutex::new(NAMES.to_vec());
    let done = Mutex::new(HashMap::new());
    let next = || left.lock().unwrap().pop();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(name) = next() {
                    let made = boot_one(name);
                    done.lock().unwrap().insert(name, made);
                }
            });
        }
    });
    let mut guests = done.into_inner().unwrap();
    guests.extend(TIMED.map(|name| (name, boot_one(name))));
    guests
}

fn boot_one(name: &str) -> Result<Guest, NoGuest> {
    let lanemark = env!("CARGO_BIN_EXE_lanemark");
    if name == guest_claims::NAME {
        let words = ["tests/lab/guest.sh", lanemark];
        return boot("default", &words, &guest_claims::PARTS);
    }
    let script = if name == compare::NAME {
        "tests/lab/guest_compare.sh"
    } else {
        "tests/lab/topologies.sh"
    };
    boot(name, &[script, lanemark], &[])
}

/// Claimed, run by SPDK, given back; the drivers told.
#[track_caller]
fn by_spdk(guest: &Guest, driver: &str) {
    let claim = guest.json("claim");
    assert_eq!(claim["devices"][0]["driver"], driver, "{claim:#}");
    let step = guest.step("run");
    assert_eq!(step.backend.name, "spdk");
    assert_eq!(step.backend.reason, format!("auto: bound to {driver}"));
    let release = guest.json("release");
    assert_eq!(release["devices"][0]["driver"], "nvme", "{release:#}");
    assert_ne!(release["devices"][0]["nodes"], serde_json::json!([]));
}

#[test]
fn an_iommu_of_39_bits_serves() {
    let Some(guest) = guest("aw39") else { return };
    by_spdk(guest, "vfio-pci");
}

#[test]
fn a_link_of_one_slow_lane_serves() {
    let Some(guest) = guest("slow-link") else {
        return;
    };
    by_spdk(guest, "vfio-pci");
}

#[test]
fn without_an_iommu_uio_serves_and_its_device_is_driven_by_one_process() {
    let Some(guest) = guest("noiommu") else {
        return;
    };
    by_spdk(guest, "uio_pci_generic");
    let notes = guest.json("claim")["devices"][0]["notes"].to_string();
    assert!(notes.contains("no IOMMU"), "{notes}");
    assert_eq!(
        guest.number("second.code"),
        2,
        "{}",
        guest.text("second.err")
    );
    guest.refused("second-claim", &["drives it from user space"]);
    guest.refused("release-driven", &["drives it from user space"]);
    // The first was interrupted by us, and lost nothing to the others.
    assert_eq!(guest.number("first.code"), 130);
    assert_eq!(guest.record("first").steps[0].failed_count, 0);
}

#[test]
fn a_group_that_is_not_viable_is_refused_with_its_members_named() {
    let Some(guest) = guest("shared-group") else {
        return;
    };
    let next = "claim them together, adding";
    for name in ["alone", "alone-run"] {
        guest.refused(name, &["IOMMU group", "is not viable", "(nvme)", next]);
    }
    by_spdk(guest, "vfio-pci");
    // Claimed, driven and given back together.
    let claimed = guest.json("claim")["devices"].clone();
    let released = guest.json("release")["devices"].clone();
    for moved in [&claimed, &released] {
        let moved = moved.as_array().unwrap();
        assert!(moved.len() == 2 && moved.iter().all(|one| one["changed"] == true));
    }
    let both = guest.step("both");
    assert_eq!(
        (both.backend.name.as_str(), both.devices.len()),
        ("spdk", 2)
    );
    assert_eq!(both.depth.in_flight_mean.round(), 8.0);
    assert_eq!(
        guest.json("release-nothing")["devices"],
        serde_json::json!([])
    );
    assert_eq!(guest.text("one.driver").trim(), "nvme");
    assert_eq!(guest.text("two.driver").trim(), "nvme");
}

#[test]
fn what_is_larger_than_a_command_is_split_and_the_parts_are_counted() {
    let Some(guest) = guest("mdts3") else { return };
    by_spdk(guest, "vfio-pci");
    for (name, who) in [
        ("split", "the driver splits"),
        ("kernel", "the kernel splits"),
    ] {
        let record = guest.record(name);
        let note = record.warnings.iter().find(|note| note.kind == "io-split");
        let text = &note.unwrap_or_else(|| panic!("{name}: not noted")).text;
        let wanted = format!("(32 KiB): {who} each as 32 commands");
        assert!(text.contains(&wanted), "{name}: {text}");
        assert_eq!(record.steps[0].read.as_ref().unwrap().ios_count, 8);
    }
    let whole = guest.record("whole");
    assert!(whole.warnings.iter().all(|note| note.kind != "io-split"));
}

#[test]
fn many_disks_are_listed_and_run_in_bounded_time() {
    let Some(guest) = guest("many-disks") else {
        return;
    };
    assert_eq!(
        guest.json("devices")["devices"].as_array().unwrap().len(),
        64
    );
    let listed_ms = guest.number("devices.ms");
    // Of the best of ten: a busy host lets the emulator stand still in each.
    assert!(listed_ms < 20_000, "{listed_ms} ms for the list");
    if listed_ms >= 2000 {
        skipped("this machine is too busy to list 64 emulated disks within 2 s");
    }
    let step = guest.step("sixteen");
    assert_eq!(step.depth.in_flight_mean.round(), 32.0);
    let ran_ms = guest.number("sixteen.ms");
    told(&format!(
        "64 disks listed in {listed_ms} ms, 1 s on 16 of them took {ran_ms} ms"
    ));
    // Emulated: each of the sixteen is opened and looked at, one after the other.
    assert!(ran_ms < 60_000, "{ran_ms} ms for a run of 1 s");
}
