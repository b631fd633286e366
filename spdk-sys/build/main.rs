//! Finds SPDK, links it statically and generates the bindings; without SPDK the crate is empty and says why.
//!
//! `LANEMARK_SPDK=auto|require|off`; places looked at, in this order: `SPDK_DIR` (a prefix or a built tree),
//! `PKG_CONFIG_PATH`, the default prefix of `scripts/install-spdk`.
#![allow(clippy::print_stdout)] // it is how a build script speaks

mod bind;
mod find;
mod link;

use std::env;

/// What to do when SPDK cannot be used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Auto,
    Require,
    Off,
}

fn mode() -> Result<Mode, String> {
    match env::var("LANEMARK_SPDK").unwrap_or_default().as_str() {
        "" | "auto" => Ok(Mode::Auto),
        "require" => Ok(Mode::Require),
        "off" => Ok(Mode::Off),
        other => Err(format!("LANEMARK_SPDK={other}: give auto, require or off")),
    }
}

fn main() {
    for name in [
        "LANEMARK_SPDK",
        "SPDK_DIR",
        "PKG_CONFIG_PATH",
        "PKG_CONFIG",
        "LIBCLANG_PATH",
    ] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    for file in ["build", "shim"] {
        println!("cargo:rerun-if-changed={file}");
    }
    println!("cargo:rustc-check-cfg=cfg(spdk)");
    if let Err(message) = run() {
        println!("cargo::error={}", message.replace('\n', " | "));
        std::process::exit(1);
    }
}

fn run() -> Result<(), String> {
    let mode = mode()?;
    if mode == Mode::Off {
        absent("turned off with LANEMARK_SPDK=off");
        return Ok(());
    }
    match build() {
        Ok(()) => Ok(()),
        Err(why) if mode == Mode::Auto => {
            absent(&why);
            Ok(())
        }
        Err(why) => Err(format!("LANEMARK_SPDK=require: {why}")),
    }
}

fn build() -> Result<(), String> {
    let spdk = find::find()?;
    bind::check_libclang()?;
    let words = link::Words::parse(&spdk.libs);
    bind::bindings(&spdk.includes)?;
    bind::shims(&spdk.includes)?;
    words.print();
    println!("cargo:rustc-cfg=spdk");
    println!("cargo:found=1");
    println!("cargo:version={}", spdk.version);
    println!("cargo:dpdk_version={}", spdk.dpdk_version);
    println!("cargo:place={}", spdk.place);
    if !spdk.version.starts_with(find::TESTED) {
        let (tested, version) = (find::TESTED, &spdk.version);
        println!(
            "cargo:warning=SPDK {version} found ({}); tested is {tested}: scripts/install-spdk installs it",
            spdk.place
        );
    }
    Ok(())
}

fn absent(why: &str) {
    println!("cargo:found=0");
    println!("cargo:reason={}", why.replace('\n', "; "));
}
