//! What lanemark writes into sysfs: which driver a PCI function is bound to, and how many huge pages are
//! reserved. Nothing else writes there.
//!
//! `driver_override` (Linux Documentation/ABI/testing/sysfs-bus-pci) names the one driver that may match a
//! function; `drivers_probe` then binds it, if that driver is loaded. New IDs, which would catch other
//! functions of the same kind too, are never used.

use super::pci::Bdf;
use super::{Sysfs, SysfsError, link_name, optional, read_u64};
use crate::errno::Errno;
use crate::units::Bytes;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Drivers may bind in the background (the kernel's nvme asks for that).
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Who is written to: the running kernel, or a test that plays it.
pub trait Kernel {
    /// Writes `text` into a file of sysfs in one call. Never makes a file.
    ///
    /// # Errors
    /// The errno of the open or the write; ETIMEDOUT where it has not returned within
    /// [`Kernel::write_limit`], and may still be carried out.
    fn write(&self, path: &Path, text: &str) -> Result<(), Errno>;

    /// Reads a file of sysfs whose reader may have to wait for a driver.
    ///
    /// # Errors
    /// The errno of the open or the read; ETIMEDOUT where it has not returned within [`Kernel::write_limit`].
    fn read(&self, path: &Path) -> Result<Vec<u8>, Errno> {
        std::fs::read(path).map_err(|error| Errno::of(&error))
    }

    /// How long a write, or a read, may take.
    fn write_limit(&self) -> Duration {
        Duration::ZERO
    }

    /// Loads a module.
    ///
    /// # Errors
    /// Why it did not load, in the words of modprobe.
    fn load_module(&self, name: &str) -> Result<(), String>;

    /// How long drivers and nodes may take to appear.
    fn patience(&self) -> Duration {
        PATIENCE
    }
}

/// Why a function did not come to its driver.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// The kernel refused.
    #[error("cannot write `{text}` to {path}: {errno}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What was to be written.
        text: String,
        /// Why not.
        errno: Errno,
    },
    /// The kernel has not come back from it. It may still do it at any time.
    #[error(
        "the kernel has not done `{text}` of {path} within {limit_s} s, and may still do it: a driver waits for its device; see dmesg"
    )]
    Stuck {
        /// The file.
        path: PathBuf,
        /// What was written, or `read`.
        text: String,
        /// What was waited.
        limit_s: u64,
    },
    /// The kernel took the word, and the driver did not take the device.
    #[error("{bdf}: {wanted} did not take it within {limit_s} s; it is on {found}: see dmesg")]
    NotBound {
        /// The function.
        bdf: Bdf,
        /// The driver that should have it.
        wanted: String,
        /// The driver that has it, in words.
        found: String,
        /// What was waited.
        limit_s: u64,
    },
    /// A fact is missing or garbled.
    #[error(transparent)]
    Sysfs(#[from] SysfsError),
}

/// Moves PCI functions between drivers and reserves huge pages.
#[derive(Clone, Copy)]
pub struct Binder<'a> {
    sysfs: &'a Sysfs,
    kernel: &'a dyn Kernel,
}

impl<'a> Binder<'a> {
    /// For the machine of `sysfs`, which `kernel` runs.
    #[must_use]
    pub const fn new(sysfs: &'a Sysfs, kernel: &'a dyn Kernel) -> Self {
        Self { sysfs, kernel }
    }

    fn file(&self, bdf: Bdf, name: &str) -> PathBuf {
        let folder = self.sysfs.sys("bus/pci/devices").join(bdf.to_string());
        folder.join(name)
    }

    fn write(&self, path: PathBuf, text: &str) -> Result<(), BindError> {
        let done = self.kernel.write(&path, text);
        let text = text.trim().to_owned();
        done.map_err(|errno| match errno {
            Errno(libc::ETIMEDOUT) => self.stuck(path, &text),
            errno => BindError::Write { path, text, errno },
        })
    }

    /// The driver that has the function now.
    #[must_use]
    pub fn driver(&self, bdf: Bdf) -> Option<String> {
        link_name(&self.file(bdf, "driver"))
    }

    /// The driver that the function is reserved for.
    ///
    /// # Errors
    /// [`BindError::Sysfs`] where the file exists and cannot be read; [`BindError::Stuck`] where that has not
    /// returned: the kernel looks it up under the lock that a driver holds which starts or lets go
    /// (drivers/pci/pci-sysfs.c, `driver_override_show`).
    pub fn reserved_for(&self, bdf: Bdf) -> Result<Option<String>, BindError> {
        let path = self.file(bdf, "driver_override");
        let bytes = match self.kernel.read(&path) {
            Ok(bytes) => bytes,
            Err(Errno(libc::ETIMEDOUT)) => return Err(self.stuck(path, "read")),
            Err(errno) => {
                let error = SysfsError::Read { path, errno };
                return optional(Err(error)).map_err(BindError::Sysfs);
            }
        };
        let text = String::from_utf8_lossy(&bytes);
        // The kernel writes a pointer that is not set as glibc would.
        let name = Some(text.trim()).filter(|name| !name.is_empty() && *name != "(null)");
        Ok(name.map(str::to_owned))
    }

