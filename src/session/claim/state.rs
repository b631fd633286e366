//! What is claimed, remembered in a file that outlives the process: without it nobody could give a device back
//! to the driver it came from after a crash.
//!
//! The folder is below `/run`, which a reboot empties, as a reboot also undoes every claim; entries of another
//! boot are dropped all the same, for machines whose `/run` is kept.

use super::host_kernel::WRITE_LIMIT;
use crate::sysfs::pci::Bdf;
use crate::sysfs::{Node, NodeKind, Sysfs, filesystems, read_text};
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long whoever holds the state is waited for, and after how much of it that is said.
#[derive(Debug, Clone, Copy)]
struct Patience {
    tell_after: Duration,
    at_most: Duration,
}

/// Whoever claims or gives back holds the state for seconds; a stuck kernel may hold it longer.
const PATIENCE: Patience = Patience {
    tell_after: Duration::from_secs(1),
    at_most: Duration::from_secs(60),
};
/// Who gives back has nobody after it to do so: it waits for longer than a claim of devices that hang may take,
/// whose every write is waited for.
const BACK_PATIENCE: Patience = Patience {
    at_most: WRITE_LIMIT.saturating_mul(8),
    ..PATIENCE
};
const LOOK_EVERY: Duration = Duration::from_millis(20);
const FOLDER: &str = "/run/lanemark";
const FILE: &str = "claims.json";
const LOCK: &str = "claims.lock";
const SCHEMA_VERSION: u32 = 1;

/// A namespace of a claimed controller, by the paths it had while the kernel drove it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Former {
    /// Its namespace ID.
    pub nsid: Option<u64>,
    /// The serial number of its drive; absent where that has none.
    #[serde(default)]
    pub serial: Option<String>,
    /// Its nodes and the links to them: `/dev/nvme0n1`, `/dev/ng0n1`, `/dev/disk/by-id/…`.
    pub paths: Vec<PathBuf>,
}

/// One claimed function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its address.
    pub bdf: String,
    /// The driver it came from.
    pub driver_before: Option<String>,
    /// What it was reserved for before.
    pub override_before: Option<String>,
    /// The driver it was given to.
    pub driver: String,
    /// The boot it was claimed in.
    pub boot: String,
    /// The process that claimed it for one run and gives it back; absent for `lanemark claim`.
    pub for_run_of: Option<u32>,
    /// Its namespaces.
    pub namespaces: Vec<Former>,
}

impl Entry {
    /// Its address; `None` in a file that somebody has edited.
    #[must_use]
    pub fn address(&self) -> Option<Bdf> {
        Bdf::parse(&self.bdf)
    }

    /// Whether this process has claimed it for a run of its own.
    #[must_use]
    pub fn is_of(&self, process: u32) -> bool {
        self.for_run_of == Some(process)
    }
}

/// Huge pages that were reserved for claims, to be given back with the last of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reserved {
    /// NUMA node.
    pub node: Option<u32>,
    /// Size of a page.
    pub page_bytes: u64,
    /// Pages there were before.
    pub before_count: u64,
    /// Pages there were afterwards.
    pub after_count: u64,
}

/// Everything that is remembered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    schema_version: u32,
    /// Claimed functions.
    pub claims: Vec<Entry>,
    /// Huge pages.
    pub huge_pages: Vec<Reserved>,
}

/// Why the state file cannot be used. Nothing is claimed without it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// It cannot be read or written.
    #[error("cannot {what} {path}: {why}")]
    Io {
        /// To do what.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// Another lanemark claims or gives back, and does not come to an end.
    #[error(
        "{path} is held by {holder} for {limit_s} s already: see what it waits for; nothing was changed"
    )]
    Held {
        /// The file.
        path: PathBuf,
        /// The process, in words.
        holder: String,
        /// What was waited.
        limit_s: u64,
    },
    /// Somebody else could change what we remember.
    #[error("{path} {why}: what is claimed must not be for others to change; remove it")]
    Unsafe {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// It is no state file.
    #[error(
        "{path} cannot be read: {why}; look at /sys/bus/pci/drivers/vfio-pci for what is claimed, then remove the file"
    )]
    Garbled {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

fn io(what: &'static str, path: &Path, why: &impl std::fmt::Display) -> StateError {
    StateError::Io {
        what,
        path: path.to_owned(),
        why: why.to_string(),
    }
}

/// Who is told, in words, of what may take long.
pub type Told<'a> = &'a dyn Fn(&str);

/// The state, held against other processes until dropped.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    _lock: File,
    /// What is remembered. Changes count once [`Store::save`] has written them.
    pub state: State,
}

