//! The guard on real loop devices: mounts, swap, partitions, loops on loops. Only loop devices that the test itself has set up are
//! aimed at, of the numbers 4 to 7.

mod bench;
mod readiness;

use crate::support::lab;
use bench::{Bench, Loop, Running, Undo, invoke, make_ext4, refused, run, run_with_input, runs};
use lanemark::session::guard::in_use;
use lanemark::sysfs::Sysfs;
use std::path::Path;

#[test]
fn consent_decides_on_an_idle_device() {
    let Some(_lab) = lab() else { return };
    let bench = Bench::new();
    let device = Loop::on(&bench.file("a"));
    let other = Loop::on(&bench.file("b"));
    let (path, name) = (device.path.as_str(), device.name.as_str());
    refused(&device, path, &[], &[], &["no consent"]);
    refused(
        &device,
        path,
        &[&other.path],
        &[],
        &["another device", &other.path],
    );
    refused(
        &device,
        path,
        &["SERIAL"],
        &[],
        &["serial number of the device is empty"],
    );
    refused(
        &device,
        path,
        &[""],
        &[],
        &["serial number of the device is empty"],
    );
    refused(
        &device,
        path,
        &[name],
        &[],
        &["serial number of the device is empty"],
    );
    runs(path, &[path], &[]);
    runs(path, &[&other.path, path], &[]);
    let link = bench.path("link");
    std::os::unix::fs::symlink(path, &link).unwrap();
    runs(&link, &[path], &[]);
    runs(path, &[&link], &[]);
    refused(&device, &link, &[&other.path], &[], &["another device"]);
}

#[test]
fn mounts_are_found_however_the_device_is_named() {
    let Some(_lab) = lab() else { return };
    let bench = Bench::new();
    let device = Loop::on(&bench.file("a"));
    let path = device.path.as_str();
    make_ext4(path);
    refused(&device, path, &[path], &[], &["ext4", "signature"]);
    refused(&device, path, &[path], &["xfs", "gpt"], &["ext4"]);
    runs(path, &[path], &["ext4"]);
    let (at, mounted) = bench.mount(path, "my disk", &[]);
    refused(
        &device,
        path,
        &[path],
        &["ext4"],
        &[&format!("mounted at {at}")],
    );
    let link = bench.path("link");
    std::os::unix::fs::symlink(path, &link).unwrap();
    refused(&device, &link, &[&link], &["ext4"], &["mounted at"]);
    // A node of another name and in another place, with the same number.
    let odd = bench.path("odd");
    run("mknod", &[&odd, "b", "7", &device.name["loop".len()..]]);
    refused(&device, &odd, &[&odd], &["ext4"], &["mounted at"]);
    let uses = in_use(&Sysfs::host(), Path::new(path));
    assert_eq!(uses, [format!("mounted at {at} ({}, ext4)", device.name)]);
    drop(mounted);
    assert!(in_use(&Sysfs::host(), Path::new(path)).is_empty());
    let (_, read_only) = bench.mount(path, "ro", &["-o", "ro"]);
    refused(&device, path, &[path], &["ext4"], &["(ro)"]);
    drop(read_only);
    runs(path, &[path], &["ext4"]);
}

#[test]
fn a_mount_in_another_namespace_is_found() {
    let Some(_lab) = lab() else { return };
    let bench = Bench::new();
    let device = Loop::on(&bench.file("a"));
    let path = device.path.as_str();
    make_ext4(path);
    let inside = bench.path("inside");
    std::fs::create_dir(&inside).unwrap();
    let script = format!("mount -o noatime {path} '{inside}' && echo ready && exec sleep 60");
    let process = Running::start("unshare", &["-m", "sh", "-c", &script]);
    let words = format!("in the mount namespace of process {}", process.0.id());
    refused(&device, path, &[path], &["ext4"], &[&words, &inside]);
    drop(process);
}

