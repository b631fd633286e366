//! From any node or address to the controller's PCI function and what lies between: SAS, ATA, NVMe.

use crate::guard_tree::{Tree, fixture};
use lanemark::sysfs::absent::Absent;
use lanemark::sysfs::attach::{Attachment, Ground, Transport};
use lanemark::sysfs::nvme_controller::Controller;
use lanemark::sysfs::sas::SasRate;

fn attached(tree: &Tree, name: &str) -> Attachment {
    Attachment::of(&tree.sysfs(), name).unwrap()
}

fn functions(found: &Attachment) -> Vec<String> {
    found.functions.iter().map(ToString::to_string).collect()
}

#[test]
fn every_device_of_the_captured_lab_is_attached_where_it_is() {
    let tree = fixture("lab-default.tree");
    for (name, transport, function, host) in [
        ("/dev/nvme0n1", Transport::Nvme, "0000:01:00.0", None),
        ("/dev/nvme0n2", Transport::Nvme, "0000:01:00.0", None),
        ("/dev/nvme1n1", Transport::Nvme, "0000:04:00.0", None),
        ("/dev/ng1n1", Transport::Nvme, "0000:04:00.0", None),
        ("0000:04:00.0", Transport::Nvme, "0000:04:00.0", None),
        ("04:00.0", Transport::Nvme, "0000:04:00.0", None),
        ("/dev/vda", Transport::Virtio, "0000:00:08.0", None),
        (
            "/dev/sda",
            Transport::Sata,
            "0000:00:1f.2",
            Some(("ahci", 32)),
        ),
        (
            "/dev/sg0",
            Transport::Sata,
            "0000:00:1f.2",
            Some(("ahci", 32)),
        ),
        (
            "/dev/sdb",
            Transport::Raid,
            "0000:00:07.0",
            Some(("megaraid_sas", 975)),
        ),
        (
            "/dev/sdc",
            Transport::Sas,
            "0000:00:06.0",
            Some(("mptsas", 118)),
        ),
        (
            "/dev/sdd",
            Transport::Sas,
            "0000:00:06.0",
            Some(("mptsas", 118)),
        ),
    ] {
        let found = attached(&tree, name);
        assert_eq!(found.transport, Some(transport), "{name}");
        assert_eq!(functions(&found), [function], "{name}");
        let said = found.host.as_ref().map(|host| {
            let can_queue = host.can_queue_count.clone().unwrap();
            (host.driver.as_deref().unwrap(), can_queue)
        });
        assert_eq!(said, host, "{name}");
    }
    let debug = attached(&tree, "/dev/sde");
    assert_eq!(
        (debug.transport, functions(&debug)),
        (Some(Transport::Scsi), Vec::new())
    );
    let sas = attached(&tree, "/dev/sdd");
    let host = sas.host.unwrap();
    assert_eq!(
        (host.board.as_deref(), host.firmware.as_deref()),
        (Some("QEMU MPT Fusion"), Some("01.50.146.00"))
    );
    let way = sas.sas.unwrap();
    assert_eq!((way.ports.len(), way.expanders.len()), (1, 0));
    assert_eq!(way.ports[0].phys_count, Ok(1));
    assert_eq!(way.ports[0].phys[0].rate, Ok(SasRate::G3));
    assert_eq!(way.ports[0].phys[0].errors().total_count(), Some(0));
    assert_eq!(way.end.protocols, ["ssp"]);
    let link = attached(&tree, "/dev/sda").ata.unwrap();
    assert_eq!((link.port.as_str(), link.link.as_str()), ("ata1", "link1"));
    assert_eq!(
        (link.rate, link.port_max),
        (Ok(SasRate::G1_5), Ok(SasRate::G1_5))
    );
    assert!(matches!(link.limit, Err(Absent::Unknown { .. })));
    assert_eq!(link.recent_errors_count, Ok(0), "`Unknown` stands for none");
}

