//! Every signature by known bytes at its known place, and nothing found where there is nothing.
//!
//! The bytes are those that the formats' own tools write (`tests/lab/guard` runs these tools where they
//! are installed), or, where there is no tool here, those of the formats' documents.

use crate::guard_tree::{DISK_BYTES, with};
use lanemark::errno::Errno;
use lanemark::session::guard::content::{Part, ReadAt};
use lanemark::session::guard::{Signature, find_all};
use proptest::prelude::*;

fn found(content: &dyn ReadAt) -> Vec<Signature> {
    find_all(content)
        .unwrap()
        .into_iter()
        .map(|found| found.signature)
        .collect()
}

const MD_1: &[u8] = &[0xfc, 0x4e, 0x2b, 0xa9, 1, 0, 0, 0];
const BOOT: (u64, &[u8]) = (510, &[0x55, 0xaa]);
/// The start of `mkfs.vfat`'s BIOS parameter block: 512-byte sectors, 4 a cluster, 4 reserved, 2 FATs.
const FAT_BPB: &[u8] = b"\xeb\x3c\x90mkfs.fat\x00\x02\x04\x04\x00\x02\x00\x02\x00\x80\xf8";
/// Entry of a Linux partition at sector 2048.
const MBR_ENTRY: &[u8] = &[
    0x80, 0x20, 0x21, 0, 0x83, 0xdd, 0x1e, 0x3f, 0, 8, 0, 0, 0, 0x38, 0, 0,
];
const EF53: &[u8] = &[0x53, 0xef];

type Known = (Signature, &'static [(u64, &'static [u8])]);

