//! SPDK's environment: DPDK's memory and PCI access, started once per process.

use super::spec::EnvOptions;
use super::{SpdkError, bounded, iommu, log, preflight};
use crate::errno::Errno;
use crate::sysfs::Sysfs;
use std::ffi::CString;
use std::mem::{MaybeUninit, size_of};
use std::sync::OnceLock;

static ENV: OnceLock<Result<Env, SpdkError>> = OnceLock::new();

/// Words of an affinity mask: room for 2^16 CPUs.
const MASK_WORDS: usize = 1024;

/// The proof that the environment runs. It does so until the process ends.
#[derive(Debug)]
pub struct Env {
    _private: (),
}

impl Env {
    /// Starts the environment, or returns the one that runs. Memory is anonymous hugepages (nothing is left on
    /// hugetlbfs, however the process ends) in one segment per region, as vfio-user needs it. The calling
    /// thread's affinity, which DPDK changes, is put back.
    ///
    /// # Errors
    /// [`SpdkError::Preflight`] before DPDK says anything, or [`SpdkError::Env`] with its complaint.
    pub fn start(sysfs: &Sysfs, options: &EnvOptions) -> Result<&'static Self, SpdkError> {
        let started = ENV.get_or_init(|| {
            super::check_transports()?;
            preflight::check_hugepages(sysfs, 0)?;
            if options.pci {
                preflight::check_iommu(options.iommu_bits)?;
                preflight::check_memlock(sysfs, 0)?;
            }
            log::redirect();
            start(options)
        });
        started.as_ref().map_err(Clone::clone)
    }
}

fn start(options: &EnvOptions) -> Result<Env, SpdkError> {
    log::clear();
    let before = affinity();
    // Nothing of DPDK's runs on the lcore: reactors are threads of our own. Any CPU that is ours will do.
    let cpu = before
        .as_ref()
        .and_then(|mask| first_cpu(mask))
        .unwrap_or(0);
    let result = init(options, cpu);
    if let Some(mask) = &before {
        restore(mask);
    }
    if result != 0 {
        let hint = "; run lanemark check".to_owned();
        return Err(SpdkError::Env {
            errno: Errno(-result),
            said: log::said(),
            hint,
        });
    }
    bounded::guard_exit();
    Ok(Env { _private: () })
}

fn init(options: &EnvOptions, cpu: usize) -> i32 {
    let text = |text: &str| CString::new(text).unwrap_or_default();
    let name = text("lanemark");
    let lcores = text(&format!("0@{cpu}"));
    let context = text("--in-memory");
    let iova = text("va");
    let mut opts = MaybeUninit::<spdk_sys::spdk_env_opts>::zeroed();
    // SAFETY: the struct is plain old data, for which all zeros is valid; SPDK fills in its defaults, told the
    // struct's size. The strings outlive the call to spdk_env_init, which copies what it keeps. The caller
    // (OnceLock) guarantees that this runs once.
    unsafe {
        let opts = opts.assume_init_mut();
        opts.opts_size = size_of::<spdk_sys::spdk_env_opts>();
        spdk_sys::spdk_env_opts_init(opts);
        opts.opts_size = size_of::<spdk_sys::spdk_env_opts>();
        opts.name = name.as_ptr();
        opts.core_mask = std::ptr::null();
        opts.lcore_map = lcores.as_ptr();
        opts.hugepage_single_segments = true;
        opts.env_context = context.as_ptr().cast_mut().cast();
        opts.no_pci = !options.pci;
        if let Some(base) = options
            .pci
            .then(|| iommu::base_for(options.iommu_bits))
            .flatten()
        {
            opts.base_virtaddr = base;
            opts.iova_mode = iova.as_ptr();
        }
        spdk_sys::spdk_env_init(opts)
    }
}

fn affinity() -> Option<Vec<u64>> {
    let mut mask = vec![0u64; MASK_WORDS];
    // SAFETY: the kernel writes at most the given number of bytes into the vector's own memory.
    let result = unsafe {
        libc::sched_getaffinity(0, size_of::<u64>() * MASK_WORDS, mask.as_mut_ptr().cast())
    };
    (result == 0).then_some(mask)
}

fn restore(mask: &[u64]) {
    // SAFETY: the kernel reads the given number of bytes from the slice's own memory.
    let result = unsafe { libc::sched_setaffinity(0, size_of_val(mask), mask.as_ptr().cast()) };
    if result != 0 {
        tracing::warn!("the main thread's CPU affinity could not be restored after starting SPDK");
    }
}

fn first_cpu(mask: &[u64]) -> Option<usize> {
    let word = mask.iter().position(|word| *word != 0)?;
    Some(word * 64 + mask[word].trailing_zeros() as usize)
}
