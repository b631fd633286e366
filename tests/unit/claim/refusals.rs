//! What must not be claimed: every namespace of the controller counts, and nothing is changed.

use super::played::{NVME_A, NVME_B, Played, bdf, lab};
use crate::guard_tree::{Tree, with};
use lanemark::session::claim::{BadName, ClaimError, Claimer, State, function_of};
use lanemark::session::machine::Machine;

/// A change of the lab, the kind of obstacle that must come of it, and a word of its text.
type Case = (&'static str, fn(&mut Tree), &'static str, &'static str);

const SECOND: &str = "sys/devices/pci0000:00/0000:00:04.0/0000:01:00.0/nvme/nvme0/nvme0n2";

fn second_dev() -> String {
    let tree = lab();
    let path = tree.root().join(SECOND).join("dev");
    std::fs::read_to_string(path).unwrap().trim().to_owned()
}

fn holder(tree: &Tree, name: &str) {
    tree.virtual_disk(name, "252:9");
    tree.hold("nvme0n2", name);
}

const CASES: [Case; 17] = [
    (
        "the other namespace is mounted",
        |tree| tree.mount(&second_dev(), "/data", "ext4", "/dev/nvme0n2"),
        "mounted",
        "mounted at /data (nvme0n2",
    ),
    (
        "mounted in another mount namespace",
        |tree| tree.mount_of(77, &second_dev(), "/inside", "xfs", "/dev/nvme0n2"),
        "mounted",
        "process 77",
    ),
    (
        "mounted out of sight",
        |tree| tree.folder("sys/fs/xfs/nvme0n2"),
        "mounted",
        "out of sight",
    ),
    (
        "a partition of it is mounted",
        |tree| {
            tree.part("nvme0n2", "nvme0n2p1", "259:77", 1);
            tree.mount("259:77", "/part", "ext4", "/dev/nvme0n2p1");
        },
        "mounted",
        "nvme0n2p1",
    ),
    (
        "swap",
        |tree| tree.swap("/dev/nvme0n2", "partition"),
        "swap",
        "swap in use (nvme0n2)",
    ),
    (
        "LVM",
        |tree| tree.dm("dm-7", "252:7", "vg-lv", "LVM-x", &["nvme0n2"]),
        "holder",
        "LVM vg/lv",
    ),
    (
        "dm-crypt",
        |tree| tree.dm("dm-8", "252:8", "home", "CRYPT-x", &["nvme0n2"]),
        "holder",
        "dm-crypt home",
    ),
    ("md", |tree| holder(tree, "md7"), "holder", "held by md7"),
    (
        "bcache",
        |tree| holder(tree, "bcache0"),
        "holder",
        "held by bcache0",
    ),
    (
        "a loop device on it",
        |tree| tree.attach("loop9", "7:9", "/dev/nvme0n2"),
        "loop-backing",
        "backs loop9",
    ),
    (
        "the root file system",
        |tree| tree.mount(&second_dev(), "/", "ext4", "/dev/nvme0n2"),
        "root",
        "holds the root file system",
    ),
    (
        "open in a process",
        |tree| {
            tree.file("proc/4242/comm", "dd\n");
            tree.link("proc/4242/fd/5", "/dev/ng0n2");
        },
        "open",
        "/dev/ng0n2 is open in process 4242 (dd)",
    ),
    (
        "an imported ZFS pool, which has no holder",
        |tree| {
            tree.folder("proc/spl/kstat/zfs/tank");
            let uberblock = 0x00ba_b10c_u64.to_le_bytes();
            tree.content("nvme0n2", with(&[(128 * 1024, &uberblock)]));
        },
        "zfs-pool",
        "ZFS pool tank",
    ),
    (
        "a namespace that no list shows",
        |tree| tree.remove("sys/class/block/nvme0n2"),
        "unreadable",
        "nvme0n2",
    ),
    (
        "a namespace whose identity is garbled",
        |tree| tree.file(&format!("{SECOND}/nsid"), "two\n"),
        "unreadable",
        "nsid",
    ),
    (
        "no list of mounts",
        |tree| tree.remove("proc/self/mountinfo"),
        "unreadable",
        "mountinfo",
    ),
    (
        "a neighbour in its IOMMU group",
        |tree| {
            let device = "0000:00:1f.2";
            tree.link(
                &format!("sys/kernel/iommu_groups/10/devices/{device}"),
                &format!("../../../../devices/pci0000:00/{device}"),
            );
        },
        "iommu-group",
        "0000:00:1f.2 (ahci)",
    ),
];

fn refused(claimer: &Claimer<'_>, address: &str) -> (Vec<&'static str>, String, String) {
    match claimer.claim(&[bdf(address)], None) {
        Err(error @ ClaimError::Refused { .. }) => {
            assert_eq!(error.exit_code(), 3);
            let text = (error.to_string(), error.next_step());
            let ClaimError::Refused { obstacles, .. } = error else {
                unreachable!("matched above")
            };
            let kinds = obstacles.iter().map(|obstacle| obstacle.kind()).collect();
            (kinds, text.0, text.1)
        }
        other => panic!("{address} was not refused: {other:?}"),
    }
}

#[test]
fn what_any_namespace_is_used_for_forbids_the_claim_and_nothing_is_changed() {
    for (name, change, kind, word) in CASES {
        let mut tree = lab();
        change(&mut tree);
        let (sysfs, kernel) = (tree.sysfs(), Played::on(&tree));
        let claimer = super::claimer(&sysfs, &kernel, &tree);
        let (kinds, text, next) = refused(&claimer, NVME_A);
        assert!(kinds.contains(&kind), "{name}: {kinds:?}: {text}");
        assert!(text.contains(word), "{name}: no `{word}` in {text}");
        assert!(!next.is_empty(), "{name}: no next step");
        assert_eq!(*kernel.log.borrow(), Vec::<String>::new(), "{name}");
        assert_eq!(kernel.driver(NVME_A).as_deref(), Some("nvme"), "{name}");
        assert_eq!(State::peek(&sysfs).claims, [], "{name}");
    }
}

#[test]
fn what_the_neighbours_are_used_for_forbids_nothing() {
    let mut tree = lab();
    tree.swap("/dev/nvme1n1", "partition");
    tree.mount("8:0", "/data", "ext4", "/dev/sda");
    let (sysfs, kernel) = (tree.sysfs(), Played::on(&tree));
    let claimer = super::claimer(&sysfs, &kernel, &tree);
    claimer.claim(&[bdf(NVME_A)], None).unwrap();
    let (kinds, ..) = refused(&claimer, NVME_B);
    assert_eq!(kinds, ["swap"]);
}

#[test]
fn a_multipath_head_speaks_for_its_paths() {
    let tree = lab();
    // A third namespace, whose head is below the subsystem and whose path nvme0c0n9 is hidden.
    let base = "sys/devices/pci0000:00/0000:00:04.0/0000:01:00.0/nvme/nvme0";
    tree.disk_at("virtual/nvme-subsystem/nvme-subsys0", "nvme0n9", "259:99");
    tree.disk_at(&base["sys/devices/".len()..], "nvme0c0n9", "259:98");
    tree.remove(&format!("{base}/nvme0c0n9/dev"));
    tree.file(&format!("{base}/nvme0c0n9/hidden"), "1\n");
    tree.dm("dm-7", "252:7", "vg-lv", "LVM-x", &["nvme0n9"]);
    let (sysfs, kernel) = (tree.sysfs(), Played::on(&tree));
    let claimer = super::claimer(&sysfs, &kernel, &tree);
    let (kinds, text, _) = refused(&claimer, NVME_A);
    assert_eq!(kinds, ["holder"], "{text}");
}

#[test]
fn only_nvme_is_claimed_and_the_lists_of_spdk_are_honoured() {
    let tree = lab();
    let (sysfs, kernel) = (tree.sysfs(), Played::on(&tree));
    let claimer = super::claimer(&sysfs, &kernel, &tree);
    for (address, driver) in [("0000:00:06.0", "mptsas"), ("0000:00:1f.2", "ahci")] {
        let (kinds, text, next) = refused(&claimer, address);
        assert_eq!(kinds, ["not-nvme"]);
        assert!(text.contains(driver) && next.contains("io_uring"), "{text}");
    }
    let (kinds, ..) = refused(&claimer, "0000:00:04.0");
    assert!(kinds.contains(&"not-nvme"), "a root port");
    let with_lists = |allowed: Option<&str>, blocked: Option<&str>| {
        let own = |text: Option<&str>| text.map(str::to_owned);
        Claimer::played(&sysfs, &kernel, &tree, own(allowed), own(blocked))
            .plan(&[bdf(NVME_A)], false)
            .map(|claims| claims.len())
            .map_err(|error| error.to_string())
    };
    let blocked = with_lists(None, Some("0000:04:00.0 01:00.0"));
    assert!(blocked.unwrap_err().contains("PCI_BLOCKED names it"));
    let both = with_lists(Some(NVME_A), Some(NVME_A));
    assert!(both.unwrap_err().contains("PCI_BLOCKED"));
    for list in ["0000:04:00.0", "none"] {
        let not_allowed = with_lists(Some(list), None);
        assert!(not_allowed.unwrap_err().contains("PCI_ALLOWED is set"));
    }
    assert_eq!(with_lists(Some("01:00.0"), Some(NVME_B)), Ok(1));
    assert_eq!(*kernel.log.borrow(), Vec::<String>::new());
}

#[test]
fn a_group_of_nvme_alone_is_claimed_together() {
    let tree = lab();
    tree.link(
        "sys/kernel/iommu_groups/10/devices/0000:04:00.0",
        "../../../../devices/pci0000:00/0000:00:05.0/0000:02:00.0/0000:03:00.0/0000:04:00.0",
    );
    let (sysfs, kernel) = (tree.sysfs(), Played::on(&tree));
    let claimer = super::claimer(&sysfs, &kernel, &tree);
    let (kinds, text, next) = refused(&claimer, NVME_A);
    assert_eq!(kinds, ["iommu-group"]);
    assert!(text.contains("0000:04:00.0 (nvme)"), "{text}");
    assert!(
        next.contains("claim them together, adding 0000:04:00.0"),
        "{next}"
    );
    claimer.claim(&[bdf(NVME_A), bdf(NVME_B)], None).unwrap();
    assert_eq!(kernel.driver(NVME_B).as_deref(), Some("vfio-pci"));
}

#[test]
fn a_missing_module_is_named_and_nothing_is_moved() {
    let tree = lab();
    let sysfs = tree.sysfs();
    for (have, missing) in [(vec![], "vfio_pci"), (vec!["vfio_pci"], "vfio_iommu_type1")] {
        let mut kernel = Played::on(&tree);
        kernel.modules = have;
        let claimer = super::claimer(&sysfs, &kernel, &tree);
        let (kinds, text, next) = refused(&claimer, NVME_A);
        assert_eq!(kinds, ["module"]);
        assert!(text.contains(missing), "{text}");
        assert!(next.contains(&format!("modprobe {missing}")), "{next}");
        assert_eq!(*kernel.log.borrow(), Vec::<String>::new());
        assert_eq!(State::peek(&sysfs).claims, []);
    }
}

#[test]
fn what_another_process_drives_is_neither_taken_for_a_run_nor_given_back() {
    let tree = lab();
    let (sysfs, kernel) = (tree.sysfs(), Played::on(&tree));
    let claimer = super::claimer(&sysfs, &kernel, &tree);
    claimer.claim(&[bdf(NVME_A)], None).unwrap();
    tree.link("proc/555/fd/3", "/dev/vfio/10");
    let error = claimer.claim(&[bdf(NVME_A)], Some(1)).unwrap_err();
    assert_eq!(error.exit_code(), 3);
    assert!(
        error.to_string().contains("process 555 drives it"),
        "{error}"
    );
    let error = claimer.release(Some(&[bdf(NVME_A)])).unwrap_err();
    assert!(
        error.to_string().contains("process 555 drives it"),
        "{error}"
    );
    assert_eq!(kernel.driver(NVME_A).as_deref(), Some("vfio-pci"));
    // A claim of a claimed device changes nothing, and so is nobody's harm.
    assert!(!claimer.claim(&[bdf(NVME_A)], None).unwrap()[0].changed);
    tree.remove("proc/555");
    claimer.release(None).unwrap();
    assert_eq!(kernel.driver(NVME_A).as_deref(), Some("nvme"));
}

#[test]
fn every_name_of_a_device_means_its_function() {
    let tree = lab();
    let (sysfs, kernel) = (tree.sysfs(), Played::on(&tree));
    tree.folder("dev/disk/by-id");
    tree.link("dev/disk/by-id/nvme-LAB-n2", "../../nvme0n2");
    let names = [
        "0000:01:00.0",
        "01:00.0",
        "01:00.0 ns:2",
        "trtype:PCIe traddr:0000:01:00.0",
        "/dev/nvme0n1",
        "/dev/ng0n2",
        "/dev/disk/by-id/nvme-LAB-n2",
    ];
    let claimer = super::claimer(&sysfs, &kernel, &tree);
    for round in ["on the kernel's driver", "claimed"] {
        let (machine, state) = (Machine::read(&sysfs).unwrap(), State::peek(&sysfs));
        for name in names {
            let found = function_of(&machine, &state, name);
            assert_eq!(found, Ok(bdf(NVME_A)), "{round}: {name}");
        }
        let sas = function_of(&machine, &state, "/dev/sda");
        assert!(sas.is_ok_and(|found| found != bdf(NVME_A)));
        let tcp = function_of(&machine, &state, "trtype:TCP traddr:127.0.0.1 trsvcid:4420");
        assert!(matches!(tcp, Err(BadName::NoNeed { .. })));
        claimer.claim(&[bdf(NVME_A)], None).unwrap();
    }
}
