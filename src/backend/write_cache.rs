//! What devices, and the kernel for them, say of their write cache.

use crate::record::{WriteCache, WriteCacheState};
use crate::sysfs::nvme_controller::Controller;
use crate::sysfs::{BlockDev, Sysfs, names_in, nvme, read_text, scsi};
use std::path::Path;

/// As an NVMe controller answers: on or off, or that it has none.
pub(super) fn of_feature(is_on: Option<bool>, by: &str) -> WriteCache {
    WriteCache {
        state: match is_on {
            Some(true) => WriteCacheState::On,
            Some(false) => WriteCacheState::Off,
            None => WriteCacheState::None,
        },
        source: format!("feature 06h by {by}"),
    }
}

/// As the caching mode page of a SCSI device has it.
pub(super) fn of_mode_page(is_on: bool, by: &str) -> WriteCache {
    WriteCache {
        state: match is_on {
            true => WriteCacheState::On,
            false => WriteCacheState::Off,
        },
        source: format!("caching mode page by {by}"),
    }
}

/// Of a whole disk. An NVMe controller is asked by its own node with `ask`: the kernel shows only whether there is
/// such a cache. A SCSI disk was asked by the kernel's sd, anything else says how its driver takes it.
///
/// # Errors
/// Why it is not known, in words.
pub(super) fn of_disk<E: std::fmt::Display>(
    sysfs: &Sysfs,
    disk: &BlockDev,
    ask: impl Fn(&Path) -> Result<Option<bool>, E>,
) -> Result<WriteCache, String> {
    if nvme::is_nvme(&disk.name) {
        return of_namespace(sysfs, disk, ask);
    }
    let scsi_disk = scsi::device_dir(disk.dir()).map(|dir| dir.join("scsi_disk"));
    if let Some(dir) = scsi_disk
        && let Some(name) = names_in(&dir).unwrap_or_default().first()
    {
        return shown(
            &dir.join(name).join("cache_type"),
            &format!("cache_type of {}", disk.name),
        );
    }
    shown(
        &disk.dir().join("queue/write_cache"),
        &format!("queue/write_cache of {}", disk.name),
    )
}

fn of_namespace<E: std::fmt::Display>(
    sysfs: &Sysfs,
    disk: &BlockDev,
    ask: impl Fn(&Path) -> Result<Option<bool>, E>,
) -> Result<WriteCache, String> {
    let controllers = Controller::of_namespace(sysfs, &disk.name);
    let controllers = controllers.map_err(|error| error.to_string())?;
    let mut why = Vec::new();
    for controller in controllers {
        // One that is reconnecting would let the question wait for it.
        if !controller.is_live() {
            why.push(format!("{} is not live", controller.name));
            continue;
        }
        let path = sysfs.dev(&controller.name);
        match ask(&path) {
            Ok(is_on) => {
                return Ok(of_feature(is_on, &sysfs.shown(&path).display().to_string()));
            }
            Err(error) => why.push(format!("{}: {error}", controller.name)),
        }
    }
    if why.is_empty() {
        why.push(format!("the kernel shows no controller of {}", disk.name));
    }
    Err(why.join("; "))
}

/// `write back`, `write through` and what drivers/scsi/sd.c knows beside them (`sd_cache_types`): `none` has no cache
/// for reads, and none for writes either.
fn shown(path: &Path, source: &str) -> Result<WriteCache, String> {
    let text = read_text(path).map_err(|error| error.to_string())?;
    let state = match text.as_str() {
        "write through" | "none" => WriteCacheState::Off,
        "write back" | "write back, no read (daft)" => WriteCacheState::On,
        other => return Err(format!("{source} is `{other}`, which is not known")),
    };
    Ok(WriteCache {
        state,
        source: source.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A disk below `dir` with these files.
    fn found(name: &str, dir: &str, files: &[(&str, &str)]) -> Result<WriteCache, String> {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(&format!("sys/devices/{dir}/{name}/dev"), "8:0\n");
        for (path, text) in files {
            write(&format!("sys/devices/{path}"), text);
        }
        let class = root.path().join("sys/class/block");
        std::fs::create_dir_all(&class).unwrap();
        std::os::unix::fs::symlink(format!("../../devices/{dir}/{name}"), class.join(name))
            .unwrap();
        let sysfs = Sysfs::at(std::fs::canonicalize(root.path()).unwrap());
        let disk = BlockDev::named(&sysfs, name).unwrap();
        of_disk(&sysfs, &disk, |path| match path.exists() {
            true => Ok(Some(true)),
            false => Err("no node"),
        })
    }

    fn scsi(cache_type: &str) -> Result<WriteCache, String> {
        const DEVICE: &str = "pci0000:00/host0/target0:0:0/0:0:0:0";
        found(
            "sda",
            &format!("{DEVICE}/block"),
            &[
                (&format!("{DEVICE}/scsi_level"), "6\n"),
                (&format!("{DEVICE}/block/sda/device/scsi_level"), "6\n"),
                (
                    &format!("{DEVICE}/block/sda/device/scsi_disk/0:0:0:0/cache_type"),
                    cache_type,
                ),
                (
                    &format!("{DEVICE}/block/sda/queue/write_cache"),
                    "write back\n",
                ),
            ],
        )
    }

    #[test]
    fn a_scsi_disk_is_as_sd_has_found_it_whatever_the_kernel_was_told_since() {
        for (text, state) in [
            ("write back\n", WriteCacheState::On),
            ("write back, no read (daft)\n", WriteCacheState::On),
            ("write through\n", WriteCacheState::Off),
            ("none\n", WriteCacheState::Off),
        ] {
            let found = scsi(text).unwrap();
            assert_eq!(
                (found.state, found.source.as_str()),
                (state, "cache_type of sda")
            );
        }
        let why = scsi("sideways\n").unwrap_err();
        assert!(why.contains("`sideways`"), "{why}");
    }

    #[test]
    fn others_are_as_their_driver_takes_them() {
        let vda = |text| {
            found(
                "vda",
                "virtio0/block",
                &[("virtio0/block/vda/queue/write_cache", text)],
            )
        };
        assert_eq!(vda("write back\n").unwrap().state, WriteCacheState::On);
        assert_eq!(vda("write through\n").unwrap().state, WriteCacheState::Off);
        let why = found("vda", "virtio0/block", &[]).unwrap_err();
        assert!(why.contains("write_cache"), "{why}");
    }

    #[test]
    fn an_nvme_drive_is_not_taken_for_switched_on_since_it_has_a_cache() {
        let namespace = "pci0000:00/nvme/nvme0";
        let file = format!("{namespace}/nvme0n1/queue/write_cache");
        let why = found("nvme0n1", namespace, &[(&file, "write back\n")]).unwrap_err();
        assert!(!why.is_empty());
    }

    #[test]
    fn the_feature_and_the_mode_page_are_told_with_where_they_were_read() {
        let states = [Some(true), Some(false), None].map(|is_on| of_feature(is_on, "x").state);
        assert_eq!(
            states,
            [
                WriteCacheState::On,
                WriteCacheState::Off,
                WriteCacheState::None
            ]
        );
        assert_eq!(
            of_feature(None, "/dev/nvme0").source,
            "feature 06h by /dev/nvme0"
        );
        assert_eq!(of_mode_page(true, "/dev/sg0").state, WriteCacheState::On);
        assert_eq!(of_mode_page(false, "/dev/sg0").state, WriteCacheState::Off);
    }
}
