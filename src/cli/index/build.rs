//! `hepfs index build SOURCE:table --column NAME --kind KIND,…`

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::{Args, ValueEnum};

use super::{Opened, Wanted, lock, remove};
use crate::cli::Error;
use crate::cli::options::{self, Reading};
use crate::cli::progress::Watched;
use crate::cli::signals::INTERRUPTED;
use crate::dialects::hep001::write::content::{self, Settings};
use crate::dialects::hep001::write::{self as building, Kind, Revision, Subject, commits};
use crate::fs::tree::printable;
use crate::h5::Exclusive;
use crate::h5::steps::References;
use crate::source::Interrupt;

/// Build search indexes of a column into its HDF5 file
///
/// The file must be open nowhere else: the HDF5 lock is taken for the whole run. Everything is computed before the file is touched,
/// one index after the other; one of the same kind that the column has already is replaced. A mount of the file shows the new
/// index a moment later. If the run is ended, however it is, the file stays readable, with the index or without; what is left of
/// a half-made change (`hepfs check` tells of it) is undone by the next `hepfs index build` or `drop`.
///
/// A table with NROWS gets indexes of HEP001's July revision, any other one those of April: --revision insists on one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hepfs index build run.h5:run_042 --column ts --kind minmax,sorted\n  \
    hepfs index build run.h5:run_042 --column label --kind bitmap")]
pub(super) struct Arguments {
    /// An HDF5 file, and the path of a table in it as a mount would show it
    #[arg(value_name = "SOURCE:TABLE")]
    place: String,

    /// Columns to build indexes of
    #[arg(long, value_name = "NAME", value_delimiter = ',', required = true)]
    column: Vec<String>,

    /// Kinds of index
    #[arg(long, value_enum, value_delimiter = ',', required = true)]
    kind: Vec<Wanted>,

    /// Revision of HEP001 to follow
    #[arg(long, value_enum)]
    revision: Option<Draft>,

    /// How references are stored [default: as the table does already, else `standard`]. `standard` is H5T_STD_REF, which HEP001
    /// July demands and h5py cannot read; `object` is H5T_STD_REF_OBJ, which h5py and h5col read
    #[arg(long, value_enum)]
    references: Option<Stored>,

    /// Share of absent values that the filter of a chunk does not recognise as absent (kind bloom)
    #[arg(long, value_name = "SHARE", default_value_t = 0.01, value_parser = share)]
    bloom_fpp: f64,

    /// Memory that an index may take while it is built [default: half of the memory]
    #[arg(long, value_name = "SIZE", value_parser = options::size)]
    memory: Option<u64>,

    #[command(flatten)]
    reading: Reading,
}

/// A draft of HEP001.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Draft {
    /// July 2026
    July,
    /// April 2026
    April,
}

/// How references are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stored {
    /// H5T_STD_REF
    Standard,
    /// H5T_STD_REF_OBJ
    Object,
}

fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| format!("{text:?} is no number"))?;
    if share > 0.0 && share < 1.0 { Ok(share) } else { Err(format!("{text} does not lie between 0 and 1")) }
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let interrupt = Interrupt::new();
    let locked = lock(&arguments.place)?;
    let mut kinds: Vec<Kind> = arguments.kind.iter().map(|kind| kind.kind()).collect();
    kinds.sort();
    kinds.dedup();
    // Whatever would be refused is, before anything is changed.
    let opened = Opened::new(&arguments.place, &arguments.reading, &interrupt)?;
    let mut all = 0;
    for column in &arguments.column {
        let rows = arguments.subject(&opened, column, &interrupt)?.rows;
        all += kinds.iter().map(|kind| rows.saturating_mul(content::passes(*kind))).sum::<u64>();
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
    fn subject(&self, opened: &Opened, column: &str, interrupt: &Interrupt) -> Result<Subject, Error> {
        let revision = self.revision.map(|draft| match draft {
            Draft::July => Revision::July,
            Draft::April => Revision::April,
        });
        let references = self.references.map(|stored| match stored {
            Stored::Standard => References::Standard,
            Stored::Object => References::Object,
        });
        let (file, table) = (&opened.file, &opened.table);
        Ok(Subject::new(file, table, column.as_bytes(), revision, references, interrupt)?)
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
        let subject = self.subject(&opened, column, interrupt)?;
        let settings = Settings {
            false_positives: self.bloom_fpp,
            seed: 0,
            memory: self.memory.unwrap_or_else(|| crate::store::memory() / 2),
        };
        let progress = |rows| {
            done.fetch_add(rows, Ordering::Relaxed);
        };
        let content = content::compute(&subject, kind, &settings, &progress, interrupt)?;
        // The column must be what was read until the file changes, which it does by us alone.
        opened.file.check().map_err(building::Error::from)?;
        let old = remove::found(&opened, Some(column), &[kind], interrupt)?;
        let workers = opened.place.context.workers.clone();
        drop(opened);
        let mut writing = locked.writer(&workers, interrupt).map_err(building::Error::from)?;
        for doomed in &old {
            commits::remove(&mut writing, &subject.table, &subject.names, doomed, interrupt)?;
        }
        let description = description();
        let path = commits::write(&mut writing, &subject, kind, &content, &description, interrupt)?;
        let seconds = begun.elapsed().as_secs_f64();
        let what = if old.is_empty() { "built" } else { "replaced" };
        let line = format!("{}  {} rows  {seconds:.3} s  {what}", printable(&path), subject.rows);
        watched.write(&line)
    }
}

/// Where an index comes from.
fn description() -> String {
    let seconds = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
    format!("Built by hepfs {} at {} s since 1970-01-01 UTC.", env!("CARGO_PKG_VERSION"), seconds)
}
