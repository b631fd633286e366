//! Job files: the one module that names the YAML crate. It turns YAML into the schema, keeps the place
//! of every value, and says in our words what is wrong.

use super::error::ConfigError;
use super::key::{BATCH_KEYS, Key, Level};
use super::place::{At, Place, Word};
use super::schema::{Job, Keys, Step, Streams};
use super::suggest::hint_for;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_yaml::{Error as YamlError, Location, Spanned};
use std::fmt;
use std::path::Path;

/// A job is a page of text; these keep a hostile or mistaken file from eating the machine.
const MAX_FILE_BYTES: usize = 4 << 20;
const MAX_NODES_COUNT: usize = 100_000;

impl Job {
    /// Reads a job file.
    ///
    /// # Errors
    /// [`ConfigError::Read`], and everything [`Job::from_yaml`] refuses.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let name = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|error| ConfigError::Read {
            path: name.clone(),
            errno: crate::errno::Errno::of(&error),
        })?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count();
            syntax(
                &name,
                line_at(line as u64, 1),
                "",
                "the file is not UTF-8 text",
            )
        })?;
        Self::from_yaml(&text, &name)
    }

    /// Reads a job from YAML text; `file` is the name that errors carry.
    ///
    /// # Errors
    /// [`ConfigError::Syntax`], [`ConfigError::UnknownKey`], or [`ConfigError::Value`] where a text is
    /// not what its key allows.
    pub fn from_yaml(text: &str, file: &str) -> Result<Self, ConfigError> {
        if text.len() > MAX_FILE_BYTES {
            return Err(syntax(
                file,
                line_at(1, 1),
                "",
                "the file is larger than 4 MiB; a job is a page of text",
            ));
        }
        let options = serde_yaml::options! {
            budget: serde_yaml::budget! { max_nodes: MAX_NODES_COUNT, max_documents: 1 },
            with_snippet: false,
        };
        let raw: RawJob = serde_yaml::from_str_with_options(text, options)
            .map_err(|error| translate(error.without_snippet(), text, file))?;
        let job = Self {
            file: Some(file.to_owned()),
            name: raw.name,
            devices: raw.device.unwrap_or_default().0,
            backend: raw.backend,
            defaults: raw.defaults.unwrap_or_default().0,
            steps: raw.steps.unwrap_or_default(),
            flags: Step::default(),
        };
        if job.steps.is_empty() {
            return Err(syntax(
                file,
                At::Default,
                "steps",
                "a job file needs at least one step, such as\nsteps:\n  - { rw: randread, bs: 4k, iodepth: 32 }",
            ));
        }
        job.check_words()?;
        Ok(job)
    }
}

fn syntax(file: &str, at: At, key: &str, why: &str) -> ConfigError {
    let place = match at {
        // Without a place the file is named in front of the key.
        At::Default => Place::named(None, at, &format!("{file}: {key}")),
        _ => Place::named(Some(file), at, key),
    };
    ConfigError::Syntax {
        place,
        why: why.to_owned(),
    }
}

fn line_at(line: u64, column: u64) -> At {
    At::File {
        line: u32::try_from(line).unwrap_or(u32::MAX),
        column: u32::try_from(column).unwrap_or(u32::MAX),
    }
}

fn at_of(location: Location) -> At {
    line_at(location.line(), location.column())
}

/// The crate's error in our words.
fn translate(error: &YamlError, text: &str, file: &str) -> ConfigError {
    let at = error.location().map_or(At::Default, at_of);
    match error {
        YamlError::AliasError { error, .. } => translate(error, text, file),
        YamlError::SerdeUnknownField {
            field, expected, ..
        } => ConfigError::UnknownKey {
            place: Place::named(Some(file), at, field),
            hint: hint_for(field, expected),
        },
        YamlError::DuplicateMappingKey { key, .. } => syntax(
            file,
            at,
            key.as_deref().unwrap_or_default(),
            "the key stands twice in one mapping; keep one of them",
        ),
        YamlError::MultipleDocuments { .. } => syntax(
            file,
            at,
            "",
            "a job file holds one document; remove the `---` and what follows",
        ),
        YamlError::Unexpected { expected, .. } => {
            let wanted = match *expected {
                "string scalar" | "scalar" => "it takes one value, not a list or a mapping",
                "sequence start" => "it takes a list: lines that begin with `- `",
                "mapping start" => "a mapping of keys is needed here: `key: value`",
                other => other,
            };
            syntax(file, at, key_near(text, at), wanted)
        }
        // The crate appends the place, which ours already has.
        other => {
            let shown = other.to_string();
            let why = shown.split(" at line ").next().unwrap_or(&shown);
            syntax(file, at, key_near(text, at), why)
        }
    }
}

