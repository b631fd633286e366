//! One drive behind three controllers, and an NVMe by every backend, SPDK in turn with the kernel: comparisons in
//! the emulated machine. What runs there is `guest_compare.sh`. An emulator's figures say nothing of hardware: what is held here is that the
//! tables are whole, that what differs is named, and that too few rounds are not judged.

use crate::emulated::Guest;
use crate::skipped::skipped;
use crate::topologies;
use lanemark::record::{Comparison, ComparisonVerdict as Verdict, Outcome};

/// Of the topology.
pub const NAME: &str = "same-drive";

#[track_caller]
fn comparison(guest: &Guest, name: &str) -> Comparison {
    let comparison: Comparison = serde_json::from_value(guest.json(name)).unwrap();
    assert_eq!(comparison.status, Outcome::Finished, "{name}");
    comparison
}

/// Every step has every figure of both sides, with an interval where the rounds allow one.
#[track_caller]
fn is_whole(comparison: &Comparison, rounds_count: usize, has_intervals: bool) {
    assert_eq!(comparison.steps.len(), 2);
    for step in &comparison.steps {
        let names: Vec<&str> = step
            .metrics
            .iter()
            .map(|metric| metric.metric.as_str())
            .collect();
        assert_eq!(
            names,
            ["iops", "bandwidth", "mean", "p50", "p99", "p99_9", "busy"]
        );
        for metric in &step.metrics {
            assert!(
                metric.rounds.iter().all(|side| side.len() == rounds_count),
                "{metric:?}"
            );
            assert!(
                metric
                    .means
                    .iter()
                    .all(|mean| mean.is_some_and(|mean| mean > 0.0)),
                "{metric:?}"
            );
            let against = &metric.against[0];
            assert_eq!(
                against.difference.low.is_some(),
                has_intervals,
                "{metric:?}"
            );
            assert!(against.ratio.value.is_some(), "{metric:?}");
        }
    }
}

fn differs_in(comparison: &Comparison, name: &str) -> bool {
    comparison
        .confounders
        .iter()
        .any(|confounder| confounder.name == name)
}

#[test]
fn one_drive_behind_three_controllers_and_an_nvme_by_every_backend() {
    let Some(guest) = topologies::guest(NAME) else {
        return;
    };
    let sas = comparison(guest, "sas-sata");
    is_whole(&sas, 3, true);
    // One drive by its identity: what differs is the way to it.
    assert!(
        differs_in(&sas, "device") && !differs_in(&sas, "identity"),
        "{:?}",
        sas.confounders
    );
    assert!(
        sas.conclusions[1].contains("for the same drive"),
        "{:?}",
        sas.conclusions
    );
    // The emulated drive was asked for its link's errors, and keeps no such attribute: said by name.
    let path = &sas.steps[0].sides[0].first.path[0];
    let asked = path
        .counters_unseen
        .iter()
        .find(|one| one.name.contains("ata"));
    assert!(
        asked.is_some_and(|one| one.why.contains("SMART attribute 199")),
        "{path:?}"
    );
    is_whole(&comparison(guest, "raid-sata"), 3, true);
    let sg = comparison(guest, "sg-uring");
    is_whole(&sg, 3, true);
    assert!(differs_in(&sg, "backend"), "{:?}", sg.confounders);
    let cmd = comparison(guest, "cmd-uring");
    is_whole(&cmd, 3, true);
    assert!(differs_in(&cmd, "backend"), "{:?}", cmd.confounders);
    by_spdk_in_turn(guest);
}

/// The drive changes hands for every window: the same tables, and all is the kernel's again at the end.
fn by_spdk_in_turn(guest: &Guest) {
    if cfg!(not(spdk)) {
        skipped("no comparison with spdk in the lab: built without SPDK");
        return;
    }
    for (name, kernel, rounds_count) in [("spdk-cmd", "uring-cmd", 3), ("spdk-uring", "uring", 2)] {
        let compared = comparison(guest, name);
        is_whole(&compared, rounds_count, rounds_count > 2);
        for what in ["backend", "drivers"] {
            assert!(
                differs_in(&compared, what),
                "{name}: {:?}",
                compared.confounders
            );
        }
        assert!(
            compared.conclusions[1].contains("for the same drive"),
            "{name}: {:?}",
            compared.conclusions
        );
        for step in &compared.steps {
            let backends = step
                .sides
                .iter()
                .map(|side| side.first.backend.name.as_str());
            assert_eq!(backends.collect::<Vec<_>>(), [kernel, "spdk"], "{name}");
        }
    }
    // Two rounds are too few to judge by, and that is what is said.
    let few = comparison(guest, "spdk-uring");
    for metric in few.steps.iter().flat_map(|step| &step.metrics) {
        assert_eq!(metric.against[0].verdict, Verdict::NotJudged);
    }
    assert_eq!(guest.text("driver").trim(), "nvme");
    assert!(
        !guest.text("claims").contains("0000:"),
        "{}",
        guest.text("claims")
    );
}
