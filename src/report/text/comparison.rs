//! The terminal report of a comparison: the conclusions, what else differs, and every figure side by side.

use super::super::figures as show;
use super::super::said::{legend, said};
use super::super::{Style, printable};
use super::layout::{Columns, Page, Row, Tone};
use super::{details, headline};
use crate::record::{
    Against, Aggregate, ComparedIndex, ComparedMetric, ComparedStep, Comparison, Estimate, Outcome,
    Saturation,
};

/// The whole report. What did not finish says so first.
pub fn render(comparison: &Comparison, style: &Style) -> String {
    let mut page = Page::new(*style);
    if comparison.status != Outcome::Finished {
        let what = comparison.error.as_ref().map(|error| error.text.as_str());
        page.paragraph(&headline(comparison.status, what), Tone::Bad);
        page.gap();
    }
    for sentence in &comparison.conclusions {
        page.paragraph(&printable(sentence), Tone::Plain);
    }
    page.gap();
    for miss in &comparison.misses {
        page.paragraph(&format!("NOT MET: {}", printable(miss)), Tone::Bad);
    }
    page.gap();
    page.rows(&design(comparison));
    page.rows(&confounders(comparison));
    for step in &comparison.steps {
        page.gap();
        page.paragraph(&printable(&step.name), Tone::Heading);
        page.paragraph(&printable(&step.summary), Tone::Plain);
        tables(&mut page, comparison, step);
    }
    page.gap();
    for line in legend(comparison) {
        page.paragraph(&printable(&line), Tone::Quiet);
    }
    page.gap();
    page.rows(&indices(comparison));
    for curve in &comparison.saturations {
        page.gap();
        saturation(&mut page, comparison, curve);
    }
    page.gap();
    page.rows(&aggregates(comparison));
    page.rows(&doubts(comparison));
    page.gap();
    page.paragraph(&printable(&comparison.design.method), Tone::Quiet);
    page.finish()
}

fn design(comparison: &Comparison) -> Vec<Row> {
    let design = &comparison.design;
    let mut rows: Vec<Row> = (comparison.sides.iter())
        .map(|side| Row::new("side", printable(&format!("{}: {}", side.label, side.name))))
        .collect();
    let done = show::count(u64::from(design.rounds_done_count));
    let text = if design.mode == "live" {
        let why = match design.ended_by.as_str() {
            "precision" => "the intervals were narrow enough",
            "rounds" => "all that were asked for",
            "failed" => "a side failed",
            _ => "interrupted",
        };
        let precision = design.precision_pct.map_or_else(String::new, |pct| {
            format!(", precision ± {}", show::percent(pct, 3))
        });
        format!(
            "{done} of at most {} ({why}), {}{precision}, {} of cool-down",
            design.rounds_asked_count,
            design.order,
            show::seconds(design.cool_down_s)
        )
    } else {
        format!("saved records, {done} a side")
    };
    rows.push(Row::new("rounds", text));
    rows
}

fn confounders(comparison: &Comparison) -> Vec<Row> {
    let mut rows = Vec::new();
    for (number, confounder) in comparison.confounders.iter().enumerate() {
        let values = confounder
            .values
            .iter()
            .zip(&comparison.sides)
            .map(|(value, side)| {
                format!(
                    "{} {}",
                    side.label,
                    value.as_deref().unwrap_or(show::NOT_AVAILABLE)
                )
            });
        let text = format!(
            "{}: {}",
            confounder.name,
            values.collect::<Vec<_>>().join("; ")
        );
        let label = if number == 0 { "differ in" } else { "" };
        let tone = if confounder.forbids {
            Tone::Caution
        } else {
            Tone::Plain
        };
        rows.push(Row::toned(label, printable(&text), tone));
    }
    rows
}

fn tables(page: &mut Page, comparison: &Comparison, step: &ComparedStep) {
    for side in 1..comparison.sides.len() {
        page.gap();
        let (a, b) = (&comparison.sides[0].label, &comparison.sides[side].label);
        let labels = step.metrics.iter().map(metric_name).collect();
        let mut columns = vec![(String::new(), labels)];
        let mut column = |title: String, cell: &dyn Fn(&ComparedMetric) -> String| {
            columns.push((title, step.metrics.iter().map(cell).collect()));
        };
        let against = |metric: &ComparedMetric| {
            metric
                .against
                .iter()
                .find(|against| against.side_index as usize == side)
                .cloned()
        };
        let mean = |metric: &ComparedMetric, side: usize| {
            let value = metric.means.get(side).copied().flatten();
            value.map_or_else(
                || show::NOT_AVAILABLE.to_owned(),
                |value| amount(metric, value),
            )
        };
        column(a.clone(), &|metric| mean(metric, 0));
        column(b.clone(), &|metric| mean(metric, side));
        column(format!("{b} - {a}"), &|metric| {
            cell(against(metric), |it| estimate(metric, &it.difference))
        });
        column(format!("{b} / {a}"), &|metric| {
            cell(against(metric), |it| {
                it.ratio
                    .value
                    .map_or_else(not_available, |ratio| show::significant(ratio, 4))
            })
        });
        column("verdict".to_owned(), &|metric| {
            cell(against(metric), |it| said(it.verdict, comparison, side))
        });
        page.table(&Columns { columns });
    }
}

fn cell(against: Option<Against>, text: impl Fn(&Against) -> String) -> String {
    against.as_ref().map_or_else(not_available, text)
}

fn not_available() -> String {
    show::NOT_AVAILABLE.to_owned()
}

