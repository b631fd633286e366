//! Chains of PCI functions, as `scripts/capture-sysfs` captured them and the library reads them, against what
//! `lspci -vv` says of the same machine.

use crate::guard_tree::Tree;
use lanemark::sysfs::pci::{Bdf, Express, PciPath, PciSpeed};
use std::collections::HashMap;

/// What `lspci` says of one function: `None` where it says `unknown`, or width 0.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    payload_bytes: Option<u32>,
    read_request_bytes: Option<u32>,
    max: (Option<PciSpeed>, Option<u8>),
    now: (Option<PciSpeed>, Option<u8>),
}

/// Functions with a PCI Express capability, by address.
fn lspci(text: &str) -> HashMap<Bdf, Said> {
    let mut all: HashMap<Bdf, Said> = HashMap::new();
    let mut own = None;
    for line in text.lines() {
        if !line.starts_with(char::is_whitespace) {
            own = line.split(' ').next().and_then(Bdf::parse);
            continue;
        }
        let Some(bdf) = own else { continue };
        let line = line.trim();
        if line.contains("] Express") {
            all.entry(bdf).or_default();
        }
        let Some(said) = all.get_mut(&bdf) else {
            continue;
        };
        if line.starts_with("MaxPayload ") {
            said.payload_bytes = word_after(line, "MaxPayload ");
            said.read_request_bytes = word_after(line, "MaxReadReq ");
        } else if line.starts_with("LnkCap:") {
            said.max = (speed(line), width(line));
        } else if line.starts_with("LnkSta:") {
            said.now = (speed(line), width(line));
        }
    }
    all
}

fn word_after(line: &str, name: &str) -> Option<u32> {
    let rest = line.split_once(name)?.1;
    rest.split(' ').next()?.parse().ok()
}

/// `Speed 2.5GT/s`, with or without what pciutils thinks of it in brackets.
fn speed(line: &str) -> Option<PciSpeed> {
    let rest = line.split_once("Speed ")?.1;
    PciSpeed::parse(rest.split([',', ' ']).next()?)
}

fn width(line: &str) -> Option<u8> {
    let rest = line.split_once("Width x")?.1;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok().filter(|lanes_count| *lanes_count != 0)
}

fn of(express: &Express) -> Said {
    Said {
        payload_bytes: express.payload_bytes,
        read_request_bytes: express.read_request_bytes,
        max: (express.max_speed, express.max_width_count),
        now: (express.speed, express.width_count),
    }
}

/// Compares every hop of these functions; returns how many functions were compared.
pub fn compare(captured: &str, lspci_text: &str, functions: &[&str]) -> usize {
    let tree = Tree::captured(captured);
    let said = lspci(lspci_text);
    let mut compared_count = 0;
    for address in functions {
        let path = PciPath::read(&tree.sysfs(), Bdf::parse(address).unwrap()).unwrap();
        for function in &path.functions {
            let Ok(express) = &function.express else {
                assert!(!said.contains_key(&function.bdf), "{}", function.bdf);
                continue;
            };
            let expect = &said[&function.bdf];
            assert_eq!(
                &of(express),
                expect,
                "{}: configuration space",
                function.bdf
            );
            let link = &function.link;
            let now = (link.speed.clone().ok(), link.width_count.clone().ok());
            assert_eq!(now, expect.now, "{}: sysfs", function.bdf);
            compared_count += 1;
        }
    }
    compared_count
}

#[test]
fn the_words_of_lspci_are_understood() {
    let text = "0000:00:04.0 PCI bridge: X (prog-if 00)\n\tCapabilities: [54] Express (v2) Root Port (Slot+), IntMsgNum 0\n\t\tDevCtl:\tCorrErr+\n\t\t\tMaxPayload 256 bytes, MaxReadReq 512 bytes\n\t\tLnkCap:\tPort #0, Speed 8GT/s, Width x4, ASPM L0s\n\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x1 (downgraded)\n0000:00:05.0 SATA: Y\n\tLnkCap:\tSpeed 8GT/s, Width x4\n0000:10:00.0 NVMe: Z\n\tCapabilities: [80] Express Endpoint, IntMsgNum 0\n\t\tLnkSta:\tSpeed unknown, Width x0\n";
    let said = lspci(text);
    assert_eq!(said.len(), 2);
    let port = &said[&Bdf::parse("0000:00:04.0").unwrap()];
    assert_eq!(
        (port.payload_bytes, port.read_request_bytes),
        (Some(256), Some(512))
    );
    assert_eq!(port.max, (Some(PciSpeed::Gt8), Some(4)));
    assert_eq!(port.now, (Some(PciSpeed::Gt2_5), Some(1)));
    assert_eq!(said[&Bdf::parse("0000:10:00.0").unwrap()], Said::default());
}
