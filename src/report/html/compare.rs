//! A comparison: the conclusion first, then both paths, bars, differences, curves, and every figure.

use super::super::said::{legend, said};
use super::super::{figures as show, printable};
use super::chart::{self, Axis, Bar, Chart, Group, Interval, Quantity, Series};
use super::path::{self, PathView};
use super::step_charts::percentile_points;
use super::table::{Cell, Row, Table, heads};
use crate::record::{
    Against, ComparedMetric, ComparedStep, Comparison, ComparisonVerdict, Estimate, Outcome,
};

/// One comparison.
pub struct ComparisonView {
    pub name: String,
    pub error: Option<String>,
    pub conclusions: Vec<String>,
    pub sides: Vec<(String, String)>,
    pub paths: Vec<PathView>,
    pub charts: Vec<String>,
    pub tables: Vec<Table>,
    pub legend: Vec<String>,
    pub warnings: Vec<(String, String)>,
    pub method: String,
}

pub fn view(comparison: &Comparison) -> ComparisonView {
    let sides = comparison
        .sides
        .iter()
        .map(|side| {
            (
                side.label.clone(),
                printable(&format!("{} ({} runs)", side.name, side.runs_count)),
            )
        })
        .collect();
    let design = &comparison.design;
    ComparisonView {
        name: printable(&names(comparison).join(" against ")),
        error: error(comparison),
        conclusions: comparison
            .conclusions
            .iter()
            .map(|text| printable(text))
            .collect(),
        sides,
        paths: paths(comparison),
        charts: charts(comparison),
        tables: [
            figures(comparison),
            indices(comparison),
            saturations(comparison),
            aggregates(comparison),
            confounders(comparison),
        ]
        .into_iter()
        .flatten()
        .collect(),
        legend: legend(comparison)
            .iter()
            .map(|line| printable(line))
            .collect(),
        warnings: comparison
            .warnings
            .iter()
            .map(|warning| (printable(&warning.text), printable(&warning.next_step)))
            .collect(),
        method: printable(&format!(
            "{} {} of {} rounds, {}; ended by {}; sides within {} % count as equal. {}",
            design.mode,
            design.rounds_done_count,
            design.rounds_asked_count,
            design.order,
            design.ended_by,
            show::significant(design.equal_within_pct, 3),
            design.method
        )),
    }
}

fn names(comparison: &Comparison) -> Vec<String> {
    let sides = comparison.sides.iter();
    sides.map(|side| side.name.clone()).collect()
}

fn error(comparison: &Comparison) -> Option<String> {
    let text = comparison.error.as_ref().map(|error| error.text.clone());
    match comparison.status {
        Outcome::Finished => text,
        Outcome::Interrupted => Some("interrupted: the finished rounds are shown".to_owned()),
        _ => Some(text.unwrap_or_else(|| "it did not finish".to_owned())),
    }
    .map(|text| printable(&text))
}

/// The path of each side, as its first step found it.
fn paths(comparison: &Comparison) -> Vec<PathView> {
    let Some(step) = comparison.steps.first() else {
        return Vec::new();
    };
    let mut out = Vec::new();
    for side in &step.sides {
        let label = label(comparison, side.side_index as usize);
        for mut view in path::of_step(&side.first) {
            view.heading = format!("{label}: {}", view.heading);
            out.push(view);
        }
    }
    out
}

fn label(comparison: &Comparison, side: usize) -> &str {
    comparison.sides.get(side).map_or("?", |side| &side.label)
}

fn quantity(metric: &ComparedMetric) -> Quantity {
    match metric.unit.as_str() {
        "iops" => Quantity::Iops,
        "bytes_per_s" => Quantity::Rate,
        _ => Quantity::Time,
    }
}

fn metric_name(metric: &ComparedMetric) -> String {
    format!("{} {}", metric.direction, metric.metric)
        .trim()
        .replace('_', ".")
}

fn charts(comparison: &Comparison) -> Vec<String> {
    let mut out: Vec<String> = ["iops", "bandwidth", "p50", "p99"]
        .iter()
        .filter_map(|metric| paired(comparison, metric))
        .collect();
    for side in 1..comparison.sides.len() {
        out.extend(differences(comparison, side));
    }
    out.extend(
        comparison
            .saturations
            .iter()
            .filter_map(|found| depth_curve(comparison, found)),
    );
    out.extend(
        comparison
            .steps
            .iter()
            .filter_map(|step| percentiles(comparison, step)),
    );
    out
}

