//! What jobs resolve to: blocks, shares, regions, reactors, times.

use super::support::{disk, disk_4kn, plan_on, refused, step, step_on};
use lanemark::backend::{Batch, DeviceKind};
use lanemark::config::{ConfigError, StampChoice, describe, plan_json};
use lanemark::units::{Bytes, Nanos};
use lanemark::workload::{
    Access, Arrival, DataPattern, Distribution, OpMix, Quota, Region, SizeShare, Zone,
};

#[test]
fn every_default_is_filled_in() {
    let step = step("");
    let stream = &step.streams[0];
    assert_eq!(step.name, "randread");
    assert_eq!(step.streams.len(), 1);
    assert_eq!(stream.ops, OpMix::Read);
    assert_eq!(
        stream.access,
        Access::Random {
            distribution: Distribution::Uniform,
            random_pct: 100.0
        }
    );
    assert_eq!(
        stream.sizes,
        [SizeShare {
            blocks: 8,
            share_pct: 100.0
        }]
    );
    assert_eq!(stream.align_blocks, 8);
    assert_eq!(
        stream.region,
        Region {
            first_lba: 0,
            blocks: 1 << 31
        }
    );
    assert_eq!(stream.depth, 1);
    assert_eq!(stream.arrival, Arrival::Closed);
    assert_eq!(stream.quota, Quota::default());
    assert_eq!(
        step.batch,
        Batch {
            submit: 1,
            complete_min: 1,
            complete_max: 1
        }
    );
    assert_eq!(step.limits.runtime, Some(Nanos::from_s(10)));
    assert_eq!(step.limits.ramp, Nanos::from_s(1));
    assert_eq!(step.limits.grace, Nanos::from_s(30));
    assert_eq!(step.limits.max_errors, None);
    assert_eq!(step.stamp, StampChoice::Auto);
    assert_eq!((step.reactors_count, step.in_flight_count), (1, 1));
    assert!(step.cpus.is_empty() && !step.writes());
}

#[test]
fn a_ramp_goes_with_a_time_and_with_no_amount() {
    let ramp = |keys: &str| step(keys).limits.ramp;
    assert_eq!(ramp("ramp_time: 500ms"), Nanos(500_000_000));
    assert_eq!(ramp("ramp_time: 0s, number_ios: 5"), Nanos(0));
    let error = refused("ramp_time: 500ms, number_ios: 5");
    assert!(matches!(error, ConfigError::Value { .. }), "{error}");
}

#[test]
fn all_keys_arrive() {
    let step = step(
        "name: x, rw: randrw, bssplit: {4k: 60, 64k: 40}, blockalign: 16k, rwmixread: 67, \
         percentage_random: 80, random_distribution: 'zoned:50/10:30/20:20/70', offset: 1M, size: 1G, \
         iodepth: 32, number_ios: 1000, io_size: 1G, rate_iops: 5000, rate_process: poisson, fsync: 16, \
         passes: 2, data: 'fixed:DEADBEEF', batch: {submit: 16, complete_min: 4, complete_max: 8}, \
         streams: 2, reactors: 2, cpus: [3, 1], runtime: 60s, randseed: 7, stamp: exact, \
         grace: 5s, max_errors: 10, expect: 'read_iops>=1000k,p99<=200us'",
    );
    assert_eq!(step.name, "x");
    assert_eq!(step.cpus, [3, 1]);
    assert_eq!(step.reactor_of, [0, 1]);
    assert_eq!(
        step.batch,
        Batch {
            submit: 16,
            complete_min: 4,
            complete_max: 8
        }
    );
    assert_eq!(
        step.limits.ramp,
        Nanos(0),
        "amounts count from the first I/O"
    );
    assert_eq!(step.limits.grace, Nanos::from_s(5));
    assert_eq!((step.limits.max_errors, step.expect.len()), (Some(10), 2));
    assert_eq!(step.stamp, StampChoice::Exact);
    assert_eq!(step.in_flight_count, 64);
    assert!(step.writes());
    let stream = &step.streams[1];
    assert_eq!(stream.ops, OpMix::ReadWrite { read_pct: 67.0 });
    let zone = |access_pct, size_pct| Zone {
        access_pct,
        size_pct,
    };
    assert_eq!(
        stream.access,
        Access::Random {
            distribution: Distribution::Zoned(vec![
                zone(50.0, 10.0),
                zone(30.0, 20.0),
                zone(20.0, 70.0)
            ]),
            random_pct: 80.0
        }
    );
    assert_eq!(
        stream.sizes,
        [
            SizeShare {
                blocks: 8,
                share_pct: 60.0
            },
            SizeShare {
                blocks: 128,
                share_pct: 40.0
            }
        ]
    );
    assert_eq!(stream.align_blocks, 32);
    assert_eq!(
        stream.region,
        Region {
            first_lba: 2048,
            blocks: 1 << 21
        }
    );
    assert_eq!(stream.arrival, Arrival::Poisson { iops: 2500.0 });
    assert_eq!(stream.flush_every, Some(16));
    assert_eq!(stream.data, DataPattern::Fixed([0xDE, 0xAD, 0xBE, 0xEF]));
    // 1 GiB in two shares is tighter than two passes over 1 GiB each.
    assert_eq!(
        stream.quota,
        Quota {
            ios: Some(500),
            blocks: Some(1 << 20)
        }
    );
}

