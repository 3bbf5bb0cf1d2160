//! Optional interfaces of rows. Rows without them offer arrays only.

use arrow_array::{Array, ArrayRef};
use arrow_buffer::Buffer;

use super::{RowRange, Rows};
use crate::source::Interrupt;
use crate::store::statistics::{self, Summary};
use crate::store::{Error, Lent, Span, StridedField};

/// Rows as stored bytes: after filters and encodings. [`StoredFacts`](super::StoredFacts) describes them.
pub trait StoredBytes {
    /// Appends `length` stored bytes to `out`, from byte `offset` of all rows, concatenated. Requires a
    /// [`StoredFacts::width`](super::StoredFacts::width).
    ///
    /// # Errors
    /// See [`Error`]; `out` is then unchanged.
    fn append(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error>;

    /// Locates the bytes that [`append`](Self::append) would append, for a reader that can do without a copy.
    ///
    /// # Errors
    /// See [`Error`].
    fn span(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Span, Error> {
        let _ = (offset, interrupt);
        Ok(Span::Made(length))
    }

    /// Lends these bytes to a parallel scan: decodes the chunk on the calling core, and releases bytes behind the scan.
    /// Requests of a scan have equal lengths. `None`: the bytes are not contiguous.
    ///
    /// # Errors
    /// See [`Error`].
    fn lend(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Option<Lent>, Error> {
        let _ = (offset, length, interrupt);
        Ok(None)
    }
}

/// Forms of rows that are faster to produce than arrays: values from stored bytes, terminated texts, codes, keys of
/// labels. Each default means that rows lack the form.
pub trait Coded {
    /// The values of rows with these stored bytes: the array from [`Rows::array`], or the codes of its categories, or,
    /// if making it is slow compared with decoding, the bytes of each row. `None`: the bytes alone do not suffice.
    fn values(&self, bytes: Buffer) -> Option<ArrayRef> {
        let _ = bytes;
        None
    }

    /// The location of stored bytes among the elements of a dataset, for rows that are parts of elements and a reader
    /// of several parts of the same rows. `None`: the bytes alone do not determine the values.
    fn place(&self) -> Option<StridedField<'_>> {
        None
    }

    /// The array that [`Rows::array`] returns for rows with these stored bytes; `None`: some row is odd, or there is no
    /// [`Coded::place`].
    fn array_of(&self, bytes: Buffer) -> Option<ArrayRef> {
        let _ = bytes;
        None
    }

    /// Appends the keys of the dictionary array from [`Rows::array`], one byte each; returns whether it did. It may
    /// decline if there is no dictionary, a row is null, or there are too many labels.
    ///
    /// # Errors
    /// As [`Rows::array`].
    fn append_byte_keys(&self, range: RowRange, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<bool, Error> {
        let _ = (range, out, interrupt);
        Ok(false)
    }

    /// Calls `take` with the values of `range` as NUL-terminated texts, in pieces that end with a value, until it
    /// returns `false`. Makes no array in between. Returns whether rows support this; if not, `take` is not called.
    ///
    /// # Errors
    /// As [`Rows::array`].
    fn for_each_terminated(
        &self,
        range: RowRange,
        interrupt: &Interrupt,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<bool, Error> {
        let _ = (range, interrupt, take);
        Ok(false)
    }

    /// The number that each code stands for, as in [`Rows::array`], at the position of the code as an unsigned integer.
    fn code_values(&self) -> Option<ArrayRef> {
        None
    }

    /// The codes of the rows that [`Rows::array`] returns: integers of one or two bytes. `None`: rows are not stored as
    /// codes ([`Facts::codes`](super::Facts::codes)).
    ///
    /// # Errors
    /// As [`Rows::array`].
    fn codes(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        let _ = (range, interrupt);
        Ok(None)
    }

    /// The summary of the array from [`Rows::array`], given the corresponding result `values` of [`Coded::values`],
    /// [`Coded::append_byte_keys`] or [`Coded::codes`]; `None`: not available at low cost.
    fn summary_of(&self, values: &dyn Array, interrupt: &Interrupt) -> Option<Summary> {
        let _ = interrupt;
        statistics::summary(values)
    }

    /// As [`Coded::summary_of`], if no row is odd; `None`: one may be, or an array is needed to know.
    fn sound_summary_of(&self, values: &dyn Array, interrupt: &Interrupt) -> Option<Summary> {
        let _ = (values, interrupt);
        None
    }
}

/// Summaries of rows without an array. Each default knows nothing.
pub trait Summaries {
    /// The exact summary of the rows of `range`, without reading their values; `None`: their values are needed.
    ///
    /// # Errors
    /// As [`Rows::array`].
    fn summary(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<Summary>, Error> {
        let _ = (range, interrupt);
        Ok(None)
    }

    /// As [`Summaries::summary`], for the codes of the labels that [`Rows::array`] returns. They may include a code
    /// without a label.
    ///
    /// # Errors
    /// As [`Rows::array`].
    fn summary_of_codes(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<Summary>, Error> {
        let _ = (range, interrupt);
        Ok(None)
    }

    /// The exact summary of the rows of `range`, from a scan of their bytes in place. `None`: rows may be odd, or
    /// arrays are needed.
    ///
    /// # Errors
    /// As [`Rows::array`].
    fn scan(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<Summary>, Error> {
        let _ = (range, interrupt);
        Ok(None)
    }

    /// Whether rows are computed from data that are verified before the first row is read, so that no single row can
    /// fail or be odd.
    fn is_computed(&self, interrupt: &Interrupt) -> bool {
        let _ = interrupt;
        false
    }
}

impl dyn Rows + '_ {
    /// [`Rows::bytes`], for rows with a [`StoredFacts::width`](super::StoredFacts::width).
    ///
    /// # Errors
    /// [`Error::NotStored`].
    pub fn stored_bytes(&self) -> Result<&dyn StoredBytes, Error> {
        self.bytes().ok_or(Error::NotStored)
    }
}
