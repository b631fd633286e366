//! Ways of which a part shows no link, or one that is none: no verdict may rest on the rest.

use crate::guard_tree::{Tree, fixture};
use lanemark::ceiling::verdict::{Evidence, judge};
use lanemark::record::{DevicePath, Unseen, VerdictKind};
use lanemark::session::path::{Workload, ceilings, named_device};

fn one(tree: &Tree, name: &str) -> DevicePath {
    named_device(&tree.sysfs(), name).path.record
}

fn whys(path: &DevicePath) -> Vec<String> {
    let text = |unseen: &Unseen| format!("{}: {}", unseen.name, unseen.why);
    path.unseen.iter().map(text).collect()
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
        judge(&Evidence {
            read: Some(read),
            ceilings: Some(&ceilings),
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
    // Where no link is seen anyway, what hides it is said already.
    let bare = fixture("virtio-guest.tree");
    let disk = one(&bare, "/dev/vda");
    assert!(!whys(&disk).contains(&HIDDEN.to_owned()), "{disk:?}");
}
