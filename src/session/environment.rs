//! The machine and the program, as a record shows them.

use crate::record::{Environment, Tool};
use crate::sys::clock::MachineClock;
use crate::sys::cpu::{AllowedCpus, kernel_release};
use crate::sysfs::{Sysfs, read_text};
use std::time::{SystemTime, UNIX_EPOCH};

/// The program, with where it came from.
#[must_use]
pub fn tool(cost_ns_per_io: Option<f64>) -> Tool {
    Tool {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        git_commit: option_env!("LANEMARK_GIT_COMMIT")
            .unwrap_or("unknown")
            .to_owned(),
        spdk_version: crate::spdk::versions().map(|(spdk, _)| spdk.to_owned()),
        cost_ns_per_io,
    }
}

/// The machine as it is now. What cannot be read is absent, or `unknown`.
#[must_use]
pub fn environment(sysfs: &Sysfs, clock: &MachineClock, allowed: &AllowedCpus) -> Environment {
    let text = |path| read_text(&sysfs.sys(path)).ok();
    let first_cpu = allowed.cpus().first().copied().unwrap_or(0);
    let governor = format!("devices/system/cpu/cpu{first_cpu}/cpufreq/scaling_governor");
    Environment {
        kernel: kernel_release(),
        cpu: cpu_model(sysfs).unwrap_or_else(|| "unknown".to_owned()),
        cpus_allowed: crate::units::CpuList(allowed.cpus().to_vec()).to_string(),
        governor: text(governor.as_str()),
        clocksource: text("devices/system/clocksource/clocksource0/current_clocksource"),
        clock: clock.kind().to_owned(),
        clock_hz: clock.hz(),
        smt: text("devices/system/cpu/smt/active").map(|active| active == "1"),
        started_unix_s: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |t| t.as_secs()),
    }
}

fn cpu_model(sysfs: &Sysfs) -> Option<String> {
    let info = read_text(&sysfs.proc("cpuinfo")).ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
