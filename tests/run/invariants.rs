//! What holds for every record, whatever was run and however it ended.

#[path = "../shared/schema.rs"]
pub mod schema;

use lanemark::record::{
    CeilingKind, DevicePath, Direction, Latency, Outcome, Record, SCHEMA_VERSION, Step, VerdictKind,
};

/// Panics, naming the step, where a record contradicts itself.
#[track_caller]
pub fn check(record: &Record) {
    assert_eq!(record.schema_version, SCHEMA_VERSION);
    let value = serde_json::to_value(record).unwrap();
    let mut found = schema::findings(&lanemark::record::schema(), &value);
    found.truncate(10);
    assert!(
        found.is_empty(),
        "against the published schema:\n{}",
        found.join("\n")
    );
    if record.status == Outcome::Refused {
        assert!(record.error.is_some(), "refused without a reason");
        assert!(record.steps.is_empty(), "refused, yet something ran");
    }
    if let Some(error) = &record.error {
        assert!(!error.text.is_empty() && error.exit_code != 0, "{error:?}");
    }
    for step in &record.steps {
        let name = &step.name;
        counts_add_up(step);
        for (what, direction) in directions(step) {
            rates_divide(&format!("{name}, {what}"), direction, step);
        }
        parts_add_up(step);
        the_slowest_are_the_slowest(step);
        paths_hold_together(step);
        the_verdict_has_its_reason(step);
        let failed = step.status == Outcome::Failed;
        assert!(!failed || step.error.is_some(), "{name}: failed, no reason");
    }
}

fn directions(step: &Step) -> impl Iterator<Item = (&'static str, &Direction)> {
    [
        ("read", &step.read),
        ("write", &step.write),
        ("trim", &step.trim),
        ("writezeroes", &step.writezeroes),
        ("flush", &step.flush),
        ("probe", &step.probe),
    ]
    .into_iter()
    .filter_map(|(name, direction)| Some((name, direction.as_ref()?)))
}

fn counts_add_up(step: &Step) {
    let ended = step.completed_count + step.failed_count + step.abandoned_count;
    assert_eq!(step.submitted_count, ended, "{}: submitted", step.name);
    let tallied: u64 = step.errors.iter().map(|error| error.count).sum();
    assert_eq!(tallied, step.failed_count, "{}: errors", step.name);
    let measured: u64 = directions(step).map(|(_, d)| d.ios_count).sum();
    assert!(measured <= step.completed_count, "{}: measured", step.name);
    let depth = &step.depth;
    assert!(
        step.abandoned_count <= depth.asked_count,
        "{}: abandoned",
        step.name
    );
    let held = depth.device_count.map(|device| depth.asked_count - device);
    assert_eq!(depth.queued_count, held, "{}: depth", step.name);
    let mean = depth.in_flight_mean;
    let most = depth.asked_count as f64 * 1.000_001;
    assert!((0.0..=most).contains(&mean), "{}: {mean}", step.name);
}

fn rates_divide(what: &str, direction: &Direction, step: &Step) {
    let (ios, censored) = (direction.ios_count, direction.latency_ns.censored_count);
    assert!(ios + censored > 0, "{what}: no sample must be null");
    for (rate, count) in [
        (direction.iops, ios),
        (direction.bytes_per_s, direction.bytes_count),
    ] {
        let wanted = if step.window_s > 0.0 {
            count as f64 / step.window_s
        } else {
            0.0
        };
        let is_right = (rate - wanted).abs() <= wanted * 1e-6;
        assert!(is_right, "{what}: {rate} a second, {wanted} wanted");
    }
    let counted: u64 = direction.histogram.iter().map(|(_, count)| count).sum();
    assert_eq!(counted, ios + censored, "{what}: histogram");
    let buckets = || direction.histogram.iter().map(|(bound, _)| bound);
    assert!(buckets().is_sorted_by(|a, b| a < b), "{what}: histogram");
    in_order(what, &direction.latency_ns);
    if let Some(scheduled) = &direction.scheduled_latency_ns {
        in_order(&format!("{what}, scheduled"), scheduled);
    }
}

fn in_order(what: &str, latency: &Latency) {
    let points = [
        latency.min,
        latency.p50,
        latency.p90,
        latency.p99,
        latency.p99_9,
        latency.p99_99,
        latency.max,
    ];
    assert!(points.is_sorted(), "{what}: {points:?}");
    let (min, max) = (latency.min as f64, latency.max as f64);
    // The mean of equal values may differ from them in the last bit.
    let mean_fits = (min * 0.999_999..=max * 1.000_001).contains(&latency.mean);
    assert!(
        mean_fits && latency.stddev >= 0.0,
        "{what}: mean {} ± {} of {points:?}",
        latency.mean,
        latency.stddev
    );
    assert_eq!(
        latency.censored_count > 0,
        !latency.lower_bounds.is_empty(),
        "{what}: lower bounds"
    );
}

