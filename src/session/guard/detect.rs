//! Finds signatures in a device's content. Offsets are from the formats' own documents, named beside each.

use super::content::ReadAt;
use super::signature::Signature;
use crate::errno::Errno;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
/// Reads are made in whole pieces of this size, so that readers that only know blocks can serve them.
const PIECE_BYTES: u64 = 4096;
/// What is read at once from the start: the first two ZFS labels lie in it, and all headers but mirrors.
const HEAD_BYTES: u64 = 512 * KIB;

/// A signature and where it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// What.
    pub signature: Signature,
    /// Byte on the device at which its magic stands.
    pub at_bytes: u64,
}

/// Every signature on the device, each once (at its first place).
///
/// # Errors
/// The errno of a failed read: content that cannot be read is not content without signatures.
pub fn find_all(content: &dyn ReadAt) -> Result<Vec<Found>, Errno> {
    let scan = Scan::new(content)?;
    let mut found = Vec::new();
    scan.fixed(&mut found)?;
    scan.boot_sector(&mut found)?;
    scan.gpt(&mut found)?;
    scan.ext(&mut found)?;
    scan.luks(&mut found)?;
    scan.lvm(&mut found)?;
    scan.md(&mut found)?;
    scan.zfs(&mut found)?;
    scan.swap(&mut found)?;
    scan.firmware_raid(&mut found)?;
    found.sort_by_key(|found| (found.signature, found.at_bytes));
    found.dedup_by_key(|found| found.signature);
    Ok(found)
}

/// Magics that stand at one place from the start and are long enough to speak for themselves.
const FIXED: &[(Signature, u64, &[u8])] = &[
    // XFS Algorithms & Data Structures, "Superblocks": sb_magicnum.
    (Signature::Xfs, 0, b"XFSB"),
    // btrfs on-disk format: superblock at 64 KiB with mirrors at 64 MiB and 256 GiB, magic at 0x40.
    (Signature::Btrfs, 64 * KIB + 0x40, b"_BHRfS_M"),
    (Signature::Btrfs, 64 * MIB + 0x40, b"_BHRfS_M"),
    (Signature::Btrfs, 256 * 1024 * MIB + 0x40, b"_BHRfS_M"),
    // Linux include/linux/f2fs_fs.h: F2FS_SUPER_OFFSET 1024, F2FS_SUPER_MAGIC 0xF2F52010 (little endian);
    // the second superblock is one 4 KiB block later.
    (Signature::F2fs, KIB, &[0x10, 0x20, 0xf5, 0xf2]),
    (Signature::F2fs, KIB + 4096, &[0x10, 0x20, 0xf5, 0xf2]),
    // NTFS and exFAT boot sectors: the OEM name at byte 3 (exFAT specification, 3.1.2).
    (Signature::Ntfs, 3, b"NTFS    "),
    (Signature::Exfat, 3, b"EXFAT   "),
    (Signature::Bitlocker, 3, b"-FVE-FS-"),
    // Linux include/uapi/linux/bcache.h: SB_SECTOR 8, magic at byte 24 of struct cache_sb.
    (
        Signature::Bcache,
        4096 + 24,
        &[
            0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca, 0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba,
            0x6d, 0x81,
        ],
    ),
    // bcachefs_format.h: BCACHEFS_MAGIC in the same place.
    (
        Signature::Bcachefs,
        4096 + 24,
        &[
            0xc6, 0x85, 0x73, 0xf6, 0x66, 0xce, 0x90, 0xa9, 0xd9, 0x6a, 0x60, 0xcf, 0x80, 0x3d,
            0xf7, 0xef,
        ],
    ),
    // ECMA-119, 8.1.2: the standard identifier of the first volume descriptor, logical sector 16.
    (Signature::Iso9660, 32 * KIB + 1, b"CD001"),
    // Linux fs/squashfs/squashfs_fs.h: SQUASHFS_MAGIC.
    (Signature::Squashfs, 0, b"hsqs"),
    // Linux fs/erofs/erofs_fs.h: EROFS_SUPER_OFFSET 1024, magic 0xE0F5E1E2.
    (Signature::Erofs, KIB, &[0xe2, 0xe1, 0xf5, 0xe0]),
    // reiserfs_fs.h: superblock at 64 KiB (8 KiB in the old format), magic at byte 52.
    (Signature::Reiserfs, 64 * KIB + 52, b"ReIsEr2Fs"),
    (Signature::Reiserfs, 64 * KIB + 52, b"ReIsEr3Fs"),
    (Signature::Reiserfs, 64 * KIB + 52, b"ReIsErFs"),
    (Signature::Reiserfs, 8 * KIB + 52, b"ReIsErFs"),
    // Linux fs/jfs/jfs_superblock.h: SUPER1_OFF 0x8000.
    (Signature::Jfs, 32 * KIB, b"JFS1"),
    // Apple TN1150: volume header at 1024, signature and version.
    (Signature::Hfsplus, KIB, b"H+\0\x04"),
    (Signature::Hfsplus, KIB, b"HX\0\x05"),
    // Apple File System Reference, nx_superblock_t: nx_magic after the 32-byte object header.
    (Signature::Apfs, 32, b"NXSB"),
    // Linux include/uapi/linux/gfs2_ondisk.h: GFS2_SB_ADDR 128 sectors, magic 0x01161970 (big endian), type 1.
    (
        Signature::Gfs2,
        64 * KIB,
        &[0x01, 0x16, 0x19, 0x70, 0, 0, 0, 1],
    ),
    // Linux fs/ocfs2/ocfs2_fs.h: block 2 of 512, 1024, 2048 or 4096 bytes.
    (Signature::Ocfs2, KIB, b"OCFSV2"),
    (Signature::Ocfs2, 2 * KIB, b"OCFSV2"),
    (Signature::Ocfs2, 4 * KIB, b"OCFSV2"),
    (Signature::Ocfs2, 8 * KIB, b"OCFSV2"),
    // libblkid superblocks/vmfs.c: volume header at 1 MiB, 0xc001d00d.
    (Signature::Vmfs, MIB, &[0x0d, 0xd0, 0x01, 0xc0]),
    // Ceph bdev label.
    (Signature::Bluestore, 0, b"bluestore block device"),
    // Stratis static header, second sector, magic at byte 4.
    (Signature::Stratis, 512 + 4, b"!Stra0tis\x86\xff\x02^\x41rh"),
];

