//! CPUs: which may be used, which to choose, pinning, CPU time.

use super::{clock_ns, last_errno};
use crate::errno::Errno;
use crate::sysfs::{Sysfs, SysfsError, names_in, read_text};

/// The kernel's own limit is far below (`CONFIG_NR_CPUS` is at most 8192 on x86-64).
const MAX_CPUS_COUNT: usize = 1 << 18;
const WORD_BITS: usize = u64::BITS as usize;

/// Why a CPU cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CpuError {
    /// Not among the CPUs that this process was started with.
    #[error("CPU {cpu} cannot be used: {why}; allowed: {allowed}")]
    NotAllowed {
        /// The CPU asked for.
        cpu: u32,
        /// What keeps us from it.
        why: &'static str,
        /// What is allowed, in the kernel's notation.
        allowed: String,
    },
    /// The kernel refused.
    #[error("{what} failed: {errno}")]
    Kernel {
        /// Which call.
        what: &'static str,
        /// Why.
        errno: Errno,
    },
}

/// The CPUs that this process may use, as they were when it asked: affinity mask, cpuset cgroup and
/// online CPUs together. Ask once, at the start, before anything is pinned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedCpus {
    cpus: Vec<u32>,
}

impl AllowedCpus {
    /// Reads the affinity mask of the calling thread. The kernel has cut it down to the cgroup's cpuset
    /// and to active CPUs by itself (kernel/sched/syscalls.c, `sched_getaffinity`).
    ///
    /// # Errors
    /// [`CpuError::Kernel`].
    pub fn at_start() -> Result<Self, CpuError> {
        Ok(Self { cpus: affinity()? })
    }

    /// A given set, for tests.
    #[must_use]
    pub fn of(cpus: &[u32]) -> Self {
        let mut cpus = cpus.to_vec();
        cpus.sort_unstable();
        cpus.dedup();
        Self { cpus }
    }

    /// Ascending CPU numbers.
    #[must_use]
    pub fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    /// Whether every CPU of `asked` may be used.
    ///
    /// # Errors
    /// [`CpuError::NotAllowed`] for the first that may not, with what keeps us from it.
    pub fn check(&self, sysfs: &Sysfs, asked: &[u32]) -> Result<(), CpuError> {
        match asked.iter().find(|cpu| !self.cpus.contains(cpu)) {
            None => Ok(()),
            Some(&cpu) => Err(CpuError::NotAllowed {
                cpu,
                why: why_not(sysfs, cpu),
                allowed: list_text(&self.cpus),
            }),
        }
    }
}

/// The likely reason why a CPU is missing from the mask.
fn why_not(sysfs: &Sysfs, cpu: u32) -> &'static str {
    let lacks = |list: Result<Vec<u32>, _>| list.is_ok_and(|cpus| !cpus.contains(&cpu));
    if lacks(cpu_list(sysfs, "present")) {
        "this machine has no such CPU"
    } else if lacks(cpu_list(sysfs, "online")) {
        "it is offline"
    } else if cgroup_cpus(sysfs).is_some_and(|cpus| !cpus.contains(&cpu)) {
        "the cpuset cgroup of this process leaves it out"
    } else {
        "the affinity mask of this process (taskset) leaves it out"
    }
}

/// A list of `devices/system/cpu`: `online`, `present`, `isolated`.
///
/// # Errors
/// [`SysfsError`].
pub fn cpu_list(sysfs: &Sysfs, name: &str) -> Result<Vec<u32>, SysfsError> {
    let path = sysfs.sys("devices/system/cpu").join(name);
    let text = read_text(&path)?;
    parse_list(&text).ok_or(SysfsError::Garbled {
        path,
        text,
        wanted: "a list of CPUs",
    })
}

