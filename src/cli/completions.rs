//! Shell completions and man pages, from the same description of the command line as its parser.

use clap::Command;
use clap_complete::Shell;
use std::io;

/// The completion script of `command` for a shell.
#[must_use]
pub fn completions(shell: Shell, mut command: Command) -> String {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// A man page in roff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManPage {
    /// Its file's name: `lanemark-run.1`.
    pub file_name: String,
    /// Its text.
    pub roff: String,
}

/// The man page of `command`, then one for each of its verbs, at any depth.
///
/// # Errors
/// What the page's writer says; writing to memory does not fail by itself.
pub fn man_pages(mut command: Command) -> io::Result<Vec<ManPage>> {
    // Without this, a page of a verb would show the verb's own name only.
    command = command.disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    collect(&command, command.get_name(), &mut pages)?;
    Ok(pages)
}

fn collect(command: &Command, name: &str, pages: &mut Vec<ManPage>) -> io::Result<()> {
    let mut roff = Vec::new();
    let page = clap_mangen::Man::new(command.clone()).title(name.to_uppercase());
    page.render(&mut roff)?;
    pages.push(ManPage {
        file_name: format!("{name}.1"),
        roff: String::from_utf8_lossy(&roff).into_owned(),
    });
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        collect(verb, &format!("{name}-{}", verb.get_name()), pages)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use clap::{Arg, ValueEnum};

    fn command() -> Command {
        Command::new("lanemark")
            .version("1.2.3")
            .about("measures")
            .subcommand(
                Command::new("run")
                    .about("runs a job")
                    .arg(Arg::new("device").long("device").help("what is measured")),
            )
            .subcommand(Command::new("suite").subcommand(Command::new("list").about("names them")))
            .subcommand(Command::new("secret").hide(true))
    }

    #[test]
    fn every_shell_completes_verbs_and_flags() {
        for shell in Shell::value_variants() {
            let script = completions(*shell, command());
            assert!(script.contains("lanemark"), "{shell}");
            assert!(script.contains("device"), "{shell}");
        }
    }

    #[test]
    fn bash_accepts_its_script() {
        let script = completions(Shell::Bash, command());
        let done = std::process::Command::new("bash")
            .args(["-n", "-c", &script])
            .status();
        // A machine without bash has nothing to complete.
        assert!(done.is_err() || done.unwrap().success());
    }

    #[test]
    fn each_verb_has_a_page() {
        let pages = man_pages(command()).unwrap();
        let names: Vec<_> = pages.iter().map(|page| page.file_name.as_str()).collect();
        let wanted = [
            "lanemark.1",
            "lanemark-run.1",
            "lanemark-suite.1",
            "lanemark-suite-list.1",
        ];
        assert_eq!(names, wanted);
        assert!(pages[1].roff.contains("what is measured"));
        assert!(
            pages[1].roff.contains(".TH LANEMARK-RUN 1"),
            "{}",
            pages[1].roff
        );
        assert!(pages[1].roff.contains("lanemark run"), "{}", pages[1].roff);
    }
}