#[test]
fn partitions_count_as_the_device() {
    let Some(_lab) = lab() else { return };
    let bench = Bench::new();
    let device = Loop::on(&bench.file("a"));
    let path = device.path.as_str();
    let part = device.add_part();
    let _remove = Undo("delpart", vec![path.to_owned(), "1".to_owned()]);
    runs(path, &[path], &[]);
    runs(&part, &[&part], &[]);
    runs(&part, &[path], &[]);
    refused(&device, path, &[&part], &[], &["a part of it only"]);
    make_ext4(&part);
    refused(&device, path, &[path], &[], &["ext4", "partition"]);
    refused(&device, &part, &[&part], &[], &["ext4"]);
    runs(path, &[path], &["ext4"]);
    let (_, mounted) = bench.mount(&part, "part", &[]);
    refused(
        &device,
        path,
        &[path],
        &["ext4"],
        &["mounted at", "partition"],
    );
    refused(&device, &part, &[&part], &["ext4"], &["mounted at"]);
    drop(mounted);
    run("mkswap", &["-f", &part]);
    refused(&device, path, &[path], &["ext4"], &["swap"]);
    run("swapon", &[&part]);
    let swap = Undo("swapoff", vec![part.clone()]);
    refused(
        &device,
        path,
        &[path],
        &["swap"],
        &["swap in use", "partition"],
    );
    drop(swap);
}

#[test]
fn swap_is_found_on_devices_and_in_files() {
    let Some(_lab) = lab() else { return };
    let bench = Bench::new();
    let device = Loop::on(&bench.file("a"));
    let path = device.path.as_str();
    run("mkswap", &[path]);
    refused(&device, path, &[path], &[], &["signature: swap"]);
    run("swapon", &[path]);
    let swap = Undo("swapoff", vec![path.to_owned()]);
    refused(&device, path, &[path], &["swap"], &["swap in use"]);
    drop(swap);
    runs(path, &[path], &["swap"]);
    make_ext4(path);
    let (at, mounted) = bench.mount(path, "data", &[]);
    let file = format!("{at}/swap file");
    run(
        "dd",
        &[
            "if=/dev/zero",
            &format!("of={file}"),
            "bs=1M",
            "count=8",
            "status=none",
        ],
    );
    run("chmod", &["600", &file]);
    run("mkswap", &[&file]);
    refused(&device, &file, &[&file], &[], &["signature: swap"]);
    run("swapon", &[&file]);
    let swap = Undo("swapoff", vec![file.clone()]);
    refused(&device, &file, &[&file], &["swap"], &["swap in use"]);
    refused(&device, path, &[path], &["ext4"], &["mounted at"]);
    drop(swap);
    runs(&file, &[&file], &["swap"]);
    drop(mounted);
}

#[test]
fn loops_on_loops_are_followed_both_ways() {
    let Some(_lab) = lab() else { return };
    let bench = Bench::new();
    let file = bench.file("a");
    let lower = Loop::on(&file);
    refused(&lower, &file, &[&file], &[], &["backs", &lower.name]);
    {
        let upper = Loop::on(&lower.path);
        refused(
            &lower,
            &lower.path,
            &[&lower.path],
            &[],
            &["backs", &upper.name],
        );
        refused(&lower, &file, &[&file], &[], &["backs"]);
        runs(&upper.path, &[&upper.path], &[]);
        make_ext4(&upper.path);
        let (_, mounted) = bench.mount(&upper.path, "upper", &[]);
        refused(
            &lower,
            &lower.path,
            &[&lower.path],
            &["ext4"],
            &["backs", "mounted at"],
        );
        refused(
            &upper,
            &upper.path,
            &[&upper.path],
            &["ext4"],
            &["mounted at"],
        );
        drop(mounted);
        let (_, mounted) = bench.mount(&lower.path, "lower", &[]);
        refused(
            &upper,
            &upper.path,
            &[&upper.path],
            &["ext4"],
            &["mounted at", "the same device by another name"],
        );
        drop(mounted);
    }
    let twin = Loop::on(&file);
    let (_, mounted) = bench.mount(&lower.path, "twin", &[]);
    refused(
        &twin,
        &twin.path,
        &[&twin.path],
        &["ext4"],
        &["mounted at", &lower.name],
    );
    drop(mounted);
    let protected = Loop::with(&bench.file("b"), &["-r"]);
    refused(
        &protected,
        &protected.path,
        &[&protected.path],
        &[],
        &["read-only"],
    );
}

