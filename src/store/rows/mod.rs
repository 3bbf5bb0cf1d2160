//! The trait behind every column.

use std::fmt::Debug;
use std::ops::Range;

use arrow_array::ArrayRef;

use crate::source::Interrupt;
use crate::store::{Error, fixed_width};

mod cuts;
mod faces;
mod facts;
mod fitting;
mod hints;
#[cfg(test)]
pub(crate) mod in_memory;
mod shared;
mod stored;

pub use cuts::{Blocked, Cuts};
pub use faces::{Coded, StoredBytes, Summaries};
pub use facts::{Alike, ChunkDecoding, Containers, Facts, RowsContainer, StoredFacts};
pub use fitting::{Fitter, Fitting, for_each_array, for_each_counted};
pub use hints::{EnumerationNames, Hints, Nan, TextLength, ValueSet};
pub use shared::{SharedRows, numbered};
pub use stored::for_each_stored;

/// Rows `start..end` of a column.
pub type RowRange = Range<u64>;

/// A sequence of rows: a dataset, or a small tree of wrappers around some (dictionary, list, masked, …).
///
/// Implementations are shared between threads and keep no position; a caller that reads block after block should align
/// to [`Facts::natural_rows`], so that no chunk is decoded twice.
pub trait Rows: Debug + Send + Sync {
    /// Everything known before a row is read; made once.
    fn facts(&self) -> &Facts;

    /// The rows of `range` as an Arrow array of [`Facts::data_type`], as long as the range. Missing values are null.
    /// The slot under a null keeps a stored number: a value that is null because it is NaN stays NaN.
    ///
    /// # Errors
    /// See [`Error`]. A range past the end is the caller's bug, and fails with [`Error::Unsupported`].
    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error>;

    /// The longest run of rows from the start of `range` whose array takes at most about `bytes` bytes, but at least
    /// one row if there is any. Computed from widths, descriptors and offsets; reads no other values, and copies
    /// nothing. Labels of dictionaries do not count.
    ///
    /// # Errors
    /// As [`Rows::array`]. Dangling descriptors count as nothing: reading them reports the error.
    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        let _ = interrupt;
        Ok(Fitting::fixed(&range, fixed_width(&self.facts().data_type), bytes))
    }

    /// The rows as shared values: if many of them have equal stored bytes, these take little memory although the array
    /// of [`Rows::array`] takes much. `None`: they do not take little, or it takes long to find out. For callers of
    /// [`Rows::fitting`] whose rows do not all fit.
    ///
    /// # Errors
    /// As [`Rows::array`].
    fn shared(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<SharedRows>, Error> {
        let _ = (range, interrupt);
        Ok(None)
    }

    /// The outline of the rows of `range`, as long as it: their lengths, without reading the content of texts and
    /// lists. A variable-length text becomes its number of stored bytes (`UInt64`), or null if it is known to be null;
    /// a list becomes a list of outlines, a null list an empty one; arrays and compounds contain outlines as well.
    /// Anything else becomes `Null`. A text as shown can be shorter (cut at a NUL), or longer if it is not UTF-8.
    /// `None`: rows of this type have no outline.
    ///
    /// # Errors
    /// As [`Rows::array`].
    fn outline(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        let _ = (range, interrupt);
        Ok(None)
    }

    /// As [`Rows::array`], for a reader of a single field of compounds, which these positions lead to, outermost first:
    /// all other fields may be arbitrary.
    ///
    /// # Errors
    /// As [`Rows::array`].
    fn array_for_field(&self, fields: &[usize], range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let _ = fields;
        self.array(range, interrupt)
    }

    /// Rows as stored bytes, if rows are the elements of one dataset, or decoded to elements of one width.
    fn bytes(&self) -> Option<&dyn StoredBytes> {
        None
    }

    /// Forms of rows that are faster to produce than arrays.
    fn coded(&self) -> Option<&dyn Coded> {
        None
    }

    /// Summaries of rows without an array.
    fn known(&self) -> Option<&dyn Summaries> {
        None
    }
}
