//! The interface through which commands write search indexes. The dialect of a table implements it.
//!
//! ```text
//! dialects::index_writer(table) ─► plan(column) ─► compute(kind) ─► write
//!                              └─► listed(column, kinds) ─► remove
//! ```
//!
//! Commands know the table, its columns and [`IndexKind`]s. The dialect knows names, drafts and the steps of a commit.

use std::sync::Arc;

use clap::ValueEnum;

use crate::h5::steps::Step;
use crate::h5::{WriteError, WritingClient};
use crate::source::Interrupt;
use crate::store::{self, File};
use crate::table::Table;

/// Why an index was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The table or column cannot have such an index.
    #[error("{path}: {reason}")]
    Refused {
        /// HDF5 path of the column, table or index.
        path: String,
        /// The rule that is broken, and how.
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
    /// The error for a table, column or index that is refused for this reason.
    pub(super) fn refused(path: &str, reason: impl Into<String>) -> Self {
        Error::Refused { path: path.to_owned(), reason: reason.into() }
    }
}

/// A kind of search index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum IndexKind {
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

/// Writes and removes search indexes of a dialect's tables.
pub trait IndexWriter {
    /// Checks whether a column can have search indexes, and gathers what writing one needs.
    ///
    /// # Errors
    /// The table or the column cannot have an index, or cannot be read.
    fn plan(
        &self,
        file: &Arc<File>,
        table: &Table,
        column: &[u8],
        interrupt: &Interrupt,
    ) -> Result<Box<dyn IndexPlan>, Error>;

    /// Lists the search indexes of a table that cover `column` and are of one of `kinds`; without these, all of them.
    ///
    /// # Errors
    /// A group that holds search indexes cannot be listed.
    fn listed(
        &self,
        file: &Arc<File>,
        table: &Table,
        column: Option<&str>,
        kinds: &[IndexKind],
        interrupt: &Interrupt,
    ) -> Result<Vec<ListedIndex>, Error>;
}

/// A column for which indexes can be built.
pub trait IndexPlan {
    /// Number of rows of the column.
    fn rows(&self) -> u64;

    /// Number of passes over the column that an index of this kind takes.
    fn passes(&self, kind: IndexKind) -> u64;

    /// Computes an index in at most `memory` bytes. Reports the rows of each pass to `progress` as they are done.
    ///
    /// # Errors
    /// The column cannot have such an index or cannot be read, or memory does not suffice.
    fn compute(
        &self,
        kind: IndexKind,
        memory: u64,
        progress: &(dyn Fn(u64) + Sync),
        interrupt: &Interrupt,
    ) -> Result<Box<dyn Computed + '_>, Error>;
}

/// An index that is computed, but not yet written.
pub trait Computed {
    /// Writes the index, and makes its column list it. Returns its HDF5 path.
    ///
    /// # Errors
    /// See [`Error`]. The file is then unchanged, or holds the index, but the column does not list it.
    fn write(&self, writing: &mut WritingClient<'_>, description: &str, interrupt: &Interrupt)
    -> Result<String, Error>;
}

/// An index that a table lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedIndex {
    /// HDF5 path of the index.
    pub path: String,
    /// The steps that remove the index, each a commit of its own: the file is valid after each of them.
    pub removal: Vec<Step>,
}

impl ListedIndex {
    /// Removes the index. The file keeps the space that the index took.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn remove(&self, writing: &mut WritingClient<'_>, interrupt: &Interrupt) -> Result<(), Error> {
        for step in &self.removal {
            for step in [Step::Begin, step.clone(), Step::Commit { removes: true }] {
                writing.step(step, interrupt)?;
            }
        }
        Ok(())
    }
}
