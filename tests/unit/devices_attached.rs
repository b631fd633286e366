//! `devices`: transports, links, drivers, whether SPDK could.

use crate::guard_tree::{Tree, fixture};
use lanemark::cli::devices::{DevicesError, devices};
use lanemark::cli::listing::ListFormat;
use lanemark::session::scan::{DeviceEntry, FormatEntry, SpdkEntry, SpdkState, scan_with};
use std::collections::HashMap;

/// As a program with SPDK sees it, whatever this one was built with.
fn listed(tree: &Tree) -> Vec<DeviceEntry> {
    scan_with(&tree.sysfs(), None, &|_| HashMap::new())
        .unwrap()
        .devices
}

fn entry(tree: &Tree, name: &str) -> DeviceEntry {
    let mut all = listed(tree).into_iter();
    all.find(|device| device.name == name).unwrap()
}

fn spdk(tree: &Tree, name: &str) -> SpdkEntry {
    entry(tree, name).spdk.unwrap()
}

fn links(device: &DeviceEntry) -> Vec<String> {
    let told = |text: Option<String>| text.unwrap_or_else(|| "?".to_owned());
    let link = device.links.iter();
    link.map(|link| {
        format!(
            "{} {}: {} of {}",
            link.kind,
            link.at,
            told(link.now()),
            told(link.at_most())
        )
    })
    .collect()
}

#[test]
fn the_lab_shows_transport_links_and_drivers_of_every_device() {
    let tree = fixture("lab-default.tree");
    let near = "pcie 0000:00:04.0 to 0000:01:00.0: 2.5 GT/s x1 of 2.5 GT/s x1";
    for (name, transport, driver, version, expect) in [
        ("nvme0n1", "nvme", "nvme", Some("1.0"), vec![near]),
        ("nvme0n2", "nvme", "nvme", Some("1.0"), vec![near]),
        (
            "nvme1n1",
            "nvme",
            "nvme",
            Some("1.0"),
            vec![
                "pcie 0000:03:00.0 to 0000:04:00.0: 2.5 GT/s x1 of 2.5 GT/s x1",
                "pcie 0000:00:05.0 to 0000:02:00.0: 2.5 GT/s x1 of 2.5 GT/s x1",
            ],
        ),
        (
            "sda",
            "sata",
            "ahci",
            Some("3.0"),
            vec!["sata ata1: 1.5 Gbit/s of 1.5 Gbit/s"],
        ),
        (
            "sdb",
            "raid",
            "megaraid_sas",
            Some("07.727.03.00-rc1"),
            vec![],
        ),
        (
            "sdc",
            "sas",
            "mptsas",
            Some("3.04.20"),
            vec!["sas port-7:0: 3 Gbit/s of 3 Gbit/s"],
        ),
        ("sde", "scsi", "scsi_debug", None, vec![]),
        ("vda", "virtio", "virtio-pci", None, vec![]),
    ] {
        let device = entry(&tree, name);
        assert_eq!(device.transport.as_deref(), Some(transport), "{name}");
        assert_eq!(links(&device), expect, "{name}");
        let controller = &device.controllers[0];
        assert_eq!(controller.driver.as_deref(), Some(driver), "{name}");
        if name != "vda" {
            assert_eq!(controller.driver_version.as_deref(), version, "{name}");
        }
    }
    let metadata = entry(&tree, "nvme1n1");
    assert_eq!(
        (metadata.metadata_bytes, metadata.integrity.as_deref()),
        (Some(8), Some("nop"))
    );
    let sas = entry(&tree, "sdc");
    assert_eq!(sas.controllers[0].board.as_deref(), Some("QEMU MPT Fusion"));
    assert_eq!(sas.controllers[0].commands_count, Some(118));
    assert_eq!(listed(&tree).len(), 9, "no function is listed twice");
}

