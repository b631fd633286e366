//! Claims, leases, what must not be claimed or written, and devices that go in mid-run, in a boot of their own.
//! What runs there is `claims.sh`.

use crate::emulated::Guest;
use crate::skipped::skipped;
use crate::topologies;
use lanemark::record::Outcome;

/// The boot's name among those of `topologies.rs`.
pub const NAME: &str = "claims";
/// What takes devices out comes last.
pub const PARTS: [&str; 6] = ["claim", "lease", "mounts", "holders", "others", "gone"];

#[track_caller]
fn guest() -> Option<&'static Guest> {
    topologies::guest(NAME)
}

#[test]
fn a_claimed_controller_is_run_by_spdk_and_comes_back_to_the_kernel() {
    let Some(guest) = guest() else { return };
    let dry = guest.json("claim-dry");
    assert_eq!(
        (&dry["dry_run"], &dry["devices"][0]["driver"]),
        (&true.into(), &"vfio-pci".into())
    );
    let claim = &guest.json("claim")["devices"][0];
    assert_eq!(
        (&claim["changed"], &claim["driver_before"]),
        (&true.into(), &"nvme".into())
    );
    assert!(
        claim["notes"].to_string().contains("vfio_iommu_type1"),
        "{claim:#}"
    );
    assert_eq!(guest.json("claim")["hugepages"][0]["after_count"], 150);
    assert_eq!(guest.json("claim-again")["devices"][0]["changed"], false);
    let there = guest.text("claim.dev");
    let nodes = claim["nodes"].as_array().unwrap();
    assert!(nodes.len() >= 4, "{nodes:?}");
    for node in nodes {
        let name = node.as_str().unwrap().strip_prefix("/dev/").unwrap();
        assert!(
            there.lines().all(|found| found != name),
            "{name} is still there"
        );
    }
    assert_eq!(guest.text("claims.stat"), "700 0\n600 0\n");
    for name in ["fine-run-former", "fine-run-bdf"] {
        let backend = guest.step(name).backend;
        assert_eq!(
            (backend.name.as_str(), backend.reason.as_str()),
            ("spdk", "auto: bound to vfio-pci")
        );
    }
    let release = &guest.json("release")["devices"][0];
    assert_eq!(
        (&release["changed"], &release["driver"]),
        (&true.into(), &"nvme".into())
    );
    assert_eq!(release["nodes"].as_array().unwrap().len(), 2);
    assert!(
        release["notes"].to_string().contains("150 -> 0"),
        "{release:#}"
    );
    assert_eq!(guest.json("release-again")["devices"][0]["changed"], false);
    let backend = guest.step("fine-run-kernel").backend;
    assert_eq!(backend.name, "uring");
    assert!(
        backend.reason.contains("run lanemark claim"),
        "{}",
        backend.reason
    );
}

#[test]
fn what_one_backend_writes_the_other_reads() {
    let Some(guest) = guest() else { return };
    for name in ["data-uring", "data-write"] {
        guest.step(name);
    }
    for name in ["dump-spdk", "dump-spdk-2"] {
        assert_eq!(
            guest.number(&format!("{name}.code")),
            0,
            "{}",
            guest.text(&format!("{name}.out"))
        );
    }
    let (first, second) = (
        guest.bytes("data-uring.bin"),
        guest.bytes("data-kernel-2.bin"),
    );
    assert_eq!(first.len(), 2 << 20);
    assert!(first == guest.bytes("data-spdk.bin"), "uring to SPDK");
    assert!(
        second == guest.bytes("data-spdk-2.bin"),
        "SPDK to the kernel"
    );
    assert!(
        first != second
            && first
                .chunks(4096)
                .all(|block| block.iter().any(|byte| *byte != 0))
    );
}

