//! Speed and width of a function's link, as sysfs spells them.

use crate::sysfs::absent::{Absent, Fact};
use crate::sysfs::{SysfsError, read_text};
use std::fmt;
use std::path::Path;

/// Raw rate of one lane in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PciSpeed {
    /// PCIe 1.0.
    Gt2_5,
    /// PCIe 2.0.
    Gt5,
    /// PCIe 3.0.
    Gt8,
    /// PCIe 4.0.
    Gt16,
    /// PCIe 5.0.
    Gt32,
    /// PCIe 6.0.
    Gt64,
}

impl PciSpeed {
    /// All, slowest first.
    pub const ALL: [Self; 6] = [
        Self::Gt2_5,
        Self::Gt5,
        Self::Gt8,
        Self::Gt16,
        Self::Gt32,
        Self::Gt64,
    ];

    /// The encoding of Link Capabilities and Link Status (PCIe 6.0, 7.5.3.6 and 7.5.3.8), where Link
    /// Capabilities 2 has bits 1 to 6 for them in this order: 1 for 2.5 GT/s and so on.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        let index = usize::from(code).checked_sub(1)?;
        Self::ALL.get(index).copied()
    }

    /// PCIe generation, 1 to 6.
    #[must_use]
    pub const fn generation(self) -> u8 {
        self as u8 + 1
    }

    /// Transfers per second of one lane, in millions: 2500 for 2.5 GT/s.
    #[must_use]
    pub const fn mega_transfers_per_s(self) -> u32 {
        match self {
            Self::Gt2_5 => 2_500,
            Self::Gt5 => 5_000,
            Self::Gt8 => 8_000,
            Self::Gt16 => 16_000,
            Self::Gt32 => 32_000,
            Self::Gt64 => 64_000,
        }
    }

    /// Reads `8 GT/s` (before Linux 5.7), `8.0 GT/s`, `8.0 GT/s PCIe`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let number = text.strip_suffix(" PCIe").unwrap_or(text);
        let number = number.strip_suffix("GT/s")?.trim_end();
        let number = number.strip_suffix(".0").unwrap_or(number);
        Self::ALL.into_iter().find(|speed| speed.number() == number)
    }

    const fn number(self) -> &'static str {
        match self {
            Self::Gt2_5 => "2.5",
            Self::Gt5 => "5",
            Self::Gt8 => "8",
            Self::Gt16 => "16",
            Self::Gt32 => "32",
            Self::Gt64 => "64",
        }
    }
}

impl fmt::Display for PciSpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} GT/s", self.number())
    }
}

/// Speed and width of a link as one function shows them. A root port or a switch's downstream port shows the
/// link below it; everything else the link above.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkState {
    /// Speed now.
    pub speed: Fact<PciSpeed>,
    /// Lanes in use now.
    pub width_count: Fact<u8>,
    /// Highest speed that the function can do.
    pub max_speed: Fact<PciSpeed>,
    /// Most lanes that the function can use.
    pub max_width_count: Fact<u8>,
}

impl LinkState {
    /// Reads the four files of a function's folder. Cheap enough for once a second during a window.
    #[must_use]
    pub fn read(dir: &Path) -> Self {
        Self {
            speed: speed(&dir.join("current_link_speed")),
            width_count: width(&dir.join("current_link_width")),
            max_speed: speed(&dir.join("max_link_speed")),
            max_width_count: width(&dir.join("max_link_width")),
        }
    }
}

fn speed(path: &Path) -> Fact<PciSpeed> {
    let text = read_text(path)?;
    if let Some(speed) = PciSpeed::parse(&text) {
        return Ok(speed);
    }
    if text.to_ascii_lowercase().starts_with("unknown") {
        let path = path.to_owned();
        return Err(Absent::Unknown { path, text });
    }
    Err(SysfsError::garbled(path, &text, "a link speed such as 8.0 GT/s PCIe").into())
}

