//! Devices that the lab tests make for themselves and take down again. Root only, and only where
//! `LANEMARK_LAB=1` says that this machine is for such tests.
#![allow(dead_code)]

use crate::skipped::skipped;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Loop devices are few and the blkio limits are the machine's: one test at a time.
static LAB: Mutex<()> = Mutex::new(());

/// The machine for one test; nothing, with the reason told, where such tests are not wanted.
pub fn lab() -> Option<MutexGuard<'static, ()>> {
    if std::env::var("LANEMARK_LAB").as_deref() != Ok("1") {
        skipped("needs root, loop devices and zram; LANEMARK_LAB=1 runs it");
        return None;
    }
    Some(LAB.lock().unwrap_or_else(PoisonError::into_inner))
}

fn output(command: &mut Command) -> String {
    let done = command.output().unwrap();
    assert!(done.status.success(), "{command:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

/// A loop device, detached when dropped.
pub struct Loop {
    pub path: PathBuf,
}

impl Loop {
    pub fn on(backing: &Path, options: &[&str]) -> Self {
        let mut command = Command::new("losetup");
        command
            .args(["--find", "--show"])
            .args(options)
            .arg(backing);
        Self {
            path: output(&mut command).into(),
        }
    }

    /// Over a new sparse file in `dir`.
    pub fn sparse(dir: &Path, bytes: u64, options: &[&str]) -> Self {
        let backing = dir.join(format!("image-{bytes}"));
        let file = std::fs::File::create(&backing).unwrap();
        file.set_len(bytes).unwrap();
        Self::on(&backing, options)
    }

    /// `MAJOR:MINOR`.
    pub fn numbers(&self) -> String {
        numbers(&self.path)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let done = Command::new("losetup").arg("-d").arg(&self.path).status();
        assert!(done.is_ok_and(|status| status.success()));
    }
}

fn numbers(path: &Path) -> String {
    let name = path.file_name().unwrap().to_str().unwrap();
    let text = std::fs::read_to_string(format!("/sys/block/{name}/dev")).unwrap();
    text.trim().to_owned()
}

/// A zram device of its own, never one that was there before.
pub struct Zram {
    number: String,
    pub path: PathBuf,
}

impl Zram {
    /// `None` where the kernel has no zram.
    pub fn new(bytes: u64) -> Option<Self> {
        let Ok(number) = std::fs::read_to_string("/sys/class/zram-control/hot_add") else {
            skipped("the kernel has no zram");
            return None;
        };
        let number = number.trim().to_owned();
        let path = PathBuf::from(format!("/dev/zram{number}"));
        std::fs::write(
            format!("/sys/block/zram{number}/disksize"),
            bytes.to_string(),
        )
        .unwrap();
        Some(Self { number, path })
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        let reset = format!("/sys/block/zram{}/reset", self.number);
        std::fs::write(reset, "1").unwrap();
        std::fs::write("/sys/class/zram-control/hot_remove", &self.number).unwrap();
    }
}

/// Lets a device read almost nothing, until dropped. Only the v1 blkio cgroup can do that at its root,
/// where the workers of loop devices are.
pub struct Throttle {
    numbers: String,
}

const READ_LIMIT: &str = "/sys/fs/cgroup/blkio/blkio.throttle.read_bps_device";

impl Throttle {
    pub fn reads_of(device: &Loop) -> Option<Self> {
        let numbers = device.numbers();
        if std::fs::write(READ_LIMIT, format!("{numbers} 1")).is_err() {
            skipped("no v1 blkio cgroup to throttle a device with");
            return None;
        }
        Some(Self { numbers })
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        std::fs::write(READ_LIMIT, format!("{} 0", self.numbers)).unwrap();
    }
}

/// A device that answers nothing: a loop device over a throttled one, so that its own requests hang,
/// with their tags. Fields drop in this order.
pub struct Stuck {
    pub throttle: Throttle,
    pub outer: Loop,
    inner: Loop,
    _dir: tempfile::TempDir,
}

impl Stuck {
    pub fn new() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let inner = Loop::sparse(dir.path(), 64 << 20, &[]);
        let outer = Loop::on(&inner.path, &["--direct-io=on"]);
        let throttle = Throttle::reads_of(&inner)?;
        Some(Self {
            throttle,
            outer,
            inner,
            _dir: dir,
        })
    }
}