impl Store {
    /// Opens it, makes its folder where there is none, and waits for whoever holds it, up to a minute. A wait of
    /// more than a second is `told` once.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn open(sysfs: &Sysfs, told: Told<'_>) -> Result<Self, StateError> {
        Self::open_within(sysfs, PATIENCE, told)
    }

    /// Opens it to give back what is claimed: waits for whoever holds it, up to 20 minutes.
    ///
    /// # Errors
    /// [`StateError`].
    pub(super) fn open_to_give_back(sysfs: &Sysfs, told: Told<'_>) -> Result<Self, StateError> {
        Self::open_within(sysfs, BACK_PATIENCE, told)
    }

    fn open_within(sysfs: &Sysfs, patience: Patience, told: Told<'_>) -> Result<Self, StateError> {
        let folder = sysfs.locate(Path::new(FOLDER));
        let mut builder = DirBuilder::new();
        match builder.recursive(true).mode(0o700).create(&folder) {
            Ok(()) => {}
            Err(error) => return Err(io("make the folder", &folder, &error)),
        }
        is_safe(&folder)?;
        let path = folder.join(LOCK);
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&path);
        let lock = lock.map_err(|error| io("open", &path, &error))?;
        wait_for(sysfs, &lock, &path, patience, told)?;
        let path = folder.join(FILE);
        let mut state = match std::fs::read(&path) {
            Ok(bytes) => parse(&path, &bytes)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => State::default(),
            Err(error) => return Err(io("read", &path, &error)),
        };
        state.forget_other_boots(&boot(sysfs));
        Ok(Self {
            folder,
            _lock: lock,
            state,
        })
    }

    /// Writes what is remembered, all of it or nothing, before anything else goes on.
    ///
    /// # Errors
    /// [`StateError::Io`].
    pub fn save(&mut self) -> Result<(), StateError> {
        let path = self.folder.join(FILE);
        self.state.schema_version = SCHEMA_VERSION;
        let text = serde_json::to_vec_pretty(&self.state);
        let text = text.map_err(|error| io("write", &path, &error))?;
        // Made with mode 0600.
        let made = tempfile::Builder::new()
            .prefix(".claims-")
            .tempfile_in(&self.folder)
            .and_then(|mut file| {
                file.write_all(&text)?;
                file.as_file().sync_all()?;
                Ok(file)
            });
        let file = made.map_err(|error| io("write", &path, &error))?;
        file.persist(&path)
            .map_err(|error| io("write", &path, &error.error))?;
        Ok(())
    }
}

impl State {
    /// What is remembered, without a lock and for looking only: nothing where it cannot be read.
    #[must_use]
    pub fn peek(sysfs: &Sysfs) -> Self {
        let path = sysfs.locate(Path::new(FOLDER)).join(FILE);
        let read = std::fs::read(&path).ok();
        let mut state = read
            .and_then(|bytes| parse(&path, &bytes).ok())
            .unwrap_or_default();
        state.forget_other_boots(&boot(sysfs));
        state
    }

    /// The entry of a function.
    #[must_use]
    pub fn of(&self, bdf: Bdf) -> Option<&Entry> {
        self.claims
            .iter()
            .find(|entry| entry.address() == Some(bdf))
    }

    /// Forgets a function.
    pub fn forget(&mut self, bdf: Bdf) {
        self.claims.retain(|entry| entry.address() != Some(bdf));
    }

    fn forget_other_boots(&mut self, boot: &str) {
        let count = self.claims.len();
        self.claims.retain(|entry| entry.boot == boot);
        if self.claims.is_empty() && count > 0 {
            self.huge_pages.clear();
        }
    }

    /// The claimed function, and the namespace, that a path led to while the kernel drove it.
    #[must_use]
    pub fn by_former_path(&self, path: &Path) -> Option<(Bdf, Option<u64>)> {
        self.claims.iter().find_map(|entry| {
            let found = entry
                .namespaces
                .iter()
                .find(|former| former.paths.iter().any(|known| known == path))?;
            Some((entry.address()?, found.nsid))
        })
    }
}

fn wait_for(
    sysfs: &Sysfs,
    lock: &File,
    path: &Path,
    patience: Patience,
    told: Told<'_>,
) -> Result<(), StateError> {
    let began = Instant::now();
    let mut is_told = false;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(io("lock", path, &error)),
            Err(TryLockError::WouldBlock) if began.elapsed() < patience.at_most => {
                if !is_told && began.elapsed() >= patience.tell_after {
                    is_told = true;
                    told(&waiting_text(sysfs, path, patience.at_most));
                }
                std::thread::sleep(LOOK_EVERY);
            }
            Err(TryLockError::WouldBlock) => {
                return Err(StateError::Held {
                    path: path.to_owned(),
                    holder: holder_of(sysfs, path),
                    limit_s: patience.at_most.as_secs(),
                });
            }
        }
    }
}

fn waiting_text(sysfs: &Sysfs, path: &Path, at_most: Duration) -> String {
    format!(
        "waiting for {}, which claims devices or gives some back (it holds {}), for {} s at most",
        holder_of(sysfs, path),
        sysfs.shown(path).display(),
        at_most.as_secs()
    )
}