#[test]
fn devices_without_a_kernel_node_are_listed_and_spdk_is_judged() {
    let tree = fixture("nvme-claimed.tree");
    let names: Vec<String> = listed(&tree)
        .into_iter()
        .map(|device| device.name)
        .collect();
    assert_eq!(
        names,
        [
            "nvme0n1",
            "nvme1n1",
            "0000:01:00.0",
            "0000:02:00.0",
            "0000:05:00.0"
        ]
    );
    let bound = entry(&tree, "0000:01:00.0");
    assert_eq!(bound.other_paths, ["trtype:PCIe traddr:0000:01:00.0"]);
    assert_eq!((bound.in_use, bound.size_bytes), (None, None));
    assert_eq!(bound.controllers[0].pci_id.as_deref(), Some("144d:a824"));
    assert_eq!(bound.controllers[0].iommu_group, Some(11));
    for (name, state, why, next) in [
        (
            "0000:01:00.0",
            SpdkState::Ready,
            "on vfio-pci",
            "run --device 0000:01:00.0",
        ),
        (
            "0000:02:00.0",
            SpdkState::Claimable,
            "no driver",
            "lanemark claim 0000:02:00.0",
        ),
        (
            "nvme0n1",
            SpdkState::Claimable,
            "kernel's nvme driver",
            "lanemark claim 0000:03:00.0",
        ),
        (
            "nvme1n1",
            SpdkState::No,
            "shared with 0000:04:00.1 (igb)",
            "unbind",
        ),
        (
            "0000:05:00.0",
            SpdkState::Ready,
            "on uio_pci_generic",
            "run --device",
        ),
    ] {
        let judged = spdk(&tree, name);
        assert_eq!(judged.state, state, "{name}: {judged:?}");
        assert!(judged.why.contains(why), "{name}: {judged:?}");
        assert!(judged.next_step.contains(next), "{name}: {judged:?}");
    }
    assert_eq!(entry(&tree, "nvme1n1").numa_node, Some(1));
}

#[test]
fn what_keeps_spdk_away_is_named_with_what_would_help() {
    let tree = fixture("nvme-claimed.tree");
    tree.file(
        "sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages",
        "0\n",
    );
    let judged = spdk(&tree, "0000:01:00.0");
    assert_eq!(judged.state, SpdkState::No);
    assert!(judged.next_step.contains("vm.nr_hugepages"), "{judged:?}");
    assert!(
        spdk(&tree, "nvme0n1")
            .next_step
            .ends_with("--hugepages 512M")
    );
    tree.remove("sys/bus/pci/drivers/vfio-pci");
    assert!(
        spdk(&tree, "nvme0n1")
            .next_step
            .starts_with("modprobe vfio-pci")
    );
    tree.remove("sys/devices/pci0000:00/0000:00:03.0/0000:03:00.0/iommu_group");
    assert!(spdk(&tree, "nvme0n1").why.contains("no IOMMU"));
    let without = scan_with(&tree.sysfs(), Some("install it"), &|_| HashMap::new()).unwrap();
    let judged = without.devices[0].spdk.clone().unwrap();
    assert_eq!(
        (judged.state, judged.why.as_str(), judged.next_step.as_str()),
        (SpdkState::No, "built without SPDK", "install it")
    );
    let mut lab = fixture("lab-default.tree");
    lab.mount("259:2", "/data", "ext4", "/dev/nvme0n2");
    for name in ["nvme0n1", "nvme0n2"] {
        let judged = spdk(&lab, name);
        assert_eq!(judged.state, SpdkState::No, "{name}");
        assert!(
            judged.why.contains("in use: mounted at /data"),
            "{name}: {judged:?}"
        );
    }
    assert_eq!(spdk(&lab, "nvme1n1").state, SpdkState::Claimable);
    for (name, why) in [
        ("sda", "SATA: no SPDK driver"),
        ("sdb", "RAID: no SPDK driver"),
        ("sdc", "SAS: no SPDK driver"),
        ("vda", "virtio: not NVMe"),
    ] {
        assert_eq!(spdk(&lab, name).why, why);
    }
    assert!(
        spdk(&fixture("vmd.tree"), "nvme0n1")
            .why
            .contains("behind Intel VMD 0000:00:0e.0")
    );
    let multipath = spdk(&fixture("nvme-multipath.tree"), "nvme0n1");
    assert!(
        multipath.why.contains("several controllers"),
        "{multipath:?}"
    );
    let gone = spdk(&fixture("garbled-links.tree"), "nvme4n1");
    assert!(gone.why.contains("PCI class"), "{gone:?}");
}

#[test]
fn a_block_device_of_a_vendors_driver_is_said_to_be_no_nvme() {
    let tree = Tree::new();
    tree.disk_at(
        "pci0000:00/0000:00:02.0/0000:05:00.0/block",
        "fioa",
        "252:0",
    );
    let function = "sys/devices/pci0000:00/0000:00:02.0/0000:05:00.0";
    tree.link(
        "sys/bus/pci/devices/0000:05:00.0",
        &format!("../../../../{function}"),
    );
    tree.file(&format!("{function}/class"), "0x018000\n");
    tree.link(
        &format!("{function}/driver"),
        "../../../../bus/pci/drivers/iodrive",
    );
    tree.link(
        &format!("{function}/block/fioa/device"),
        "../../../0000:05:00.0",
    );
    let device = entry(&tree, "fioa");
    assert_eq!(
        (device.transport.as_deref(), device.pci.as_deref()),
        (Some("pcie"), Some("0000:05:00.0"))
    );
    assert_eq!(device.spdk.unwrap().why, "not NVMe: vendor driver iodrive");
}

