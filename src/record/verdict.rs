//! What could have bound a result, and what did.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A range of data rates. Both ends are one number where nothing had to be assumed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateBand {
    /// With the least favourable assumption.
    pub low_bytes_per_s: f64,
    /// With the most favourable one: nothing honest lies above it.
    pub high_bytes_per_s: f64,
}

/// A range of rates of I/O.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IopsBand {
    /// With the least favourable assumption.
    pub low_iops: f64,
    /// With the most favourable one.
    pub high_iops: f64,
}

/// What a step's workload can reach at most, by direction. For a mix these are the rates that the whole mix
/// allows, by the share of the direction.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Ceilings {
    /// Toward the host; absent where the step does not read.
    pub read: Option<DirectionCeilings>,
    /// Toward the device; absent where the step does not write.
    pub write: Option<DirectionCeilings>,
}

/// The four figures that a measurement is held against, each where it is known.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DirectionCeilings {
    /// What the narrowest links let through, over all devices of the step.
    pub link: Option<Ceiling>,
    /// What the maker promises.
    pub datasheet: Option<Ceiling>,
    /// What the controller in between is rated for.
    pub controller: Option<Ceiling>,
    /// What the reactors of this step can drive at the cost measured per I/O.
    pub host: Option<Ceiling>,
    /// The lowest of these; absent where none is known. A prediction, not a verdict.
    pub predicted: Option<Predicted>,
}

/// One limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ceiling {
    /// As a data rate.
    pub rate: Option<RateBand>,
    /// As I/Os a second, at the block size of the step.
    pub io: Option<IopsBand>,
    /// The hop, controller or model that sets it.
    pub at: String,
    /// Where the figure comes from.
    pub source: String,
}

/// The lowest limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Predicted {
    /// Which of the four.
    pub kind: CeilingKind,
    /// The data rate it allows at most (the favourable end of its band).
    pub bytes_per_s: f64,
    /// The same as I/Os a second; absent without a block size.
    pub iops: Option<f64>,
}

/// The four kinds of limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CeilingKind {
    /// The links of the path.
    Link,
    /// The device's datasheet.
    Datasheet,
    /// The controller's rating.
    Controller,
    /// This host's reactors.
    Host,
}

impl CeilingKind {
    /// Every kind, in the order of [`DirectionCeilings`].
    pub const ALL: [Self; 4] = [Self::Link, Self::Datasheet, Self::Controller, Self::Host];

    /// The name in records and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Datasheet => "datasheet",
            Self::Controller => "controller",
            Self::Host => "host",
        }
    }
}

impl DirectionCeilings {
    /// The limit of a kind.
    #[must_use]
    pub const fn of(&self, kind: CeilingKind) -> Option<&Ceiling> {
        match kind {
            CeilingKind::Link => self.link.as_ref(),
            CeilingKind::Datasheet => self.datasheet.as_ref(),
            CeilingKind::Controller => self.controller.as_ref(),
            CeilingKind::Host => self.host.as_ref(),
        }
    }
}

/// What bound the result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// What was found.
    pub kind: VerdictKind,
    /// The hop, controller or device it points at; absent where it points at none.
    pub at: Option<String>,
    /// One sentence: the evidence, or what is missing.
    pub why: String,
    /// What the user can do next; empty where there is nothing.
    pub next_step: String,
    /// The measurement in percent of each limit that is known.
    pub shares: Vec<ShareOfCeiling>,
}

/// Kinds of verdicts. The rule for each stands in `src/ceiling/README.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictKind {
    /// A link is full: near its ceiling, on a plateau over depth, all else excluded.
    LinkBound,
    /// Close to a link's ceiling, but not proven.
    LinkLimitedLikely,
    /// The link's best case is below the datasheet: it cannot be reached here.
    DatasheetUnreachable,
    /// The device itself, well below every link, on a plateau.
    DeviceBound,
    /// Devices behind one controller saturate together below every link.
    ControllerBound,
    /// Unlike media give like figures: the platform caps them.
    PlatformCapped,
    /// The host's reactors; proven by burning time.
    HostBound,
    /// More was measured than the link can carry: what is known of the link is wrong.
    LinkDataDistrusted,
    /// The evidence is not complete.
    Undecided,
}

impl VerdictKind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::LinkBound,
        Self::LinkLimitedLikely,
        Self::DatasheetUnreachable,
        Self::DeviceBound,
        Self::ControllerBound,
        Self::PlatformCapped,
        Self::HostBound,
        Self::LinkDataDistrusted,
        Self::Undecided,
    ];

    /// The name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LinkBound => "link-bound",
            Self::LinkLimitedLikely => "link-limited-likely",
            Self::DatasheetUnreachable => "datasheet-unreachable",
            Self::DeviceBound => "device-bound",
            Self::ControllerBound => "controller-bound",
            Self::PlatformCapped => "platform-capped",
            Self::HostBound => "host-bound",
            Self::LinkDataDistrusted => "link-data-distrusted",
            Self::Undecided => "undecided",
        }
    }

    /// The name for people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::LinkLimitedLikely => "link-limited, likely",
            Self::DatasheetUnreachable => "datasheet unreachable here",
            Self::LinkDataDistrusted => "the link data cannot be trusted",
            other => other.name(),
        }
    }
}

impl Verdict {
    /// The verdict where evidence is missing.
    #[must_use]
    pub fn undecided(why: impl Into<String>) -> Self {
        Self {
            kind: VerdictKind::Undecided,
            at: None,
            why: why.into(),
            next_step: String::new(),
            shares: Vec::new(),
        }
    }
}

/// The measurement against one limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShareOfCeiling {
    /// `read` or `write`.
    pub direction: String,
    /// Which limit.
    pub of: CeilingKind,
    /// In percent of the favourable end of the band: the measurement reached at least this.
    pub low_pct: f64,
    /// In percent of the unfavourable end.
    pub high_pct: f64,
}

/// A criterion of `expect`, and whether it was met.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Criterion {
    /// As it was written: `read_iops>=1000k`.
    pub text: String,
    /// The figure's name; its unit is in `limit` and `measured` alike: `iops`, `bytes_per_s`, `ns`, `count`.
    pub figure: String,
    /// Its unit.
    pub unit: String,
    /// What it was held against.
    pub limit: f64,
    /// What was measured; absent without a sample, which is a miss.
    pub measured: Option<f64>,
    /// Whether it was met.
    pub is_met: bool,
}
