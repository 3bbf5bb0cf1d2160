//! `hepfs index …`: the search indexes of tables.

mod build;
mod found;
mod list;
mod remove;
pub(in crate::cli) mod report;
pub(in crate::cli) mod verify;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::cli::Error;

/// List, verify, build and drop the search indexes of tables
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(list::Arguments),
    Verify(verify::Arguments),
    Build(build::Arguments),
    Drop(remove::Arguments),
}

pub(in crate::cli) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    match &arguments.command {
        Command::List(arguments) => list::run(arguments),
        Command::Verify(arguments) => verify::run(arguments),
        Command::Build(arguments) => build::run(arguments),
        Command::Drop(arguments) => remove::run(arguments),
    }
}
