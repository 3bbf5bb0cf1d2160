//! The files shown: size and bytes of each. Pure layout over [`crate::store::Rows`]; no I/O of its own.

pub mod constant;
pub mod ipc;
pub mod json;
mod measure;
pub mod metadata;
mod misfit;
pub mod npy;
pub mod page;
mod pandas;
pub mod parquet;
pub mod png;
mod printable;
pub mod rendered;
pub mod text;
mod wanted;

use std::sync::Arc;

use arrow_schema::Metadata;

use crate::source::Interrupt;
use crate::store::{self, Answer};

pub use misfit::Misfit;
pub use printable::{printable, printable_json};

/// Prefix of those keys of an Arrow field's metadata that describe the column: `h5col.units`. Libraries that write
/// columns to HDF5 turn keys with this prefix, and no others, back into attributes of the column.
const FIELD_KEYS: &str = "h5col.";

/// Returns the metadata of an Arrow field for a column's [notes](crate::table::Column::notes).
pub(crate) fn field_metadata(notes: &[(&'static str, String)]) -> Metadata {
    notes.iter().map(|(key, text)| (format!("{FIELD_KEYS}{key}"), text.clone())).collect()
}

/// The size of a view, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Exactly this many bytes.
    Exact(u64),
    /// An upper bound, or an estimate from a sample of the values; the exact size takes a pass over them.
    AtMost(u64),
}

impl Size {
    /// Returns the number of bytes, exact or not.
    pub fn bytes(self) -> u64 {
        match self {
            Size::Exact(bytes) | Size::AtMost(bytes) => bytes,
        }
    }
}

/// A placeholder for a size that is not yet measured, if no smaller bound is known. Programs add sizes up, some as
/// signed integers, some as doubles; the sum over 2^17 files is far from overflow. A known size may be larger.
pub(crate) const UNKNOWN_SIZE: u64 = 1 << 45;

/// The work that a caller allows for a size, in rising order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// No work: a known size, or arithmetic on a few numbers. For listings, which visit very many files and need no
    /// file's size.
    Known,
    /// Arithmetic over all columns, but no reads.
    Free,
    /// Work of about 5 ms.
    Quick,
    /// Any work; interruptible.
    Exact,
    /// As `Exact`, plus all passes over values that later reads need.
    Prepared,
}

/// The expected access pattern of a file's readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessPattern {
    /// Any pattern: the kernel's page cache and read-ahead serve small reads, maps and repetitions.
    Any,
    /// Large ranges of the reader's choice, each read once: the page cache would read too far ahead, and cost a copy.
    Stretches,
}

/// Whether a view's layout still matches one that would be made now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The layout matches for good.
    Lasting,
    /// The layout matches, but a read may come across an unforeseen length.
    Provisional,
    /// A read came across an unforeseen length: the view serves those who have it open, and the next open gets a new
    /// one.
    Outdated,
}

/// A shown file: its bytes never change as long as the source does not.
pub trait View: Send + Sync {
    /// Returns the size: [`Size::Exact`] from [`Effort::Exact`] on.
    ///
    /// # Errors
    /// See [`store::Error`].
    fn size(&self, effort: Effort, interrupt: &Interrupt) -> Result<Size, store::Error>;

    /// Appends up to `length` bytes from `offset` on to `answer`; fewer only at the end of the view.
    ///
    /// # Errors
    /// See [`store::Error`]; the caller discards bytes appended before the error.
    fn gather(
        &self,
        offset: u64,
        length: usize,
        answer: &mut Answer,
        interrupt: &Interrupt,
    ) -> Result<(), store::Error>;

    /// Returns the expected access pattern.
    fn access(&self) -> AccessPattern {
        AccessPattern::Any
    }

    /// Returns whether the view's layout still stands.
    fn standing(&self) -> Standing {
        Standing::Lasting
    }

    /// Returns the view to read from while a program has the file open, if that one holds more than this. `None`: this
    /// view.
    fn opened(&self) -> Option<Arc<dyn View>> {
        None
    }

    /// Returns the progress of the passes of [`Effort::Prepared`]. `None`: no pass is needed.
    fn progress(&self) -> Option<crate::learnt::pass::PassProgress> {
        None
    }
}

/// Returns up to `length` bytes of a view from `offset` on.
#[cfg(test)]
fn gathered(view: &dyn View, offset: u64, length: usize) -> Result<Vec<u8>, store::Error> {
    Answer::collect(|answer| view.gather(offset, length, answer, &Interrupt::new()))
}
