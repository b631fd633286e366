//! When a job is steady, and what is derived from its steps: as validated data. What they come to is
//! computed where records are.

/// A figure of a step that a criterion or a derived figure looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepFigure {
    /// I/Os a second, all directions together.
    Iops,
    /// Bytes a second, all directions together.
    BytesPerS,
    /// Mean latency over all directions, nanoseconds.
    MeanNs,
    /// 99th percentile of the direction with the most I/Os, nanoseconds.
    P99Ns,
    /// Largest latency of any direction, nanoseconds.
    MaxNs,
    /// Mean latency of reads, nanoseconds.
    ReadMeanNs,
    /// 99th percentile of reads, nanoseconds.
    ReadP99Ns,
}

impl StepFigure {
    /// Every figure.
    pub const ALL: [Self; 7] = [
        Self::Iops,
        Self::BytesPerS,
        Self::MeanNs,
        Self::P99Ns,
        Self::MaxNs,
        Self::ReadMeanNs,
        Self::ReadP99Ns,
    ];

    /// The name in job files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Iops => "iops",
            Self::BytesPerS => "bytes_per_s",
            Self::MeanNs => "mean_ns",
            Self::P99Ns => "p99_ns",
            Self::MaxNs => "max_ns",
            Self::ReadMeanNs => "read_mean_ns",
            Self::ReadP99Ns => "read_p99_ns",
        }
    }

    /// Its unit in records.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Iops => "iops",
            Self::BytesPerS => "bytes_per_s",
            Self::MeanNs | Self::P99Ns | Self::MaxNs | Self::ReadMeanNs | Self::ReadP99Ns => "ns",
        }
    }
}

/// fio's `steadystate`, as written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyLimit {
    /// IOPS or bytes a second.
    pub of: StepFigure,
    /// Whether the slope is limited, not the deviation.
    pub is_slope: bool,
    /// The limit; a sample a second is the unit of time of a slope.
    pub value: f64,
    /// Whether the limit is a percentage of the mean.
    pub is_pct: bool,
}

/// fio's `steadystate` of one step: it ends early once the last seconds are steady.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadySeconds {
    /// The limit.
    pub limit: SteadyLimit,
    /// Length of the window: samples, one a second.
    pub window_count: usize,
    /// Seconds at the start that are not looked at.
    pub skip_count: usize,
}

/// SNIA PTS: the steps of a job are one round, and rounds are repeated until all tracked steps are steady.
#[derive(Debug, Clone, PartialEq)]
pub struct Rounds {
    /// What is tracked.
    pub of: StepFigure,
    /// Names of the tracked steps; all of them have to be steady.
    pub track: Vec<String>,
    /// Rounds in the window.
    pub window_count: usize,
    /// Largest minus smallest, in percent of the mean, at most.
    pub range_pct: f64,
    /// Rise of the fitted line over the window, in percent of the mean, at most.
    pub slope_pct: f64,
    /// Rounds at most; then it was not attained.
    pub most_count: usize,
}

/// How a derived figure comes from steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deriving {
    /// Smallest, mean and largest.
    Span,
    /// The arithmetic mean.
    Mean,
    /// The largest (the smallest of a latency).
    Best,
    /// The largest, and at which step it was reached first.
    Peak,
    /// The geometric mean: an index.
    Geomean,
    /// The first step's figure divided by the second's.
    Ratio,
    /// Constancy: mean of the means and of the maxima of one-second slices, standard deviation of the means.
    Slices,
    /// The streams' shares of the sum.
    Fairness,
}

impl Deriving {
    /// Every way.
    pub const ALL: [Self; 8] = [
        Self::Span,
        Self::Mean,
        Self::Best,
        Self::Peak,
        Self::Geomean,
        Self::Ratio,
        Self::Slices,
        Self::Fairness,
    ];

    /// The name in job files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Span => "span",
            Self::Mean => "mean",
            Self::Best => "best",
            Self::Peak => "peak",
            Self::Geomean => "geomean",
            Self::Ratio => "ratio",
            Self::Slices => "slices",
            Self::Fairness => "fairness",
        }
    }
}

/// How steps are put together before a figure is derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grouping {
    /// All of them are one group.
    All,
    /// Each step as written, with all of its sweep and repetitions, is a group.
    Step,
    /// Each point of a sweep, with its repetitions, is a group.
    Point,
}

/// A figure that a job asks for over its steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Derive {
    /// Its name.
    pub name: String,
    /// How it is made.
    pub deriving: Deriving,
    /// Of which figure.
    pub of: StepFigure,
    /// From the steps of these names, as written; empty: from all that are measured.
    pub from: Vec<String>,
    /// One figure for each group.
    pub by: Grouping,
}
