//! `hepfs completions SHELL`: prints a completion script.

use std::io::Write;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::cli::Error;

/// Print a script that completes command lines of hepfs, also inside files
///
/// It completes commands, options and their values, the paths of tables and files behind `run.h5:`, and names of
/// columns. It reads no values. The script calls the program, so it need not change with it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    source <(hepfs completions bash)                                  in ~/.bashrc\n  \
    source <(hepfs completions zsh)                                   in ~/.zshrc, below compinit\n  \
    hepfs completions fish > ~/.config/fish/completions/hepfs.fish    once")]
pub(in crate::cli) struct Arguments {
    /// The shell that reads the script
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

/// A shell for which there is a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Shell {
    /// GNU bash
    Bash,
    /// Z shell
    Zsh,
    /// Friendly interactive shell
    Fish,
}

pub(in crate::cli) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let script = match arguments.shell {
        Shell::Bash => include_str!("hepfs.bash"),
        Shell::Zsh => include_str!("hepfs.zsh"),
        Shell::Fish => include_str!("hepfs.fish"),
    };
    std::io::stdout().write_all(script.as_bytes()).map_err(Error::io("standard output"))?;
    Ok(ExitCode::SUCCESS)
}
