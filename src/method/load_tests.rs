//! Load on a model whose truth is known.
#![allow(clippy::unwrap_used)]
use super::*;
use crate::record::Record;

const PEAK_IOPS: f64 = 10_000.0;
const LIMIT_NS: u64 = 1_000_000;
/// The highest rate that the model answers in time.
const GOOD_IOPS: u64 = 6_000;

/// What answers in time up to a rate.
struct Model {
    /// The window at which it ends, from 1.
    ends_at: usize,
    asked_count: usize,
}

impl Loaded for Model {
    fn run(&mut self, ask: &Ask) -> Result<Step, SessionError> {
        self.asked_count += 1;
        if self.asked_count == self.ends_at {
            return Err(SessionError::Interrupted);
        }
        let text = include_str!("../../tests/fixtures/records/normal_read.json");
        let record: Record = serde_json::from_str(text).unwrap();
        let mut step = record.steps[0].clone();
        (step.write, step.trim, step.warnings) = (None, None, Vec::new());
        let read = step.read.as_mut().unwrap();
        read.iops = PEAK_IOPS;
        read.scheduled_latency_ns = ask.rate_iops.map(|rate_iops| {
            let mut latency = read.latency_ns.clone();
            latency.p99 = if rate_iops <= GOOD_IOPS {
                LIMIT_NS
            } else {
                LIMIT_NS + 1
            };
            latency
        });
        Ok(step)
    }
}

fn ended_at(ends_at: usize) -> LoadResult {
    let plan = LoadPlan {
        loads_pct: vec![50.0, 90.0],
        p99_at_most_ns: Some(LIMIT_NS),
    };
    let mut model = Model {
        ends_at,
        asked_count: 0,
    };
    measure(&plan, &mut model)
}

#[test]
fn a_rate_that_was_found_is_not_denied_where_the_search_ends_early() {
    let whole = ended_at(usize::MAX);
    assert_eq!(whole.status(), Outcome::Finished);
    let highest = whole.highest_iops.unwrap();
    assert!(
        (GOOD_IOPS - 100..=GOOD_IOPS).contains(&highest),
        "{highest}"
    );
    // Closed loop and two shares; 50 % keeps it and 90 % does not.
    for ends_at in 4..=whole.steps.len() {
        let result = ended_at(ends_at);
        assert_eq!(result.status(), Outcome::Interrupted, "{ends_at}");
        let found = result.highest_iops.unwrap();
        assert!((5_000..=highest).contains(&found), "{ends_at}: {found}");
    }
}
