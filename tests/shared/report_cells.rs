//! The figures of an HTML report, read back from its tables.

/// One figure: which step and direction, which field of the record, and the number in full.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    pub step: usize,
    pub direction: String,
    pub field: String,
    pub value: f64,
}

/// Every cell that carries a number, in the order of the page.
pub fn cells(html: &str) -> Vec<Cell> {
    let mut found = Vec::new();
    for row in html.split("<tr data-step=\"").skip(1) {
        let row = row.split("</tr>").next().unwrap();
        let step = row.split('"').next().unwrap().parse().unwrap();
        let direction = attribute(row, "data-direction");
        for cell in row.split("<td").filter(|cell| cell.contains("data-value=")) {
            found.push(Cell {
                step,
                direction: direction.clone(),
                field: attribute(cell, "data-field"),
                value: attribute(cell, "data-value").parse().unwrap(),
            });
        }
    }
    found
}

fn attribute(text: &str, name: &str) -> String {
    let start = text.find(&format!("{name}=\"")).unwrap() + name.len() + 2;
    text[start..].split('"').next().unwrap().to_owned()
}

/// Fields of steps whose arrivals came at a rate: they stand before the service latency.
const SCHEDULED: [&str; 8] = [
    "scheduled_latency_ns.min",
    "scheduled_latency_ns.mean",
    "scheduled_latency_ns.p50",
    "scheduled_latency_ns.p90",
    "scheduled_latency_ns.p99",
    "scheduled_latency_ns.p99_9",
    "scheduled_latency_ns.p99_99",
    "scheduled_latency_ns.max",
];

/// The same figures out of a record: of every direction with a sample, every field the table has.
pub fn expected(record: &lanemark::record::Record) -> Vec<Cell> {
    let mut found = Vec::new();
    for (step, of) in record.steps.iter().enumerate() {
        let directions = [
            ("read", &of.read),
            ("write", &of.write),
            ("trim", &of.trim),
            ("writezeroes", &of.writezeroes),
            ("flush", &of.flush),
            ("probe", &of.probe),
        ];
        for (direction, figures) in directions {
            let Some(figures) = figures else { continue };
            // Through JSON, so that names and numbers are the file's own.
            let json = serde_json::to_value(figures).unwrap();
            let waits = figures.scheduled_latency_ns.as_ref();
            let waits = waits.map_or(&[] as &[&str], |_| &SCHEDULED);
            let rates = ["iops", "bytes_per_s"];
            for field in rates.iter().chain(waits).copied().chain([
                "latency_ns.min",
                "latency_ns.mean",
                "latency_ns.p50",
                "latency_ns.p90",
                "latency_ns.p99",
                "latency_ns.p99_9",
                "latency_ns.p99_99",
                "latency_ns.max",
                "ios_count",
            ]) {
                let value = field.split('.').fold(&json, |json, key| &json[key]);
                found.push(Cell {
                    step,
                    direction: direction.to_owned(),
                    field: field.to_owned(),
                    value: value.as_f64().unwrap(),
                });
            }
        }
    }
    found
}
