//! Hand-made and captured machines for the tests: a folder with `sys`, `proc` and `dev`, and the content of
//! its devices.

use lanemark::errno::Errno;
use lanemark::session::guard::content::{Contents, ReadAt};
use lanemark::sysfs::Sysfs;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A machine in a folder of its own.
pub struct Tree {
    folder: tempfile::TempDir,
    contents: HashMap<String, Vec<u8>>,
    mounts: Vec<String>,
}

/// Bytes of a device of these tests.
pub const DISK_BYTES: u64 = 8 << 20;

impl Tree {
    pub fn new() -> Self {
        let tree = Self {
            folder: in_memory(),
            contents: HashMap::new(),
            mounts: Vec::new(),
        };
        for folder in [
            "sys/class/block",
            "sys/block",
            "sys/dev/block",
            "dev",
            "proc/self/ns",
        ] {
            tree.folder(folder);
        }
        tree.link("proc/self/ns/mnt", "mnt:[1]");
        tree.file("proc/self/mountinfo", "");
        tree.file(
            "proc/swaps",
            "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n",
        );
        tree
    }

    /// A captured machine: lines `path: text`, `path -> target`, `path/` and, for raw bytes, `path= hex`.
    pub fn captured(text: &str) -> Self {
        let tree = Self::new();
        for line in text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            if let Some(folder) = line.strip_suffix('/') {
                tree.folder(folder);
            } else if let Some((path, target)) = line.split_once(" -> ") {
                tree.remove(path);
                tree.link(path, target);
            } else if let Some((path, hex)) = line.split_once("= ") {
                tree.bytes(path, &from_hex(hex));
            } else {
                let (path, value) = line.split_once(": ").or(line.split_once(':')).unwrap();
                tree.file(path, &value.replace("\\n", "\n"));
            }
        }
        tree
    }

    pub fn sysfs(&self) -> Sysfs {
        Sysfs::at(std::fs::canonicalize(self.folder.path()).unwrap())
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    pub fn file(&self, path: &str, text: &str) {
        self.bytes(path, text.as_bytes());
    }

    pub fn bytes(&self, path: &str, bytes: &[u8]) {
        let path = self.folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    pub fn folder(&self, path: &str) {
        std::fs::create_dir_all(self.folder.path().join(path)).unwrap();
    }

    pub fn link(&self, path: &str, target: &str) {
        let path = self.folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    }

    pub fn remove(&self, path: &str) {
        let path = self.folder.path().join(path);
        if path.is_dir() && !path.is_symlink() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            let _ = std::fs::remove_file(path);
        }
    }

    /// What a device holds; 8 MiB of zeros unless said.
    pub fn content(&mut self, device: &str, bytes: Vec<u8>) {
        self.contents.insert(device.to_owned(), bytes);
    }

    /// A whole disk in this folder below `sys/devices`.
    pub fn disk_at(&self, base: &str, name: &str, dev: &str) {
        let dir = format!("sys/devices/{base}/{name}");
        self.block(&dir, name, dev);
        self.file(&format!("{dir}/size"), "16384\n");
        self.folder(&format!("{dir}/slaves"));
        self.file(&format!("{dir}/queue/logical_block_size"), "512\n");
        self.file(&format!("{dir}/queue/physical_block_size"), "4096\n");
        self.file(&format!("{dir}/queue/rotational"), "0\n");
        self.file(&format!("{dir}/queue/scheduler"), "[none] mq-deadline\n");
        self.link(
            &format!("sys/block/{name}"),
            &format!("../devices/{base}/{name}"),
        );
    }

    /// A virtual disk: loop, dm, md.
    pub fn virtual_disk(&self, name: &str, dev: &str) {
        self.disk_at("virtual/block", name, dev);
    }

    fn block(&self, dir: &str, name: &str, dev: &str) {
        self.file(&format!("{dir}/dev"), &format!("{dev}\n"));
        self.file(&format!("{dir}/ro"), "0\n");
        self.folder(&format!("{dir}/holders"));
        let up = dir.strip_prefix("sys").unwrap();
        self.link(&format!("sys/class/block/{name}"), &format!("../..{up}"));
        self.link(&format!("sys/dev/block/{dev}"), &format!("../..{up}"));
        self.file(&format!("dev/{name}"), &format!("b {dev}\n"));
    }

    /// Where a device's folder is, below the root.
    pub fn dir(&self, name: &str) -> String {
        let real =
            std::fs::canonicalize(self.folder.path().join("sys/class/block").join(name)).unwrap();
        let root = std::fs::canonicalize(self.folder.path()).unwrap();
        real.strip_prefix(root)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    }

    /// A partition of 2 MiB at 1 MiB times its number.
    pub fn part(&self, disk: &str, name: &str, dev: &str, number: u32) {
        let dir = format!("{}/{name}", self.dir(disk));
        self.block(&dir, name, dev);
        self.file(&format!("{dir}/partition"), &format!("{number}\n"));
        self.file(&format!("{dir}/start"), &format!("{}\n", 2048 * number));
        self.file(&format!("{dir}/size"), "4096\n");
    }

    /// A SCSI disk with its sg node; blank serial and wwid are left out.
    pub fn scsi_disk(&self, name: &str, dev: &str, host: u32, serial: &str, wwid: &str) {
        let device = format!("pci0000:00/0000:00:1f.0/host{host}/target{host}:0:0/{host}:0:0:0");
        self.disk_at(&format!("{device}/block"), name, dev);
        let dir = format!("sys/devices/{device}");
        self.file(&format!("{dir}/scsi_level"), "7\n");
        self.file(&format!("{dir}/vendor"), "ACME    \n");
        self.file(&format!("{dir}/model"), "DISK 9000       \n");
        self.file(&format!("{dir}/rev"), "0001\n");
        self.link(
            &format!("{dir}/driver"),
            "../../../../../../bus/scsi/drivers/sd",
        );
        self.link(
            &format!("{dir}/block/{name}/device"),
            &format!("../../../{host}:0:0:0"),
        );
        if !serial.is_empty() {
            let mut page = vec![0, 0x80, 0, u8::try_from(serial.len()).unwrap()];
            page.extend(serial.bytes());
            self.bytes(&format!("{dir}/vpd_pg80"), &page);
        }
        if !wwid.is_empty() {
            self.file(&format!("{dir}/wwid"), &format!("{wwid}\n"));
        }
        let sg = format!("{dir}/scsi_generic/sg{host}");
        self.file(&format!("{sg}/dev"), &format!("21:{host}\n"));
        self.link(&format!("{sg}/device"), &format!("../../../{host}:0:0:0"));
        self.link(
            &format!("sys/class/scsi_generic/sg{host}"),
            &format!("../../../{sg}"),
        );
        self.file(&format!("dev/sg{host}"), &format!("c 21:{host}\n"));
    }

    /// An NVMe namespace with its ng node.
    pub fn nvme(&self, controller: u32, nsid: u32, dev: &str, serial: &str, nguid: &str) {
        let base = format!("pci0000:00/0000:0{controller}:00.0/nvme/nvme{controller}");
        let name = format!("nvme{controller}n{nsid}");
        self.disk_at(&base, &name, dev);
        let above = format!("sys/devices/{base}");
        for (file, text) in [
            ("model", "ACME SSD"),
            ("serial", serial),
            ("firmware_rev", "F1"),
            ("transport", "pcie"),
        ] {
            self.file(&format!("{above}/{file}"), &format!("{text}\n"));
        }
        self.link(
            &format!("{above}/{name}/device"),
            &format!("../../nvme{controller}"),
        );
        self.file(&format!("{above}/{name}/nsid"), &format!("{nsid}\n"));
        self.file(&format!("{above}/{name}/nguid"), &format!("{nguid}\n"));
        let generic = format!("ng{controller}n{nsid}");
        let minor = controller * 16 + nsid;
        self.file(&format!("{above}/{generic}/dev"), &format!("241:{minor}\n"));
        self.link(
            &format!("sys/class/nvme-generic/{generic}"),
            &format!("../../../{above}/{generic}"),
        );
        self.file(&format!("dev/{generic}"), &format!("c 241:{minor}\n"));
    }

    /// Builds `upper` on `lower`.
    pub fn hold(&self, lower: &str, upper: &str) {
        let up = |dir: &str| "../".repeat(dir.split('/').count() + 1);
        let (low_dir, up_dir) = (self.dir(lower), self.dir(upper));
        self.link(
            &format!("{low_dir}/holders/{upper}"),
            &format!("{}{up_dir}", up(&low_dir)),
        );
        self.link(
            &format!("{up_dir}/slaves/{lower}"),
            &format!("{}{low_dir}", up(&up_dir)),
        );
    }

    /// A device-mapper device on others.
    pub fn dm(&self, name: &str, dev: &str, dm_name: &str, uuid: &str, on: &[&str]) {
        self.virtual_disk(name, dev);
        let dir = self.dir(name);
        self.file(&format!("{dir}/dm/name"), &format!("{dm_name}\n"));
        self.file(&format!("{dir}/dm/uuid"), &format!("{uuid}\n"));
        for lower in on {
            self.hold(lower, name);
        }
    }

    /// A loop device on a path.
    pub fn attach(&self, name: &str, dev: &str, backing: &str) {
        self.virtual_disk(name, dev);
        self.file(
            &format!("{}/loop/backing_file", self.dir(name)),
            &format!("{backing}\n"),
        );
    }

    /// A mount in our own namespace: `8:17 /mnt ext4 /dev/sdb1`, options at will.
    pub fn mount(&mut self, dev: &str, at: &str, fs_type: &str, source: &str) {
        self.mount_with(dev, at, fs_type, source, "rw");
    }

    pub fn mount_with(&mut self, dev: &str, at: &str, fs_type: &str, source: &str, options: &str) {
        let id = self.mounts.len() + 20;
        self.mounts.push(format!(
            "{id} 1 {dev} / {at} rw - {fs_type} {source} {options}\n"
        ));
        self.file("proc/self/mountinfo", &self.mounts.concat());
    }

    /// A mount that only this process sees.
    pub fn mount_of(&self, process: u32, dev: &str, at: &str, fs_type: &str, source: &str) {
        self.remove(&format!("proc/{process}"));
        self.link(
            &format!("proc/{process}/ns/mnt"),
            &format!("mnt:[{}]", process + 100),
        );
        let line = format!("20 1 {dev} / {at} rw - {fs_type} {source} rw\n");
        self.file(&format!("proc/{process}/mountinfo"), &line);
    }

    pub fn swap(&self, path: &str, kind: &str) {
        let list = format!("Filename\tType\tSize\tUsed\tPriority\n{path}\t{kind}\t1024\t0\t-2\n");
        self.file("proc/swaps", &list);
    }
}

