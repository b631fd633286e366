//! What the guard refuses and what it lets through, on hand-made machines: no device is touched.

mod consent;
mod content;
mod files;
mod harmless;
mod identity;
mod in_use;
mod paths;

use crate::guard_tree::{Tree, with};
use lanemark::session::guard::{Consent, Guard, Intent, Permit, Refusal, in_use, parse_overwrite};
use std::path::Path;

/// A machine with a root disk `sda`, two spare SCSI disks, an NVMe drive of two namespaces and free loop
/// devices. Every case starts here and changes what it is about.
fn machine() -> Tree {
    let mut tree = Tree::new();
    tree.scsi_disk("sda", "8:0", 0, "SER-A", "naa.500000000000000a");
    tree.part("sda", "sda1", "8:1", 1);
    tree.part("sda", "sda2", "8:2", 3);
    tree.scsi_disk("sdb", "8:16", 1, "SER-B", "naa.500000000000000b");
    tree.scsi_disk("sdc", "8:32", 2, "SER-C", "naa.500000000000000c");
    tree.nvme(
        0,
        1,
        "259:0",
        "NV-0",
        "00000000-0000-0001-0000-000000000001",
    );
    tree.nvme(
        0,
        2,
        "259:1",
        "NV-0",
        "00000000-0000-0001-0000-000000000002",
    );
    tree.virtual_disk("loop4", "7:4");
    tree.virtual_disk("loop5", "7:5");
    tree.mount("8:1", "/", "ext4", "/dev/sda1");
    tree.swap("/dev/sda2", "partition");
    tree
}

fn consent(words: &[&str], overwrite: &[&str]) -> Consent {
    Consent {
        allow_write: words.iter().map(|word| (*word).to_owned()).collect(),
        overwrite: overwrite
            .iter()
            .flat_map(|word| parse_overwrite(word).unwrap())
            .collect(),
    }
}

fn check(tree: &Tree, target: &str, consent: &Consent) -> Result<Permit, Refusal> {
    let sysfs = tree.sysfs();
    Guard::with_contents(&sysfs, tree).check(Path::new(target), consent, Intent::Write)
}

/// One invocation: how the machine differs, what is named, what is allowed, and the finding that must be
/// among the reasons: its kind and words of its text.
struct Case {
    name: &'static str,
    change: fn(&mut Tree),
    target: &'static str,
    allow: &'static [&'static str],
    overwrite: &'static [&'static str],
    finding: &'static str,
    words: &'static [&'static str],
}

/// The usual consent.
pub const B: &[&str] = &["/dev/sdb"];
/// No words.
pub const NONE: &[&str] = &[];

macro_rules! case {
    ($name:literal, $target:literal, $allow:expr, $overwrite:expr, $finding:literal, $words:expr, $change:expr) => {
        $crate::guard_cases::Case {
            name: $name,
            change: $change,
            target: $target,
            allow: $allow,
            overwrite: $overwrite,
            finding: $finding,
            words: $words,
        }
    };
}
pub(crate) use case;

