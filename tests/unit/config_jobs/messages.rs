//! What refusals say, word for word: file, line, key, and what is allowed.

use super::support::{device, disk, disk_4kn, plan_on, refused, refused_on};
use lanemark::config::{At, ConfigError, Job};
use std::path::Path;

fn says(yaml: &str) -> String {
    plan_on(yaml, &[disk()]).unwrap_err().to_string()
}

#[test]
fn a_value_is_refused_by_file_line_and_key() {
    let yaml = "\
name: example
device: /dev/nvme0n1
steps:
  - name: first
    rw: randread
    bs: 4k
  - name: second
    rw: randrw
    bs: 8k
    rwmixread: 67
    # a comment
    iodepth: 0
";
    let error = plan_on(yaml, &[disk()]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "job.yaml:12: iodepth: `0` is less than 1; allowed: 1 to 65536 (column 14)"
    );
    assert_eq!(
        error.place().unwrap().at,
        At::File {
            file_index: 0,
            line: 12,
            column: 14
        }
    );
}

#[test]
fn syntax_errors_name_the_line() {
    let cases = [
        (
            "steps:\n  - rw: 'read\n",
            "job.yaml:2: rw: unclosed quote (column 9)",
        ),
        (
            "steps:\n  - rw: read\n    rw: write\n",
            "job.yaml:3: rw: the key stands twice in one mapping; keep one of them (column 5)",
        ),
        (
            "steps:\n  - rw: [read]\n",
            "job.yaml:2: rw: it takes one value, not a list or a mapping (column 9)",
        ),
        (
            "steps: 3\n",
            "job.yaml:1: steps: it takes a list: lines that begin with `- ` (column 8)",
        ),
        (
            "steps:\n  - 5\n",
            "job.yaml:2: a mapping of keys is needed here: `key: value` (column 5)",
        ),
        (
            "steps:\n\t- rw: read\n",
            "job.yaml:2: tabs disallowed within this context (block indentation) (column 2)",
        ),
        (
            "steps:\n - {rw: read}\n---\nname: x\n",
            "job.yaml:4: a second document begins here; a job file holds one (column 1)",
        ),
        (
            "name: x\n",
            "job.yaml: steps: a job file needs at least one step, such as `steps: [{ rw: randread, bs: 4k, iodepth: 32 }]`",
        ),
        (
            "",
            "job.yaml: steps: a job file needs at least one step, such as `steps: [{ rw: randread, bs: 4k, iodepth: 32 }]`",
        ),
    ];
    for (yaml, message) in cases {
        let error = plan_on(yaml, &[disk()]).unwrap_err();
        assert!(matches!(error, ConfigError::Syntax { .. }), "{error:?}");
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn unknown_keys_are_refused_with_what_was_meant() {
    let cases = [
        (
            "steps:\n  - iodpth: 4\n",
            "job.yaml:2: iodpth: unknown key; did you mean `iodepth`?",
        ),
        (
            "steps:\n  - rw: read\n    histogram: { iodepth: [1, 4] }\n",
            "job.yaml:3: histogram: unknown key; allowed here: name, instead_of, sweep, repeat, rw,",
        ),
        (
            "rw: read\nsteps: []\n",
            "job.yaml:1: rw: unknown key; it belongs into a step or `defaults`.",
        ),
        (
            "steps:\n  - streams:\n      - rw: read\n        runtime: 3s\n",
            "job.yaml:4: runtime: unknown key; it belongs into the step.",
        ),
        (
            "steps:\n  - streams: [{ streams: 3 }]\n",
            "job.yaml:2: streams: unknown key; it belongs into the step.",
        ),
        (
            "defaults: { name: x }\nsteps: [{}]\n",
            "job.yaml:1: name: unknown key; ",
        ),
        (
            "steps:\n  - batch:\n      submt: 3\n",
            "job.yaml:3: submt: unknown key; did you mean `submit`?",
        ),
    ];
    for (yaml, beginning) in cases {
        let error = plan_on(yaml, &[disk()]).unwrap_err();
        assert!(matches!(error, ConfigError::UnknownKey { .. }), "{error:?}");
        assert!(error.to_string().starts_with(beginning), "{error}");
    }
}

/// A key with a value it does not take, and what is said.
const BAD_VALUES: &[(&str, &str)] = &[
    ("iodepth:", "iodepth: it has no value; allowed: 1 to 65536"),
    (
        "iodepth: -3",
        "iodepth: `-3` is not a whole number; allowed: 1 to 65536",
    ),
    (
        "iodepth: 65537",
        "iodepth: `65537` is more than 65536; allowed: 1 to 65536",
    ),
    (
        "iodepth: 4294967297",
        "iodepth: `4294967297` is more than 65536; allowed: 1 to 65536",
    ),
    (
        "iodepth: 1.5",
        "iodepth: `1.5` is not a whole number; allowed: 1 to 65536",
    ),
    (
        "bs: 4kB",
        "bs: `4kB` is not a size: kB, MB, GB could mean 1000 or 1024; write KiB, MiB, GiB (or k, M, G) for powers of 1024, or the bytes in full",
    ),
    (
        "bs: 4 k",
        "bs: `4 k` is not a size: use whole bytes or a binary suffix without a space, such as 4096, 0x1000, 4k, 64KiB, 1M, 1.5G, 2T",
    ),
    (
        "bs: 25%",
        "bs: `25%` is not a size: a percentage makes no sense here; use bytes such as 4096, 4k, 1M",
    ),
    (
        "rw: reed",
        "rw: `reed` is not known; allowed: read, write, randread, randwrite, rw, readwrite, randrw, trim, randtrim, writezeroes, randwritezeroes, probe, probe-read",
    ),
    (
        "runtime: 10",
        "runtime: `10` is not a duration: it has no unit; add one of ns, us, ms, s, m, h, d, such as 10s for ten seconds",
    ),
    (
        "runtime: 0s",
        "runtime: `0s` is no time at all; give one such as 100ms, 10s, 5m",
    ),
    (
        "size: 0",
        "size: `0` leaves nothing to measure; give a size such as 1G or 25%, or leave the key out for all that follows the offset",
    ),
    (
        "rwmixread: 101, rw: rw",
        "rwmixread: `101` is not a percentage; allowed: 0 to 100",
    ),
    (
        "rwmixread: .nan, rw: rw",
        "rwmixread: `.nan` is not a percentage; allowed: 0 to 100",
    ),
    (
        "stamp: fast",
        "stamp: `fast` is not known; allowed: auto, exact, batch",
    ),
    (
        "cpus: 3-1",
        "cpus: `3-1` is not a list of CPUs: the range 3-1 runs backwards; write 1-3",
    ),
    (
        "data: fixed:xyz, rw: write",
        "data: `fixed:xyz` is not a data pattern; allowed: random, zero, fixed:DEADBEEF (eight hexadecimal digits), compressible:50% (more than 0, at most 98: each block has a key of its own)",
    ),
    (
        "random_distribution: 'zipf:1'",
        "random_distribution: `zipf:1` is not a distribution; allowed: uniform, zipf:1.2 (above 0, not 1), pareto:0.9 (between 0 and 1), normal:20 (percent, above 0 up to 100), zoned:50/10:30/20:20/70 (access%/size%)",
    ),
    (
        "bssplit: 4k/60:64k/30",
        "bssplit: `4k/60:64k/30`: the shares sum to 90; allowed: sizes with shares that sum to 100, such as 4k/60:64k/40",
    ),
    (
        "streams: 0",
        "streams: `0` is less than 1; allowed: 1 to 4096",
    ),
    (
        "batch: { submit: 0 }",
        "batch.submit: `0` is less than 1; allowed: 1 to 65536",
    ),
];

#[test]
fn values_say_what_is_allowed() {
    for (keys, message) in BAD_VALUES {
        // In block style, so that the line of the last key is known.
        let yaml = format!("steps:\n  - {}\n", keys.replace(", rw:", "\n    rw:"));
        let error = plan_on(&yaml, &[disk()]).unwrap_err();
        assert!(matches!(error, ConfigError::Value { .. }), "{error:?}");
        let text = error.to_string();
        assert!(
            text.starts_with(&format!("job.yaml:2: {message} (column ")),
            "{text}"
        );
    }
}

#[test]
fn keys_without_effect_are_refused_with_the_reason() {
    let cases = [
        (
            "rw: read, rwmixread: 70",
            "rwmixread",
            "mixes no reads and writes",
        ),
        (
            "rw: read, percentage_random: 50",
            "percentage_random",
            "is not random",
        ),
        (
            "rw: write, random_distribution: 'zipf:1.2'",
            "random_distribution",
            "is not random",
        ),
        ("rw: read, blockalign: 4k", "blockalign", "is not random"),
        ("rw: randread, fsync: 1", "fsync", "writes nothing"),
        ("rw: randread, data: zero", "data", "writes nothing"),
        ("rw: trim, data: zero", "data", "writes nothing"),
        ("rw: writezeroes, data: random", "data", "sends no data"),
        (
            "rw: randread, rate_process: poisson",
            "rate_process",
            "there is no `rate_iops`",
        ),
    ];
    for (keys, key, reason) in cases {
        let error = refused(keys);
        let ConfigError::NoEffect { place, why } = &error else {
            panic!("{error:?}");
        };
        assert_eq!(place.key, key);
        assert_eq!(place.line(), Some(2));
        assert!(why.contains(reason), "{why}");
    }
    assert_eq!(
        says("steps:\n  - rw: read\n    rwmixread: 70\n"),
        "job.yaml:3: rwmixread: it has no effect: `rw: read` mixes no reads and writes; a mix is rw or randrw; remove it (column 16)"
    );
}

#[test]
fn a_default_may_be_idle_in_one_step_but_not_in_all() {
    let mixed = "defaults: { rwmixread: 70 }\nsteps:\n  - { rw: read }\n  - { rw: randrw }\n";
    assert!(plan_on(mixed, &[disk()]).is_ok());
    let error = plan_on(
        "defaults:\n  rwmixread: 70\nsteps:\n  - { rw: read }\n  - { rw: randread }\n",
        &[disk()],
    )
    .unwrap_err();
    assert!(
        matches!(&error, ConfigError::NoEffect { place, .. } if place.line() == Some(2)),
        "{error}"
    );
    let step_over_streams = "steps:\n  - rwmixread: 70\n    streams: [{ rw: read }, { rw: rw }]\n";
    assert!(plan_on(step_over_streams, &[disk()]).is_ok());
    let own_of_stream =
        "steps:\n  - rw: rw\n    streams:\n      - { rw: read, rwmixread: 10 }\n      - { }\n";
    let error = plan_on(own_of_stream, &[disk()]).unwrap_err();
    assert!(
        matches!(&error, ConfigError::NoEffect { place, .. } if place.line() == Some(4)),
        "{error}"
    );
}

#[test]
fn contradictions_name_both_sides() {
    assert_eq!(
        says("steps:\n  - bs: 4k\n    bssplit: 4k/100\n"),
        "job.yaml:3: bssplit: `bs` and `bssplit` exclude each other; keep one of them (column 14)"
    );
    assert_eq!(
        says("steps:\n  - cpus: 0-3\n    reactors: 2\n"),
        "job.yaml:3: reactors: 2 reactors, but `cpus` names 4; name one CPU for each reactor, or leave one of the two keys out (column 15)"
    );
    assert_eq!(
        says("steps:\n  - reactors: 4\n    streams: 2\n"),
        "job.yaml:3: streams: 2 streams on 1 devices cannot keep 4 reactors busy; allowed: at least 4 streams, or fewer reactors (column 14)"
    );
    assert_eq!(
        says("steps:\n  - batch: { complete_min: 9 }\n    iodepth: 8\n"),
        "job.yaml:2: batch.complete_min: at most 8 I/Os are in flight on one queue, so that 9 never complete at once; allowed: 1 to 8 (column 28)"
    );
    assert_eq!(
        says("steps:\n  - batch: { complete_min: 4, complete_max: 2 }\n    iodepth: 8\n"),
        "job.yaml:2: batch.complete_min: 4 is more than complete_max, which is 2; allowed: 1 to complete_max (column 28)"
    );
    assert_eq!(
        says("steps:\n  - { name: a }\n  - { name: a }\n"),
        "job.yaml:3: name: `a` names two steps; give each its own name (column 13)"
    );
}

#[test]
fn what_a_device_cannot_do_is_refused_by_its_name() {
    let unfit = |keys: &str, facts| {
        let error = refused_on(keys, &[facts]);
        assert!(matches!(error, ConfigError::Unfit { .. }), "{error:?}");
        error.to_string()
    };
    assert_eq!(
        unfit("bs: 512", disk_4kn()),
        "job.yaml:2: bs: disk4kn: 512 bytes is not a multiple of the logical block; allowed: multiples of 4096 bytes (column 11)"
    );
    assert_eq!(
        unfit("offset: 32", disk()),
        "job.yaml:2: offset: disk: 32 bytes is not a multiple of the logical block; allowed: multiples of 512 bytes (column 15)"
    );
    assert_eq!(
        unfit("size: 1000", disk()),
        "job.yaml:2: size: disk: 1000 bytes is not a multiple of the logical block; allowed: multiples of 512 bytes (column 13)"
    );
    assert_eq!(
        unfit("offset: 1T", disk()),
        "job.yaml:2: offset: disk: the offset of block 2147483648 is at or past the end; the device has 2147483648 blocks of 512 bytes (1 TiB) (column 15)"
    );
    assert_eq!(
        unfit("offset: 512G, size: 1T", disk()),
        "job.yaml:2: size: disk: the region ends past the device: 2147483648 blocks of 512 bytes (1 TiB) from block 1073741824; allowed: up to 1073741824 blocks of 512 bytes (512 GiB) (column 27)"
    );
    assert_eq!(
        unfit("bs: 1M, size: 64k", disk()),
        "job.yaml:2: size: disk: the region of 128 blocks of 512 bytes (64 KiB) is smaller than the largest request of 2048 blocks of 512 bytes (1 MiB); enlarge the region or shrink the request (column 21)"
    );
    assert_eq!(
        unfit("bs: 1M", device("small", 512, 1 << 16)),
        "job.yaml:2: bs: small: the region of 128 blocks of 512 bytes (64 KiB) is smaller than the largest request of 2048 blocks of 512 bytes (1 MiB); enlarge the region or shrink the request (column 11)"
    );
    assert_eq!(
        unfit("blockalign: 1M, size: 64k", disk()),
        "job.yaml:2: blockalign: disk: 1048576 bytes is larger than the region of 128 blocks of 512 bytes (64 KiB), so that every I/O would start at the same place; use less (column 19)"
    );
    let mut plain = disk();
    plain.trim = Err("the driver has no discard".to_owned());
    plain.write_zeroes = Err("no ONCS bit".to_owned());
    plain.flush = Err("opened without".to_owned());
    plain.probe = Err("no such command".to_owned());
    assert_eq!(
        unfit("rw: probe", plain.clone()),
        "job.yaml:2: rw: disk: it cannot probe: no such command (column 11)"
    );
    assert_eq!(
        unfit("rw: randtrim", plain.clone()),
        "job.yaml:2: rw: disk: it cannot trim: the driver has no discard (column 11)"
    );
    assert_eq!(
        unfit("rw: writezeroes", plain.clone()),
        "job.yaml:2: rw: disk: it cannot write zeros: no ONCS bit (column 11)"
    );
    assert_eq!(
        unfit("rw: write, fsync: 8", plain),
        "job.yaml:2: fsync: disk: it cannot flush: opened without (column 25)"
    );
    assert_eq!(
        unfit("bssplit: 512/50:2k/50", disk_4kn()),
        "job.yaml:2: bssplit: disk4kn: none of its sizes is a multiple of the logical block; allowed: multiples of 4096 bytes (column 16)"
    );
    assert_eq!(
        unfit("rw: read, streams: 4, size: 96k, bs: 32k", disk()),
        "job.yaml:2: size: disk: 4 sequential streams need a region of at least 256 blocks, one request of 64 blocks each; this one has 192 (column 35)"
    );
}

#[test]
fn devices_on_which_nothing_can_be_measured_are_refused() {
    let says = |facts| refused_on("rw: read", &[facts]).to_string();
    assert_eq!(
        says(device("empty", 512, 0)),
        "empty: it is empty (0 bytes); a device or file with at least one block is needed"
    );
    assert_eq!(
        says(device("tiny", 4096, 100)),
        "tiny: it has 100 B, which is less than one logical block of 4096 bytes; at least one block is needed"
    );
    assert_eq!(refused_on("rw: read", &[]), ConfigError::NoDevice);
}

#[test]
fn totals_that_leave_a_stream_with_nothing_are_refused() {
    assert_eq!(
        refused("number_ios: 3, streams: 4").to_string(),
        "job.yaml:2: number_ios: 3 shared by 4 streams (streams × devices) leaves some with nothing; allowed: at least 4 (column 19)"
    );
    assert_eq!(
        refused_on("rate_iops: 1", &[disk(), disk_4kn()]).to_string(),
        "job.yaml:2: rate_iops: 1 shared by 2 streams (streams × devices) leaves some with nothing; allowed: at least 2 (column 18)"
    );
    assert_eq!(
        refused("io_size: 1000").to_string(),
        "job.yaml:2: io_size: 1000 bytes is not a multiple of the logical block; allowed: multiples of 512 bytes (column 16)"
    );
    assert_eq!(
        refused("io_size: 64k, bs: 64k, streams: 2").to_string(),
        "job.yaml:2: io_size: disk: the share of one stream is 64 blocks, less than one request of 128 blocks; use more (column 16)"
    );
    assert_eq!(
        refused("passes: 18446744073709551615").to_string(),
        "job.yaml:2: passes: disk: 18446744073709551615 passes over 2147483648 blocks are more than 64 bits can count; use fewer (column 15)"
    );
}

#[test]
fn the_check_without_devices_finds_bad_devices_and_backends() {
    let says = |yaml: &str| {
        Job::from_yaml(yaml, "job.yaml")
            .unwrap()
            .check()
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        says("device: [x, y, x]\nsteps: [{}]\n"),
        "job.yaml:1: device: `x` is named twice; name each device once (column 16)"
    );
    assert_eq!(
        says("backend: turbo\nsteps: [{}]\n"),
        "job.yaml:1: backend: `turbo` is not known; allowed: auto, null, sim, uring, uring-cmd, sg, spdk (column 10)"
    );
    assert!(
        says("device:\nsteps: [{}]\n")
            .starts_with("job.yaml:1: device: it has no value; name a device")
    );
}

#[test]
fn hostile_files_are_refused_and_missing_ones_named() {
    let error = Job::load(Path::new("no/such/job.yaml")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read the job file no/such/job.yaml: ENOENT (No such file or directory)"
    );
    let many = format!("steps:\n{}", "  - {}\n".repeat(200_000));
    assert!(matches!(
        Job::from_yaml(&many, "job.yaml"),
        Err(ConfigError::Syntax { .. })
    ));
    let long = format!("# {}\nsteps: [{{}}]\n", "x".repeat(5 << 20));
    assert!(matches!(
        Job::from_yaml(&long, "job.yaml"),
        Err(ConfigError::Syntax { .. })
    ));
    let deep = format!("steps: {}", "[".repeat(10_000));
    assert!(matches!(
        Job::from_yaml(&deep, "job.yaml"),
        Err(ConfigError::Syntax { .. })
    ));
    let bombs = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\n";
    assert!(Job::from_yaml(bombs, "job.yaml").is_err());
    let latin1 = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(latin1.path(), b"name: x\nsteps: [\xff]\n").unwrap();
    let error = Job::load(latin1.path()).unwrap_err();
    assert_eq!(error.place().unwrap().line(), Some(2));
}
