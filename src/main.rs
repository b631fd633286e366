//! `lanemark`: hands the command line over, exits with its code.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().collect();
    lanemark::cli::main(&args).into()
}
