//! Which backend `auto` takes, and the reason it gives.

use super::played::{NVME_A, Played, bdf, claimer, lab};
use lanemark::session::{settled, why_not_spdk};
use std::path::Path;

#[test]
fn an_address_leads_to_its_node_and_a_claimed_node_to_its_address() {
    let tree = lab();
    let (sysfs, kernel) = (tree.sysfs(), Played::on(&tree));
    let settle = |name: &str| settled(name, &sysfs).map_err(|error| error.to_string());
    // One namespace: its node. Several: asked for by name.
    assert_eq!(settle("04:00.0"), Ok("/dev/nvme1n1".to_owned()));
    assert_eq!(settle("0000:01:00.0 ns:2"), Ok("/dev/nvme0n2".to_owned()));
    let several = settle(NVME_A).unwrap_err();
    assert!(
        several.contains("name one of /dev/nvme0n1, /dev/nvme0n2"),
        "{several}"
    );
    let hba = settle("0000:00:06.0").unwrap_err();
    assert!(hba.contains("mptsas") && hba.contains("/dev/sd"), "{hba}");
    let port = settle("0000:00:04.0").unwrap_err();
    assert!(port.contains("no block device"), "{port}");
    assert_eq!(settle("/dev/nvme0n1"), Ok("/dev/nvme0n1".to_owned()));
    assert_eq!(settle("sim:latency=1us"), Ok("sim:latency=1us".to_owned()));
    let tcp = "trtype:TCP traddr:127.0.0.1 trsvcid:4420 subnqn:x";
    assert_eq!(settle(tcp), Ok(tcp.to_owned()));

    let claimer = claimer(&sysfs, &kernel, &tree);
    claimer.claim(&[bdf(NVME_A)], None).unwrap();
    assert_eq!(settle(NVME_A), Ok(NVME_A.to_owned()));
    assert_eq!(settle("/dev/nvme0n2"), Ok("0000:01:00.0 ns:2".to_owned()));
    assert_eq!(settle("/dev/ng0n1"), Ok("0000:01:00.0 ns:1".to_owned()));
    claimer.release(None).unwrap();
    assert_eq!(settle("/dev/nvme0n2"), Ok("/dev/nvme0n2".to_owned()));
}

#[test]
fn the_reason_says_what_stands_between_the_device_and_spdk() {
    let tree = lab();
    let sysfs = tree.sysfs();
    let why = |name: &str| why_not_spdk(Path::new(name), &[], &sysfs);
    let used = ["mounted at /data (nvme0n1, ext4)".to_owned()];
    assert_eq!(
        why_not_spdk(Path::new("/dev/nvme0n1"), &used, &sysfs),
        "in use: mounted at /data (nvme0n1, ext4)"
    );
    if lanemark::spdk::absent().is_some() {
        assert_eq!(why("/dev/nvme0n1"), "built without SPDK");
    } else {
        assert_eq!(
            why("/dev/nvme0n1"),
            "no free hugepages, and on the kernel's nvme driver: run lanemark claim 0000:01:00.0 --hugepages 512M"
        );
        let pool = "sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages";
        tree.file(pool, "256");
        assert_eq!(
            why("/dev/nvme0n1"),
            "on the kernel's nvme driver: run lanemark claim 0000:01:00.0"
        );
    }
    let mut reasons: Vec<(String, String)> = Vec::new();
    for name in ["sda", "sdb", "sdc", "sdd", "sde", "vda"] {
        let model =
            std::fs::read_to_string(tree.root().join(format!("sys/block/{name}/device/model")));
        let model = model.map_or_else(|_| name.to_owned(), |model| model.trim().to_owned());
        reasons.push((model, why(&format!("/dev/{name}"))));
    }
    let expected = [
        ("LABSATA-DISK", "SATA: no SPDK driver"),
        ("VOLUME", "not NVMe: vendor driver megaraid_sas"),
        ("SAS-A", "SAS: no SPDK driver"),
        ("SAS-B", "SAS: no SPDK driver"),
        ("scsi_debug", "SCSI: no SPDK driver"),
        ("vda", "virtio: driven by the kernel"),
    ];
    for (model, reason) in expected {
        let found = reasons.iter().find(|(found, _)| found == model);
        assert_eq!(
            found.map(|(_, why)| why.as_str()),
            Some(reason),
            "{reasons:?}"
        );
    }
    tree.virtual_disk("dm-3", "252:3");
    assert!(
        why("/dev/dm-3").contains("the kernel's own"),
        "{}",
        why("/dev/dm-3")
    );
}