#[test]
fn dangerous_invocations_are_refused_and_the_finding_is_named() {
    let tables = [
        in_use::CASES,
        identity::CASES,
        consent::CASES,
        content::CASES,
        files::CASES,
    ];
    let cases: Vec<&Case> = tables.into_iter().flatten().collect();
    assert!(cases.len() >= 30);
    let mut failures = Vec::new();
    for case in &cases {
        let mut tree = machine();
        (case.change)(&mut tree);
        let answer = check(&tree, case.target, &consent(case.allow, case.overwrite));
        let Err(refusal) = answer else {
            failures.push(format!("{}: let through", case.name));
            continue;
        };
        let texts: Vec<String> = refusal
            .findings
            .iter()
            .filter(|finding| finding.kind() == case.finding)
            .map(ToString::to_string)
            .collect();
        let is_named = texts
            .iter()
            .any(|text| case.words.iter().all(|word| text.contains(word)));
        let failure = refusal.failure();
        let is_told =
            failure.exit_code == 3 && failure.kind == "refused" && !failure.next_step.is_empty();
        if !is_named || !is_told {
            failures.push(format!("{}: {failure:?}", case.name));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Each dangerous case must be refused for its own reason only: without the change, and with consent, the
/// same target runs. This keeps a guard that refuses everything from passing.
#[test]
fn without_the_danger_the_same_targets_run() {
    for target in [
        "/dev/sdb",
        "/dev/sdc",
        "/dev/loop4",
        "/dev/nvme0n1",
        "/dev/nvme0n2",
        "/dev/sg1",
        "/dev/ng0n1",
    ] {
        let answer = check(&machine(), target, &consent(&[target], NONE));
        assert!(answer.is_ok(), "{target}: {}", answer.unwrap_err());
    }
}

#[test]
fn harmless_invocations_run() {
    assert!(harmless::HARMLESS.len() >= 20);
    let mut failures = Vec::new();
    for (name, change, target, allow, overwrite) in harmless::HARMLESS {
        let mut tree = machine();
        change(&mut tree);
        if let Err(refusal) = check(&tree, target, &consent(allow, overwrite)) {
            failures.push(format!("{name}: {refusal}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn several_reasons_are_all_named_and_the_advice_is_about_those_that_no_flag_lifts() {
    let mut tree = machine();
    tree.mount("8:16", "/data", "ext4", "/dev/sdb");
    tree.content("sdb", with(&[(0, b"XFSB")]));
    let refusal = check(&tree, "/dev/sdb", &Consent::default()).unwrap_err();
    let kinds: Vec<&str> = refusal
        .findings
        .iter()
        .map(|finding| finding.kind())
        .collect();
    assert_eq!(kinds, ["mounted", "no-consent", "signature"]);
    assert_eq!(refusal.next_step(), "unmount /data, or name another device");
}

#[test]
fn advice_names_the_serial_only_where_it_is_unique() {
    let unique = check(&machine(), "/dev/sdb", &Consent::default()).unwrap_err();
    assert!(
        unique
            .next_step()
            .contains("--allow-write SER-B or --allow-write /dev/sdb")
    );
    let shared = check(&machine(), "/dev/nvme0n1", &Consent::default()).unwrap_err();
    assert!(
        shared.next_step().ends_with("--allow-write /dev/nvme0n1"),
        "{}",
        shared.next_step()
    );
}

#[test]
fn a_permit_names_the_block_nodes_of_every_path_to_be_held() {
    let tree = machine();
    tree.scsi_disk("sdd", "8:48", 3, "SER-B", "naa.500000000000000b");
    let permit = check(&tree, "/dev/sg1", &consent(&["SER-B"], NONE)).unwrap();
    assert_eq!(
        permit.block_nodes(),
        [Path::new("/dev/sdb"), Path::new("/dev/sdd")]
    );
}

#[test]
fn the_second_look_finds_what_has_changed_since() {
    let mut tree = machine();
    let sysfs = tree.sysfs();
    let file = format!("{}/diskseq", tree.dir("sdb"));
    tree.file(&file, "7\n");
    let permit = check(&tree, "/dev/sdb", &consent(B, NONE)).unwrap();
    Guard::with_contents(&sysfs, &tree).again(&permit).unwrap();
    tree.file(&file, "8\n");
    let changed = Guard::with_contents(&sysfs, &tree)
        .again(&permit)
        .unwrap_err();
    assert!(changed.to_string().contains("another device or medium"));
    tree.file(&file, "7\n");
    tree.mount("8:16", "/late", "ext4", "/dev/sdb");
    let mounted = Guard::with_contents(&sysfs, &tree)
        .again(&permit)
        .unwrap_err();
    assert!(mounted.to_string().contains("mounted at /late"));
}

#[test]
fn reading_tells_what_uses_the_device() {
    let mut tree = machine();
    tree.mount_with("8:16", "/data", "ext4", "/dev/sdb", "ro");
    assert_eq!(
        in_use(&tree.sysfs(), Path::new("/dev/sdb")),
        ["mounted at /data (ro) (sdb, ext4)"]
    );
    let root = in_use(&tree.sysfs(), Path::new("/dev/sda"));
    assert_eq!(
        root,
        [
            "mounted at / (partition sda1, ext4)",
            "swap in use (partition sda2)",
            "holds the root file system (sda)"
        ]
    );
    assert!(in_use(&tree.sysfs(), Path::new("/dev/sdc")).is_empty());
    tree.file("proc/self/mountinfo", "garbled\n");
    assert!(in_use(&tree.sysfs(), Path::new("/dev/sdc"))[0].starts_with("unknown: "));
}

#[test]
fn what_has_no_node_is_judged_by_its_name_and_its_content() {
    let judge = |content: Vec<u8>, allow: &[&str], serial| {
        let consent = consent(allow, NONE);
        Guard::check_unlisted("0000:01:00.0", serial, &content, &consent, Intent::Write)
    };
    assert!(judge(with(&[]), &["0000:01:00.0"], None).is_ok());
    assert!(judge(with(&[]), &["S1"], Some("S1  ")).is_ok());
    let kinds = |refusal: Refusal| {
        refusal
            .findings
            .iter()
            .map(|f| f.kind())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        kinds(judge(with(&[]), &[], Some("S1")).unwrap_err()),
        ["no-consent"]
    );
    assert_eq!(
        kinds(judge(with(&[]), &[""], Some(" ")).unwrap_err()),
        ["other-consent"]
    );
    let gpt = with(&[(4096, b"EFI PART")]);
    assert_eq!(
        kinds(judge(gpt, &["S1"], Some("S1")).unwrap_err()),
        ["signature"]
    );
}

#[test]
fn a_scratch_file_without_a_name_needs_no_consent_and_a_device_is_no_scratch_file() {
    use std::os::fd::AsRawFd;
    let sysfs = lanemark::sysfs::Sysfs::host();
    let file = tempfile::tempfile().unwrap();
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let permit = Guard::new(&sysfs).scratch(Path::new(&path)).unwrap();
    Guard::new(&sysfs).again(&permit).unwrap();
    let tree = machine();
    let sysfs = tree.sysfs();
    let guard = Guard::with_contents(&sysfs, &tree);
    for path in ["/dev/sdb", "/dev", "/dev/nothing"] {
        assert!(guard.scratch(Path::new(path)).is_err(), "{path}");
    }
}
