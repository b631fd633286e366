//! Identify Namespace (NVM, "Identify – Identify Namespace Data Structure, NVM Command Set") and the namespace's
//! identifiers.

use super::{Fields, Truncated, ctrlr::IDENTIFY_BYTES};
use std::fmt::Write as _;

/// Protection information type (DPS bits 2:0).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PiType {
    /// Not enabled.
    None,
    /// Guard, application tag, and a reference tag equal to the low 32 bits of the LBA.
    Type1,
    /// As type 1 with a reference tag of the host's choice.
    Type2,
    /// The reference tag is the host's alone and not checked.
    Type3,
    /// A value without a meaning.
    Reserved(u8),
}

/// One entry of the LBA format table (NVM, "LBA Format Data Structure").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LbaFormat {
    /// Metadata per block in bytes (MS, bits 15:0).
    pub metadata_bytes: u16,
    /// Size of a block as a power of two in bytes (LBADS, bits 23:16); under 9: the format is not available.
    pub data_shift: u8,
    /// Relative performance, 0 best to 3 degraded (RP, bits 25:24).
    pub relative_performance: u8,
}

impl LbaFormat {
    /// From the 32-bit entry.
    #[must_use]
    pub const fn from_entry(entry: u32) -> Self {
        Self {
            metadata_bytes: (entry & 0xffff) as u16,
            data_shift: (entry >> 16 & 0xff) as u8,
            relative_performance: (entry >> 24 & 0x3) as u8,
        }
    }

    /// Size of a logical block in bytes; absent where the format is not available or absurd.
    #[must_use]
    pub const fn block_bytes(self) -> Option<u32> {
        if self.data_shift >= 9 && self.data_shift < 32 {
            Some(1 << self.data_shift)
        } else {
            None
        }
    }
}

/// The fields of Identify Namespace that a measurement needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentifyNamespace {
    /// Size in logical blocks (NSZE, bytes 7:0).
    pub size_blocks: u64,
    /// Most blocks that may be allocated at once (NCAP, bytes 15:8).
    pub capacity_blocks: u64,
    /// Blocks allocated now (NUSE, bytes 23:16).
    pub used_blocks: u64,
    /// Thin provisioned (NSFEAT bit 0, byte 24).
    pub thin: bool,
    /// The preferred-write fields are valid (NSFEAT bit 4; later revisions use bits 5:4).
    pub preferred_write: bool,
    /// Number of formats in the table (NLBAF, byte 25, zero-based).
    pub formats_count: u8,
    /// The format in use: FLBAS bits 3:0 with bits 6:5 above them (byte 26).
    pub format_index: u8,
    /// The format in use.
    pub format: LbaFormat,
    /// Metadata travels at the end of each block, in one buffer with the data (FLBAS bit 4).
    pub metadata_interleaved: bool,
    /// Protection information in use (DPS bits 2:0, byte 29).
    pub pi: PiType,
    /// Protection information is at the start of the metadata, not its end (DPS bit 3).
    pub pi_first: bool,
    /// May be attached to two or more controllers at once (NMIC bit 0, byte 30).
    pub shared: bool,
    /// What deallocated blocks read as: 0 not reported, 1 zeros, 2 ones (DLFEAT bits 2:0, byte 33).
    pub deallocated_reads: u8,
    /// Best I/O boundary in blocks (NOIOB, bytes 47:46); 0: none.
    pub optimal_io_boundary_blocks: u16,
    /// Preferred write granularity in blocks (NPWG, bytes 65:64, zero-based), where valid.
    pub preferred_write_granularity_blocks: Option<u32>,
    /// The namespace is write protected now (NSATTR bit 0, byte 99).
    pub write_protected: bool,
    /// Globally unique identifier (bytes 119:104); absent where all zero.
    pub nguid: Option<[u8; 16]>,
    /// IEEE extended unique identifier (bytes 127:120); absent where all zero.
    pub eui64: Option<[u8; 8]>,
}