/// Reactors, streams and seconds are the whole, each in its own way.
fn parts_add_up(step: &Step) {
    let name = &step.name;
    let all: u64 = directions(step).map(|(_, d)| d.ios_count).sum();
    // Flushes belong to no stream, and are no I/Os of a reactor.
    let ios = all - step.flush.as_ref().map_or(0, |flush| flush.ios_count);
    let bytes: u64 = directions(step).map(|(_, d)| d.bytes_count).sum();
    let reactors: u64 = step.reactors.iter().map(|r| r.ios_count).sum();
    assert_eq!(reactors, ios, "{name}: reactors");
    let streams: u64 = step.streams.iter().map(|s| s.ios_count).sum();
    assert_eq!(streams, ios, "{name}: streams");
    let streams_bytes: u64 = step.streams.iter().map(|s| s.bytes_count).sum();
    assert_eq!(streams_bytes, bytes, "{name}: bytes of streams");
    for stream in &step.streams {
        let has_samples = stream.ios_count > 0;
        let has_figures = (stream.mean_ns.is_some(), stream.max_ns.is_some());
        assert_eq!(
            has_figures,
            (has_samples, has_samples),
            "{name}: {stream:?}"
        );
    }
    let (mut seconds_ios, mut seconds_s) = (0, 0.0);
    for second in &step.series {
        let parts = [
            &second.read,
            &second.write,
            &second.trim,
            &second.writezeroes,
            &second.flush,
            &second.probe,
        ];
        for part in parts.into_iter().flatten() {
            assert!(part.ios_count > 0, "{name}: no sample must be null");
            assert!(part.p50_ns <= part.p99_ns && part.p99_ns <= part.max_ns);
            seconds_ios += part.ios_count;
        }
        seconds_s += second.length_s;
    }
    assert_eq!(seconds_ios, all, "{name}: seconds");
    let starts = step.series.iter().map(|second| second.start_s);
    assert!(starts.is_sorted(), "{name}: seconds");
    assert!(
        seconds_s <= step.window_s * 1.05 + 0.1,
        "{name}: {seconds_s} s in a window of {} s",
        step.window_s
    );
}

fn the_slowest_are_the_slowest(step: &Step) {
    let name = &step.name;
    let latencies = step.slowest.iter().map(|slow| slow.latency_ns);
    assert!(latencies.is_sorted_by(|a, b| a >= b), "{name}: slowest");
    let max = directions(step).map(|(_, d)| d.latency_ns.max).max();
    for slow in &step.slowest {
        // A device may be gone before the window begins: then what it left in flight is all there is.
        let counted = Some(slow.latency_ns) <= max;
        let before_window = slow.abandoned && step.window_s == 0.0;
        assert!(counted || before_window, "{name}: {slow:?}");
        let stream = &step.streams[slow.stream as usize];
        let device = &step.devices[stream.device_index as usize];
        let block_bytes = u64::from(device.logical_block_bytes);
        let end = slow.lba + slow.bytes_count / block_bytes;
        let inside = slow.lba >= stream.first_lba
            && end <= stream.first_lba + stream.region_blocks
            && end <= device.capacity_bytes / block_bytes;
        assert!(
            inside || slow.op == "flush" || slow.op == "probe",
            "{name}: {slow:?}"
        );
    }
    let gaps = step.poll_gaps.iter().map(|gap| gap.up_to_ns);
    assert!(gaps.is_sorted(), "{name}: gaps");
}

fn paths_hold_together(step: &Step) {
    let name = &step.name;
    let indices: Vec<u32> = step.path.iter().map(|path| path.device_index).collect();
    assert!(indices.is_sorted_by(|a, b| a < b), "{name}: {indices:?}");
    for path in &step.path {
        assert!((path.device_index as usize) < step.devices.len(), "{name}");
        let says_why = path.unseen.iter().all(|unseen| !unseen.why.is_empty());
        assert!(says_why, "{name}: unseen without a reason: {path:?}");
        let is_something = !path.hops.is_empty() || !path.unseen.is_empty();
        assert!(is_something, "{name}: neither hops nor a reason: {path:?}");
        let bands = path
            .hops
            .iter()
            .flat_map(|hop| [hop.read_ceiling, hop.write_ceiling]);
        for band in bands.flatten() {
            let (low, high) = (band.low_bytes_per_s, band.high_bytes_per_s);
            assert!(0.0 < low && low <= high, "{name}: {band:?}");
        }
        the_narrowest_is_the_narrowest(name, path);
    }
}

fn the_narrowest_is_the_narrowest(name: &str, path: &DevicePath) {
    let most = |index: usize| Some(path.hops.get(index)?.read_ceiling?.high_bytes_per_s);
    let all = (0..path.hops.len()).filter_map(most);
    let least = all.min_by(f64::total_cmp);
    let told = path.narrowest_index.and_then(|index| most(index as usize));
    assert_eq!(told, least, "{name}: narrowest of {:?}", path.hops);
}

fn the_verdict_has_its_reason(step: &Step) {
    let (name, verdict) = (&step.name, &step.verdict);
    assert!(!verdict.why.is_empty(), "{name}: {verdict:?}");
    let is_about_links = matches!(
        verdict.kind,
        VerdictKind::LinkBound | VerdictKind::LinkLimitedLikely | VerdictKind::LinkDataDistrusted
    );
    assert!(!is_about_links || verdict.at.is_some(), "{name}: no hop");
    let changed = step.path.iter().any(|path| !path.changes.is_empty());
    let undecided = verdict.kind == VerdictKind::Undecided;
    assert!(!changed || undecided, "{name}: a link changed: {verdict:?}");
    for share in &verdict.shares {
        assert!(0.0 <= share.low_pct && share.low_pct <= share.high_pct);
    }
    for ceilings in [&step.ceilings.read, &step.ceilings.write]
        .into_iter()
        .flatten()
    {
        let known = CeilingKind::ALL.map(|kind| ceilings.of(kind));
        for ceiling in known.into_iter().flatten() {
            assert!(!ceiling.source.is_empty(), "{name}: no source: {ceiling:?}");
            assert!(ceiling.rate.is_some() || ceiling.io.is_some(), "{name}");
        }
        if let Some(predicted) = &ceilings.predicted {
            assert!(ceilings.of(predicted.kind).is_some(), "{name}: predicted");
        }
    }
    for criterion in &step.expect {
        assert!(!criterion.is_met || criterion.measured.is_some(), "{name}");
    }
}
