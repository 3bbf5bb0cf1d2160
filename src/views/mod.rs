//! The files shown: size and bytes of each. Pure layout over [`crate::store::Rows`]; no I/O of its own.

pub mod constant;
pub mod ipc;
pub mod json;
mod measure;
pub mod metadata;
mod misfit;
pub mod npy;
mod pandas;
pub mod parquet;
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

/// What keys of an Arrow field's metadata begin with where they tell of a column: `h5col.units`. Under such keys, and
/// no others, libraries that write columns to HDF5 find what becomes attributes of a column again.
const FIELD_KEYS: &str = "h5col.";

/// Makes the metadata of an Arrow field of a column's [notes](crate::table::Column::notes).
pub(crate) fn field_metadata(notes: &[(&'static str, String)]) -> Metadata {
    notes.iter().map(|(key, text)| (format!("{FIELD_KEYS}{key}"), text.clone())).collect()
}

/// The size of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Exactly this many bytes.
    Exact(u64),
    /// At most this many, or as many as a sample of the values lets expect; the exact size takes a pass over them.
    AtMost(u64),
}

impl Size {
    /// The number, exact or not.
    pub fn bytes(self) -> u64 {
        match self {
            Size::Exact(bytes) | Size::AtMost(bytes) => bytes,
        }
    }
}

/// The size of what is not measured yet, where no bound is known or it is larger. Programs add sizes up, some with
/// signs, some as doubles: the sum over 2^17 files is far from overflow. A size that is known may be larger.
pub(crate) const UNKNOWN_SIZE: u64 = 1 << 45;

/// How much work a caller allows for a size, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// None: what is known already, or arithmetic of a few numbers. For listings, which meet very many files and want
    /// the size of none.
    Known,
    /// What reads nothing: arithmetic over all columns, too.
    Free,
    /// What fits in about 5 ms.
    Quick,
    /// As much as it takes, interruptible.
    Exact,
    /// The same, and the passes over values that reads take.
    Prepared,
}

/// How a file's readers go about it, as far as that is known of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// In any way: the kernel's page cache and its read-ahead serve small reads, maps and repetitions.
    Any,
    /// In stretches that they choose, each large and once: the page cache would read ahead too much, and
    /// cost a copy.
    Stretches,
}

/// Whether a view is laid out as one made now would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is, for good.
    Lasting,
    /// It is, but a read may find a length that nobody foresaw.
    Provisional,
    /// A read found one: the view serves those who have it open, and the next open gets another.
    Outdated,
}

/// A file shown: bytes that never change while the source does not.
pub trait View: Send + Sync {
    /// The size; [`Size::Exact`] from [`Effort::Exact`] on.
    ///
    /// # Errors
    /// See [`store::Error`].
    fn size(&self, effort: Effort, interrupt: &Interrupt) -> Result<Size, store::Error>;

    /// Appends at most `length` bytes from `offset` on to `answer`; fewer only at the end of the view.
    ///
    /// # Errors
    /// See [`store::Error`]; bytes appended before it count for nothing.
    fn gather(
        &self,
        offset: u64,
        length: usize,
        answer: &mut Answer,
        interrupt: &Interrupt,
    ) -> Result<(), store::Error>;

    /// How its readers go about it.
    fn access(&self) -> Access {
        Access::Any
    }

    /// Whether its layout stands.
    fn standing(&self) -> Standing {
        Standing::Lasting
    }

    /// What an open file reads of, where that holds more while it is open; `None` where the view itself serves.
    fn opened(&self) -> Option<Arc<dyn View>> {
        None
    }

    /// How far the passes of [`Effort::Prepared`] are; `None` where there are none.
    fn progress(&self) -> Option<store::pass::Progress> {
        None
    }
}

/// At most `length` bytes of a view from `offset` on.
#[cfg(test)]
fn gathered(view: &dyn View, offset: u64, length: usize) -> Result<Vec<u8>, store::Error> {
    Answer::collect(|answer| view.gather(offset, length, answer, &Interrupt::new()))
}
