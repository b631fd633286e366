//! A kernel that is played on the captured lab: drivers bind and unbind, nodes come and go, modules load.

use crate::guard_tree::{Tree, fixture};
use lanemark::errno::Errno;
use lanemark::session::claim::Claimer;
use lanemark::sysfs::Sysfs;
use lanemark::sysfs::bind::Kernel;
use lanemark::sysfs::pci::Bdf;
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub const NVME_A: &str = "0000:01:00.0";
pub const NVME_B: &str = "0000:04:00.0";

pub fn bdf(text: &str) -> Bdf {
    Bdf::parse(text).unwrap()
}

/// The captured lab with hugepages, and without vfio loaded.
pub fn lab() -> Tree {
    let tree = fixture("lab-default.tree");
    tree.remove("sys/devices/system/node/node0/hugepages");
    for (file, text) in [("nr_hugepages", "0"), ("free_hugepages", "0")] {
        let pool = "sys/devices/system/node/node0/hugepages/hugepages-2048kB";
        tree.file(&format!("{pool}/{file}"), text);
    }
    tree.file("proc/sys/kernel/random/boot_id", "this-boot\n");
    tree.file("sys/bus/pci/drivers_probe", "");
    for name in ["vfio_pci", "vfio_iommu_type1", "vfio"] {
        tree.remove(&format!("sys/module/{name}"));
    }
    tree.remove("sys/bus/pci/drivers/vfio-pci");
    tree
}

/// Killed at this write.
pub struct Killed;

pub struct Played {
    pub root: PathBuf,
    /// Every write, as `path=text`.
    pub log: RefCell<Vec<String>>,
    /// Modules that can be loaded.
    pub modules: Vec<&'static str>,
    /// The process dies before this write (counted from 1).
    pub killed_at: Cell<usize>,
    /// The kernel refuses to bind this function to anything.
    pub stubborn: RefCell<Option<String>>,
    /// Its driver does not let go of this function, whose lock it holds meanwhile.
    pub stuck: RefCell<Option<String>>,
    /// The driver of this function is still starting, holds its lock, and fails.
    pub failing: RefCell<Option<String>>,
    /// More huge pages than these there are not.
    pub huge_pages_max: u64,
}

impl Played {
    pub fn on(tree: &Tree) -> Self {
        Self {
            root: std::fs::canonicalize(tree.root()).unwrap(),
            log: RefCell::default(),
            modules: vec!["vfio_pci", "vfio_iommu_type1", "uio_pci_generic", "nvme"],
            killed_at: Cell::new(usize::MAX),
            stubborn: RefCell::default(),
            stuck: RefCell::default(),
            failing: RefCell::default(),
            huge_pages_max: 1000,
        }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// As if somebody had loaded the modules before.
    pub fn load_by_hand(&self) {
        for module in &self.modules {
            self.load_module(module).unwrap();
        }
    }

    pub fn device(&self, bdf: &str) -> PathBuf {
        let link = self.at("sys/bus/pci/devices").join(bdf);
        std::fs::canonicalize(link).unwrap()
    }

    pub fn driver(&self, bdf: &str) -> Option<String> {
        let link = std::fs::read_link(self.device(bdf).join("driver")).ok()?;
        Some(link.file_name()?.to_str()?.to_owned())
    }

    pub fn reserved(&self, bdf: &str) -> String {
        let text = std::fs::read_to_string(self.device(bdf).join("driver_override")).unwrap();
        text.trim().to_owned()
    }

    /// Nodes and class entries of the disks below a function, moved away or back.
    fn nodes(&self, bdf: &str, there: bool) {
        for folder in ["dev", "sys/class/block"] {
            let gone = self.at("gone").join(bdf).join(folder);
            let (from, to) = if there {
                (gone, self.at(folder))
            } else {
                (self.at(folder), gone)
            };
            std::fs::create_dir_all(&to).unwrap();
            std::fs::create_dir_all(&from).unwrap();
            let number = if bdf == NVME_A { '0' } else { '1' };
            for entry in std::fs::read_dir(&from).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                let own = [format!("nvme{number}n"), format!("ng{number}n")];
                // What comes back may have another number.
                if there || own.iter().any(|start| name.starts_with(start)) {
                    std::fs::rename(from.join(&name), to.join(&name)).unwrap();
                }
            }
        }
    }