const KNOWN: &[Known] = &[
    (Signature::Gpt, &[(512, b"EFI PART\0\0\x01\0")]),
    (Signature::Gpt, &[(4096, b"EFI PART\0\0\x01\0")]),
    (Signature::Gpt, &[(DISK_BYTES - 512, b"EFI PART\0\0\x01\0")]),
    (
        Signature::Gpt,
        &[(DISK_BYTES - 4096, b"EFI PART\0\0\x01\0")],
    ),
    (Signature::Mbr, &[(0x1be, MBR_ENTRY), BOOT]),
    (Signature::Mbr, &[BOOT]),
    (
        Signature::Ext2,
        &[
            (1024 + 0x38, EF53),
            (1024 + 0x60, &[2]),
            (1024 + 0x64, &[3]),
        ],
    ),
    (
        Signature::Ext3,
        &[
            (1024 + 0x38, EF53),
            (1024 + 0x5c, &[0x3c]),
            (1024 + 0x60, &[2]),
            (1024 + 0x64, &[3]),
        ],
    ),
    (
        Signature::Ext4,
        &[
            (1024 + 0x38, EF53),
            (1024 + 0x5c, &[0x3c]),
            (1024 + 0x60, &[0xc2, 2]),
            (1024 + 0x64, &[0x6b, 4]),
        ],
    ),
    (
        Signature::Ext4,
        &[(1024 + 0x38, EF53), (1024 + 0x60, &[0x42])],
    ),
    (Signature::Xfs, &[(0, b"XFSB\0\0\x10\0")]),
    (Signature::Btrfs, &[(0x1_0040, b"_BHRfS_M")]),
    (Signature::F2fs, &[(1024, &[0x10, 0x20, 0xf5, 0xf2])]),
    (Signature::F2fs, &[(5120, &[0x10, 0x20, 0xf5, 0xf2])]),
    (
        Signature::Lvm,
        &[(512, b"LABELONE\x01\0\0\0\0\0\0\0\0\0\0\0 \0\0\0LVM2 001")],
    ),
    (
        Signature::Lvm,
        &[(1536, b"LABELONE\x03\0\0\0\0\0\0\0\0\0\0\0 \0\0\0LVM2 001")],
    ),
    (Signature::Luks1, &[(0, b"LUKS\xba\xbe\0\x01aes\0")]),
    (Signature::Luks2, &[(0, b"LUKS\xba\xbe\0\x02")]),
    (Signature::Luks2, &[(0x4000, b"SKUL\xba\xbe\0\x02")]),
    (Signature::Luks2, &[(0x40_0000, b"SKUL\xba\xbe\0\x02")]),
    // 8 MiB: 0.90 stands 64 KiB before the end, 1.0 at (16384 - 16) sectors.
    (
        Signature::Md,
        &[(DISK_BYTES - 65536, &[0xfc, 0x4e, 0x2b, 0xa9])],
    ),
    (
        Signature::Md,
        &[(DISK_BYTES - 65536, &[0xa9, 0x2b, 0x4e, 0xfc])],
    ),
    (Signature::Md, &[(DISK_BYTES - 8192, MD_1)]),
    (Signature::Md, &[(0, MD_1)]),
    (Signature::Md, &[(4096, MD_1)]),
    (
        Signature::Zfs,
        &[(0x2_0000, &[0x0c, 0xb1, 0xba, 0, 0, 0, 0, 0])],
    ),
    (
        Signature::Zfs,
        &[(
            0x4_0000 + 0x2_0000 + 0x400,
            &[0, 0, 0, 0, 0, 0xba, 0xb1, 0x0c],
        )],
    ),
    (
        Signature::Zfs,
        &[(
            DISK_BYTES - 0x8_0000 + 0x2_0000,
            &[0x0c, 0xb1, 0xba, 0, 0, 0, 0, 0],
        )],
    ),
    (
        Signature::Zfs,
        &[(
            DISK_BYTES - 0x4_0000 + 0x3_fc00,
            &[0x0c, 0xb1, 0xba, 0, 0, 0, 0, 0],
        )],
    ),
    (
        Signature::Zfs,
        &[
            (0x4000, b"\x01\x01\0\0\0\0\0\0\0\0\0\x01"),
            (0x4100, b"pool_guid"),
        ],
    ),
    (Signature::Swap, &[(4086, b"SWAPSPACE2")]),
    (Signature::Swap, &[(65526, b"SWAPSPACE2")]),
    (Signature::Swap, &[(4086, b"S1SUSPEND\0")]),
    (Signature::Ntfs, &[(0, b"\xeb\x52\x90NTFS    "), BOOT]),
    (Signature::Fat, &[(0, FAT_BPB), (54, b"FAT16   "), BOOT]),
    (Signature::Fat, &[(82, b"FAT32   "), BOOT]),
    (Signature::Fat, &[(0, FAT_BPB), BOOT]),
    (Signature::Exfat, &[(0, b"\xeb\x76\x90EXFAT   "), BOOT]),
    (Signature::Bitlocker, &[(0, b"\xeb\x58\x90-FVE-FS-"), BOOT]),
    (
        Signature::Bcache,
        &[(
            0x1018,
            b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81",
        )],
    ),
    (
        Signature::Bcachefs,
        &[(
            0x1018,
            b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef",
        )],
    ),
    (Signature::Iso9660, &[(0x8001, b"CD001\x01")]),
    (Signature::Squashfs, &[(0, b"hsqs")]),
    (Signature::Erofs, &[(1024, &[0xe2, 0xe1, 0xf5, 0xe0])]),
    (Signature::Reiserfs, &[(0x1_0034, b"ReIsEr2Fs")]),
    (Signature::Jfs, &[(0x8000, b"JFS1")]),
    (Signature::Hfsplus, &[(1024, b"H+\0\x04")]),
    (Signature::Apfs, &[(32, b"NXSB")]),
    (
        Signature::Gfs2,
        &[(0x1_0000, &[1, 0x16, 0x19, 0x70, 0, 0, 0, 1])],
    ),
    (Signature::Ocfs2, &[(4096, b"OCFSV2")]),
    (Signature::Vmfs, &[(0x10_0000, &[0x0d, 0xd0, 0x01, 0xc0])]),
    (Signature::Bluestore, &[(0, b"bluestore block device\n")]),
    (
        Signature::Stratis,
        &[(516, b"!Stra0tis\x86\xff\x02^\x41rh")],
    ),
    (
        Signature::Isw,
        &[(DISK_BYTES - 1024, b"Intel Raid ISM Cfg Sig. ")],
    ),
    (
        Signature::Ddf,
        &[(DISK_BYTES - 512, &[0xde, 0x11, 0xde, 0x11])],
    ),
];

#[test]
fn every_signature_is_found_at_its_place() {
    for (signature, pieces) in KNOWN {
        assert_eq!(found(&with(pieces)), [*signature], "{signature} {pieces:?}");
    }
    for signature in Signature::ALL {
        assert!(
            KNOWN.iter().any(|(known, _)| known == signature),
            "{signature} has no known bytes"
        );
    }
}

/// The same bytes one place further on, or with one bit of the magic turned, are nothing.
#[test]
fn a_magic_out_of_place_or_damaged_is_not_found() {
    for (signature, pieces) in KNOWN {
        let (at, magic) = pieces[0];
        let is_whole = at + 2 + (magic.len() as u64) < DISK_BYTES;
        // A boot sector is recognised by its end, whatever stands before.
        if is_whole && !pieces.contains(&BOOT) {
            let moved: Vec<(u64, &[u8])> =
                pieces.iter().map(|(at, bytes)| (at + 1, *bytes)).collect();
            assert!(
                !found(&with(&moved)).contains(signature),
                "{signature} moved by a byte"
            );
        }
        let mut damaged = magic.to_vec();
        damaged[0] ^= 1;
        let mut rest = pieces.to_vec();
        rest[0] = (at, &damaged);
        let needs_first = !matches!(
            signature,
            Signature::Fat
                | Signature::Mbr
                | Signature::Ntfs
                | Signature::Exfat
                | Signature::Bitlocker
        );
        if needs_first && !pieces.iter().any(|(_, bytes)| *bytes == b"pool_guid") {
            assert!(
                !found(&with(&rest)).contains(signature),
                "{signature} with a bit turned"
            );
        }
    }
}

