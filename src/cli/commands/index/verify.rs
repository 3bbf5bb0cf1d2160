//! `hepfs index verify SOURCE[:table]`.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;

use super::found::Found;
use super::report::{exit_code, has_failed, json, line};
use crate::cli::Error;
use crate::cli::place::Named;
use crate::cli::progress::Watched;
use crate::cli::signals::INTERRUPTED;
use crate::fs::tree::{ViewOptions, printable};
use crate::indexes::{self, Description, State, describe};
use crate::source::Interrupt;
use crate::table::{SearchIndex, Table};

/// Hold search indexes against their columns, in full
///
/// Mounts and queries use an index once it is verified (--indexes). The verdict is kept in the cache folder until the
/// file changes, and so are the statistics of the columns that were read for it. Exit code: 0 where every index is
/// right, 1 where one is not (or breaks a rule) or a run of `hepfs index` was ended while it changed a file, 2 where
/// one could not be verified.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// A JSON object a line, as in .hepfs/indexes
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    named: Named,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let interrupt = Interrupt::new();
    let place = arguments.named.find_settled(ViewOptions::default(), &interrupt)?;
    let Found { below: found, is_unfinished } = Found::new(&place, &interrupt)?;
    let Some(verified) = all(&found.tables, &interrupt)? else {
        eprintln!("hepfs: interrupted; what was found so far stays kept");
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let mut out = std::io::stdout().lock();
    for one in &verified {
        let line = if arguments.json { json(one) } else { line(one) };
        writeln!(out, "{line}").map_err(Error::io("standard output"))?;
    }
    let failed = !found.failures.is_empty() || verified.iter().any(has_failed);
    let is_wrong = is_unfinished || verified.iter().any(|one| one.verdict.is_fault());
    Ok(exit_code(failed, is_wrong))
}

/// Verifies all search indexes of these tables, with a bar; `None` where that was interrupted.
pub(in crate::cli) fn all(tables: &[Arc<Table>], interrupt: &Interrupt) -> Result<Option<Vec<Description>>, Error> {
    let indexes: Vec<&SearchIndex> = tables.iter().flat_map(|table| &table.indexes).collect();
    let rows = indexes.iter().filter_map(|index| index.form.as_ref().ok()).map(|form| form.rows()).sum();
    let done = Arc::new(AtomicU64::new(0));
    let of_bar = done.clone();
    let watched = Watched::new(interrupt.clone(), rows, move || of_bar.load(Ordering::Relaxed))?;
    let mut verified = Vec::with_capacity(indexes.len());
    for index in indexes {
        let mut failure = None;
        if let Ok(form) = &index.form {
            watched.say(&printable(&index.path));
            let count = |rows| {
                done.fetch_add(rows, Ordering::Relaxed);
            };
            match indexes::verify(form, interrupt, &count) {
                Ok(indexes::Verdict::Unverifiable { why }) => failure = Some(why),
                Ok(_) => {}
                Err(_) if interrupt.is_raised() => return Ok(None),
                Err(error) => failure = Some(error.to_string()),
            }
        }
        let mut said = describe(index);
        if let Some(reason) = failure {
            (said.verdict, said.found) = (State::Unverifiable, Some(reason));
        }
        verified.push(said);
    }
    drop(watched);
    Ok(Some(verified))
}
