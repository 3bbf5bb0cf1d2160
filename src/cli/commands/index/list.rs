//! `hepfs index list SOURCE[:table]`.

use std::process::ExitCode;

use clap::Args;

use super::found::FoundTables;
use super::report;
use crate::cli::Error;
use crate::cli::place::NamedPlaces;
use crate::cli::tables::InFile;
use crate::indexes::{IndexDescription, describe};
use crate::session::Settings;

/// List the search indexes of tables, and what is known of each
///
/// Reads no index and no column. Exit code: 0 if every table was listed, whatever is known of its indexes; 1 if a
/// command that writes ended while it changed a file; 2 if a directory could not be listed.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// Print a JSON object per line, as in .hepfs/indexes
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    named: NamedPlaces,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    arguments.named.each(&Settings::default(), ("listing", 2), |asked, watched| {
        let place = asked.find(&watched.interrupt)?;
        let FoundTables { files, failed, is_unfinished } = FoundTables::new(&place, watched)?;
        let described: Vec<_> = files.iter().map(described).collect();
        report::write(&files, &described, arguments.json)?;
        Ok(report::exit_code(failed, is_unfinished))
    })
}

fn described(file: &InFile) -> Vec<IndexDescription> {
    file.indexes().map(|(table, index)| describe(&file.source, &table.path, index)).collect()
}
