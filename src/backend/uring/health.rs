//! The health of the device below a block node: asked by the nodes that the kernel has beside it.

use crate::backend::health::of_smart;
use crate::backend::sg;
use crate::record::Health;
use crate::sys::nvme::smart_at;
use crate::sysfs::attach::{Attachment, Transport};
use crate::sysfs::hwmon::Hwmon;
use crate::sysfs::nvme_controller::Controller;
use crate::sysfs::{BlockDev, Sysfs, nvme, scsi};
use std::path::PathBuf;

/// Asks the controller of an NVMe namespace, or the SCSI device by its sg node; where that is not to be had, looks
/// for sensors that the kernel's drivers show.
///
/// # Errors
/// Why nothing tells, in words.
pub(super) fn of_disk(sysfs: &Sysfs, disk: &BlockDev) -> Result<Health, String> {
    let mut why = Vec::new();
    let found = if nvme::is_nvme(&disk.name) {
        of_namespace(sysfs, disk, &mut why)
    } else if let Some(dir) = scsi::device_dir(disk.dir()) {
        of_scsi(sysfs, disk, dir, &mut why)
    } else {
        let below = disk.slaves().unwrap_or_default().join(", ");
        why.push(match below.as_str() {
            "" => format!(
                "{} is no NVMe or SCSI device: it has no health log",
                disk.name
            ),
            below => format!(
                "{} stands on other devices ({below}), which were not asked",
                disk.name
            ),
        });
        Err(Vec::new())
    };
    match found {
        Ok(health) => Ok(health),
        Err(dirs) => of_sensors(sysfs, &dirs, &mut why).ok_or_else(|| why.join("; ")),
    }
}

/// The SMART log by the controller's own node, or the folders that sensors may hang on.
fn of_namespace(
    sysfs: &Sysfs,
    disk: &BlockDev,
    why: &mut Vec<String>,
) -> Result<Health, Vec<PathBuf>> {
    let controllers = Controller::of_namespace(sysfs, &disk.name).unwrap_or_else(|error| {
        why.push(error.to_string());
        Vec::new()
    });
    if controllers.is_empty() && why.is_empty() {
        why.push(format!("the kernel shows no controller of {}", disk.name));
    }
    for controller in &controllers {
        // One that is reconnecting would let the question wait for it.
        if controller
            .state
            .as_deref()
            .is_some_and(|state| state != "live")
        {
            why.push(format!("{} is not live", controller.name));
            continue;
        }
        let path = sysfs.dev(&controller.name);
        match smart_at(&path) {
            Ok(log) => {
                let path = sysfs.shown(&path);
                return Ok(of_smart(&log, format!("SMART log by {}", path.display())));
            }
            Err(error) => why.push(format!("{}: {error}", controller.name)),
        }
    }
    let dirs = controllers.iter().map(|one| one.dir().to_owned());
    Err(dirs.collect())
}

/// The log pages by the sg node, or the folder that sensors may hang on.
fn of_scsi(
    sysfs: &Sysfs,
    disk: &BlockDev,
    dir: PathBuf,
    why: &mut Vec<String>,
) -> Result<Health, Vec<PathBuf>> {
    let is_usb = Attachment::of_block(sysfs, disk)
        .is_ok_and(|found| found.transport == Some(Transport::Usb));
    if is_usb {
        why.push("on USB, where not every bridge survives LOG SENSE: not asked".to_owned());
        return Err(vec![dir]);
    }
    match scsi::generic_node(&dir) {
        Ok(Some((node, _))) => match sg::health_of_node(sysfs, &sysfs.dev(node)) {
            Ok(health) => return Ok(health),
            Err(error) => why.push(error),
        },
        Ok(None) => why.push("it has no sg node: load the driver (modprobe sg)".to_owned()),
        Err(error) => why.push(error.to_string()),
    }
    Err(vec![dir])
}

fn of_sensors(sysfs: &Sysfs, dirs: &[PathBuf], why: &mut Vec<String>) -> Option<Health> {
    if dirs.is_empty() {
        return None;
    }
    let sensors = match Hwmon::of_device(sysfs, dirs) {
        Ok(Some(sensors)) => sensors,
        Ok(None) => {
            why.push("no sensor of it under hwmon (SATA: modprobe drivetemp)".to_owned());
            return None;
        }
        Err(error) => {
            why.push(error.to_string());
            return None;
        }
    };
    match sensors.celsius() {
        Ok(celsius) => Some(Health {
            source: format!("hwmon {}", sensors.chip),
            temperature_celsius: Some(celsius),
            limit_celsius: sensors.limit_celsius().ok(),
            ..Health::default()
        }),
        Err(error) => {
            why.push(error.to_string());
            None
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A SATA disk without an sg node, whose sensor says `celsius`.
    fn tree(celsius: Option<&str>) -> (tempfile::TempDir, Sysfs) {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            path
        };
        let write = |path: &str, text: &str| std::fs::write(at(path), text).unwrap();
        let link = |path: &str, to: &str| std::os::unix::fs::symlink(to, at(path)).unwrap();
        const DISK: &str = "sys/devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0";
        write(&format!("{DISK}/scsi_level"), "6\n");
        write(&format!("{DISK}/block/sda/dev"), "8:0\n");
        link(&format!("{DISK}/block/sda/device"), "../../../0:0:0:0");
        link("sys/class/block/sda", &format!("../../../{DISK}/block/sda"));
        if let Some(celsius) = celsius {
            write(&format!("{DISK}/hwmon/hwmon0/name"), "drivetemp\n");
            write(&format!("{DISK}/hwmon/hwmon0/temp1_input"), celsius);
            link(&format!("{DISK}/hwmon/hwmon0/device"), "../../../0:0:0:0");
            link(
                "sys/class/hwmon/hwmon0",
                &format!("../../../{DISK}/hwmon/hwmon0"),
            );
        }
        let sysfs = Sysfs::at(std::fs::canonicalize(root.path()).unwrap());
        (root, sysfs)
    }

    fn health(celsius: Option<&str>) -> Result<Health, String> {
        let (_root, sysfs) = tree(celsius);
        of_disk(&sysfs, &BlockDev::named(&sysfs, "sda").unwrap())
    }

    #[test]
    fn sensors_stand_in_where_nothing_can_be_asked() {
        let found = health(Some("41000\n")).unwrap();
        assert_eq!(found.source, "hwmon drivetemp");
        assert_eq!(
            (found.temperature_celsius, found.used_pct),
            (Some(41.0), None)
        );
    }

    #[test]
    fn every_reason_is_told_and_nothing_is_zero() {
        let why = health(None).unwrap_err();
        assert!(
            why.contains("no sg node") && why.contains("no sensor"),
            "{why}"
        );
        let why = health(Some("hot\n")).unwrap_err();
        assert!(why.contains("which is not a temperature"), "{why}");
    }
}