impl IdentifyNamespace {
    /// Decodes the structure. An inactive namespace is all zero: size 0.
    ///
    /// # Errors
    /// [`Truncated`] where there are fewer than 4096 bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Truncated> {
        let at = Fields::new("Identify Namespace", bytes, IDENTIFY_BYTES)?;
        let flbas = at.u8(26);
        let nsfeat = at.u8(24);
        // The upper bits count only where the table has more than 16 entries.
        let upper = if at.u8(25) > 15 {
            (flbas >> 5 & 0b11) << 4
        } else {
            0
        };
        let format_index = (flbas & 0x0f) | upper;
        let preferred_write = nsfeat & 1 << 4 != 0;
        let dps = at.u8(29);
        Ok(Self {
            size_blocks: at.u64(0),
            capacity_blocks: at.u64(8),
            used_blocks: at.u64(16),
            thin: nsfeat & 1 != 0,
            preferred_write,
            formats_count: at.u8(25).saturating_add(1),
            format_index,
            format: LbaFormat::from_entry(at.u32(128 + 4 * usize::from(format_index))),
            metadata_interleaved: flbas & 1 << 4 != 0,
            pi: match dps & 0b111 {
                0 => PiType::None,
                1 => PiType::Type1,
                2 => PiType::Type2,
                3 => PiType::Type3,
                other => PiType::Reserved(other),
            },
            pi_first: dps & 1 << 3 != 0,
            shared: at.u8(30) & 1 != 0,
            deallocated_reads: at.u8(33) & 0b111,
            optimal_io_boundary_blocks: at.u16(46),
            preferred_write_granularity_blocks: preferred_write.then(|| u32::from(at.u16(64)) + 1),
            write_protected: at.u8(99) & 1 != 0,
            nguid: Some(at.array::<16>(104)).filter(|id| *id != [0; 16]),
            eui64: Some(at.array::<8>(120)).filter(|id| *id != [0; 8]),
        })
    }

    /// The table of formats that the namespace could have (LBAF0 and on, bytes 128 to 383), by index. Whether
    /// an entry is available its [`LbaFormat::block_bytes`] says.
    ///
    /// # Errors
    /// [`Truncated`] where there are fewer than 4096 bytes.
    pub fn format_table(bytes: &[u8]) -> Result<Vec<LbaFormat>, Truncated> {
        let at = Fields::new("Identify Namespace", bytes, IDENTIFY_BYTES)?;
        let count = usize::from(at.u8(25)).saturating_add(1).min(64);
        let entry = |index: usize| LbaFormat::from_entry(at.u32(128 + 4 * index));
        Ok((0..count).map(entry).collect())
    }

    /// Size in bytes of data, metadata not counted; absent where the format is not usable or the product is
    /// beyond 64 bits.
    #[must_use]
    pub fn size_bytes(&self) -> Option<u64> {
        self.size_blocks
            .checked_mul(u64::from(self.format.block_bytes()?))
    }
}

/// The identifiers of a namespace (Base, "Identify – Namespace Identification Descriptor list", CNS 03h).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NamespaceIds {
    /// Type 1.
    pub eui64: Option<[u8; 8]>,
    /// Type 2.
    pub nguid: Option<[u8; 16]>,
    /// Type 3.
    pub uuid: Option<[u8; 16]>,
}

impl NamespaceIds {
    /// Decodes the list: type (byte 0), length (byte 1), two reserved bytes, the identifier. A descriptor of
    /// length 0 ends it; unknown types and wrong lengths are stepped over; all-zero identifiers count as none.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Self {
        let mut ids = Self::default();
        let mut rest = bytes;
        while let [kind, length, _, _, tail @ ..] = rest {
            let length = usize::from(*length);
            if length == 0 || length > tail.len() {
                break;
            }
            let (value, after) = tail.split_at(length);
            if value.iter().any(|byte| *byte != 0) {
                match kind {
                    1 => ids.eui64 = value.try_into().ok().or(ids.eui64),
                    2 => ids.nguid = value.try_into().ok().or(ids.nguid),
                    3 => ids.uuid = value.try_into().ok().or(ids.uuid),
                    _ => {}
                }
            }
            rest = after;
        }
        ids
    }

    /// The identity as the kernel's `wwid` writes it: `uuid.…`, else `eui.` of the NGUID, else `eui.` of the
    /// EUI-64; absent where there is none.
    #[must_use]
    pub fn wwid(&self) -> Option<String> {
        let hex = |bytes: &[u8]| {
            bytes.iter().fold(String::new(), |mut out, byte| {
                let _ = write!(out, "{byte:02x}");
                out
            })
        };
        if let Some(uuid) = self.uuid {
            let h = hex(&uuid);
            return Some(format!(
                "uuid.{}-{}-{}-{}-{}",
                &h[..8],
                &h[8..12],
                &h[12..16],
                &h[16..20],
                &h[20..]
            ));
        }
        self.nguid
            .map(|id| hex(&id))
            .or_else(|| self.eui64.map(|id| hex(&id)))
            .map(|h| format!("eui.{h}"))
    }
}

#[cfg(test)]
#[path = "ns_tests.rs"]
mod tests;
