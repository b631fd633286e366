//! `lanes` on captured and made machines: right path, narrowest hop, findings, in text and JSON.

use crate::guard_tree::{Tree, fixture};
use lanemark::cli::lanes::json;
use lanemark::method::lanes::report;
use lanemark::record::{DevicePath, LanesReport, PathFindingKind};
use lanemark::report::{Style, render_lanes};
use lanemark::session::path::{SeenPath, Workload, all_devices, named_device, narrowest_shared};

fn lanes(tree: &Tree) -> LanesReport {
    report(&all_devices(&tree.sysfs()).unwrap())
}

fn one(tree: &Tree, name: &str) -> DevicePath {
    named_device(&tree.sysfs(), name).path.record
}

/// Without the folder that the machine was unpacked in.
fn plain(tree: &Tree, text: &str) -> String {
    let root = tree.sysfs().sys("");
    let root = root
        .to_str()
        .unwrap()
        .trim_end_matches("sys/")
        .trim_end_matches('/');
    text.replace(root, "")
}

fn snapshot(name: &str) {
    let tree = fixture(&format!("{name}.tree"));
    let found = lanes(&tree);
    let style = Style {
        color: false,
        width: 2000,
    };
    insta::assert_snapshot!(
        format!("lanes_{name}"),
        plain(&tree, &render_lanes(&found, &style))
    );
    insta::assert_snapshot!(format!("lanes_{name}_json"), plain(&tree, &json(&found)));
    let back: LanesReport = serde_json::from_str(&json(&found)).unwrap();
    assert_eq!(back.devices.len(), found.devices.len(), "{name}");
}

#[test]
fn every_machine_is_shown_as_it_is() {
    for name in [
        "p3700-gen2-slot",
        "nvme-x16-at-x4",
        "nvme-downgraded-hop",
        "sas2-in-pcie1-x4",
        "sata3-on-sata2",
        "sas-expander",
        "dcp1000",
        "vmd",
        "unknown-speeds",
        "lab-default",
    ] {
        snapshot(name);
    }
}

fn kinds(path: &DevicePath) -> Vec<PathFindingKind> {
    path.findings.iter().map(|finding| finding.kind).collect()
}

fn narrowest(path: &DevicePath) -> &str {
    let index = path.narrowest_index.unwrap() as usize;
    &path.hops[index].name
}

fn gb_per_s(path: &DevicePath, index: usize) -> f64 {
    path.hops[index].read_ceiling.unwrap().high_bytes_per_s / 1e9
}

/// methods.md, 7: the slot is PCIe 2.0, and 2,800 MB/s cannot be reached in it; nothing else is wrong.
#[test]
fn the_p3700_has_exactly_its_two_findings() {
    let path = one(&fixture("p3700-gen2-slot.tree"), "/dev/nvme0n1");
    assert_eq!(
        kinds(&path),
        [
            PathFindingKind::SlowerPort,
            PathFindingKind::DatasheetUnreachable
        ]
    );
    assert!(path.unseen.is_empty(), "{:?}", path.unseen);
    assert_eq!(path.hops.len(), 1);
    let ceiling = gb_per_s(&path, 0);
    let is_known = [1.684, 1.829].iter().any(|gb| (ceiling - gb).abs() < 0.001);
    assert!(is_known, "{ceiling}");
}

#[test]
fn degraded_links_are_named_where_they_are() {
    let path = one(&fixture("nvme-x16-at-x4.tree"), "/dev/nvme0n1");
    assert_eq!(kinds(&path), [PathFindingKind::WidthDegraded]);
    assert_eq!(path.findings[0].at, "0000:00:01.0");
    assert!(path.findings[0].text.contains("x4") && path.findings[0].text.contains("x16"));
    let path = one(&fixture("nvme-downgraded-hop.tree"), "/dev/nvme0n1");
    assert_eq!(
        kinds(&path),
        [
            // A switch of 16 lanes in a slot of 8.
            PathFindingKind::NarrowerPort,
            PathFindingKind::SpeedDegraded,
            PathFindingKind::WidthDegraded
        ]
    );
    assert_eq!(narrowest(&path), "0000:02:00.0");
    assert_eq!(path.hops[1].now.as_ref().unwrap().text, "8 GT/s x2");
    assert_eq!(path.hops[1].most.as_ref().unwrap().text, "16 GT/s x4");
    assert!(
        path.findings
            .iter()
            .all(|finding| !finding.next_step.is_empty())
    );
    // The other drive behind the switch is as it should be.
    let path = one(&fixture("nvme-downgraded-hop.tree"), "/dev/nvme1n1");
    assert!(!path.findings.iter().any(|f| f.at == "0000:02:01.0"));
}