/// 0 is a link that is down or none at all, 255 the kernel's `PCIE_LNK_WIDTH_UNKNOWN`.
fn width(path: &Path) -> Fact<u8> {
    let text = read_text(path)?;
    let plain = text.chars().all(|c| c.is_ascii_digit());
    match text.parse::<u8>().ok().filter(|_| plain) {
        Some(lanes_count @ (1 | 2 | 4 | 8 | 12 | 16 | 32)) => Ok(lanes_count),
        Some(0 | 255) => Err(Absent::Unknown {
            path: path.to_owned(),
            text,
        }),
        _ => Err(SysfsError::garbled(path, &text, "a number of lanes").into()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn read(texts: [&str; 2]) -> LinkState {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in ["current_link_speed", "current_link_width"]
            .iter()
            .zip(texts)
        {
            std::fs::write(folder.path().join(name), format!("{text}\n")).unwrap();
        }
        LinkState::read(folder.path())
    }

    #[test]
    fn every_spelling_of_every_kernel_is_read() {
        for (text, speed) in [
            ("2.5 GT/s", PciSpeed::Gt2_5),
            ("2.5 GT/s PCIe", PciSpeed::Gt2_5),
            ("5 GT/s", PciSpeed::Gt5),
            ("5.0 GT/s PCIe", PciSpeed::Gt5),
            ("8 GT/s", PciSpeed::Gt8),
            ("8.0 GT/s", PciSpeed::Gt8),
            ("8.0 GT/s PCIe", PciSpeed::Gt8),
            ("16 GT/s", PciSpeed::Gt16),
            ("16.0 GT/s PCIe", PciSpeed::Gt16),
            ("32.0 GT/s PCIe", PciSpeed::Gt32),
            ("64.0 GT/s PCIe", PciSpeed::Gt64),
        ] {
            assert_eq!(PciSpeed::parse(text), Some(speed), "{text}");
        }
        for text in [
            "",
            "8",
            "GT/s",
            "8.5 GT/s",
            "80 GT/s",
            "-8 GT/s",
            "8.0 MT/s PCIe",
        ] {
            assert_eq!(PciSpeed::parse(text), None, "{text}");
        }
    }

    #[test]
    fn codes_are_those_of_the_specification() {
        assert_eq!(PciSpeed::from_code(1), Some(PciSpeed::Gt2_5));
        assert_eq!(PciSpeed::from_code(6), Some(PciSpeed::Gt64));
        assert_eq!(
            (PciSpeed::from_code(0), PciSpeed::from_code(7)),
            (None, None)
        );
        assert_eq!(PciSpeed::Gt16.generation(), 4);
        assert_eq!(PciSpeed::Gt16.mega_transfers_per_s(), 16_000);
    }

    #[test]
    fn unknown_missing_and_garbled_are_told_apart() {
        let good = read(["8.0 GT/s PCIe", "4"]);
        assert_eq!((good.speed, good.width_count), (Ok(PciSpeed::Gt8), Ok(4)));
        assert!(matches!(good.max_speed, Err(Absent::NotShown { .. })));
        for (speed, width) in [("Unknown", "0"), ("Unknown speed", "255")] {
            let state = read([speed, width]);
            assert!(
                matches!(state.speed, Err(Absent::Unknown { .. })),
                "{speed}"
            );
            assert!(
                matches!(state.width_count, Err(Absent::Unknown { .. })),
                "{width}"
            );
        }
        for (speed, width) in [("fast", "3"), ("", ""), ("8", "x4"), ("8.0 GT/s?", "+4")] {
            let state = read([speed, width]);
            assert!(
                matches!(
                    state.speed,
                    Err(Absent::Unreadable(SysfsError::Garbled { .. }))
                ),
                "{speed}"
            );
            assert!(
                matches!(state.width_count, Err(Absent::Unreadable(_))),
                "{width}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in ".{0,20}") {
            let _ = PciSpeed::parse(&text);
        }
    }
}
