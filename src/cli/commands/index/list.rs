//! `hepfs index list SOURCE[:table]`.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;

use super::found::Found;
use super::report::{exit_code, json, line};
use crate::cli::Error;
use crate::cli::place::Named;
use crate::fs::tree::ViewOptions;
use crate::indexes::describe;
use crate::source::Interrupt;

/// Say which search indexes tables have, and what is known of each
///
/// Reads no index and no column. Exit code: 0 where every table was listed, whatever is known of its indexes; 1 where a
/// run of `hepfs index` was ended while it changed a file; 2 where a directory could not be listed.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// A JSON object a line, as in .hepfs/indexes
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    named: Named,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let place = arguments.named.find(ViewOptions::default())?;
    let Found { below: found, is_unfinished } = Found::new(&place, &Interrupt::new())?;
    let described = found.tables.iter().flat_map(|table| table.indexes.iter().map(describe));
    let lines: Vec<String> = described.map(|one| if arguments.json { json(&one) } else { line(&one) }).collect();
    let mut out = std::io::stdout().lock();
    for line in &lines {
        writeln!(out, "{line}").map_err(Error::io("standard output"))?;
    }
    if lines.is_empty() && !arguments.json {
        writeln!(out, "no search index").map_err(Error::io("standard output"))?;
    }
    Ok(exit_code(!found.failures.is_empty(), is_unfinished))
}