/// A port that does not tell its most, and a drive whose port a virtual machine hides: what the other end could do
/// is not known, so nothing is degraded.
#[test]
fn one_end_of_a_pcie_link_makes_no_finding() {
    let tree = fixture("nvme-downgraded-hop.tree");
    let port = "sys/bus/pci/devices/0000:02:00.0";
    tree.file(&format!("{port}/max_link_speed"), "Unknown\n");
    let path = one(&tree, "/dev/nvme0n1");
    let found = kinds(&path);
    assert!(
        !found.contains(&PathFindingKind::SpeedDegraded),
        "{found:?}"
    );
    // Both tell their lanes.
    assert!(found.contains(&PathFindingKind::WidthDegraded), "{found:?}");
    let most = &path.hops[1].most.as_ref().unwrap().text;
    assert_eq!(most, "16 GT/s x4 by one end's word");

    let tree = Tree::new();
    let dir = "sys/devices/pci0000:00/0000:00:05.0";
    for (file, text) in [
        ("class", "0x010802"),
        ("current_link_speed", "8.0 GT/s PCIe"),
        ("current_link_width", "4"),
        ("max_link_speed", "16.0 GT/s PCIe"),
        ("max_link_width", "4"),
    ] {
        tree.file(&format!("{dir}/{file}"), &format!("{text}\n"));
    }
    tree.link(
        "sys/bus/pci/devices/0000:00:05.0",
        "../../../devices/pci0000:00/0000:00:05.0",
    );
    let path = one(&tree, "0000:00:05.0");
    assert_eq!(kinds(&path), []);
    assert_eq!(path.hops[0].now.as_ref().unwrap().text, "8 GT/s x4");
    let most = &path.hops[0].most.as_ref().unwrap().text;
    assert_eq!(most, "16 GT/s x4 by one end's word");
}

#[test]
fn a_sas_hba_in_a_slow_slot_is_full_with_two_lanes() {
    let tree = fixture("sas2-in-pcie1-x4.tree");
    let found = lanes(&tree);
    assert_eq!(found.devices.len(), 8);
    for device in &found.devices {
        assert_eq!(device.path.hops.len(), 2, "{}", device.name);
        assert_eq!(narrowest(&device.path), device.path.hops[1].name);
        let dmi = device
            .path
            .unseen
            .iter()
            .any(|part| part.why.contains("chipset"));
        assert!(dmi, "the chipset's uplink hides");
    }
    assert_eq!(found.shared.len(), 1, "{:?}", found.shared);
    let shared = &found.shared[0];
    assert_eq!(
        (shared.at.as_str(), shared.devices_count),
        ("0000:00:1c.0", 8)
    );
    assert_eq!(shared.full_with_count, Some(2));
}

#[test]
fn a_wide_port_with_eight_drives_is_shared() {
    let found = lanes(&fixture("sas-expander.tree"));
    assert_eq!(found.devices.len(), 8);
    let path = &found.devices[0].path;
    let names: Vec<&str> = path.hops.iter().map(|hop| hop.name.as_str()).collect();
    assert_eq!(names, ["0000:00:02.0", "port-0:0", "port-0:0:0"]);
    assert_eq!(path.hops[1].now.as_ref().unwrap().text, "12 Gbit/s x4");
    // 4 x 12 Gbit/s x 0.8 / 8 x 1024/1060 x 2047/2048.
    assert!((gb_per_s(path, 1) - 4.635).abs() < 0.001);
    let wide = found
        .shared
        .iter()
        .find(|link| link.at == "port-0:0")
        .unwrap();
    assert_eq!((wide.devices_count, wide.full_with_count), (8, Some(4)));
}

