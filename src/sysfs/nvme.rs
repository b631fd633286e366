//! NVMe namespaces as the kernel names them, and their generic (`ng`) nodes.

use super::{
    DevNum, Sysfs, SysfsError, names_in, optional, read_text, read_u64, read_word, real_path,
};
use std::path::Path;

/// What the kernel knows of one namespace (or of one path to it).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Namespace {
    /// Namespace ID.
    pub nsid: Option<u64>,
    /// World-wide names in one spelling: `uuid.` and `eui.` with bare hex digits (an NGUID is a 32-digit `eui.`).
    pub identities: Vec<String>,
    /// Model of the controller or subsystem.
    pub model: Option<String>,
    /// Serial number of the controller or subsystem: all its namespaces share it.
    pub serial: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
    /// `pcie`, `tcp`, `rdma`; absent on a multipath head.
    pub transport: Option<String>,
}

impl Namespace {
    /// Reads the folder of a namespace's block device.
    ///
    /// # Errors
    /// [`SysfsError`] where a file exists but is unreadable or garbled.
    pub fn read(dir: &Path) -> Result<Self, SysfsError> {
        // A multipath path (`nvme0c1n1`) and a plain namespace hang below their controller; a head below
        // the subsystem. `device` leads there in either case, and so does the folder above.
        let above = real_path(&dir.join("device")).or_else(|_| real_path(&dir.join("..")))?;
        Ok(Self {
            nsid: optional(read_u64(&dir.join("nsid")))?,
            identities: identities(dir)?,
            model: read_word(&above.join("model"))?,
            serial: read_word(&above.join("serial"))?,
            firmware: read_word(&above.join("firmware_rev"))?,
            transport: read_word(&above.join("transport"))?,
        })
    }
}

/// Whether a block device of this name is an NVMe namespace or a path to one.
#[must_use]
pub fn is_nvme(name: &str) -> bool {
    name.strip_prefix("nvme")
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn identities(dir: &Path) -> Result<Vec<String>, SysfsError> {
    let mut found = Vec::new();
    for (file, prefix) in [("uuid", "uuid"), ("nguid", "eui"), ("eui", "eui")] {
        if let Some(text) = read_word(&dir.join(file))? {
            found.extend(world_wide(prefix, &text));
        }
    }
    // `wwid` repeats the best of these; a `nvme.` one is only vendor, serial and model, which are no
    // world-wide name.
    if let Some(text) = read_word(&dir.join("wwid"))? {
        for prefix in ["uuid", "eui"] {
            let name = text
                .strip_prefix(prefix)
                .and_then(|rest| rest.strip_prefix('.'));
            found.extend(name.and_then(|name| world_wide(prefix, name)));
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// One spelling for `0025385b-91b0…`, `00 25 38 …` and `0025385b91b0…`; all zero means not set (NVMe
/// Base, Identify Namespace: NGUID and EUI64 "shall be cleared to 0h" when not supported).
fn world_wide(prefix: &str, text: &str) -> Option<String> {
    let digits: String = text
        .chars()
        .filter(|c| !matches!(c, ' ' | '-'))
        .map(|c| c.to_ascii_lowercase())
        .collect();
    let is_hex = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit());
    let is_set = digits.chars().any(|c| c != '0');
    (is_hex && is_set).then(|| format!("{prefix}.{digits}"))
}

/// The generic node of a namespace: `ng0n1` stands beside `nvme0n1`, with the same numbers whether the
/// namespace hangs below its controller or below a multipath subsystem.
///
/// # Errors
/// [`SysfsError`] where the node exists but its number is unreadable or garbled.
pub fn generic_node(sysfs: &Sysfs, name: &str) -> Result<Option<(String, DevNum)>, SysfsError> {
    let Some(rest) = name.strip_prefix("nvme").filter(|_| is_nvme(name)) else {
        return Ok(None);
    };
    let generic = format!("ng{rest}");
    let path = sysfs.sys("class/nvme-generic").join(&generic).join("dev");
    let Some(text) = optional(read_text(&path))? else {
        return Ok(None);
    };
    let dev = DevNum::parse(&text)
        .ok_or_else(|| SysfsError::garbled(&path, &text, "a device number such as 241:0"))?;
    Ok(Some((generic, dev)))
}

/// The block device's name that a generic node with this number stands beside.
///
/// # Errors
/// [`SysfsError`] where the class exists but cannot be listed, or a number is garbled.
pub fn block_of_generic(sysfs: &Sysfs, dev: DevNum) -> Result<Option<String>, SysfsError> {
    let class = sysfs.sys("class/nvme-generic");
    for name in optional(names_in(&class))?.unwrap_or_default() {
        let text = read_text(&class.join(&name).join("dev"))?;
        if DevNum::parse(&text) == Some(dev) {
            return Ok(name.strip_prefix("ng").map(|rest| format!("nvme{rest}")));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_spelling_and_zeros_name_nothing() {
        let expect = Some("eui.0025385b91b00f01".to_owned());
        assert_eq!(world_wide("eui", "00 25 38 5b 91 b0 0f 01"), expect);
        assert_eq!(world_wide("eui", "0025385B91B00F01"), expect);
        assert_eq!(world_wide("eui", "0000000000000000"), None);
        assert_eq!(
            world_wide("uuid", "00000000-0000-0000-0000-000000000000"),
            None
        );
        assert_eq!(world_wide("eui", "not hex"), None);
        assert_eq!(world_wide("eui", ""), None);
    }

    #[test]
    fn only_numbered_names_are_namespaces() {
        assert!(is_nvme("nvme0n1") && is_nvme("nvme12c3n4"));
        assert!(!is_nvme("nvmex") && !is_nvme("sda") && !is_nvme("nvme-fabrics"));
    }
}