#[test]
fn layers_override_from_defaults_over_steps_to_streams() {
    let yaml = "
defaults: { bs: 8k, iodepth: 4, ramp_time: 2s, cpus: '1' }
steps:
  - { bs: 16k }
  - bssplit: 4k/50:8k/50
    streams:
      - { iodepth: 9 }
      - { bs: 32k, rw: write }
";
    let plan = plan_on(yaml, &[disk()]).unwrap();
    let [first, second] = plan.steps.as_slice() else {
        panic!("two steps");
    };
    assert_eq!(first.streams[0].sizes[0].blocks, 32);
    assert_eq!(first.streams[0].depth, 4);
    assert_eq!(second.streams[0].sizes.len(), 2);
    assert_eq!(second.streams[0].depth, 9);
    assert_eq!(second.streams[1].sizes[0].blocks, 64);
    assert_eq!(second.streams[1].ops, OpMix::Write);
    assert_eq!(second.limits.ramp, Nanos::from_s(2));
    assert_eq!(
        (first.name.as_str(), second.name.as_str()),
        ("randread", "streams")
    );
    assert_eq!(plan.name, "job");
}

#[test]
fn totals_are_shared_evenly_and_sum_exactly() {
    let step = step_on(
        "number_ios: 11, rate_iops: 1003, streams: 2",
        &[disk(), disk_4kn()],
    );
    let ios: Vec<u64> = step
        .streams
        .iter()
        .map(|stream| stream.quota.ios.unwrap())
        .collect();
    assert_eq!(ios, [3, 3, 3, 2]);
    let rates: Vec<Arrival> = step.streams.iter().map(|stream| stream.arrival).collect();
    assert_eq!(rates[0], Arrival::Fixed { iops: 251.0 });
    assert_eq!(rates[3], Arrival::Fixed { iops: 250.0 });
    // Whole requests where the total is one of them: 10 MiB over three streams of 1 MiB.
    let bytes = super::support::step("rw: read, bs: 1M, io_size: 10M, streams: 3");
    let blocks: Vec<u64> = bytes
        .streams
        .iter()
        .map(|stream| stream.quota.blocks.unwrap())
        .collect();
    assert_eq!(blocks, [4 * 2048, 3 * 2048, 3 * 2048]);
}

#[test]
fn a_streams_own_total_does_not_come_out_of_the_steps() {
    let yaml = "
steps:
  - rate_iops: 100
    streams:
      - { }
      - { rate_iops: 30 }
      - { }
  - streams:
      - { rw: randread }
      - { rw: randwrite, rate_iops: 1000 }
";
    let plan = plan_on(yaml, &[disk()]).unwrap();
    let rates: Vec<Arrival> = plan.steps[0]
        .streams
        .iter()
        .map(|stream| stream.arrival)
        .collect();
    let fixed = |iops| Arrival::Fixed { iops };
    assert_eq!(rates, [fixed(50.0), fixed(30.0), fixed(50.0)]);
    // A closed-loop reader beside a rated writer.
    assert_eq!(plan.steps[1].streams[0].arrival, Arrival::Closed);
    assert_eq!(plan.steps[1].streams[1].arrival, fixed(1000.0));
}

#[test]
fn sizes_a_device_cannot_do_are_dropped_by_name() {
    let yaml = "
steps:
  - name: file server
    rw: randrw
    rwmixread: 80
    bssplit: 512/10:1k/5:2k/5:4k/60:8k/2:16k/4:32k/4:64k/10
    streams: 2
";
    let plan = plan_on(yaml, &[disk_4kn()]).unwrap();
    let sizes = &plan.steps[0].streams[0].sizes;
    assert_eq!(sizes.len(), 5);
    let sum: f64 = sizes.iter().map(|size| size.share_pct).sum();
    assert!((sum - 100.0).abs() < 1e-9);
    assert!((sizes[0].share_pct - 75.0).abs() < 1e-9);
    assert_eq!(plan.notes.len(), 1);
    assert_eq!(plan.notes[0].kind, "bssplit-share-dropped");
    assert_eq!(
        plan.notes[0].text,
        "disk4kn: 512 B (10 %), 1 KiB (5 %), 2 KiB (5 %) left out of the bssplit: not a multiple of the logical block of 4096 bytes; the other shares now count as 100 %"
    );
    assert!(plan_on(yaml, &[disk()]).unwrap().notes.is_empty());
}

#[test]
fn shares_that_are_left_out_divide_the_rest() {
    let step = step("bssplit: '4k/50:8k:16k/'");
    let shares: Vec<f64> = step.streams[0]
        .sizes
        .iter()
        .map(|size| size.share_pct)
        .collect();
    assert_eq!(shares, [50.0, 25.0, 25.0]);
}

