//! The way between host and device: its links, what is wrong with them, and what changed while measuring.

use super::RateBand;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The path of one device of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DevicePath {
    /// Place in `Step::devices`.
    pub device_index: u32,
    /// The links, host side first. Empty where none could be seen; then `unseen` says why.
    pub hops: Vec<Hop>,
    /// Place in `hops` of the link that carries least toward the host; absent where no link has a ceiling.
    pub narrowest_index: Option<u32>,
    /// The parts of the way that cannot be seen, each with its reason. Not empty: no verdict about links.
    pub unseen: Vec<Unseen>,
    /// What is wrong with the links, each with a remedy.
    pub findings: Vec<PathFinding>,
    /// Links that were not at the end, or in between, what they were at the start of the window.
    /// Not empty: the verdict is void.
    pub changes: Vec<LinkChange>,
    /// Error counters as they stood before the window, or when the path was looked at without one: since the machine,
    /// the card or the drive came up. Of PCI functions each class, or what of it is not zero.
    #[serde(default)]
    pub counters_before: Vec<CounterTotal>,
    /// Error counters that could be read: their growth over the window, zero included.
    pub counters: Vec<CounterDelta>,
    /// Error counters that could not be read over the window, each with the reason: what they would tell is not known.
    #[serde(default)]
    pub counters_unseen: Vec<Unseen>,
    /// How often speed, width and counters were read, start and end included; 0 where none could be.
    pub samples_count: u64,
}

/// One link: a port on the host's side and what it leads to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hop {
    /// The port on the host's side: a PCI address, `phy-0:0`, `ata1`. Verdicts name it.
    pub name: String,
    /// The other end: a PCI address, a SAS address, a disk.
    pub to: String,
    /// Which kind of link.
    pub kind: LinkKind,
    /// What stands at both ends: `root port to endpoint`, `HBA port to expander`.
    pub what: String,
    /// Driver of the other end; absent where none is bound.
    pub driver: Option<String>,
    /// How it runs now; absent where it cannot be seen.
    pub now: Option<LinkState>,
    /// The most that both ends can do; where only one end tells, what it can do, and the text says so. Absent where
    /// neither does.
    pub most: Option<LinkState>,
    /// Max_Payload_Size in force on the link; absent where not readable (config space needs root) or not PCIe.
    pub mps_bytes: Option<u32>,
    /// Max_Read_Request_Size of the device that fetches the data; absent likewise.
    pub mrrs_bytes: Option<u32>,
    /// Most payload toward the host; absent where speed or width is not known.
    pub read_ceiling: Option<RateBand>,
    /// Most payload toward the device; absent likewise.
    pub write_ceiling: Option<RateBand>,
}

/// Kinds of links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LinkKind {
    /// PCI Express.
    Pcie,
    /// Serial attached SCSI, SSP or STP.
    Sas,
    /// Serial ATA.
    Sata,
    /// The hop of a simulated device: it carries what the device's name says.
    Simulated,
}

/// Speed and width of a link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkState {
    /// In the field's words: `8 GT/s x4`, `12 Gbit/s x4`, `unknown speed x8`.
    pub text: String,
    /// Raw line rate of one lane or phy; for PCIe the same number as its GT/s. Absent where unknown.
    pub lane_gbit_per_s: Option<f64>,
    /// Lanes or phys; absent where unknown.
    pub lanes_count: Option<u32>,
}

/// A part of the way that cannot be seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unseen {
    /// Where: a PCI address, `fabric`, `virtio`.
    pub name: String,
    /// Why nothing can be told of it.
    pub why: String,
    /// The links that are shown are made up as well, as those of virtual machines are: they promise nothing.
    #[serde(default)]
    pub is_invented: bool,
}

/// Something wrong with a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PathFinding {
    /// Stable machine-readable kind.
    pub kind: PathFindingKind,
    /// The hop, by its name.
    pub at: String,
    /// What was found.
    pub text: String,
    /// What to do about it.
    pub next_step: String,
}

/// What can be wrong with a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PathFindingKind {
    /// Slower than both ends can go.
    SpeedDegraded,
    /// Narrower than both ends can go.
    WidthDegraded,
    /// The port can do less than the device: the slot, or what stands above, limits the speed.
    SlowerPort,
    /// The port has fewer lanes than the device.
    NarrowerPort,
    /// The links below a hub can together carry more than the one above it.
    Oversubscribed,
    /// The datasheet promises more than the link lets through.
    DatasheetUnreachable,
    /// Speed or width is not told by the kernel.
    UnknownLink,
    /// A fact of the path is garbled.
    Garbled,
}

/// A link that did not stay what it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkChange {
    /// The hop, by its name.
    pub at: String,
    /// At the start of the window.
    pub before: String,
    /// What it became.
    pub after: String,
    /// When that was seen, seconds into the step, ramp included.
    pub at_s: f64,
}

/// An error counter at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CounterTotal {
    /// Whose: a PCI address, a phy, a disk.
    pub at: String,
    /// Which: `aer correctable BadTLP`, `invalid dwords`, `udma crc errors`.
    pub counter: String,
    /// What it stood at.
    pub total_count: u64,
}

/// Growth of an error counter over the window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CounterDelta {
    /// Whose: a PCI address, a phy, a disk.
    pub at: String,
    /// Which: `aer correctable BadTLP`, `invalid dwords`, `udma crc errors`.
    pub counter: String,
    /// How much it grew; absent where it went backwards (it was reset, or wrapped), or could not be read again.
    pub grown_count: Option<u64>,
    /// It could be read before the window and not after it: what it would tell is not known.
    #[serde(default)]
    pub is_unread: bool,
}

impl CounterDelta {
    /// `grew by 3`, `went backwards`, `could not be read again`.
    #[must_use]
    pub fn words(&self) -> String {
        match self.grown_count {
            Some(count) => format!("grew by {count}"),
            None if self.is_unread => "could not be read again".to_owned(),
            None => "went backwards".to_owned(),
        }
    }
}
