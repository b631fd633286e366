//! One moment of a run as one line that never wraps. Pure: a snapshot, the seconds before it, a width.

use crate::report::figures::{self as show, GB_BYTES};
use crate::report::printable;
use crate::session::{Phase, Snapshot};
use std::collections::VecDeque;

/// What the terminal on stderr can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineStyle {
    /// Whether it understands ANSI colours.
    pub color: bool,
    /// Its width in columns.
    pub width: usize,
    /// Whether it shows UTF-8; ASCII otherwise.
    pub unicode: bool,
}

/// Longest spark line, in intervals.
const SPARK_MOST: usize = 30;

/// Shortest spark line worth drawing.
const SPARK_LEAST: usize = 4;

/// Columns of a step's name.
const NAME_COLUMNS: usize = 20;

/// IOPS of the last intervals.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History(VecDeque<f64>);

impl History {
    /// Adds the latest interval.
    pub fn push(&mut self, iops: f64) {
        if self.0.len() == SPARK_MOST {
            self.0.pop_front();
        }
        self.0.push_back(iops);
    }

    /// Starts anew, for the next step.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The last `width` intervals as bars from 0 to the highest of them. The lowest bar stands for 0
    /// alone, so that a stall is not mistaken for a slow second.
    fn spark(&self, width: usize, unicode: bool) -> String {
        let bars = if unicode {
            "▁▂▃▄▅▆▇█"
        } else {
            "_.:-=+*#"
        };
        let bars: Vec<char> = bars.chars().collect();
        let shown = self.0.iter().skip(self.0.len().saturating_sub(width));
        let top = shown.clone().copied().fold(0.0, f64::max);
        shown.map(|iops| bars[level(*iops, top)]).collect()
    }
}

/// 0 for nothing, 1 to 7 for shares of `top`.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn level(iops: f64, top: f64) -> usize {
    if iops > 0.0 && top > 0.0 {
        // The share is within 0 to 1, and a float that is not turns into one that is.
        ((iops / top * 7.0).ceil() as usize).clamp(1, 7)
    } else {
        0
    }
}

/// A part of the line. Where not all fit, those of the highest rank go first.
struct Field {
    rank: u8,
    text: String,
    sgr: &'static str,
}

/// The line, at most `style.width - 1` columns wide: a full line would make some terminals wrap.
#[must_use]
pub fn line(now: &Snapshot, left_s: Option<f64>, history: &History, style: LineStyle) -> String {
    let room = style.width.saturating_sub(1);
    let mut fields = fields(now, left_s);
    if !style.unicode {
        for field in &mut fields {
            field.text = ascii(&field.text);
        }
    }
    let (mut kept, used) = fitting(fields, room);
    let left = room.saturating_sub(used + 1);
    if left >= SPARK_LEAST && shows_rates(now.phase) {
        let text = history.spark(left.min(SPARK_MOST), style.unicode);
        if !text.is_empty() {
            let (rank, sgr) = (0, "36");
            kept.push(Field { rank, text, sgr });
        }
    }
    let shown = kept.iter().map(|field| match field.sgr {
        sgr if style.color && !sgr.is_empty() => format!("\x1b[{sgr}m{}\x1b[0m", field.text),
        _ => field.text.clone(),
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// The fields that fit into `room` columns, in their order, and the columns they take.
fn fitting(fields: Vec<Field>, room: usize) -> (Vec<Field>, usize) {
    let mut by_rank: Vec<_> = fields
        .iter()
        .map(|field| (field.rank, columns(&field.text)))
        .collect();
    by_rank.sort_by_key(|(rank, _)| *rank);
    let (mut used, mut last) = (0, None);
    for (rank, width) in by_rank {
        let with = if used == 0 { width } else { used + 1 + width };
        if with > room {
            break;
        }
        (used, last) = (with, Some(rank));
    }
    let Some(last) = last else {
        // Not even the first one fits: what does of it.
        let mut first: Vec<_> = fields.into_iter().filter(|field| field.rank == 0).collect();
        for field in &mut first {
            field.text = shortened(&field.text, room);
        }
        return (first, room);
    };
    let kept = fields.into_iter().filter(|field| field.rank <= last);
    (kept.collect(), used)
}

/// Rates and latency say something only while the load is on.
const fn shows_rates(phase: Phase) -> bool {
    matches!(phase, Phase::Ramp | Phase::Measure)
}

/// Every field, in the order they are shown; ranks differ.
fn fields(now: &Snapshot, left_s: Option<f64>) -> Vec<Field> {
    let field = |rank, text| Field {
        rank,
        text,
        sgr: "",
    };
    let mut fields = Vec::new();
    if now.steps_count > 1 {
        let place = format!("{}/{}", now.step_number, now.steps_count);
        fields.push(field(2, place));
        fields.push(field(5, shortened(&printable(&now.step), NAME_COLUMNS)));
    }
    fields.push(Field {
        rank: 0,
        text: format!("{} {}", phase(now.phase), clock(now)),
        sgr: "1",
    });
    if let Some(left_s) = left_s {
        fields.push(field(4, format!("ETA {}", eta(left_s))));
    }
    if shows_rates(now.phase) {
        // What is not known yet takes no room from what is.
        let rate = |rate| show::rate(rate, GB_BYTES);
        let known = [
            (
                1,
                now.iops
                    .map(|iops| format!("{:>5} IOPS", show::compact(iops))),
            ),
            (
                7,
                now.bytes_per_s
                    .map(|bytes| format!("{:>5} GB/s", rate(bytes))),
            ),
            (8, now.p50_ns.map(|ns| format!("p50 {:>6}", time(ns)))),
            (6, now.p99_ns.map(|ns| format!("p99 {:>6}", time(ns)))),
        ];
        let known = known.into_iter();
        fields.extend(known.filter_map(|(rank, text)| Some(field(rank, text?))));
    }
    if now.phase != Phase::Setup {
        fields.push(field(9, format!("{} in flight", now.in_flight_count)));
    }
    fields.push(match now.errors_count {
        0 => field(10, "0 errors".to_owned()),
        count => Field {
            rank: 3,
            text: format!("{} errors", show::count(count)),
            sgr: "1;31",
        },
    });
    fields
}

pub(in crate::cli) const fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Setup => "setup",
        Phase::Ramp => "ramp",
        Phase::Measure => "measure",
        Phase::Drain => "drain",
        Phase::CoolDown => "cool-down",
    }
}

/// `45s`, `3m20s`, `2h05m`.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn eta(left_s: f64) -> String {
    // A float that is not below 0 turns into a whole number.
    let left = left_s.max(0.0).ceil() as u64;
    match left {
        0..=99 => format!("{left}s"),
        100..=5999 => format!("{}m{:02}s", left / 60, left % 60),
        _ => format!("{}h{:02}m", left / 3600, left % 3600 / 60),
    }
}