#[test]
fn requests_the_block_layer_splits_are_noted() {
    let mut small = disk();
    small.max_io = Some(Bytes(128 << 10));
    let yaml = "steps: [{ rw: read, bs: 1M, streams: 3 }]\n";
    let plan = plan_on(yaml, &[small.clone()]).unwrap();
    assert_eq!(plan.notes.len(), 1);
    assert_eq!(plan.notes[0].kind, "io-split");
    small.kind = DeviceKind::Nvme;
    assert!(plan_on(yaml, &[small]).unwrap().notes.is_empty());
}

#[test]
fn streams_are_dealt_to_reactors_in_turn() {
    assert_eq!(step("streams: 5, reactors: 2").reactor_of, [0, 1, 0, 1, 0]);
    let two = step_on("reactors: 2", &[disk(), disk_4kn()]);
    assert_eq!(two.reactor_of, [0, 1, 1, 0]);
    let per_device = step_on("streams: 1, reactors: 2", &[disk(), disk_4kn()]);
    assert_eq!(per_device.reactor_of, [0, 1]);
    assert_eq!(step("cpus: 0-3").reactors_count, 4);
}

#[test]
fn batch_defaults_follow_the_deepest_queue() {
    let step = step("iodepth: 32, streams: 3, reactors: 2");
    assert_eq!(
        step.batch,
        Batch {
            submit: 64,
            complete_min: 1,
            complete_max: 64
        }
    );
    assert_eq!(step.in_flight_count, 96);
    let capped = super::support::step("iodepth: 4, batch: { submit: 32, complete_max: 32 }");
    assert_eq!(
        capped.batch,
        Batch {
            submit: 4,
            complete_min: 1,
            complete_max: 4
        }
    );
}

#[test]
fn windows_end_by_time_amount_or_both() {
    let limits = |keys: &str| step(keys).limits;
    assert_eq!(limits("number_ios: 100").runtime, None);
    assert_eq!(limits("number_ios: 100").ramp, Nanos(0));
    assert_eq!(
        limits("number_ios: 100, runtime: 5s").runtime,
        Some(Nanos::from_s(5))
    );
    assert_eq!(limits("runtime: 2s").ramp, Nanos(200_000_000));
    assert_eq!(limits("runtime: 60s").ramp, Nanos::from_s(1));
    assert_eq!(limits("rate_iops: 100").ramp, Nanos(0));
    assert_eq!(
        limits("rate_iops: 100, ramp_time: 3s").ramp,
        Nanos::from_s(3)
    );
    // One stream without an amount would never end: the default time ends it.
    let yaml = "steps: [{ streams: [{ passes: 1 }, { }] }]\n";
    let plan = plan_on(yaml, &[disk()]).unwrap();
    assert_eq!(plan.steps[0].limits.runtime, Some(Nanos::from_s(10)));
}

#[test]
fn the_seed_shown_repeats_the_run_and_steps_differ() {
    let yaml = "steps: [{ }, { name: again }]\n";
    let plan = plan_on(yaml, &[disk()]).unwrap();
    assert_eq!(plan.seed, 42);
    assert_ne!(plan.steps[0].streams[0].seed, plan.steps[1].streams[0].seed);
    let repeated = plan_on(
        "defaults: { randseed: 42 }\nsteps: [{ }, { name: again }]\n",
        &[disk()],
    )
    .unwrap();
    assert_eq!(plan.steps[1].streams, repeated.steps[1].streams);
    // A step's own seed does not depend on its place.
    let own = plan_on(
        "steps: [{ randseed: 9 }, { name: again, randseed: 9 }]\n",
        &[disk()],
    )
    .unwrap();
    assert_eq!(own.steps[0].streams, own.steps[1].streams);
}

#[test]
fn the_text_form_says_everything_in_bytes_and_blocks() {
    let plan = plan_on(
        "
name: echo
steps:
  - name: mix
    rw: randrw
    bs: 8k
    rwmixread: 67
    iodepth: 32
    streams: 2
    randseed: 1
  - name: linear
    rw: write
    bs: 1M
    io_size: 1G
    fsync: 8
    cpus: '2'
    max_errors: 1
",
        &[disk()],
    )
    .unwrap();
    insta::assert_snapshot!(describe(&plan));
}

#[test]
fn the_json_form_says_everything_in_bytes_and_blocks() {
    let plan = plan_on(
        "steps: [{ rw: randrw, bs: 8k, rate_iops: 100, number_ios: 5, offset: 1M }]\n",
        &[disk_4kn()],
    )
    .unwrap();
    let json = plan_json(&plan);
    let stream = &json["steps"][0]["streams"][0];
    assert_eq!(stream["sizes"][0]["bytes"], 8192);
    assert_eq!(stream["sizes"][0]["blocks"], 2);
    assert_eq!(stream["offset"]["bytes"], 1 << 20);
    assert_eq!(stream["offset"]["blocks"], 256);
    assert_eq!(stream["read_pct"], 50.0);
    assert_eq!(stream["rate_iops"], 100.0);
    assert_eq!(json["devices"][0]["capacity_bytes"], 1_u64 << 40);
    assert_eq!(json["steps"][0]["runtime_ns"], serde_json::Value::Null);
    insta::assert_snapshot!(serde_json::to_string_pretty(&json).unwrap());
}
