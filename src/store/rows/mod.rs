//! The one trait a column is made of.

use std::fmt::Debug;
use std::ops::Range;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::Buffer;
use arrow_schema::DataType;

use crate::catalogue::Datatype;
use crate::source::Interrupt;
use crate::store::statistics::{self, Summary};
use crate::store::{Error, Lent, Span};

mod hints;
#[cfg(test)]
pub(crate) mod in_memory;

pub use hints::{Hints, Names, TextLength, ValueSet};

/// Rows `start..end` of a column.
pub type RowRange = Range<u64>;

/// Something with rows: a dataset, or a small tree of them (dictionary, list, masked, …).
///
/// Implementations are shared between threads and keep no position; a caller that reads block after block should keep
/// to [`Rows::natural_rows`] so that no chunk is decoded twice.
pub trait Rows: Debug + Send + Sync {
    /// Number of rows.
    fn len(&self) -> u64;

    /// Whether there is no row.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Arrow type of [`Rows::array`].
    fn data_type(&self) -> &DataType;

    /// Whether [`Rows::array`] may hold nulls.
    fn nullable(&self) -> bool;

    /// What is known of the values without reading one. No I/O, but made anew by each call: keep it.
    fn hints(&self) -> Hints {
        Hints::default()
    }

    /// The rows of `range` as an Arrow array of [`Rows::data_type`], as long as the range. Missing values are null.
    ///
    /// # Errors
    /// See [`Error`]. A range past the end is the caller's bug and answers [`Error::Unsupported`].
    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error>;

    /// The type of the elements whose bytes [`Rows::append_stored`] gives. `None` where rows are not the elements of one
    /// dataset.
    fn stored_type(&self) -> Option<&Datatype> {
        None
    }

    /// Bytes of one row as stored in the file, where every row has the same width; the width of [`Rows::append_stored`].
    fn stored_width(&self) -> Option<u64>;

    /// Appends `length` bytes as stored to `out`, from byte `offset` of all rows back to back. `None` from
    /// [`Rows::stored_width`] means that this cannot be called.
    ///
    /// # Errors
    /// See [`Error`]; `out` is as it was then.
    fn append_stored(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error>;

    /// Where the same bytes lie, so that nobody needs to copy them.
    ///
    /// # Errors
    /// See [`Error`].
    fn stored_span(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Span, Error> {
        let _ = (offset, interrupt);
        Ok(Span::Made(length))
    }

    /// The same bytes where they lie together, for one of several threads that go through all rows side by side, in requests of
    /// one length: each decodes what it looks at, none waits for another, and what they have passed is given back. `None`
    /// where they do not.
    ///
    /// # Errors
    /// See [`Error`].
    fn lend_scanned(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Option<Lent>, Error> {
        let _ = (offset, length, interrupt);
        Ok(None)
    }

    /// Appends the keys of the dictionary array that [`Rows::array`] gives, a byte each, and says `true`. Where it gives
    /// none, a row is missing, or the labels are too many, it may say `false` and append nothing.
    ///
    /// # Errors
    /// As [`Rows::array`].
    fn append_byte_keys(&self, range: RowRange, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<bool, Error> {
        let _ = (range, out, interrupt);
        Ok(false)
    }

    /// Hands `take` the values of `range` as text, back to back with a NUL behind each, in pieces that end with a value, until
    /// it says `false`; says `true`. Says `false` and does nothing where only arrays are to be had.
    ///
    /// # Errors
    /// As [`Rows::array`].
    fn terminated(
        &self,
        range: RowRange,
        interrupt: &Interrupt,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<bool, Error> {
        let _ = (range, interrupt, take);
        Ok(false)
    }

    /// Whether bytes as stored are decoded before anybody gets them, and not copied out of the file.
    fn is_decoded(&self) -> bool {
        false
    }

    /// What some rows hold whose bytes as stored are `bytes`: the array that [`Rows::array`] gives, or the codes of categories that
    /// it is made of, or, where making it takes long beside decoding, the bytes of each row. `None` where bytes alone do not tell.
    fn stored_values(&self, bytes: Buffer) -> Option<ArrayRef> {
        let _ = bytes;
        None
    }

    /// The summary of the array that [`Rows::array`] gives where [`Rows::stored_values`] or [`Rows::append_byte_keys`]
    /// gives `values`; `None` where that is not known at once.
    fn summary_of(&self, values: &dyn Array, interrupt: &Interrupt) -> Option<Summary> {
        let _ = interrupt;
        statistics::summary(values)
    }

    /// Rows in a chunk: the natural grain of reading. `None` where rows lie in one run.
    fn natural_rows(&self) -> Option<u64>;
}