/// `12/60s`, or what has passed where a count ends the step. Under 10 s in tenths.
fn clock(now: &Snapshot) -> String {
    let places = usize::from(now.total_s.unwrap_or(now.elapsed_s) < 10.0);
    // Time that has passed is cut, not rounded: the last second is over when it is over.
    let scale = if places == 1 { 10.0 } else { 1.0 };
    let elapsed = (now.elapsed_s * scale).floor() / scale;
    match now.total_s {
        Some(total) => {
            let total = format!("{total:.places$}");
            format!("{elapsed:>width$.places$}/{total}s", width = total.len())
        }
        None => format!("{elapsed:.places$}s"),
    }
}

fn time(ns: u64) -> String {
    show::time_ns(ns).replace(' ', "")
}

fn ascii(text: &str) -> String {
    let text = text.replace('µ', "u");
    let plain = |c: char| if c.is_ascii() { c } else { '?' };
    text.chars().map(plain).collect()
}

/// Columns of a text, never too few: whatever is not ASCII or ours is taken as wide.
fn columns(text: &str) -> usize {
    let width = |c: char| if c.is_ascii() || c == 'µ' { 1 } else { 2 };
    text.chars().map(width).sum()
}

fn shortened(text: &str, most: usize) -> String {
    if columns(text) <= most {
        return text.to_owned();
    }
    let mut out = String::new();
    for c in text.chars() {
        if columns(&out) + columns(c.encode_utf8(&mut [0; 4])) + 2 > most {
            break;
        }
        out.push(c);
    }
    out + ".."
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn snapshot() -> Snapshot {
        Snapshot {
            step: "randread".to_owned(),
            step_number: 1,
            steps_count: 1,
            phase: Phase::Measure,
            elapsed_s: 12.04,
            total_s: Some(62.0),
            intervals_count: 12,
            iops: Some(142_831.4),
            bytes_per_s: Some(585_035_776.0),
            p50_ns: Some(221_183),
            p99_ns: Some(1_021_000),
            in_flight_count: 32,
            errors_count: 0,
        }
    }

    fn history() -> History {
        let mut history = History::default();
        for iops in [0.0, 1.0, 2e4, 4e4, 6e4, 8e4, 1e5, 1.2e5, 1.4e5, 0.0, 7e4] {
            history.push(iops);
        }
        history
    }

    fn style(width: usize) -> LineStyle {
        LineStyle {
            color: false,
            width,
            unicode: true,
        }
    }

    #[test]
    fn at_several_widths() {
        let mut shown = String::new();
        let mut second = snapshot();
        (second.step_number, second.steps_count) = (2, 12);
        second.step = "four readers, 64 KiB each".to_owned();
        second.errors_count = 1_204;
        for (title, now) in [("one step", snapshot()), ("second of many, errors", second)] {
            for width in [120, 80, 60, 40, 24] {
                let line = line(&now, None, &history(), style(width));
                shown += &format!("{title} at {width}\n{line}|\n");
            }
        }
        insta::assert_snapshot!("widths", shown);
    }

    /// What went wrong and how long it still takes are wanted before percentiles, and what is not known yet takes no
    /// room from what is.
    #[test]
    fn errors_and_the_time_left_stay_at_80_columns() {
        let mut now = snapshot();
        (now.step_number, now.steps_count) = (2, 12);
        now.errors_count = 1_204;
        let shown = line(&now, Some(115.4), &history(), style(80));
        for field in ["2/12", "randread", "143k IOPS", "1,204 errors", "ETA 1m56s"] {
            assert!(shown.contains(field), "{field}: {shown}");
        }
        (now.iops, now.bytes_per_s, now.p50_ns, now.p99_ns) = (None, None, None, None);
        now.errors_count = 0;
        let shown = line(&now, Some(115.4), &history(), style(80));
        assert!(!shown.contains("n/a"), "{shown}");
        for field in ["2/12", "randread", "32 in flight", "0 errors", "ETA 1m56s"] {
            assert!(shown.contains(field), "{field}: {shown}");
        }
    }

    #[test]
    fn phases_show_what_they_have() {
        let mut shown = String::new();
        for phase in [Phase::Setup, Phase::Ramp, Phase::Measure, Phase::Drain] {
            let mut now = snapshot();
            now.phase = phase;
            shown += &format!("{}\n", line(&now, None, &history(), style(80)));
            now.total_s = None;
            now.elapsed_s = 3.27;
            (now.p50_ns, now.p99_ns) = (None, None);
            (now.iops, now.bytes_per_s) = (Some(0.0), Some(0.0));
            shown += &format!("{}\n", line(&now, None, &history(), style(80)));
            (now.iops, now.bytes_per_s) = (None, None);
            shown += &format!("{}\n", line(&now, None, &History::default(), style(80)));
        }
        insta::assert_snapshot!("phases", shown);
    }

    #[test]
    fn ascii_where_there_is_no_utf8() {
        let ascii = LineStyle {
            unicode: false,
            ..style(100)
        };
        let shown = line(&snapshot(), None, &history(), ascii);
        assert!(shown.is_ascii(), "{shown}");
        assert!(shown.contains(" 221us"), "{shown}");
        assert!(shown.ends_with("_..:-=+*#_="), "{shown}");
    }

    #[test]
    fn only_nothing_gets_the_lowest_bar() {
        let mut history = History::default();
        for iops in [0.0, 1.0, 1e6, 5e5] {
            history.push(iops);
        }
        assert_eq!(history.spark(10, true), "▁▂█▅");
        assert_eq!(history.spark(2, true), "█▅", "the latest are shown");
        history.clear();
        history.push(0.0);
        assert_eq!(history.spark(10, true), "▁");
    }

    #[test]
    fn colour_changes_nothing_else() {
        let mut now = snapshot();
        now.errors_count = 3;
        for width in [40, 80] {
            let color = LineStyle {
                color: true,
                ..style(width)
            };
            let colored = line(&now, None, &history(), color);
            assert!(colored.contains("\x1b[1;31m3 errors\x1b[0m"), "{colored}");
            let codes = ["\x1b[0m", "\x1b[1m", "\x1b[36m", "\x1b[1;31m"];
            let bare = codes
                .iter()
                .fold(colored, |text, sgr| text.replace(sgr, ""));
            assert_eq!(bare, line(&now, None, &history(), style(width)));
        }
    }

    proptest! {
        /// Whatever happens, a line does not wrap, is one line and steers nothing.
        #[test]
        fn never_as_wide_as_the_terminal(
            step in "\\PC{0,40}|\\p{Any}{0,40}",
            (steps_count, width) in (1_usize..2000, 20_usize..200),
            (elapsed_s, total_s) in (0.0..1e6_f64, proptest::option::of(0.0..1e7_f64)),
            rates in proptest::option::of((0.0..1e10_f64, 0.0..1e13_f64)),
            (p50_ns, p99_ns) in (any::<Option<u64>>(), any::<Option<u64>>()),
            (in_flight_count, errors_count) in (any::<u64>(), any::<u64>()),
            (unicode, phase) in (any::<bool>(), 0..4),
        ) {
            let phases = [Phase::Setup, Phase::Ramp, Phase::Measure, Phase::Drain];
            let now = Snapshot {
                step, step_number: steps_count, steps_count,
                phase: phases[usize::try_from(phase).unwrap_or(0)],
                intervals_count: 1,
                iops: rates.map(|(iops, _)| iops),
                bytes_per_s: rates.map(|(_, bytes)| bytes),
                elapsed_s, total_s, p50_ns, p99_ns, in_flight_count, errors_count,
            };
            let shown = line(&now, None, &history(), LineStyle { color: false, width, unicode });
            // Bars are one column wide; all else that is not ASCII is taken as two.
            let bars = shown.chars().filter(|c| ('▁'..='█').contains(c)).count();
            prop_assert!(columns(&shown) - bars < width, "{} columns: {shown}", columns(&shown));
            prop_assert!(!shown.chars().any(char::is_control));
            prop_assert!(!shown.is_empty());
        }
    }
}