#[test]
fn a_second_process_is_refused_and_the_first_goes_on() {
    let Some(guest) = guest() else { return };
    assert_eq!(guest.number("second-run.code"), 2);
    let said = guest.text("second-run.err");
    assert!(said.contains("another process drives it"), "{said}");
    guest.refused("danger-second-claim", &["drives it from user space"]);
    guest.refused("danger-release-driven", &["drives it from user space"]);
    let step = &guest.record("second-first").steps[0];
    assert_eq!((step.status, step.failed_count), (Outcome::Interrupted, 0));
    assert!(step.series.iter().all(|second| second.errors_count == 0));
}

#[test]
fn a_run_that_claims_gives_back_however_it_ends() {
    let Some(guest) = guest() else { return };
    let step = guest.step("fine-lease");
    assert_eq!(
        step.backend.reason,
        "auto: claimed for this run, on vfio-pci"
    );
    for (name, code) in [("lease-bad", 2), ("lease-int", 130), ("lease-killed", 1)] {
        assert_eq!(guest.number(&format!("{name}.code")), code, "{name}");
    }
    for name in [
        "lease",
        "lease-bad",
        "lease-int",
        "lease-killed",
        "recovered",
    ] {
        assert_eq!(
            guest.text(&format!("{name}.driver")).trim(),
            "nvme",
            "{name}"
        );
    }
    assert_eq!(guest.record("lease-int").status, Outcome::Interrupted);
    assert_eq!(
        guest.text("lease-gone.driver").trim(),
        "vfio-pci",
        "all were killed"
    );
    assert_eq!(guest.json("recovered")["devices"][0]["changed"], true);
}

/// Name of a case, and words that its refusal must have.
const DANGERS: [(&str, &[&str]); 46] = [
    ("second-claim", &["drives it"]),
    ("release-driven", &["drives it"]),
    ("mount-ro", &["mounted at /mnt (ro)"]),
    ("mount", &["mounted at /mnt ("]),
    ("mount-by-other-namespace", &["mounted at /mnt"]),
    ("mount-by-generic", &["mounted at /mnt"]),
    ("mount-run", &["mounted at /mnt"]),
    ("mount-dry", &["mounted at /mnt"]),
    ("mount-write", &["mounted at /mnt"]),
    ("mount-write-address", &["mounted at /mnt"]),
    ("namespace", &["mount namespace of process"]),
    ("namespace-run", &["mount namespace of process"]),
    ("namespace-write", &["mount namespace of process"]),
    ("lazy", &["mounted out of sight"]),
    ("lazy-write", &["mounted out of sight"]),
    ("root-claim", &["holds the root file system"]),
    ("root-write", &["holds the root file system"]),
    ("claimed-signature", &["ext4"]),
    ("claimed-other-signature", &["ext4"]),
    ("claimed-no-consent", &["no consent"]),
    ("claimed-other-consent", &["another device"]),
    ("swap-claim", &["swap in use"]),
    ("swap-write", &["swap in use"]),
    ("lvm-claim", &["LVM labother/labheld"]),
    ("lvm-write", &["LVM labother/labheld"]),
    ("lvm-idle", &["LVM physical volume"]),
    ("md-claim", &["held by md126", "raid1"]),
    ("md-write", &["held by md126"]),
    ("crypt-claim", &["dm-crypt labheld"]),
    ("crypt-write", &["dm-crypt labheld"]),
    ("linear-claim", &["device mapper lablinear"]),
    ("linear-write", &["device mapper lablinear"]),
    ("loop-claim", &["backs loop"]),
    ("loop-write", &["backs loop"]),
    ("loop-mounted-claim", &["backs loop", "mounted at /mnt"]),
    ("loop-mounted-write", &["backs loop", "mounted at /mnt"]),
    ("zfs", &["ZFS pool member"]),
    ("zfs-other", &["ZFS pool member"]),
    ("open", &["is open in process", "sleep"]),
    ("open-generic", &["/dev/ng", "is open in process"]),
    ("blocked", &["PCI_BLOCKED"]),
    ("not-allowed", &["PCI_ALLOWED"]),
    ("kind-LABSAS0001", &["no NVMe controller", "mptsas"]),
    ("kind-LABRAID0001", &["no NVMe controller", "megaraid_sas"]),
    ("kind-LABSATA0001", &["no NVMe controller", "ahci"]),
    ("kind-LABVIRTIO0001", &["no NVMe controller"]),
];