#[test]
fn an_expander_has_a_wide_port_above_and_narrow_ones_below() {
    let tree = fixture("sas-expander.tree");
    let found = attached(&tree, "/dev/sda");
    assert_eq!(found.transport, Some(Transport::Sas));
    let way = found.sas.unwrap();
    let names: Vec<&str> = way.ports.iter().map(|port| port.name.as_str()).collect();
    assert_eq!(names, ["port-0:0", "port-0:0:0"]);
    let wide = &way.ports[0];
    assert_eq!((&wide.phys_count, wide.phys.len()), (&Ok(4), 4));
    assert!(wide.phys.iter().all(|phy| phy.rate == Ok(SasRate::G12)));
    assert_eq!(wide.phys[2].errors().total_count(), Some(9));
    assert_eq!(way.expanders[0].product.as_deref(), Some("SAS3x28"));
    assert_eq!((&way.end.bay, way.end.is_sata()), (&Ok(0), false));
    let slow = attached(&tree, "/dev/sdg").sas.unwrap();
    assert_eq!(slow.ports[1].phys[0].rate, Ok(SasRate::G6));
    assert_eq!(slow.ports[1].phys[0].max_rate, Ok(SasRate::G12));
    let sata = attached(&tree, "/dev/sdh");
    assert_eq!(sata.transport, Some(Transport::Sata));
    assert!(sata.sas.unwrap().end.is_sata());
    assert!(
        sata.ata.is_none(),
        "through SAS: no ATA port of the kernel's"
    );
}

#[test]
fn a_sata_link_tells_port_and_drive_apart() {
    let tree = fixture("sata3-on-sata2.tree");
    let fast = attached(&tree, "/dev/sda").ata.unwrap();
    assert_eq!(
        (fast.rate, fast.port_max, fast.drive_max),
        (Ok(SasRate::G3), Ok(SasRate::G3), Ok(SasRate::G6))
    );
    assert_eq!(
        (fast.slowed_count, fast.recent_errors_count),
        (Ok(0), Ok(0))
    );
    let slowed = attached(&tree, "/dev/sg1").ata.unwrap();
    assert_eq!(
        (&slowed.rate, &slowed.limit, &slowed.drive_max),
        (&Ok(SasRate::G1_5), &Ok(SasRate::G1_5), &Ok(SasRate::G3))
    );
    assert_eq!(
        (&slowed.slowed_count, &slowed.recent_errors_count),
        (&Ok(2), &Ok(2))
    );
    assert_eq!(slowed.rate_now(), Ok(SasRate::G1_5));
}

#[test]
fn garbled_rates_and_identify_data_are_absences() {
    let tree = fixture("sata3-on-sata2.tree");
    let ata = "sys/devices/pci0000:00/0000:00:1f.2/ata1";
    tree.file(
        &format!("{ata}/link1/ata_link/link1/sata_spd"),
        "6 parsec\n",
    );
    tree.file(
        &format!("{ata}/link1/dev1.0/ata_device/dev1.0/id"),
        "0040 zz\n",
    );
    tree.file(
        &format!("{ata}/host0/scsi_host/host0/ahci_host_caps"),
        "f\n",
    );
    let link = attached(&tree, "/dev/sda").ata.unwrap();
    for fact in [&link.rate, &link.drive_max, &link.port_max] {
        assert!(matches!(fact, Err(Absent::Unreadable(_))), "{fact:?}");
    }
    // Not a SATA drive, and no figure for it.
    let words = vec!["ffff"; 256].join(" ");
    tree.file(&format!("{ata}/link1/dev1.0/ata_device/dev1.0/id"), &words);
    let link = attached(&tree, "/dev/sda").ata.unwrap();
    assert!(matches!(link.drive_max, Err(Absent::Lacking { .. })));
    let sas = fixture("sas-expander.tree");
    let phy = "sys/class/sas_phy/phy-0:0";
    for (text, garbled) in [
        ("Phy disabled", false),
        ("Spin-up hold", false),
        ("7.0 Gbit", true),
    ] {
        sas.file(&format!("{phy}/negotiated_linkrate"), text);
        let rate = attached(&sas, "/dev/sda").sas.unwrap().ports[0].phys[0]
            .rate
            .clone();
        assert_eq!(
            matches!(rate, Err(Absent::Unreadable(_))),
            garbled,
            "{text}"
        );
        assert!(rate.is_err());
    }
}