impl Contents for Tree {
    fn open(&self, path: &Path) -> Result<Box<dyn ReadAt>, Errno> {
        let name = path.file_name().unwrap().to_str().unwrap();
        let default = || vec![0; usize::try_from(DISK_BYTES).unwrap()];
        let is_device = path.starts_with(
            std::fs::canonicalize(self.folder.path())
                .unwrap()
                .join("dev"),
        );
        if is_device || self.contents.contains_key(name) {
            let bytes = self.contents.get(name).cloned().unwrap_or_else(default);
            return Ok(Box::new(bytes));
        }
        let bytes = std::fs::read(path).map_err(|error| Errno::of(&error))?;
        Ok(Box::new(bytes))
    }
}

/// Thousands of small files: in memory where there is such a place.
fn in_memory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

/// Content with bytes at places.
pub fn with(pieces: &[(u64, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(DISK_BYTES).unwrap()];
    for (at, piece) in pieces {
        let at = usize::try_from(*at).unwrap();
        bytes[at..at + piece.len()].copy_from_slice(piece);
    }
    bytes
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    let pair = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

/// A captured machine of `tests/fixtures/trees`.
pub fn fixture(name: &str) -> Tree {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/trees")
        .join(name);
    Tree::captured(&std::fs::read_to_string(path).unwrap())
}