    /// While the kernel does not drive it: it will come back as another number.
    pub fn renumber(&self, bdf: &str, from: char, to: char) {
        let renamed = |name: &str| {
            let kinds = ["nvme", "ng"];
            let kind = kinds
                .into_iter()
                .find(|kind| name.starts_with(&format!("{kind}{from}")))?;
            Some(format!("{kind}{to}{}", &name[kind.len() + 1..]))
        };
        let each = |folder: &Path| {
            for entry in std::fs::read_dir(folder).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                if let Some(new) = renamed(&name) {
                    std::fs::rename(folder.join(name), folder.join(new)).unwrap();
                }
            }
        };
        let shown = self.device(bdf).join("nvme");
        each(&shown);
        each(&shown.join(format!("nvme{to}")));
        let gone = self.at("gone").join(bdf);
        each(&gone.join("dev"));
        let class = gone.join("sys/class/block");
        each(&class);
        for entry in std::fs::read_dir(&class).unwrap() {
            let link = entry.unwrap().path();
            let target = std::fs::read_link(&link).unwrap();
            let target = target.to_str().unwrap();
            let target = target.replace(&format!("nvme{from}"), &format!("nvme{to}"));
            std::fs::remove_file(&link).unwrap();
            std::os::unix::fs::symlink(target, &link).unwrap();
        }
    }

    pub fn unbind(&self, bdf: &str) {
        if self.driver(bdf).as_deref() == Some("nvme") {
            self.nodes(bdf, false);
        }
        std::fs::remove_file(self.device(bdf).join("driver")).unwrap();
    }

    /// Whether a driver that does not let go holds the lock of the device that the file belongs to.
    fn is_held(&self, path: &Path) -> bool {
        let shown = path.strip_prefix(&self.root).unwrap().display().to_string();
        let stuck = self.stuck.borrow();
        stuck.as_deref().is_some_and(|bdf| {
            let unbound = format!("unbind={bdf}");
            (shown.starts_with("sys/bus/pci/devices") && shown.contains(bdf))
                && (self.log.borrow().iter()).any(|line| line.ends_with(&unbound))
        })
    }

    fn probe(&self, bdf: &str) {
        if self.driver(bdf).is_some() || self.stubborn.borrow().as_deref() == Some(bdf) {
            return;
        }
        let wanted = match self.reserved(bdf).as_str() {
            "" | "(null)" => "nvme".to_owned(),
            name => name.to_owned(),
        };
        let driver = self.at("sys/bus/pci/drivers").join(&wanted);
        if driver.exists() {
            std::os::unix::fs::symlink(driver, self.device(bdf).join("driver")).unwrap();
            if wanted == "nvme" {
                self.nodes(bdf, true);
            }
        }
    }
}

impl Kernel for Played {
    fn write(&self, path: &Path, text: &str) -> Result<(), Errno> {
        let count = self.log.borrow().len() + 1;
        if count >= self.killed_at.get() {
            std::panic::panic_any(Killed);
        }
        let shown = path.strip_prefix(&self.root).unwrap().display().to_string();
        self.log
            .borrow_mut()
            .push(format!("{shown}={}", text.trim()));
        let text = text.trim();
        if self.is_held(path) {
            return Err(Errno(libc::ETIMEDOUT));
        }
        if shown.ends_with("driver_override")
            && let Some(bdf) = self
                .failing
                .borrow_mut()
                .take_if(|bdf| shown.contains(bdf.as_str()))
        {
            self.unbind(&bdf);
        }
        match path.file_name().unwrap().to_str().unwrap() {
            "driver_override" => std::fs::write(path, format!("{text}\n")).unwrap(),
            "unbind" => self.unbind(text),
            "drivers_probe" => self.probe(text),
            "nr_hugepages" => {
                let count = text.parse::<u64>().unwrap().min(self.huge_pages_max);
                std::fs::write(path, count.to_string()).unwrap();
            }
            other => panic!("nobody writes {other}"),
        }
        Ok(())
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, Errno> {
        if self.is_held(path) {
            return Err(Errno(libc::ETIMEDOUT));
        }
        std::fs::read(path).map_err(|error| Errno::of(&error))
    }

    fn patience(&self) -> Duration {
        Duration::from_millis(50)
    }

    fn load_module(&self, name: &str) -> Result<(), String> {
        if !self.modules.contains(&name) {
            return Err(format!("FATAL: Module {name} not found"));
        }
        std::fs::create_dir_all(self.at("sys/module").join(name)).unwrap();
        let driver = match name {
            "vfio_pci" => "vfio-pci",
            other => other,
        };
        std::fs::create_dir_all(self.at("sys/bus/pci/drivers").join(driver)).unwrap();
        Ok(())
    }
}

pub fn claimer<'a>(sysfs: &'a Sysfs, kernel: &'a Played, tree: &'a Tree) -> Claimer<'a> {
    Claimer::played(sysfs, kernel, tree, None, None)
}
