//! Provenance for `--version` and every record, and `cfg(spdk)` from what spdk-sys found.
//!
//! Sets `LANEMARK_GIT_COMMIT` (with `-dirty`, or `unknown` outside git), `LANEMARK_RUSTC`,
//! `LANEMARK_TARGET`, `LANEMARK_PROFILE`, `LANEMARK_SPDK_VERSION` and `LANEMARK_DPDK_VERSION` (empty without
//! SPDK), `LANEMARK_SPDK_ABSENT` (why there is none; empty with SPDK).
#![allow(clippy::print_stdout)] // it is how a build script speaks

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rustc-check-cfg=cfg(spdk)");
    println!("cargo:rerun-if-changed=build.rs");
    if env::var("PROFILE").as_deref() == Ok("release") {
        println!("cargo:rerun-if-changed=src");
    }
    set("GIT_COMMIT", &commit());
    set(
        "RUSTC",
        &output(
            &env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned()),
            &["--version"],
        )
        .unwrap_or_else(unknown),
    );
    set("TARGET", &env::var("TARGET").unwrap_or_else(|_| unknown()));
    set(
        "PROFILE",
        &env::var("PROFILE").unwrap_or_else(|_| unknown()),
    );
    spdk();
}

/// What spdk-sys' build script found (its `links` metadata).
fn spdk() {
    let found = env::var("DEP_SPDK_FOUND").as_deref() == Ok("1");
    if found {
        println!("cargo:rustc-cfg=spdk");
    }
    let fact = |name: &str| env::var(format!("DEP_SPDK_{name}")).unwrap_or_default();
    set("SPDK_VERSION", &fact("VERSION"));
    set("DPDK_VERSION", &fact("DPDK_VERSION"));
    set("SPDK_ABSENT", &fact("REASON"));
}

/// The commit of this source tree, and whether tracked files differ from it.
fn commit() -> String {
    let root = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let git = |arguments: &[&str]| output("git", &[&["-C", root.as_str()], arguments].concat());
    // An unpacked tarball may lie inside somebody else's repository: that commit is not ours.
    let ours = git(&["rev-parse", "--show-toplevel"])
        .is_some_and(|top| same(Path::new(&top), Path::new(&root)));
    if !ours {
        return unknown();
    }
    // A debug build does not follow every commit: it would rebuild everything for a line of `--version`.
    let followed: &[&str] = match env::var("PROFILE").as_deref() {
        Ok("release") => &["HEAD", "index", "logs/HEAD"],
        _ => &[],
    };
    for name in followed {
        if let Some(path) = git(&["rev-parse", "--path-format=absolute", "--git-path", name])
            .filter(|path| Path::new(path).exists())
        {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else {
        return unknown();
    };
    let dirty = git(&["status", "--porcelain", "--untracked-files=no"])
        .is_none_or(|changes| !changes.is_empty());
    if dirty {
        format!("{commit}-dirty")
    } else {
        commit
    }
}

fn same(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    String::from_utf8(output.stdout)
        .ok()
        .map(|text| text.trim().to_owned())
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// A fact for `env!`. A line break would end the cargo line.
fn set(name: &str, value: &str) {
    println!(
        "cargo:rustc-env=LANEMARK_{name}={}",
        value.replace(['\n', '\r'], " ")
    );
}
