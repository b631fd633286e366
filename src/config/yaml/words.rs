//! Values that may have several shapes, read with their places.

use super::errors::at_of;
use crate::config::key::{BATCH_KEYS, Key, Level};
use crate::config::place::Word;
use crate::config::schema::{Keys, Step, Streams};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_yaml::Spanned;
use std::fmt;

/// A key that is there has a value, even an empty one: `iodepth:` alone must not pass for no key at all.
pub(super) fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
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
pub(super) struct Devices(pub(super) Vec<Word>);

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
pub(super) struct Defaults(pub(super) Step);

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
pub(super) struct LevelVisitor(pub(super) Level);

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
                "instead_of" => step.instead_of = Some(entries.next_value()?),
                "streams" => step.streams = Some(entries.next_value()?),
                "sweep" => step.sweep = Some(entries.next_value()?),
                "repeat" => step.repeat = Some(entries.next_value()?),
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
