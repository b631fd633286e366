//! Paths on an emulated machine: hop by hop as `lspci -vv` says, and a link that lets through more than it can.

use crate::invariants;
use crate::skipped::skipped;
use crate::support::lab;
use lanemark::record::{DevicePath, LanesReport, LinkKind, Record, VerdictKind};
use std::process::{Command, Stdio};

/// Runs a shell script in a topology; files that it leaves in the folder come back.
fn guest(topology: &str, script: &str) -> Option<tempfile::TempDir> {
    let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/lab");
    let prepared = Command::new(tool).arg("prepare").output().unwrap();
    if !prepared.status.success() {
        skipped("the emulated machine cannot be prepared");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let ran = Command::new(tool)
        .args(["run", "--topology", topology, "--timeout", "300", "--share"])
        .arg(folder.path())
        .args(["sh", "-c", script, "sh", env!("CARGO_BIN_EXE_lanemark")])
        .arg(folder.path())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(ran.status.success(), "the lab: {ran:?}");
    Some(folder)
}

fn read(folder: &tempfile::TempDir, name: &str) -> String {
    std::fs::read_to_string(folder.path().join(name)).unwrap_or_else(|_| panic!("no {name} came"))
}

/// `LnkSta: Speed 2.5GT/s, Width x1` and `MaxPayload 128 bytes, MaxReadReq 512 bytes` of one function.
fn said_by_lspci(text: &str, bdf: &str) -> (String, String, Option<(u32, u32)>) {
    let block = text
        .split("\n\n")
        .find(|block| block.trim_start().starts_with(bdf))
        .unwrap_or_else(|| panic!("no {bdf} in {text}"));
    let after = |what: &str, from: &str| {
        let rest = from.split_once(what)?.1;
        let end = rest.find([',', ' ', '(', '\n']).unwrap_or(rest.len());
        Some(rest[..end].to_owned())
    };
    let status = block.split_once("LnkSta:").map_or("", |(_, rest)| rest);
    let number = |what| after(what, block).and_then(|text| text.parse().ok());
    let sizes = number("MaxPayload ").zip(number("MaxReadReq "));
    (
        after("Speed ", status).unwrap_or_default(),
        after("Width ", status).unwrap_or_default(),
        sizes,
    )
}

#[track_caller]
fn is_as_lspci_says(path: &DevicePath, lspci: &str) {
    for hop in path.hops.iter().filter(|hop| hop.kind == LinkKind::Pcie) {
        let (speed, width, sizes) = said_by_lspci(lspci, &hop.to);
        let now = hop.now.as_ref().unwrap();
        let wanted = format!("{} {width}", speed.replace("GT/s", " GT/s"));
        assert_eq!(now.text, wanted, "{}", hop.name);
        let (payload, request) = sizes.unwrap();
        assert_eq!(hop.mps_bytes, Some(payload), "{}", hop.name);
        // Requests are the device's own.
        if hop.name == path.hops[path.hops.len() - 1].name {
            assert_eq!(hop.mrrs_bytes, Some(request), "{}", hop.name);
        }
    }
}

/// The emulator does not throttle: a lane of 2.5 GT/s lets through more than 238.8 MB/s at most.
#[test]
fn a_link_that_carries_more_than_it_can_is_distrusted() {
    let Some(_lab) = lab() else { return };
    // Blocks that were never written are the fastest: the media are not what is looked at here.
    let script = "
        \"$1\" lanes --format json > \"$2/lanes.json\" || exit 1
        lspci -vv -D > \"$2/lspci.txt\" 2> /dev/null || true
        \"$1\" run --device /dev/nvme0n1 --rw read --bs 1m --iodepth 16 --runtime 5s --format json \
            --progress none > \"$2/run.json\" 2> \"$2/run.err\" || true";
    let Some(folder) = guest("slow-link", script) else {
        return;
    };
    let report: LanesReport = serde_json::from_str(&read(&folder, "lanes.json")).unwrap();
    let nvme = report
        .devices
        .iter()
        .find(|one| one.name == "/dev/nvme0n1")
        .unwrap();
    assert_eq!(nvme.path.hops[0].now.as_ref().unwrap().text, "2.5 GT/s x1");
    let lspci = read(&folder, "lspci.txt");
    if lspci.contains("LnkSta") {
        is_as_lspci_says(&nvme.path, &lspci);
    } else {
        skipped("no lspci in the guest: paths are not compared with it");
    }
    let record: Record = serde_json::from_str(&read(&folder, "run.json")).unwrap();
    invariants::check(&record);
    let step = &record.steps[0];
    let rate = step.read.as_ref().unwrap().bytes_per_s;
    let ceiling = step.path[0].hops[0].read_ceiling.unwrap().high_bytes_per_s;
    if rate <= 1.005 * ceiling {
        skipped(&format!(
            "this machine emulates too slowly to exceed one lane of 2.5 GT/s: {:.0} MB/s",
            rate / 1e6
        ));
        return;
    }
    assert_eq!(
        step.verdict.kind,
        VerdictKind::LinkDataDistrusted,
        "{:?}",
        step.verdict
    );
    assert_eq!(
        step.verdict.at.as_deref(),
        Some(nvme.path.hops[0].name.as_str())
    );
}
