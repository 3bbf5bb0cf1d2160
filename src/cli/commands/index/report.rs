//! What is said of search indexes: lines, JSON, exit codes.

use std::process::ExitCode;

use indicatif::HumanBytes;

use crate::fs::tree::printable;
use crate::indexes::{Description, State};

/// 0, 1 where something is wrong with the file, 2 where it could not be found out.
pub(in crate::cli) fn exit_code(failed: bool, is_wrong: bool) -> ExitCode {
    ExitCode::from(if failed { 2 } else { u8::from(is_wrong) })
}

/// Whether it could not be found out whether an index is right.
pub(in crate::cli) fn has_failed(said: &Description) -> bool {
    matches!(said.verdict, State::Unverifiable | State::Unknown)
}

/// A JSON object, as in `.hepfs/indexes`.
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
