//! PCI functions and paths on captured and hand-made machines.

use crate::guard_tree::{Tree, fixture};
use crate::links;
use lanemark::sysfs::pci::{
    Absent, Aer, Bdf, Function, Hop, IommuGroup, LinkState, PciPath, PciSpeed, PortKind,
};
use lanemark::sysfs::{Sysfs, SysfsError};

fn bdf(text: &str) -> Bdf {
    Bdf::parse(text).unwrap()
}

fn path(tree: &Tree, text: &str) -> PciPath {
    PciPath::read(&tree.sysfs(), bdf(text)).unwrap()
}

fn addresses(path: &PciPath) -> Vec<String> {
    let bdf = |function: &Function| function.bdf.to_string();
    path.functions.iter().map(bdf).collect()
}

/// `upper-lower speed xwidth of speed xwidth`.
fn told(hop: &Hop) -> String {
    let or = |text: Option<String>| text.unwrap_or_else(|| "?".to_owned());
    let speed = |fact: &Result<PciSpeed, Absent>| or(fact.as_ref().ok().map(ToString::to_string));
    let width = |fact: &Result<u8, Absent>| or(fact.as_ref().ok().map(ToString::to_string));
    format!(
        "{} {}: {} x{} of {} x{}",
        or(hop.upper.map(|upper| upper.to_string())),
        hop.lower,
        speed(&hop.speed),
        width(&hop.width_count),
        speed(&hop.max_speed),
        width(&hop.max_width_count)
    )
}

fn hops(path: &PciPath) -> Vec<String> {
    path.hops().iter().map(told).collect()
}

#[test]
fn the_captured_lab_has_a_controller_on_a_root_port_and_one_behind_a_switch() {
    let tree = fixture("lab-default.tree");
    let near = path(&tree, "0000:01:00.0");
    assert_eq!(addresses(&near), ["0000:00:04.0", "0000:01:00.0"]);
    assert_eq!(near.behind, None);
    assert_eq!(
        hops(&near),
        ["0000:00:04.0 0000:01:00.0: 2.5 GT/s x1 of 2.5 GT/s x1"]
    );
    let far = path(&tree, "0000:04:00.0");
    let kinds: Vec<PortKind> = (0..4).filter_map(|index| far.kind(index)).collect();
    assert_eq!(
        kinds,
        [
            PortKind::RootPort,
            PortKind::Upstream,
            PortKind::Downstream,
            PortKind::Endpoint
        ]
    );
    // The downstream port says `Unknown` and 0 of what it could do: the drive's word is left.
    assert_eq!(
        hops(&far),
        [
            "0000:00:05.0 0000:02:00.0: 2.5 GT/s x1 of 2.5 GT/s x1",
            "0000:03:00.0 0000:04:00.0: 2.5 GT/s x1 of 2.5 GT/s x1"
        ]
    );
    let port = &far.functions[0];
    assert_eq!(port.link.max_speed, Ok(PciSpeed::Gt16));
    let express = port.express.as_ref().unwrap();
    assert_eq!(
        (
            express.max_speed,
            express.max_width_count,
            express.payload_bytes
        ),
        (Some(PciSpeed::Gt16), Some(8), Some(128))
    );
    assert_eq!(port.secondary_bus, Some(2));
    let drive = far.device().unwrap();
    assert!(drive.is_nvme() && drive.is_storage() && !drive.is_bridge());
    assert_eq!(drive.driver.as_ref().unwrap().name, "nvme");
    assert_eq!((&drive.vendor, &drive.device), (&Ok(0x1b36), &Ok(0x0010)));
    assert_eq!(drive.numa_node, Ok(None));
    assert_eq!(
        drive.express.as_ref().unwrap().read_request_bytes,
        Some(128)
    );
}

/// The ports of a path without root: the configuration space ends at 64 bytes, the order tells.
#[test]
fn without_root_the_order_of_bridges_tells_what_they_are() {
    let tree = fixture("lab-default.tree");
    let known = path(&tree, "0000:04:00.0");
    for function in &known.functions {
        let config = function.dir().join("config");
        let bytes = std::fs::read(&config).unwrap();
        std::fs::write(&config, &bytes[..64]).unwrap();
    }
    let closed = path(&tree, "0000:04:00.0");
    assert!(matches!(
        closed.functions[0].express,
        Err(Absent::Closed { len_bytes: 64, .. })
    ));
    for index in 0..4 {
        assert_eq!(closed.kind(index), known.kind(index), "{index}");
    }
    assert_eq!(hops(&closed), hops(&known));
}

