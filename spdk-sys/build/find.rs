//! Where SPDK is, and what pkg-config says about it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The release that is tested.
pub const TESTED: &str = "26.01";
/// The default prefix of `scripts/install-spdk`.
const DEFAULT_PREFIX: &str = "/opt/lanemark/spdk";
/// What lanemark links: the NVMe driver, the environment, sockets for NVMe/TCP, and what they need.
const PACKAGES: [&str; 4] = [
    "spdk_nvme",
    "spdk_env_dpdk",
    "spdk_sock_posix",
    "spdk_syslibs",
];

/// An SPDK that was found.
pub struct Spdk {
    /// Where, in words.
    pub place: String,
    /// Folders with headers.
    pub includes: Vec<PathBuf>,
    /// pkg-config's words for a static link.
    pub libs: Vec<String>,
    /// Like `26.01.0`.
    pub version: String,
    /// Like `25.11.0`.
    pub dpdk_version: String,
}

/// A place to look at: its name, and the folders of .pc files it stands for (none: pkg-config's own).
struct Place {
    name: String,
    folders: Vec<PathBuf>,
}

fn places() -> Vec<Place> {
    let mut places = Vec::new();
    if let Some(dir) = env::var_os("SPDK_DIR").map(PathBuf::from) {
        places.push(Place {
            name: format!("SPDK_DIR={}", dir.display()),
            folders: [
                "lib/pkgconfig",
                "build/lib/pkgconfig",
                "dpdk/build/lib/pkgconfig",
            ]
            .map(|sub| dir.join(sub))
            .to_vec(),
        });
    }
    if let Ok(path) = env::var("PKG_CONFIG_PATH") {
        places.push(Place {
            name: format!("PKG_CONFIG_PATH={path}"),
            folders: Vec::new(),
        });
    }
    places.push(Place {
        name: DEFAULT_PREFIX.to_owned(),
        folders: vec![Path::new(DEFAULT_PREFIX).join("lib/pkgconfig")],
    });
    places
}

/// Makes cargo look again when SPDK appears or changes in a place. A path that is not there would make every
/// build run the script anew, so its nearest existing parent is watched.
fn watch(folder: &Path) {
    let mut here = folder.join("spdk_nvme.pc");
    while !here.exists() {
        if !here.pop() {
            return;
        }
    }
    if here != Path::new("/") {
        println!("cargo:rerun-if-changed={}", here.display());
    }
}

/// The first place that has SPDK.
///
/// # Errors
/// Every place looked at with its reason, and the remedy.
pub fn find() -> Result<Spdk, String> {
    let mut tried = Vec::new();
    for place in places() {
        place.folders.iter().for_each(|folder| watch(folder));
        match look(&place) {
            Ok(spdk) => return Ok(spdk),
            Err(why) => tried.push(format!("{}: {why}", place.name)),
        }
    }
    Err(format!(
        "no SPDK found (looked at {}); run scripts/install-spdk, or set SPDK_DIR",
        tried.join(", ")
    ))
}

fn look(place: &Place) -> Result<Spdk, String> {
    let present = |folder: &PathBuf| folder.join("spdk_nvme.pc").exists();
    if !place.folders.is_empty() && !place.folders.iter().any(present) {
        return Err("no spdk_nvme.pc".to_owned());
    }
    let cflags = pkg_config(place, &["--cflags"], &PACKAGES)?;
    let libs = pkg_config(place, &["--libs", "--static"], &PACKAGES)?;
    let includes: Vec<PathBuf> = cflags
        .iter()
        .filter_map(|word| word.strip_prefix("-I"))
        .map(PathBuf::from)
        .collect();
    let version = header_version(&includes)?;
    let dpdk = pkg_config(place, &["--modversion"], &["libdpdk"])
        .ok()
        .and_then(|words| words.into_iter().next());
    Ok(Spdk {
        place: place.name.clone(),
        includes,
        libs,
        version,
        dpdk_version: dpdk.unwrap_or_else(|| "unknown".to_owned()),
    })
}

fn pkg_config(place: &Place, options: &[&str], packages: &[&str]) -> Result<Vec<String>, String> {
    let program = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".to_owned());
    let mut command = Command::new(&program);
    command.args(options).args(packages);
    if !place.folders.is_empty() {
        let own = env::var_os("PKG_CONFIG_PATH");
        let inherited = own.iter().flat_map(env::split_paths);
        let path = env::join_paths(place.folders.iter().cloned().chain(inherited))
            .map_err(|error| error.to_string())?;
        command.env("PKG_CONFIG_PATH", path);
    }
    let output = command
        .output()
        .map_err(|error| format!("{program} does not run: {error}"))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(text
            .lines()
            .find(|line| !line.is_empty())
            .unwrap_or("pkg-config failed")
            .to_owned());
    }
    let text = String::from_utf8(output.stdout)
        .map_err(|_| "pkg-config's answer is not UTF-8".to_owned())?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

/// The version in `spdk/version.h`: the .pc files carry the library's ABI number instead.
fn header_version(includes: &[PathBuf]) -> Result<String, String> {
    let path = includes
        .iter()
        .map(|dir| dir.join("spdk/version.h"))
        .find(|path| path.exists());
    let path = path.ok_or("no spdk/version.h in its include folders")?;
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let number = |name: &str| {
        text.lines().find_map(|line| {
            let rest = line
                .trim()
                .strip_prefix("#define")?
                .trim()
                .strip_prefix(name)?;
            rest.starts_with(char::is_whitespace)
                .then(|| rest.trim().parse::<u32>().ok())
                .flatten()
        })
    };
    match (
        number("SPDK_VERSION_MAJOR"),
        number("SPDK_VERSION_MINOR"),
        number("SPDK_VERSION_PATCH"),
    ) {
        (Some(major), Some(minor), Some(patch)) => Ok(format!("{major}.{minor:02}.{patch}")),
        _ => Err(format!(
            "{} has no SPDK_VERSION_MAJOR, _MINOR and _PATCH",
            path.display()
        )),
    }
}