/// The key that a place in the text belongs to: the last `word:` at or before it on its line. Errors
/// inside the YAML crate know the place but not the key.
fn key_near(text: &str, at: At) -> &str {
    let At::File { line, column } = at else {
        return "";
    };
    let row = text.lines().nth(line as usize - 1).unwrap_or_default();
    let end = row
        .char_indices()
        .nth((column as usize).saturating_sub(1))
        .map_or(row.len(), |(index, _)| index);
    let Some((head, _)) = row[..end].rsplit_once(':') else {
        return "";
    };
    let start = head
        .rfind(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
        .map_or(0, |index| index + 1);
    &head[start..]
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawJob {
    #[serde(default, deserialize_with = "given")]
    name: Option<Word>,
    #[serde(default, deserialize_with = "given")]
    device: Option<Devices>,
    #[serde(default, deserialize_with = "given")]
    backend: Option<Word>,
    #[serde(default)]
    defaults: Option<Defaults>,
    #[serde(default)]
    steps: Option<Vec<Step>>,
}

/// A key that is there has a value, even an empty one: `iodepth:` alone must not pass for no key at all.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        // Read as text, so that `0x1000` and `007` stay as written.
        let spanned = Spanned::<Option<String>>::deserialize(from)?;
        Ok(Self {
            text: spanned.value.unwrap_or_default(),
            at: at_of(spanned.referenced),
        })
    }
}

/// A value that may have several shapes.
enum Shape {
    Text(String),
    List(Vec<Word>),
    Pairs(Vec<(Word, Word)>),
    Maps(Vec<Keys>),
}

struct ShapeVisitor {
    /// Whether the entries of a list are mappings.
    maps: bool,
    wanted: &'static str,
}

impl<'de> Visitor<'de> for ShapeVisitor {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.wanted)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Shape, E> {
        Ok(Shape::Text(text.to_owned()))
    }

    fn visit_bool<E: de::Error>(self, truth: bool) -> Result<Shape, E> {
        Ok(Shape::Text(truth.to_string()))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Shape, E> {
        Ok(Shape::Text(number.to_string()))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Shape, E> {
        Ok(Shape::Text(number.to_string()))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Shape, E> {
        Ok(Shape::Text(number.to_string()))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Shape, E> {
        Ok(Shape::Text(String::new()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Shape, A::Error> {
        if self.maps {
            let mut maps = Vec::new();
            while let Some(StreamKeys(keys)) = entries.next_element()? {
                maps.push(keys);
            }
            return Ok(Shape::Maps(maps));
        }
        let mut words = Vec::new();
        while let Some(word) = entries.next_element()? {
            words.push(word);
        }
        Ok(Shape::List(words))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Shape, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = entries.next_entry()? {
            pairs.push(pair);
        }
        Ok(Shape::Pairs(pairs))
    }
}

/// Generates a carrier for one of the uses of [`Shape`].
macro_rules! shaped {
    ($name:ident, $maps:expr, $wanted:expr) => {
        struct $name(Shape);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let visitor = ShapeVisitor {
                    maps: $maps,
                    wanted: $wanted,
                };
                from.deserialize_any(visitor).map(Self)
            }
        }
    };
}

shaped!(DeviceShape, false, "a device or a list of devices");
shaped!(
    CpusShape,
    false,
    "CPUs such as 0-3,8 or a list of CPU numbers"
);
shaped!(
    SplitShape,
    false,
    "sizes and shares such as 4k/60:64k/40 or {4k: 60, 64k: 40}"
);
shaped!(
    StreamsShape,
    true,
    "a number of streams or a list of mappings"
);

#[derive(Default)]
struct Devices(Vec<Word>);

impl<'de> Deserialize<'de> for Devices {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Spanned {
            value, referenced, ..
        } = Spanned::<DeviceShape>::deserialize(from)?;
        let at = at_of(referenced);
        match value.0 {
            Shape::Text(text) => Ok(Self(vec![Word { text, at }])),
            Shape::List(words) if !words.is_empty() => Ok(Self(words)),
            _ => Err(de::Error::custom("it takes a device or a list of devices")),
        }
    }
}

#[derive(Default)]
struct Defaults(Step);

impl<'de> Deserialize<'de> for Defaults {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(LevelVisitor(Level::Defaults))
            .map(Self)
    }
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(LevelVisitor(Level::Step))
    }
}

struct StreamKeys(Keys);

impl<'de> Deserialize<'de> for StreamKeys {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let step = from.deserialize_map(LevelVisitor(Level::Stream))?;
        Ok(Self(step.keys))
    }
}

/// Reads a mapping of keys; refuses names that may not stand at this level.
struct LevelVisitor(Level);

