//! What makers promise: `configs/drives.yaml`, built in.

use serde::Deserialize;

/// One drive or card.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drive {
    /// Its name.
    pub name: String,
    /// Words of the model that it reports; one entry has to be there with all its words. Empty where it is not known
    /// what it reports.
    #[serde(rename = "match")]
    pub words: Vec<String>,
    /// PCI vendor and device where that names the product, for drives whose driver reports no model.
    #[serde(default)]
    pub pci: Vec<String>,
    /// Capacity, 10^12 bytes; of the whole card.
    pub capacity_tb: f64,
    /// Controllers on the card.
    #[serde(default = "one")]
    pub controllers: u32,
    /// Thousands of random reads of 4 KiB a second.
    pub read_kiops: Option<f64>,
    /// Thousands of random writes of 4 KiB a second.
    pub write_kiops: Option<f64>,
    /// Sequential reads, 10^6 bytes a second.
    pub read_mb_per_s: Option<f64>,
    /// Sequential writes, 10^6 bytes a second.
    pub write_mb_per_s: Option<f64>,
}

/// A controller with a rating.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Controller {
    /// Its name.
    pub name: String,
    /// PCI vendor and device, as `lspci -n` writes them.
    pub pci: Vec<String>,
    /// Thousands of I/Os a second.
    pub kiops: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    drives: Vec<Drive>,
    controllers: Vec<Controller>,
}

const fn one() -> u32 {
    1
}

const TEXT: &str = include_str!("../../configs/drives.yaml");

fn file() -> &'static File {
    static FILE: std::sync::OnceLock<File> = std::sync::OnceLock::new();
    FILE.get_or_init(|| serde_yaml::from_str(TEXT).expect("a test reads the built-in file"))
}

/// Every drive that is known.
#[must_use]
pub fn drives() -> &'static [Drive] {
    &file().drives
}

/// The drive of this model and size. Of a card with several controllers each shows a part of the capacity.
#[must_use]
pub fn drive(model: &str, capacity_bytes: u64) -> Option<&'static Drive> {
    let words = words_of(model);
    let is_model = |drive: &&Drive| drive.words.iter().any(|entry| has_all(&words, entry));
    let mut known = drives().iter().filter(is_model);
    known.find(|drive| is_size(drive, capacity_bytes))
}

/// The same by the PCI IDs of a drive whose driver reports no model.
#[must_use]
pub fn drive_on_pci(vendor: u16, device: u16, capacity_bytes: u64) -> Option<&'static Drive> {
    let id = format!("{vendor:04x}:{device:04x}");
    let mut known = drives().iter().filter(|drive| drive.pci.contains(&id));
    known.find(|drive| is_size(drive, capacity_bytes))
}

/// Figures of another size are another drive's.
#[allow(clippy::cast_precision_loss)]
fn is_size(drive: &Drive, capacity_bytes: u64) -> bool {
    let part_tb = drive.capacity_tb / f64::from(drive.controllers);
    let own_tb = capacity_bytes as f64 / 1e12;
    (own_tb - part_tb).abs() <= part_tb / 10.0
}

/// The rating of a controller by its PCI IDs.
#[must_use]
pub fn controller(vendor: u16, device: u16) -> Option<&'static Controller> {
    let id = format!("{vendor:04x}:{device:04x}");
    file().controllers.iter().find(|one| one.pci.contains(&id))
}

