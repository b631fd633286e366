//! The running kernel: what it is asked to do, it does in bounded time, or it is given up.

use crate::errno::Errno;
use crate::sys::bounded;
use crate::sysfs::bind::Kernel;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A driver that takes a healthy device, or lets go of it, is done within a second. A controller that answers no
/// more is waited for up to 127 s by the kernel's nvme (CAP.TO counts half seconds in 8 bits).
pub(super) const WRITE_LIMIT: Duration = Duration::from_secs(150);
const MODULE_LIMIT: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The running kernel.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostKernel;

impl Kernel for HostKernel {
    fn write(&self, path: &Path, text: &str) -> Result<(), Errno> {
        bounded::write(path, text.as_bytes(), WRITE_LIMIT)
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, Errno> {
        bounded::read(path, WRITE_LIMIT)
    }

    fn write_limit(&self) -> Duration {
        WRITE_LIMIT
    }

    fn load_module(&self, name: &str) -> Result<(), String> {
        let mut child = Command::new("modprobe")
            .arg(name)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("modprobe cannot be run: {error}"))?;
        let deadline = Instant::now() + MODULE_LIMIT;
        loop {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(_)) => break,
                Ok(None) if Instant::now() < deadline => std::thread::sleep(LOOK_EVERY),
                Ok(None) => {
                    let _ = child.kill();
                    let limit_s = MODULE_LIMIT.as_secs();
                    return Err(format!("modprobe has not ended within {limit_s} s"));
                }
                Err(error) => return Err(format!("modprobe cannot be waited for: {error}")),
            }
        }
        let said = child
            .stderr
            .take()
            .and_then(|pipe| std::io::read_to_string(pipe).ok())
            .unwrap_or_default();
        Err(said.lines().last().unwrap_or("it failed").trim().to_owned())
    }
}
