//! The formats that a namespace could be given. Only the device knows: it is asked by a command.

use super::FormatEntry;
use crate::sys::nvme::identified;
use std::collections::HashMap;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A controller in trouble answers late or never: the list does not wait for it.
const ASK_FOR: Duration = Duration::from_secs(1);

/// Formats by node, of those that answer in time.
pub(super) fn ask(nodes: &[String]) -> HashMap<String, Vec<FormatEntry>> {
    let (answers, heard) = mpsc::channel();
    for node in nodes.iter().cloned() {
        let answers = answers.clone();
        let work = move || {
            let found = of_node(Path::new(&node));
            // Who asked may have left.
            let _ = answers.send((node, found));
        };
        if std::thread::Builder::new().spawn(work).is_err() {
            break;
        }
    }
    drop(answers);
    let until = Instant::now() + ASK_FOR;
    let mut known = HashMap::new();
    while let Ok((node, found)) =
        heard.recv_timeout(until.saturating_duration_since(Instant::now()))
    {
        if let Some(found) = found {
            known.insert(node, found);
        }
    }
    known
}

fn of_node(node: &Path) -> Option<Vec<FormatEntry>> {
    let (namespace, table) = identified(node).ok()?;
    let entry = |(index, format): (u8, &crate::proto::nvme::LbaFormat)| {
        Some(FormatEntry {
            index,
            block_bytes: format.block_bytes()?,
            metadata_bytes: format.metadata_bytes,
            relative_performance: format.relative_performance,
            in_use: index == namespace.format_index,
        })
    };
    Some((0..).zip(&table).filter_map(entry).collect())
}
