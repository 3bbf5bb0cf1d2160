//! Writing search indexes: what commands ask of the dialect of a table.
//!
//! ```text
//! dialects::index_writer(table) ─► plan(column) ─► compute(kind) ─► write
//!                              └─► listed(column, kinds) ─► remove
//! ```
//!
//! Commands know the table, its columns and [`Kind`]s. Names, drafts and the steps of a commit are the dialect's.

use std::sync::Arc;

use clap::ValueEnum;

use crate::h5::steps::Step;
use crate::h5::{WriteError, Writing};
use crate::source::Interrupt;
use crate::store::{self, File};
use crate::table::Table;

/// Why an index was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The table or column takes no such index.
    #[error("{path}: {reason}")]
    Refused {
        /// HDF5 path of the column, table or index.
        path: String,
        /// The rule, and what was found.
        reason: String,
    },
    /// The column cannot be read.
    #[error(transparent)]
    Read(#[from] store::Error),
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl Error {
    /// A table or column that cannot have an index, and why.
    pub(super) fn refused(path: &str, reason: impl Into<String>) -> Self {
        Error::Refused { path: path.to_owned(), reason: reason.into() }
    }
}

/// A kind of search index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Kind {
    /// CHUNK_MINMAX: minimum and maximum of each chunk
    #[value(name = "minmax")]
    MinMax,
    /// SORTED_ROWS: rows in the order of their values
    Sorted,
    /// BITMAP: the rows of each distinct value
    Bitmap,
    /// CHUNK_BLOOM: a Bloom filter of each chunk
    Bloom,
}

/// Writes the search indexes of the tables of a dialect.
pub trait IndexWriter {
    /// Checks whether a column can have search indexes, and gathers what writing one takes.
    ///
    /// # Errors
    /// Where the table or the column can have none, or cannot be read.
    fn plan(
        &self,
        file: &Arc<File>,
        table: &Table,
        column: &[u8],
        interrupt: &Interrupt,
    ) -> Result<Box<dyn Plan>, Error>;

    /// The indexes of a table that are of this column, or any, and of these kinds, or any.
    ///
    /// # Errors
    /// Where the groups that hold them cannot be listed.
    fn listed(
        &self,
        file: &Arc<File>,
        table: &Table,
        column: Option<&str>,
        kinds: &[Kind],
        interrupt: &Interrupt,
    ) -> Result<Vec<Listed>, Error>;
}

/// A column of which indexes can be built.
pub trait Plan {
    /// Rows of the column.
    fn rows(&self) -> u64;

    /// Passes over the column that an index of this kind takes.
    fn passes(&self, kind: Kind) -> u64;

    /// Computes an index in at most `memory` bytes; tells `progress` of the rows of each pass.
    ///
    /// # Errors
    /// Where the column cannot be indexed so, memory does not suffice, or the column cannot be read.
    fn compute(
        &self,
        kind: Kind,
        memory: u64,
        progress: &(dyn Fn(u64) + Sync),
        interrupt: &Interrupt,
    ) -> Result<Box<dyn Computed + '_>, Error>;
}

/// An index that is computed and lies in memory.
pub trait Computed {
    /// Writes it and makes the table list it; answers its HDF5 path.
    ///
    /// # Errors
    /// See [`Error`]. The file is as it was, or has the index without the table listing it.
    fn write(&self, writing: &mut Writing<'_>, description: &str, interrupt: &Interrupt) -> Result<String, Error>;
}

/// An index that a table lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// HDF5 path.
    pub path: String,
    /// What takes it away, each step a commit: after any of them the file is whole.
    pub removal: Vec<Step>,
}

impl Listed {
    /// Takes the index away. The space that it took stays in the file.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn remove(&self, writing: &mut Writing<'_>, interrupt: &Interrupt) -> Result<(), Error> {
        for step in &self.removal {
            for step in [Step::Begin, step.clone(), Step::Commit { removes: true }] {
                writing.step(step, interrupt)?;
            }
        }
        Ok(())
    }
}