struct Scan<'a> {
    content: &'a dyn ReadAt,
    head: Vec<u8>,
    size_bytes: u64,
}

impl<'a> Scan<'a> {
    fn new(content: &'a dyn ReadAt) -> Result<Self, Errno> {
        let size_bytes = content.size_bytes();
        let mut head = vec![0; as_len(size_bytes.min(HEAD_BYTES))];
        content.read_at(0, &mut head)?;
        Ok(Self {
            content,
            head,
            size_bytes,
        })
    }

    /// The bytes at an offset; `None` where the device ends before.
    fn peek(&self, at_bytes: u64, len: usize) -> Result<Option<Vec<u8>>, Errno> {
        let Some(end) = at_bytes
            .checked_add(len as u64)
            .filter(|end| *end <= self.size_bytes)
        else {
            return Ok(None);
        };
        if end <= self.head.len() as u64 {
            let start = as_len(at_bytes);
            return Ok(Some(self.head[start..start + len].to_vec()));
        }
        let first = at_bytes / PIECE_BYTES * PIECE_BYTES;
        let last = end.next_multiple_of(PIECE_BYTES).min(self.size_bytes);
        let mut pieces = vec![0; as_len(last - first)];
        self.content.read_at(first, &mut pieces)?;
        let start = as_len(at_bytes - first);
        Ok(Some(pieces[start..start + len].to_vec()))
    }

    fn has(&self, at_bytes: u64, magic: &[u8]) -> Result<bool, Errno> {
        Ok(self
            .peek(at_bytes, magic.len())?
            .is_some_and(|found| found == magic))
    }

    fn fixed(&self, found: &mut Vec<Found>) -> Result<(), Errno> {
        for (signature, at_bytes, magic) in FIXED {
            if self.has(*at_bytes, magic)? {
                add(found, *signature, *at_bytes);
            }
        }
        Ok(())
    }

    /// The 55AAh of byte 510 ends a partition table and a FAT or NTFS boot sector alike.
    fn boot_sector(&self, found: &mut Vec<Found>) -> Result<(), Errno> {
        let Some(sector) = self.peek(0, 512)? else {
            return Ok(());
        };
        if sector[510..] != [0x55, 0xaa] {
            return Ok(());
        }
        let has_fs = |name: &[u8]| sector[3..].starts_with(name);
        if is_fat(&sector) {
            add(found, Signature::Fat, 0);
        } else if !has_fs(b"NTFS    ")
            && !has_fs(b"EXFAT   ")
            && !has_fs(b"-FVE-FS-")
            && is_mbr(&sector)
        {
            add(found, Signature::Mbr, 510);
        }
        Ok(())
    }

