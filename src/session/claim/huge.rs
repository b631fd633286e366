//! Huge pages for a claimed device: reserved on its NUMA node, and given back with the last claim.

use super::state::{Reserved, Store};
use super::{Claim, ClaimError, Claimer};
use crate::sysfs::bind::{BindError, Binder};
use crate::sysfs::host::{HugePool, huge_pools};
use crate::units::Bytes;
use serde::Serialize;

/// What changed about huge pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HugeChange {
    /// NUMA node; absent where the kernel shows none.
    pub node: Option<u32>,
    /// Size of a page.
    pub page_bytes: u64,
    /// Pages reserved before.
    pub before_count: u64,
    /// Pages reserved now, or that would be.
    pub after_count: u64,
}

impl std::fmt::Display for HugeChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let page = Bytes(self.page_bytes);
        if let Some(node) = self.node {
            write!(f, "node {node}: ")?;
        }
        write!(f, "huge pages of {page}: {}", self.before_count)?;
        if self.after_count == self.before_count {
            return f.write_str(", unchanged");
        }
        let bytes = Bytes(self.after_count.saturating_mul(self.page_bytes));
        write!(f, " -> {} ({bytes})", self.after_count)
    }
}

/// Why huge pages could not be reserved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HugeError {
    /// The kernel has none.
    #[error("the kernel shows no huge pages{0}")]
    None(String),
    /// There is less room than asked.
    #[error(
        "only {got_count} of {wanted_count} huge pages of {page} could be reserved{place}: memory is short or fragmented; ask for less, or reserve them at boot (hugepages={wanted_count})"
    )]
    Short {
        /// What there is now.
        got_count: u64,
        /// What was asked.
        wanted_count: u64,
        /// Size of a page.
        page: Bytes,
        /// The node, in words.
        place: String,
    },
    /// The kernel refused.
    #[error(transparent)]
    Bind(#[from] BindError),
}

/// The pool of the smallest pages on a node.
fn pool_of(pools: &[HugePool], node: Option<u32>) -> Option<HugePool> {
    let on_node = pools
        .iter()
        .filter(|pool| node.is_none() || pool.node.is_none() || pool.node == node);
    on_node.min_by_key(|pool| (pool.page.0, pool.node)).copied()
}

impl Claimer<'_> {
    /// Sees to it that `size` is reserved as huge pages on the node of each claim. What is there already counts.
    /// With `dry_run` nothing is changed.
    ///
    /// # Errors
    /// [`ClaimError::Huge`], [`ClaimError::State`].
    pub fn reserve(
        &self,
        claims: &[Claim],
        size: Bytes,
        dry_run: bool,
    ) -> Result<Vec<HugeChange>, ClaimError> {
        let mut nodes: Vec<Option<u32>> = claims.iter().map(|claim| claim.numa_node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let mut changes = Vec::new();
        for node in nodes {
            let pools = huge_pools(self.sysfs)?;
            let place = node.map_or_else(String::new, |node| format!(" on node {node}"));
            let pool = pool_of(&pools, node).ok_or_else(|| HugeError::None(place.clone()))?;
            let mut change = HugeChange {
                node: pool.node,
                page_bytes: pool.page.0,
                before_count: pool.total_count,
                after_count: pool.total_count.max(size.0.div_ceil(pool.page.0)),
            };
            let wanted_count = change.after_count;
            if !dry_run && wanted_count > change.before_count {
                self.must_be_root("reserve huge pages for")?;
                let mut store = Store::open(self.sysfs, self.told)?;
                store.state.huge_pages.push(Reserved {
                    node: pool.node,
                    page_bytes: change.page_bytes,
                    before_count: change.before_count,
                    after_count: wanted_count,
                });
                store.save()?;
                let set = self
                    .binder()
                    .set_huge_pages(pool.node, pool.page, wanted_count);
                change.after_count = set.map_err(HugeError::from)?;
                if change.after_count < wanted_count {
                    // What came is of no use to anybody.
                    let _ =
                        (self.binder()).set_huge_pages(pool.node, pool.page, change.before_count);
                    store.state.huge_pages.pop();
                    store.save()?;
                    return Err(HugeError::Short {
                        got_count: change.after_count,
                        wanted_count,
                        page: pool.page,
                        place,
                    }
                    .into());
                }
            }
            changes.push(change);
        }
        Ok(changes)
    }
}

/// Gives back what was reserved for claims, where nobody has changed it since.
pub(super) fn give_back(
    sysfs: &crate::sysfs::Sysfs,
    binder: &Binder<'_>,
    store: &mut Store,
) -> Result<Vec<String>, ClaimError> {
    let mut notes = Vec::new();
    if store.state.huge_pages.is_empty() {
        return Ok(notes);
    }
    // The last reservation first: each knows what there was before it.
    while let Some(reserved) = store.state.huge_pages.pop() {
        let pools = huge_pools(sysfs)?;
        let page = Bytes(reserved.page_bytes);
        let now = pools
            .iter()
            .find(|pool| (pool.node, pool.page) == (reserved.node, page));
        if now.is_some_and(|pool| pool.total_count == reserved.after_count) {
            let after_count = binder
                .set_huge_pages(reserved.node, page, reserved.before_count)
                .map_err(HugeError::from)?;
            let change = HugeChange {
                node: reserved.node,
                page_bytes: reserved.page_bytes,
                before_count: reserved.after_count,
                after_count,
            };
            notes.push(change.to_string());
        }
    }
    store.save()?;
    Ok(notes)
}
