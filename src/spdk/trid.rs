//! Transport IDs: `trtype:PCIe traddr:0000:01:00.0`, `trtype:TCP traddr:… trsvcid:… subnqn:…`,
//! `trtype:VFIOUSER traddr:/dir subnqn:…`, each with `ns:N` or `ns:all`; or a bare PCI address.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Longest address that SPDK takes, in bytes (NVMe-oF: 256).
const ADDRESS_BYTES: usize = 256;
/// Longest qualified name, in bytes (Base, "NVMe Qualified Names": 223).
const NQN_BYTES: usize = 223;

/// What is missing where no subsystem is named.
const NQN_EXAMPLE: &str =
    "subnqn:nqn.2026-01.io.example:disk (without it SPDK attaches as to a discovery controller)";

/// How a controller is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// The PCI bus, through vfio-pci or a UIO driver.
    Pcie,
    /// NVMe over TCP.
    Tcp,
    /// NVMe over RDMA.
    Rdma,
    /// A controller in another process, over shared memory.
    VfioUser,
}

impl Transport {
    /// SPDK's name for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pcie => "PCIE",
            Self::Tcp => "TCP",
            Self::Rdma => "RDMA",
            Self::VfioUser => "VFIOUSER",
        }
    }

    /// Whether there are submission queues in memory with doorbells, so that ringing can be deferred.
    #[must_use]
    pub const fn has_doorbells(self) -> bool {
        matches!(self, Self::Pcie | Self::VfioUser)
    }
}

/// A PCI address. Domains above ffff exist (Intel VMD).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bdf {
    /// Domain, 32 bits.
    pub domain: u32,
    /// Bus.
    pub bus: u8,
    /// Device, 0 to 31.
    pub device: u8,
    /// Function, 0 to 7.
    pub function: u8,
}

impl FromStr for Bdf {
    type Err = TridError;

    /// `[domain:]bus:device.function` in hexadecimal.
    fn from_str(text: &str) -> Result<Self, TridError> {
        let bad = || TridError::BadBdf(text.to_owned());
        let hex = |part: &str, digits: std::ops::RangeInclusive<usize>, max: u32| {
            let fits =
                digits.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_hexdigit());
            fits.then(|| u32::from_str_radix(part, 16).ok())
                .flatten()
                .filter(|value| *value <= max)
        };
        let (front, function) = text.rsplit_once('.').ok_or_else(bad)?;
        let (front, device) = front.rsplit_once(':').ok_or_else(bad)?;
        let (domain, bus) = front.rsplit_once(':').unwrap_or(("0000", front));
        let domain = hex(domain, 4..=8, u32::MAX).ok_or_else(bad)?;
        let byte = |part, digits, max| {
            hex(part, digits, max)
                .and_then(|value| u8::try_from(value).ok())
                .ok_or_else(bad)
        };
        Ok(Self {
            domain,
            bus: byte(bus, 2..=2, 0xff)?,
            device: byte(device, 2..=2, 31)?,
            function: byte(function, 1..=1, 7)?,
        })
    }
}

impl fmt::Display for Bdf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:04x}:{:02x}:{:02x}.{:x}",
            self.domain, self.bus, self.device, self.function
        )
    }
}

/// Which namespaces of the controller are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NamespaceChoice {
    /// Not said: fine where there is one.
    Only,
    /// This one.
    Id(u32),
    /// Every active one.
    All,
}

/// Where a controller is, and which of its namespaces.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TransportId {
    /// How it is reached.
    pub transport: Transport,
    /// PCI address, IP address or folder.
    pub address: String,
    /// TCP or RDMA port.
    pub service: Option<String>,
    /// Qualified name of the subsystem.
    pub subnqn: Option<String>,
    /// Which namespaces.
    pub namespace: NamespaceChoice,
}

/// Why a text is not a transport ID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TridError {
    /// Not a PCI address.
    #[error("`{0}` is not a PCI address: write domain:bus:device.function, as 0000:01:00.0")]
    BadBdf(String),
    /// A word without key and value.
    #[error(
        "`{0}` in a transport ID is not key:value; known keys are trtype, traddr, trsvcid, subnqn, adrfam, ns"
    )]
    BadWord(String),
    /// A key twice.
    #[error("the transport ID gives {0} twice")]
    Twice(String),
    /// A key is missing.
    #[error("the transport ID `{text}` lacks {key}: {example}")]
    Missing {
        /// The text.
        text: String,
        /// What is missing.
        key: &'static str,
        /// How it looks.
        example: &'static str,
    },
    /// Not a transport.
    #[error("`{0}` is not a transport: PCIE, TCP, RDMA and VFIOUSER are")]
    BadTransport(String),
    /// A value that cannot be.
    #[error("`{value}` is not a {what}")]
    BadValue {
        /// What it should be.
        what: &'static str,
        /// What it is.
        value: String,
    },
}

impl TransportId {
    /// Whether the text means to be a transport ID or PCI address rather than a path.
    #[must_use]
    pub fn looks_like_one(text: &str) -> bool {
        let first = text.split_whitespace().next().unwrap_or_default();
        let is_type = first
            .get(..6)
            .is_some_and(|start| start.eq_ignore_ascii_case("trtype"));
        is_type || first.parse::<Bdf>().is_ok()
    }

    /// The PCI address, for [`Transport::Pcie`].
    #[must_use]
    pub fn bdf(&self) -> Option<Bdf> {
        (self.transport == Transport::Pcie)
            .then(|| self.address.parse().ok())
            .flatten()
    }