    /// UEFI 2.10, 5.3.2: the header is in LBA 1, its copy in the last LBA; blocks of 512 and 4096 bytes.
    /// A protective MBR in front is part of it.
    fn gpt(&self, found: &mut Vec<Found>) -> Result<(), Errno> {
        let mut places = vec![512, 4096];
        places.extend(
            [512, 4096]
                .iter()
                .filter_map(|block| self.size_bytes.checked_sub(*block)),
        );
        for at_bytes in places {
            if self.has(at_bytes, b"EFI PART")? {
                add(found, Signature::Gpt, at_bytes);
                let protective = self.peek(0x1be + 4, 1)?.is_some_and(|kind| kind == [0xee]);
                found.retain(|found| found.signature != Signature::Mbr || !protective);
            }
        }
        Ok(())
    }

    /// ext4 Data Structures and Algorithms, "The Super Block": at 1024, s_magic 0xEF53 at 0x38, features
    /// at 0x5c (compatible), 0x60 (incompatible), 0x64 (read-only compatible).
    fn ext(&self, found: &mut Vec<Found>) -> Result<(), Errno> {
        let Some(block) = self.peek(KIB, 0x68)? else {
            return Ok(());
        };
        if block[0x38..0x3a] != [0x53, 0xef] {
            return Ok(());
        }
        let word = |at: usize| {
            u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
        };
        // Features that ext3 knows: compression, filetype, recover, journal_dev, meta_bg · sparse_super,
        // large_file, btree_dir.
        let beyond_ext3 = word(0x60) & !0x1f != 0 || word(0x64) & !0x7 != 0;
        let has_journal = word(0x5c) & 0x4 != 0;
        let signature = match (beyond_ext3, has_journal) {
            (true, _) => Signature::Ext4,
            (false, true) => Signature::Ext3,
            (false, false) => Signature::Ext2,
        };
        add(found, signature, KIB + 0x38);
        Ok(())
    }

    /// LUKS1 On-Disk Format 1.2.3 and LUKS2 On-Disk Format 1.1: magic, then the version in big endian.
    /// The second LUKS2 header has its magic reversed and stands at one of nine offsets.
    fn luks(&self, found: &mut Vec<Found>) -> Result<(), Errno> {
        if self.has(0, b"LUKS\xba\xbe\0\x01")? {
            add(found, Signature::Luks1, 0);
        }
        let copies = (14..=22).map(|shift| (1u64 << shift, b"SKUL\xba\xbe\0\x02"));
        for (at_bytes, magic) in std::iter::once((0, b"LUKS\xba\xbe\0\x02")).chain(copies) {
            if self.has(at_bytes, magic)? {
                add(found, Signature::Luks2, at_bytes);
            }
        }
        Ok(())
    }

    /// LVM2 lib/format_text/layout.h and lib/label/label.h: the label is in one of the first four sectors,
    /// its type at byte 24.
    fn lvm(&self, found: &mut Vec<Found>) -> Result<(), Errno> {
        for at_bytes in [0, 512, 1024, 1536] {
            if self.has(at_bytes, b"LABELONE")? && self.has(at_bytes + 24, b"LVM2 001")? {
                add(found, Signature::Lvm, at_bytes);
            }
        }
        Ok(())
    }

    /// Linux include/uapi/linux/raid/md_p.h. 0.90: 64 KiB before the end, rounded down to 64 KiB, in the
    /// byte order of the machine. 1.0: at least 8 KiB before the end, on 4 KiB; 1.1: at 0; 1.2: at 4 KiB.
    fn md(&self, found: &mut Vec<Found>) -> Result<(), Errno> {
        const MAGIC: u32 = 0xa92b_4efc;
        let end_0_90 = (self.size_bytes & !0xffff).checked_sub(0x1_0000);
        for at_bytes in end_0_90.into_iter() {
            if self.has(at_bytes, &MAGIC.to_le_bytes())?
                || self.has(at_bytes, &MAGIC.to_be_bytes())?
            {
                add(found, Signature::Md, at_bytes);
            }
        }
        let sectors = self.size_bytes / 512;
        let end_1_0 = sectors.checked_sub(16).map(|sectors| (sectors & !7) * 512);
        let version_1: Vec<u8> = [MAGIC.to_le_bytes(), 1u32.to_le_bytes()].concat();
        for at_bytes in [Some(0), Some(4096), end_1_0].into_iter().flatten() {
            if self.has(at_bytes, &version_1)? {
                add(found, Signature::Md, at_bytes);
            }
        }
        Ok(())
    }

