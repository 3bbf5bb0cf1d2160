//! `hepfs index build SOURCE:table --column NAME --kind KIND,…`

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;

use crate::activity::Unit;
use crate::cli::Error;
use crate::cli::indexing::{IndexBuilder, lock};
use crate::cli::options::ReadingOptions;
use crate::cli::place::short_name;
use crate::cli::progress::Watched;
use crate::cli::signals::INTERRUPTED;
use crate::cli::sizes::size;
use crate::producer::indexes::{IndexKind, Options};
use crate::session::Settings;

/// Build search indexes of columns, in their HDF5 file
///
/// The file must not be open elsewhere: the command holds the HDF5 lock. Each index is computed before the file is
/// touched, one after the other, and replaces one of the same kind. A mount of the file shows the new index a moment
/// later. If the run is killed, the file stays readable, with the index or without; after a power loss perhaps not. The
/// next command that writes to the file undoes a half-made change, which `hepfs check` reports.
///
/// A table with NROWS gets indexes of HEP001's July revision, any other one those of April; --revision insists on one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hepfs index build run.h5:run_042 --column ts --kind minmax,sorted\n  \
    hepfs index build run.h5:run_042 --column label --kind bitmap")]
pub(super) struct Arguments {
    /// An HDF5 file, and the path of a table in it as a mount would show it
    #[arg(value_name = "SOURCE:TABLE")]
    place: OsString,

    /// Columns to index
    #[arg(long, value_name = "NAME", value_delimiter = ',', required = true)]
    column: Vec<String>,

    /// Kinds of index
    #[arg(long, value_enum, value_delimiter = ',', required = true)]
    kind: Vec<IndexKind>,

    #[command(flatten)]
    options: Options,

    /// Memory for building one index [default: half of RAM]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<u64>,

    #[command(flatten)]
    reading: ReadingOptions,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let watched = Watched::new(short_name(&arguments.place), "indexing")?;
    let locked = lock(&arguments.place)?;
    let mut kinds = arguments.kind.clone();
    kinds.sort();
    kinds.dedup();
    let builder = IndexBuilder {
        place: &arguments.place,
        session: &|| arguments.reading.session(Settings::default()),
        locked: &locked,
        options: &arguments.options,
        memory: arguments.memory.unwrap_or_else(|| crate::store::machine_memory() / 2),
        watched: &watched,
    };
    // Refuse before any change.
    let columns = builder.listed(&arguments.column)?;
    let each = || columns.iter().flat_map(|column| kinds.iter().map(move |kind| (column.as_str(), *kind)));
    watched.step(Unit::Rows, builder.rows(each())?);
    let outcome = each().try_for_each(|(column, kind)| watched.write(&builder.build(column, kind)?));
    if watched.interrupt.is_raised() {
        say!("hepfs: interrupted; the indexes listed above are in the file");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    outcome.map(|()| ExitCode::SUCCESS)
}