/// The CPUs of this process's cpuset cgroup (v2, then v1); `None` where there is none to be read.
#[must_use]
pub fn cgroup_cpus(sysfs: &Sysfs) -> Option<Vec<u32>> {
    let groups = read_text(&sysfs.proc("self/cgroup")).ok()?;
    let find = |wanted: fn(&str) -> bool| {
        groups.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':');
            let _hierarchy = fields.next()?;
            let controllers = fields.next()?;
            let path = fields.next()?;
            wanted(controllers).then(|| path.trim_start_matches('/').to_owned())
        })
    };
    let v2 = find(str::is_empty).map(|path| ("", path, "cpuset.cpus.effective"));
    let v1 = find(|names| names.split(',').any(|name| name == "cpuset"));
    let v1 = v1.map(|path| ("cpuset", path, "cpuset.effective_cpus"));
    [v2, v1]
        .into_iter()
        .flatten()
        .find_map(|(mount, path, file)| {
            let path = sysfs.sys("fs/cgroup").join(mount).join(path).join(file);
            parse_list(&read_text(&path).ok()?).filter(|cpus| !cpus.is_empty())
        })
}

/// Groups of CPUs that share a core (SMT siblings), each ascending, one group per core. CPUs without
/// topology files stand alone.
#[must_use]
pub fn sibling_groups(sysfs: &Sysfs, cpus: &[u32]) -> Vec<Vec<u32>> {
    let mut groups: Vec<Vec<u32>> = Vec::new();
    for &cpu in cpus {
        if groups.iter().any(|group| group.contains(&cpu)) {
            continue;
        }
        let path = sysfs.sys(format!(
            "devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
        ));
        let group = read_text(&path).ok().and_then(|text| parse_list(&text));
        groups.push(
            group
                .filter(|group| group.contains(&cpu))
                .unwrap_or_else(|| vec![cpu]),
        );
    }
    groups
}

/// The CPUs of a NUMA node; `None` where the kernel shows no such node.
#[must_use]
pub fn numa_node_cpus(sysfs: &Sysfs, node: u32) -> Option<Vec<u32>> {
    let path = sysfs.sys(format!("devices/system/node/node{node}/cpulist"));
    parse_list(&read_text(&path).ok()?)
}

/// The NUMA nodes that have CPUs, ascending, each with its CPUs; none where the kernel shows no nodes.
#[must_use]
pub fn numa_nodes(sysfs: &Sysfs) -> Vec<(u32, Vec<u32>)> {
    let names = names_in(&sysfs.sys("devices/system/node")).unwrap_or_default();
    let mut nodes: Vec<(u32, Vec<u32>)> = names
        .iter()
        .filter_map(|name| name.strip_prefix("node")?.parse().ok())
        .filter_map(|node| Some((node, numa_node_cpus(sysfs, node)?)))
        .filter(|(_, cpus)| !cpus.is_empty())
        .collect();
    nodes.sort_unstable();
    nodes
}

/// Chooses up to `count` of the allowed CPUs, best first: one per core before any SMT sibling is
/// doubled up, then those near the device, then away from CPU 0 (and its core), which gets most
/// interrupts and housekeeping. Fewer come back where fewer are allowed.
#[must_use]
pub fn choose_cpus(
    allowed: &[u32],
    siblings: &[Vec<u32>],
    numa_node_cpus: Option<&[u32]>,
    count: usize,
) -> Vec<u32> {
    let core_of = |cpu: u32| siblings.iter().find(|group| group.contains(&cpu));
    let rank = |cpu: u32| {
        let core = core_of(cpu);
        // Within a core CPU 0 comes last, so that its sibling stands for the core.
        let before_on_core = core.map_or(0, |group| {
            let key = |cpu: u32| (cpu == 0, cpu);
            let ahead = |&&other: &&u32| allowed.contains(&other) && key(other) < key(cpu);
            group.iter().filter(ahead).count()
        });
        let far = numa_node_cpus.is_some_and(|near| !near.contains(&cpu));
        let core_of_0 = cpu == 0 || core.is_some_and(|group| group.contains(&0));
        (before_on_core, far, core_of_0, cpu)
    };
    let mut chosen = AllowedCpus::of(allowed).cpus;
    chosen.sort_by_key(|&cpu| rank(cpu));
    chosen.truncate(count);
    chosen
}

/// Pins the calling thread to one CPU.
///
/// # Errors
/// [`CpuError::Kernel`]: EINVAL where the CPU is offline or outside the cpuset.
pub fn pin_current_thread(cpu: u32) -> Result<(), CpuError> {
    set_affinity(&[cpu])
}