fn metric_name(metric: &ComparedMetric) -> String {
    let name = match metric.metric.as_str() {
        "iops" => "IOPS".to_owned(),
        "bandwidth" => "MB/s".to_owned(),
        "busy" => "busy per I/O".to_owned(),
        name => name
            .replace("scheduled_", "sched ")
            .replace("p99_9", "p99.9"),
    };
    format!("{} {name}", metric.direction).trim().to_owned()
}

fn amount(metric: &ComparedMetric, value: f64) -> String {
    match metric.unit.as_str() {
        "ns" | "ns_per_io" => show::time(value),
        "bytes_per_s" => show::significant(value / 1e6, 4),
        _ => show::iops(value),
    }
}

/// `+5.01 µs (4.8 to 5.2)`, both ends in the unit of the value.
fn estimate(metric: &ComparedMetric, estimate: &Estimate) -> String {
    let Some(value) = estimate.value else {
        return not_available();
    };
    let sign = if value > 0.0 { "+" } else { "" };
    let text = format!("{sign}{}", amount(metric, value));
    let (Some(low), Some(high)) = (estimate.low, estimate.high) else {
        return text;
    };
    // Intervals are read against each other: one unit for all three figures, that of the widest.
    let widest = [value, low, high]
        .into_iter()
        .fold(0.0, |a: f64, b| a.max(b.abs()));
    let (unit, scale) = scale_of(metric, widest);
    let figure = |value: f64| show::significant(value / scale, 3);
    format!(
        "{sign}{}{unit} ({} to {})",
        figure(value),
        figure(low),
        figure(high)
    )
}

fn scale_of(metric: &ComparedMetric, widest: f64) -> (&'static str, f64) {
    match metric.unit.as_str() {
        "ns" | "ns_per_io" if widest >= 999.5e6 => (" s", 1e9),
        "ns" | "ns_per_io" if widest >= 999.5e3 => (" ms", 1e6),
        "ns" | "ns_per_io" if widest >= 999.5 => (" µs", 1e3),
        "ns" | "ns_per_io" => (" ns", 1.0),
        "bytes_per_s" => ("", 1e6),
        _ => ("", 1.0),
    }
}

fn indices(comparison: &Comparison) -> Vec<Row> {
    let one = |index: &ComparedIndex| {
        let parts = index.against.iter().map(|against| {
            let side = against.side_index as usize;
            format!(
                "{} / {} {}, {}",
                comparison.sides[side].label,
                comparison.sides[0].label,
                ratio(&against.ratio),
                said(against.verdict, comparison, side)
            )
        });
        format!(
            "{} over {} figures (geometric mean): {}",
            index.metric,
            index.steps_count,
            parts.collect::<Vec<_>>().join("; ")
        )
    };
    comparison
        .indices
        .iter()
        .map(|index| Row::new("index", printable(&one(index))))
        .collect()
}

fn ratio(estimate: &Estimate) -> String {
    let figure = |value: f64| show::significant(value, 4);
    match (estimate.value, estimate.low, estimate.high) {
        (Some(value), Some(low), Some(high)) => {
            format!("{} ({} to {})", figure(value), figure(low), figure(high))
        }
        (Some(value), ..) => figure(value),
        _ => not_available(),
    }
}

fn saturation(page: &mut Page, comparison: &Comparison, curve: &Saturation) {
    page.paragraph(
        &printable(&format!("{} over depth, IOPS", curve.workload)),
        Tone::Heading,
    );
    let depths = curve.depths_count.iter().map(|depth| show::count(*depth));
    let mut columns = vec![(
        "depth".to_owned(),
        depths
            .chain(["saturates at".to_owned()])
            .collect::<Vec<_>>(),
    )];
    for side in &curve.sides {
        let iops = side.at_depth_iops.iter().map(|iops| show::iops(*iops));
        let at = side
            .saturation_depth_count
            .map_or_else(|| "beyond".to_owned(), show::count);
        columns.push((
            comparison.sides[side.side_index as usize].label.clone(),
            iops.chain([at]).collect(),
        ));
    }
    page.table(&Columns { columns });
}

fn aggregates(comparison: &Comparison) -> Vec<Row> {
    let one = |aggregate: &Aggregate| {
        let label = &comparison.sides[aggregate.side_index as usize].label;
        let mut text = format!(
            "{}: {label} is {} devices, {} IOPS together, the least has {} of the average",
            aggregate.step,
            aggregate.members.len(),
            show::iops(aggregate.sum_iops),
            show::share(aggregate.fairness_ratio)
        );
        if let Some(efficiency) = &aggregate.efficiency {
            let volume = &comparison.sides[efficiency.volume_index as usize].label;
            text += &format!("; {volume} / sum {}", ratio(&efficiency.ratio));
        }
        text
    };
    comparison
        .aggregates
        .iter()
        .map(|aggregate| Row::new("members", printable(&one(aggregate))))
        .collect()
}

/// Doubts about the whole, and the kinds of doubts that windows raised.
fn doubts(comparison: &Comparison) -> Vec<Row> {
    let mut rows = details::warnings(&comparison.warnings);
    for step in &comparison.steps {
        for side in step.sides.iter().filter(|side| !side.warnings.is_empty()) {
            let label = &comparison.sides[side.side_index as usize].label;
            let text = format!("{label}, {}: {}", step.name, side.warnings.join(", "));
            rows.push(Row::toned("warning", printable(&text), Tone::Caution));
        }
    }
    rows
}
