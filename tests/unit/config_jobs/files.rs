//! The jobs that come with the tool: each loads and fits a usual device.

use super::support::device;
use lanemark::backend::DeviceFacts;
use lanemark::config::{Job, Plan, plan};
use lanemark::units::Nanos;
use lanemark::workload::{Access, Arrival, OpMix, Quota, Region};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("configs")
}

fn ssd() -> DeviceFacts {
    device("ssd", 512, 400_088_457_216)
}

fn planned(name: &str) -> Plan {
    let job = Job::load(&folder().join(name)).unwrap();
    job.check().unwrap();
    plan(&job, &[ssd()], 1).unwrap()
}

#[test]
fn every_job_loads_and_fits() {
    let mut count = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let is_yaml = path
            .extension()
            .is_some_and(|extension| extension == "yaml");
        // The datasheets are no job.
        if is_yaml && !path.ends_with("drives.yaml") {
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(
                text.starts_with('#'),
                "{} begins with a comment",
                path.display()
            );
            for facts in [ssd(), device("4kn", 4096, 1 << 40)] {
                let job = Job::load(&path).unwrap();
                let plan = plan(&job, &[facts], 1).unwrap();
                assert_eq!(plan.notes, []);
                assert!(!plan.steps.is_empty());
            }
            count += 1;
        }
    }
    assert!(count >= 6, "{count} jobs");
}

#[test]
fn the_published_fio_lines_come_out_as_published() {
    let plan = planned("s3710-fio-lines.yaml");
    let names: Vec<&str> = plan.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["LinRead", "LinWrite", "RandRead", "RandWrite"]);
    for (step, (random, bytes, jobs, write)) in plan.steps.iter().zip([
        (false, 1 << 20, 1, false),
        (false, 1 << 20, 1, true),
        (true, 4096, 4, false),
        (true, 4096, 4, true),
    ]) {
        assert_eq!(step.streams.len(), jobs);
        assert_eq!(step.in_flight_count, 32 * jobs as u64);
        assert_eq!(step.limits.runtime, Some(Nanos::from_s(60)));
        assert_eq!(step.limits.ramp, Nanos(0));
        for stream in &step.streams {
            assert_eq!(matches!(stream.access, Access::Random { .. }), random);
            assert_eq!(stream.ops == OpMix::Write, write);
            assert_eq!(u64::from(stream.sizes[0].blocks) * 512, bytes);
            assert_eq!(
                stream.region,
                Region {
                    first_lba: 0,
                    blocks: (500 << 20) / 512
                }
            );
            // fio's io_size is per job: 10 GiB each.
            assert_eq!(
                stream.quota,
                Quota {
                    ios: None,
                    blocks: Some((10 << 30) / 512)
                }
            );
        }
    }
    assert_eq!(plan.steps[1].streams[0].flush_every, Some(10_000));
}

#[test]
fn the_other_jobs_do_what_their_names_say() {
    let latency = planned("latency-depth1.yaml");
    assert!(latency.steps.iter().all(|step| step.in_flight_count == 1));
    let peak = planned("peak-randread.yaml");
    assert!(
        peak.steps
            .iter()
            .all(|step| step.in_flight_count >= 128 && !step.writes())
    );
    let quick = planned("quick.yaml");
    let shape: Vec<_> = quick
        .steps
        .iter()
        .map(|step| (step.writes(), step.streams[0].depth))
        .collect();
    assert_eq!(
        shape,
        [
            (false, 1),
            (false, 32),
            (false, 32),
            (true, 1),
            (true, 32),
            (true, 32)
        ]
    );
    let mixed = planned("mixed-70-30.yaml");
    assert_eq!(
        mixed.steps[0].streams[0].ops,
        OpMix::ReadWrite { read_pct: 70.0 }
    );
    let open = planned("open-loop-50pct.yaml");
    assert!(matches!(
        open.steps[0].streams[0].arrival,
        Arrival::Poisson { .. }
    ));
}
