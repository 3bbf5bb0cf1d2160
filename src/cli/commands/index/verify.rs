//! `hepfs index verify SOURCE[:table]`.

use std::process::ExitCode;

use clap::Args;

use super::found::FoundTables;
use super::report;
use crate::activity::Unit;
use crate::cli::Error;
use crate::cli::place::NamedPlaces;
use crate::cli::progress::Watched;
use crate::cli::signals::INTERRUPTED;
use crate::cli::tables::InFile;
use crate::indexes::{self, IndexDescription, State, describe};
use crate::session::Settings;

/// Compare search indexes with their columns, in full
///
/// Mounts and queries use an index once it is verified (--indexes). The cache folder keeps the verdict until the file
/// changes, and the statistics of the columns read. Exit code: 0 if every index is right; 1 if one is wrong, stale or
/// breaks a rule, or a command that writes ended while it changed a file; 2 if one could not be verified.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// Print a JSON object per line, as in .hepfs/indexes
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    named: NamedPlaces,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    arguments.named.each(&Settings::default(), ("verifying", 2), |asked, watched| {
        let place = asked.find_settled(&watched.interrupt)?;
        let FoundTables { files, failed, is_unfinished } = FoundTables::new(&place, watched)?;
        watched.step(Unit::Rows, rows(&files));
        let Some(verified) = all(&files, watched)? else {
            say!("hepfs: interrupted; results so far stay in the cache");
            return Ok(INTERRUPTED);
        };
        report::write(&files, &verified, arguments.json)?;
        let mut said = verified.iter().flatten();
        let failed = failed || said.clone().any(report::has_failed);
        Ok(report::exit_code(failed, is_unfinished || said.any(|one| one.is_fault)))
    })
}

/// Rows to read to verify all search indexes of the tables of these files.
pub(in crate::cli) fn rows(files: &[InFile]) -> u64 {
    let forms = files.iter().flat_map(InFile::indexes).filter_map(|(_, index)| index.form.as_ref().ok());
    forms.map(|form| form.rows()).fold(0, u64::saturating_add)
}

/// Verifies all search indexes of the tables of these files, and counts their rows as done; returns the descriptions
/// per file. `None` if it was interrupted.
pub(in crate::cli) fn all(files: &[InFile], watched: &Watched) -> Result<Option<Vec<Vec<IndexDescription>>>, Error> {
    let interrupt = &watched.interrupt;
    let mut verified = Vec::with_capacity(files.len());
    for file in files {
        let mut of_file = Vec::new();
        for (table, index) in file.indexes() {
            let mut failure = None;
            if let Ok(form) = &index.form {
                watched.name(&format!("{}{}", file.prefix, index.path), "verifying");
                match indexes::verify(form, interrupt, &|rows| watched.add(rows)) {
                    Ok(indexes::Verdict::Unverifiable { why }) => failure = Some(why),
                    Ok(_) => {}
                    Err(_) if interrupt.is_raised() => return Ok(None),
                    Err(error) => failure = Some(error.to_string()),
                }
            }
            let mut said = describe(&file.source, &table.path, index);
            if let Some(reason) = failure {
                (said.verdict, said.found) = (State::Unverifiable, Some(reason));
            }
            of_file.push(said);
        }
        verified.push(of_file);
    }
    Ok(Some(verified))
}
