//! One device behind several ports, controllers and nodes: what is true of one way to it is true of all.

use super::{NONE, check, consent, machine};
use crate::guard_tree::{Tree, fixture};
use lanemark::session::guard::Consent;

#[track_caller]
fn refused(tree: &Tree, target: &str, allow: &Consent, kind: &str, words: &[&str]) {
    let refusal = match check(tree, target, allow) {
        Err(refusal) => refusal,
        Ok(permit) => panic!("{target}: let through: {permit:?}"),
    };
    let found = refusal
        .findings
        .iter()
        .filter(|finding| finding.kind() == kind)
        .map(ToString::to_string)
        .find(|text| words.iter().all(|word| text.contains(word)));
    assert!(found.is_some(), "{target}: {refusal}");
}

/// Every way to the second port of a SAS disk whose first port's partition is mounted.
#[test]
fn the_second_port_of_a_mounted_disk_is_refused_by_block_and_sg_node() {
    let mut tree = machine();
    tree.scsi_disk("sdd", "8:48", 3, "SER-B", "naa.500000000000000b");
    tree.part("sdb", "sdb1", "8:17", 1);
    tree.mount("8:17", "/data", "ext4", "/dev/sdb1");
    for target in ["/dev/sdd", "/dev/sg3", "/dev/sdb", "/dev/sg1"] {
        let allow = consent(&[target], NONE);
        refused(&tree, target, &allow, "mounted", &["mounted at /data"]);
    }
}

#[test]
fn a_path_of_a_device_mapper_multipath_map_is_refused_by_its_sg_node() {
    let mut tree = machine();
    tree.scsi_disk("sdd", "8:48", 3, "SER-B", "naa.500000000000000b");
    let members = ["sdb", "sdd"];
    tree.dm(
        "dm-0",
        "252:0",
        "mpatha",
        "mpath-3500000000000000b",
        &members,
    );
    tree.mount("252:0", "/data", "xfs", "/dev/mapper/mpatha");
    for target in ["/dev/sg1", "/dev/sg3", "/dev/sdd"] {
        let allow = consent(&[target], NONE);
        refused(
            &tree,
            target,
            &allow,
            "holder",
            &["mpatha", "mounted at /data"],
        );
    }
}

/// The kernel's own multipath: one head with a generic node, two hidden paths.
#[test]
fn the_head_of_a_shared_namespace_is_refused_by_block_and_generic_node() {
    let tree = fixture("nvme-multipath.tree");
    for target in ["/dev/nvme0n1", "/dev/ng0n1"] {
        let allow = consent(&[target], NONE);
        refused(&tree, target, &allow, "mounted", &["mounted at /srv"]);
    }
}

/// Multipath switched off: each controller shows the namespace as its own, and no name tells.
#[test]
fn a_nameless_namespace_of_another_controller_is_refused_by_generic_node() {
    let mut tree = machine();
    tree.nvme(2, 1, "259:6", "SHARED", "");
    tree.nvme(3, 1, "259:7", "SHARED", "");
    tree.mount("259:6", "/data", "ext4", "/dev/nvme2n1");
    let allow = consent(&["/dev/ng3n1"], NONE);
    let words = ["mounted at /data", "nvme2n1, the same device"];
    refused(&tree, "/dev/ng3n1", &allow, "mounted", &words);
}

#[test]
fn a_serial_that_several_namespaces_share_names_none_of_them() {
    let mut tree = machine();
    tree.nvme(2, 1, "259:6", "SHARED", "");
    tree.nvme(2, 2, "259:7", "SHARED", "");
    for target in ["/dev/nvme2n1", "/dev/ng2n2"] {
        let allow = consent(&["SHARED"], NONE);
        let words = ["not unique", "/dev/nvme2n1", "/dev/nvme2n2"];
        refused(&tree, target, &allow, "serial-not-unique", &words);
    }
    // A path names one, and what is done with the other is nothing to it.
    tree.mount("259:7", "/data", "ext4", "/dev/nvme2n2");
    let allow = consent(&["/dev/nvme2n1"], NONE);
    for target in ["/dev/nvme2n1", "/dev/ng2n1"] {
        let answer = check(&tree, target, &allow);
        assert!(answer.is_ok(), "{target}: {}", answer.unwrap_err());
    }
    refused(
        &tree,
        "/dev/ng2n2",
        &allow,
        "mounted",
        &["mounted at /data"],
    );
}

#[test]
fn what_is_written_past_its_block_node_has_that_held_and_no_part() {
    let tree = machine();
    tree.part("nvme0n1", "nvme0n1p1", "259:9", 1);
    let permit = check(&tree, "/dev/ng0n1", &consent(&["/dev/ng0n1"], NONE)).unwrap();
    let held: Vec<_> = permit
        .block_nodes()
        .iter()
        .map(|p| p.display().to_string())
        .collect();
    assert_eq!(held, ["/dev/nvme0n1"]);
}