#[test]
fn mirrors_of_btrfs_far_inside_are_found() {
    struct Sparse;
    impl ReadAt for Sparse {
        fn size_bytes(&self) -> u64 {
            1 << 39
        }
        fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), Errno> {
            assert!(offset_bytes + buffer.len() as u64 <= 1 << 39);
            buffer.fill(0);
            let magic = (1_u64 << 38) + 0x40;
            if let Some(at) = magic
                .checked_sub(offset_bytes)
                .and_then(|at| usize::try_from(at).ok())
                && let Some(place) = buffer.get_mut(at..at + 8)
            {
                place.copy_from_slice(b"_BHRfS_M");
            }
            Ok(())
        }
    }
    assert_eq!(found(&Sparse), [Signature::Btrfs]);
}

#[test]
fn a_protective_mbr_belongs_to_its_gpt_and_a_hybrid_one_does_not() {
    let entry = |kind: u8| {
        let mut entry = MBR_ENTRY.to_vec();
        entry[0] = 0;
        entry[4] = kind;
        entry
    };
    let disk = |kind| with(&[(0x1be, &entry(kind)), BOOT, (512, b"EFI PART")]);
    assert_eq!(found(&disk(0xee)), [Signature::Gpt]);
    assert_eq!(found(&disk(0x83)), [Signature::Gpt, Signature::Mbr]);
    // Protective, but the GPT itself is gone: still a partition table.
    assert_eq!(
        found(&with(&[(0x1be, &entry(0xee)), BOOT])),
        [Signature::Mbr]
    );
}

#[test]
fn several_signatures_are_all_found() {
    let content = with(&[
        (4086, b"SWAPSPACE2"),
        (1024 + 0x38, EF53),
        (DISK_BYTES - 512, b"EFI PART"),
    ]);
    assert_eq!(
        found(&content),
        [Signature::Gpt, Signature::Ext2, Signature::Swap]
    );
}

#[test]
fn zeros_random_bytes_and_a_boot_sector_without_a_table_carry_nothing() {
    assert!(found(&with(&[])).is_empty());
    let mut random = with(&[]);
    let mut state = 1_u64;
    for byte in &mut random {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        *byte = (state >> 56) as u8;
    }
    assert!(found(&random).is_empty());
    assert!(found(&with(&[(0x1be, &[0x13; 16]), BOOT])).is_empty());
}

#[test]
fn devices_of_any_size_are_searched_to_their_end() {
    for size in [
        0_usize,
        1,
        511,
        512,
        513,
        4096,
        65536,
        262_144,
        524_289,
        1 << 20,
    ] {
        let mut content = vec![0; size];
        assert!(found(&content).is_empty(), "{size}");
        if size >= 512 {
            let at = size - 512;
            content[at..at + 8].copy_from_slice(b"EFI PART");
            assert_eq!(found(&content), [Signature::Gpt], "{size}");
        }
    }
}

#[test]
fn a_part_is_searched_within_its_own_borders() {
    let whole = with(&[
        (512, b"EFI PART"),
        (1 << 20, b"XFSB"),
        ((3 << 20) - 8192, MD_1),
    ]);
    let part = Part {
        whole: &whole,
        start_bytes: 1 << 20,
        size_bytes: 2 << 20,
    };
    assert_eq!(found(&part), [Signature::Xfs, Signature::Md]);
    assert!(
        found(&Part {
            whole: &whole,
            start_bytes: 4 << 20,
            size_bytes: 1 << 30
        })
        .is_empty()
    );
}

#[test]
fn what_cannot_be_read_is_an_error_and_not_nothing() {
    struct Bad(u64);
    impl ReadAt for Bad {
        fn size_bytes(&self) -> u64 {
            DISK_BYTES
        }
        fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), Errno> {
            let hit = (offset_bytes..offset_bytes + buffer.len() as u64).contains(&self.0);
            if hit { Err(Errno(libc::EIO)) } else { Ok(()) }
        }
    }
    for at in [0, 4096, DISK_BYTES - 1, DISK_BYTES - 300_000] {
        assert_eq!(find_all(&Bad(at)), Err(Errno(libc::EIO)), "{at}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_content_is_searched_without_panic(head in proptest::collection::vec(any::<u8>(), 0..70_000)) {
        let _ = find_all(&head);
    }
}
