//! `hepfs index list SOURCE[:table]`.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use indicatif::HumanBytes;

use super::{Listed, verify};
use crate::cli::Error;
use crate::cli::place::Named;
use crate::fs::tree::printable;
use crate::indexes::{Description, describe};
use crate::source::Interrupt;

/// Say which search indexes tables have, and what is known of each
///
/// Reads no index and no column. Exit code: 0 where every table was listed, whatever is known of its indexes; 1 where a run of
/// `hepfs index` was ended while it changed a file; 2 where a directory could not be listed.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// A JSON object a line, as in .hepfs/indexes
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    named: Named,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let place = arguments.named.find()?;
    let Listed { below: found, is_unfinished } = Listed::new(&place, &Interrupt::new())?;
    let described = found.tables.iter().flat_map(|table| table.indexes.iter().map(describe));
    let lines: Vec<String> = described.map(|one| if arguments.json { json(&one) } else { line(&one) }).collect();
    let mut out = std::io::stdout().lock();
    for line in &lines {
        writeln!(out, "{line}").map_err(Error::io("standard output"))?;
    }
    if lines.is_empty() && !arguments.json {
        writeln!(out, "no search index").map_err(Error::io("standard output"))?;
    }
    Ok(verify::exit_code(!found.failures.is_empty(), is_unfinished))
}

pub(in crate::cli) fn json(one: &Description) -> String {
    // Strings and numbers alone.
    serde_json::to_string(one).unwrap_or_default()
}

/// One line for people.
pub(in crate::cli) fn line(one: &Description) -> String {
    let tokens = match (one.source_generation, one.source_rows) {
        (None, None) => String::new(),
        (generation, rows) => {
            let say = |token: Option<u64>| token.map_or("?".to_owned(), |token| token.to_string());
            format!(" (generation {}, {} rows)", say(generation), say(rows))
        }
    };
    let mut line = format!(
        "{:<12} {:<12} {}  of {}, {}{tokens}, {}",
        one.verdict.name(),
        one.kind.as_deref().unwrap_or("-"),
        one.path,
        one.columns.join(", "),
        one.revision,
        HumanBytes(one.bytes),
    );
    for detail in [&one.rule, &one.place, &one.found].into_iter().flatten() {
        line.push_str(": ");
        line.push_str(detail);
    }
    printable(&line)
}
