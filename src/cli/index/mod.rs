//! `hepfs index …`: the search indexes of tables.

pub(super) mod list;
pub(super) mod verify;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::Error;

/// List and verify the search indexes of tables
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(list::Arguments),
    Verify(verify::Arguments),
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    match &arguments.command {
        Command::List(arguments) => list::run(arguments),
        Command::Verify(arguments) => verify::run(arguments),
    }
}