/// Where the guest's kernel and the host's tools have it.
const BCACHE: [(&str, &[&str]); 3] = [
    ("bcache-claim", &["held by bcache"]),
    ("bcache-write", &["held by bcache"]),
    ("bcache-stopped", &["bcache"]),
];

#[test]
fn dangerous_claims_and_writes_are_refused_and_nothing_is_changed() {
    let Some(guest) = guest() else { return };
    let mut known: Vec<String> = vec!["danger-no-consent".to_owned()];
    let mut dangers = DANGERS.to_vec();
    match guest.found("bcache.absent") {
        Some(why) => skipped(&format!("bcache does not come in the lab: {why}")),
        None => dangers.extend(BCACHE),
    }
    for (name, words) in dangers {
        guest.refused(&format!("danger-{name}"), words);
        known.push(format!("danger-{name}"));
    }
    guest.refused("danger-no-consent", &["no consent"]);
    let mut done: Vec<String> = guest.text("dangers").lines().map(str::to_owned).collect();
    done.sort();
    known.sort();
    assert_eq!(done, known, "what was done and what is looked at");
    assert!(done.len() >= 40);
    // Hashes of both ends of the disks before and after, and the driver of each controller.
    assert_eq!(guest.found("written"), None);
}

#[test]
fn harmless_claims_and_runs_go() {
    let Some(guest) = guest() else { return };
    let names = guest.text("harmless");
    for name in names.lines() {
        let said = guest.text(&format!("{name}.err"));
        assert_eq!(guest.number(&format!("{name}.code")), 0, "{name}: {said}");
    }
    assert!(names.lines().count() >= 20, "{names}");
}

/// At once, with what was measured, and without a flood of errors.
#[track_caller]
fn gone(guest: &Guest, name: &str, most_ms: i64) {
    let said = guest.text(&format!("{name}.err"));
    assert_eq!(guest.number(&format!("{name}.code")), 1, "{name}: {said}");
    let record = guest.record(name);
    let step = &record.steps[0];
    let error = step.error.as_ref().unwrap();
    assert_eq!(
        (error.kind.as_str(), error.exit_code),
        ("gone", 1),
        "{name}: {error:?}"
    );
    assert!(
        (0.05..45.0).contains(&step.window_s),
        "{name}: {}",
        step.window_s
    );
    assert!(step.read.as_ref().unwrap().ios_count > 10, "{name}");
    // What was in flight, and what was sent before that was known.
    assert!(
        step.failed_count <= 32,
        "{name}: {} failed",
        step.failed_count
    );
    let complaints = said.lines().filter(|line| !line.starts_with('{')).count();
    assert!(complaints < 12, "{name}: a flood: {said}");
    let took_ms = guest.number(&format!("{name}.ms"));
    assert!(took_ms < most_ms, "{name}: {took_ms} ms");
}

#[test]
fn a_driver_unbound_in_mid_run_ends_it_at_once() {
    let Some(guest) = guest() else { return };
    gone(guest, "unbind-uring", 10_000);
    gone(guest, "unbind-spdk", 10_000);
    assert_ne!(
        guest.text("unbind-spdk.driver").trim(),
        "vfio-pci",
        "given back"
    );
}

#[test]
fn a_device_taken_out_in_mid_run_ends_it_at_once() {
    let Some(guest) = guest() else { return };
    // The hot-plug controller blinks its lamp for five seconds first.
    gone(guest, "unplug-uring", 20_000);
    gone(guest, "unplug-spdk", 20_000);
    let left = guest.found("unplug-spdk.claims").unwrap_or_default();
    assert!(!left.contains("\"bdf\""), "still claimed: {left}");
}
