//! Configuration space: the PCI Express capability. Only root sees past its first 64 bytes.
//!
//! Offsets and fields are those of the PCI Express Base Specification 6.0, 7.5.1 (header) and 7.5.3 (PCI
//! Express Capability Structure); Linux has the same in `include/uapi/linux/pci_regs.h`.

use super::link::PciSpeed;
use crate::sysfs::absent::{Absent, Fact};
use crate::sysfs::read_bytes;
use std::path::{Path, PathBuf};

/// Status register, bit 4: there is a list of capabilities (7.5.1.1.4).
const STATUS: usize = 0x06;
const STATUS_CAPABILITIES: u16 = 1 << 4;
/// Capabilities Pointer (7.5.1.1.11).
const CAPABILITIES_POINTER: usize = 0x34;
/// Capability ID of the PCI Express Capability Structure (7.5.3.1).
const ID_EXPRESS: u8 = 0x10;
/// What everybody may read.
const HEADER_BYTES: usize = 64;
/// Configuration space without the extended part.
const PCI_BYTES: usize = 256;

/// Where a function stands in the tree (Device/Port Type, 7.5.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortKind {
    /// PCI Express Endpoint (0), or a legacy one (1).
    Endpoint,
    /// Root Port of a root complex (4).
    RootPort,
    /// Upstream Port of a switch (5).
    Upstream,
    /// Downstream Port of a switch (6).
    Downstream,
    /// Bridge from PCI Express to PCI or PCI-X (7), or the other way (8).
    Bridge,
    /// Endpoint inside the root complex (9): it has no link.
    RootIntegrated,
    /// Root Complex Event Collector (10).
    EventCollector,
}

impl PortKind {
    /// Whether the function's link is the one below it.
    #[must_use]
    pub const fn faces_down(self) -> bool {
        matches!(self, Self::RootPort | Self::Downstream)
    }

    /// The word in texts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Endpoint => "endpoint",
            Self::RootPort => "root port",
            Self::Upstream => "switch upstream port",
            Self::Downstream => "switch downstream port",
            Self::Bridge => "bridge",
            Self::RootIntegrated => "on-chip endpoint",
            Self::EventCollector => "event collector",
        }
    }

    const fn of(code: u16) -> Option<Self> {
        Some(match code {
            0 | 1 => Self::Endpoint,
            4 => Self::RootPort,
            5 => Self::Upstream,
            6 => Self::Downstream,
            7 | 8 => Self::Bridge,
            9 => Self::RootIntegrated,
            10 => Self::EventCollector,
            _ => return None,
        })
    }
}

/// What the PCI Express capability of one function says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Express {
    /// Device/Port Type (PCI Express Capabilities Register, offset 02h, bits 7:4).
    pub kind: PortKind,
    /// `Max_Payload_Size` in force (Device Control, 08h, bits 7:5); absent where reserved.
    pub payload_bytes: Option<u32>,
    /// Largest `Max_Payload_Size` supported (Device Capabilities, 04h, bits 2:0).
    pub max_payload_bytes: Option<u32>,
    /// `Max_Read_Request_Size` (Device Control, 08h, bits 14:12).
    pub read_request_bytes: Option<u32>,
    /// Read Completion Boundary (Link Control, 10h, bit 3): completions are cut at its multiples.
    pub completion_boundary_bytes: u32,
    /// Max Link Speed (Link Capabilities, 0Ch, bits 3:0); this and the next three are absent for functions inside
    /// the root complex, which have no link.
    pub max_speed: Option<PciSpeed>,
    /// Maximum Link Width (Link Capabilities, bits 9:4); absent where 0 or reserved.
    pub max_width_count: Option<u8>,
    /// Current Link Speed (Link Status, 12h, bits 3:0).
    pub speed: Option<PciSpeed>,
    /// Negotiated Link Width (Link Status, bits 9:4).
    pub width_count: Option<u8>,
    /// Target Link Speed (Link Control 2, 30h, bits 3:0): somebody may have lowered it; version 2 only.
    pub target_speed: Option<PciSpeed>,
    /// ASPM in force (Link Control, bits 1:0): bit 0 L0s, bit 1 L1.
    pub aspm_bits: u8,
    /// The link runs in FLIT mode (Link Status 2, 32h, bit 10).
    pub flit: bool,
}

