//! Changes the search indexes of a table whose file is locked for writing.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Instant;

use clap::ValueEnum;

use super::Error;
use super::place::{self, Place};
use super::progress::Watched;
use super::tables::table_of;
use crate::h5::Exclusive;
use crate::producer;
use crate::producer::indexes::{self, IndexKind, IndexPlan, ListedIndex};
use crate::session::Session;
use crate::source::Interrupt;
use crate::store::File;
use crate::table::{Table, listed};
use crate::views::printable;

/// A table in a file that is locked for writing. It is reopened after each change of the file.
pub(super) struct LockedTable {
    pub place: Place,
    pub table: Arc<Table>,
    pub file: Arc<File>,
}

impl LockedTable {
    pub fn new(text: &OsStr, session: Arc<Session>, watched: &Watched) -> Result<Self, Error> {
        let place = Place::open(text, session, &watched.interrupt)?;
        let table = table_of(&place, false, watched)?;
        let several = |_| Error::Usage(format!("{}: not a table of one file", place.name));
        let [file] = <[_; 1]>::try_from(place.session.files()).map_err(several)?;
        Ok(Self { place, table, file })
    }

    /// The search indexes of this column (`None`: any) and of these kinds (empty: any).
    pub fn listed(
        &self,
        column: Option<&str>,
        kinds: &[IndexKind],
        interrupt: &Interrupt,
    ) -> Result<Vec<ListedIndex>, Error> {
        Ok(indexes::listed(&self.file, &self.table, column, kinds, interrupt)?)
    }

    /// Columns with search indexes, and the buildable kind of each index.
    pub fn indexed(&self, interrupt: &Interrupt) -> Result<Vec<(String, IndexKind)>, Error> {
        let mut names: Vec<_> = self.table.indexes.iter().flat_map(|index| &index.columns).collect();
        names.sort_unstable();
        names.dedup();
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            let name = name.to_string();
            for kind in IndexKind::value_variants() {
                if !self.listed(Some(&name), &[*kind], interrupt)?.is_empty() {
                    found.push((name.clone(), *kind));
                }
            }
        }
        Ok(found)
    }
}

/// Locks the file of `SOURCE:table` for writing.
pub(super) fn lock(text: &OsStr) -> Result<Exclusive, Error> {
    let (source, _) = place::split(text);
    if source.is_dir() {
        return Err(Error::Usage(format!("{}: a folder: name one HDF5 file in it, and the table", text.display())));
    }
    let locked = Exclusive::open(&source).map_err(producer::Error::from)?;
    if locked.was_put_back() {
        say!("hepfs: an earlier run ended in the middle of a change: the file is back in its state before that run");
    }
    Ok(locked)
}

/// Builds search indexes of one table.
pub(super) struct IndexBuilder<'a> {
    /// The file and the path of the table in it.
    pub place: &'a OsStr,
    /// Opens the session for reading the file, each time it is opened.
    pub session: &'a dyn Fn() -> Result<Arc<Session>, Error>,
    pub locked: &'a Exclusive,
    pub options: &'a indexes::Options,
    /// Most bytes that an index may take while it is built.
    pub memory: u64,
    pub watched: &'a Watched,
}

impl IndexBuilder<'_> {
    fn open(&self) -> Result<LockedTable, Error> {
        LockedTable::new(self.place, (self.session)()?, self.watched)
    }

    fn plan(&self, opened: &LockedTable, column: &str) -> Result<IndexPlan, Error> {
        let (file, table) = (&opened.file, &opened.table);
        Ok(IndexPlan::new(file, table, column.as_bytes(), self.options, &self.watched.interrupt)?)
    }

    /// Splits a list of columns, whose names may contain commas.
    ///
    /// # Errors
    /// If the table cannot be opened.
    pub fn listed(&self, columns: &[String]) -> Result<Vec<String>, Error> {
        let opened = self.open()?;
        Ok(listed(columns, opened.table.columns.iter().map(|column| column.name.to_string())))
    }

    /// The number of rows to read for these indexes.
    ///
    /// # Errors
    /// If one cannot be built.
    pub fn rows<'a>(&self, all: impl IntoIterator<Item = (&'a str, IndexKind)>) -> Result<u64, Error> {
        let opened = self.open()?;
        let mut rows = 0_u64;
        for (column, kind) in all {
            let plan = self.plan(&opened, column)?;
            rows = rows.saturating_add(plan.rows().saturating_mul(kind.passes()));
        }
        Ok(rows)
    }

    /// Builds an index, replacing one of its kind; returns the line to print. Counts rows as done.
    ///
    /// # Errors
    /// If it cannot be built or written.
    pub fn build(&self, column: &str, kind: IndexKind) -> Result<String, Error> {
        let (begun, interrupt) = (Instant::now(), &self.watched.interrupt);
        let name = kind.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let opened = self.open()?;
        let plan = self.plan(&opened, column)?;
        self.watched.name(&format!("{column} {name}"), "indexing");
        let index = plan.compute(kind, self.memory, &|rows| self.watched.add(rows), interrupt)?;
        // The column must not change between the reading and the change of the file, which only this process makes.
        opened.file.check().map_err(producer::Error::from)?;
        let old = opened.listed(Some(column), &[kind], interrupt)?;
        let workers = opened.place.session.workers.clone();
        drop(opened);
        let mut writing = self.locked.writer(&workers, interrupt).map_err(producer::Error::from)?;
        for old in &old {
            old.remove(&mut writing, interrupt)?;
        }
        let path = index.write(&mut writing, &description(), interrupt)?;
        let seconds = begun.elapsed().as_secs_f64();
        let what = if old.is_empty() { "built" } else { "replaced" };
        Ok(format!("{}  {} rows  {seconds:.3} s  {what}", printable(&path), plan.rows()))
    }
}

/// The origin of an index, stored with it.
fn description() -> String {
    let seconds = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
    format!("Built by hepfs {} at {} s since 1970-01-01 UTC.", env!("CARGO_PKG_VERSION"), seconds)
}
