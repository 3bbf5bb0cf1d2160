//! Builds, lists and removes search indexes.
//!
//! Each part imports from those above it in this list:
//!
//! | part | what it does |
//! | --- | --- |
//! | `kind` | names the kinds of indexes |
//! | `options` | holds the user's options |
//! | `stored` | encodes values as the column stores them |
//! | `subject` | describes the column to index, and how its table stores indexes |
//! | `content` | computes the contents of an index, on all cores |
//! | `commits` | writes an index, in several commits |
//! | `removal` | lists indexes, and plans the commits that remove one |

mod commits;
mod content;
mod kind;
mod options;
mod removal;
mod stored;
mod subject;

use std::sync::Arc;

pub use kind::IndexKind;
pub use options::Options;
pub use removal::{ListedIndex, listed};

use content::{EncodedIndex, IndexSettings};
use subject::IndexedColumn;

use super::Error;
use crate::h5::WritingClient;
use crate::source::Interrupt;
use crate::store::File;
use crate::table::Table;

/// A column for which search indexes can be built.
#[derive(Debug)]
pub struct IndexPlan {
    subject: IndexedColumn,
    false_positives: f64,
}

impl IndexPlan {
    /// Checks whether a column can have search indexes, and gathers what writing one needs.
    ///
    /// # Errors
    /// The table or the column cannot have an index, or cannot be read.
    pub fn new(
        file: &Arc<File>,
        table: &Table,
        column: &[u8],
        options: &Options,
        interrupt: &Interrupt,
    ) -> Result<Self, Error> {
        let subject = IndexedColumn::new(file, table, column, options, interrupt)?;
        Ok(Self { subject, false_positives: options.bloom_fpp })
    }

    /// Number of rows of the column.
    pub fn rows(&self) -> u64 {
        self.subject.rows
    }

    /// Computes an index in at most `memory` bytes. Reports the rows of each pass to `progress` as they are done.
    ///
    /// # Errors
    /// The column cannot have such an index or cannot be read, or memory does not suffice.
    pub fn compute(
        &self,
        kind: IndexKind,
        memory: u64,
        progress: &(dyn Fn(u64) + Sync),
        interrupt: &Interrupt,
    ) -> Result<ComputedIndex<'_>, Error> {
        let settings = IndexSettings { false_positives: self.false_positives, seed: 0, memory };
        let content = content::compute(&self.subject, kind, &settings, progress, interrupt)?;
        Ok(ComputedIndex { subject: &self.subject, kind, content })
    }
}

/// An index that is computed, but not yet written.
#[derive(Debug)]
pub struct ComputedIndex<'a> {
    subject: &'a IndexedColumn,
    kind: IndexKind,
    content: EncodedIndex,
}

impl ComputedIndex<'_> {
    /// Writes the index, and makes its column list it. Returns its HDF5 path.
    ///
    /// # Errors
    /// See [`Error`]. The file is then unchanged, or holds the index, but the column does not list it.
    pub fn write(
        &self,
        writing: &mut WritingClient<'_>,
        description: &str,
        interrupt: &Interrupt,
    ) -> Result<String, Error> {
        commits::write(writing, self.subject, self.kind, &self.content, description, interrupt)
    }
}
