//! Builds and removes search indexes, and writes tables.
//!
//! | part | what it does |
//! | --- | --- |
//! | `options` | holds the user's options for search indexes |
//! | `subject` | describes the column to index, and how its table stores indexes |
//! | `stored` | encodes values as the column stores them |
//! | `content` | computes the contents of an index, on all cores |
//! | `commits` | writes an index, in several commits |
//! | `removal` | plans the commits that remove an index |
//! | `table` | writes tables |

mod commits;
mod content;
mod options;
mod removal;
mod steps;
mod stored;
mod subject;
pub mod table;

use std::sync::Arc;

pub use options::Options;

use self::content::{EncodedIndex, IndexSettings};
use self::subject::IndexedColumn;
use crate::dialects::index_writer::{Computed, Error, IndexKind, IndexPlan, IndexWriter, ListedIndex};
use crate::h5::WritingClient;
use crate::source::Interrupt;
use crate::store::File;
use crate::table::Table;

/// Writes and removes search indexes for tables of HEP001.
#[derive(Clone, Debug)]
pub struct Hep001IndexWriter {
    options: Options,
}

impl Hep001IndexWriter {
    /// A writer with these options.
    pub fn new(options: Options) -> Self {
        Self { options }
    }
}

impl IndexWriter for Hep001IndexWriter {
    fn plan(
        &self,
        file: &Arc<File>,
        table: &Table,
        column: &[u8],
        interrupt: &Interrupt,
    ) -> Result<Box<dyn IndexPlan>, Error> {
        let subject = IndexedColumn::new(file, table, column, &self.options, interrupt)?;
        Ok(Box::new(Planned { subject, false_positives: self.options.bloom_fpp }))
    }

    fn listed(
        &self,
        file: &Arc<File>,
        table: &Table,
        column: Option<&str>,
        kinds: &[IndexKind],
        interrupt: &Interrupt,
    ) -> Result<Vec<ListedIndex>, Error> {
        removal::listed(file, table, column, kinds, interrupt)
    }
}

struct Planned {
    subject: IndexedColumn,
    false_positives: f64,
}

impl IndexPlan for Planned {
    fn rows(&self) -> u64 {
        self.subject.rows
    }

    fn passes(&self, kind: IndexKind) -> u64 {
        content::passes(kind)
    }

    fn compute(
        &self,
        kind: IndexKind,
        memory: u64,
        progress: &(dyn Fn(u64) + Sync),
        interrupt: &Interrupt,
    ) -> Result<Box<dyn Computed + '_>, Error> {
        let settings = IndexSettings { false_positives: self.false_positives, seed: 0, memory };
        let content = content::compute(&self.subject, kind, &settings, progress, interrupt)?;
        Ok(Box::new(Ready { subject: &self.subject, kind, content }))
    }
}

struct Ready<'a> {
    subject: &'a IndexedColumn,
    kind: IndexKind,
    content: EncodedIndex,
}

impl Computed for Ready<'_> {
    fn write(
        &self,
        writing: &mut WritingClient<'_>,
        description: &str,
        interrupt: &Interrupt,
    ) -> Result<String, Error> {
        commits::write(writing, self.subject, self.kind, &self.content, description, interrupt)
    }
}

/// The value of the attribute `KIND` of an index.
fn name_of(kind: IndexKind) -> &'static str {
    match kind {
        IndexKind::MinMax => "CHUNK_MINMAX",
        IndexKind::Sorted => "SORTED_ROWS",
        IndexKind::Bitmap => "BITMAP",
        IndexKind::Bloom => "CHUNK_BLOOM",
    }
}