    /// ZFS On-Disk Specification, 1.2: four labels of 256 KiB, two at each end; a packed name-value list at
    /// 16 KiB of each and a ring of uberblocks at 128 KiB, magic 0x00bab10c in the byte order of its maker.
    fn zfs(&self, found: &mut Vec<Found>) -> Result<(), Errno> {
        const LABEL_BYTES: u64 = 256 * KIB;
        const MAGIC: u64 = 0x00ba_b10c;
        let end = self.size_bytes / LABEL_BYTES * LABEL_BYTES;
        let from_end = |labels: u64| end.checked_sub(labels * LABEL_BYTES);
        for label in [Some(0), Some(LABEL_BYTES), from_end(2), from_end(1)]
            .into_iter()
            .flatten()
        {
            let Some(bytes) = self.peek(label, as_len(LABEL_BYTES))? else {
                continue;
            };
            let (list, ring) = (&bytes[16 * 1024..128 * 1024], &bytes[128 * 1024..]);
            // XDR encoding is byte 0 = 1 of a packed list; `pool_guid` is a key of every label.
            let has_list = list[0] == 1 && contains(&list[..4096], b"pool_guid");
            let is_uberblock = |block: &[u8]| {
                block[..8] == MAGIC.to_le_bytes() || block[..8] == MAGIC.to_be_bytes()
            };
            if has_list || ring.chunks_exact(1024).any(is_uberblock) {
                add(found, Signature::Zfs, label);
            }
        }
        Ok(())
    }

    /// Linux include/linux/swap.h: the magic ends the first page, whose size is the machine's; a hibernation
    /// image (kernel/power/swap.c, tuxonice, uswsusp) replaces it.
    fn swap(&self, found: &mut Vec<Found>) -> Result<(), Errno> {
        const MAGICS: [&[u8]; 5] = [
            b"SWAPSPACE2",
            b"SWAP-SPACE",
            b"S1SUSPEND\0",
            b"S2SUSPEND\0",
            b"LINHIB0001",
        ];
        for page_bytes in [4096, 8192, 16384, 32768, 65536] {
            for magic in MAGICS {
                if self.has(page_bytes - 10, magic)? {
                    add(found, Signature::Swap, page_bytes - 10);
                }
            }
        }
        Ok(())
    }

    /// mdadm super-intel.c: the anchor is in the last sector but one. SNIA DDF 2.0, 4.2: the anchor header
    /// is the last block, signature DE11DE11h.
    fn firmware_raid(&self, found: &mut Vec<Found>) -> Result<(), Errno> {
        for block in [512, 4096] {
            if let Some(at_bytes) = self.size_bytes.checked_sub(2 * block)
                && self.has(at_bytes, b"Intel Raid ISM Cfg Sig. ")?
            {
                add(found, Signature::Isw, at_bytes);
            }
            if let Some(at_bytes) = self.size_bytes.checked_sub(block)
                && self.has(at_bytes, &[0xde, 0x11, 0xde, 0x11])?
            {
                add(found, Signature::Ddf, at_bytes);
            }
        }
        Ok(())
    }
}

fn add(found: &mut Vec<Found>, signature: Signature, at_bytes: u64) {
    found.push(Found {
        signature,
        at_bytes,
    });
}

/// All lengths here are at most [`HEAD_BYTES`].
fn as_len(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack
        .windows(needle.len())
        .any(|window| window == needle)
}

/// Microsoft FAT specification 1.03, 3.1: the type string (bytes 54 and 82) is only a hint, so a sane BIOS
/// parameter block counts too.
fn is_fat(sector: &[u8]) -> bool {
    if sector[54..].starts_with(b"FAT1") || sector[82..].starts_with(b"FAT32   ") {
        return true;
    }
    let sector_bytes = u16::from_le_bytes([sector[11], sector[12]]);
    let reserved = u16::from_le_bytes([sector[14], sector[15]]);
    matches!(sector[0], 0xeb | 0xe9)
        && matches!(sector_bytes, 512 | 1024 | 2048 | 4096)
        && sector[13].is_power_of_two()
        && reserved > 0
        && matches!(sector[16], 1 | 2)
        && sector[21] >= 0xf0
}

/// Four entries of 16 bytes from 1BEh; the first byte of each is 00h or 80h (UEFI 2.10, 5.2.1). A table
/// without entries is a table all the same.
fn is_mbr(sector: &[u8]) -> bool {
    sector[0x1be..510]
        .chunks_exact(16)
        .all(|entry| matches!(entry[0], 0x00 | 0x80))
}
