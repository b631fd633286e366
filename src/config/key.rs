//! The keys of a job, by name and by the level they may stand at.

/// A key whose value is one text. `streams`, `name` and the job's own keys are apart: see `schema`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // The names are the keys; the user's documentation of each is the flag's help.
pub enum Key {
    Rw,
    Bs,
    Bssplit,
    Blockalign,
    Rwmixread,
    PercentageRandom,
    RandomDistribution,
    Offset,
    Size,
    Iodepth,
    NumberIos,
    IoSize,
    RateIops,
    RateProcess,
    Fsync,
    Passes,
    Data,
    BatchSubmit,
    BatchCompleteMin,
    BatchCompleteMax,
    Reactors,
    Cpus,
    Runtime,
    RampTime,
    Randseed,
    Stamp,
    Grace,
    MaxErrors,
    CoolDown,
    Steadystate,
    SteadystateDuration,
    SteadystateRampTime,
    Expect,
}

/// Where a mapping of keys stands in a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// `defaults:`
    Defaults,
    /// An entry of `steps:`
    Step,
    /// An entry of `streams:`
    Stream,
    /// `precondition:`
    Precondition,
}

/// Keys of the job itself. `defaults` and `steps` give it structure; the others are also flags.
pub const JOB_KEYS: &[&str] = &[
    "name",
    "about",
    "notes",
    "include",
    "device",
    "backend",
    "precondition",
    "defaults",
    "steps",
    "steady",
    "derive",
];

/// Keys of a step. All but `name` and `instead_of` may stand in `defaults`.
pub const STEP_KEYS: &[&str] = &[
    "name",
    "instead_of",
    "sweep",
    "repeat",
    "rw",
    "bs",
    "bssplit",
    "blockalign",
    "rwmixread",
    "percentage_random",
    "random_distribution",
    "offset",
    "size",
    "iodepth",
    "number_ios",
    "io_size",
    "rate_iops",
    "rate_process",
    "fsync",
    "passes",
    "data",
    "batch",
    "streams",
    "reactors",
    "cpus",
    "runtime",
    "ramp_time",
    "randseed",
    "stamp",
    "grace",
    "max_errors",
    "cool_down",
    "steadystate",
    "steadystate_duration",
    "steadystate_ramp_time",
    "expect",
];

/// Keys of `precondition`.
pub const PRECONDITION_KEYS: &[&str] = &[
    "passes", "rw", "bs", "iodepth", "offset", "size", "io_size", "data", "streams", "reactors",
    "cpus",
];

/// Keys of `steady`.
pub const STEADY_KEYS: &[&str] = &["of", "track", "window", "range", "slope", "rounds"];

/// Keys of an entry of `derive`.
pub const DERIVE_KEYS: &[&str] = &["name", "as", "of", "from", "by"];

/// Keys of an entry of `streams`.
pub const STREAM_KEYS: &[&str] = &[
    "rw",
    "bs",
    "bssplit",
    "blockalign",
    "rwmixread",
    "percentage_random",
    "random_distribution",
    "offset",
    "size",
    "iodepth",
    "number_ios",
    "io_size",
    "rate_iops",
    "rate_process",
    "fsync",
    "passes",
    "data",
];

/// Keys inside `batch`.
pub(super) const BATCH_KEYS: &[&str] = &["submit", "complete_min", "complete_max"];

impl Level {
    /// The names that may stand here.
    #[must_use]
    pub fn names(self) -> &'static [&'static str] {
        match self {
            // `name` and `instead_of` are the first.
            Self::Defaults => &STEP_KEYS[2..],
            Self::Step => STEP_KEYS,
            Self::Stream => STREAM_KEYS,
            Self::Precondition => PRECONDITION_KEYS,
        }
    }
}

impl Key {
    /// Every key.
    pub const ALL: [Key; 33] = [
        Key::Rw,
        Key::Bs,
        Key::Bssplit,
        Key::Blockalign,
        Key::Rwmixread,
        Key::PercentageRandom,
        Key::RandomDistribution,
        Key::Offset,
        Key::Size,
        Key::Iodepth,
        Key::NumberIos,
        Key::IoSize,
        Key::RateIops,
        Key::RateProcess,
        Key::Fsync,
        Key::Passes,
        Key::Data,
        Key::BatchSubmit,
        Key::BatchCompleteMin,
        Key::BatchCompleteMax,
        Key::Reactors,
        Key::Cpus,
        Key::Runtime,
        Key::RampTime,
        Key::Randseed,
        Key::Stamp,
        Key::Grace,
        Key::MaxErrors,
        Key::CoolDown,
        Key::Steadystate,
        Key::SteadystateDuration,
        Key::SteadystateRampTime,
        Key::Expect,
    ];

    /// The name in job files; the parts of `batch` are `batch.submit` and so on.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Key::Rw => "rw",
            Key::Bs => "bs",
            Key::Bssplit => "bssplit",
            Key::Blockalign => "blockalign",
            Key::Rwmixread => "rwmixread",
            Key::PercentageRandom => "percentage_random",
            Key::RandomDistribution => "random_distribution",
            Key::Offset => "offset",
            Key::Size => "size",
            Key::Iodepth => "iodepth",
            Key::NumberIos => "number_ios",
            Key::IoSize => "io_size",
            Key::RateIops => "rate_iops",
            Key::RateProcess => "rate_process",
            Key::Fsync => "fsync",
            Key::Passes => "passes",
            Key::Data => "data",
            Key::BatchSubmit => "batch.submit",
            Key::BatchCompleteMin => "batch.complete_min",
            Key::BatchCompleteMax => "batch.complete_max",
            Key::Reactors => "reactors",
            Key::Cpus => "cpus",
            Key::Runtime => "runtime",
            Key::RampTime => "ramp_time",
            Key::Randseed => "randseed",
            Key::Stamp => "stamp",
            Key::Grace => "grace",
            Key::MaxErrors => "max_errors",
            Key::CoolDown => "cool_down",
            Key::Steadystate => "steadystate",
            Key::SteadystateDuration => "steadystate_duration",
            Key::SteadystateRampTime => "steadystate_ramp_time",
            Key::Expect => "expect",
        }
    }

    /// The key of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.name() == name)
    }

    /// The key of one part of `batch`.
    pub(super) fn of_batch(part: &str) -> Option<Self> {
        Self::of(&format!("batch.{part}"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_lists_of_names_and_the_keys_say_the_same() {
        let mut from_keys: BTreeSet<&str> = Key::ALL
            .iter()
            .map(|key| {
                key.name()
                    .split_once('.')
                    .map_or(key.name(), |(head, _)| head)
            })
            .collect();
        from_keys.extend(["name", "streams", "instead_of", "sweep", "repeat"]);
        assert_eq!(from_keys, STEP_KEYS.iter().copied().collect());
        assert!(STREAM_KEYS.iter().all(|name| STEP_KEYS.contains(name)));
        assert!(!Level::Defaults.names().contains(&"name"));
        assert_eq!(Level::Defaults.names().len(), STEP_KEYS.len() - 2);
        assert!(
            PRECONDITION_KEYS
                .iter()
                .all(|name| STEP_KEYS.contains(name))
        );
        for part in BATCH_KEYS {
            assert!(Key::of_batch(part).is_some());
        }
    }
}
