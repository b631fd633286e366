//! One drive behind three controllers, and an NVMe by every backend: comparisons in the emulated machine. What
//! runs there is `guest_compare.sh`. An emulator's figures say nothing of hardware: what is held here is that the
//! tables are whole, that what differs is named, and that too few rounds show no difference.

use crate::emulated::{Boot, Guest, boot};
use crate::skipped::skipped;
use crate::support::boots;
use lanemark::record::{Comparison, ComparisonVerdict as Verdict, Outcome};

static GUEST: Boot<Guest> = Boot::new();

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
    if !boots() {
        return;
    }
    let words = ["tests/lab/guest_compare.sh", env!("CARGO_BIN_EXE_lanemark")];
    let Some(guest) = GUEST.get(|| boot("same-drive", &words, &[])) else {
        return;
    };
    let sas = comparison(guest, "sas-sata");
    is_whole(&sas, 6, true);
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
    is_whole(&comparison(guest, "raid-sata"), 3, true);
    let sg = comparison(guest, "sg-uring");
    is_whole(&sg, 3, true);
    assert!(differs_in(&sg, "backend"), "{:?}", sg.confounders);
    let few = comparison(guest, "few");
    is_whole(&few, 2, false);
    for metric in few.steps.iter().flat_map(|step| &step.metrics) {
        assert_eq!(metric.against[0].verdict, Verdict::NoDifferenceShown);
    }
    assert!(guest.text("text.out").contains("verdict"));
    let absent = guest.found("absent").unwrap_or_default();
    for (backend, name) in [("uring-cmd", "cmd-uring"), ("spdk", "spdk-uring")] {
        if absent.contains(&format!("{backend}: ")) {
            skipped(&format!(
                "no comparison with {backend} in the lab: {absent}"
            ));
            continue;
        }
        let compared = comparison(guest, name);
        assert!(
            differs_in(&compared, "backend"),
            "{name}: {:?}",
            compared.confounders
        );
        if name == "cmd-uring" {
            is_whole(&compared, 3, true);
        } else {
            let verdicts = compared.steps.iter().flat_map(|step| &step.metrics);
            assert!(verdicts.clone().count() >= 14);
            assert!(
                verdicts
                    .into_iter()
                    .all(|metric| metric.against[0].verdict == Verdict::NotJudged)
            );
        }
    }
}
