//! Vectors of Identify Namespace and the identification descriptors.
#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

fn with(set: &[(usize, &[u8])]) -> IdentifyNamespace {
    let mut bytes = [0; IDENTIFY_BYTES];
    for (at, value) in set {
        bytes[*at..*at + value.len()].copy_from_slice(value);
    }
    IdentifyNamespace::decode(&bytes).unwrap()
}

#[test]
fn sizes_are_64_bit_and_the_format_gives_the_block() {
    // 32 TiB of 4 KiB blocks, format 1 of 2.
    let ns = with(&[
        (0, &[0, 0, 0, 0, 2]),
        (8, &[0, 0, 0, 0, 1]),
        (16, &[9]),
        (25, &[1]),
        (26, &[1]),
        (128, &[0, 0, 9, 2]),
        (132, &[0, 0, 12, 0]),
    ]);
    assert_eq!(
        (ns.size_blocks, ns.capacity_blocks, ns.used_blocks),
        (0x2_0000_0000, 0x1_0000_0000, 9)
    );
    assert_eq!(
        ns.format,
        LbaFormat {
            metadata_bytes: 0,
            data_shift: 12,
            relative_performance: 0
        }
    );
    assert_eq!(ns.size_bytes(), Some(32 << 40));
    assert_eq!((ns.format_index, ns.formats_count), (1, 2));
}

#[test]
fn a_format_entry_keeps_its_three_fields_apart() {
    let entry = LbaFormat::from_entry(0x0309_0008);
    assert_eq!(
        entry,
        LbaFormat {
            metadata_bytes: 8,
            data_shift: 9,
            relative_performance: 3
        }
    );
    assert_eq!(entry.block_bytes(), Some(512));
    assert_eq!(LbaFormat::from_entry(0xfc00_0000).relative_performance, 0);
    assert_eq!(LbaFormat::from_entry(0x0008_0000).block_bytes(), None);
    assert_eq!(LbaFormat::from_entry(0x00ff_0000).block_bytes(), None);
}

#[test]
fn the_table_of_formats_ends_where_its_count_says() {
    let mut bytes = vec![0; 4096];
    bytes[25] = 2;
    for (index, entry) in [0x0009_0000_u32, 0x010c_0000, 0x030c_0008, 0x000c_0040]
        .iter()
        .enumerate()
    {
        bytes[128 + 4 * index..132 + 4 * index].copy_from_slice(&entry.to_le_bytes());
    }
    let table = IdentifyNamespace::format_table(&bytes).unwrap();
    let told: Vec<_> = table
        .iter()
        .map(|format| {
            (
                format.block_bytes(),
                format.metadata_bytes,
                format.relative_performance,
            )
        })
        .collect();
    assert_eq!(
        told,
        [(Some(512), 0, 0), (Some(4096), 0, 1), (Some(4096), 8, 3)]
    );
    bytes[25] = 255;
    assert_eq!(
        IdentifyNamespace::format_table(&bytes).unwrap().len(),
        64,
        "no table is longer"
    );
    assert!(IdentifyNamespace::format_table(&bytes[..4095]).is_err());
}

#[test]
fn upper_format_bits_count_only_in_long_tables() {
    assert_eq!(with(&[(25, &[15]), (26, &[0x61])]).format_index, 0x01);
    let long = with(&[(25, &[63]), (26, &[0x61]), (128 + 4 * 0x31, &[0, 0, 12])]);
    assert_eq!((long.format_index, long.format.data_shift), (0x31, 12));
}

#[test]
fn every_flag_is_its_own_bit() {
    let none = with(&[]);
    assert!(
        !none.thin
            && !none.preferred_write
            && !none.metadata_interleaved
            && !none.pi_first
            && !none.shared
    );
    assert!(
        !none.write_protected
            && none.pi == PiType::None
            && none.nguid.is_none()
            && none.eui64.is_none()
    );
    assert!(with(&[(24, &[0x01])]).thin && !with(&[(24, &[0xfe])]).thin);
    assert!(
        with(&[(26, &[0x10])]).metadata_interleaved && !with(&[(26, &[0xef])]).metadata_interleaved
    );
    assert_eq!(
        [1u8, 2, 3, 4].map(|dps| with(&[(29, &[dps])]).pi),
        [
            PiType::Type1,
            PiType::Type2,
            PiType::Type3,
            PiType::Reserved(4)
        ]
    );
    assert!(with(&[(29, &[0x08])]).pi_first && with(&[(29, &[0x08])]).pi == PiType::None);
    assert!(with(&[(30, &[1])]).shared && !with(&[(30, &[2])]).shared);
    assert_eq!(with(&[(33, &[0x09])]).deallocated_reads, 1);
    assert_eq!(with(&[(46, &[0x00, 0x01])]).optimal_io_boundary_blocks, 256);
    assert_eq!(with(&[(64, &[7])]).preferred_write_granularity_blocks, None);
    assert_eq!(
        with(&[(24, &[0x10]), (64, &[7])]).preferred_write_granularity_blocks,
        Some(8)
    );
    assert!(with(&[(99, &[1])]).write_protected);
    assert_eq!(with(&[(104, &[1; 16])]).nguid, Some([1; 16]));
    assert_eq!(with(&[(120, &[2; 8])]).eui64, Some([2; 8]));
}

#[test]
fn descriptors_give_the_kernels_wwid() {
    let uuid: Vec<u8> = (0u8..16).collect();
    let mut list = vec![1, 8, 0, 0];
    list.extend([0xaa; 8]);
    list.extend([4, 1, 0, 0, 9]); // command set identifier: stepped over
    list.extend([3, 16, 0, 0]);
    list.extend(&uuid);
    list.resize(4096, 0);
    let ids = NamespaceIds::decode(&list);
    assert_eq!(
        ids.wwid().unwrap(),
        "uuid.00010203-0405-0607-0809-0a0b0c0d0e0f"
    );
    assert_eq!(ids.eui64, Some([0xaa; 8]));
    let eui = NamespaceIds { uuid: None, ..ids };
    assert_eq!(eui.wwid().unwrap(), "eui.aaaaaaaaaaaaaaaa");
    assert_eq!(
        NamespaceIds {
            nguid: Some([0x11; 16]),
            ..eui
        }
        .wwid()
        .unwrap(),
        format!("eui.{}", "11".repeat(16))
    );
}

#[test]
fn broken_lists_give_what_came_before_the_break() {
    assert_eq!(NamespaceIds::decode(&[]).wwid(), None);
    assert_eq!(
        NamespaceIds::decode(&[3, 16, 0, 0, 1, 2]),
        NamespaceIds::default()
    );
    assert_eq!(
        NamespaceIds::decode(&[1, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).wwid(),
        None
    );
    assert_eq!(
        NamespaceIds::decode(&[2, 3, 0, 0, 1, 2, 3]),
        NamespaceIds::default()
    );
}

proptest! {
    #[test]
    fn any_bytes_decode(bytes in proptest::collection::vec(any::<u8>(), 4000..4200)) {
        if let Ok(ns) = IdentifyNamespace::decode(&bytes) {
            let _ = (ns.size_bytes(), ns.format.block_bytes());
        }
        let _ = NamespaceIds::decode(&bytes).wwid();
    }
}
