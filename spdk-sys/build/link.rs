//! From pkg-config's words to cargo's link lines.

use std::collections::BTreeSet;
use std::path::Path;

/// Needed by the target programs only, not by the NVMe driver.
const TARGET_ONLY: [&str; 3] = ["vfio-user", "json-c", "aio"];

/// pkg-config's words, sorted by what they ask for; order within a kind is kept.
#[derive(Default)]
pub struct Words {
    folders: Vec<String>,
    /// Registered by constructors (transports, DPDK's drivers): linked whole.
    whole: Vec<String>,
    /// Plain archives.
    archives: Vec<String>,
    /// Libraries of the system.
    system: Vec<String>,
}

impl Words {
    /// Sorts the words. `-Wl,…` and `-pthread` need no line of ours.
    pub fn parse(words: &[String]) -> Self {
        let mut out = Self::default();
        let mut seen = BTreeSet::new();
        for word in words {
            if !seen.insert(word.as_str()) {
                continue;
            }
            if let Some(folder) = word.strip_prefix("-L") {
                out.folders.push(folder.to_owned());
            } else if let Some(name) = word
                .strip_prefix("-l:lib")
                .and_then(|name| name.strip_suffix(".a"))
            {
                out.library(name, true);
            } else if let Some(name) = word.strip_prefix("-l") {
                out.library(name, false);
            } else if word.ends_with(".a") {
                out.archive(Path::new(word));
            }
        }
        out
    }

    fn library(&mut self, name: &str, is_static: bool) {
        let list = match name {
            name if TARGET_ONLY.contains(&name) => return,
            name if name.starts_with("spdk_") || name.starts_with("rte_") => &mut self.whole,
            _ if is_static => &mut self.archives,
            _ => &mut self.system,
        };
        if !list.iter().any(|known| known == name) {
            list.push(name.to_owned());
        }
    }

    fn archive(&mut self, path: &Path) {
        let name = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .and_then(|stem| stem.strip_prefix("lib"));
        if let (Some(folder), Some(name)) = (path.parent().and_then(Path::to_str), name) {
            if !self.folders.iter().any(|known| known == folder) {
                self.folders.push(folder.to_owned());
            }
            self.library(name, true);
        }
    }

    /// Tells cargo. `-bundle` keeps the archives out of our rlib: they are linked where the program is.
    pub fn print(&self) {
        for folder in &self.folders {
            println!("cargo:rustc-link-search=native={folder}");
        }
        for name in &self.whole {
            println!("cargo:rustc-link-lib=static:+whole-archive,-bundle={name}");
        }
        for name in &self.archives {
            println!("cargo:rustc-link-lib=static:-bundle={name}");
        }
        for name in &self.system {
            println!("cargo:rustc-link-lib=dylib={name}");
        }
    }
}
