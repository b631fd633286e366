//! The quick job: what `lanemark run` does when it is told nothing.

use super::RunArgs;
use super::output;
use super::progress::Mode;
use crate::config::{ConfigError, Job};

/// The job as it lies among the ready jobs, from which it can be run and changed.
const YAML: &str = include_str!("../../configs/quick.yaml");
const FILE: &str = "configs/quick.yaml";

/// The quick job where the command line holds neither a job file nor a key.
///
/// # Errors
/// None: the job is a part of the program, and a test loads it.
pub fn job(args: &RunArgs) -> Result<Option<Job>, ConfigError> {
    if args.job.is_some() || !args.keys.is_empty() {
        return Ok(None);
    }
    if args.progress != Mode::None {
        output::note(
            "no job, no device: the quick job on a scratch file in this folder, under a minute; the file vanishes at the end",
        );
    }
    Job::from_yaml(YAML, FILE).map(Some)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn only_an_empty_command_line_means_the_quick_job() {
        let silent = RunArgs {
            progress: Mode::None,
            ..RunArgs::default()
        };
        let quick = job(&silent).unwrap().unwrap();
        assert_eq!(
            quick.device_names().unwrap(),
            ["scratch:size=1G,within=10s"]
        );
        let mut keyed = silent.clone();
        keyed.keys.bs = Some("4k".to_owned());
        assert!(job(&keyed).unwrap().is_none());
        let mut named = silent;
        named.job = Some(PathBuf::from("job.yaml"));
        assert!(job(&named).unwrap().is_none());
    }
}
