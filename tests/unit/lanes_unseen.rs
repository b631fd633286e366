//! Ways of which a part shows no link, or one that is none: no verdict may rest on the rest.

use crate::guard_tree::{Tree, fixture};
use lanemark::ceiling::evidence::Evidence;
use lanemark::ceiling::verdict::judge;
use lanemark::record::{DevicePath, PathFindingKind, Unseen, VerdictKind};
use lanemark::session::path::{Moved, Workload, all_devices, ceilings, loads, named_device};

fn one(tree: &Tree, name: &str) -> DevicePath {
    named_device(&tree.sysfs(), name).path.record
}

fn whys(path: &DevicePath) -> Vec<String> {
    let text = |unseen: &Unseen| format!("{}: {}", unseen.name, unseen.why);
    path.unseen.iter().map(text).collect()
}

/// One function of a chain: address, vendor and device ID, class, Device/Port Type (none: conventional PCI).
type Link<'a> = (&'a str, u16, u16, u32, Option<u16>);

const BRIDGE: u32 = 0x06_0400;
const NVME: u32 = 0x01_0802;
const ROOT_PORT: Option<u16> = Some(4);
const ENDPOINT: Option<u16> = Some(0);

/// A chain of functions below a host bridge, each in the folder of the one above it. Links run at 8 GT/s x4.
fn chain(base: &str, functions: &[Link<'_>]) -> Tree {
    let tree = Tree::new();
    let mut dir = format!("sys/devices/{base}");
    for (bdf, vendor, device, class, kind) in functions {
        dir += &format!("/{bdf}");
        let file = |name: &str, text: &str| tree.file(&format!("{dir}/{name}"), text);
        file("vendor", &format!("{vendor:#06x}\n"));
        file("device", &format!("{device:#06x}\n"));
        file("class", &format!("{class:#08x}\n"));
        // A list of capabilities, where there is one, with PCI Express alone in it.
        let mut config = vec![0_u8; 256];
        config[..2].copy_from_slice(&vendor.to_le_bytes());
        if let Some(kind) = kind {
            for name in ["current_link_speed", "max_link_speed"] {
                file(name, "8.0 GT/s PCIe\n");
            }
            for name in ["current_link_width", "max_link_width"] {
                file(name, "4\n");
            }
            config[0x06] = 0x10;
            config[0x34] = 0x40;
            config[0x40] = 0x10;
            config[0x42..0x44].copy_from_slice(&(kind << 4 | 2).to_le_bytes());
        }
        tree.bytes(&format!("{dir}/config"), &config);
        tree.link(
            &format!("sys/bus/pci/devices/{bdf}"),
            &format!("../../../../{dir}"),
        );
    }
    tree
}

/// What hides on the way to the last function of a chain.
fn hidden(base: &str, functions: &[Link<'_>]) -> Vec<String> {
    let (last, ..) = functions[functions.len() - 1];
    above(last, &one(&chain(base, functions), last))
}

/// Without what is said of the function itself, which is no disk.
fn above(name: &str, path: &DevicePath) -> Vec<String> {
    let mut all = whys(path);
    all.retain(|text| !text.starts_with(name));
    all
}

/// Intel's chipsets hang on a link (DMI) that shows no speed; the processor's own ports do not.
#[test]
fn ports_of_intels_chipsets_are_known_wherever_they_are() {
    let drive = |base: &str, port: &str, id: u16, drive: &str| {
        let functions = [
            (port, 0x8086, id, BRIDGE, ROOT_PORT),
            (drive, 0x144d, 0xa80a, NVME, ENDPOINT),
        ];
        hidden(base, &functions)
    };
    let vmd = "pci0000:00/0000:00:0e.0/pci10000:e0";
    for (base, port, id, below) in [
        ("pci0000:00", "0000:00:1a.0", 0x7ac8, "0000:01:00.0"),
        ("pci0000:00", "0000:00:1b.4", 0x7a44, "0000:01:00.0"),
        ("pci0000:00", "0000:00:1d.0", 0xa330, "0000:01:00.0"),
        (vmd, "10000:e0:1d.0", 0xa0b0, "10000:e1:00.0"),
        ("pci0000:80", "0000:80:1b.4", 0x7f44, "0000:81:00.0"),
    ] {
        let text = "a port of the chipset, whose own link to the processor shows no speed";
        assert_eq!(
            drive(base, port, id, below),
            [format!("{port}: {text}")],
            "{port}"
        );
    }
    for (base, port, id, below) in [
        ("pci0000:00", "0000:00:01.0", 0x460d, "0000:01:00.0"),
        ("pci0000:00", "0000:00:06.0", 0x464d, "0000:01:00.0"),
        (vmd, "10000:e0:06.0", 0x9a09, "10000:e1:00.0"),
        ("pci0000:80", "0000:80:03.0", 0x2f08, "0000:81:00.0"),
    ] {
        assert_eq!(drive(base, port, id, below), Vec::<String>::new(), "{port}");
    }
}

/// What is inside AMD's chips shows a link that is none; ports of other makers' chipsets hide the one above them.
#[test]
fn internal_bridges_and_other_chipsets_are_known() {
    const INTERNAL: &str = "a bridge inside a chip: the link that it shows is none";
    const CHIPSET: &str = "a port of the chipset, whose own link to the processor shows no speed";
    const AHCI: u32 = 0x01_0601;
    let below = |vendor, port, (device_vendor, device, class)| {
        let functions = [
            ("0000:00:08.2", vendor, port, BRIDGE, ROOT_PORT),
            ("0000:05:00.0", device_vendor, device, class, ENDPOINT),
        ];
        hidden("pci0000:00", &functions)
    };
    let fch = (0x1022, 0x7901, AHCI);
    let drive = (0x144d, 0xa80a, NVME);
    for (vendor, port, device, why) in [
        (0x1022, 0x1484, fch, INTERNAL),
        (0x1022, 0x14dd, drive, INTERNAL),
        (0x1d94, 0x1454, (0x1d94, 0x7901, AHCI), INTERNAL),
        // A bridge that no list has: FCH SATA is never in a slot.
        (0x1022, 0x1fff, fch, INTERNAL),
        (0x1022, 0x43a1, drive, CHIPSET),
        (0x1002, 0x43a0, drive, CHIPSET),
        (0x1106, 0xa410, drive, CHIPSET),
    ] {
        let found = below(vendor, port, device);
        assert_eq!(found, [format!("0000:00:08.2: {why}")], "{port:04x}");
    }
    // Slots of the processor, and the chipset's SATA whose link to the processor is shown.
    for (port, device) in [
        (0x1483, drive),
        (0x1453, drive),
        (0x1483, (0x1022, 0x43eb, AHCI)),
    ] {
        let found = below(0x1022, port, device);
        assert_eq!(found, Vec::<String>::new(), "{port:04x}");
    }
    // The X570's own SATA is below a port of its switch.
    let functions = [
        ("0000:00:01.2", 0x1022, 0x1483, BRIDGE, ROOT_PORT),
        ("0000:01:00.0", 0x1022, 0x57ad, BRIDGE, Some(5)),
        ("0000:02:0a.0", 0x1022, 0x57a4, BRIDGE, Some(6)),
        ("0000:03:00.0", 0x1022, 0x7901, AHCI, ENDPOINT),
    ];
    assert_eq!(
        hidden("pci0000:00", &functions),
        [format!("0000:02:0a.0: {INTERNAL}")]
    );
}

/// A SATA card of conventional PCI behind an ASM1083: its bus carries 133 MB/s, and nothing says so.
#[test]
fn a_conventional_bus_is_a_part_that_cannot_be_seen() {
    const BUS: &str = "a PCI bus below it, whose speed is not shown";
    let card = |bdf| (bdf, 0x1095, 0x3114, 0x01_8000, None);
    let behind_bridge = [
        ("0000:00:01.0", 0x8086, 0x460d, BRIDGE, ROOT_PORT),
        ("0000:01:00.0", 0x1b21, 0x1080, BRIDGE, Some(7)),
        card("0000:02:00.0"),
    ];
    let wanted = [format!("0000:01:00.0: {BUS}")];
    assert_eq!(hidden("pci0000:00", &behind_bridge), wanted);
    // Without root the bridge looks like a switch, which it is not.
    let tree = chain("pci0000:00", &behind_bridge);
    for (bdf, ..) in behind_bridge {
        let config = tree.sysfs().sys("bus/pci/devices").join(bdf).join("config");
        let bytes = std::fs::read(&config).unwrap();
        std::fs::write(&config, &bytes[..64]).unwrap();
    }
    let path = one(&tree, "0000:02:00.0");
    assert_eq!(above("0000:02:00.0", &path), wanted);
    assert_eq!(path.hops.len(), 1);
    // On the root bus, and one bus below another.
    let on_root = [
        ("0000:00:1e.0", 0x8086, 0x244e, BRIDGE, None),
        ("0000:05:01.0", 0x104c, 0xac28, BRIDGE, None),
        card("0000:06:00.0"),
    ];
    assert_eq!(
        hidden("pci0000:00", &on_root),
        [
            format!("0000:00:1e.0: {BUS}"),
            format!("0000:05:01.0: {BUS}")
        ]
    );
    // A switch has a bus inside that is no link and limits nothing.
    let in_switch = [
        ("0000:00:01.0", 0x8086, 0x460d, BRIDGE, ROOT_PORT),
        ("0000:01:00.0", 0x10b5, 0x8747, BRIDGE, Some(5)),
        ("0000:02:08.0", 0x10b5, 0x8747, BRIDGE, Some(6)),
        ("0000:03:00.0", 0x144d, 0xa80a, NVME, ENDPOINT),
    ];
    assert_eq!(hidden("pci0000:00", &in_switch), Vec::<String>::new());
}

/// A Micron P420M: its driver (mtip32xx) hangs the block device on the PCI function itself, and tells no model.
#[test]
fn a_vendors_pcie_ssd_is_a_device_with_a_path() {
    let functions = [
        ("0000:00:02.0", 0x8086, 0x2f04, BRIDGE, ROOT_PORT),
        ("0000:05:00.0", 0x1344, 0x5161, 0x01_8000, ENDPOINT),
    ];
    let tree = chain("pci0000:00", &functions);
    let base = "pci0000:00/0000:00:02.0/0000:05:00.0";
    tree.disk_at(&format!("{base}/block"), "rssda", "252:0");
    let disk = format!("sys/devices/{base}/block/rssda");
    tree.file(&format!("{disk}/size"), "2734375000\n");
    tree.link(&format!("{disk}/device"), "../../../0000:05:00.0");
    let found = lanemark::method::lanes::report(&all_devices(&tree.sysfs()).unwrap());
    assert_eq!(found.devices.len(), 1, "{found:?}");
    let drive = &found.devices[0];
    assert_eq!(drive.name, "/dev/rssda");
    assert_eq!(drive.transport.as_deref(), Some("pcie"));
    assert_eq!(drive.datasheet.as_deref(), Some("Micron P420M"));
    assert_eq!(whys(&drive.path), Vec::<String>::new());
    assert_eq!(drive.path.hops.len(), 1);
    let seen = named_device(&tree.sysfs(), "/dev/rssda").path;
    assert_eq!(
        seen.hba(),
        None,
        "it is the device, not a controller in between"
    );
    // A RAID card's driver stands there too, and hides what is behind it.
    tree.link(
        "sys/bus/pci/devices/0000:05:00.0/driver",
        "../../../../bus/pci/drivers/DAC960",
    );
    let why = "behind a RAID card, which hides the ports of its drives";
    assert_eq!(
        whys(&one(&tree, "/dev/rssda")),
        [format!("/dev/rssda: {why}")]
    );
}

/// What stands on no bus says what it is.
#[test]
fn disks_without_a_bus_say_what_they_stand_on() {
    let tree = Tree::new();
    for (name, dev, why) in [
        ("zram0", "252:0", "in memory: there is no link"),
        (
            "nbd0",
            "43:0",
            "a server answers for it, whose links are not in this machine",
        ),
        ("loop0", "7:0", "no device of its own: it stands on others"),
    ] {
        tree.virtual_disk(name, dev);
        let node = format!("/dev/{name}");
        assert_eq!(whys(&one(&tree, &node)), [format!("{node}: {why}")]);
    }
}

/// A guest with an emulated root port (q35): what its link shows is the emulator's invention.
#[test]
fn links_of_a_virtual_machine_are_not_the_hosts() {
    const HIDDEN: &str = "this machine: a virtual one: the host's links are hidden";
    let tree = fixture("unknown-speeds.tree");
    assert_eq!(whys(&one(&tree, "/dev/nvme1n1")), Vec::<String>::new());
    tree.file("proc/cpuinfo", "flags\t\t: fpu tsc hypervisor\n");
    let path = one(&tree, "/dev/nvme1n1");
    assert_eq!(whys(&path), [HIDDEN]);
    // What is told of its link can still be found to be wrong.
    let seen = named_device(&tree.sysfs(), "/dev/nvme1n1").path;
    let workload = Workload {
        read_ratio: 1.0,
        block_bytes: Some(1 << 20),
        is_polled: true,
        host_iops: None,
    };
    let ceilings = ceilings(std::slice::from_ref(&seen), &workload);
    let judged = |bytes_per_s: f64, unseen: &[Unseen]| {
        let read = lanemark::ceiling::share::Measured {
            bytes_per_s,
            iops: bytes_per_s / 1_048_576.0,
        };
        let moved = Moved {
            read_bytes_per_s: bytes_per_s,
            write_bytes_per_s: 0.0,
        };
        let links = loads(std::slice::from_ref(&seen), &[moved], &workload);
        judge(&Evidence {
            devices_count: 1,
            read: Some(read),
            ceilings: Some(&ceilings),
            links: &links,
            unseen,
            plateau: Some(lanemark::ceiling::plateau::Plateau::Flat),
            host: lanemark::ceiling::host::HostEvidence::Excluded,
            ..Evidence::default()
        })
    };
    let unseen = &seen.record.unseen;
    for (bytes_per_s, bare_metal, guest) in [
        (7.1e9, VerdictKind::LinkBound, VerdictKind::Undecided),
        (1.0e9, VerdictKind::DeviceBound, VerdictKind::Undecided),
        (
            9.0e9,
            VerdictKind::LinkDataDistrusted,
            VerdictKind::LinkDataDistrusted,
        ),
    ] {
        assert_eq!(judged(bytes_per_s, &[]).kind, bare_metal);
        assert_eq!(judged(bytes_per_s, unseen).kind, guest);
    }
    // A link that is made up keeps no drive from its datasheet.
    let guest = fixture("p3700-gen2-slot.tree");
    let kinds = |tree: &Tree| -> Vec<PathFindingKind> {
        let findings = one(tree, "/dev/nvme0n1").findings;
        findings.iter().map(|finding| finding.kind).collect()
    };
    assert!(kinds(&guest).contains(&PathFindingKind::DatasheetUnreachable));
    guest.file("proc/cpuinfo", "flags\t\t: fpu tsc hypervisor\n");
    assert!(!kinds(&guest).contains(&PathFindingKind::DatasheetUnreachable));
    // Where no link is seen anyway, what hides it is said already.
    let bare = fixture("virtio-guest.tree");
    let disk = one(&bare, "/dev/vda");
    assert!(!whys(&disk).contains(&HIDDEN.to_owned()), "{disk:?}");
}
