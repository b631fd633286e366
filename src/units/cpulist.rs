//! Lists of CPUs in the kernel's notation: `0-3,8,127`.

/// An ordered list of CPU numbers without repeats.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CpuList(pub Vec<u32>);
