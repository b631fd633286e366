//! The terminal report of every hand-made record, at 80 and at 40 columns.

use lanemark::record::Record;
use lanemark::report::{Format, Style, render};

const FIXTURES: [&str; 8] = [
    "normal_read",
    "mixed_scheduled",
    "interrupted_partial",
    "failed_abandoned",
    "two_streams",
    "slow_94_s",
    "hostile_strings",
    "refused",
];

fn load(name: &str) -> Record {
    let path = format!(
        "{}/tests/fixtures/records/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn text(name: &str, width: usize) -> String {
    let style = Style {
        color: false,
        width,
    };
    render(&load(name), Format::Text, &style)
}

#[test]
fn at_80_columns() {
    for name in FIXTURES {
        insta::assert_snapshot!(format!("text_80_{name}"), text(name, 80));
    }
}

#[test]
fn at_40_columns() {
    for name in FIXTURES {
        insta::assert_snapshot!(format!("text_40_{name}"), text(name, 40));
    }
}

#[test]
fn nothing_is_wider_than_asked() {
    for name in FIXTURES {
        for width in [40, 60, 80, 120] {
            for line in text(name, width).lines() {
                assert!(line.chars().count() <= width, "{name} at {width}: {line}");
            }
        }
    }
}

/// The same report with the layout taken out, so that a sentence can be looked for.
fn running(name: &str) -> String {
    text(name, 80)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn a_94_second_io_is_shown_as_94_s_in_percentiles_and_maximum() {
    let shown = running("slow_94_s");
    for row in [
        "90 % 94 s",
        "99 % 94 s",
        "99.9 % 94 s",
        "99.99 % 94 s",
        "max 94 s",
    ] {
        assert!(shown.contains(row), "{row} in {shown}");
    }
    assert!(shown.contains("min 850 ns"));
}

#[test]
fn a_direction_without_a_sample_is_not_available_and_never_zero() {
    let shown = running("failed_abandoned");
    assert!(shown.contains("read write IOPS 187 n/a GB/s"), "{shown}");
    assert!(shown.contains("n/a 99 % 112 ms n/a"), "{shown}");
    assert!(shown.contains("busy 0.2 %, n/a per I/O"), "{shown}");
    assert!(
        shown.contains("in the device at most n/a, queued above it n/a"),
        "{shown}"
    );
}

#[test]
fn a_step_that_read_nothing_still_says_so() {
    let mut record = load("normal_read");
    record.steps[0].read = None;
    let shown = render(&record, Format::Text, &Style::PLAIN);
    assert!(
        shown
            .lines()
            .any(|l| l.split_whitespace().eq(["IOPS", "n/a"])),
        "{shown}"
    );
    record.steps[0].slowest.clear();
    record.steps[0].plan = serde_json::Value::Null;
    record.steps[0].summary = "randtrim 4 KiB, depth 1; 1 in flight".to_owned();
    let shown = render(&record, Format::Text, &Style::PLAIN);
    assert!(
        shown.lines().any(|l| l.trim() == "trim"),
        "the summary helps where there is no plan: {shown}"
    );
    record.steps[0].summary = String::new();
    let shown = render(&record, Format::Text, &Style::PLAIN);
    assert!(
        shown
            .lines()
            .any(|l| l.split_whitespace().eq(["max", "n/a"])),
        "{shown}"
    );
}

#[test]
fn bounds_are_marked_and_cut() {
    let shown = running("failed_abandoned");
    assert!(shown.contains("max ≥ 93.9 s n/a"), "{shown}");
    assert!(
        shown.contains("99.9 % 398 ms"),
        "an exact field has no mark: {shown}"
    );
    assert!(shown.contains("mean ≥ 27.2 ms ± 930 ms"), "{shown}");
    assert!(
        shown.contains("≥ 93.9 s: read 4 KiB at LBA 7,340,032"),
        "{shown}"
    );
    assert!(shown.contains("12,033 submitted = 11,230 completed + 800 failed + 3 abandoned"));
}

#[test]
fn the_state_comes_first() {
    for (name, word) in [
        ("interrupted_partial", "INTERRUPTED"),
        ("failed_abandoned", "FAILED"),
        ("refused", "REFUSED"),
    ] {
        assert!(text(name, 80).starts_with(&format!("{word}: ")), "{name}");
    }
    assert!(!text("normal_read", 80).contains("FINISHED"));
}

#[test]
fn device_strings_cannot_steer_the_terminal() {
    for color in [false, true] {
        let style = Style { color, width: 80 };
        let shown = render(&load("hostile_strings"), Format::Text, &style);
        let ours = ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[33m", "\x1b[1;31m"];
        let rest = ours.iter().fold(shown, |text, sgr| text.replace(sgr, ""));
        let odd = rest
            .chars()
            .find(|c| c.is_control() && *c != '\n' || *c == '\u{202e}');
        assert_eq!(odd, None, "{rest}");
        assert!(
            !rest.lines().any(|line| line.starts_with("error:")),
            "a forged line"
        );
    }
}

#[test]
fn colour_only_where_told() {
    let record = load("failed_abandoned");
    assert!(!render(&record, Format::Text, &Style::PLAIN).contains('\x1b'));
    let style = Style {
        color: true,
        width: 80,
    };
    let colored = render(&record, Format::Text, &style);
    assert!(colored.starts_with("\x1b[1;31mFAILED"));
}

/// What the first of many steps was measured with is not said of all.
#[test]
fn a_table_of_steps_is_headed_by_what_all_share() {
    let mut record = load("normal_read");
    let step = record.steps[0].clone();
    record.steps = (0..9)
        .map(|number| {
            let mut step = step.clone();
            step.name = format!("step {number}");
            step
        })
        .collect();
    let shown = render(&record, Format::Text, &Style::PLAIN);
    let window = |text: &str| text.lines().any(|line| line.starts_with("window "));
    assert!(window(&shown), "{shown}");
    let verdict = format!("{}: all 9 steps", step.verdict.kind.words());
    assert!(shown.contains(&verdict), "{shown}");
    record.steps[4].window_s = 0.5;
    record.steps[8].verdict.kind = lanemark::record::VerdictKind::HostBound;
    let shown = render(&record, Format::Text, &Style::PLAIN);
    assert!(!window(&shown), "{shown}");
    assert!(shown.contains("window, from step to step"), "{shown}");
    assert!(
        shown.lines().any(|line| line.starts_with("backend ")),
        "{shown}"
    );
    assert!(shown.contains(": 1 of 9 steps: step 8"), "{shown}");
    assert!(
        shown.contains(": 8 of 9 steps: step 0, step 1, step 2, step 3, ..."),
        "{shown}"
    );
}
