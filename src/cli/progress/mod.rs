//! Live progress on stderr: a line that redraws itself on a terminal, plain lines or JSON elsewhere.
//!
//! Called from the collector's thread, about once a second; reactors know nothing of it. stderr may be
//! closed or full: the run goes on without progress then.

mod event;
pub(in crate::cli) mod line;
pub(in crate::cli) mod terminal;

pub use line::{History, LineStyle, line};

use crate::record::{Direction, Outcome, Step};
use crate::report::figures::{self as show, GB_BYTES};
use crate::report::printable;
use crate::session::{Observer, Phase, Silent, Snapshot};
use event::{Event, json};
use std::io::{self, Write};

/// What the user wants to see (`--progress`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// A redrawn line on a terminal; elsewhere a plain line at every change and every 10 s.
    #[default]
    Auto,
    /// A plain line a second.
    Line,
    /// A JSON object a second, one a line.
    Json,
    /// Nothing.
    None,
}

impl Mode {
    /// Every mode, in the order of the help text.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Line, Self::Json, Self::None];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Line => "line",
            Self::Json => "json",
            Self::None => "none",
        }
    }
}

/// How progress is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Form {
    /// One line, drawn over itself.
    Redraw,
    /// Plain lines, at least this many seconds apart unless the phase changes.
    Lines {
        /// Seconds between two lines of one phase.
        every_s: f64,
    },
    /// JSON objects.
    Json,
}

/// Seconds between two plain lines of one phase where nobody asked for lines.
const QUIET_S: f64 = 10.0;

/// Columns of plain lines off a terminal.
const PLAIN_COLUMNS: usize = 120;

/// An observer that draws on stderr, in the way that suits what stderr is.
#[must_use]
pub fn on_stderr(mode: Mode) -> Box<dyn Observer> {
    let form = match mode {
        Mode::None => return Box::new(Silent),
        Mode::Json => Form::Json,
        Mode::Line => Form::Lines { every_s: 0.0 },
        Mode::Auto if terminal::stderr_redraws() => Form::Redraw,
        Mode::Auto => Form::Lines { every_s: QUIET_S },
    };
    let style = LineStyle {
        color: form == Form::Redraw && terminal::is_colorful(&io::stderr()),
        width: PLAIN_COLUMNS,
        unicode: terminal::is_utf8(),
    };
    let progress = Progress::new(io::stderr(), form, style);
    Box::new(progress.measured_by(terminal::stderr_width))
}

/// Follows a run and writes how it goes to `out`. Errors of `out` end the progress, not the run.
pub struct Progress<W: Write> {
    out: W,
    form: Form,
    style: LineStyle,
    width: fn() -> Option<usize>,
    history: History,
    steps_s: Vec<f64>,
    last: Option<Last>,
    drawn: bool,
    broken: bool,
}

/// What was told last.
struct Last {
    phase: Phase,
    step_number: usize,
    steps_count: usize,
    intervals_count: usize,
    told_s: f64,
}

impl<W: Write> Progress<W> {
    /// Progress on `out`, which is as `style` says.
    pub fn new(out: W, form: Form, style: LineStyle) -> Self {
        Self {
            out,
            form,
            style,
            width: || None,
            history: History::default(),
            steps_s: Vec::new(),
            last: None,
            drawn: false,
            broken: false,
        }
    }

    /// Asks `width` for the columns at every line: windows are resized while a run goes on.
    #[must_use]
    pub fn measured_by(mut self, width: fn() -> Option<usize>) -> Self {
        self.width = width;
        self
    }

    /// One write for each line, so that no half of one is seen.
    fn write(&mut self, text: &str) {
        if self.broken || text.is_empty() {
            return;
        }
        let done = self
            .out
            .write_all(text.as_bytes())
            .and_then(|()| self.out.flush());
        self.broken = done.is_err();
    }

    /// Takes the redrawn line away.
    fn erase(&mut self) {
        if std::mem::take(&mut self.drawn) {
            self.write("\r\x1b[K");
        }
    }

    /// About how long the whole run still takes; absent for a single step, whose own time is shown.
    fn left_s(&self, now: &Snapshot) -> Option<f64> {
        if now.steps_count < 2 || self.steps_s.len() != now.steps_count {
            return None;
        }
        let (current, later) = self.steps_s[now.step_number.checked_sub(1)?..].split_first()?;
        // The estimate of a step holds its cooling down, which a snapshot's own time does not.
        let own_s = match now.phase {
            Phase::CoolDown => now.total_s.unwrap_or(0.0),
            _ => *current,
        };
        Some((own_s - now.elapsed_s).max(0.0) + later.iter().sum::<f64>())
    }

