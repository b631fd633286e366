//! Loop devices, mounts and files that are undone at the end, and what an invocation comes to.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// What came of one invocation: the exit code that goes with it, and what is told.
pub struct Answer {
    pub exit_code: u8,
    pub text: String,
}

/// `lanemark run --device TARGET --rw randwrite …`, a few writes of it.
pub fn invoke(target: &str, allow: &[&str], overwrite: &[&str]) -> Answer {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanemark"));
    command.args(["run", "--progress", "none", "--device", target]);
    command.args([
        "--rw",
        "randwrite",
        "--number_ios",
        "16",
        "--ramp_time",
        "0s",
    ]);
    command.args(allow.iter().flat_map(|word| ["--allow-write", word]));
    command.args(overwrite.iter().flat_map(|word| ["--overwrite", word]));
    let output = command.stdin(Stdio::null()).output().unwrap();
    Answer {
        exit_code: u8::try_from(output.status.code().unwrap_or(255)).unwrap(),
        text: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

pub fn run(command: &str, arguments: &[&str]) {
    let done = Command::new(command).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{command} {arguments:?}: {errors}");
}

/// A loop device on a file (or another device), detached at the end.
pub struct Loop {
    pub path: String,
    pub name: String,
}

impl Loop {
    pub fn on(backing: &str) -> Self {
        Self::with(backing, &[])
    }

    pub fn with(backing: &str, options: &[&str]) -> Self {
        let attach = |number: u32| {
            let name = format!("loop{number}");
            let path = format!("/dev/{name}");
            let arguments = [options, &[path.as_str(), backing]].concat();
            let done = Command::new("losetup").args(&arguments).output().unwrap();
            // Made only on success: it detaches when dropped.
            done.status.success().then(|| Self { path, name })
        };
        (4..8)
            .find_map(attach)
            .expect("a free loop device of numbers 4 to 7")
    }

    /// Adds partition 1: 8 MiB from 1 MiB on.
    pub fn add_part(&self) -> String {
        run("addpart", &[&self.path, "1", "2048", "16384"]);
        let part = format!("{}p1", self.path);
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while !Path::new(&part).exists() && std::time::Instant::now() < deadline {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        part
    }

    /// Writes and sectors written since it was made (kernel Documentation/block/stat.rst, fields 5 and 7).
    pub fn writes(&self) -> (u64, u64) {
        let text = std::fs::read_to_string(format!("/sys/block/{}/stat", self.name)).unwrap();
        let fields: Vec<u64> = text
            .split_whitespace()
            .map(|field| field.parse().unwrap())
            .collect();
        (fields[4], fields[6])
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.path]).output();
    }
}

/// Undoes something at the end, whatever happens before.
pub struct Undo(pub &'static str, pub Vec<String>);

impl Drop for Undo {
    fn drop(&mut self) {
        let _ = Command::new(self.0).args(&self.1).output();
    }
}

/// A file of 64 MiB with known bytes, a folder to mount on.
pub struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir_in("/dev/shm").unwrap(),
        }
    }

    /// On the disk's file system, where files have extents and take O_DIRECT.
    pub fn on_disk() -> Self {
        Self {
            folder: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(),
        }
    }

    pub fn file(&self, name: &str) -> String {
        let path = self.path(name);
        std::fs::File::create(&path)
            .unwrap()
            .set_len(64 << 20)
            .unwrap();
        path
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    pub fn mount(&self, device: &str, name: &str, options: &[&str]) -> (String, Undo) {
        let at = self.path(name);
        std::fs::create_dir_all(&at).unwrap();
        run(
            "mount",
            &[&["-o", "noatime"], options, &[device, &at]].concat(),
        );
        (at.clone(), Undo("umount", vec![at]))
    }
}

/// FNV-1a over the whole device, past the page cache: what a file system keeps there is not the device's.
fn hash(path: &str) -> u64 {
    use std::io::Read;
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::File::options();
    let mut file = options
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(path)
        .unwrap();
    let mut room = vec![0_u8; (1 << 20) + 4096];
    let skip = room.as_ptr().align_offset(4096);
    let chunk = &mut room[skip..skip + (1 << 20)];
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    loop {
        let got = file.read(chunk).unwrap();
        if got == 0 {
            return hash;
        }
        for word in chunk[..got].chunks(8) {
            let mut bytes = [0; 8];
            bytes[..word.len()].copy_from_slice(word);
            hash = (hash ^ u64::from_le_bytes(bytes)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// The invocation must exit 3, name the finding, and leave the device as it was. A mounted file system may
/// write by itself in that moment, so there are several tries: a tool that writes would write in each.
pub fn refused(device: &Loop, target: &str, allow: &[&str], overwrite: &[&str], words: &[&str]) {
    let is_unchanged = (0..5).any(|_| {
        run("sync", &[]);
        let before = (hash(&device.path), device.writes());
        let answer = invoke(target, allow, overwrite);
        assert_eq!(answer.exit_code, 3, "{target} was let through");
        for word in words {
            assert!(
                answer.text.contains(word),
                "`{word}` is not in `{}`",
                answer.text
            );
        }
        (hash(&device.path), device.writes()) == before
    });
    assert!(is_unchanged, "{target} was written");
}

pub fn runs(target: &str, allow: &[&str], overwrite: &[&str]) {
    let answer = invoke(target, allow, overwrite);
    assert_eq!(answer.exit_code, 0, "{target}: {}", answer.text);
}

/// A process that is ended at the end.
pub struct Running(pub Child);

impl Running {
    /// Starts a script and waits until it says `ready`.
    pub fn start(command: &str, arguments: &[&str]) -> Self {
        let mut process = Command::new(command)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0; 6];
        std::io::Read::read_exact(process.stdout.as_mut().unwrap(), &mut ready).unwrap();
        Self(process)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An ext4 file system that nobody changes behind our back: no lazy initialisation.
pub fn make_ext4(device: &str) {
    run(
        "mkfs.ext4",
        &[
            "-q",
            "-F",
            "-E",
            "lazy_itable_init=0,lazy_journal_init=0",
            device,
        ],
    );
}

pub fn run_with_input(words: &[&str], input: &str) -> Result<(), String> {
    let mut process = Command::new(words[0])
        .args(&words[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    // A tool that reads nothing has closed its end already.
    let _ = std::io::Write::write_all(process.stdin.as_mut().unwrap(), input.as_bytes());
    drop(process.stdin.take());
    let done = process
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    if done.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&done.stderr).into_owned())
    }
}