#[test]
fn a_controller_on_the_root_bus_has_no_link_that_can_be_seen() {
    let tree = fixture("lab-default.tree");
    for (address, kind) in [
        ("0000:00:07.0", PortKind::RootIntegrated),
        ("0000:00:1f.2", PortKind::RootIntegrated),
    ] {
        let alone = path(&tree, address);
        assert_eq!(alone.functions.len(), 1);
        assert_eq!((alone.kind(0), hops(&alone)), (Some(kind), Vec::new()));
    }
    let conventional = &path(&tree, "0000:00:06.0").functions[0];
    assert!(matches!(conventional.express, Err(Absent::Lacking { .. })));
    assert!(matches!(
        conventional.link.speed,
        Err(Absent::NotShown { .. })
    ));
    assert_eq!(conventional.driver.as_ref().unwrap().name, "mptsas");
}

#[test]
fn groups_name_their_members_and_who_blocks_them() {
    let tree = fixture("lab-default.tree");
    let drive = Function::read(&tree.sysfs(), bdf("0000:04:00.0")).unwrap();
    let group = IommuGroup::read(&tree.sysfs(), drive.iommu_group.unwrap()).unwrap();
    assert!(
        group.members.iter().any(|member| member.bdf == drive.bdf),
        "{group:?}"
    );
    assert_eq!(group.blockers(drive.bdf).count(), 0, "{group:?}");
    let own = group
        .members
        .iter()
        .find(|member| member.bdf == drive.bdf)
        .unwrap();
    assert!(own.blocks_vfio(), "the kernel's nvme driver has it");
}

#[test]
fn a_function_that_is_not_there_is_an_error_and_a_bare_one_is_all_absences() {
    let tree = fixture("lab-default.tree");
    assert!(
        Function::read(&tree.sysfs(), bdf("0000:77:00.0"))
            .unwrap_err()
            .is_absent()
    );
    tree.folder("sys/devices/pci0000:00/0000:00:1e.0");
    tree.link(
        "sys/bus/pci/devices/0000:00:1e.0",
        "../../../devices/pci0000:00/0000:00:1e.0",
    );
    let bare = Function::read(&tree.sysfs(), bdf("0000:00:1e.0")).unwrap();
    assert!(matches!(bare.vendor, Err(Absent::NotShown { .. })));
    assert!(matches!(bare.class, Err(Absent::NotShown { .. })));
    assert!(matches!(bare.numa_node, Err(Absent::NotShown { .. })));
    assert!(matches!(bare.express, Err(Absent::NotShown { .. })));
    assert_eq!((bare.driver, bare.iommu_group), (None, None));
    for (name, text) in [
        ("vendor", "8086"),
        ("class", "0x1000000"),
        ("numa_node", "+1"),
    ] {
        tree.file(&format!("sys/devices/pci0000:00/0000:00:1e.0/{name}"), text);
    }
    let garbled = Function::read(&tree.sysfs(), bdf("0000:00:1e.0")).unwrap();
    let is_garbled =
        |absent: Absent| matches!(absent, Absent::Unreadable(SysfsError::Garbled { .. }));
    assert!(is_garbled(garbled.vendor.unwrap_err()));
    assert!(is_garbled(garbled.class.unwrap_err()));
    assert!(is_garbled(garbled.numa_node.unwrap_err()));
}

/// What `lspci -vv` said in the boot that was captured; the lab's test does the same in a boot of its own.
#[test]
fn every_hop_of_the_captured_lab_is_what_lspci_said() {
    let text = |name: &str| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/trees/");
        std::fs::read_to_string(format!("{folder}{name}")).unwrap()
    };
    let functions = [
        "0000:01:00.0",
        "0000:04:00.0",
        "0000:00:07.0",
        "0000:00:06.0",
    ];
    let compared_count = links::compare(
        &text("lab-default.tree"),
        &text("lab-default.lspci"),
        &functions,
    );
    assert_eq!(compared_count, 2 + 4 + 1);
}

