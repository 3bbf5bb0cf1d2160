//! `hepfs index drop SOURCE:table [--column NAME] [--kind KIND,…]`

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;

use crate::cli::Error;
use crate::cli::indexing::{LockedTable, lock};
use crate::cli::options::ReadingOptions;
use crate::cli::place::short_name;
use crate::cli::progress::Watched;
use crate::producer;
use crate::producer::indexes::IndexKind;
use crate::session::Settings;
use crate::views::printable;

/// Remove search indexes from an HDF5 file
///
/// The file must not be open elsewhere: the command takes the HDF5 lock. The file does not shrink; `h5repack` frees the
/// space. Without --column and --kind all indexes of the table go, those of unknown kinds too.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hepfs index drop run.h5:run_042 --column ts --kind sorted")]
pub(super) struct Arguments {
    /// An HDF5 file, and the path of a table in it as a mount would show it
    #[arg(value_name = "SOURCE:TABLE")]
    place: OsString,

    /// Only indexes of this column
    #[arg(long, value_name = "NAME")]
    column: Option<String>,

    /// Only indexes of these kinds
    #[arg(long, value_enum, value_delimiter = ',')]
    kind: Vec<IndexKind>,

    #[command(flatten)]
    reading: ReadingOptions,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let watched = Watched::new(short_name(&arguments.place), "dropping indexes")?;
    let interrupt = &watched.interrupt;
    let locked = lock(&arguments.place)?;
    let session = arguments.reading.session(Settings::default())?;
    let opened = LockedTable::new(&arguments.place, session, &watched)?;
    let listed = opened.listed(arguments.column.as_deref(), &arguments.kind, interrupt)?;
    if listed.is_empty() {
        return Err(Error::Usage(format!("{}: no such search index", arguments.place.display())));
    }
    let workers = opened.place.session.workers.clone();
    drop(opened);
    let mut writing = locked.writer(&workers, interrupt).map_err(producer::Error::from)?;
    for index in listed {
        index.remove(&mut writing, interrupt)?;
        watched.write(&format!("{}  dropped", printable(&index.path)))?;
    }
    Ok(ExitCode::SUCCESS)
}
