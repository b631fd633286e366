//! Which of several layers a value comes from, and a ledger of values that were of no use. A key that
//! changes nothing is refused: the user believed it did.

use super::error::ConfigError;
use super::key::Key;
use super::place::{At, Given, Place, Word};
use super::schema::Keys;
use super::value::Why;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Which written values had an effect somewhere. One value of `defaults` is met by many steps: it is
/// refused only where none of them could use it.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// By place: why it was of no use, or `None` once it was.
    entries: RefCell<BTreeMap<(At, Key), Option<Why>>>,
}

impl Ledger {
    fn used(&self, at: At, key: Key) {
        self.entries.borrow_mut().insert((at, key), None);
    }

    fn ignored(&self, at: At, key: Key, why: &str) {
        self.entries
            .borrow_mut()
            .entry((at, key))
            .or_insert_with(|| Some(why.to_owned()));
    }

    /// Refuses the first value that nothing used.
    pub(super) fn settle(&self, files: &[String]) -> Result<(), ConfigError> {
        for ((at, key), why) in self.entries.borrow().iter() {
            if let Some(why) = why {
                return Err(ConfigError::NoEffect {
                    place: Place::of(files, *at, *key),
                    why: why.clone(),
                });
            }
        }
        Ok(())
    }
}

/// The layers that a step or a stream looks its values up in, the strongest first.
#[derive(Debug, Clone)]
pub(super) struct Lookup<'a> {
    pub(super) files: &'a [String],
    pub(super) layers: Vec<&'a Keys>,
    pub(super) ledger: &'a Ledger,
}

impl<'a> Lookup<'a> {
    /// The strongest word of a key, counted as used, with the number of its layer.
    fn take(&self, key: Key) -> Option<(usize, &'a Word)> {
        let (layer, word) = self
            .layers
            .iter()
            .enumerate()
            .find_map(|(layer, keys)| keys.get(&key).map(|word| (layer, word)))?;
        self.ledger.used(word.at, key);
        Some((layer, word))
    }

    /// Reads the strongest word of a key.
    pub(super) fn read<T>(
        &self,
        key: Key,
        parse: fn(&str) -> Result<T, Why>,
    ) -> Result<Option<Given<T>>, ConfigError> {
        Ok(self.read_with_layer(key, parse)?.map(|(_, given)| given))
    }

    /// Reads the strongest word of a key and says which layer it came from.
    pub(super) fn read_with_layer<T>(
        &self,
        key: Key,
        parse: fn(&str) -> Result<T, Why>,
    ) -> Result<Option<(usize, Given<T>)>, ConfigError> {
        let Some((layer, word)) = self.take(key) else {
            return Ok(None);
        };
        let place = Place::of(self.files, word.at, key);
        match parse(&word.text) {
            Ok(value) => Ok(Some((layer, Given { value, place }))),
            Err(why) => Err(ConfigError::Value { place, why }),
        }
    }

    /// Of two keys that exclude each other, the one of the stronger layer.
    pub(super) fn stronger(&self, one: Key, other: Key) -> Option<Key> {
        self.layers.iter().find_map(|keys| {
            if keys.contains_key(&one) {
                Some(one)
            } else if keys.contains_key(&other) {
                Some(other)
            } else {
                None
            }
        })
    }

    /// Notes that the strongest word of each key changes nothing here.
    pub(super) fn ignore(&self, keys: &[Key], why: &str) {
        for key in keys {
            if let Some(word) = self.layers.iter().find_map(|keys| keys.get(key)) {
                self.ledger.ignored(word.at, *key, why);
            }
        }
    }

    /// The place of a key that nobody gave.
    pub(super) fn default_place(&self, key: Key) -> Place {
        Place::of(self.files, At::Default, key)
    }

    /// A value nobody gave.
    pub(super) fn default_of<T>(&self, key: Key, value: T) -> Given<T> {
        Given {
            value,
            place: self.default_place(key),
        }
    }
}
