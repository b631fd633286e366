//! The HTML report: the record's own figures, everything escaped, nothing fetched, no script.

use crate::report_cells::{cells, expected};
use crate::report_json_csv::fixtures;
use lanemark::report::{Format, Style, html, render};

#[test]
fn its_figures_are_the_records() {
    let mut count = 0;
    for (name, record) in fixtures() {
        let page = render(&record, Format::Html, &Style::PLAIN);
        assert_eq!(cells(&page), expected(&record), "{name}");
        count += cells(&page).len();
    }
    assert!(count > 50, "a comparison of nothing would always pass");
}

#[test]
fn what_a_device_says_can_neither_run_nor_steer() {
    for (name, record) in fixtures() {
        let page = render(&record, Format::Html, &Style::PLAIN);
        for evil in ["<script", "javascript:", "onerror=", "\u{1b}", "\u{202e}"] {
            let is_text = evil == "onerror=" && !page.contains("<img");
            assert!(is_text || !page.contains(evil), "{name}: {evil}");
        }
    }
}

#[test]
fn nothing_is_fetched() {
    for (name, record) in fixtures() {
        let page = render(&record, Format::Html, &Style::PLAIN);
        for word in ["src=", "<link", "@import", "url(", "http://", "https://"] {
            assert!(!page.contains(word), "{name}: {word}");
        }
        assert!(page.contains("default-src 'none'"), "{name}");
    }
}

#[test]
fn tags_are_closed() {
    let all: Vec<_> = fixtures().into_iter().map(|(_, record)| record).collect();
    let page = html::render(&all, &[]);
    for tag in [
        "section", "table", "tr", "td", "svg", "figure", "ul", "li", "ol", "details", "dl", "pre",
    ] {
        let opened =
            page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        let closed = page.matches(&format!("</{tag}>")).count();
        assert_eq!(opened, closed, "{tag}");
    }
    for name in 1..=all.len() {
        assert!(page.contains(&format!("id=\"r{name}\"")));
    }
}

#[test]
fn a_figure_without_a_sample_is_not_available() {
    let (_, record) = fixtures()
        .into_iter()
        .find(|(name, _)| name == "failed_abandoned")
        .unwrap();
    let page = render(&record, Format::Html, &Style::PLAIN);
    assert!(page.contains("≥"), "an abandoned I/O is a lower bound");
    assert!(!page.contains("NaN") && !page.contains("inf"));
}
