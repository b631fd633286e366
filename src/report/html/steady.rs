//! Steady state as a picture: every sample of a tracked series, the window that was judged, and the line fitted to it.

use super::super::text::quantity;
use super::super::{figures as show, html_escaped, printable};
use super::chart::{Axis, Chart, Level, Quantity, Series, Window};
use crate::record::{Record, Steady, SteadyCell};

/// Samples that are marked one by one.
const MARKS_MOST: usize = 60;

/// One judgement.
pub struct SteadyView {
    /// Attained or not, after how many samples.
    pub headline: String,
    /// The definition and its limits.
    pub limit: String,
    /// Whether it was attained.
    pub is_attained: bool,
    /// A picture for each tracked series, as HTML.
    pub charts: Vec<String>,
    /// The evidence, as HTML.
    pub table: String,
}

/// All of a record: over rounds, and over the seconds of steps.
pub fn views(record: &Record) -> Vec<SteadyView> {
    let seconds = record.steps.iter().filter_map(|step| step.steady.as_ref());
    record.steady.iter().chain(seconds).map(view).collect()
}

fn samples(steady: &Steady) -> &'static str {
    if steady.definition == "fio" {
        "seconds"
    } else {
        "rounds"
    }
}

fn view(steady: &Steady) -> SteadyView {
    let word = if steady.is_attained {
        "Steady state attained"
    } else {
        "Steady state NOT attained"
    };
    SteadyView {
        headline: format!("{word} after {} {}", steady.samples_count, samples(steady)),
        limit: printable(&format!(
            "by the definition of {}: {}",
            steady.definition, steady.limit
        )),
        is_attained: steady.is_attained,
        charts: steady
            .cells
            .iter()
            .filter_map(|cell| chart(steady, cell).render())
            .collect(),
        table: table(steady),
    }
}

/// Samples are counted from 1.
#[allow(clippy::cast_precision_loss)]
fn chart(steady: &Steady, cell: &SteadyCell) -> Chart {
    let place = |index: usize| index as f64 + 1.0;
    let measured = cell.values.iter().enumerate();
    let measured = measured.filter_map(|(index, value)| value.map(|value| (place(index), value)));
    let mut series = vec![Series {
        name: "measured".to_owned(),
        points: measured.collect(),
        marked: cell.values.len() <= MARKS_MOST,
    }];
    let window = cell.window_index.map(|index| {
        let last = index + steady.window_count.saturating_sub(1);
        (place(index), place(last))
    });
    if let (Some((from, to)), Some(first), Some(last)) = (window, cell.line_first, cell.line_last) {
        series.push(Series {
            name: "line fitted to the window".to_owned(),
            points: vec![(from, first), (to, last)],
            marked: false,
        });
    }
    let verdict = if cell.is_steady {
        "steady"
    } else {
        "not steady"
    };
    Chart {
        title: printable(&format!(
            "{} of {}: {verdict}",
            named(&steady.of),
            cell.step
        )),
        x: Axis::linear(samples(steady), Quantity::Count),
        y: Axis::linear(named(&steady.of), quantity_of(&steady.unit)),
        series,
        levels: cell
            .mean
            .map(|y| Level {
                y,
                name: "mean of the window".to_owned(),
            })
            .into_iter()
            .collect(),
        window: window.map(|(from, to)| Window {
            from: from - 0.5,
            to: to + 0.5,
            name: "window".to_owned(),
        }),
    }
}

fn named(of: &str) -> &str {
    match of {
        "iops" => "IOPS",
        "bytes_per_s" => "Bandwidth",
        "mean_ns" => "Mean latency",
        other => other,
    }
}

fn quantity_of(unit: &str) -> Quantity {
    match unit {
        "iops" => Quantity::Iops,
        "bytes_per_s" => Quantity::Rate,
        "ns" => Quantity::Time,
        _ => Quantity::Count,
    }
}

fn table(steady: &Steady) -> String {
    let rows: String = steady.cells.iter().map(|cell| row(steady, cell)).collect();
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Steady state\"><table><thead><tr>\
         <th scope=\"col\" class=\"text\">tracked</th><th scope=\"col\">mean of the window</th>\
         <th scope=\"col\">max − min</th><th scope=\"col\">rise of the line</th><th scope=\"col\" class=\"text\">steady</th>\
         </tr></thead><tbody>{rows}</tbody></table></div>"
    )
}

fn row(steady: &Steady, cell: &SteadyCell) -> String {
    let missing = || show::NOT_AVAILABLE.to_owned();
    let mean = cell
        .mean
        .map_or_else(missing, |mean| quantity(mean, &steady.unit));
    let pct = |value: Option<f64>| value.map_or_else(missing, |value| show::percent(value, 3));
    format!(
        "<tr><td class=\"text\">{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"text\">{}</td></tr>",
        html_escaped(&cell.step),
        html_escaped(&mean),
        pct(cell.range_pct),
        pct(cell.slope_pct),
        if cell.is_steady { "yes" } else { "no" }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(values: &[f64]) -> SteadyCell {
        let values = values.iter().copied().map(Some);
        SteadyCell::without_window("R0 <4k>", values.collect())
    }

    fn steady(cell: SteadyCell) -> Steady {
        Steady {
            definition: "snia-pts".to_owned(),
            of: "iops".to_owned(),
            unit: "iops".to_owned(),
            is_attained: cell.is_steady,
            samples_count: cell.values.len(),
            window_count: 3,
            limit: "limits".to_owned(),
            cells: vec![cell],
        }
    }

    #[test]
    fn the_window_and_its_line_stand_where_they_were_judged() {
        let attained = SteadyCell {
            window_index: Some(2),
            mean: Some(100.0),
            range_pct: Some(4.0),
            slope_pct: Some(-2.0),
            line_first: Some(101.0),
            line_last: Some(99.0),
            is_steady: true,
            ..cell(&[180.0, 140.0, 102.0, 100.0, 98.0])
        };
        let drawn = chart(&steady(attained.clone()), &attained);
        assert_eq!(drawn.series[0].points[0], (1.0, 180.0));
        assert_eq!(drawn.series[1].points, [(3.0, 101.0), (5.0, 99.0)]);
        let window = drawn.window.expect("a window");
        assert!((window.from - 2.5).abs() < 1e-9 && (window.to - 5.5).abs() < 1e-9);
        let shown = view(&steady(attained));
        assert_eq!(shown.headline, "Steady state attained after 5 rounds");
        assert!(
            shown.charts[0].contains("class=\"window\""),
            "{}",
            shown.charts[0]
        );
        assert!(shown.table.contains("R0 &lt;4k&gt;") && shown.table.contains("-2 %"));
    }

    #[test]
    fn too_few_rounds_have_no_window_and_no_line() {
        let early = cell(&[180.0, 140.0]);
        let drawn = chart(&steady(early.clone()), &early);
        assert_eq!((drawn.series.len(), drawn.window), (1, None));
        let shown = view(&steady(early));
        assert!(shown.headline.contains("NOT attained") && shown.table.contains("n/a"));
    }
}
