//! Mappings whose entries have one value or several, and `precondition`, read with their places.

use super::errors::at_of;
use super::words::LevelVisitor;
use crate::config::key::{Key, Level};
use crate::config::place::Word;
use crate::config::schema::{Fields, Step};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_yaml::Spanned;
use std::fmt;

/// One value or a list of them.
#[derive(Default)]
pub(super) struct Listed(pub(super) Vec<Word>);

/// The texts of one value or of several; places are added around them.
enum Texts {
    One(String),
    Many(Vec<Word>),
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct One;

        impl<'de> Visitor<'de> for One {
            type Value = Texts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value or a list of values")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Texts, E> {
                Ok(Texts::One(text.to_owned()))
            }

            fn visit_bool<E: de::Error>(self, truth: bool) -> Result<Texts, E> {
                Ok(Texts::One(truth.to_string()))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Texts, E> {
                Ok(Texts::One(number.to_string()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Texts, E> {
                Ok(Texts::One(number.to_string()))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Texts, E> {
                Ok(Texts::One(number.to_string()))
            }

            fn visit_unit<E: de::Error>(self) -> Result<Texts, E> {
                Ok(Texts::One(String::new()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Texts, A::Error> {
                let mut words = Vec::new();
                while let Some(word) = entries.next_element()? {
                    words.push(word);
                }
                Ok(Texts::Many(words))
            }
        }

        from.deserialize_any(One)
    }
}

impl<'de> Deserialize<'de> for Listed {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Spanned {
            value, referenced, ..
        } = Spanned::<Texts>::deserialize(from)?;
        match value {
            Texts::One(text) => Ok(Self(vec![Word {
                text,
                at: at_of(referenced),
            }])),
            Texts::Many(words) if !words.is_empty() => Ok(Self(words)),
            Texts::Many(_) => Err(de::Error::custom("the list is empty; give it a value")),
        }
    }
}

/// The entries of a mapping, in the order they are written.
struct Entries(Vec<(Word, Vec<Word>)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct All;

        impl<'de> Visitor<'de> for All {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping of names to values")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Entries, A::Error> {
                let mut all = Vec::new();
                while let Some((name, values)) = entries.next_entry::<Word, Listed>()? {
                    all.push((name, values.0));
                }
                Ok(Entries(all))
            }
        }

        from.deserialize_map(All)
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Spanned {
            value, referenced, ..
        } = Spanned::<Entries>::deserialize(from)?;
        Ok(Self {
            at: at_of(referenced),
            entries: value.0,
        })
    }
}

/// `precondition: 2`, or a mapping of keys.
pub(super) struct Precondition(pub(super) Step);

impl<'de> Deserialize<'de> for Precondition {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Spanned {
            value, referenced, ..
        } = Spanned::<PreconditionShape>::deserialize(from)?;
        let step = match value {
            PreconditionShape::Keys(step) => *step,
            PreconditionShape::Passes(text) => {
                let mut step = Step::default();
                let at = at_of(referenced);
                step.keys.insert(Key::Passes, Word { text, at });
                step
            }
        };
        Ok(Self(step))
    }
}

enum PreconditionShape {
    Passes(String),
    Keys(Box<Step>),
}

impl<'de> Deserialize<'de> for PreconditionShape {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Shape;

        impl<'de> Visitor<'de> for Shape {
            type Value = PreconditionShape;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of passes or a mapping of keys")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<PreconditionShape, E> {
                Ok(PreconditionShape::Passes(text.to_owned()))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<PreconditionShape, E> {
                Ok(PreconditionShape::Passes(number.to_string()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<PreconditionShape, E> {
                Ok(PreconditionShape::Passes(number.to_string()))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<PreconditionShape, E> {
                Ok(PreconditionShape::Passes(number.to_string()))
            }

            fn visit_unit<E: de::Error>(self) -> Result<PreconditionShape, E> {
                Ok(PreconditionShape::Passes(String::new()))
            }

            fn visit_map<A: MapAccess<'de>>(self, keys: A) -> Result<PreconditionShape, A::Error> {
                let keys = MapAccessDeserializer::new(keys);
                let step = keys.deserialize_map(LevelVisitor(Level::Precondition))?;
                Ok(PreconditionShape::Keys(Box::new(step)))
            }
        }

        from.deserialize_any(Shape)
    }
}
