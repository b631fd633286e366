//! Consent by name: a serial number or a path, never a guess.

use super::finding::Finding;
use super::signature::Signature;
use crate::session::device::identity::{Alias, Device, Identity, Way};
use crate::session::machine::Machine;
use crate::sysfs::{FileId, Node, NodeKind};
use std::path::{Path, PathBuf};

/// What the user allowed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Consent {
    /// Serial numbers and paths of `--allow-write`.
    pub allow_write: Vec<String>,
    /// Signatures of `--overwrite`, by exact name.
    pub overwrite: Vec<Signature>,
}

/// What one word of `--allow-write` is to a device.
#[derive(Debug, PartialEq, Eq)]
enum Word {
    Yes,
    PartOnly,
    NotUnique(Vec<String>),
    NoSerial,
    Other,
}

/// What speaks against writing to a device as far as consent goes; `None` where consent is given.
pub(super) fn for_device(
    machine: &Machine<'_>,
    device: &Device,
    consent: &Consent,
) -> Option<Finding> {
    let words: Vec<(Word, &String)> = consent
        .allow_write
        .iter()
        .map(|word| (judge(machine, device, word), word))
        .collect();
    if words.iter().any(|(judged, _)| *judged == Word::Yes) {
        return None;
    }
    // Of several words that do not do, the one that came closest is explained.
    let closest = |judged: &Word| match judged {
        Word::NotUnique(_) => 3,
        Word::PartOnly => 2,
        Word::NoSerial => 1,
        Word::Yes | Word::Other => 0,
    };
    let names = names_for(machine, device);
    let path = device.node.path.clone();
    let Some((judged, word)) = words.into_iter().max_by_key(|(judged, _)| closest(judged)) else {
        return Some(Finding::NoConsent { names });
    };
    let given = word.clone();
    Some(match judged {
        Word::NotUnique(devices) => Finding::SerialNotUnique {
            serial: given,
            devices,
            path,
        },
        Word::PartOnly => Finding::PartConsent { given, names },
        Word::NoSerial => Finding::NoSerial { given, path },
        Word::Yes | Word::Other => Finding::OtherConsent { given, names },
    })
}

/// The same for a regular file: only its path names it.
pub(super) fn for_file(
    machine: &Machine<'_>,
    path: &Path,
    id: FileId,
    consent: &Consent,
) -> Option<Finding> {
    let is_it = |word: &&String| {
        let node = Node::inspect(machine.sysfs, Path::new(word));
        matches!(node.map(|node| node.kind), Ok(NodeKind::File { id: found, .. }) if found == id)
    };
    let names = vec![path.display().to_string()];
    match consent.allow_write.first() {
        None => Some(Finding::NoConsent { names }),
        Some(_) if consent.allow_write.iter().any(|word| is_it(&word)) => None,
        Some(word) => Some(Finding::OtherConsent {
            given: word.clone(),
            names,
        }),
    }
}

/// For what has no node here (a transport ID, a PCI address on a user-space driver): consent names it the
/// way it was named, or by its serial number where the caller knows that this is unique.
pub(super) fn for_name(name: &str, serial: Option<&str>, consent: &Consent) -> Option<Finding> {
    let serial = serial.map(str::trim).filter(|serial| !serial.is_empty());
    let is_it = |word: &String| word == name || Some(word.trim()) == serial;
    if consent.allow_write.iter().any(is_it) {
        return None;
    }
    let names = serial
        .into_iter()
        .chain([name])
        .map(|word| format!("'{word}'"))
        .collect();
    Some(match consent.allow_write.first() {
        None => Finding::NoConsent { names },
        Some(given) => Finding::OtherConsent {
            given: given.clone(),
            names,
        },
    })
}

fn judge(machine: &Machine<'_>, device: &Device, word: &str) -> Word {
    if let Some(found) = judge_path(machine, device, word) {
        return found;
    }
    let Some(serial) = &device.identity.serial else {
        return if word.contains('/') {
            Word::Other
        } else {
            Word::NoSerial
        };
    };
    if word.trim() != serial.as_str() {
        return if word.trim().is_empty() {
            Word::NoSerial
        } else {
            Word::Other
        };
    }
    let others = others_with(machine, device, serial);
    if others.is_empty() {
        return Word::Yes;
    }
    let own = device.disks.first().map(|disk| disk.name.clone());
    let paths = own.into_iter().chain(others);
    let path = |name: String| machine.node_path(&name).display().to_string();
    Word::NotUnique(paths.map(path).collect())
}

/// `None` where the word is no path that leads anywhere.
fn judge_path(machine: &Machine<'_>, device: &Device, word: &str) -> Option<Word> {
    // A bare word is a serial number, even where a file of that name lies about.
    if !word.contains('/') {
        return None;
    }
    let node = Node::inspect(machine.sysfs, Path::new(word)).ok()?;
    if node.kind == device.node.kind {
        return Some(Word::Yes);
    }
    let name = node
        .path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let named = match node.kind {
        NodeKind::Block(dev) => machine.numbered(dev).map(|found| found.name.clone()),
        NodeKind::Char(_) => name,
        _ => return Some(Word::Other),
    }?;
    let alias = device
        .aliases
        .iter()
        .find(|alias| alias.name == named && is_it(machine, device, alias));
    Some(match alias.map(|alias| alias.way) {
        None => Word::Other,
        Some(Way::Part) => Word::PartOnly,
        Some(_) => Word::Yes,
    })
}

/// A path that may only be the same device (the same serial, no world-wide name to tell) is enough to refuse
/// for, and not enough to consent by.
fn is_it(machine: &Machine<'_>, device: &Device, alias: &Alias) -> bool {
    let first = device
        .disks
        .first()
        .is_some_and(|disk| disk.name == alias.disk);
    let identity = machine
        .named(&alias.disk)
        .and_then(|disk| machine.identity(disk).ok());
    first || identity.is_some_and(|identity| identity.is_surely(&device.identity))
}

/// Other disks with the same serial number that no world-wide name shows to be the same device.
fn others_with(machine: &Machine<'_>, device: &Device, serial: &str) -> Vec<String> {
    let is_other = |identity: &Identity| {
        identity.serial.as_deref() == Some(serial) && !identity.is_surely(&device.identity)
    };
    let own = device.disks.first().map(|disk| disk.name.as_str());
    machine
        .disks()
        .filter(|disk| Some(disk.name.as_str()) != own && disk.dev.is_some())
        .filter(|disk| (machine.identity(disk)).is_ok_and(|identity| is_other(&identity)))
        .map(|disk| disk.name.clone())
        .collect()
}

/// What consent could be given by: the serial where it is there and unique, and the path.
fn names_for(machine: &Machine<'_>, device: &Device) -> Vec<String> {
    let serial = device.identity.serial.clone();
    let unique = serial.filter(|serial| others_with(machine, device, serial).is_empty());
    let path: PathBuf = device.node.path.clone();
    unique
        .into_iter()
        .chain([path.display().to_string()])
        .collect()
}