/// Every function of this machine is read without error, whatever it lacks.
#[test]
fn this_machine_is_read() {
    let Ok(all) = Function::all(&Sysfs::host()) else {
        return;
    };
    for function in all {
        let path = PciPath::read(&Sysfs::host(), function.bdf).unwrap();
        assert!(path.device().is_some());
        let _ = (path.hops(), LinkState::read(function.dir()));
    }
}

/// Tree, function, what its links are; the sizes of payload and read request that its configuration says.
type MadePath = (
    &'static str,
    &'static str,
    &'static [&'static str],
    Option<(u32, u32)>,
);

const HOPS: [MadePath; 12] = [
    (
        "vmd.tree",
        "10000:e1:00.0",
        &["10000:e0:06.0 10000:e1:00.0: 16 GT/s x4 of 16 GT/s x4"],
        Some((256, 512)),
    ),
    (
        "vmd.tree",
        "10000:e2:00.0",
        &["10000:e0:06.2 10000:e2:00.0: 16 GT/s x2 of 16 GT/s x4"],
        Some((256, 512)),
    ),
    (
        "nvme-x16-at-x4.tree",
        "0000:05:00.0",
        &[
            "0000:00:01.0 0000:01:00.0: 16 GT/s x4 of 16 GT/s x16",
            "0000:02:02.0 0000:05:00.0: 16 GT/s x4 of 16 GT/s x4",
        ],
        Some((256, 512)),
    ),
    (
        "nvme-downgraded-hop.tree",
        "0000:03:00.0",
        &[
            "0000:00:03.0 0000:01:00.0: 16 GT/s x8 of 16 GT/s x8",
            "0000:02:00.0 0000:03:00.0: 8 GT/s x2 of 16 GT/s x4",
        ],
        Some((256, 512)),
    ),
    (
        "p3700-gen2-slot.tree",
        "0000:01:00.0",
        &["0000:00:03.0 0000:01:00.0: 5 GT/s x4 of 5 GT/s x4"],
        Some((128, 512)),
    ),
    ("unknown-speeds.tree", "0000:00:05.0", &[], Some((256, 512))),
    (
        "unknown-speeds.tree",
        "0000:01:00.0",
        &["0000:00:06.0 0000:01:00.0: 16 GT/s x4 of 16 GT/s x4"],
        Some((256, 512)),
    ),
    (
        "unknown-speeds.tree",
        "0000:02:00.0",
        &["0000:00:07.0 0000:02:00.0: ? x? of ? x?"],
        None,
    ),
    (
        "old-spellings.tree",
        "0000:04:00.0",
        &["0000:00:03.0 0000:04:00.0: 5 GT/s x8 of 5 GT/s x8"],
        Some((256, 512)),
    ),
    (
        "sas2-in-pcie1-x4.tree",
        "0000:02:00.0",
        &["0000:00:1c.0 0000:02:00.0: 2.5 GT/s x4 of 2.5 GT/s x4"],
        Some((128, 512)),
    ),
    (
        "dcp1000.tree",
        "0000:06:00.0",
        &[
            "0000:00:02.0 0000:01:00.0: 8 GT/s x8 of 8 GT/s x8",
            "0000:02:04.0 0000:06:00.0: 8 GT/s x4 of 8 GT/s x4",
        ],
        Some((128, 512)),
    ),
    (
        "nvme-multipath.tree",
        "0000:02:00.0",
        &["0000:00:04.0 0000:02:00.0: 8 GT/s x2 of 8 GT/s x2"],
        None,
    ),
];

#[test]
fn every_made_machine_has_its_links() {
    for (name, address, expect, sizes) in HOPS {
        let path = path(&fixture(name), address);
        assert_eq!(hops(&path), expect, "{name} {address}");
        let express = path.device().unwrap().express.as_ref().ok();
        let found = express.map(|express| {
            (
                express.payload_bytes.unwrap(),
                express.read_request_bytes.unwrap(),
            )
        });
        assert_eq!(found, sizes, "{name} {address}");
    }
    let degraded = path(&fixture("nvme-downgraded-hop.tree"), "0000:03:00.0");
    let found: Vec<Option<bool>> = degraded.hops().iter().map(Hop::is_degraded).collect();
    assert_eq!(found, [Some(false), Some(true)]);
}

