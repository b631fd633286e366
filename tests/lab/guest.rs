//! Real controllers, holders and removals, in the emulated machine of `scripts/lab`: one boot, whose results
//! every test here reads. What runs there is `guest.sh`.

use crate::emulated::{Boot, Guest, boot};
use crate::links;
use crate::skipped::skipped;

const PARTS: [&str; 7] = ["devices", "delay", "sg", "lvm", "md", "crypt", "poll"];

static GUEST: Boot<Guest> = Boot::new();

/// What came of the one boot; nothing, with the reason told, where there can be none.
#[track_caller]
pub fn guest() -> Option<&'static Guest> {
    let lanemark = env!("CARGO_BIN_EXE_lanemark");
    GUEST.get(|| boot("default", &["tests/lab/guest.sh", lanemark], &PARTS))
}

/// Serial number, model, size in bytes, logical block, PCI function, driver.
const EXPECTED: [(&str, &str, u64, u32, &str, &str); 8] = [
    (
        "LABNVME0001",
        "QEMU NVMe Ctrl",
        1_u64 << 30,
        512,
        "0000:01:00.0",
        "nvme",
    ),
    (
        "LABNVME0001",
        "QEMU NVMe Ctrl",
        512 << 20,
        4096,
        "0000:01:00.0",
        "nvme",
    ),
    (
        "LABNVME0002",
        "QEMU NVMe Ctrl",
        516_222 * 512,
        512,
        "0000:04:00.0",
        "nvme",
    ),
    (
        "LABSATA0001",
        "LABSATA-DISK",
        320 << 20,
        512,
        "0000:00:1f.2",
        "sd",
    ),
    (
        "LABRAID0001",
        "LABRAID VOLUME",
        192 << 20,
        512,
        "0000:00:07.0",
        "sd",
    ),
    (
        "LABSAS0001",
        "LABDISK SAS-A",
        256 << 20,
        512,
        "0000:00:06.0",
        "sd",
    ),
    (
        "LABSAS0002",
        "LABDISK SAS-B",
        384 << 20,
        512,
        "0000:00:06.0",
        "sd",
    ),
    (
        "LABVIRTIO0001",
        "",
        128 << 20,
        512,
        "0000:00:08.0",
        "virtio_blk",
    ),
];

#[test]
fn every_device_of_the_lab_is_listed() {
    let Some(guest) = guest() else { return };
    assert_eq!(guest.number("devices.code"), 0);
    let list: serde_json::Value = serde_json::from_str(&guest.text("devices.out")).unwrap();
    assert_eq!(list["problems"], serde_json::json!([]));
    let devices = list["devices"].as_array().unwrap();
    for (serial, model, size_bytes, block_bytes, pci, driver) in EXPECTED {
        let matching = devices
            .iter()
            .find(|device| device["serial"] == serial && device["size_bytes"] == size_bytes);
        let device = matching.unwrap_or_else(|| panic!("{serial} is not listed"));
        assert_eq!(device["model"].as_str().unwrap_or_default(), model);
        assert_eq!(device["logical_block_bytes"], block_bytes, "{serial}");
        assert_eq!(
            (&device["pci"], &device["driver"]),
            (&pci.into(), &driver.into())
        );
        assert_eq!(device["in_use"], serde_json::json!([]), "{serial}");
    }
    let debug = devices
        .iter()
        .find(|device| device["model"] == "Linux scsi_debug")
        .unwrap();
    assert_eq!(
        (&debug["logical_block_bytes"], &debug["pci"]),
        (&4096.into(), &serde_json::Value::Null)
    );
    assert_eq!(devices.len(), EXPECTED.len() + 1, "{devices:#?}");
    let captured = guest.text("captured.tree");
    assert!(captured.contains("/config= ") && !captured.contains("LABSAS0001"));
    // IDENTIFY data of SATA, in words: `LABS ATA0`.
    assert!(
        !captured.contains("4c41 4253 4154 4130"),
        "a serial number in hex"
    );
    for (serial, transport, link) in [
        ("LABNVME0001", "nvme", Some("pcie 2.5 GT/s 1")),
        ("LABNVME0002", "nvme", Some("pcie 2.5 GT/s 1")),
        ("LABSATA0001", "sata", Some("sata 1.5 Gbit/s 1")),
        ("LABRAID0001", "raid", None),
        ("LABSAS0001", "sas", Some("sas 3 Gbit/s 1")),
        ("LABSAS0002", "sas", Some("sas 3 Gbit/s 1")),
        ("LABVIRTIO0001", "virtio", None),
    ] {
        let device = devices.iter().find(|device| device["serial"] == serial);
        let device = device.unwrap();
        assert_eq!(device["transport"], transport, "{serial}");
        let near = device["links"].get(0).map(|link| {
            let text = |name: &str| link[name].as_str().unwrap_or("?").to_owned();
            format!("{} {} {}", text("kind"), text("speed"), link["width_count"])
        });
        assert_eq!(near.as_deref(), link, "{serial}");
        let formats = device["formats"].as_array();
        assert_eq!(
            formats.is_some(),
            transport == "nvme",
            "{serial}: {formats:?}"
        );
        let own = device["logical_block_bytes"].as_u64();
        let in_use = formats.and_then(|all| all.iter().find(|one| one["in_use"] == true));
        assert!(
            in_use.is_none_or(|one| one["block_bytes"].as_u64() == own),
            "{serial}: {formats:?}"
        );
        assert_eq!(
            in_use.is_some(),
            transport == "nvme",
            "{serial}: {formats:?}"
        );
    }
    let one = guest.text("devices-one.out");
    let hops = [
        "0000:03:00.0 to 0000:04:00.0",
        "0000:00:05.0 to 0000:02:00.0",
        "8 bytes beside each block",
    ];
    assert!(hops.iter().all(|hop| one.contains(hop)), "{one}");
    assert_eq!(guest.number("devices-table.code"), 0);
}

