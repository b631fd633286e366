//! The address of a PCI function: domain, bus, device, function.

use std::fmt;
use std::str::FromStr;

/// Address of a PCI function. Domains go past `ffff`: Intel VMD puts its drives into `10000` and above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bdf {
    /// Domain (segment); firmware's are 16 bits wide, those that the kernel makes up lie above.
    pub domain: u32,
    /// Bus.
    pub bus: u8,
    /// Device, 0 to 31.
    pub device: u8,
    /// Function, 0 to 7.
    pub function: u8,
}

impl Bdf {
    /// Reads the kernel's spelling, `0000:01:00.0` or `10000:e1:00.0`, with nothing around it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (domain, rest) = text.split_once(':')?;
        if !(4..=8).contains(&domain.len()) {
            return None;
        }
        let short = Self::parse_short(rest)?;
        Some(Self {
            domain: hex(domain)?,
            ..short
        })
    }

    /// Reads what a user may type: the kernel's spelling, or without the domain (`01:00.0`), which is 0.
    #[must_use]
    pub fn parse_typed(text: &str) -> Option<Self> {
        let text = text.trim();
        Self::parse(text).or_else(|| Self::parse_short(text))
    }

    fn parse_short(text: &str) -> Option<Self> {
        let (bus, rest) = text.split_once(':')?;
        let (device, function) = rest.split_once('.')?;
        if (bus.len(), device.len(), function.len()) != (2, 2, 1) {
            return None;
        }
        let byte = |text| u8::try_from(hex(text)?).ok();
        Some(Self {
            domain: 0,
            bus: byte(bus)?,
            device: byte(device).filter(|device| *device < 32)?,
            function: byte(function).filter(|function| *function < 8)?,
        })
    }
}

/// Digits only: `from_str_radix` alone would take a sign.
fn hex(text: &str) -> Option<u32> {
    let plain = text.chars().all(|c| c.is_ascii_hexdigit());
    u32::from_str_radix(text, 16).ok().filter(|_| plain)
}

impl fmt::Display for Bdf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            domain,
            bus,
            device,
            function,
        } = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function}")
    }
}

/// The text is no PCI address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no PCI address such as 0000:01:00.0")]
pub struct BadBdf(pub String);

impl FromStr for Bdf {
    type Err = BadBdf;

    fn from_str(text: &str) -> Result<Self, BadBdf> {
        Self::parse_typed(text).ok_or_else(|| BadBdf(text.chars().take(60).collect()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_are_read_with_any_domain() {
        let vmd = Bdf::parse("10000:e1:1f.7").unwrap();
        assert_eq!(
            (vmd.domain, vmd.bus, vmd.device, vmd.function),
            (0x10000, 0xe1, 31, 7)
        );
        assert_eq!(vmd.to_string(), "10000:e1:1f.7");
        assert_eq!(Bdf::parse_typed("01:00.0"), Bdf::parse("0000:01:00.0"));
        assert_eq!("0000:0A:00.0".parse::<Bdf>().unwrap().bus, 10);
        for bad in [
            "",
            "0000:01:00",
            "000:01:00.0",
            "0000:01:20.0",
            "0000:01:00.8",
            "0000:1:00.0",
            "0000:01:00.0x",
            "+000:01:00.0",
            "0000:+1:00.0",
            "123456789:00:00.0",
            "pci0000:00",
            "6:0:0:0",
        ] {
            assert_eq!(Bdf::parse(bad), None, "{bad}");
        }
        assert_eq!("nvme0".parse::<Bdf>(), Err(BadBdf("nvme0".to_owned())));
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_back(domain: u32, bus: u8, device in 0_u8..32, function in 0_u8..8) {
            let bdf = Bdf { domain, bus, device, function };
            prop_assert_eq!(Bdf::parse(&bdf.to_string()), Some(bdf));
        }

        #[test]
        fn any_text_is_read_without_panic(text in ".{0,20}") {
            let _ = Bdf::parse_typed(&text);
        }
    }
}