fn holder_of(sysfs: &Sysfs, path: &Path) -> String {
    let id = match Node::kind_at(sysfs, &sysfs.shown(path)) {
        Ok(NodeKind::File { id, .. }) => Some(id),
        _ => None,
    };
    let owners = id.and_then(|id| filesystems::lock_owners(sysfs, id).ok());
    let process = owners.and_then(|owners| owners.first().copied());
    process.map_or_else(
        || "another process".to_owned(),
        |process| format!("process {process}"),
    )
}

fn parse(path: &Path, bytes: &[u8]) -> Result<State, StateError> {
    let garbled = |why: String| StateError::Garbled {
        path: path.to_owned(),
        why,
    };
    let state: State = serde_json::from_slice(bytes).map_err(|error| garbled(error.to_string()))?;
    if state.schema_version != SCHEMA_VERSION {
        return Err(garbled(format!(
            "it is of version {}, this lanemark knows {SCHEMA_VERSION}",
            state.schema_version
        )));
    }
    Ok(state)
}

/// The identity of the running boot; empty where the kernel does not say.
#[must_use]
pub(super) fn boot(sysfs: &Sysfs) -> String {
    read_text(&sysfs.proc("sys/kernel/random/boot_id")).unwrap_or_default()
}

/// A folder of ours that nobody else may write to: a link or a foreign folder could make us remember, and bind,
/// what somebody else wants.
fn is_safe(folder: &Path) -> Result<(), StateError> {
    let meta = std::fs::symlink_metadata(folder).map_err(|error| io("look at", folder, &error))?;
    let bad = |why: &str| {
        Err(StateError::Unsafe {
            path: folder.to_owned(),
            why: why.to_owned(),
        })
    };
    if !meta.is_dir() {
        return bad("is no folder");
    }
    if Some(meta.uid()) != crate::sysfs::host::effective_user(&Sysfs::host()) {
        return bad("belongs to another user");
    }
    if meta.mode() & 0o022 != 0 {
        return bad("can be written to by others");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A claim of one device writes its override, unbinds and probes, and then does all of that to undo it.
    #[test]
    fn giving_back_outwaits_a_claim_that_hangs() {
        assert!(BACK_PATIENCE.at_most > WRITE_LIMIT * 6);
        assert!(BACK_PATIENCE.at_most > PATIENCE.at_most);
        assert_eq!(BACK_PATIENCE.at_most.as_secs(), 20 * 60, "as documented");
    }

    #[test]
    fn a_state_that_another_holds_is_waited_for_and_then_given_up() {
        let root = tempfile::tempdir().unwrap();
        let sysfs = Sysfs::at(root.path());
        let heard = std::cell::RefCell::new(Vec::new());
        let told = |text: &str| heard.borrow_mut().push(text.to_owned());
        let held = Store::open(&sysfs, &told).unwrap();
        let short = Patience {
            tell_after: Duration::from_millis(30),
            at_most: Duration::from_millis(100),
        };
        let began = Instant::now();
        let given_up = Store::open_within(&sysfs, short, &told);
        assert!(
            matches!(given_up, Err(StateError::Held { .. })),
            "{given_up:?}"
        );
        assert!(began.elapsed() >= short.at_most);
        let once = heard.take();
        assert_eq!(once.len(), 1, "{once:?}");
        assert!(
            once[0].starts_with("waiting for another process")
                && once[0].ends_with("for 0 s at most"),
            "{once:?}"
        );
        std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(short.at_most);
                drop(held);
            });
            assert!(Store::open(&sysfs, &told).is_ok());
        });
        assert_eq!(heard.take(), [""; 0], "what is soon over is not told");
    }

    #[test]
    fn the_process_that_is_waited_for_is_named_where_the_kernel_names_it() {
        let root = tempfile::tempdir().unwrap();
        let sysfs = Sysfs::at(root.path());
        let held = Store::open(&sysfs, &|_| ()).unwrap();
        let path = held.folder.join(LOCK);
        let meta = std::fs::metadata(&path).unwrap();
        let (major, minor) = (libc::major(meta.dev()), libc::minor(meta.dev()));
        let locks = root.path().join("proc");
        std::fs::create_dir_all(&locks).unwrap();
        let line = format!(
            "1: FLOCK  ADVISORY  WRITE 4711 {major:02x}:{minor:02x}:{} 0 EOF\n",
            meta.ino()
        );
        std::fs::write(locks.join("locks"), line).unwrap();
        let text = waiting_text(&sysfs, &path, BACK_PATIENCE.at_most);
        assert_eq!(
            text,
            "waiting for process 4711, which claims devices or gives some back (it holds \
             /run/lanemark/claims.lock), for 1200 s at most"
        );
    }
}
