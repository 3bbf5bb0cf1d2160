//! `hepfs index …`: the search indexes of tables.

mod build;
pub(super) mod list;
mod remove;
pub(super) mod verify;

use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};

use super::Error;
use super::options::Reading;
use super::place::{self, Place};
use super::tables::{self, Below};
use crate::dialects::hep001::write::{self as building, Kind};
use crate::fs::tree::printable;
use crate::h5::Exclusive;
use crate::source::Interrupt;
use crate::store::File;
use crate::table::Table;

/// List, verify, build and drop the search indexes of tables
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(list::Arguments),
    Verify(verify::Arguments),
    Build(build::Arguments),
    Drop(remove::Arguments),
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    match &arguments.command {
        Command::List(arguments) => list::run(arguments),
        Command::Verify(arguments) => verify::run(arguments),
        Command::Build(arguments) => build::run(arguments),
        Command::Drop(arguments) => remove::run(arguments),
    }
}

/// A kind of search index, as it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Wanted {
    /// CHUNK_MINMAX: least and greatest value of each chunk
    Minmax,
    /// SORTED_ROWS: rows in the order of their values
    Sorted,
    /// BITMAP: the rows of each distinct value
    Bitmap,
    /// CHUNK_BLOOM: a filter for each chunk
    Bloom,
}

impl Wanted {
    fn kind(self) -> Kind {
        match self {
            Wanted::Minmax => Kind::MinMax,
            Wanted::Sorted => Kind::Sorted,
            Wanted::Bitmap => Kind::Bitmap,
            Wanted::Bloom => Kind::Bloom,
        }
    }
}

/// A table in a file that is locked for writing. It is opened anew after each change of the file.
struct Opened {
    place: Place,
    table: Arc<Table>,
    file: Arc<File>,
}

impl Opened {
    fn new(text: &str, reading: &Reading, interrupt: &Interrupt) -> Result<Self, Error> {
        let place = Place::find(text, reading)?;
        let table = place.table(interrupt)?;
        let several = |_| Error::Usage(format!("{}: not a table of one file", place.name));
        let [file] = <[_; 1]>::try_from(place.context.files()).map_err(several)?;
        Ok(Self { place, table, file })
    }
}

/// Tables below a place, with what is said of them on standard error.
struct Listed {
    below: Below,
    /// A run was ended while it changed one of the files.
    is_unfinished: bool,
}

impl Listed {
    fn new(place: &Place, interrupt: &Interrupt) -> Result<Self, Error> {
        let below = tables::below(place, interrupt)?;
        for (name, reason) in &below.failures {
            eprintln!("hepfs: {}: {}", printable(name), printable(reason));
        }
        let unfinished = place.context.unfinished();
        for finding in &unfinished {
            eprintln!("hepfs: {}", printable(&finding.found));
        }
        Ok(Self { below, is_unfinished: !unfinished.is_empty() })
    }
}

/// Locks the file of `SOURCE:table` for writing.
fn lock(text: &str) -> Result<Exclusive, Error> {
    let (source, _) = place::split(text);
    if source.is_dir() {
        return Err(Error::Usage(format!("{text}: a folder: name one HDF5 file in it, and the table")));
    }
    let locked = Exclusive::open(&source).map_err(building::Error::from)?;
    if locked.was_put_back() {
        eprintln!("hepfs: an earlier run was ended while it changed the file: it is as it was before that run");
    }
    Ok(locked)
}