    /// The controller's part in SPDK's words, without the namespace.
    #[must_use]
    pub fn controller_text(&self) -> String {
        let mut text = format!("trtype:{}", self.transport.name());
        if let (Transport::Tcp | Transport::Rdma, Ok(ip)) =
            (self.transport, self.address.parse::<IpAddr>())
        {
            text += if ip.is_ipv4() {
                " adrfam:IPv4"
            } else {
                " adrfam:IPv6"
            };
        }
        text = format!("{text} traddr:{}", self.address);
        if let Some(service) = &self.service {
            text = format!("{text} trsvcid:{service}");
        }
        if let Some(subnqn) = &self.subnqn {
            text = format!("{text} subnqn:{subnqn}");
        }
        text
    }

    fn check(self, text: &str) -> Result<Self, TridError> {
        let missing = |key, example| TridError::Missing {
            text: text.to_owned(),
            key,
            example,
        };
        let bad = |what, value: &str| {
            Err(TridError::BadValue {
                what,
                value: value.to_owned(),
            })
        };
        if self.address.is_empty()
            || self.address.len() > ADDRESS_BYTES
            || self.address.contains('\0')
        {
            return bad("transport address (1 to 256 bytes)", &self.address);
        }
        if let Some(nqn) = self
            .subnqn
            .as_ref()
            .filter(|nqn| nqn.is_empty() || nqn.len() > NQN_BYTES || nqn.contains('\0'))
        {
            return bad("qualified name (1 to 223 bytes)", nqn);
        }
        match self.transport {
            Transport::Pcie => {
                let address = self.address.parse::<Bdf>()?.to_string();
                Ok(Self { address, ..self })
            }
            Transport::Tcp | Transport::Rdma => {
                if self.address.parse::<IpAddr>().is_err() {
                    return bad("numeric IP address", &self.address);
                }
                let service = self
                    .service
                    .as_ref()
                    .ok_or_else(|| missing("trsvcid", "trsvcid:4420"))?;
                if service.parse::<u16>().is_err() {
                    return bad("port number", service);
                }
                if self.subnqn.is_none() {
                    return Err(missing("subnqn", NQN_EXAMPLE));
                }
                Ok(self)
            }
            Transport::VfioUser if self.subnqn.is_none() => Err(missing("subnqn", NQN_EXAMPLE)),
            Transport::VfioUser => Ok(self),
        }
    }
}

impl FromStr for TransportId {
    type Err = TridError;

    fn from_str(text: &str) -> Result<Self, TridError> {
        let mut words = text.split_whitespace().peekable();
        let mut fields: [(&str, Option<&str>); 6] = [
            ("trtype", None),
            ("traddr", None),
            ("trsvcid", None),
            ("subnqn", None),
            ("adrfam", None),
            ("ns", None),
        ];
        // A bare PCI address may stand in front of `ns:`.
        let bare = words.next_if(|word| word.parse::<Bdf>().is_ok());
        for word in words {
            let bad = || TridError::BadWord(word.to_owned());
            let (key, value) = word.split_once([':', '=']).ok_or_else(bad)?;
            let field = fields
                .iter_mut()
                .find(|(name, _)| name.eq_ignore_ascii_case(key))
                .ok_or_else(bad)?;
            if field.1.replace(value).is_some() {
                return Err(TridError::Twice(field.0.to_owned()));
            }
        }
        let field = |name| {
            fields
                .iter()
                .find(|(key, _)| *key == name)
                .and_then(|(_, value)| *value)
        };
        let missing = |key, example| TridError::Missing {
            text: text.to_owned(),
            key,
            example,
        };
        let transport = match (bare, field("trtype")) {
            (Some(_), None) => Transport::Pcie,
            (Some(_), Some(_)) => return Err(TridError::Twice("the address".to_owned())),
            (None, None) => return Err(missing("trtype", "trtype:TCP")),
            (None, Some(name)) => [
                Transport::Pcie,
                Transport::Tcp,
                Transport::Rdma,
                Transport::VfioUser,
            ]
            .into_iter()
            .find(|transport| transport.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| TridError::BadTransport(name.to_owned()))?,
        };
        let address = bare
            .or(field("traddr"))
            .ok_or_else(|| missing("traddr", "traddr:127.0.0.1"))?;
        let namespace = match field("ns") {
            None => NamespaceChoice::Only,
            Some(all) if all.eq_ignore_ascii_case("all") => NamespaceChoice::All,
            Some(id) => match id.parse() {
                Ok(id) if (1..u32::MAX).contains(&id) => NamespaceChoice::Id(id),
                _ => {
                    return Err(TridError::BadValue {
                        what: "namespace (1 and up, or all)",
                        value: id.to_owned(),
                    });
                }
            },
        };
        Self {
            transport,
            address: address.to_owned(),
            service: field("trsvcid").map(str::to_owned),
            subnqn: field("subnqn").map(str::to_owned),
            namespace,
        }
        .check(text)
    }
}

impl fmt::Display for TransportId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.controller_text())?;
        match self.namespace {
            NamespaceChoice::Only => Ok(()),
            NamespaceChoice::Id(id) => write!(f, " ns:{id}"),
            NamespaceChoice::All => f.write_str(" ns:all"),
        }
    }
}

#[cfg(test)]
#[path = "trid_tests.rs"]
mod tests;