/// Speed, width, payload and read request of every function from the drive to its root port.
#[test]
fn every_hop_of_the_lab_is_what_lspci_says() {
    let Some(guest) = guest() else { return };
    if guest.number("lspci.code") != 0 {
        skipped("no lspci: install pciutils");
        return;
    }
    let functions = [
        "0000:01:00.0",
        "0000:04:00.0",
        "0000:00:07.0",
        "0000:00:06.0",
    ];
    let compared_count = links::compare(
        &guest.text("captured.tree"),
        &guest.text("lspci.out"),
        &functions,
    );
    assert_eq!(compared_count, 2 + 4 + 1, "the SAS HBA is conventional PCI");
}

/// The delay that null_blk adds is known. The best median of five each: the emulator's unrest only adds.
#[test]
fn a_millisecond_more_of_null_blk_is_a_millisecond_more() {
    let Some(guest) = guest() else { return };
    let p50_ns = |delay: u32| {
        let one = |round| {
            let step = guest.step(&format!("delay-{delay}-{round}"));
            assert!(
                step.backend
                    .features
                    .iter()
                    .any(|line| line.starts_with("polled: no"))
            );
            step.read.unwrap().latency_ns.p50
        };
        (1..=5).map(one).min().unwrap()
    };
    let (short_ns, long_ns) = (p50_ns(1), p50_ns(2));
    assert!(short_ns >= 1_000_000, "{short_ns}");
    let added_ns = long_ns.saturating_sub(short_ns);
    let told = format!("{added_ns} ns more: {short_ns} to {long_ns}");
    // A delay that is not taken, or taken twice, lies far outside whatever the emulator does.
    assert!((850_000..=1_150_000).contains(&added_ns), "{told}");
    if !(950_000..=1_050_000).contains(&added_ns) {
        // Emulator and guest want two cores to themselves, and cores that sleep must wake in time.
        skipped(&format!(
            "the emulator wakes late, or other work took its cores: {told}"
        ));
    }
}

#[test]
fn queues_that_poll_are_polled_and_the_record_says_so() {
    let Some(guest) = guest() else { return };
    for name in ["poll-null", "poll-null-write", "poll-nvme", "poll-nvme-4kn"] {
        let features = guest.step(name).backend.features;
        assert!(
            features.contains(&"polled: yes".to_owned()),
            "{name}: {features:?}"
        );
    }
    let plain = guest.step("poll-none");
    let why = "polled: no, the queue has no poll support".to_owned();
    assert!(
        plain.backend.features.contains(&why),
        "{:?}",
        plain.backend.features
    );
    // The controller's own word for it: completions that nobody polls for raise interrupts.
    assert!(
        guest.number("poll-none.interrupts") * 20 > i64::try_from(plain.completed_count).unwrap()
    );
    // The 256 samples for never-written data come before, and are not polled for.
    let polled = guest.step("poll-nvme");
    let most = 256 + i64::try_from(polled.completed_count).unwrap() / 20;
    assert!(polled.completed_count > 100);
    assert!(guest.number("poll-nvme.interrupts") <= most);
}

#[test]
fn what_lvm_md_and_dm_crypt_hold_is_refused_by_name_and_left_alone() {
    let Some(guest) = guest() else { return };
    let lvm = "LVM labgroup/labvolume";
    guest.refused("lvm-active", &["held by dm-", lvm, "lvm"]);
    guest.refused("lvm-active-overwrite", &["held by dm-", lvm]);
    guest.refused("lvm-swap", &["swap in use"]);
    guest.refused("lvm-idle", &["LVM physical volume"]);
    guest.refused("lvm-idle-other", &["LVM physical volume"]);
    guest.refused("md-first", &["held by md127", "raid1"]);
    guest.refused("md-second-overwrite", &["held by md127"]);
    guest.refused("md-mounted", &["mounted at /mnt", "md127"]);
    guest.refused("md-stopped", &["md RAID member"]);
    guest.refused("md-part-disk", &["held by md127"]);
    guest.refused("md-part-other", &["held by md127"]);
    guest.refused("crypt-open", &["held by dm-", "dm-crypt labcrypt"]);
    guest.refused("crypt-open-overwrite", &["dm-crypt labcrypt"]);
    guest.refused("crypt-closed", &["LUKS2"]);
    assert_eq!(guest.found("written"), None);
    for name in [
        "lvm-read",
        "lvm-volume-free",
        "lvm-idle-named",
        "md-free",
        "crypt-inside",
    ] {
        guest.step(name);
    }
}
