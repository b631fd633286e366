//! The tables beside the suites: every row is carried out, with its access, sizes and depths.

use super::support::disk;
use lanemark::config::{Choices, Loader, Plan, plan_chosen, plan_json};
use lanemark::method::suites::{FILES, find, names};
use lanemark::units::parse_block_size;
use std::collections::{BTreeMap, BTreeSet};

const TABLES: &str = include_str!("../../../configs/suites/methods.md");

fn plan(suite: &str) -> Plan {
    let (path, text) = find(suite).unwrap_or_else(|| panic!("no suite {suite}"));
    let loader = Loader {
        embedded: &FILES,
        variable: &|_| None,
        sets: &[],
    };
    let job = loader.from_text(text, path).unwrap();
    let choices = Choices {
        lenient: true,
        ..Choices::default()
    };
    plan_chosen(&job, &[disk()], 1, &choices).unwrap()
}

/// The cells of every row that is no header.
fn rows() -> Vec<Vec<&'static str>> {
    TABLES
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| row "))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

fn set(cell: &str) -> BTreeSet<String> {
    cell.split(", ").map(str::to_owned).collect()
}

#[test]
fn every_row_is_a_step_that_does_what_the_row_says() {
    let mut plans: BTreeMap<&str, (Plan, serde_json::Value)> = BTreeMap::new();
    let rows = rows();
    assert!(rows.len() >= 45, "{} rows", rows.len());
    for row in &rows {
        let [what, rw, block, depth, suite, steps] = row.as_slice() else {
            panic!("{row:?}");
        };
        let (plan, json) = plans.entry(suite).or_insert_with(|| {
            let plan = plan(suite);
            let json = plan_json(&plan);
            (plan, json)
        });
        let (mut rws, mut sizes, mut depths) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for name in steps.split("; ") {
            let mut found = false;
            let own = plan.steps.iter().zip(json["steps"].as_array().unwrap());
            for (_, step) in own.filter(|(step, _)| step.origin.step == name) {
                found = true;
                for stream in step["streams"].as_array().unwrap() {
                    rws.insert(stream["rw"].as_str().unwrap().to_owned());
                    depths.insert(stream["iodepth_count"].as_u64().unwrap());
                    let of_stream = stream["sizes"].as_array().unwrap().iter();
                    sizes.extend(of_stream.map(|size| size["bytes"].as_u64().unwrap()));
                }
            }
            assert!(found, "{what}: {suite} has no step `{name}`");
        }
        assert_eq!(rws, set(rw), "{what}");
        let wanted = set(block)
            .iter()
            .map(|size| parse_block_size(size).unwrap().0)
            .collect();
        assert_eq!(sizes, wanted, "{what}");
        let wanted: BTreeSet<u64> = set(depth)
            .iter()
            .map(|depth| depth.parse().unwrap())
            .collect();
        assert_eq!(depths, wanted, "{what}");
    }
    // And no suite is there without a row.
    let used: BTreeSet<&str> = plans.keys().copied().collect();
    assert_eq!(used, names().collect());
}

#[test]
fn shares_and_mixes_are_those_of_the_patterns() {
    let plan = plan("applications");
    let shares = |name: &str| -> Vec<(u32, f64)> {
        let step = plan.steps.iter().find(|step| step.name == name).unwrap();
        let sizes = &step.streams[0].sizes;
        sizes
            .iter()
            .map(|size| (size.blocks * 512, size.share_pct))
            .collect()
    };
    let k = 1024;
    assert_eq!(
        shares("file-server"),
        [
            (512, 10.0),
            (k, 5.0),
            (2 * k, 5.0),
            (4 * k, 60.0),
            (8 * k, 2.0),
            (16 * k, 4.0),
            (32 * k, 4.0),
            (64 * k, 10.0)
        ]
    );
    assert_eq!(
        shares("web-server"),
        [
            (512, 22.0),
            (k, 15.0),
            (2 * k, 8.0),
            (4 * k, 23.0),
            (8 * k, 15.0),
            (16 * k, 2.0),
            (32 * k, 6.0),
            (64 * k, 7.0),
            (128 * k, 1.0),
            (512 * k, 1.0),
        ]
    );
    let json = plan_json(&plan);
    let mix: Vec<_> = json["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| {
            let stream = &step["streams"][0];
            (
                stream["read_pct"].as_f64(),
                stream["random_pct"].as_f64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        mix,
        [
            (Some(67.0), 100.0),
            (Some(80.0), 100.0),
            (Some(80.0), 80.0),
            (None, 100.0)
        ]
    );
}

#[test]
fn every_file_is_part_of_the_program_and_says_what_it_is() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/suites");
    let mut on_disk: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter_map(|name| name.strip_suffix(".yaml").map(str::to_owned))
        .collect();
    for name in names() {
        assert!(on_disk.remove(name), "{name}");
        let (_, text) = find(name).unwrap();
        assert!(text.starts_with('#'), "{name} begins with a comment");
        let plan = plan(name);
        assert!(plan.about.is_some(), "{name}");
        let writes = plan.steps.iter().any(lanemark::config::StepPlan::writes);
        assert_eq!(
            writes,
            text.contains("IT WRITES"),
            "{name} says whether it writes"
        );
    }
    assert!(on_disk.is_empty(), "not embedded: {on_disk:?}");
}
