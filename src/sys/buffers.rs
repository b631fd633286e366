//! Memory for a queue's slots: one aligned, zeroed, pre-faulted mapping, on huge pages where there are.

use super::last_errno;
use crate::errno::Errno;
use crate::sysfs::{Sysfs, read_text};
use std::ptr::NonNull;

const HUGE_BYTES: usize = 2 << 20;
/// Every slot starts on a page, which satisfies the DMA alignment of any block device.
const SLOT_ALIGN_BYTES: usize = 4096;

/// What pages a mapping sits on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageKind {
    /// Reserved 2 MiB pages (hugetlbfs).
    Huge,
    /// Transparent 2 MiB pages, all of it.
    Transparent,
    /// Ordinary pages, or a mix.
    Plain,
}

impl PageKind {
    /// The words in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Huge => "2 MiB huge pages",
            Self::Transparent => "transparent huge pages",
            Self::Plain => "ordinary pages",
        }
    }
}

/// The buffers of all slots of a queue. Slots do not overlap.
#[derive(Debug)]
pub struct Arena {
    base: NonNull<u8>,
    mapped_bytes: usize,
    slots_count: usize,
    slot_bytes: usize,
    stride_bytes: usize,
    pages: PageKind,
}

// SAFETY: the mapping belongs to this value alone, and memory is not bound to a thread.
unsafe impl Send for Arena {}

impl Arena {
    /// Maps `slots_count` buffers of `slot_bytes` each and touches every page.
    ///
    /// # Errors
    /// ENOMEM, also where the size does not fit the address space.
    pub fn new(sysfs: &Sysfs, slots_count: u32, slot_bytes: u32) -> Result<Self, Errno> {
        let stride_bytes = (slot_bytes.max(1) as usize).next_multiple_of(SLOT_ALIGN_BYTES);
        let mapped_bytes = stride_bytes
            .checked_mul(slots_count.max(1) as usize)
            .and_then(|bytes| bytes.checked_next_multiple_of(HUGE_BYTES))
            .ok_or(Errno(libc::ENOMEM))?;
        let (base, pages) = match map_huge(mapped_bytes) {
            Ok(base) => (base, PageKind::Huge),
            Err(_) => map_plain(sysfs, mapped_bytes)?,
        };
        Ok(Self {
            base,
            mapped_bytes,
            slots_count: slots_count as usize,
            slot_bytes: slot_bytes as usize,
            stride_bytes,
            pages,
        })
    }

    /// What it sits on.
    #[must_use]
    pub const fn pages(&self) -> PageKind {
        self.pages
    }

    /// Number of slots.
    #[must_use]
    pub const fn slots_count(&self) -> usize {
        self.slots_count
    }

    /// Usable bytes of a slot.
    #[must_use]
    pub const fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// Distance from one slot to the next.
    #[must_use]
    pub const fn stride_bytes(&self) -> usize {
        self.stride_bytes
    }

    /// The address of a slot's buffer, for the kernel.
    ///
    /// # Panics
    /// Where there is no such slot.
    #[must_use]
    #[inline]
    pub fn address(&self, slot: usize) -> u64 {
        assert!(
            slot < self.slots_count,
            "slot {slot} of {}",
            self.slots_count
        );
        self.base.as_ptr() as u64 + (slot * self.stride_bytes) as u64
    }

    /// Start and length of the whole mapping, for registering it.
    #[must_use]
    pub fn whole(&self) -> (u64, usize) {
        (self.base.as_ptr() as u64, self.mapped_bytes)
    }

