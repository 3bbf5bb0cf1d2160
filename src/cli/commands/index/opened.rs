//! A table whose file is locked for writing.

use std::ffi::OsStr;
use std::sync::Arc;

use crate::cli::Error;
use crate::cli::options::Reading;
use crate::cli::place::{self, Place};
use crate::cli::tables::table_of;
use crate::dialects::index_writer::{self, IndexWriter, Kind, Listed};
use crate::dialects::{self, IndexOptions};
use crate::fs::tree::ViewOptions;
use crate::h5::Exclusive;
use crate::source::Interrupt;
use crate::store::File;
use crate::table::Table;

/// A table in a file that is locked for writing. It is opened anew after each change of the file.
pub(super) struct Opened {
    pub place: Place,
    pub table: Arc<Table>,
    pub file: Arc<File>,
}

impl Opened {
    pub fn new(text: &OsStr, reading: &Reading, interrupt: &Interrupt) -> Result<Self, Error> {
        let place = Place::open(text, reading.context(ViewOptions::default())?, interrupt)?;
        let table = table_of(&place, false, interrupt)?;
        let several = |_| Error::Usage(format!("{}: not a table of one file", place.name));
        let [file] = <[_; 1]>::try_from(place.context.files()).map_err(several)?;
        Ok(Self { place, table, file })
    }

    /// What writes the search indexes of the table.
    pub fn writer(&self, options: &IndexOptions) -> Result<Box<dyn IndexWriter>, Error> {
        Ok(dialects::index_writer(&self.table, options)?)
    }

    /// The search indexes that are of this column, or any, and of these kinds, or any.
    pub fn listed(&self, column: Option<&str>, kinds: &[Kind], interrupt: &Interrupt) -> Result<Vec<Listed>, Error> {
        let writer = self.writer(&IndexOptions::default())?;
        Ok(writer.listed(&self.file, &self.table, column, kinds, interrupt)?)
    }
}

/// Locks the file of `SOURCE:table` for writing.
pub(super) fn lock(text: &OsStr) -> Result<Exclusive, Error> {
    let (source, _) = place::split(text);
    if source.is_dir() {
        return Err(Error::Usage(format!("{}: a folder: name one HDF5 file in it, and the table", text.display())));
    }
    let locked = Exclusive::open(&source).map_err(index_writer::Error::from)?;
    if locked.was_put_back() {
        eprintln!("hepfs: an earlier run was ended while it changed the file: it is as it was before that run");
    }
    Ok(locked)
}
