//! Reports on search indexes: lines, JSON, exit codes.

use std::io::{BufWriter, Write};

use serde_json::json;

use crate::activity::words;
use crate::cli::tables::InFile;
use crate::cli::{Error, progress};
use crate::indexes::{IndexDescription, State};
use crate::views::{printable, printable_json};

/// The exit code: 0 if all is right, 1 if something is wrong with the file, 2 if something could not be found out.
pub(in crate::cli) fn exit_code(failed: bool, is_wrong: bool) -> u8 {
    if failed { 2 } else { u8::from(is_wrong) }
}

/// Whether an index could not be verified.
pub(in crate::cli) fn has_failed(said: &IndexDescription) -> bool {
    matches!(said.verdict, State::Unverifiable | State::Unknown)
}

/// Writes the report on each file's search indexes: lines, or JSON objects as in `.hepfs/indexes`.
pub(super) fn write(files: &[InFile], said: &[Vec<IndexDescription>], as_json: bool) -> Result<(), Error> {
    let mut out = BufWriter::new(progress::Out::new());
    for (file, said) in files.iter().zip(said) {
        let written = match said.as_slice() {
            [] if as_json || !file.failures.is_empty() => Ok(()),
            [] => writeln!(out, "{}no search index", file.prefix),
            said if as_json => {
                said.iter().try_for_each(|one| writeln!(out, "{}", printable_json(&json!(one).to_string())))
            }
            said => said.iter().try_for_each(|one| writeln!(out, "{}{}", file.prefix, line(one))),
        };
        written.map_err(Error::io("standard output"))?;
    }
    out.flush().map_err(Error::io("standard output"))
}

/// Writes one line about an index for people.
pub(in crate::cli) fn line(one: &IndexDescription) -> String {
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
        words::bytes(one.bytes),
    );
    for detail in [one.rule, one.place.as_deref(), one.found.as_deref()].into_iter().flatten() {
        line.push_str(": ");
        line.push_str(detail);
    }
    printable(&line)
}