impl<'de> Visitor<'de> for LevelVisitor {
    type Value = Step;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping of keys")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Step, A::Error> {
        let mut step = Step::default();
        while let Some(name) = entries.next_key::<String>()? {
            if !self.0.names().contains(&name.as_str()) {
                return Err(de::Error::unknown_field(&name, self.0.names()));
            }
            match name.as_str() {
                "name" => step.name = Some(entries.next_value()?),
                "streams" => step.streams = Some(entries.next_value()?),
                "batch" => step.keys.extend(entries.next_value::<BatchKeys>()?.0),
                "cpus" => {
                    step.keys.insert(Key::Cpus, entries.next_value::<Cpus>()?.0);
                }
                "bssplit" => {
                    step.keys
                        .insert(Key::Bssplit, entries.next_value::<Bssplit>()?.0);
                }
                other => {
                    let key = Key::of(other)
                        .ok_or_else(|| de::Error::unknown_field(other, self.0.names()))?;
                    step.keys.insert(key, entries.next_value()?);
                }
            }
        }
        Ok(step)
    }
}

struct Cpus(Word);

impl<'de> Deserialize<'de> for Cpus {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Spanned {
            value, referenced, ..
        } = Spanned::<CpusShape>::deserialize(from)?;
        let text = match value.0 {
            Shape::Text(text) => text,
            Shape::List(words) => join(words.iter().map(|word| word.text.clone()), ","),
            _ => {
                return Err(de::Error::custom(
                    "it takes CPUs such as 0-3,8 or a list of them",
                ));
            }
        };
        Ok(Self(Word {
            text,
            at: at_of(referenced),
        }))
    }
}

struct Bssplit(Word);

impl<'de> Deserialize<'de> for Bssplit {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Spanned {
            value, referenced, ..
        } = Spanned::<SplitShape>::deserialize(from)?;
        let text = match value.0 {
            Shape::Text(text) => text,
            Shape::Pairs(pairs) => join(
                pairs
                    .iter()
                    .map(|(size, share)| format!("{}/{}", size.text, share.text)),
                ":",
            ),
            _ => {
                return Err(de::Error::custom(
                    "it takes sizes and shares such as 4k/60:64k/40 or {4k: 60, 64k: 40}",
                ));
            }
        };
        Ok(Self(Word {
            text,
            at: at_of(referenced),
        }))
    }
}

fn join(parts: impl Iterator<Item = String>, between: &str) -> String {
    parts.collect::<Vec<_>>().join(between)
}

struct BatchKeys(Keys);

impl<'de> Deserialize<'de> for BatchKeys {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Parts;

        impl<'de> Visitor<'de> for Parts {
            type Value = Keys;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping with submit, complete_min, complete_max")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Keys, A::Error> {
                let mut keys = Keys::new();
                while let Some(name) = entries.next_key::<String>()? {
                    let key = Key::of_batch(&name)
                        .ok_or_else(|| de::Error::unknown_field(&name, BATCH_KEYS))?;
                    keys.insert(key, entries.next_value()?);
                }
                Ok(keys)
            }
        }

        from.deserialize_map(Parts).map(Self)
    }
}

impl<'de> Deserialize<'de> for Streams {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Spanned {
            value, referenced, ..
        } = Spanned::<StreamsShape>::deserialize(from)?;
        let at = at_of(referenced);
        match value.0 {
            Shape::Text(text) => Ok(Self::Count(Word { text, at })),
            Shape::Maps(streams) if !streams.is_empty() => Ok(Self::List { at, streams }),
            _ => Err(de::Error::custom(
                "it takes a number of streams, or a list with at least one mapping",
            )),
        }
    }
}

/// The names that the reader accepts at the top, for the test that holds them against [`JOB_KEYS`].
#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::key::JOB_KEYS;
    use super::*;

    /// What serde itself lists as allowed where a key is unknown.
    fn expected_at(text: &str) -> Vec<&'static str> {
        match serde_yaml::from_str::<RawJob>(text)
            .err()
            .unwrap()
            .without_snippet()
        {
            YamlError::SerdeUnknownField { expected, .. } => expected.clone(),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn serde_accepts_exactly_the_listed_keys() {
        assert_eq!(expected_at("bogus: 1\n"), JOB_KEYS);
        assert_eq!(
            expected_at("defaults: { bogus: 1 }\n"),
            Level::Defaults.names()
        );
        assert_eq!(expected_at("steps: [{ bogus: 1 }]\n"), Level::Step.names());
        assert_eq!(
            expected_at("steps: [{ streams: [{ bogus: 1 }] }]\n"),
            Level::Stream.names()
        );
        assert_eq!(
            expected_at("steps: [{ batch: { bogus: 1 } }]\n"),
            BATCH_KEYS
        );
    }

    #[test]
    fn the_key_of_a_place_is_found_on_its_line() {
        let text = "a:\n  - {rw: read, bs: [1]}\n";
        assert_eq!(key_near(text, line_at(2, 20)), "bs");
        assert_eq!(key_near(text, line_at(2, 10)), "rw");
        assert_eq!(key_near(text, line_at(9, 1)), "");
        assert_eq!(key_near("é: [1]", line_at(1, 4)), "");
    }
}
