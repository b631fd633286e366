//! What needs neither root nor a device: one binary, since each one is linked with the whole library.
#![allow(clippy::unwrap_used)]

mod attachments;
mod check_polling;
mod claim;
mod compare_stats;
mod compare_ways;
mod config_jobs;
mod devices_attached;
mod devices_list;
mod guard_cases;
mod guard_signatures;
mod guard_tree;
mod lanes_counters;
mod lanes_matrix;
mod lanes_trees;
mod lanes_unseen;
#[path = "../shared/links.rs"]
mod links;
mod pci_paths;
#[path = "../shared/report_cells.rs"]
mod report_cells;
mod report_html;
mod report_json_csv;
mod report_output;
mod report_text;
#[path = "../shared/skipped.rs"]
mod skipped;
mod spdk_checks;
#[path = "../shared/statistics.rs"]
mod statistics;
mod uring_file;
mod workload_common;
mod workload_filler;
mod workload_generator;
mod workload_positions;