#[test]
fn a_drive_behind_vmd_names_the_function_of_its_domain() {
    let tree = fixture("vmd.tree");
    let drive = path(&tree, "10000:e1:00.0");
    assert_eq!(drive.behind, Some(bdf("0000:00:0e.0")));
    assert_eq!(addresses(&drive), ["10000:e0:06.0", "10000:e1:00.0"]);
    assert_eq!(path(&tree, "0000:00:0e.0").behind, None);
    let vmd = Function::read(&tree.sysfs(), bdf("0000:00:0e.0")).unwrap();
    let driver = vmd.driver.unwrap();
    assert_eq!(
        (driver.name.as_str(), driver.version.as_deref()),
        ("vmd", Some("0.6"))
    );
}

#[test]
fn error_counters_belong_to_their_port() {
    let tree = fixture("nvme-downgraded-hop.tree");
    let read = |address| Aer::read(Function::read(&tree.sysfs(), bdf(address)).unwrap().dir());
    assert_eq!(read("0000:02:00.0").total_count(), Some(22));
    assert_eq!(read("0000:02:01.0").total_count(), Some(0));
    let old = fixture("old-spellings.tree");
    let port = Function::read(&old.sysfs(), bdf("0000:00:02.0")).unwrap();
    let names = Aer::read(port.dir()).correctable.unwrap().counters;
    assert_eq!(names[3].0, "RELAY_NUM Rollover");
}

#[test]
fn garbled_links_are_absences_with_their_reason_and_never_figures() {
    let tree = fixture("garbled-links.tree");
    let hop = |number: u32| {
        path(&tree, &format!("0000:0{number}:00.0"))
            .hops()
            .remove(0)
    };
    let garbled = hop(1);
    let is_garbled =
        |absent: &Absent| matches!(absent, Absent::Unreadable(SysfsError::Garbled { .. }));
    assert!(is_garbled(garbled.speed.as_ref().unwrap_err()));
    assert!(is_garbled(garbled.width_count.as_ref().unwrap_err()));
    assert_eq!(garbled.is_degraded(), None);
    // Nothing at the drive: the port's word for the same link is enough.
    assert_eq!(
        told(&hop(2)),
        "0000:00:02.0 0000:02:00.0: 8 GT/s x4 of 8 GT/s x4"
    );
    assert!(matches!(hop(3).width_count, Err(Absent::Disagree { .. })));
    let circle = Function::read(&tree.sysfs(), bdf("0000:04:00.0")).unwrap();
    assert!(matches!(circle.express, Err(Absent::Lacking { .. })));
    assert!(is_garbled(
        Aer::read(circle.dir()).correctable.as_ref().unwrap_err()
    ));
    let gone = Function::read(&tree.sysfs(), bdf("0000:05:00.0")).unwrap();
    assert!(matches!(gone.express, Err(Absent::Lacking { .. })));
    assert!(is_garbled(gone.link.width_count.as_ref().unwrap_err()));
    assert!(!gone.is_nvme());
}

#[test]
fn a_group_is_blocked_by_a_neighbour_on_a_driver_of_its_own() {
    let tree = fixture("nvme-claimed.tree");
    let group = |number| IommuGroup::read(&tree.sysfs(), number).unwrap();
    let shared = group(14);
    assert_eq!(shared.kind.as_deref(), Some("DMA-FQ"));
    let blockers: Vec<String> = shared
        .blockers(bdf("0000:04:00.0"))
        .map(|member| format!("{} {:?}", member.bdf, member.driver))
        .collect();
    assert_eq!(blockers, ["0000:04:00.1 Some(\"igb\")"]);
    assert!(!group(11).members[0].blocks_vfio(), "vfio-pci has it");
    assert!(!group(104).members[0].blocks_vfio(), "pcieport does no DMA");
    assert!(
        group(15).members[0].blocks_vfio(),
        "uio does not ask the group"
    );
    assert!(
        IommuGroup::read(&tree.sysfs(), 999)
            .unwrap_err()
            .is_absent()
    );
}