#[test]
fn degraded_links_stand_in_the_table_and_in_the_details() {
    let hop = fixture("nvme-downgraded-hop.tree");
    let table = devices(&hop.sysfs(), ListFormat::Text, None).unwrap();
    assert!(
        table.contains("8 GT/s x2") && table.contains("DEGRADED from 16 GT/s x4"),
        "{table}"
    );
    assert_eq!(table.matches("DEGRADED").count(), 1, "{table}");
    let slot = fixture("nvme-x16-at-x4.tree");
    let table = devices(&slot.sysfs(), ListFormat::Text, None).unwrap();
    assert_eq!(
        table
            .matches("DEGRADED above: 16 GT/s x4 of 16 GT/s x16")
            .count(),
        4,
        "{table}"
    );
    let details = devices(&slot.sysfs(), ListFormat::Text, Some("/dev/nvme2n1")).unwrap();
    assert!(
        details
            .contains("PCIe 0000:00:01.0 to 0000:01:00.0 at 16 GT/s x4 of 16 GT/s x16: DEGRADED"),
        "{details}"
    );
    let unknown = entry(&fixture("unknown-speeds.tree"), "nvme2n1");
    assert_eq!(unknown.links[0].degraded, None);
    assert!(
        unknown.links[0]
            .unknown
            .as_ref()
            .unwrap()
            .contains("Unknown")
    );
    assert!(
        unknown.problems.is_empty(),
        "the kernel not knowing is no fault"
    );
    let garbled = entry(&fixture("garbled-links.tree"), "nvme0n1");
    let problems = garbled.problems.join("\n");
    for word in ["`fast`", "`four`", "`8086`", "`first`"] {
        assert!(problems.contains(word), "{word} in {problems}");
    }
}

#[test]
fn links_of_sas_go_from_the_drive_up() {
    let tree = fixture("sas-expander.tree");
    let slow = entry(&tree, "sdg");
    assert_eq!(
        links(&slow),
        [
            "sas port-0:0:6: 6 Gbit/s of 12 Gbit/s",
            "sas port-0:0: 12 Gbit/s x4 of 12 Gbit/s x4",
            "pcie 0000:00:02.0 to 0000:01:00.0: 8 GT/s x8 of 8 GT/s x8",
        ]
    );
    assert_eq!(slow.controllers[0].board.as_deref(), Some("SAS9300-8i"));
    assert_eq!(
        slow.controllers[0].driver_version.as_deref(),
        Some("48.100.00.00")
    );
    assert_eq!(entry(&tree, "sdh").transport.as_deref(), Some("sata"));
    let tree = fixture("sata3-on-sata2.tree");
    let sata = entry(&tree, "sdb");
    assert_eq!(links(&sata), ["sata ata2: 1.5 Gbit/s of 3 Gbit/s"]);
    assert_eq!(sata.links[0].degraded, Some(true));
    // A port that does not tell what it can do.
    tree.remove("sys/devices/pci0000:00/0000:00:1f.2/ata1/host0/scsi_host/host0/ahci_host_caps");
    assert_eq!(entry(&tree, "sda").links[0].degraded, None);
}

#[test]
fn one_device_is_found_by_any_of_its_names() {
    let tree = fixture("lab-default.tree");
    tree.link("dev/disk/by-id/nvme-lab", "../../nvme1n1");
    let only = |name: &str| {
        let text = devices(&tree.sysfs(), ListFormat::Json, Some(name)).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let all = json["devices"].as_array().unwrap().clone();
        let name = |device: &serde_json::Value| device["name"].as_str().unwrap().to_owned();
        all.iter().map(name).collect::<Vec<String>>().join(" ")
    };
    for name in [
        "/dev/nvme1n1",
        "nvme1n1",
        "/dev/ng1n1",
        "0000:04:00.0",
        "04:00.0",
        "nvme1",
        "/dev/disk/by-id/nvme-lab",
    ] {
        assert_eq!(only(name), "nvme1n1", "{name}");
    }
    let serial = entry(&tree, "nvme1n1").serial.unwrap();
    assert_eq!(only(&serial), "nvme1n1");
    assert_eq!(
        only("0000:01:00.0"),
        "nvme0n1 nvme0n2",
        "every namespace of it"
    );
    assert_eq!(only("/dev/sg2"), "sdc");
    for name in ["/dev/nvme7n1", "0000:77:00.0", "", "/"] {
        let found = devices(&tree.sysfs(), ListFormat::Text, Some(name));
        assert_eq!(found, Err(DevicesError::Unknown(name.to_owned())), "{name}");
    }
    let details = devices(&tree.sysfs(), ListFormat::Text, Some("/dev/sdc")).unwrap();
    for words in [
        "also        /dev/sg2",
        "LABDISK SAS-A",
        "driver mptsas 3.04.20",
        "SAS port-7:0 at 3 Gbit/s",
    ] {
        assert!(details.contains(words), "{words} in {details}");
    }
}

