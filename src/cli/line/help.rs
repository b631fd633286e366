//! What the help of each verb lists: the flags that it takes.

use super::args::Cli;
use clap::CommandFactory as _;

/// Keys of jobs of many steps, which verbs that make their own steps refuse.
const OF_MANY_STEPS: [&str; 8] = [
    "sweep",
    "repeat",
    "precondition",
    "expect",
    "cool_down",
    "steadystate",
    "steadystate_duration",
    "steadystate_ramp_time",
];

/// A verb whose help does not list what it refuses. The flags stay known, so that the refusal can say why.
fn without(verb: clap::Command, refused: &[&str]) -> clap::Command {
    let hide = |verb: clap::Command, name: &&str| {
        let name = (*name).to_owned();
        verb.mut_arg(name, |arg| arg.hide(true))
    };
    refused.iter().fold(verb, hide)
}

/// The command line with the help of each verb as it should be.
fn shown(command: clap::Command) -> clap::Command {
    let verbs: [(&str, &[&str], &[&str]); 4] = [
        (
            "peak",
            &OF_MANY_STEPS,
            &[
                "iodepth",
                "reactors",
                "batch",
                "streams",
                "rate_iops",
                "rate_process",
                "number_ios",
                "io_size",
                "passes",
            ],
        ),
        (
            "load",
            &OF_MANY_STEPS,
            &["rate_iops", "number_ios", "io_size", "passes"],
        ),
        (
            "scale",
            &OF_MANY_STEPS,
            &[
                "rate_iops",
                "rate_process",
                "number_ios",
                "io_size",
                "passes",
            ],
        ),
        (
            "compare",
            &[],
            &[
                "device",
                "precondition",
                "expect",
                "steadystate",
                "steadystate_duration",
                "steadystate_ramp_time",
            ],
        ),
    ];
    verbs
        .into_iter()
        .fold(command, |command, (verb, usual, own)| {
            command.mut_subcommand(verb, |verb| without(without(verb, usual), own))
        })
}

/// The whole command line, for parsing, completions and manual pages.
#[must_use]
pub fn command() -> clap::Command {
    shown(Cli::command())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cli::line::args::parse;
    use std::ffi::OsString;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn the_command_is_well_formed() {
        command().debug_assert();
    }

    /// The help of a verb lists what it takes; the rest stays known, so that a refusal can say why.
    #[test]
    fn help_lists_no_flag_that_the_verb_refuses() {
        let long = |verb: &str| {
            let words = words(&format!("lanemark {verb} --help"));
            parse(words).unwrap_err().to_string()
        };
        let many = [
            "--sweep",
            "--repeat",
            "--precondition",
            "--expect",
            "--cool_down",
        ];
        for (verb, refused, taken) in [
            (
                "peak",
                ["--iodepth", "--rate_iops", "--streams"],
                ["--bs", "--most_depth"],
            ),
            (
                "load",
                ["--rate_iops", "--number_ios", "--passes"],
                ["--iodepth", "--p99"],
            ),
            (
                "scale",
                ["--rate_iops", "--number_ios", "--io_size"],
                ["--iodepth", "--counts"],
            ),
        ] {
            let help = long(verb);
            for flag in refused.iter().chain(&many) {
                assert!(!help.contains(&format!("{flag} <")), "{verb} {flag}");
            }
            for flag in taken {
                assert!(help.contains(&format!("{flag} <")), "{verb} {flag}");
            }
            assert!(parse(words(&format!("lanemark {verb} --sweep iodepth=1"))).is_ok());
        }
        assert!(long("run").contains("--sweep <"));
        let suite = long("suite run");
        assert!(!suite.contains("lanemark run"), "{suite}");
        assert!(suite.contains("lanemark suite run bsweep"), "{suite}");
    }
}