impl Express {
    /// Reads the `config` file of a function's folder.
    ///
    /// # Errors
    /// [`Absent::Closed`] where the user is not root, [`Absent::Lacking`] for a conventional PCI function, and
    /// for a list of capabilities that leads nowhere.
    pub fn read(dir: &Path) -> Fact<Self> {
        let path = dir.join("config");
        Config {
            bytes: read_bytes(&path)?,
            path,
        }
        .express()
    }

    /// The same from bytes at hand.
    ///
    /// # Errors
    /// [`Absent`], with `path` as the name of where they came from.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Fact<Self> {
        Config {
            bytes: bytes.to_vec(),
            path: path.to_owned(),
        }
        .express()
    }
}

struct Config {
    bytes: Vec<u8>,
    path: PathBuf,
}

impl Config {
    fn express(mut self) -> Fact<Express> {
        let len_bytes = self.bytes.len();
        if len_bytes <= HEADER_BYTES {
            return Err(Absent::Closed {
                path: self.path,
                len_bytes,
            });
        }
        // Captures leave out the zeros at its end.
        self.bytes.resize(len_bytes.max(PCI_BYTES), 0);
        // A device that is gone, or asleep with its clock off, answers with ones.
        if self.bytes[..2] == [0xff, 0xff] {
            return Err(self.lacking("answer: the function is gone or powered off"));
        }
        let at = self
            .capability(ID_EXPRESS)
            .ok_or_else(|| self.lacking("PCI Express capability"))?;
        self.express_at(at)
    }

    fn lacking(&self, what: &'static str) -> Absent {
        let path = self.path.clone();
        Absent::Lacking { path, what }
    }

    fn u16_at(&self, at: usize) -> u16 {
        let byte = |at: usize| self.bytes.get(at).copied().unwrap_or_default();
        u16::from_le_bytes([byte(at), byte(at + 1)])
    }

    fn u32_at(&self, at: usize) -> u32 {
        u32::from(self.u16_at(at)) | u32::from(self.u16_at(at + 2)) << 16
    }

    /// Where the capability of this ID is. 48 of them would fill the space: a longer list is a circle.
    fn capability(&self, id: u8) -> Option<usize> {
        if self.u16_at(STATUS) & STATUS_CAPABILITIES == 0 {
            return None;
        }
        let mut at = usize::from(self.bytes[CAPABILITIES_POINTER] & !3);
        for _ in 0..48 {
            if !(HEADER_BYTES..PCI_BYTES).contains(&at) {
                return None;
            }
            if self.bytes[at] == id {
                return Some(at);
            }
            at = usize::from(self.bytes[at + 1] & !3);
        }
        None
    }

    fn express_at(&self, at: usize) -> Fact<Express> {
        let flags = self.u16_at(at + 0x02);
        let version = flags & 0xf;
        let kind = PortKind::of(flags >> 4 & 0xf)
            .ok_or_else(|| self.lacking("known port type (PCI Express capability)"))?;
        let device_control = self.u16_at(at + 0x08);
        let link_capabilities = self.u32_at(at + 0x0c);
        let link_control = self.u16_at(at + 0x10);
        let link_status = self.u16_at(at + 0x12);
        // What lies inside the root complex has no link; some devices fill the registers all the same (7.5.3.1).
        let has_link = !matches!(kind, PortKind::RootIntegrated | PortKind::EventCollector);
        let (link_capabilities, link_status) = if has_link {
            (link_capabilities, link_status)
        } else {
            (0, 0)
        };
        // Version 1 ends before these.
        let second = |offset: usize| {
            if version >= 2 {
                self.u16_at(at + offset)
            } else {
                0
            }
        };
        let max = u16::try_from(link_capabilities & 0x3ff).unwrap_or_default();
        Ok(Express {
            kind,
            payload_bytes: size_bytes(device_control >> 5),
            max_payload_bytes: size_bytes(self.u16_at(at + 0x04)),
            read_request_bytes: size_bytes(device_control >> 12),
            completion_boundary_bytes: if link_control & 1 << 3 == 0 { 64 } else { 128 },
            max_speed: speed(max),
            max_width_count: width(max),
            speed: speed(link_status),
            width_count: width(link_status),
            target_speed: speed(second(0x30)),
            aspm_bits: u8::try_from(link_control & 3).unwrap_or_default(),
            flit: second(0x32) & 1 << 10 != 0,
        })
    }
}