#[test]
fn formats_are_asked_for_where_somebody_answers() {
    let tree = fixture("lab-default.tree");
    let format = FormatEntry {
        index: 4,
        block_bytes: 4096,
        metadata_bytes: 0,
        relative_performance: 0,
        in_use: true,
    };
    let formats = |nodes: &[String]| {
        assert_eq!(nodes, ["/dev/nvme0n1", "/dev/nvme0n2", "/dev/nvme1n1"]);
        HashMap::from([("/dev/nvme0n2".to_owned(), vec![format.clone()])])
    };
    let all = scan_with(&tree.sysfs(), None, &formats).unwrap().devices;
    let with: Vec<&str> = all
        .iter()
        .filter(|device| device.formats.is_some())
        .map(|device| device.name.as_str())
        .collect();
    assert_eq!(with, ["nvme0n2"]);
    // A controller in trouble is not asked.
    tree.file("sys/class/nvme/nvme1/state", "resetting\n");
    let asked = |nodes: &[String]| {
        assert_eq!(nodes.len(), 2);
        HashMap::new()
    };
    scan_with(&tree.sysfs(), None, &asked).unwrap();
}

#[test]
fn who_drives_a_claimed_device_is_told_where_that_can_be_seen() {
    let tree = fixture("nvme-claimed.tree");
    assert_eq!(
        entry(&tree, "0000:01:00.0").in_use,
        None,
        "no process can be seen"
    );
    tree.folder("proc/1/fd");
    assert_eq!(entry(&tree, "0000:01:00.0").in_use, Some(Vec::new()));
    tree.link("proc/77/fd/9", "/dev/vfio/11");
    assert_eq!(
        entry(&tree, "0000:01:00.0").in_use.unwrap(),
        ["driven by process 77 from user space"]
    );
    assert_eq!(entry(&tree, "0000:05:00.0").in_use, Some(Vec::new()));
}

#[test]
fn a_disk_that_has_only_its_sg_node_is_listed() {
    let tree = Tree::new();
    tree.scsi_disk("sda", "8:0", 3, "S1", "naa.5000000000000001");
    let dir = "sys/devices/pci0000:00/0000:00:1f.0/host3/target3:0:0/3:0:0:0";
    tree.file(&format!("{dir}/type"), "0\n");
    for gone in [
        &format!("{dir}/block"),
        "sys/class/block/sda",
        "sys/block/sda",
        "sys/dev/block/8:0",
    ] {
        tree.remove(gone);
    }
    let all = listed(&tree);
    assert_eq!((all.len(), all[0].path.as_str()), (1, "/dev/sg3"));
    assert_eq!(all[0].serial.as_deref(), Some("S1"));
    // An enclosure is no disk.
    tree.file(&format!("{dir}/type"), "13\n");
    assert!(listed(&tree).is_empty());
}

#[test]
fn a_namespace_over_tcp_has_a_transport_id() {
    let tree = Tree::new();
    let base = "sys/devices/virtual/nvme-fabrics/ctl/nvme3";
    for (file, text) in [
        ("transport", "tcp"),
        (
            "address",
            "traddr=192.0.2.1,trsvcid=4420,src_addr=192.0.2.2",
        ),
        ("subsysnqn", "nqn.2016-06.io.spdk:cnode1"),
    ] {
        tree.file(&format!("{base}/{file}"), &format!("{text}\n"));
    }
    tree.link(
        "sys/class/nvme/nvme3",
        "../../devices/virtual/nvme-fabrics/ctl/nvme3",
    );
    tree.disk_at("virtual/nvme-fabrics/ctl/nvme3", "nvme3n1", "259:7");
    tree.link(&format!("{base}/nvme3n1/device"), "../../nvme3");
    let device = entry(&tree, "nvme3n1");
    let id =
        "trtype:TCP adrfam:IPv4 traddr:192.0.2.1 trsvcid:4420 subnqn:nqn.2016-06.io.spdk:cnode1";
    assert_eq!(
        (device.transport.as_deref(), &device.other_paths[..]),
        (Some("nvme-tcp"), &[id.to_owned()][..])
    );
    let judged = device.spdk.unwrap();
    assert_eq!(judged.state, SpdkState::Claimable);
    assert!(judged.next_step.contains(id), "{judged:?}");
}
