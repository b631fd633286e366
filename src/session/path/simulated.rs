//! The hop of a simulated device, so that what is known of it can be found by the same rules as a real one.

use super::{Carrier, Look, SeenLink, SeenPath, state};
use crate::backend::sim::SimSpec;
use crate::record::{Hop, LinkKind};

impl SeenPath {
    /// The way to a simulated device: the hop that its name gives it, or none.
    pub(super) fn simulated(name: &str) -> Self {
        let spec = name.strip_prefix("sim:").unwrap_or_default();
        let hop = SimSpec::parse(spec).ok().and_then(|spec| spec.hop);
        let Some(found) = hop else {
            return Self::unseen(name, "no device: sim lives in virtual time");
        };
        #[allow(clippy::cast_precision_loss)] // Rates are far below 2^53.
        let bytes_per_s = found.bytes_per_s as f64;
        let hop = Hop {
            name: found.name.clone(),
            to: name.to_owned(),
            kind: LinkKind::Simulated,
            what: "simulated hop to device".to_owned(),
            driver: None,
            now: Some(state("simulated".to_owned(), None, None)),
            most: None,
            mps_bytes: None,
            mrrs_bytes: None,
            read_ceiling: None,
            write_ceiling: None,
        };
        let link = SeenLink {
            name: found.name,
            carrier: Some(Carrier::Simulated(bytes_per_s)),
            look: Look::Fixed,
        };
        let mut path = Self::empty();
        path.push(hop, link);
        path.find_narrowest();
        path
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_named_hop_is_a_link_and_nothing_else_is() {
        let path = SeenPath::simulated("sim:latency=100us,hop=hba:1000M");
        assert!(path.record.unseen.is_empty());
        assert_eq!(path.record.narrowest_index, Some(0));
        let ceiling = path.record.hops[0].read_ceiling.unwrap();
        assert!((ceiling.high_bytes_per_s - 1000.0 * 1_048_576.0).abs() < 1e-6);
        let bare = SeenPath::simulated("sim:latency=100us");
        assert!(bare.links.is_empty() && bare.record.unseen.len() == 1);
        assert_eq!(SeenPath::simulated("sim").record.unseen.len(), 1);
    }
}
