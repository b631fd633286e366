//! How long the CPU limits of this process's cgroups have held it back.

use super::absent::{Absent, Fact};
use super::{Sysfs, SysfsError, read_text};
use std::path::{Path, PathBuf};

/// The `cpu.stat` files that speak of this process: its own cgroup's and those of all above it, of version 2 and of
/// version 1. Any of them may hold a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuLimits {
    files: Vec<PathBuf>,
    membership: PathBuf,
}

impl CpuLimits {
    /// Those of the calling process.
    ///
    /// # Errors
    /// [`Absent`]: a kernel without cgroups.
    pub fn of_self(sysfs: &Sysfs) -> Fact<Self> {
        let membership = sysfs.proc("self/cgroup");
        let text = read_text(&membership)?;
        let mut files = Vec::new();
        for line in text.lines() {
            // `0::/path` of version 2, `4:cpu,cpuacct:/path` of version 1 (man 7 cgroups).
            let mut parts = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(path)) =
                (parts.next(), parts.next(), parts.next())
            else {
                return Err(SysfsError::garbled(&membership, line, "a cgroup").into());
            };
            if controllers.is_empty() || controllers.split(',').any(|one| one == "cpu") {
                let root = sysfs.sys("fs/cgroup").join(controllers);
                let below = Path::new(path.trim_start_matches('/'));
                let above = below.ancestors().map(|folder| root.join(folder));
                files.extend(above.map(|folder| folder.join("cpu.stat")));
            }
        }
        Ok(Self { files, membership })
    }

    /// The time that runnable threads were held back, over all CPUs, in nanoseconds since each cgroup was made; of
    /// several cgroups that of the one that held back most.
    ///
    /// # Errors
    /// [`Absent`]: no cgroup here counts it.
    pub fn held_back_ns(&self) -> Fact<u64> {
        let mut most = None;
        for file in &self.files {
            // The root of version 2 counts nothing; a cgroup outside of this namespace is not shown.
            match read_text(file).map_err(Absent::from) {
                Ok(text) => most = most.max(held_back_ns(file, &text)?),
                Err(Absent::NotShown { .. }) => {}
                Err(other) => return Err(other),
            }
        }
        most.ok_or_else(|| Absent::Lacking {
            path: self.membership.clone(),
            what: "cgroup that counts what its CPU limit holds back",
        })
    }
}

/// `throttled_usec` of version 2, `throttled_time` (in nanoseconds) of version 1.
fn held_back_ns(file: &Path, text: &str) -> Result<Option<u64>, SysfsError> {
    for line in text.lines() {
        let Some((key, value)) = line.split_once(' ') else {
            continue;
        };
        let unit_ns = match key {
            "throttled_usec" => 1000,
            "throttled_time" => 1,
            _ => continue,
        };
        let value: Option<u64> = value.parse().ok();
        let value_ns = value.and_then(|value| value.checked_mul(unit_ns));
        return match value_ns {
            Some(value_ns) => Ok(Some(value_ns)),
            None => Err(SysfsError::garbled(file, line, "a time held back")),
        };
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn limits(membership: &str, files: &[(&str, &str)]) -> (tempfile::TempDir, Fact<CpuLimits>) {
        let root = tempfile::tempdir().unwrap();
        let membership = ("proc/self/cgroup", membership);
        for (path, text) in files.iter().chain([&membership]) {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let found = CpuLimits::of_self(&Sysfs::at(root.path()));
        (root, found)
    }

    #[test]
    fn the_limit_of_any_cgroup_above_counts() {
        let stat = |us: u32| format!("usage_usec 9\nnr_throttled 3\nthrottled_usec {us}\n");
        let (_root, found) = limits(
            "0::/lab.slice/run.scope\n",
            &[
                ("sys/fs/cgroup/lab.slice/run.scope/cpu.stat", &stat(5)),
                ("sys/fs/cgroup/lab.slice/cpu.stat", &stat(70)),
                // The root counts use alone.
                ("sys/fs/cgroup/cpu.stat", "usage_usec 9\n"),
            ],
        );
        assert_eq!(found.unwrap().held_back_ns(), Ok(70_000));
    }

    #[test]
    fn version_1_counts_in_nanoseconds() {
        let (_root, found) = limits(
            "5:memory:/x\n4:cpu,cpuacct:/docker/1\n0::/\n",
            &[
                (
                    "sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.stat",
                    "nr_periods 1\nthrottled_time 123\n",
                ),
                ("sys/fs/cgroup/memory/x/cpu.stat", "throttled_time 999\n"),
            ],
        );
        assert_eq!(found.unwrap().held_back_ns(), Ok(123));
    }

    #[test]
    fn what_is_missing_or_garbled_is_never_zero() {
        let (_root, none) = limits("0::/\n", &[]);
        assert!(matches!(
            none.unwrap().held_back_ns(),
            Err(Absent::Lacking { .. })
        ));
        let (_root, none) = limits("nonsense\n", &[]);
        assert!(matches!(none, Err(Absent::Unreadable(_))));
        for value in ["x", "-1", "18446744073709551615"] {
            let text = format!("throttled_usec {value}\n");
            let (_root, bad) = limits("0::/a\n", &[("sys/fs/cgroup/a/cpu.stat", &text)]);
            let found = bad.unwrap().held_back_ns();
            assert!(matches!(found, Err(Absent::Unreadable(_))), "{value}");
        }
        let nowhere = Sysfs::at("/nonexistent");
        assert!(CpuLimits::of_self(&nowhere).is_err());
    }
}
