//! SAS: phys, the ports they form, expanders and end devices, as the kernel's SAS transport class shows them
//! (Linux `drivers/scsi/scsi_transport_sas.c`). Cards in RAID mode hide theirs.

use super::absent::{Absent, Fact};
use super::{Sysfs, SysfsError, names_in, read_text, read_u64, read_word};
use std::fmt;
use std::path::{Path, PathBuf};

/// Rate of one phy in one direction; SATA's three are its first three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SasRate {
    /// 1.5 Gbit/s.
    G1_5,
    /// 3 Gbit/s: SAS-1.
    G3,
    /// 6 Gbit/s: SAS-2.
    G6,
    /// 12 Gbit/s: SAS-3.
    G12,
    /// 22.5 Gbit/s: SAS-4, which is sold as 24G.
    G22_5,
}

impl SasRate {
    /// All, slowest first.
    pub const ALL: [Self; 5] = [Self::G1_5, Self::G3, Self::G6, Self::G12, Self::G22_5];

    /// Bits per second on the wire, in millions.
    #[must_use]
    pub const fn megabits_per_s(self) -> u32 {
        match self {
            Self::G1_5 => 1_500,
            Self::G3 => 3_000,
            Self::G6 => 6_000,
            Self::G12 => 12_000,
            Self::G22_5 => 22_500,
        }
    }

    /// Reads `6.0 Gbit` (SAS) and `6.0 Gbps` (ATA).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let number = text
            .strip_suffix("Gbit")
            .or_else(|| text.strip_suffix("Gbps"))?
            .trim_end();
        let number = number.strip_suffix(".0").unwrap_or(number);
        Self::ALL.into_iter().find(|rate| rate.number() == number)
    }

    const fn number(self) -> &'static str {
        match self {
            Self::G1_5 => "1.5",
            Self::G3 => "3",
            Self::G6 => "6",
            Self::G12 => "12",
            Self::G22_5 => "22.5",
        }
    }
}

impl fmt::Display for SasRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} Gbit/s", self.number())
    }
}

/// A rate from a file; `unknown` are the kernel's words for a phy without one.
pub(super) fn rate(path: &Path) -> Fact<SasRate> {
    const NO_RATE: [&str; 6] = [
        "Unknown",
        "<unknown>",
        "Phy disabled",
        "Link Rate failed",
        "Spin-up hold",
        "SATA Spin-up hold",
    ];
    let text = read_text(path)?;
    if let Some(rate) = SasRate::parse(&text) {
        return Ok(rate);
    }
    if NO_RATE.contains(&text.as_str()) {
        let path = path.to_owned();
        return Err(Absent::Unknown { path, text });
    }
    Err(SysfsError::garbled(path, &text, "a link rate such as 6.0 Gbit").into())
}

/// Error counters of a phy since it came up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhyErrors {
    /// Words that were none.
    pub invalid_dword_count: Fact<u64>,
    /// Words with the wrong running disparity.
    pub running_disparity_count: Fact<u64>,
    /// Times the word boundary was lost.
    pub loss_of_sync_count: Fact<u64>,
    /// Resets that failed.
    pub reset_problem_count: Fact<u64>,
}

impl PhyErrors {
    /// Reads them; the kernel asks the card or the expander, which takes some time.
    #[must_use]
    pub fn read(phy_dir: &Path) -> Self {
        let count = |name: &str| Ok(read_u64(&phy_dir.join(name))?);
        Self {
            invalid_dword_count: count("invalid_dword_count"),
            running_disparity_count: count("running_disparity_error_count"),
            loss_of_sync_count: count("loss_of_dword_sync_count"),
            reset_problem_count: count("phy_reset_problem_count"),
        }
    }

    /// All known counters together; `None` where none is known.
    #[must_use]
    pub fn total_count(&self) -> Option<u64> {
        let all = [
            &self.invalid_dword_count,
            &self.running_disparity_count,
            &self.loss_of_sync_count,
            &self.reset_problem_count,
        ];
        all.into_iter()
            .filter_map(|count| count.as_ref().ok().copied())
            .reduce(u64::saturating_add)
    }
}

/// One phy: a transmitter and a receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phy {
    /// Kernel name: `phy-0:4`, on an expander `phy-0:0:12`.
    pub name: String,
    /// Rate agreed on with the other side.
    pub rate: Fact<SasRate>,
    /// Highest rate that it may use, by setting.
    pub max_rate: Fact<SasRate>,
    /// Highest rate that it could use.
    pub hardware_max_rate: Fact<SasRate>,
    dir: PathBuf,
}

impl Phy {
    fn read(sysfs: &Sysfs, name: &str) -> Self {
        let dir = sysfs.sys("class/sas_phy").join(name);
        Self {
            name: name.to_owned(),
            rate: rate(&dir.join("negotiated_linkrate")),
            max_rate: rate(&dir.join("maximum_linkrate")),
            hardware_max_rate: rate(&dir.join("maximum_linkrate_hw")),
            dir,
        }
    }

    /// Its folder, for [`PhyErrors::read`].
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Its error counters now.
    #[must_use]
    pub fn errors(&self) -> PhyErrors {
        PhyErrors::read(&self.dir)
    }
}

/// Phys of one side that lead to the same other side: more than one make a wide port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SasPort {
    /// Kernel name: `port-0:0`, on an expander `port-0:0:3`.
    pub name: String,
    /// How many phys it has, by the kernel's count.
    pub phys_count: Fact<u64>,
    /// Those phys.
    pub phys: Vec<Phy>,
}

