//! `hepfs index build SOURCE:table --column NAME --kind KIND,…`

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::Args;

use super::opened::{Opened, lock};
use crate::cli::Error;
use crate::cli::options::{self, Reading};
use crate::cli::progress::Watched;
use crate::cli::signals::INTERRUPTED;
use crate::dialects::index_writer::{Kind, Plan};
use crate::dialects::{IndexOptions, index_writer};
use crate::fs::tree::printable;
use crate::h5::Exclusive;
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
    // Refuse before anything is changed.
    let opened = Opened::new(&arguments.place, &arguments.reading, &interrupt)?;
    let mut all = 0;
    for column in &arguments.column {
        let plan = arguments.plan(&opened, column, &interrupt)?;
        all += kinds.iter().map(|kind| plan.rows().saturating_mul(plan.passes(*kind))).sum::<u64>();
    }
    drop(opened);
    let done = Arc::new(AtomicU64::new(0));
    let shown = done.clone();
    let watched = Watched::new(interrupt.clone(), all, move || shown.load(Ordering::Relaxed))?;
    let mut outcome = Ok(());
    'all: for column in &arguments.column {
        for kind in &kinds {
            outcome = arguments.one(&locked, column, *kind, &done, &watched, &interrupt);
            if outcome.is_err() {
                break 'all;
            }
        }
    }
    drop(watched);
    if interrupt.is_raised() {
        eprintln!("hepfs: interrupted; what is listed above is in the file");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    outcome.map(|()| ExitCode::SUCCESS)
}

impl Arguments {
    fn plan(&self, opened: &Opened, column: &str, interrupt: &Interrupt) -> Result<Box<dyn Plan>, Error> {
        let writer = opened.writer(&self.options)?;
        Ok(writer.plan(&opened.file, &opened.table, column.as_bytes(), interrupt)?)
    }

    fn one(
        &self,
        locked: &Exclusive,
        column: &str,
        kind: Kind,
        done: &AtomicU64,
        watched: &Watched,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        let begun = Instant::now();
        let opened = Opened::new(&self.place, &self.reading, interrupt)?;
        let plan = self.plan(&opened, column, interrupt)?;
        let memory = self.memory.unwrap_or_else(|| crate::store::machine_memory() / 2);
        let progress = |rows| {
            done.fetch_add(rows, Ordering::Relaxed);
        };
        let index = plan.compute(kind, memory, &progress, interrupt)?;
        // The column must be what was read until the file changes, which it does by us alone.
        opened.file.check().map_err(index_writer::Error::from)?;
        let old = opened.listed(Some(column), &[kind], interrupt)?;
        let workers = opened.place.context.workers.clone();
        drop(opened);
        let mut writing = locked.writer(&workers, interrupt).map_err(index_writer::Error::from)?;
        for old in &old {
            old.remove(&mut writing, interrupt)?;
        }
        let path = index.write(&mut writing, &description(), interrupt)?;
        let seconds = begun.elapsed().as_secs_f64();
        let what = if old.is_empty() { "built" } else { "replaced" };
        let line = format!("{}  {} rows  {seconds:.3} s  {what}", printable(&path), plan.rows());
        watched.write(&line)
    }
}

/// Where an index comes from.
fn description() -> String {
    let seconds = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
    format!("Built by hepfs {} at {} s since 1970-01-01 UTC.", env!("CARGO_PKG_VERSION"), seconds)
}
