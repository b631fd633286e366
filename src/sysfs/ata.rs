//! ATA links: what was agreed on, what the port could do and what the drive could do.

use super::absent::{Absent, Fact};
use super::sas::{SasRate, rate};
use super::{Sysfs, SysfsError, read_text, read_u64};
use std::path::{Path, PathBuf};

/// The link of one SATA drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AtaLink {
    /// Kernel name of the port: `ata1`.
    pub port: String,
    /// Kernel name of the link: `link1`, behind a port multiplier `link1.2`.
    pub link: String,
    /// Speed now.
    pub rate: Fact<SasRate>,
    /// Highest speed the kernel lets it have; unknown where nothing limits it. It lowers this after errors.
    pub limit: Fact<SasRate>,
    /// Highest speed of the port: firmware's limit, else the AHCI controller's capability.
    pub port_max: Fact<SasRate>,
    /// Highest speed of the drive, from its IDENTIFY data.
    pub drive_max: Fact<SasRate>,
    /// Times the kernel lowered the speed after errors.
    pub slowed_count: Fact<u64>,
    /// Errors in the drive's ring of recent ones (`ering`; the ring holds 32).
    pub recent_errors_count: Fact<u64>,
    /// Folder of the drive as a SCSI device.
    pub scsi_dir: PathBuf,
    dir: PathBuf,
    /// Folder of the drive as an ATA device.
    device_dir: PathBuf,
}

impl AtaLink {
    /// The link to a SCSI device's folder; `None` where it hangs on no ATA port.
    #[must_use]
    pub fn of(sysfs: &Sysfs, device_dir: &Path) -> Option<Self> {
        let name_of = |dir: &Path| Some(dir.file_name()?.to_str()?.to_owned());
        let is_ata = |name: &str| {
            let digits = name.strip_prefix("ata").unwrap_or_default();
            !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
        };
        let mut host = None;
        let mut port = None;
        for dir in device_dir.ancestors() {
            let name = name_of(dir)?;
            if name.starts_with("host") {
                host = Some(name);
            } else if is_ata(&name) {
                port = Some(name);
                break;
            }
        }
        let (host, port) = (host?, port?);
        let number = port.strip_prefix("ata")?;
        // `H:C:T:L`: the channel is the multiplier's port, the target the drive (master 0, slave 1).
        let address = name_of(device_dir)?;
        let mut fields = address.split(':').skip(1);
        let (channel, target) = (fields.next()?.to_owned(), fields.next()?.to_owned());
        let multiplied = format!("link{number}.{channel}");
        let links = sysfs.sys("class/ata_link");
        let (link, device) = if links.join(&multiplied).exists() {
            (multiplied, format!("dev{number}.{channel}.0"))
        } else {
            (format!("link{number}"), format!("dev{number}.{target}"))
        };
        let dir = links.join(&link);
        let device = sysfs.sys("class/ata_device").join(device);
        Some(Self {
            rate: rate(&dir.join("sata_spd")),
            limit: rate(&dir.join("sata_spd_limit")),
            port_max: port_max(&dir, &sysfs.sys("class/scsi_host").join(host)),
            drive_max: drive_max(&device.join("id")),
            slowed_count: slowed(&device),
            recent_errors_count: recent_errors(&device),
            device_dir: device,
            scsi_dir: device_dir.to_owned(),
            port,
            link,
            dir,
        })
    }

    /// The words of the drive's IDENTIFY data.
    ///
    /// # Errors
    /// [`Absent`].
    pub fn identify_words(&self) -> Fact<Vec<u16>> {
        words(&self.device_dir.join("id"))
    }

    /// The most that both ends can do: what both say, or what one says and the link runs at.
    #[must_use]
    pub fn most_of_both(&self) -> Option<SasRate> {
        match (&self.port_max, &self.drive_max) {
            (Ok(port), Ok(drive)) => Some(*port.min(drive)),
            (Ok(one), Err(_)) | (Err(_), Ok(one)) => {
                Some(*one).filter(|one| self.rate.as_ref().is_ok_and(|rate| rate >= one))
            }
            (Err(_), Err(_)) => None,
        }
    }

    /// The same where the word of one end has to do.
    #[must_use]
    pub fn most_of_either(&self) -> Option<SasRate> {
        let known = [&self.port_max, &self.drive_max];
        known
            .into_iter()
            .filter_map(|rate| rate.as_ref().ok().copied())
            .min()
    }

    /// [`Self::slowed_count`] and [`Self::recent_errors_count`], read again.
    pub fn errors_now(&self) -> (Fact<u64>, Fact<u64>) {
        (slowed(&self.device_dir), recent_errors(&self.device_dir))
    }

    /// Speed now, read again.
    ///
    /// # Errors
    /// [`Absent`].
    pub fn rate_now(&self) -> Fact<SasRate> {
        rate(&self.dir.join("sata_spd"))
    }
}

/// AHCI 1.3.1, 3.1.1 CAP, bits 23:20 (ISS): 1, 2 and 3 are 1.5, 3 and 6 Gbit/s.
fn port_max(link_dir: &Path, host_dir: &Path) -> Fact<SasRate> {
    let limit = rate(&link_dir.join("hw_sata_spd_limit"));
    if limit.is_ok() {
        return limit;
    }
    let path = host_dir.join("ahci_host_caps");
    let text = match read_text(&path) {
        Ok(text) => text,
        Err(error) if error.is_absent() => return limit,
        Err(error) => return Err(error.into()),
    };
    let code = u32::from_str_radix(&text, 16)
        .ok()
        .map(|caps| caps >> 20 & 0xf);
    generation(code).ok_or_else(|| {
        let wanted = "the AHCI capabilities with a known speed";
        SysfsError::garbled(&path, &text, wanted).into()
    })
}

const fn generation(code: Option<u32>) -> Option<SasRate> {
    match code {
        Some(1) => Some(SasRate::G1_5),
        Some(2) => Some(SasRate::G3),
        Some(3) => Some(SasRate::G6),
        _ => None,
    }
}

/// The words as the kernel writes them: in hex, eight a line.
fn words(path: &Path) -> Fact<Vec<u16>> {
    let text = read_text(path)?;
    let word = |word: &str| {
        u16::from_str_radix(word, 16)
            .ok()
            .filter(|_| word.len() == 4)
    };
    let all: Option<Vec<u16>> = text.split_whitespace().map(word).collect();
    all.filter(|words| words.len() == 256)
        .ok_or_else(|| SysfsError::garbled(path, &text, "256 words of IDENTIFY data").into())
}

/// Word 76 of IDENTIFY DEVICE (ACS-4, 7.13.6.31): bits 1 to 3 are the speeds that the drive supports. 0 and FFFFh:
/// not a SATA drive.
fn drive_max(path: &Path) -> Fact<SasRate> {
    let bits = words(path)?[76];
    let highest = if bits == 0xffff {
        None
    } else {
        (1..=3).rev().find(|bit| bits & 1 << bit != 0)
    };
    generation(highest).ok_or_else(|| Absent::Lacking {
        path: path.to_owned(),
        what: "SATA speed in word 76",
    })
}

fn slowed(device_dir: &Path) -> Fact<u64> {
    Ok(read_u64(&device_dir.join("spdn_cnt"))?)
}

/// One line an error: `[uptime]what`, in some kernels one that stands for none.
fn recent_errors(device_dir: &Path) -> Fact<u64> {
    let text = read_text(&device_dir.join("ering"))?;
    let is_error = |line: &&str| !line.is_empty() && !line.ends_with("]Unknown");
    Ok(u64::try_from(text.lines().filter(is_error).count()).unwrap_or(u64::MAX))
}
