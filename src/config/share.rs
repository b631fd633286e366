//! Totals shared out evenly: the parts sum to the total exactly, and the first ones take what is left
//! over. Seeds too: one for each stream, all different.

/// Part `index` of `total` units in `parts` parts.
pub(super) const fn part(total: u64, parts: u64, index: u64) -> u64 {
    total / parts + (index < total % parts) as u64
}

/// Stripe `index` of `stripes` of a region of `blocks`, in whole multiples of `unit`; the last takes the
/// rest. `None` where not even one unit falls to each. The result is (offset in the region, length).
pub(super) fn stripe(blocks: u64, stripes: u64, index: u64, unit: u64) -> Option<(u64, u64)> {
    let length = blocks / stripes / unit * unit;
    if length == 0 {
        return None;
    }
    let start = length * index;
    if index + 1 == stripes {
        Some((start, blocks - start))
    } else {
        Some((start, length))
    }
}

/// The reactor of entry `index` of a list that holds each stream on each device, device by device.
/// Dealt round-robin; where the number of devices and the number of reactors have a common divisor,
/// each full cycle is shifted by one, or a reactor would see the same few devices for ever.
pub(super) fn reactor_of(index: u64, devices: u64, reactors: u64) -> u64 {
    let common = gcd(devices, reactors);
    let shift = if common > 1 {
        index / (devices / common * reactors)
    } else {
        0
    };
    (index % reactors + shift % reactors) % reactors
}

/// A seed derived from another, for entry `index`. SplitMix64's output function over its own sequence
/// (Steele, Lea, Flood 2014): a bijection, so that different entries never share a seed.
pub(super) const fn seed(parent: u64, index: u64) -> u64 {
    let mut z = parent.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The least common multiple, or `None` past 64 bits.
pub(super) fn lcm(a: u64, b: u64) -> Option<u64> {
    (a / gcd(a, b)).checked_mul(b)
}

const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn devices_that_divide_the_reactors_are_still_seen_by_all() {
        let dealt: Vec<u64> = (0..4).map(|index| reactor_of(index, 2, 2)).collect();
        assert_eq!(dealt, [0, 1, 1, 0]);
        let one_device: Vec<u64> = (0..6).map(|index| reactor_of(index, 1, 4)).collect();
        assert_eq!(one_device, [0, 1, 2, 3, 0, 1]);
    }

    proptest! {
        #[test]
        fn parts_sum_to_the_total(total in any::<u64>(), parts in 1_u64..500) {
            let sum: u128 = (0..parts).map(|index| u128::from(part(total, parts, index))).sum();
            prop_assert_eq!(sum, u128::from(total));
            prop_assert!(part(total, parts, 0) - part(total, parts, parts - 1) <= 1);
        }

        #[test]
        fn stripes_are_disjoint_and_cover_the_region(
            blocks in 1_u64..u64::MAX, stripes in 1_u64..64, unit in 1_u64..5000,
        ) {
            let list: Option<Vec<_>> =
                (0..stripes).map(|index| stripe(blocks, stripes, index, unit)).collect();
            match list {
                None => prop_assert!(blocks / stripes < unit),
                Some(list) => {
                    let mut next = 0;
                    for (start, length) in list {
                        prop_assert_eq!(start, next);
                        prop_assert_eq!(start % unit, 0);
                        prop_assert!(length >= unit);
                        next = start + length;
                    }
                    prop_assert_eq!(next, blocks);
                }
            }
        }

        #[test]
        fn reactors_share_evenly(streams in 1_u64..20, devices in 1_u64..20, reactors in 1_u64..20) {
            let mut load = BTreeMap::new();
            for index in 0..streams * devices {
                *load.entry(reactor_of(index, devices, reactors)).or_insert(0_u64) += 1;
            }
            let most = *load.values().max().unwrap();
            prop_assert!(most <= (streams * devices).div_ceil(reactors));
            if streams * devices >= reactors {
                prop_assert_eq!(load.len() as u64, reactors);
            }
        }

        #[test]
        fn seeds_of_a_parent_differ(parent in any::<u64>(), a in any::<u64>(), b in any::<u64>()) {
            prop_assume!(a != b);
            prop_assert_ne!(seed(parent, a), seed(parent, b));
        }
    }
}
