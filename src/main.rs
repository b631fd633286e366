//! `lanemark`: parses the command line, calls the verb, exits with its code.

use lanemark::cli::run::{RunRequest, run};
use std::process::ExitCode;

fn main() -> ExitCode {
    let file = std::env::args().nth(1).unwrap_or_default();
    let request = RunRequest {
        job: lanemark::config::Job::load(std::path::Path::new(&file)),
        format: match std::env::args().nth(2).as_deref() {
            Some("json") => lanemark::report::Format::Json,
            _ => lanemark::report::Format::Text,
        },
        output: None,
        dry_run: false,
    };
    run(request, &mut lanemark::session::Silent).into()
}