    fn is_due(&self, now: &Snapshot, every_s: f64) -> bool {
        self.last.as_ref().is_none_or(|last| {
            last.phase != now.phase
                || last.step_number != now.step_number
                || now.elapsed_s - last.told_s >= every_s
        })
    }

    fn current_style(&self) -> LineStyle {
        let width = (self.width)().unwrap_or(self.style.width);
        LineStyle {
            width,
            ..self.style
        }
    }
}

impl<W: Write + Send> Observer for Progress<W> {
    fn snapshot(&mut self, now: &Snapshot) {
        let known = self.last.as_ref().map_or(0, |last| last.intervals_count);
        if let Some(iops) = now.iops.filter(|_| now.intervals_count > known) {
            self.history.push(iops);
        }
        let text = match self.form {
            Form::Redraw => {
                self.drawn = true;
                let line = line(now, self.left_s(now), &self.history, self.current_style());
                format!("\r{line}\x1b[K")
            }
            Form::Lines { every_s } if self.is_due(now, every_s) => {
                let left_s = self.left_s(now);
                line(now, left_s, &History::default(), self.current_style()) + "\n"
            }
            Form::Lines { .. } => String::new(),
            Form::Json => json(&Event::of(now, self.left_s(now))),
        };
        let told_s = match &self.last {
            Some(last) if text.is_empty() => last.told_s,
            _ => now.elapsed_s,
        };
        self.last = Some(Last {
            phase: now.phase,
            step_number: now.step_number,
            steps_count: now.steps_count,
            intervals_count: now.intervals_count,
            told_s,
        });
        self.write(&text);
    }

    fn planned(&mut self, steps_s: &[f64]) {
        self.steps_s = steps_s.to_vec();
    }

    fn step_done(&mut self, step: &Step) {
        self.history.clear();
        self.erase();
        let last = self.last.take();
        let place = last.map_or((1, 1), |last| (last.step_number, last.steps_count));
        match self.form {
            Form::Json => {
                let status = step.status;
                let (step_number, steps_count) = place;
                let step = &step.name;
                self.write(&json(&Event::StepDone {
                    step,
                    step_number,
                    steps_count,
                    status,
                }));
            }
            // On a terminal the report of a single step follows at once.
            Form::Redraw if place.1 == 1 => {}
            Form::Redraw | Form::Lines { .. } => self.write(&done(step, place)),
        }
    }
}

impl<W: Write> Drop for Progress<W> {
    fn drop(&mut self) {
        self.erase();
    }
}

