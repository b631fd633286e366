//! Totals shared out evenly: the parts sum to the total exactly, and the first ones take what is left
//! over. Reactors are dealt the same way.

/// Part `index` of `total` units in `parts` parts.
pub(super) const fn part(total: u64, parts: u64, index: u64) -> u64 {
    total / parts + (index < total % parts) as u64
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
    }
}
