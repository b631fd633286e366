//! `steady` and `derive`: what is judged over steps, read and checked against the steps there are.

use super::error::ConfigError;
use super::expand::Expanded;
use super::key::{DERIVE_KEYS, STEADY_KEYS};
use super::place::{Place, Word};
use super::rounds::{Derive, Deriving, Grouping, Rounds, StepFigure};
use super::schema::{Fields, Job};
use super::suggest::hint_for;
use super::value::{self, Why};

/// SNIA PTS 2.0.2: five rounds, 20 % and 10 % of the mean, 25 rounds at most.
const WINDOW_COUNT: usize = 5;
const RANGE_PCT: f64 = 20.0;
const SLOPE_PCT: f64 = 10.0;
const MOST_ROUNDS_COUNT: usize = 25;

/// The entries of a mapping, read one by one.
struct Reader<'a> {
    files: &'a [String],
    fields: &'a Fields,
    outer: &'static str,
}

impl<'a> Reader<'a> {
    /// Refuses entries that are not known.
    fn new(
        job: &'a Job,
        fields: &'a Fields,
        outer: &'static str,
        known: &[&str],
    ) -> Result<Self, ConfigError> {
        let files = &job.files;
        for (index, (name, _)) in fields.entries.iter().enumerate() {
            let place = Place::named(files, name.at, &name.text);
            if !known.contains(&name.text.as_str()) {
                let hint = hint_for(&name.text, known);
                return Err(ConfigError::UnknownKey { place, hint });
            }
            if fields.entries[..index]
                .iter()
                .any(|(other, _)| other.text == name.text)
            {
                let why = "the key stands twice in one mapping; keep one of them".to_owned();
                return Err(ConfigError::Syntax { place, why });
            }
        }
        Ok(Self {
            files,
            fields,
            outer,
        })
    }

    fn words(&self, key: &str) -> &'a [Word] {
        let entry = self
            .fields
            .entries
            .iter()
            .find(|(name, _)| name.text == key);
        entry.map_or(&[], |(_, words)| words)
    }

    fn refuse(&self, word: &Word, key: &str, why: Why) -> ConfigError {
        ConfigError::Value {
            place: Place::named(self.files, word.at, &format!("{}.{key}", self.outer)),
            why,
        }
    }

    /// The value of a key that takes one.
    fn one<T>(
        &self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, Why>,
    ) -> Result<Option<T>, ConfigError> {
        match self.words(key) {
            [] => Ok(None),
            [word] => parse(&word.text)
                .map(Some)
                .map_err(|why| self.refuse(word, key, why)),
            [word, ..] => Err(self.refuse(word, key, "it takes one value, not a list".to_owned())),
        }
    }

    /// Names of steps, each of which there is.
    fn steps(&self, key: &str, known: impl Fn(&str) -> bool) -> Result<Vec<String>, ConfigError> {
        let words = self.words(key);
        if let Some(word) = words.iter().find(|word| !known(&word.text)) {
            return Err(self.refuse(word, key, format!("there is no step `{}`", word.text)));
        }
        Ok(words.iter().map(|word| word.text.clone()).collect())
    }
}

/// Reads `steady`.
pub(super) fn rounds(job: &Job, steps: &[Expanded]) -> Result<Option<Rounds>, ConfigError> {
    let Some(fields) = &job.steady else {
        return Ok(None);
    };
    let reader = Reader::new(job, fields, "steady", STEADY_KEYS)?;
    let count =
        |text: &str| value::count(text).map(|count| usize::try_from(count).unwrap_or(usize::MAX));
    let window_count = reader
        .one("window", |text| match count(text)? {
            0..=2 => Err(format!(
                "`{text}` is too few: a line needs at least 3 rounds"
            )),
            count => Ok(count),
        })?
        .unwrap_or(WINDOW_COUNT);
    let most_count = reader
        .one("rounds", |text| match count(text)? {
            count if count < window_count => Err(format!(
                "`{text}` rounds never fill a window of {window_count}"
            )),
            count if count > 1000 => Err(format!("`{text}` is more than 1000 rounds")),
            count => Ok(count),
        })?
        .unwrap_or(MOST_ROUNDS_COUNT.max(window_count));
    let is_step = |name: &str| {
        steps
            .iter()
            .any(|step| step.name == name && !step.origin.is_precondition)
    };
    let mut track = reader.steps("track", is_step)?;
    if track.is_empty() {
        let measured = steps.iter().filter(|step| !step.origin.is_precondition);
        track = measured.map(|step| step.name.clone()).collect();
    }
    Ok(Some(Rounds {
        of: reader.one("of", value::figure)?.unwrap_or(StepFigure::Iops),
        track,
        window_count,
        range_pct: reader.one("range", value::percent)?.unwrap_or(RANGE_PCT),
        slope_pct: reader.one("slope", value::percent)?.unwrap_or(SLOPE_PCT),
        // A first look is one round, and judges nothing.
        most_count: if job.quick.is_some() { 1 } else { most_count },
    }))
}

/// Reads `derive`.
pub(super) fn derive(job: &Job, steps: &[Expanded]) -> Result<Vec<Derive>, ConfigError> {
    let mut all: Vec<Derive> = Vec::new();
    for fields in &job.derive {
        let reader = Reader::new(job, fields, "derive", DERIVE_KEYS)?;
        let missing = |key: &str| ConfigError::Syntax {
            place: Place::named(&job.files, fields.at, "derive"),
            why: format!("a derived figure needs `{key}`"),
        };
        let name = reader
            .one("name", |text| Ok(text.to_owned()))?
            .ok_or_else(|| missing("name"))?;
        let deriving = reader
            .one("as", |text| {
                value::one_of(text, &Deriving::ALL.map(|way| (way.name(), way)))
            })?
            .ok_or_else(|| missing("as"))?;
        let by = [
            ("all", Grouping::All),
            ("step", Grouping::Step),
            ("point", Grouping::Point),
        ];
        let by = reader.one("by", |text| value::one_of(text, &by))?;
        let from = reader.steps("from", |name| {
            steps.iter().any(|step| step.origin.step == name)
        })?;
        if deriving == Deriving::Ratio && from.len() != 2 {
            return Err(missing("from: [DIVIDEND, DIVISOR]"));
        }
        all.push(Derive {
            name,
            deriving,
            of: reader.one("of", value::figure)?.unwrap_or(StepFigure::Iops),
            from,
            by: by.unwrap_or(match deriving {
                Deriving::Slices | Deriving::Fairness => Grouping::Point,
                _ => Grouping::All,
            }),
        });
    }
    Ok(all)
}
