//! What several steps come to: indices, spans, fairness; and the steps that were left out, by name.

use super::super::text::quantity;
use super::super::{figures as show, html_escaped, printable};
use super::chart::{Bar, Group, Quantity, bars};
use crate::record::{Derived, DerivedValue, Record};
use std::fmt::Write as _;

/// Bars of one chart that can be told apart, and groups whose names do not run into each other.
const BARS_MOST: usize = 8;
const GROUPS_MOST: usize = 4;

/// The derived figures of a record.
pub struct DerivedView {
    /// A row for each number, as HTML; empty without any.
    pub table: String,
    /// Charts, as HTML.
    pub charts: Vec<String>,
    /// Steps that were not run, and why.
    pub left_out: Vec<(String, String)>,
}

/// Those of a record.
pub fn view(record: &Record) -> DerivedView {
    let left = record.left_out.iter();
    DerivedView {
        table: table(record),
        charts: charts(record),
        left_out: left
            .map(|left| (printable(&left.step), printable(&left.why)))
            .collect(),
    }
}

/// The rows carry the record's own numbers: `data-derived` is the figure's place in the record, `data-number` the
/// number in full.
fn table(record: &Record) -> String {
    if record.derived.is_empty() {
        return String::new();
    }
    let mut rows = String::new();
    for (index, derived) in record.derived.iter().enumerate() {
        for value in &derived.values {
            rows += &row(index, derived, value);
        }
    }
    let heads = [
        ("figure", true),
        ("of", true),
        ("", true),
        ("value", false),
        ("reached at", true),
        ("comparable with other devices", true),
    ];
    let heads: String = heads
        .iter()
        .map(|(text, is_text)| match is_text {
            true => format!("<th scope=\"col\" class=\"text\">{text}</th>"),
            false => format!("<th scope=\"col\">{text}</th>"),
        })
        .collect();
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Derived figures\"><table><caption>Figures of several steps</caption>\
         <thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
}

fn row(index: usize, derived: &Derived, value: &DerivedValue) -> String {
    let unit = value.unit.as_deref().unwrap_or(&derived.unit);
    let number = value.value.map_or_else(
        || show::NOT_AVAILABLE.to_owned(),
        |number| quantity(number, unit),
    );
    let exact = value.value.map_or_else(String::new, |number| {
        format!(
            " data-derived=\"{index}\" data-name=\"{}\" data-number=\"{number}\"",
            html_escaped(&value.name)
        )
    });
    let comparable = if derived.is_comparable {
        "yes".to_owned()
    } else {
        format!("no: {}", derived.why_not.join("; "))
    };
    let group = derived.group.as_deref().unwrap_or("all steps");
    let at = value.at.as_deref().unwrap_or_default();
    let text = |text: &str| format!("<td class=\"text\">{}</td>", html_escaped(text));
    let long = |text: &str| format!("<td class=\"text long\">{}</td>", html_escaped(text));
    format!(
        "<tr>{}{}{}<td{exact}>{}</td>{}{}</tr>",
        text(&derived.name),
        text(group),
        text(&value.name),
        html_escaped(&number),
        text(at),
        long(&comparable)
    )
}

fn quantity_of(unit: &str) -> Option<Quantity> {
    Some(match unit {
        "iops" => Quantity::Iops,
        "bytes_per_s" => Quantity::Rate,
        "ns" => Quantity::Time,
        _ => return None,
    })
}

/// Streams beside each other, and the ends of curves by group.
fn charts(record: &Record) -> Vec<String> {
    let mut out = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for derived in &record.derived {
        if !names.contains(&derived.name.as_str()) {
            names.push(&derived.name);
        }
    }
    for name in names {
        let own = record.derived.iter().filter(|derived| derived.name == name);
        let own: Vec<&Derived> = own.collect();
        if own.len() <= GROUPS_MOST && matches!(own[0].kind.as_str(), "fairness" | "span") {
            out.extend(chart(name, &own));
        }
    }
    out
}

/// The values of the figure's own unit as bars, one group for each group of steps.
fn chart(name: &str, own: &[&Derived]) -> Option<String> {
    let is_fairness = own[0].kind == "fairness";
    let shown = |derived: &'_ Derived| -> Vec<DerivedValue> {
        let values = derived.values.iter();
        // The sum stands in the table: beside it the streams would all look small.
        let values =
            values.filter(|value| value.unit.is_none() && !(is_fairness && value.name == "sum"));
        values.cloned().collect()
    };
    let sides: Vec<String> = shown(own[0]).into_iter().map(|value| value.name).collect();
    if sides.len() < 2 || sides.len() > BARS_MOST {
        return None;
    }
    let group = |derived: &&Derived| Group {
        name: printable(derived.group.as_deref().unwrap_or("all steps")),
        bars: shown(derived)
            .into_iter()
            .enumerate()
            .map(|(side, value)| Bar {
                side,
                value: value.value,
                interval: None,
                rounds: Vec::new(),
            })
            .collect(),
    };
    let groups: Vec<Group> = own.iter().map(group).collect();
    let title = match is_fairness {
        true => "Each stream's bandwidth".to_owned(),
        false => printable(name),
    };
    bars(&title, quantity_of(&own[0].unit)?, &sides, &groups)
}

/// Fairness of streams in words: the slowest as a share of the fastest, and Jain's index.
pub fn fairness(rates: &[f64]) -> Option<String> {
    let (sum, squares) = rates.iter().fold((0.0, 0.0), |(sum, squares), rate| {
        (sum + rate, squares + rate * rate)
    });
    let most = rates.iter().copied().fold(0.0, f64::max);
    let least = rates.iter().copied().fold(f64::MAX, f64::min);
    if rates.len() < 2 || most <= 0.0 {
        return None;
    }
    #[allow(clippy::cast_precision_loss)]
    let jain = sum * sum / (rates.len() as f64 * squares);
    let mut text = String::new();
    let _ = write!(
        text,
        "the slowest of {} streams has {} of the fastest; Jain's index {} (1: all alike)",
        rates.len(),
        show::share(least / most),
        show::significant(jain, 3)
    );
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_of_the_rates() {
        assert_eq!(fairness(&[1.0]), None);
        assert_eq!(fairness(&[0.0, 0.0]), None);
        let alike = fairness(&[5.0, 5.0]).unwrap_or_default();
        assert!(
            alike.contains("100 % of the fastest") && alike.contains("index 1 ("),
            "{alike}"
        );
        // 3.1² / (4 × 3.01)
        let starved = fairness(&[1.0, 1.0, 1.0, 0.1]).unwrap_or_default();
        assert!(
            starved.contains("10 % of") && starved.contains("0.798"),
            "{starved}"
        );
    }
}