#[test]
fn a_multipath_head_is_attached_by_every_path_and_a_path_by_its_own() {
    let tree = fixture("nvme-multipath.tree");
    let head = attached(&tree, "/dev/nvme0n1");
    assert_eq!(functions(&head), ["0000:01:00.0", "0000:02:00.0"]);
    let names: Vec<&str> = head
        .controllers
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(names, ["nvme0", "nvme1"]);
    assert_eq!(
        functions(&attached(&tree, "/dev/nvme0n1p1")),
        functions(&head)
    );
    assert_eq!(functions(&attached(&tree, "/dev/ng0n1")), functions(&head));
    let path = Controller::of_namespace(&tree.sysfs(), "nvme0c1n1").unwrap();
    assert_eq!((path.len(), path[0].name.as_str()), (1, "nvme1"));
    assert_eq!(path[0].state.as_deref(), Some("live"));
}

#[test]
fn controllers_over_fabrics_have_an_address_and_no_pci() {
    let tree = Tree::new();
    let base = "sys/devices/virtual/nvme-fabrics/ctl/nvme3";
    for (file, text) in [
        ("transport", "tcp"),
        ("address", "traddr=192.0.2.1,trsvcid=4420"),
        ("state", "live"),
        ("queue_count", "9"),
        ("sqsize", "127"),
    ] {
        tree.file(&format!("{base}/{file}"), &format!("{text}\n"));
    }
    tree.link(
        "sys/class/nvme/nvme3",
        "../../devices/virtual/nvme-fabrics/ctl/nvme3",
    );
    tree.disk_at("virtual/nvme-fabrics/ctl/nvme3", "nvme3n1", "259:7");
    tree.link(&format!("{base}/nvme3n1/device"), "../../nvme3");
    let found = attached(&tree, "/dev/nvme3n1");
    assert_eq!(found.transport, Some(Transport::NvmeTcp));
    assert_eq!(functions(&found), Vec::<String>::new());
    let controller = &found.controllers[0];
    assert!(controller.is_fabrics());
    assert_eq!(
        controller.address.as_deref(),
        Some("traddr=192.0.2.1,trsvcid=4420")
    );
    assert_eq!(
        (&controller.queues_count, &controller.queue_entries_count),
        (&Ok(9), &Ok(128))
    );
}

#[test]
fn controllers_of_old_kernels_are_found_by_their_folder() {
    let tree = fixture("old-spellings.tree");
    let found = attached(&tree, "/dev/nvme0n1");
    assert_eq!(functions(&found), ["0000:03:00.0"]);
    assert_eq!(attached(&tree, "0000:03:00.0").controllers.len(), 1);
}

#[test]
fn nothing_is_attached_to_what_has_no_device() {
    let tree = fixture("virtio-guest.tree");
    let made_of = |ground| Attachment {
        ground,
        ..Attachment::default()
    };
    assert_eq!(attached(&tree, "/dev/zram0"), made_of(Ground::Memory));
    let tree = Tree::new();
    for (name, dev, ground) in [
        ("zram1", "252:1", Ground::Memory),
        ("ram0", "1:0", Ground::Memory),
        ("nbd0", "43:0", Ground::Server),
        ("loop0", "7:0", Ground::Others),
        ("dm-0", "254:0", Ground::Others),
        ("md0", "9:0", Ground::Others),
    ] {
        tree.virtual_disk(name, dev);
        let found = attached(&tree, &format!("/dev/{name}"));
        assert_eq!(found, made_of(ground), "{name}");
    }
    assert!(
        Attachment::of(&tree.sysfs(), "/dev/nothing")
            .unwrap_err()
            .is_absent()
    );
    assert!(
        Attachment::of(&tree.sysfs(), "0000:99:00.0")
            .unwrap_err()
            .is_absent()
    );
}
