//! Swap areas in use, from `/proc/swaps` (proc_swaps(5)).

use super::{Sysfs, SysfsError, optional, read_text, unescape_octal};
use std::path::{Path, PathBuf};

/// One swap area.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swap {
    /// Device or file, as the kernel names it.
    pub path: PathBuf,
    /// A file on a file system, not a device.
    pub is_file: bool,
}

/// Every swap area in use; none where the kernel has no swap at all.
///
/// # Errors
/// [`SysfsError`] where the list exists but is unreadable or garbled.
pub fn swaps(sysfs: &Sysfs) -> Result<Vec<Swap>, SysfsError> {
    let path = sysfs.proc("swaps");
    let Some(text) = optional(read_text(&path))? else {
        return Ok(Vec::new());
    };
    let mut lines = text.lines();
    if let Some(header) = lines.next().filter(|line| !line.starts_with("Filename")) {
        return Err(SysfsError::garbled(
            &path,
            header,
            "the header of the swap list",
        ));
    }
    lines
        .map(|line| {
            parse_line(line)
                .ok_or_else(|| SysfsError::garbled(&path, line, "a line of the swap list"))
        })
        .collect()
}

fn parse_line(line: &str) -> Option<Swap> {
    let mut words = line.split_whitespace();
    let path = unescape_octal(words.next()?);
    let is_file = match words.next()? {
        "file" => true,
        "partition" => false,
        _ => return None,
    };
    words.next()?.parse::<u64>().ok()?;
    let path = path.strip_suffix(" (deleted)").unwrap_or(&path);
    Some(Swap {
        path: Path::new(path).to_owned(),
        is_file,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn devices_and_files_with_blanks_are_read() {
        let device = parse_line("/dev/dm-1      partition\t8388604\t\t0\t\t-2").unwrap();
        assert_eq!(
            (device.path.to_str(), device.is_file),
            (Some("/dev/dm-1"), false)
        );
        let file = parse_line(r"/my\040swap\040(deleted)   file  1020 0 -3").unwrap();
        assert_eq!((file.path.to_str(), file.is_file), (Some("/my swap"), true));
    }

    #[test]
    fn garbled_lines_are_no_swap_and_no_silence() {
        for bad in [
            "",
            "/dev/sda2",
            "/dev/sda2 disk 4 0 -2",
            "/dev/sda2 partition many 0 -2",
        ] {
            assert_eq!(parse_line(bad), None, "{bad}");
        }
    }

    #[test]
    fn no_list_is_no_swap_but_a_garbled_list_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let sysfs = Sysfs::at(folder.path());
        assert_eq!(swaps(&sysfs), Ok(Vec::new()));
        std::fs::create_dir(folder.path().join("proc")).unwrap();
        std::fs::write(folder.path().join("proc/swaps"), "what\n").unwrap();
        assert!(matches!(swaps(&sysfs), Err(SysfsError::Garbled { .. })));
    }

    proptest! {
        #[test]
        fn any_line_is_read_without_panic(line in ".{0,80}") {
            let _ = parse_line(&line);
        }
    }
}
