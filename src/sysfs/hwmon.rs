//! Temperature sensors of drives (`class/hwmon`): the kernel's `nvme` and `drivetemp` show them.

use super::absent::{Absent, Fact};
use super::{Sysfs, SysfsError, names_in, optional, read_text, read_word, real_path};
use std::path::{Path, PathBuf};

/// The sensors of one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hwmon {
    /// Kernel name: `hwmon3`.
    pub name: String,
    /// Who shows them: `nvme`, `drivetemp`.
    pub chip: String,
    dir: PathBuf,
}

impl Hwmon {
    /// The sensors that hang on one of these folders of devices (a SCSI device, an NVMe controller), given without
    /// symbolic links; `None` where none does.
    ///
    /// # Errors
    /// [`SysfsError`] where the class exists but cannot be listed.
    pub fn of_device(sysfs: &Sysfs, device_dirs: &[PathBuf]) -> Result<Option<Self>, SysfsError> {
        let class = sysfs.sys("class/hwmon");
        for name in optional(names_in(&class))?.unwrap_or_default() {
            let dir = class.join(&name);
            let Ok(device) = real_path(&dir.join("device")) else {
                continue;
            };
            if device_dirs.contains(&device) {
                let chip = read_word(&dir.join("name"))?.unwrap_or_else(|| "unnamed".to_owned());
                return Ok(Some(Self { name, chip, dir }));
            }
        }
        Ok(None)
    }

    /// Its first sensor: of NVMe the composite temperature, of SATA the drive's.
    ///
    /// # Errors
    /// [`Absent`]: a sleeping drive does not answer.
    pub fn celsius(&self) -> Fact<f64> {
        celsius(&self.dir.join("temp1_input"))
    }

    /// The highest temperature at which the device may run for long.
    ///
    /// # Errors
    /// [`Absent`]; not every device tells.
    pub fn limit_celsius(&self) -> Fact<f64> {
        celsius(&self.dir.join("temp1_max"))
    }
}

/// Sensors count thousandths of a degree (kernel, "sysfs-interface").
#[allow(clippy::cast_precision_loss)]
fn celsius(path: &Path) -> Fact<f64> {
    let text = read_text(path)?;
    let milli: Option<i32> = text.parse().ok();
    // Below what any drive survives, and above what any does: a sensor that is not there.
    match milli.filter(|milli| (-60_000..=200_000).contains(milli)) {
        Some(milli) => Ok(f64::from(milli) / 1000.0),
        None => Err(Absent::from(SysfsError::garbled(
            path,
            &text,
            "a temperature in thousandths of a degree",
        ))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A SATA drive with `drivetemp`, an NVMe controller, and a processor's sensors that are nobody's.
    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Sysfs) {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("sys/devices/ata1/0:0:0:0/hwmon/hwmon1/name", "drivetemp\n");
        write("sys/devices/nvme0/hwmon2/name", "nvme\n");
        write("sys/devices/cpu/hwmon/hwmon0/name", "coretemp\n");
        for (path, text) in files {
            write(path, text);
        }
        let class = root.path().join("sys/class/hwmon");
        std::fs::create_dir_all(&class).unwrap();
        for (name, dir, device) in [
            ("hwmon0", "cpu/hwmon/hwmon0", "../../../cpu"),
            ("hwmon1", "ata1/0:0:0:0/hwmon/hwmon1", "../../../0:0:0:0"),
            ("hwmon2", "nvme0/hwmon2", "../../nvme0"),
        ] {
            let dir = format!("sys/devices/{dir}");
            std::os::unix::fs::symlink(device, root.path().join(&dir).join("device")).unwrap();
            std::os::unix::fs::symlink(format!("../../../{dir}"), class.join(name)).unwrap();
        }
        let sysfs = Sysfs::at(std::fs::canonicalize(root.path()).unwrap());
        (root, sysfs)
    }

    #[test]
    fn a_drive_has_the_sensors_that_hang_on_it_and_no_others() {
        let (_root, sysfs) = tree(&[
            (
                "sys/devices/ata1/0:0:0:0/hwmon/hwmon1/temp1_input",
                "34000\n",
            ),
            ("sys/devices/ata1/0:0:0:0/hwmon/hwmon1/temp1_max", "55000\n"),
            ("sys/devices/nvme0/hwmon2/temp1_input", "-1500\n"),
        ]);
        let of = |dir: &str| Hwmon::of_device(&sysfs, &[sysfs.sys(dir)]).unwrap();
        let disk = of("devices/ata1/0:0:0:0").unwrap();
        assert_eq!(
            (disk.chip.as_str(), disk.celsius()),
            ("drivetemp", Ok(34.0))
        );
        assert_eq!(disk.limit_celsius(), Ok(55.0));
        let nvme = of("devices/nvme0").unwrap();
        assert_eq!((nvme.chip.as_str(), nvme.celsius()), ("nvme", Ok(-1.5)));
        assert!(matches!(nvme.limit_celsius(), Err(Absent::NotShown { .. })));
        assert_eq!(of("devices/ata2"), None);
        let bare = Sysfs::at(sysfs.sys("none"));
        assert_eq!(Hwmon::of_device(&bare, &[]), Ok(None));
    }

    #[test]
    fn a_sensor_that_tells_nonsense_is_no_temperature() {
        for text in [
            "",
            "warm\n",
            "34 C\n",
            "255000\n",
            "-273000\n",
            "99999999999\n",
        ] {
            let (_root, sysfs) = tree(&[("sys/devices/nvme0/hwmon2/temp1_input", text)]);
            let found = Hwmon::of_device(&sysfs, &[sysfs.sys("devices/nvme0")]);
            let celsius = found.unwrap().unwrap().celsius();
            assert!(
                matches!(celsius, Err(Absent::Unreadable(_))),
                "{text:?}: {celsius:?}"
            );
        }
    }
}
