//! A hop that several simulated devices share.

use super::spec::{SimError, SimHop, SimSpec};
use crate::clock::Tick;
use std::cell::Cell;
use std::rc::Rc;

/// A hop: it carries one transfer after the other, in the order in which they come, before any device serves them.
#[derive(Debug)]
pub struct Hop {
    spec: SimHop,
    /// Earliest next transfer, in picoseconds so that odd rates do not drift.
    free_ps: Cell<u128>,
}

impl Hop {
    const fn new(spec: SimHop) -> Self {
        Self {
            spec,
            free_ps: Cell::new(0),
        }
    }

    /// When a transfer that comes now has its turn; the next one has its own after it.
    #[allow(clippy::cast_possible_truncation)] // Nanoseconds of a run are far below 2^64.
    pub(super) fn pass(&self, now: Tick, bytes: u64) -> Tick {
        let start_ps = (u128::from(now.0) * 1000).max(self.free_ps.get());
        let length_ps = u128::from(bytes) * 1_000_000_000_000 / u128::from(self.spec.bytes_per_s);
        self.free_ps.set(start_ps + length_ps);
        Tick(start_ps.div_ceil(1000) as u64)
    }
}

/// The hops of a set of devices, by name.
#[derive(Debug, Default)]
pub struct Hops(Vec<Rc<Hop>>);

impl Hops {
    /// The hop of a device: the one of its name, or a new one.
    ///
    /// # Errors
    /// [`SimError`] where two devices say different things of one hop.
    pub fn of(&mut self, spec: &SimSpec) -> Result<Option<Rc<Hop>>, SimError> {
        let Some(wanted) = &spec.hop else {
            return Ok(None);
        };
        if let Some(known) = self.0.iter().find(|hop| hop.spec.name == wanted.name) {
            if known.spec == *wanted {
                return Ok(Some(Rc::clone(known)));
            }
            return Err(SimError {
                text: format!("hop={}", wanted.name),
                why: "devices that share a hop have to agree on what it carries".to_owned(),
            });
        }
        let hop = Rc::new(Hop::new(wanted.clone()));
        self.0.push(Rc::clone(&hop));
        Ok(Some(hop))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(hops: &mut Hops, text: &str) -> Result<Option<Rc<Hop>>, SimError> {
        hops.of(&SimSpec::parse(text).unwrap())
    }

    #[test]
    fn transfers_follow_one_another_whoever_sends_them() {
        let mut hops = Hops::default();
        let one = of(&mut hops, "hop=hba:1M").unwrap().unwrap();
        let other = of(&mut hops, "hop=hba:1M").unwrap().unwrap();
        let apart = of(&mut hops, "hop=hbb:1M").unwrap().unwrap();
        // 1 MiB a second: 4096 bytes take 3.90625 ms.
        assert_eq!(one.pass(Tick(0), 4096), Tick(0));
        assert_eq!(other.pass(Tick(0), 4096), Tick(3_906_250));
        assert_eq!(apart.pass(Tick(0), 4096), Tick(0));
        assert_eq!(one.pass(Tick(9_000_000), 4096), Tick(9_000_000));
    }

    #[test]
    fn a_hop_carries_the_same_for_all_of_its_devices() {
        let mut hops = Hops::default();
        assert!(of(&mut hops, "hop=hba:1M").unwrap().is_some());
        assert!(of(&mut hops, "hop=hba:2M").is_err());
        assert!(of(&mut hops, "").unwrap().is_none());
    }
}