    fn stuck(&self, path: PathBuf, text: &str) -> BindError {
        BindError::Stuck {
            path,
            text: text.to_owned(),
            limit_s: self.kernel.write_limit().as_secs(),
        }
    }

    /// Reserves the function for a driver, or for none.
    ///
    /// # Errors
    /// [`BindError::Write`].
    pub fn reserve_for(&self, bdf: Bdf, driver: Option<&str>) -> Result<(), BindError> {
        let text = format!("{}\n", driver.unwrap_or_default());
        self.write(self.file(bdf, "driver_override"), &text)
    }

    /// Takes the function from its driver, if one has it.
    ///
    /// # Errors
    /// [`BindError::Write`].
    pub fn unbind(&self, bdf: Bdf) -> Result<(), BindError> {
        if self.driver(bdf).is_none() {
            return Ok(());
        }
        self.write(self.file(bdf, "driver/unbind"), &bdf.to_string())
    }

    /// Lets the drivers that are loaded look at the function; `false` where none has taken it in time.
    ///
    /// # Errors
    /// [`BindError::Write`].
    pub fn probe(&self, bdf: Bdf) -> Result<bool, BindError> {
        self.write(self.sysfs.sys("bus/pci/drivers_probe"), &bdf.to_string())?;
        let deadline = Instant::now() + self.kernel.patience();
        while self.driver(bdf).is_none() {
            if Instant::now() >= deadline {
                return Ok(false);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(true)
    }

    /// Moves the function to a loaded driver and leaves it reserved for that one.
    ///
    /// # Errors
    /// [`BindError`]; the function may then be on no driver.
    pub fn move_to(&self, bdf: Bdf, driver: &str) -> Result<(), BindError> {
        self.reserve_for(bdf, Some(driver))?;
        // Not before: that has waited for a driver that was just starting, and may have failed.
        if self.driver(bdf).as_deref() != Some(driver) {
            self.unbind(bdf)?;
            self.probe(bdf)?;
        }
        match self.driver(bdf) {
            Some(found) if found == driver => Ok(()),
            found => Err(BindError::NotBound {
                bdf,
                wanted: driver.to_owned(),
                found: found.unwrap_or_else(|| "no driver".to_owned()),
                limit_s: self.kernel.patience().as_secs(),
            }),
        }
    }

    /// Whether a driver for PCI functions of this name is loaded.
    #[must_use]
    pub fn is_loaded(&self, driver: &str) -> bool {
        self.sysfs.sys("bus/pci/drivers").join(driver).exists()
    }

    /// Whether a module of this name is in the kernel, loaded or built in with a parameter or a version.
    #[must_use]
    pub fn has_module(&self, name: &str) -> bool {
        self.sysfs.sys("module").join(name).exists()
    }

    /// Loads a module.
    ///
    /// # Errors
    /// Why it did not load.
    pub fn load_module(&self, name: &str) -> Result<(), String> {
        self.kernel.load_module(name)
    }

    /// Sets how many huge pages of a size there shall be on a NUMA node (`None`: wherever the kernel finds
    /// room), and gives how many there are then: a machine that has run for long may have fewer to give.
    ///
    /// # Errors
    /// [`BindError`].
    pub fn set_huge_pages(
        &self,
        node: Option<u32>,
        page: Bytes,
        count: u64,
    ) -> Result<u64, BindError> {
        let pool = format!("hugepages-{}kB/nr_hugepages", page.0 >> 10);
        let path = match node {
            Some(node) => {
                let folder = format!("devices/system/node/node{node}/hugepages");
                self.sysfs.sys(folder).join(pool)
            }
            None => self.sysfs.sys("kernel/mm/hugepages").join(pool),
        };
        self.write(path.clone(), &count.to_string())?;
        Ok(read_u64(&path)?)
    }
}

impl std::fmt::Debug for Binder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Binder")
            .field("sysfs", self.sysfs)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A kernel that is asked nothing.
    struct Idle;

    impl Kernel for Idle {
        fn write(&self, _path: &Path, _text: &str) -> Result<(), Errno> {
            Err(Errno(libc::ETIMEDOUT))
        }

        fn load_module(&self, _name: &str) -> Result<(), String> {
            Err("no module".to_owned())
        }
    }

    #[test]
    fn an_override_that_is_not_set_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let bdf = Bdf::parse("0000:01:00.0").unwrap();
        let device = folder.path().join("sys/bus/pci/devices/0000:01:00.0");
        std::fs::create_dir_all(&device).unwrap();
        let sysfs = Sysfs::at(folder.path());
        let binder = Binder::new(&sysfs, &Idle);
        assert_eq!(binder.reserved_for(bdf), Ok(None));
        for (text, found) in [
            ("(null)\n", None),
            ("\n", None),
            ("vfio-pci\n", Some("vfio-pci")),
        ] {
            std::fs::write(device.join("driver_override"), text).unwrap();
            assert_eq!(binder.reserved_for(bdf).unwrap().as_deref(), found);
        }
        let stuck = binder.reserve_for(bdf, None);
        assert!(matches!(stuck, Err(BindError::Stuck { .. })), "{stuck:?}");
    }
}
