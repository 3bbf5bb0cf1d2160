//! `hepfs index build SOURCE:table --column NAME --kind KIND,…`

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;

use crate::cli::Error;
use crate::cli::indexing::{Builder, lock};
use crate::cli::options::{self, Reading};
use crate::cli::progress::Watched;
use crate::cli::signals::INTERRUPTED;
use crate::dialects::IndexOptions;
use crate::dialects::index_writer::Kind;
use crate::session::Settings;
use crate::source::Interrupt;

/// Build search indexes of a column into its HDF5 file
///
/// The file must be open nowhere else: the HDF5 lock is taken for the whole run. Everything is computed before the file
/// is touched, one index after the other; one of the same kind that the column has already is replaced. A mount of the
/// file shows the new index a moment later. If the run is ended, however it is, the file stays readable, with the index
/// or without; what is left of a half-made change (`hepfs check` tells of it) is undone by the next `hepfs index build`
/// or `drop`.
///
/// A table with NROWS gets indexes of HEP001's July revision, any other one those of April: --revision insists on one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hepfs index build run.h5:run_042 --column ts --kind minmax,sorted\n  \
    hepfs index build run.h5:run_042 --column label --kind bitmap")]
pub(super) struct Arguments {
    /// An HDF5 file, and the path of a table in it as a mount would show it
    #[arg(value_name = "SOURCE:TABLE")]
    place: OsString,

    /// Columns to build indexes of
    #[arg(long, value_name = "NAME", value_delimiter = ',', required = true)]
    column: Vec<String>,

    /// Kinds of index
    #[arg(long, value_enum, value_delimiter = ',', required = true)]
    kind: Vec<Kind>,

    #[command(flatten)]
    options: IndexOptions,

    /// Memory that an index may take while it is built [default: half of the memory]
    #[arg(long, value_name = "SIZE", value_parser = options::size)]
    memory: Option<u64>,

    #[command(flatten)]
    reading: Reading,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let interrupt = Interrupt::new();
    let locked = lock(&arguments.place)?;
    let mut kinds = arguments.kind.clone();
    kinds.sort();
    kinds.dedup();
    let builder = Builder {
        place: &arguments.place,
        session: &|| arguments.reading.session(Settings::default()),
        locked: &locked,
        options: &arguments.options,
        memory: arguments.memory.unwrap_or_else(|| crate::store::machine_memory() / 2),
        interrupt: &interrupt,
    };
    // Refuse before anything is changed.
    let columns = builder.listed(&arguments.column)?;
    let each = || columns.iter().flat_map(|column| kinds.iter().map(move |kind| (column.as_str(), *kind)));
    let all = builder.rows(each())?;
    let done = Arc::new(AtomicU64::new(0));
    let shown = done.clone();
    let watched = Watched::new(interrupt.clone(), all, move || shown.load(Ordering::Relaxed))?;
    let outcome = each().try_for_each(|(column, kind)| watched.write(&builder.build(column, kind, &done)?));
    drop(watched);
    if interrupt.is_raised() {
        say!("hepfs: interrupted; what is listed above is in the file");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    outcome.map(|()| ExitCode::SUCCESS)
}