/// Bits 2:0: 0 is 128 bytes, 5 is 4096; 6 and 7 are reserved.
fn size_bytes(bits: u16) -> Option<u32> {
    let code = bits & 7;
    (code <= 5).then(|| 128 << code)
}

/// Bits 3:0 of Link Capabilities, Link Status and Link Control 2.
fn speed(bits: u16) -> Option<PciSpeed> {
    PciSpeed::from_code(u8::try_from(bits & 0xf).ok()?)
}

/// Bits 9:4 of Link Capabilities and Link Status.
fn width(bits: u16) -> Option<u8> {
    let lanes_count = u8::try_from(bits >> 4 & 0x3f).ok()?;
    matches!(lanes_count, 1 | 2 | 4 | 8 | 12 | 16 | 32).then_some(lanes_count)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// A space with one PCI Express capability at 40h; words by their offset in it.
    fn space(words: &[(usize, u16)]) -> Vec<u8> {
        let mut bytes = vec![0; 256];
        bytes[..2].copy_from_slice(&[0x86, 0x80]);
        bytes[STATUS] = 0x10;
        bytes[CAPABILITIES_POINTER] = 0x40;
        bytes[0x40] = 0x10;
        for (offset, word) in words {
            bytes[0x40 + offset..0x42 + offset].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn express(words: &[(usize, u16)]) -> Fact<Express> {
        Express::from_bytes(&space(words), Path::new("config"))
    }

    /// A root port at 8 GT/s x4 of 16 GT/s x8, payload 256 of 512, read requests of 512, boundary 128.
    const PORT: [(usize, u16); 8] = [
        (0x02, 0x0042),
        (0x04, 0x8002),
        (0x08, 0x2037),
        (0x0c, 0x3c84),
        (0x0e, 0x0173),
        (0x10, 0x000a),
        (0x12, 0x7043),
        (0x30, 0x0004),
    ];

    #[test]
    fn a_root_port_is_read_field_by_field() {
        let expect = Express {
            kind: PortKind::RootPort,
            payload_bytes: Some(256),
            max_payload_bytes: Some(512),
            read_request_bytes: Some(512),
            completion_boundary_bytes: 128,
            max_speed: Some(PciSpeed::Gt16),
            max_width_count: Some(8),
            speed: Some(PciSpeed::Gt8),
            width_count: Some(4),
            target_speed: Some(PciSpeed::Gt16),
            aspm_bits: 2,
            flit: false,
        };
        assert_eq!(express(&PORT), Ok(expect));
    }

    #[test]
    fn every_field_moves_alone() {
        let base = express(&[(0x02, 2)]).unwrap();
        assert_eq!(base.payload_bytes, Some(128));
        let with = |offset, word| express(&[(0x02, 2), (offset, word)]).unwrap();
        for (code, bytes) in [
            (0, 128),
            (1, 256),
            (2, 512),
            (3, 1024),
            (4, 2048),
            (5, 4096),
        ] {
            let expect = Express {
                payload_bytes: Some(bytes),
                ..base
            };
            assert_eq!(with(0x08, code << 5), expect);
            let expect = Express {
                read_request_bytes: Some(bytes),
                ..base
            };
            assert_eq!(with(0x08, code << 12), expect);
            let expect = Express {
                max_payload_bytes: Some(bytes),
                ..base
            };
            assert_eq!(with(0x04, code), expect);
        }
        for reserved in [6, 7] {
            assert_eq!(with(0x08, reserved << 5).payload_bytes, None);
            assert_eq!(with(0x08, reserved << 12).read_request_bytes, None);
        }
    }

    #[test]
    fn speeds_widths_and_flags_move_alone() {
        let base = express(&[(0x02, 2)]).unwrap();
        let with = |offset, word| express(&[(0x02, 2), (offset, word)]).unwrap();
        for (code, speed) in (1..).zip(PciSpeed::ALL) {
            assert_eq!(
                with(0x0c, code),
                Express {
                    max_speed: Some(speed),
                    ..base
                }
            );
            assert_eq!(
                with(0x12, code),
                Express {
                    speed: Some(speed),
                    ..base
                }
            );
            assert_eq!(
                with(0x30, code),
                Express {
                    target_speed: Some(speed),
                    ..base
                }
            );
        }
        for lanes in [1_u8, 2, 4, 8, 12, 16, 32] {
            let word = u16::from(lanes) << 4;
            assert_eq!(
                with(0x0c, word),
                Express {
                    max_width_count: Some(lanes),
                    ..base
                }
            );
            assert_eq!(
                with(0x12, word),
                Express {
                    width_count: Some(lanes),
                    ..base
                }
            );
        }
        assert_eq!(
            with(0x10, 8),
            Express {
                completion_boundary_bytes: 128,
                ..base
            }
        );
        assert_eq!(
            with(0x10, 3),
            Express {
                aspm_bits: 3,
                ..base
            }
        );
        assert_eq!(with(0x32, 0x0400), Express { flit: true, ..base });
        // Bits of other fields, all ones, move none of ours.
        assert_eq!(with(0x04, 0xfff8), base);
        assert_eq!(with(0x08, 0x8f1f), base);
        assert_eq!(with(0x12, 0xfc00), base);
    }

    #[test]
    fn kinds_of_ports_and_version_one() {
        for (code, kind) in [
            (0, PortKind::Endpoint),
            (1, PortKind::Endpoint),
            (4, PortKind::RootPort),
            (5, PortKind::Upstream),
            (6, PortKind::Downstream),
            (7, PortKind::Bridge),
            (8, PortKind::Bridge),
            (9, PortKind::RootIntegrated),
            (10, PortKind::EventCollector),
        ] {
            assert_eq!(express(&[(0x02, code << 4 | 2)]).unwrap().kind, kind);
        }
        assert!(matches!(
            express(&[(0x02, 0x00f2)]),
            Err(Absent::Lacking { .. })
        ));
        // Inside the root complex there is no link, whatever the registers say.
        for code in [9, 10] {
            let words = [(0x02, code << 4 | 2), (0x0c, 0x0411), (0x12, 0x0011)];
            let inside = express(&words).unwrap();
            assert_eq!((inside.speed, inside.width_count), (None, None));
            assert_eq!((inside.max_speed, inside.max_width_count), (None, None));
        }
        // Version 1 has no second registers: what lies there belongs to another capability.
        let first = express(&[(0x02, 0x0001), (0x30, 3), (0x32, 0x0400)]).unwrap();
        assert_eq!((first.target_speed, first.flit), (None, false));
    }

    #[test]
    fn a_space_that_is_closed_gone_circular_or_conventional_is_said_to_be() {
        let read = |bytes: &[u8]| Express::from_bytes(bytes, Path::new("config"));
        let bytes = space(&PORT);
        assert!(matches!(
            read(&bytes[..64]),
            Err(Absent::Closed { len_bytes: 64, .. })
        ));
        assert!(matches!(read(&[]), Err(Absent::Closed { .. })));
        assert!(matches!(read(&[0xff; 256]), Err(Absent::Lacking { .. })));
        let mut circle = bytes.clone();
        circle[0x40..0x42].copy_from_slice(&[0x05, 0x40]);
        assert!(matches!(read(&circle), Err(Absent::Lacking { .. })));
        let mut conventional = bytes.clone();
        conventional[STATUS] = 0;
        assert!(matches!(read(&conventional), Err(Absent::Lacking { .. })));
        assert!(matches!(
            Express::read(Path::new("nowhere")),
            Err(Absent::NotShown { .. })
        ));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Express::from_bytes(&bytes, Path::new("config"));
        }

        #[test]
        fn any_list_of_capabilities_ends(pointers in proptest::collection::vec(any::<u8>(), 192)) {
            let mut bytes = space(&[]);
            bytes[64..256].copy_from_slice(&pointers);
            let _ = Express::from_bytes(&bytes, Path::new("config"));
        }
    }
}
