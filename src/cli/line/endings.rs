//! What the name of the result's file says of its form, where `--format` is not given.

use crate::cli::listing::ListFormat;
use crate::cli::{SuiteVerb, Verb};
use crate::report::Format;
use clap::ArgMatches;
use clap::parser::ValueSource;
use std::path::Path;

/// The form that files of this ending have; `None` for any other.
pub(in crate::cli) fn format_of(path: &Path) -> Option<Format> {
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return None;
    }
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    match ending.as_str() {
        "json" => Some(Format::Json),
        "csv" => Some(Format::Csv),
        "html" | "htm" => Some(Format::Html),
        "txt" => Some(Format::Text),
        _ => None,
    }
}

/// Whether the command line says `--format` itself.
pub(in crate::cli) fn gives_format(matches: &ArgMatches) -> bool {
    let is_own = matches.try_contains_id("format").is_ok()
        && matches.value_source("format") == Some(ValueSource::CommandLine);
    is_own
        || matches
            .subcommand()
            .is_some_and(|(_, below)| gives_format(below))
}

/// Takes the form from the file of `-o`, where the verb can give it.
pub(in crate::cli) fn follow(verb: &mut Verb) {
    let (format, output) = match verb {
        Verb::Run(args) | Verb::Suite(SuiteVerb::Run(args)) => (&mut args.format, &args.output),
        Verb::Compare(args) => (&mut args.result.format, &args.result.output),
        Verb::Peak(args) => (&mut args.flags.result.format, &args.flags.result.output),
        Verb::Load(args) => (&mut args.flags.result.format, &args.flags.result.output),
        Verb::Scale(args) => (&mut args.flags.result.format, &args.flags.result.output),
        Verb::Lanes(args) => {
            if args.output.as_deref().and_then(format_of) == Some(Format::Json) {
                args.format = ListFormat::Json;
            }
            return;
        }
        _ => return,
    };
    if let Some(found) = output.as_deref().and_then(format_of) {
        *format = found;
    }
}