/// Each phy of a port has the encoding of its own rate: 22.5 Gbit/s carry 2.318 GB/s, 12 carry 1.159.
#[test]
fn unlike_phys_of_a_port_are_summed() {
    let tree = fixture("sas-expander.tree");
    tree.file(
        "sys/class/sas_phy/phy-0:0/negotiated_linkrate",
        "22.5 Gbit\n",
    );
    let path = one(&tree, "/dev/sda");
    assert!((gb_per_s(&path, 1) - (2.3185 + 3.0 * 1.1587)).abs() < 0.001);
}

/// What a SAS drive could do the kernel does not tell; of an expander it tells it.
#[test]
fn a_slow_sas_link_is_degraded_only_where_both_ends_can_do_more() {
    let tree = fixture("sas-expander.tree");
    let slow = one(&tree, "/dev/sdg");
    assert_eq!(slow.hops[2].now.as_ref().unwrap().text, "6 Gbit/s x1");
    assert_eq!(kinds(&slow), []);
    for phy in 0..4 {
        tree.file(
            &format!("sys/class/sas_phy/phy-0:{phy}/negotiated_linkrate"),
            "6.0 Gbit\n",
        );
    }
    let path = one(&tree, "/dev/sda");
    assert_eq!(kinds(&path), [PathFindingKind::SpeedDegraded]);
    assert_eq!(path.findings[0].at, "port-0:0");
    assert_eq!(
        path.findings[0].text,
        "runs at 6 Gbit/s, both ends can do 12 Gbit/s"
    );
    // An expander of 6 Gbit/s, or one that does not say: nothing is known to be wrong.
    for text in ["6.0 Gbit\n", "Unknown\n"] {
        for phy in 0..8 {
            tree.file(
                &format!("sys/class/sas_phy/phy-0:0:{phy}/maximum_linkrate"),
                text,
            );
            let held = format!("sys/class/sas_phy/phy-0:0:{phy}/maximum_linkrate_hw");
            tree.file(&held, text);
        }
        assert_eq!(kinds(&one(&tree, "/dev/sda")), [], "{text}");
    }
}

#[test]
fn a_fast_disk_on_a_slow_port_is_half_as_fast() {
    let path = one(&fixture("sata3-on-sata2.tree"), "/dev/sda");
    assert_eq!(kinds(&path), [PathFindingKind::SlowerPort]);
    assert!((gb_per_s(&path, 0) - 0.297).abs() < 0.001);
    assert_eq!(path.unseen[0].name, "0000:00:1f.2", "on-chip");
    let slowed = one(&fixture("sata3-on-sata2.tree"), "/dev/sdb");
    assert_eq!(kinds(&slowed), [PathFindingKind::SpeedDegraded]);
    assert!(slowed.findings[0].text.contains("lowered it 2 times"));
}

/// A port whose speed nobody tells: whether the drive could go faster on it is not known, and is not said.
#[test]
fn one_end_of_a_sata_link_makes_no_finding() {
    let tree = fixture("sata3-on-sata2.tree");
    let host = "sys/devices/pci0000:00/0000:00:1f.2/ata1/host0/scsi_host/host0";
    tree.remove(&format!("{host}/ahci_host_caps"));
    let path = one(&tree, "/dev/sda");
    assert_eq!(kinds(&path), []);
    let most = &path.hops[0].most.as_ref().unwrap().text;
    assert_eq!(most, "6 Gbit/s by one end's word");
    // A drive that says what it can do and does it: the port can as well.
    tree.file(
        "sys/devices/pci0000:00/0000:00:1f.2/ata1/link1/ata_link/link1/sata_spd",
        "6.0 Gbps\n",
    );
    let path = one(&tree, "/dev/sda");
    assert_eq!(kinds(&path), []);
    assert_eq!(path.hops[0].most, path.hops[0].now);
}

