//! CPUs near a set of devices, and CPUs far from them.

use crate::session::path::SeenPath;
use crate::sys::cpu::{AllowedCpus, choose_cpus, numa_nodes, sibling_groups};
use crate::sysfs::Sysfs;

/// CPUs for reactors on the devices' NUMA node, and on another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearAndFar {
    /// The devices' node, with a CPU for each reactor.
    pub near: (u32, Vec<u32>),
    /// Another node, with a CPU for each reactor.
    pub far: (u32, Vec<u32>),
}

/// Chooses them among the CPUs that may be used.
///
/// # Errors
/// Why there are none: one node, devices on no known node or on several, too few CPUs.
pub fn near_and_far(
    sysfs: &Sysfs,
    allowed: &AllowedCpus,
    paths: &[SeenPath],
    reactors_count: usize,
) -> Result<NearAndFar, String> {
    let nodes = numa_nodes(sysfs);
    if nodes.len() < 2 {
        return Err("one node".to_owned());
    }
    let mut own: Vec<Option<u32>> = paths.iter().map(|path| path.numa_node).collect();
    own.sort_unstable();
    own.dedup();
    let own = match own.as_slice() {
        [Some(node)] => *node,
        [] | [None, ..] => {
            return Err("the kernel does not tell the node of every device".to_owned());
        }
        several => {
            let names: Vec<String> = several.iter().flatten().map(u32::to_string).collect();
            return Err(format!("the devices are on nodes {}", names.join(", ")));
        }
    };
    let siblings = sibling_groups(sysfs, allowed.cpus());
    let of = |cpus: &[u32]| {
        let usable: Vec<u32> = cpus
            .iter()
            .copied()
            .filter(|cpu| allowed.cpus().contains(cpu))
            .collect();
        choose_cpus(&usable, &siblings, None, reactors_count)
    };
    let mut near = None;
    let mut far = None;
    for (node, cpus) in &nodes {
        let chosen = of(cpus);
        let place = if *node == own { &mut near } else { &mut far };
        if chosen.len() >= reactors_count && place.is_none() {
            *place = Some((*node, chosen));
        }
    }
    let few = |which: &str| format!("too few CPUs of {which} may be used");
    Ok(NearAndFar {
        near: near.ok_or_else(|| few(&format!("node {own}")))?,
        far: far.ok_or_else(|| few("other nodes"))?,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn tree(nodes: &[&str]) -> (tempfile::TempDir, Sysfs) {
        let root = tempfile::tempdir().unwrap();
        for (number, cpus) in nodes.iter().enumerate() {
            let dir = root
                .path()
                .join(format!("sys/devices/system/node/node{number}"));
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(dir.join("cpulist"), format!("{cpus}\n")).unwrap();
        }
        let sysfs = Sysfs::at(root.path());
        (root, sysfs)
    }

    fn on(nodes: &[Option<u32>]) -> Vec<SeenPath> {
        let path = |numa_node: &Option<u32>| SeenPath {
            numa_node: *numa_node,
            ..SeenPath::empty()
        };
        nodes.iter().map(path).collect()
    }

    #[test]
    fn two_nodes_give_near_and_far_cpus() {
        // A node without CPUs (memory alone) is none.
        let (_root, sysfs) = tree(&["0-3", "4-7", ""]);
        let all = AllowedCpus::of(&[0, 1, 2, 3, 4, 5, 6, 7]);
        let found = near_and_far(&sysfs, &all, &on(&[Some(1), Some(1)]), 2).unwrap();
        assert_eq!(found.near, (1, vec![4, 5]));
        assert_eq!(found.far, (0, vec![1, 2]));
    }

    #[test]
    fn what_stands_against_it_is_named() {
        let all = AllowedCpus::of(&[0, 1, 2, 3, 4, 5, 6, 7]);
        let why = |nodes: &[&str], devices: &[Option<u32>], count| {
            let (_root, sysfs) = tree(nodes);
            near_and_far(&sysfs, &all, &on(devices), count).unwrap_err()
        };
        assert_eq!(why(&["0-7"], &[Some(0)], 1), "one node");
        assert_eq!(why(&[], &[Some(0)], 1), "one node");
        let two = ["0-3", "4-7"];
        assert!(why(&two, &[Some(0), None], 1).contains("does not tell"));
        assert!(why(&two, &[Some(0), Some(1)], 1).contains("nodes 0, 1"));
        assert!(why(&two, &[Some(0)], 5).contains("too few CPUs of node 0"));
        assert!(why(&["0-6", "7"], &[Some(0)], 2).contains("other nodes"));
    }
}
