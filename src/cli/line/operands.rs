//! What a word of `lanemark compare` names: a device, or saved records.

use crate::cli::output::saved::{is_folder_of_run, is_json};
use crate::spdk::TransportId;
use crate::sys::whole::read_whole;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Whether an operand names records: files that begin as JSON does, folders of runs, or what ends in `.json`.
pub(in crate::cli) fn is_saved(operand: &str) -> bool {
    let first = Path::new(parts(operand)[0]);
    if is_folder_of_run(first) {
        return true;
    }
    let is_named_so = first.extension().is_some_and(|ending| ending == "json");
    if !first.is_file() {
        return is_named_so && !first.exists();
    }
    is_named_so || read_whole(first, 0, |_| false).is_ok_and(|start| is_json(&start))
}

/// Whether it is surely no record: a node, or a name of a device that is no path.
pub(in crate::cli) fn is_device(name: &str) -> bool {
    let (device, _) = name.rsplit_once('@').unwrap_or((name, ""));
    let head = device.split(':').next().unwrap_or_default();
    let is_node = |path: &Path| {
        let kind = std::fs::metadata(path).map(|found| found.file_type());
        kind.is_ok_and(|kind| kind.is_block_device() || kind.is_char_device())
    };
    matches!(head, "sim" | "null" | "scratch")
        || TransportId::looks_like_one(device)
        || [name, device].iter().any(|path| is_node(Path::new(path)))
}

/// The files of one side. A file whose own name holds a comma is one file.
pub(in crate::cli) fn parts(operand: &str) -> Vec<&str> {
    if Path::new(operand).exists() {
        vec![operand]
    } else {
        operand.split(',').collect()
    }
}