impl SasPort {
    fn read(sysfs: &Sysfs, dir: &Path, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            phys_count: read_u64(&sysfs.sys("class/sas_port").join(name).join("num_phys"))
                .map_err(Into::into),
            phys: phys_in(sysfs, dir),
        }
    }
}

fn phys_in(sysfs: &Sysfs, dir: &Path) -> Vec<Phy> {
    let names = names_in(dir).unwrap_or_default();
    let phys = names.iter().filter(|name| name.starts_with("phy-"));
    phys.map(|name| Phy::read(sysfs, name)).collect()
}

/// An expander: a switch of SAS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expander {
    /// Kernel name: `expander-0:0`.
    pub name: String,
    /// Vendor.
    pub vendor: Option<String>,
    /// Product.
    pub product: Option<String>,
    /// Revision.
    pub revision: Option<String>,
    /// What each of its phys may use at most: the least of what they say, since nobody tells which of them lead up.
    /// Absent where it shows none, or one with a link does not say.
    pub max_rate: Option<SasRate>,
}

/// A drive, or an enclosure, at the end of the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndDevice {
    /// Kernel name: `end_device-0:0:3`.
    pub name: String,
    /// Address of its port: the two ports of a drive have two.
    pub sas_address: Option<String>,
    /// Protocols it answers: `ssp` a SAS drive, `stp` or `sata` a SATA drive.
    pub protocols: Vec<String>,
    /// Slot in the enclosure.
    pub bay: Fact<u64>,
}

impl EndDevice {
    /// Whether it is a SATA drive spoken to through SAS (STP).
    #[must_use]
    pub fn is_sata(&self) -> bool {
        let has = |name: &str| self.protocols.iter().any(|protocol| protocol == name);
        !has("ssp") && (has("stp") || has("sata"))
    }
}

/// The way from an HBA to a drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SasWay {
    /// Ports on the way: the HBA's first, then one of each expander. The way is as fast as the sum of each port's
    /// phys, and a single drive as one phy.
    pub ports: Vec<SasPort>,
    /// Expanders on the way, the one at the HBA first.
    pub expanders: Vec<Expander>,
    /// The drive.
    pub end: EndDevice,
}

impl SasWay {
    /// The way to a SCSI device's folder; `None` where the kernel shows no SAS above it.
    #[must_use]
    pub fn of(sysfs: &Sysfs, device_dir: &Path) -> Option<Self> {
        let (mut ports, mut expanders, mut end) = (Vec::new(), Vec::new(), None);
        for dir in device_dir.ancestors() {
            let Some(name) = dir.file_name().and_then(|name| name.to_str()) else {
                break;
            };
            if name.starts_with("end_device-") {
                end = Some(end_device(sysfs, name));
            } else if name.starts_with("expander-") {
                expanders.push(expander(sysfs, dir, name));
            } else if name.starts_with("port-") {
                ports.push(SasPort::read(sysfs, dir, name));
            } else if name.starts_with("host") {
                break;
            }
        }
        ports.reverse();
        expanders.reverse();
        Some(Self {
            ports,
            expanders,
            end: end?,
        })
    }
}

fn end_device(sysfs: &Sysfs, name: &str) -> EndDevice {
    let dir = sysfs.sys("class/sas_device").join(name);
    let protocols = read_word(&dir.join("target_port_protocols")).ok().flatten();
    let words = protocols.unwrap_or_default();
    EndDevice {
        name: name.to_owned(),
        sas_address: read_word(&dir.join("sas_address")).ok().flatten(),
        protocols: words
            .split(',')
            .map(|word| word.trim().to_owned())
            .filter(|word| !word.is_empty() && word != "none")
            .collect(),
        bay: read_u64(&dir.join("bay_identifier")).map_err(Into::into),
    }
}

fn expander(sysfs: &Sysfs, device_dir: &Path, name: &str) -> Expander {
    let dir = sysfs.sys("class/sas_expander").join(name);
    let word = |file: &str| read_word(&dir.join(file)).ok().flatten();
    let phys = phys_in(sysfs, device_dir);
    // A phy that is not there (SMP: vacant) tells no rates.
    let most = |phy: &Phy| phy.max_rate.as_ref().ok().copied();
    let is_told = phys
        .iter()
        .all(|phy| phy.rate.is_err() || phy.max_rate.is_ok());
    Expander {
        name: name.to_owned(),
        vendor: word("vendor_id"),
        product: word("product_id"),
        revision: word("product_rev"),
        max_rate: phys.iter().filter_map(most).min().filter(|_| is_told),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_sas_and_ata_are_read() {
        for (text, rate) in [
            ("1.5 Gbit", SasRate::G1_5),
            ("3.0 Gbit", SasRate::G3),
            ("3.0 Gbps", SasRate::G3),
            ("6.0 Gbps", SasRate::G6),
            ("12.0 Gbit", SasRate::G12),
            ("22.5 Gbit", SasRate::G22_5),
        ] {
            assert_eq!(SasRate::parse(text), Some(rate), "{text}");
        }
        for text in ["", "Gbit", "6.5 Gbit", "6.0", "-6.0 Gbit", "Phy disabled"] {
            assert_eq!(SasRate::parse(text), None, "{text}");
        }
        assert_eq!(SasRate::G22_5.to_string(), "22.5 Gbit/s");
        assert_eq!(SasRate::G12.megabits_per_s(), 12_000);
    }
}
