//! Every suite over SPDK and vfio-user, short as can be.

use crate::spdk_target::target;
use lanemark::method::suites;
use lanemark::record::{Outcome, Record};
use std::process::Command;

const NQN: &str = "nqn.2026-01.io.lanemark:suites";

#[test]
fn every_suite_runs_quick_over_vfio_user() {
    let Some(target) = target() else { return };
    target.null("n0", 1 << 30); // 4 TiB in blocks of 4 KiB
    target.subsystem(NQN, &[(1, "n0")]);
    let device = target.vfio_user(NQN);
    for name in suites::names() {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lanemark"));
        command.args([
            "suite",
            "run",
            name,
            "--quick",
            "--runtime",
            "20ms",
            "--format",
            "json",
        ]);
        command.args([
            "--progress",
            "none",
            "--allow-write",
            "LANEMARK01",
            "--device",
            &device,
        ]);
        if matches!(name, "bsweep" | "mixsweep") {
            // Depth 256 of 2 MiB is more than there are hugepages in the tests.
            command.args(["--iodepth", "16"]);
        }
        let done = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&done.stderr);
        let record: Record = serde_json::from_slice(&done.stdout)
            .unwrap_or_else(|error| panic!("{name}: {error}: {stderr}"));
        assert!(
            matches!(done.status.code(), Some(0 | 1)),
            "{name}: {stderr}"
        );
        assert!(!record.steps.is_empty(), "{name}: {stderr}");
        for step in record
            .steps
            .iter()
            .filter(|step| step.status != Outcome::Finished)
        {
            let kind = step.error.as_ref().map(|error| error.kind.as_str());
            assert_eq!(
                kind,
                Some("no-samples"),
                "{name}: {}: {:?}",
                step.name,
                step.error
            );
        }
        // 512 B to 2 KiB are no blocks of this device.
        for left in &record.left_out {
            assert!(!left.why.is_empty(), "{name}: {left:?}");
        }
        if name == "bsweep" {
            assert!(record.left_out.len() >= 6, "{:?}", record.left_out);
        }
    }
}