/// Four controllers of 6,800 MB/s together behind Gen3 x8: at MPS 128 that carries 6,633.
#[test]
fn a_card_of_four_controllers_is_summed_under_its_switch() {
    let tree = fixture("dcp1000.tree");
    let found = lanes(&tree);
    assert_eq!(found.devices.len(), 4);
    for device in &found.devices {
        assert_eq!(device.datasheet.as_deref(), Some("Kingston DCP1000"));
        assert_eq!(kinds(&device.path), [PathFindingKind::DatasheetUnreachable]);
        assert_eq!(
            device.path.findings[0].at, "0000:00:02.0",
            "the card's link"
        );
        assert!((gb_per_s(&device.path, 0) - 6.633).abs() < 0.001);
    }
    let shared = &found.shared[0];
    assert_eq!((shared.devices_count, shared.full_with_count), (4, Some(2)));
}

/// What `scale` holds sums against: the narrowest hop that leads to all, for the workload at hand.
#[test]
fn the_narrowest_shared_hop_is_above_every_drive() {
    let shared = |tree: &str, block_bytes: u64| {
        let tree = fixture(tree);
        let devices = all_devices(&tree.sysfs()).unwrap();
        let paths: Vec<SeenPath> = devices.into_iter().map(|device| device.path).collect();
        let workload = Workload {
            read_ratio: 1.0,
            block_bytes: Some(block_bytes),
            is_polled: true,
            host_iops: None,
        };
        let found = narrowest_shared(&paths, &workload);
        let backwards: Vec<SeenPath> = paths.into_iter().rev().collect();
        assert_eq!(
            narrowest_shared(&backwards, &workload),
            found,
            "the order of devices matters"
        );
        found
    };
    let (at, band) = shared("sas2-in-pcie1-x4.tree", 131_072).unwrap();
    assert_eq!(at, "0000:00:1c.0");
    assert!(band.high_bytes_per_s < 1e9, "{band:?}");
    // Eight drives behind four phys of 12 Gbit/s, and those behind PCI Express: the phys are narrower. From what the
    // slowest drives let through (6 Gbit/s, SSP) to what the longest frames would (12 Gbit/s, SATA's of 8192 bytes).
    let (at, band) = shared("sas-expander.tree", 131_072).unwrap();
    assert_eq!(at, "port-0:0");
    let is_near = |found: f64, wanted: f64| (found / wanted - 1.0).abs() < 0.001;
    assert!(is_near(band.low_bytes_per_s, 2.317e9), "{band:?}");
    assert!(is_near(band.high_bytes_per_s, 4.753e9), "{band:?}");
    // NVMe commands take their part of the card's own link, the more the smaller the blocks are.
    let (at, large) = shared("dcp1000.tree", 1 << 20).unwrap();
    let (_, small) = shared("dcp1000.tree", 4096).unwrap();
    assert_eq!(at, "0000:00:02.0");
    assert!(small.high_bytes_per_s < large.high_bytes_per_s);
    assert!(large.high_bytes_per_s < 6.634e9);
    // Drives without a common hop.
    assert_eq!(shared("lab-default.tree", 4096), None);
}

#[test]
fn vmd_is_no_link_and_unknown_speeds_are_unseen() {
    let path = one(&fixture("vmd.tree"), "/dev/nvme0n1");
    assert_eq!(
        (path.hops.len(), path.hops[0].name.as_str()),
        (1, "10000:e0:06.0")
    );
    assert!(path.unseen.is_empty(), "{:?}", path.unseen);
    assert_eq!(kinds(&path), []);
    let half = one(&fixture("vmd.tree"), "/dev/nvme1n1");
    assert_eq!(kinds(&half), [PathFindingKind::WidthDegraded]);
    let tree = fixture("unknown-speeds.tree");
    let on_chip = one(&tree, "/dev/nvme0n1");
    assert!(on_chip.hops.is_empty() && !on_chip.unseen.is_empty());
    // One end knows what the other does not.
    let half_known = one(&tree, "/dev/nvme1n1");
    assert_eq!(half_known.hops[0].now.as_ref().unwrap().text, "16 GT/s x4");
    let unknown = one(&tree, "/dev/nvme2n1");
    assert_eq!(
        unknown.hops[0].now.as_ref().unwrap().text,
        "unknown speed unknown width"
    );
    assert_eq!(
        (unknown.hops[0].read_ceiling, unknown.narrowest_index),
        (None, None)
    );
    assert!(kinds(&unknown).contains(&PathFindingKind::UnknownLink));
    assert!(!unknown.unseen.is_empty());
}
