//! How fast a CPU runs, and whether it was slowed down for heat.

use super::absent::{Absent, Fact};
use super::{Sysfs, SysfsError, read_text, read_u64};
use std::path::PathBuf;

/// The files of one CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuFiles {
    dir: PathBuf,
}

impl CpuFiles {
    /// Those of this CPU.
    #[must_use]
    pub fn of(sysfs: &Sysfs, cpu: u32) -> Self {
        Self {
            dir: sysfs.sys(format!("devices/system/cpu/cpu{cpu}")),
        }
    }

    /// Its frequency as the kernel last saw it (`scaling_cur_freq`), in hertz.
    ///
    /// # Errors
    /// [`Absent`]: virtual machines mostly show none.
    pub fn hz(&self) -> Fact<u64> {
        let path = self.dir.join("cpufreq/scaling_cur_freq");
        let text = read_text(&path)?;
        if text.starts_with('<') {
            return Err(Absent::Unknown { path, text });
        }
        let khz: Option<u64> = text.parse().ok();
        let hz = khz
            .filter(|khz| *khz > 0)
            .and_then(|khz| khz.checked_mul(1000));
        hz.ok_or_else(|| SysfsError::garbled(&path, &text, "a frequency in kHz").into())
    }

    /// What chooses its frequency: `performance`, `powersave`, `schedutil`.
    ///
    /// # Errors
    /// [`Absent`].
    pub fn governor(&self) -> Fact<String> {
        let path = self.dir.join("cpufreq/scaling_governor");
        let text = read_text(&path)?;
        if text.is_empty() {
            return Err(SysfsError::garbled(&path, &text, "the name of a governor").into());
        }
        Ok(text)
    }

    /// Times that the core was slowed down for heat since the machine started (x86 only).
    ///
    /// # Errors
    /// [`Absent`].
    pub fn core_throttles_count(&self) -> Fact<u64> {
        Ok(read_u64(
            &self.dir.join("thermal_throttle/core_throttle_count"),
        )?)
    }

    /// Times that its package was.
    ///
    /// # Errors
    /// [`Absent`].
    pub fn package_throttles_count(&self) -> Fact<u64> {
        Ok(read_u64(
            &self.dir.join("thermal_throttle/package_throttle_count"),
        )?)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn cpu(files: &[(&str, &str)]) -> (tempfile::TempDir, CpuFiles) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join("sys/devices/system/cpu/cpu3").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let files = CpuFiles::of(&Sysfs::at(root.path()), 3);
        (root, files)
    }

    #[test]
    fn a_bare_machine_shows_everything() {
        let (_root, cpu) = cpu(&[
            ("cpufreq/scaling_cur_freq", "3400123\n"),
            ("cpufreq/scaling_governor", "performance\n"),
            ("thermal_throttle/core_throttle_count", "2\n"),
            ("thermal_throttle/package_throttle_count", "7\n"),
        ]);
        assert_eq!(cpu.hz(), Ok(3_400_123_000));
        assert_eq!(cpu.governor().as_deref(), Ok("performance"));
        let counts = (cpu.core_throttles_count(), cpu.package_throttles_count());
        assert_eq!(counts, (Ok(2), Ok(7)));
    }

    #[test]
    fn what_is_missing_unknown_or_garbled_is_never_zero() {
        let (_root, bare) = cpu(&[]);
        assert!(matches!(bare.hz(), Err(Absent::NotShown { .. })));
        assert!(matches!(bare.governor(), Err(Absent::NotShown { .. })));
        assert!(matches!(
            bare.core_throttles_count(),
            Err(Absent::NotShown { .. })
        ));
        let (_root, unknown) = cpu(&[("cpufreq/scaling_cur_freq", "<unknown>\n")]);
        assert!(matches!(unknown.hz(), Err(Absent::Unknown { .. })));
        for text in ["0\n", "fast\n", "\n", "-5\n", "18446744073709551615\n"] {
            let (_root, cpu) = cpu(&[
                ("cpufreq/scaling_cur_freq", text),
                ("cpufreq/scaling_governor", "\n"),
                ("thermal_throttle/core_throttle_count", "many\n"),
            ]);
            assert!(matches!(cpu.hz(), Err(Absent::Unreadable(_))), "{text:?}");
            assert!(matches!(cpu.governor(), Err(Absent::Unreadable(_))));
            assert!(matches!(
                cpu.core_throttles_count(),
                Err(Absent::Unreadable(_))
            ));
        }
    }
}