fn words_of(text: &str) -> Vec<String> {
    text.to_lowercase()
        .split(|c: char| c.is_whitespace() || matches!(c, '_' | ',' | '/'))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Each word of an entry begins a word of the model; short ones (`ii`, `v2`) must be the whole word.
fn has_all(model: &[String], entry: &str) -> bool {
    words_of(entry).iter().all(|wanted| {
        let is_it = |word: &String| {
            if wanted.len() < 5 {
                word == wanted
            } else {
                word.strip_prefix(wanted.as_str())
                    .is_some_and(|rest| !wanted.starts_with("pm17") || rest.is_empty())
            }
        };
        model.iter().any(is_it)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn name(model: &str, capacity_tb: f64) -> Option<&'static str> {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let bytes = (capacity_tb * 1e12) as u64;
        drive(model, bytes).map(|drive| drive.name.as_str())
    }

    /// The table of methods.md, 8, in its order: kIOPS and MB/s, read and write.
    #[test]
    fn every_row_of_the_table_is_there() {
        let rows: Vec<[f64; 5]> = drives()
            .iter()
            .filter(|drive| drive.read_kiops.is_some())
            .map(|d| {
                let known = |value: Option<f64>| value.unwrap();
                [
                    d.capacity_tb,
                    known(d.read_kiops),
                    known(d.write_kiops),
                    known(d.read_mb_per_s),
                    known(d.write_mb_per_s),
                ]
            })
            .collect();
        let wanted = [
            [2.4, 480.0, 490.0, 3000.0, 2500.0],
            [1.3, 225.0, 345.0, 2800.0, 1300.0],
            [1.3, 235.0, 375.0, 2700.0, 1700.0],
            [1.6, 270.0, 375.0, 2800.0, 1700.0],
            [3.2, 345.0, 385.0, 2700.0, 2200.0],
            [3.2, 345.0, 385.0, 2800.0, 2200.0],
            [2.6, 350.0, 385.0, 2700.0, 2200.0],
            [1.6, 395.0, 270.0, 1550.0, 1100.0],
            [3.2, 770.0, 230.0, 3100.0, 2200.0],
            [2.2, 340.0, 110.0, 2700.0, 1000.0],
            [2.2, 350.0, 103.0, 2700.0, 1000.0],
            [4.8, 269.0, 51.0, 2600.0, 900.0],
            [2.2, 531.0, 59.0, 2700.0, 1400.0],
            [1.4, 750.0, 95.0, 3300.0, 630.0],
            [1.6, 1200.0, 200.0, 6170.0, 2200.0],
            [3.2, 1200.0, 200.0, 6170.0, 2200.0],
            [3.2, 850.0, 80.0, 4500.0, 2600.0],
            [3.2, 1000.0, 180.0, 6800.0, 6000.0],
            [3.2, 750.0, 120.0, 5500.0, 1800.0],
            [3.2, 1000.0, 120.0, 6000.0, 2000.0],
            [3.2, 1000.0, 180.0, 6200.0, 2600.0],
            [3.2, 980.0, 180.0, 6200.0, 2600.0],
        ];
        assert_eq!(rows, wanted);
    }

    #[test]
    fn models_are_matched_by_their_words_and_by_size() {
        for (model, capacity_tb, wanted) in [
            ("INTEL SSDPEDMD016T4", 1.6, Some("Intel P3700 1.6 TB")),
            ("INTEL SSDPE2MD016T4", 1.6, Some("Intel P3700 1.6 TB")),
            ("INTEL SSDPECME032T4", 1.6, Some("Intel P3608")),
            ("KINGSTON DCP1000", 0.8, Some("Kingston DCP1000")),
            ("MS1PC5ED3ORA3.2T", 3.2, Some("Oracle F320")),
            ("SAMSUNG MZPLK3T2HCJL-00003", 3.2, Some("Samsung PM1725")),
            (
                "Dell Express Flash NVMe PM1725 3.2TB AIC",
                3.2,
                Some("Samsung PM1725"),
            ),
            ("SAMSUNG MZPLL3T2HMLS-00003", 3.2, Some("Samsung PM1725a")),
            (
                "Dell Express Flash PM1725a 3.2TB AIC",
                3.2,
                Some("Samsung PM1725a"),
            ),
            ("SAMSUNG MZPLL3T2HAJQ-00005", 3.2, Some("Samsung PM1725b")),
            ("HUSMR7632BHP301", 3.2, Some("HGST SN260 3.2 TB")),
            ("P420m-MTFDGAR1T4MAX", 1.4, Some("Micron P420M")),
            // Another drive of the family, or no such drive.
            ("HUSMR7632BDP301", 3.2, None),
            ("Dell Express Flash PM1725a 1.6TB AIC", 1.6, None),
            ("INTEL SSDPECME040T4", 2.0, None),
            ("Huawei ES3000 V2", 1.6, None),
            ("Samsung SSD 990 PRO 2TB", 2.0, None),
            ("QEMU NVMe Ctrl", 0.1, None),
            ("", 1.6, None),
        ] {
            assert_eq!(name(model, capacity_tb), wanted, "{model} {capacity_tb}");
        }
        let on_pci = |capacity_bytes| drive_on_pci(0x1344, 0x5161, capacity_bytes);
        assert_eq!(on_pci(1_400_000_000_000).unwrap().name, "Micron P420M");
        assert!(on_pci(700_000_000_000).is_none());
        assert!(drive_on_pci(0x1344, 0x5163, 1_400_000_000_000).is_none());
        assert_eq!(controller(0x1000, 0x0072).unwrap().name, "LSI SAS2008");
        assert!(controller(0x1000, 0x0097).is_none());
    }
}