/// Lets the calling thread run on exactly these CPUs.
///
/// # Errors
/// [`CpuError::Kernel`].
pub fn set_affinity(cpus: &[u32]) -> Result<(), CpuError> {
    let highest = cpus.iter().copied().max().unwrap_or(0) as usize;
    let mut mask = vec![0u64; highest / WORD_BITS + 1];
    for &cpu in cpus {
        mask[cpu as usize / WORD_BITS] |= 1 << (cpu as usize % WORD_BITS);
    }
    // SAFETY: `mask` is live and `size_of_val` bytes long; the kernel only reads it. A cpu_set_t is a
    // bit array of any length given by the size (CPU_SET(3), "Dynamically sized CPU sets").
    let done = unsafe {
        libc::sched_setaffinity(0, std::mem::size_of_val(&mask[..]), mask.as_ptr().cast())
    };
    if done == 0 {
        Ok(())
    } else {
        Err(kernel("sched_setaffinity"))
    }
}

/// The affinity mask of the calling thread, ascending.
fn affinity() -> Result<Vec<u32>, CpuError> {
    let mut words = 1024 / WORD_BITS;
    loop {
        let mut mask = vec![0u64; words];
        // SAFETY: `mask` is live and `size_of_val` bytes long, and the kernel writes no more than that.
        let done = unsafe {
            libc::sched_getaffinity(
                0,
                std::mem::size_of_val(&mask[..]),
                mask.as_mut_ptr().cast(),
            )
        };
        if done == 0 {
            return Ok(bits_of(&mask));
        }
        // EINVAL: the kernel's mask is longer than ours.
        if last_errno() != Errno(libc::EINVAL) || words * WORD_BITS >= MAX_CPUS_COUNT {
            return Err(kernel("sched_getaffinity"));
        }
        words *= 4;
    }
}

fn bits_of(mask: &[u64]) -> Vec<u32> {
    let set = |&cpu: &usize| mask[cpu / WORD_BITS] >> (cpu % WORD_BITS) & 1 == 1;
    let cpus = (0..mask.len() * WORD_BITS).filter(set);
    // At most MAX_CPUS_COUNT.
    cpus.map(|cpu| cpu as u32).collect()
}

fn kernel(what: &'static str) -> CpuError {
    CpuError::Kernel {
        what,
        errno: last_errno(),
    }
}

/// The kernel's list notation, `0-3,8`; empty text is an empty list.
fn parse_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last as usize >= MAX_CPUS_COUNT {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// Ascending CPUs in the kernel's notation.
fn list_text(cpus: &[u32]) -> String {
    let runs = cpus.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    });
    runs.collect::<Vec<_>>().join(",")
}

/// CPU time of the calling thread, user and kernel, in nanoseconds.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Makes timeouts of the calling thread end when asked instead of up to 50 µs later
/// (`PR_SET_TIMERSLACK`; 1 ns is the least, 0 would mean the default).
pub fn tighten_timers() {
    // SAFETY: this option takes one integer and touches no memory. It cannot fail on our own thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) };
}