    /// A slot's buffer. While a device may be writing to it (an I/O is in flight in the slot) it must
    /// not be taken; the rings in this folder see to that.
    ///
    /// # Panics
    /// Where there is no such slot.
    #[inline]
    pub fn slot(&mut self, slot: usize) -> &mut [u8] {
        assert!(
            slot < self.slots_count,
            "slot {slot} of {}",
            self.slots_count
        );
        // SAFETY: `slot * stride + slot_bytes` is inside the mapping (its size was made from the count
        // and the stride), which is readable, writable, initialised by the kernel to zero and lives as
        // long as `self`; `&mut self` makes the slice unique.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.base.as_ptr().add(slot * self.stride_bytes),
                self.slot_bytes,
            )
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: exactly the range that was mapped by `new`, and no slice of it outlives `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.mapped_bytes) };
    }
}

fn map(bytes: usize, more_flags: libc::c_int) -> Result<NonNull<u8>, Errno> {
    // SAFETY: an anonymous mapping at an address of the kernel's choice overlaps nothing of ours.
    let base = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | more_flags,
            -1,
            0,
        )
    };
    if base == libc::MAP_FAILED {
        return Err(last_errno());
    }
    NonNull::new(base.cast()).ok_or(Errno(libc::ENOMEM))
}

/// # Safety
/// The range must be a mapping of the caller's that nothing refers to.
unsafe fn unmap(base: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { libc::munmap(base.as_ptr().cast(), bytes) };
}

/// Reserved huge pages; fails where too few are free.
fn map_huge(bytes: usize) -> Result<NonNull<u8>, Errno> {
    let base = map(bytes, libc::MAP_HUGETLB | libc::MAP_HUGE_2MB)?;
    populate(base, bytes, false).inspect_err(|_| {
        // SAFETY: mapped above, and the address was given to nobody.
        unsafe { unmap(base, bytes) };
    })?;
    Ok(base)
}

/// Ordinary memory on a 2 MiB border, with a request for transparent huge pages.
fn map_plain(sysfs: &Sysfs, bytes: usize) -> Result<(NonNull<u8>, PageKind), Errno> {
    let spare = bytes.checked_add(HUGE_BYTES).ok_or(Errno(libc::ENOMEM))?;
    let raw = map(spare, 0)?;
    let skip = raw.as_ptr().align_offset(HUGE_BYTES);
    // SAFETY: `skip` is below HUGE_BYTES, so the result and `bytes` after it lie inside the mapping.
    let base = unsafe { raw.add(skip) };
    let tail = HUGE_BYTES - skip;
    // SAFETY: both cuts are page-aligned parts of the mapping outside `base..base + bytes`, unused.
    unsafe {
        if skip > 0 {
            unmap(raw, skip);
        }
        if tail > 0 {
            unmap(base.add(bytes), tail);
        }
        libc::madvise(base.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE);
    }
    populate(base, bytes, true).inspect_err(|_| {
        // SAFETY: the rest of the mapping made above, given to nobody.
        unsafe { unmap(base, bytes) };
    })?;
    let pages = if transparent_bytes(sysfs, base.as_ptr() as u64) >= bytes as u64 {
        PageKind::Transparent
    } else {
        PageKind::Plain
    };
    Ok((base, pages))
}

/// Makes every page present. `MADV_POPULATE_WRITE` (5.14) reports a shortage as an error, where a touch
/// would kill the process with SIGBUS.
fn populate(base: NonNull<u8>, bytes: usize, may_touch: bool) -> Result<(), Errno> {
    // SAFETY: the range is a private mapping of our own; the call only faults its pages in.
    let done = unsafe { libc::madvise(base.as_ptr().cast(), bytes, libc::MADV_POPULATE_WRITE) };
    if done == 0 {
        return Ok(());
    }
    let errno = last_errno();
    if errno != Errno(libc::EINVAL) || !may_touch {
        return Err(errno);
    }
    for offset in (0..bytes).step_by(SLOT_ALIGN_BYTES) {
        // SAFETY: inside the mapping, which nobody else knows of yet.
        unsafe { base.add(offset).write_volatile(0) };
    }
    Ok(())
}

/// Bytes of the mapping that holds `address` which sit on transparent huge pages; 0 where unknown.
/// (proc_pid_smaps(5): a header line `start-end …`, then `AnonHugePages: n kB`.)
fn transparent_bytes(sysfs: &Sysfs, address: u64) -> u64 {
    let Ok(text) = read_text(&sysfs.proc("self/smaps")) else {
        return 0;
    };
    let mut inside = false;
    for line in text.lines() {
        let range = line.split(' ').next().and_then(|word| word.split_once('-'));
        if let Some((Ok(start), Ok(end))) =
            range.map(|(start, end)| (u64::from_str_radix(start, 16), u64::from_str_radix(end, 16)))
        {
            inside = (start..end).contains(&address);
        } else if inside && let Some(size) = line.strip_prefix("AnonHugePages:") {
            let kib = size.trim().trim_end_matches(" kB").parse::<u64>();
            return kib.map_or(0, |kib| kib * 1024);
        }
    }
    0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn slots_are_aligned_zeroed_and_apart() {
        let mut arena = Arena::new(&Sysfs::host(), 5, 5000).unwrap();
        assert_eq!((arena.slots_count(), arena.slot_bytes()), (5, 5000));
        for slot in 0..5 {
            assert_eq!(arena.address(slot) % 4096, 0);
            let bytes = arena.slot(slot);
            assert!(bytes.len() == 5000 && bytes.iter().all(|&byte| byte == 0));
            bytes.fill(slot as u8 + 1);
        }
        for slot in 0..5 {
            assert!(arena.slot(slot).iter().all(|&byte| byte == slot as u8 + 1));
        }
        let (start, bytes) = arena.whole();
        assert!(start <= arena.address(0) && arena.address(4) + 5000 <= start + bytes as u64);
    }

    #[test]
    #[should_panic(expected = "slot 2 of 2")]
    fn there_is_no_slot_past_the_last() {
        let mut arena = Arena::new(&Sysfs::host(), 2, 512).unwrap();
        arena.slot(2);
    }

    #[test]
    fn ordinary_memory_is_on_a_huge_border() {
        let (base, pages) = map_plain(&Sysfs::host(), HUGE_BYTES).unwrap();
        assert_eq!(base.as_ptr() as usize % HUGE_BYTES, 0);
        assert!(matches!(pages, PageKind::Transparent | PageKind::Plain));
        // SAFETY: mapped two lines above, and nothing refers to it.
        unsafe { unmap(base, HUGE_BYTES) };
    }

    #[test]
    fn too_much_is_an_error() {
        let huge = Arena::new(&Sysfs::host(), u32::MAX, u32::MAX);
        assert_eq!(huge.err(), Some(Errno(libc::ENOMEM)));
    }

    #[test]
    fn smaps_is_read_by_address() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc/self")).unwrap();
        let text = "1000-3000 rw-p 0 00:00 0 \nSize: 8 kB\nAnonHugePages:         0 kB\n\
                    200000-600000 rw-p 0 00:00 0 \nSize: 4096 kB\nAnonHugePages:      4096 kB\n";
        std::fs::write(root.path().join("proc/self/smaps"), text).unwrap();
        let sysfs = Sysfs::at(root.path());
        assert_eq!(transparent_bytes(&sysfs, 0x20_0000), 4 << 20);
        assert_eq!(transparent_bytes(&sysfs, 0x1000), 0);
        assert_eq!(transparent_bytes(&sysfs, 0x9000), 0);
    }
}
