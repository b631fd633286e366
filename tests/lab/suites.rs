//! Every suite on a loop device, short as can be.

use crate::common::run_json;
use crate::support::{Loop, lab};
use lanemark::method::suites;
use lanemark::record::Outcome;

#[test]
fn every_suite_runs_quick_on_a_loop_device() {
    let Some(_lab) = lab() else { return };
    let dir = tempfile::tempdir().unwrap();
    // Sparse: as large as the largest region of a suite.
    let device = Loop::sparse(dir.path(), 512 << 30, &[]);
    let path = device.path.display();
    for name in suites::names() {
        // Depth 256 of 2 MiB is 512 MiB of buffers: no matter of this test.
        let depth = match name {
            "bsweep" | "mixsweep" => "--iodepth 16",
            _ => "",
        };
        // The largest transfers of ATTO take longer than the window.
        let runtime = if name == "atto" { "100ms" } else { "20ms" };
        let words = format!(
            "suite run {name} --quick --runtime {runtime} {depth} --device {path} --allow-write {path}"
        );
        let (ran, record) = run_json(&words);
        let lost = record
            .steps
            .iter()
            .filter(|step| step.status != Outcome::Finished);
        for step in lost {
            // Nothing came back in so short a window: said, and never zero.
            let kind = step.error.as_ref().map(|error| error.kind.as_str());
            assert_eq!(kind, Some("no-samples"), "{name}: {:?}", step.error);
            assert!(
                step.read.is_none() && step.write.is_none(),
                "{name}: {}",
                step.name
            );
        }
        assert!(matches!(ran.code, 0 | 1), "{name}: {}", ran.stderr);
        assert!(!record.steps.is_empty(), "{name}");
    }
}