/// The kernel's release, as `uname -r` prints it.
#[must_use]
pub fn kernel_release() -> String {
    // SAFETY: utsname is arrays of bytes, for which all zeros is a value.
    let mut name: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: `name` is live and writable, and the kernel fills no more than it.
    unsafe { libc::uname(&raw mut name) };
    // Signedness of c_char differs between architectures; the byte is what counts.
    #[allow(clippy::unnecessary_cast)]
    let bytes = name.release.iter().map(|&byte| byte as u8);
    let bytes: Vec<u8> = bytes.take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Context switches of the calling thread so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadUsage {
    /// Times it slept of its own will.
    pub voluntary_switches_count: u64,
    /// Times it was preempted.
    pub involuntary_switches_count: u64,
}

/// What the calling thread has used.
#[must_use]
pub fn thread_usage() -> ThreadUsage {
    // SAFETY: rusage is integers only, for which all zeros is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is live and writable; RUSAGE_THREAD is known since Linux 2.6.26.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    ThreadUsage {
        voluntary_switches_count: usage.ru_nvcsw as u64,
        involuntary_switches_count: usage.ru_nivcsw as u64,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn lists_go_beyond_64_and_back() {
        let cpus = parse_list("0-2,8,127-128").unwrap();
        assert_eq!(cpus, [0, 1, 2, 8, 127, 128]);
        assert_eq!(list_text(&cpus), "0-2,8,127-128");
        assert_eq!(parse_list(""), Some(vec![]));
        for bad in ["a", "3-1", "1-", "0-4294967295"] {
            assert_eq!(parse_list(bad), None, "{bad}");
        }
        assert_eq!(bits_of(&[1, 1 << 63]), [0, 127]);
    }

    #[test]
    fn a_core_is_doubled_up_last_and_cpu_0_comes_last() {
        // Four cores of two threads, numbered as Linux does: 0-3 and 4-7.
        let cores: Vec<Vec<u32>> = (0..4).map(|cpu| vec![cpu, cpu + 4]).collect();
        let all: Vec<u32> = (0..8).collect();
        let order = choose_cpus(&all, &cores, None, 8);
        assert_eq!(order, [1, 2, 3, 4, 5, 6, 7, 0]);
        // Near CPUs first, but never at the price of a shared core.
        let near = [2, 3, 6, 7];
        assert_eq!(choose_cpus(&all, &cores, Some(&near), 4), [2, 3, 1, 4]);
        // A core whose other thread is not allowed is not shared.
        assert_eq!(choose_cpus(&[0, 4, 5, 6], &cores, None, 4), [5, 6, 4, 0]);
    }

    #[test]
    fn few_cpus_are_handed_out_without_repeats() {
        let lone = [vec![0], vec![1]];
        assert_eq!(choose_cpus(&[0, 1], &lone, None, 1), [1]);
        assert_eq!(choose_cpus(&[0], &lone, None, 3), [0]);
        assert_eq!(choose_cpus(&[], &lone, None, 1), [0u32; 0]);
        assert_eq!(choose_cpus(&[100, 200, 200], &[], None, 9), [100, 200]);
    }

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Sysfs) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let sysfs = Sysfs::at(root.path());
        (root, sysfs)
    }

    #[test]
    fn the_reason_for_a_missing_cpu_is_named() {
        let (_root, sysfs) = tree(&[
            ("sys/devices/system/cpu/present", "0-4\n"),
            ("sys/devices/system/cpu/online", "0-3\n"),
            ("proc/self/cgroup", "5:cpuset:/lab\n0::/\n"),
            ("sys/fs/cgroup/cpuset/lab/cpuset.effective_cpus", "0-2\n"),
        ]);
        let allowed = AllowedCpus::of(&[1]);
        let why = |cpu| match allowed.check(&sysfs, &[1, cpu]) {
            Err(CpuError::NotAllowed { why, allowed, .. }) if allowed == "1" => why,
            other => panic!("{other:?}"),
        };
        assert!(why(9).contains("no such CPU"));
        assert!(why(4).contains("offline"));
        assert!(why(3).contains("cgroup"));
        assert!(why(0).contains("taskset"));
        assert_eq!(allowed.check(&sysfs, &[1]), Ok(()));
    }

    #[test]
    fn siblings_come_from_topology() {
        let path = "sys/devices/system/cpu/cpu0/topology/thread_siblings_list";
        let (_root, sysfs) = tree(&[(path, "0,64\n")]);
        assert_eq!(sibling_groups(&sysfs, &[0, 1, 64]), [vec![0, 64], vec![1]]);
    }

    #[test]
    fn pinning_holds_and_time_passes() {
        let allowed = AllowedCpus::at_start().unwrap();
        let cpu = *allowed.cpus().last().unwrap();
        let on_it = std::thread::spawn(move || {
            pin_current_thread(cpu).unwrap();
            tighten_timers();
            AllowedCpus::at_start().unwrap()
        });
        assert_eq!(on_it.join().unwrap().cpus(), [cpu]);
        let before_ns = thread_cpu_ns();
        let sum: u64 = std::hint::black_box((0..1_000_000u64).map(std::hint::black_box).sum());
        assert!(sum > 0 && thread_cpu_ns() > before_ns);
        assert!(matches!(
            pin_current_thread(200_000),
            Err(CpuError::Kernel {
                errno: Errno(libc::EINVAL),
                ..
            })
        ));
        assert!(kernel_release().contains('.'));
    }
}
