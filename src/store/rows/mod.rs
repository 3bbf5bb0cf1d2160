//! The one trait a column is made of.

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
pub use facts::{Alike, Container, Containers, Decoded, Facts, StoredFacts};
pub use fitting::{Fitter, Fitting, for_each_array, for_each_counted};
pub use hints::{Hints, Names, Nan, TextLength, ValueSet};
pub use shared::{Shared, numbered};
pub use stored::for_each_stored;

/// Rows `start..end` of a column.
pub type RowRange = Range<u64>;

/// Something with rows: a dataset, or a small tree of them (dictionary, list, masked, …).
///
/// Implementations are shared between threads and keep no position; a caller that reads block after block should keep
/// to [`Facts::natural_rows`] so that no chunk is decoded twice.
pub trait Rows: Debug + Send + Sync {
    /// What is known before a row is read; made once.
    fn facts(&self) -> &Facts;

    /// The rows of `range` as an Arrow array of [`Facts::data_type`], as long as the range. Missing values are null.
    /// The slot under a null keeps the number that is stored, where it is one: what is missing because it is NaN stays
    /// NaN.
    ///
    /// # Errors
    /// See [`Error`]. A range past the end is the caller's bug and answers [`Error::Unsupported`].
    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error>;

    /// The longest run of rows from the first of `range` on whose array takes about `bytes` bytes at most, and one row
    /// at least where there is one. Widths, descriptors and offsets tell; of values only those that hold descriptors
    /// are read, and nothing is copied. What labels of dictionaries take does not count.
    ///
    /// # Errors
    /// As [`Rows::array`]. What leads nowhere counts nothing: reading it says so.
    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        let _ = interrupt;
        Ok(Fitting::fixed(&range, fixed_width(&self.facts().data_type), bytes))
    }

    /// The same rows as shared values: where many are stored as the same bytes, an array of them takes little though
    /// [`Rows::array`] takes much. `None` where that is not so, or takes long to find out. For those to whom
    /// [`Rows::fitting`] says that not all rows fit.
    ///
    /// # Errors
    /// As [`Rows::array`].
    fn shared(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<Shared>, Error> {
        let _ = (range, interrupt);
        Ok(None)
    }

    /// The outline of the rows of `range`, as long as it: how long they are, found without reading what texts hold and
    /// what is in lists. A text of variable length is the bytes stored of it (`UInt64`), or null where it is known to
    /// be missing; a list is a list of outlines, a missing one an empty list; arrays and compounds hold outlines as
    /// well. Anything else is nothing (`Null`). What is shown of a text can be shorter (behind a NUL), and longer where
    /// it is no UTF-8. `None` where rows of this type have no outline.
    ///
    /// # Errors
    /// As [`Rows::array`].
    fn outline(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        let _ = (range, interrupt);
        Ok(None)
    }

    /// As [`Rows::array`], for a reader of one field of compounds alone, which these positions lead to, outermost
    /// first: beside it may stand anything.
    ///
    /// # Errors
    /// As [`Rows::array`].
    fn array_for_field(&self, fields: &[usize], range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let _ = fields;
        self.array(range, interrupt)
    }

    /// The bytes of rows as stored, where rows are the elements of one dataset, or decoded to elements of one width.
    fn bytes(&self) -> Option<&dyn StoredBytes> {
        None
    }

    /// Other forms of rows than arrays, which are made faster.
    fn coded(&self) -> Option<&dyn Coded> {
        None
    }

    /// Summaries of rows that take no array.
    fn known(&self) -> Option<&dyn Summaries> {
        None
    }
}
