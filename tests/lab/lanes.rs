//! Paths on an emulated machine: hop by hop as `lspci -vv` says, and a link that lets through more than it can.

use crate::skipped::skipped;
use crate::topologies::guest;
use lanemark::record::{DevicePath, LanesReport, LinkKind, VerdictKind};

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
    let Some(guest) = guest("slow-link") else {
        return;
    };
    let report: LanesReport = serde_json::from_value(guest.json("lanes")).unwrap();
    let nvme = report
        .devices
        .iter()
        .find(|one| one.name == "/dev/nvme0n1")
        .unwrap();
    assert_eq!(nvme.path.hops[0].now.as_ref().unwrap().text, "2.5 GT/s x1");
    let lspci = guest.text("lspci.out");
    if lspci.contains("LnkSta") {
        is_as_lspci_says(&nvme.path, &lspci);
    } else {
        skipped("no lspci in the guest: paths are not compared with it");
    }
    // Blocks that were never written are the fastest: the media are not what is looked at here.
    let record = guest.record("fast");
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