/// Bars of all sides for one metric, a group for each step and direction.
fn paired(comparison: &Comparison, metric: &str) -> Option<String> {
    let mut groups = Vec::new();
    let mut unit = Quantity::Iops;
    for step in &comparison.steps {
        for found in step.metrics.iter().filter(|found| found.metric == metric) {
            unit = quantity(found);
            let bars = found.means.iter().enumerate().map(|(side, mean)| Bar {
                side,
                value: *mean,
                interval: None,
                rounds: rounds(found, side),
            });
            groups.push(Group {
                name: format!("{} {}", step.name, found.direction),
                bars: bars.collect(),
            });
        }
    }
    // More groups than this cannot be named under their bars; the table has them all.
    groups.truncate(8);
    let title = format!("{metric}, side by side (dots are rounds)");
    chart::bars(&title, unit, &names(comparison), &groups)
}

fn rounds(metric: &ComparedMetric, side: usize) -> Vec<f64> {
    let rounds = metric.rounds.get(side).into_iter().flatten();
    rounds.flatten().copied().collect()
}

fn differences(comparison: &Comparison, side: usize) -> Option<String> {
    let mut rows = Vec::new();
    for step in &comparison.steps {
        for metric in &step.metrics {
            let found = metric
                .against
                .iter()
                .find(|a| a.side_index as usize == side);
            let Some((found, ratio)) = found.and_then(|a| Some((a, a.ratio.value?))) else {
                continue;
            };
            let pct = |ratio: f64| (ratio - 1.0) * 100.0;
            rows.push(Interval {
                name: format!("{} {}", step.name, metric_name(metric)),
                value_pct: pct(ratio),
                low_pct: found.ratio.low.map(pct),
                high_pct: found.ratio.high.map(pct),
                said: said(found.verdict, comparison, side),
                tone: match found.verdict {
                    ComparisonVerdict::BBetter => 1,
                    ComparisonVerdict::ABetter => 2,
                    _ => 0,
                },
            });
        }
    }
    rows.truncate(40);
    let (a, b) = (label(comparison, 0), label(comparison, side));
    chart::forest(
        &format!("{b} against {a}, with 95 % intervals"),
        &format!("difference in % of {a}"),
        &rows,
    )
}

#[allow(clippy::cast_precision_loss)]
fn depth_curve(comparison: &Comparison, found: &crate::record::Saturation) -> Option<String> {
    let series = found.sides.iter().map(|side| Series {
        name: names(comparison)
            .get(side.side_index as usize)
            .cloned()
            .unwrap_or_default(),
        points: found
            .depths_count
            .iter()
            .map(|depth| *depth as f64)
            .zip(side.at_depth_iops.iter().copied())
            .collect(),
        marked: true,
    });
    Chart {
        title: format!("IOPS over depth: {}", found.workload),
        x: Axis::log("depth", Quantity::Count, 2.0),
        y: Axis::linear("IOPS", Quantity::Iops),
        series: series.collect(),
        levels: Vec::new(),
        window: None,
    }
    .render()
}

fn percentiles(comparison: &Comparison, step: &ComparedStep) -> Option<String> {
    let mut series = Vec::new();
    for side in &step.sides {
        for found in &side.histograms {
            let max_ns = found.histogram.last().map_or(0, |bucket| bucket.0);
            series.push(Series {
                name: format!(
                    "{} {}",
                    label(comparison, side.side_index as usize),
                    found.direction
                ),
                points: percentile_points(&found.histogram, max_ns),
                marked: false,
            });
        }
    }
    Chart {
        title: format!("Latency by percentile: {}", step.name),
        x: Axis::log(
            "share of I/Os that were at most so slow",
            Quantity::Nines,
            10.0,
        ),
        y: Axis::log("latency", Quantity::Time, 10.0),
        series,
        levels: Vec::new(),
        window: None,
    }
    .render()
}

fn row(cells: Vec<Cell>) -> Row {
    Row {
        step: 0,
        direction: "",
        cells,
    }
}

fn table(caption: &str, names: &[(&str, bool)], rows: Vec<Row>) -> Option<Table> {
    (!rows.is_empty()).then(|| Table {
        caption: caption.to_owned(),
        heads: heads(names),
        rows,
    })
}

fn ends(estimate: Estimate, text: impl Fn(f64) -> String) -> String {
    let value = estimate
        .value
        .map_or_else(|| show::NOT_AVAILABLE.to_owned(), &text);
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => format!("{value} ({} to {})", text(low), text(high)),
        _ => value,
    }
}

fn ratio(value: f64) -> String {
    show::significant(value, 4)
}

