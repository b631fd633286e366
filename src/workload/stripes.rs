//! Disjoint parts of a region.

use super::spec::Region;

/// Cuts a region into `count` disjoint parts of equal size, in order, so that the sequential streams of
/// a step never read the same blocks. Every part starts a multiple of `unit_blocks` from the region's
/// first block; the last one also takes what does not divide. `None` where a part would be smaller than
/// `unit_blocks` (give the largest request, so that one fits into each part), or a count or unit is 0.
#[must_use]
pub fn stripes(region: Region, count: u32, unit_blocks: u32) -> Option<Vec<Region>> {
    let count = u64::from(count);
    let units = region.blocks.checked_div(u64::from(unit_blocks))?;
    let part_blocks = units.checked_div(count)? * u64::from(unit_blocks);
    if part_blocks == 0 {
        return None;
    }
    let part = |index: u64| {
        let skipped = index * part_blocks;
        Region {
            first_lba: region.first_lba + skipped,
            blocks: if index + 1 == count {
                region.blocks - skipped
            } else {
                part_blocks
            },
        }
    };
    Some((0..count).map(part).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn too_small_a_region_has_no_stripes() {
        let region = Region {
            first_lba: 8,
            blocks: 31,
        };
        assert_eq!(stripes(region, 4, 8), None);
        assert_eq!(stripes(region, 0, 8), None);
        assert_eq!(stripes(region, 4, 0), None);
        assert!(stripes(region, 3, 8).is_some());
    }

    proptest! {
        #[test]
        fn parts_cover_the_region_once(
            first_lba in 0_u64..1 << 60,
            blocks in 1_u64..1 << 55,
            count in 1_u32..300,
            unit_blocks in 1_u32..5000,
        ) {
            let region = Region { first_lba, blocks };
            match stripes(region, count, unit_blocks) {
                None => prop_assert!(blocks / u64::from(unit_blocks) < u64::from(count)),
                Some(parts) => {
                    let mut next = first_lba;
                    for part in &parts {
                        prop_assert_eq!(part.first_lba, next);
                        prop_assert!(part.blocks >= u64::from(unit_blocks));
                        prop_assert_eq!((part.first_lba - first_lba) % u64::from(unit_blocks), 0);
                        next += part.blocks;
                    }
                    prop_assert_eq!(next, first_lba + blocks);
                    prop_assert_eq!(parts.len(), count as usize);
                }
            }
        }
    }
}
