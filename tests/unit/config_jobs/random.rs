//! Properties: no text panics the reader, and whatever is accepted is a plan that holds.

use super::support::{device, plan_on};
use lanemark::config::{Job, Plan, describe, plan_json};
use lanemark::workload::{Access, StreamSpec};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Values of each key, some of them bad.
const VALUES: &[&[&str]] = &[
    &[
        "rw: read",
        "rw: write",
        "rw: randread",
        "rw: randrw",
        "rw: trim",
        "rw: nonsense",
    ],
    &["bs: 512", "bs: 4k", "bs: 1M", "bs: 520", "bs: 4294967296k"],
    &[
        "bssplit: 512/30:4k/70",
        "bssplit: {4k: 1}",
        "bssplit: 4k/99:1M",
    ],
    &[
        "offset: 0",
        "offset: 33%",
        "offset: 100%",
        "offset: 1",
        "offset: 16E",
    ],
    &[
        "size: 0",
        "size: 7%",
        "size: 1M",
        "size: 100%",
        "size: 18446744073709551104",
    ],
    &["iodepth: 1", "iodepth: 32", "iodepth: 65536", "iodepth: 0"],
    &[
        "streams: 1",
        "streams: 7",
        "streams: 64",
        "streams: [{}, {rw: write}]",
        "streams: []",
    ],
    &[
        "reactors: 1",
        "reactors: 3",
        "reactors: 64",
        "cpus: 0-2",
        "cpus: [5]",
    ],
    &[
        "number_ios: 1",
        "number_ios: 1000",
        "rate_iops: 1",
        "rate_iops: 100001",
    ],
    &[
        "io_size: 1M",
        "io_size: 3",
        "passes: 3",
        "passes: 18446744073709551615",
    ],
    &[
        "blockalign: 4k",
        "blockalign: 1G",
        "fsync: 4294967295",
        "data: zero",
    ],
    &[
        "batch: {submit: 4}",
        "batch: {complete_min: 3, complete_max: 9}",
    ],
];

fn keys() -> impl Strategy<Value = String> {
    let key = proptest::sample::select(VALUES).prop_flat_map(proptest::sample::select);
    proptest::collection::vec(key, 0..8).prop_map(|keys| {
        // The last of several values for one key stays.
        let by_name: BTreeMap<&str, &str> =
            keys.iter().filter_map(|key| key.split_once(": ")).collect();
        let list: Vec<String> = by_name
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        list.join(", ")
    })
}

fn holds(stream: &StreamSpec, capacity_blocks: u64) -> Result<(), TestCaseError> {
    let region = stream.region;
    prop_assert!(region.first_lba.checked_add(region.blocks).unwrap() <= capacity_blocks);
    prop_assert!(u64::from(stream.max_blocks()) <= region.blocks);
    prop_assert!(
        stream.align_blocks >= 1
            && u64::from(stream.align_blocks) <= region.blocks.max(u64::from(stream.max_blocks()))
    );
    prop_assert!(stream.depth >= 1 && !stream.sizes.is_empty());
    let sum: f64 = stream.sizes.iter().map(|size| size.share_pct).sum();
    prop_assert!((sum - 100.0).abs() < 1e-6);
    prop_assert!(
        stream
            .sizes
            .iter()
            .all(|size| size.blocks >= 1 && size.share_pct > 0.0)
    );
    prop_assert_ne!(stream.quota.ios, Some(0));
    prop_assert!(
        stream
            .quota
            .blocks
            .is_none_or(|blocks| blocks >= u64::from(stream.max_blocks()))
    );
    Ok(())
}

fn plan_holds(plan: &Plan, capacities: &[u64]) -> Result<(), TestCaseError> {
    for step in &plan.steps {
        prop_assert_eq!(step.streams.len(), step.reactor_of.len());
        let busy: std::collections::BTreeSet<u32> = step.reactor_of.iter().copied().collect();
        prop_assert_eq!(busy.len(), step.reactors_count as usize);
        prop_assert!(busy.iter().all(|reactor| *reactor < step.reactors_count));
        prop_assert!(step.cpus.is_empty() || step.cpus.len() == step.reactors_count as usize);
        let batch = step.batch;
        prop_assert!(
            1 <= batch.complete_min
                && batch.complete_min <= batch.complete_max
                && batch.submit >= 1
        );
        let ends = step
            .streams
            .iter()
            .all(|stream| stream.quota.ios.is_some() || stream.quota.blocks.is_some());
        prop_assert!(step.limits.runtime.is_some() || ends);
        for stream in &step.streams {
            holds(stream, capacities[stream.device_index as usize])?;
        }
        let sequential: Vec<_> = step
            .streams
            .iter()
            .filter(|stream| stream.access == Access::Sequential && stream.device_index == 0)
            .collect();
        if step.name != "streams" {
            for pair in sequential.windows(2) {
                prop_assert_eq!(
                    pair[0].region.first_lba + pair[0].region.blocks,
                    pair[1].region.first_lba
                );
            }
        }
    }
    Ok(())
}

proptest! {
    // About one job in six is accepted.
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn whatever_is_accepted_holds(
        keys in keys(),
        block in proptest::sample::select(&[512_u32, 520, 4096][..]),
        capacity_bytes in prop_oneof![Just(0_u64), 1_u64..10_000, 1_u64..1 << 44, Just(u64::MAX)],
        other in proptest::option::of(1_u64 << 20..1 << 40),
    ) {
        let mut facts = vec![device("a", block, capacity_bytes)];
        facts.extend(other.map(|bytes| device("b", 512, bytes)));
        let yaml = format!("steps: [{{ {keys} }}]\n");
        match plan_on(&yaml, &facts) {
            Err(error) => prop_assert!(!error.to_string().contains('\n')),
            Ok(plan) => {
                let capacities: Vec<u64> = facts.iter().map(|facts| facts.blocks().0).collect();
                plan_holds(&plan, &capacities)?;
                let json = plan_json(&plan);
                prop_assert_eq!(json["steps"].as_array().unwrap().len(), 1);
                prop_assert!(describe(&plan).contains("step 1 of 1"));
            }
        }
    }

    #[test]
    fn no_text_panics_the_reader(text in "([a-z_]{1,8}|[:\\[\\]{}\\-#&*!|>'\"%@` \n\t0-9éß])*") {
        let _ = Job::from_yaml(&text, "job.yaml");
        let _ = Job::from_yaml(&format!("steps:\n  - {text}"), "job.yaml");
    }
}