fn figures(comparison: &Comparison) -> Option<Table> {
    let mut rows = Vec::new();
    for step in &comparison.steps {
        for metric in &step.metrics {
            for against in &metric.against {
                rows.push(figures_row(comparison, step, metric, against));
            }
        }
    }
    let names = [
        ("step", true),
        ("metric", true),
        ("sides", true),
        ("baseline", false),
        ("other", false),
        ("difference (95 %)", false),
        ("ratio (95 %)", false),
        ("verdict", true),
    ];
    table("Every metric", &names, rows)
}

fn figures_row(
    comparison: &Comparison,
    step: &ComparedStep,
    metric: &ComparedMetric,
    against: &Against,
) -> Row {
    let unit = quantity(metric);
    let side = against.side_index as usize;
    let mean = |side: usize| {
        let mean = metric.means.get(side).copied().flatten();
        mean.map_or_else(|| show::NOT_AVAILABLE.to_owned(), |mean| unit.text(mean))
    };
    let mut verdict = said(against.verdict, comparison, side);
    if !against.why.is_empty() {
        verdict += &format!(": {}", against.why);
    }
    row(vec![
        Cell::text(&step.name),
        Cell::text(&metric_name(metric)),
        Cell::text(&format!(
            "{}, {}",
            label(comparison, 0),
            label(comparison, side)
        )),
        Cell::shown(mean(0)),
        Cell::shown(mean(side)),
        Cell::shown(ends(against.difference, |value| unit.text(value))),
        Cell::shown(ends(against.ratio, ratio)),
        Cell::text(&verdict),
    ])
}

fn indices(comparison: &Comparison) -> Option<Table> {
    let rows = comparison.indices.iter().flat_map(|index| {
        index.against.iter().map(|against| {
            row(vec![
                Cell::text(&index.metric),
                Cell::text(label(comparison, against.side_index as usize)),
                Cell::shown(index.steps_count.to_string()),
                Cell::shown(ends(against.ratio, ratio)),
                Cell::text(&said(
                    against.verdict,
                    comparison,
                    against.side_index as usize,
                )),
            ])
        })
    });
    let names = [
        ("metric", true),
        ("side", true),
        ("steps", false),
        ("geometric mean of ratios (95 %)", false),
        ("verdict", true),
    ];
    table("Over all steps", &names, rows.collect())
}

fn saturations(comparison: &Comparison) -> Option<Table> {
    let rows = comparison.saturations.iter().flat_map(|found| {
        found.sides.iter().map(|side| {
            let depth = side.saturation_depth_count.map(|depth| depth.to_string());
            row(vec![
                Cell::text(&found.workload),
                Cell::text(label(comparison, side.side_index as usize)),
                Cell::shown(depth.unwrap_or_else(|| "still gains at the last depth".to_owned())),
                Cell::text(if side.falls_beyond { "yes" } else { "no" }),
            ])
        })
    });
    let names = [
        ("workload", true),
        ("side", true),
        ("saturates at depth", false),
        ("falls beyond it", true),
    ];
    table("Saturation", &names, rows.collect())
}

fn aggregates(comparison: &Comparison) -> Option<Table> {
    let rows = comparison.aggregates.iter().map(|found| {
        let members = found.members.iter().zip(&found.member_iops);
        let members: Vec<String> = members
            .map(|(name, iops)| format!("{name} {}", show::iops(*iops)))
            .collect();
        let efficiency = found.efficiency.map(|found| ends(found.ratio, ratio));
        row(vec![
            Cell::text(&found.step),
            Cell::text(label(comparison, found.side_index as usize)),
            Cell::text(&members.join(", ")),
            Cell::shown(show::iops(found.sum_iops)),
            Cell::shown(ratio(found.fairness_ratio)),
            Cell::shown(efficiency.unwrap_or_else(|| show::NOT_AVAILABLE.to_owned())),
        ])
    });
    let names = [
        ("step", true),
        ("side", true),
        ("members, IOPS", true),
        ("sum, IOPS", false),
        ("fairness", false),
        ("efficiency of the volume", false),
    ];
    table("Members", &names, rows.collect())
}

fn confounders(comparison: &Comparison) -> Option<Table> {
    let rows = comparison.confounders.iter().map(|found| {
        let mut cells = vec![Cell::text(&found.name)];
        cells.extend(
            found
                .values
                .iter()
                .map(|value| Cell::text(value.as_deref().unwrap_or(show::NOT_AVAILABLE))),
        );
        cells.push(Cell::text(if found.forbids { "yes" } else { "no" }));
        row(cells)
    });
    let mut names = vec![("what differs", true)];
    names.extend(
        comparison
            .sides
            .iter()
            .map(|side| (side.label.as_str(), true)),
    );
    names.push(("makes figures incomparable", true));
    table(
        "Differences beside what is compared",
        &names,
        rows.collect(),
    )
}