#[test]
fn files_need_consent_too() {
    let Some(_lab) = lab() else { return };
    let bench = Bench::new();
    let device = Loop::on(&bench.file("a"));
    let (plain, link) = (bench.file("plain"), bench.path("hard"));
    std::fs::hard_link(&plain, &link).unwrap();
    refused(&device, &plain, &[], &[], &["no consent"]);
    refused(&device, &plain, &["plain"], &[], &["another device"]);
    runs(&plain, &[&plain], &[]);
    runs(&plain, &[&link], &[]);
    let script = format!("exec 9<>'{plain}'; flock -x 9; echo ready; exec sleep 60");
    let process = Running::start("sh", &["-c", &script]);
    refused(&device, &plain, &[&plain], &[], &["locked by"]);
    drop(process);
    let folder = invoke(&bench.path(""), &[&bench.path("")], &[]);
    assert_eq!(folder.exit_code, 2, "{}", folder.text);
}

/// The formats' own tools on a loop device or a file: what they write is found under the right name, at the
/// places that tests/unit/guard_signatures.rs holds by hand.
#[test]
fn what_the_real_tools_write_is_recognised() {
    let Some(_lab) = lab() else { return };
    const TOOLS: &[(&str, &str)] = &[
        ("ext2", "mkfs.ext2 -q -F DEV"),
        ("ext3", "mkfs.ext3 -q -F DEV"),
        ("ext4", "mkfs.ext4 -q -F DEV"),
        ("xfs", "mkfs.xfs -q -f DEV"),
        ("btrfs", "mkfs.btrfs -q -f DEV"),
        ("f2fs", "mkfs.f2fs -q -f DEV"),
        ("swap", "mkswap -f DEV"),
        ("ntfs", "mkfs.ntfs -q -F -Q DEV"),
        ("fat", "mkfs.vfat -I DEV"),
        ("fat", "mkfs.vfat -I -F 32 DEV"),
        ("exfat", "mkfs.exfat DEV"),
        ("gpt", "sgdisk -n 1:2048:4095 DEV"),
        ("mbr", "sfdisk -q DEV"),
        (
            "luks1",
            "cryptsetup luksFormat -q --type luks1 --pbkdf-force-iterations 1000 DEV",
        ),
        (
            "luks2",
            "cryptsetup luksFormat -q --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 DEV",
        ),
        ("lvm", "pvcreate -qq -y DEV"),
        ("bcache", "make-bcache -B DEV"),
    ];
    let bench = Bench::new();
    let mut failures = Vec::new();
    for (name, line) in TOOLS {
        let file = bench.file("a");
        // XFS wants 300 MiB and F2FS 40.
        std::fs::File::options()
            .write(true)
            .open(&file)
            .unwrap()
            .set_len(400 << 20)
            .unwrap();
        let device = Loop::on(&file);
        let words: Vec<&str> = line
            .split(' ')
            .map(|word| {
                if word == "DEV" {
                    device.path.as_str()
                } else {
                    word
                }
            })
            .collect();
        let input = if *name == "mbr" {
            "2048,4096,L\n"
        } else {
            "a passphrase\n"
        };
        if let Err(error) = run_with_input(&words, input) {
            failures.push(format!("{line}: {error}"));
            continue;
        }
        let answer = invoke(&device.path, &[&device.path], &[]);
        if !answer.text.contains(&format!("signature: {name} (")) || answer.text.contains("; ") {
            failures.push(format!("{line}: `{}`", answer.text));
        }
        let allowed = invoke(&device.path, &[&device.path], &[name]);
        if allowed.exit_code != 0 {
            failures.push(format!("{line}, overridden: `{}`", allowed.text));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