/// One line that says what a step came to. Flushes and probes move no bytes.
fn done(step: &Step, (number, count): (usize, usize)) -> String {
    let mut text = match count {
        1 => String::new(),
        _ => format!("{number}/{count} "),
    };
    text += &printable(&step.name);
    text += match step.status {
        Outcome::Finished => ": done",
        Outcome::Interrupted => ": interrupted",
        Outcome::Failed => ": failed",
        Outcome::Refused => ": refused",
    };
    let directions: [(&str, &Option<Direction>); 6] = [
        ("read", &step.read),
        ("write", &step.write),
        ("trim", &step.trim),
        ("writezeroes", &step.writezeroes),
        ("flush", &step.flush),
        ("probe", &step.probe),
    ];
    for (name, direction) in directions {
        if let Some(figures) = direction {
            text += &format!(", {name} {} IOPS", show::iops(figures.iops));
            if !matches!(name, "flush" | "probe") {
                text += &format!(" {} GB/s", show::rate(figures.bytes_per_s, GB_BYTES));
            }
        }
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const STYLE: LineStyle = LineStyle {
        color: false,
        width: 80,
        unicode: true,
    };

    fn snapshot(phase: Phase, elapsed_s: f64) -> Snapshot {
        Snapshot {
            step: "one".to_owned(),
            step_number: 1,
            steps_count: 2,
            phase,
            elapsed_s,
            total_s: Some(30.0),
            intervals_count: 1,
            iops: Some(1e5),
            bytes_per_s: Some(4.096e8),
            p50_ns: Some(80_000),
            p99_ns: None,
            in_flight_count: 8,
            errors_count: 0,
        }
    }

    fn step() -> Step {
        let text = include_str!("../../../tests/fixtures/records/normal_read.json");
        let record: crate::record::Record = serde_json::from_str(text).unwrap();
        record.steps[0].clone()
    }

    fn told(form: Form) -> String {
        let mut out = Vec::new();
        let mut progress = Progress::new(&mut out, form, STYLE);
        progress.snapshot(&snapshot(Phase::Setup, 0.0));
        for second in 1..=25 {
            progress.snapshot(&snapshot(Phase::Measure, f64::from(second)));
        }
        progress.snapshot(&snapshot(Phase::Drain, 25.1));
        progress.step_done(&step());
        drop(progress);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_redrawn_line_starts_over_and_is_taken_away_at_the_end() {
        let text = told(Form::Redraw);
        assert_eq!(
            text.matches('\n').count(),
            1,
            "only the step's own line stays"
        );
        assert_eq!(text.matches('\r').count(), 27 + 1);
        let end = "\r\x1b[K1/2 randread: done, read 142,831 IOPS 0.585 GB/s\n";
        assert!(text.ends_with(end), "{text:?}");
    }

    #[test]
    fn the_whole_run_has_its_own_time_left() {
        let mut progress = Progress::new(io::sink(), Form::Redraw, STYLE);
        let now = snapshot(Phase::Measure, 10.0);
        assert_eq!(progress.left_s(&now), None, "nothing is known yet");
        progress.planned(&[30.0, 95.0]);
        assert_eq!(progress.left_s(&now), Some(20.0 + 95.0));
        let mut last = snapshot(Phase::CoolDown, 3.0);
        (last.step_number, last.total_s) = (2, Some(5.0));
        assert_eq!(progress.left_s(&last), Some(2.0));
        let wide = LineStyle {
            width: 140,
            ..STYLE
        };
        let shown = line(&now, Some(115.4), &History::default(), wide);
        assert!(shown.contains("ETA 1m56s"), "{shown}");
    }

    /// Snapshots come more often than intervals end.
    #[test]
    fn an_interval_is_one_bar_however_often_it_is_told() {
        let mut progress = Progress::new(io::sink(), Form::Redraw, STYLE);
        let mut now = snapshot(Phase::Measure, 0.5);
        (now.intervals_count, now.iops) = (0, None);
        progress.snapshot(&now);
        assert_eq!(progress.history, History::default(), "nothing is known yet");
        for (intervals_count, iops) in [(1, 8.0), (1, 8.0), (2, 0.0), (2, 0.0), (3, 8.0)] {
            (now.intervals_count, now.iops) = (intervals_count, Some(iops));
            progress.snapshot(&now);
        }
        let mut wanted = History::default();
        for iops in [8.0, 0.0, 8.0] {
            wanted.push(iops);
        }
        assert_eq!(progress.history, wanted);
    }

    #[test]
    fn a_line_left_by_a_run_that_broke_off_is_taken_away() {
        let mut out = Vec::new();
        let mut progress = Progress::new(&mut out, Form::Redraw, STYLE);
        progress.snapshot(&snapshot(Phase::Measure, 1.0));
        drop(progress);
        assert!(out.ends_with(b"\x1b[K\r\x1b[K"));
    }

    #[test]
    fn plain_lines_come_at_every_change_and_every_ten_seconds() {
        let text = told(Form::Lines { every_s: QUIET_S });
        assert!(!text.contains(['\r', '\x1b']), "{text:?}");
        let starts: Vec<_> = text
            .lines()
            .map(|line| &line[..line.len().min(22)])
            .collect();
        let wanted = [
            "1/2 one setup  0/30s 0",
            "1/2 one measure  1/30s",
            "1/2 one measure 11/30s",
            "1/2 one measure 21/30s",
            "1/2 one drain 25/30s 8",
            "1/2 randread: done, re",
        ];
        assert_eq!(starts, wanted);
        assert_eq!(told(Form::Lines { every_s: 0.0 }).lines().count(), 28);
    }

    #[test]
    fn json_is_one_object_a_line() {
        let text = told(Form::Json);
        let events: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(events.len(), 28);
        assert_eq!(events[1]["event"], "progress");
        assert_eq!(events[1]["phase"], "measure");
        assert_eq!(events[1]["p50_ns"], 80_000);
        assert!(events[1]["p99_ns"].is_null());
        assert_eq!(events[27]["event"], "step_done");
        assert_eq!(events[27]["status"], "finished");
    }

    /// A window made narrower during the run is noticed at the next line.
    #[test]
    fn the_width_is_asked_for_every_time() {
        let mut out = Vec::new();
        let progress = Progress::new(&mut out, Form::Redraw, STYLE);
        let mut progress = progress.measured_by(|| Some(40));
        progress.snapshot(&snapshot(Phase::Measure, 1.0));
        drop(progress);
        let text = String::from_utf8(out).unwrap();
        let line = text.trim_start_matches('\r').split('\x1b').next().unwrap();
        assert!((25..40).contains(&line.chars().count()), "{line}");
    }

    #[test]
    fn a_closed_stderr_ends_the_progress_and_not_the_run() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let mut progress = Progress::new(writer, Form::Redraw, STYLE);
        for second in 0..3 {
            progress.snapshot(&snapshot(Phase::Measure, f64::from(second)));
        }
        assert!(progress.broken);
        progress.step_done(&step());
    }
}
