//! Optional faces of rows: a caller asks for one, and `None` says that arrays are all there is.

use arrow_array::{Array, ArrayRef};
use arrow_buffer::Buffer;

use super::{RowRange, Rows};
use crate::source::Interrupt;
use crate::store::statistics::{self, Summary};
use crate::store::{Error, Lent, Place, Span};

/// Bytes of rows as stored: after filters and encodings. [`StoredFacts`](super::StoredFacts) says what they are.
pub trait StoredBytes {
    /// Appends `length` bytes as stored to `out`, from byte `offset` of all rows back to back. Only rows with a
    /// [`StoredFacts::width`](super::StoredFacts::width) have such.
    ///
    /// # Errors
    /// See [`Error`]; `out` is as it was then.
    fn append(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error>;

    /// Where the same bytes lie, for a reader that need not copy them.
    ///
    /// # Errors
    /// See [`Error`].
    fn span(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Span, Error> {
        let _ = (offset, interrupt);
        Ok(Span::Made(length))
    }

    /// Lends the same bytes to a parallel scan: decodes the chunk on the calling core, and gives back what the scan has
    /// passed. Requests of a scan have one length. `None` where bytes do not lie together.
    ///
    /// # Errors
    /// See [`Error`].
    fn lend(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Option<Lent>, Error> {
        let _ = (offset, length, interrupt);
        Ok(None)
    }
}

/// Forms of rows that are made faster than arrays: values of bytes as stored, terminated texts, codes, keys of labels.
/// Each default is of rows without that form.
pub trait Coded {
    /// The values of rows whose bytes as stored are `bytes`: the array that [`Rows::array`] gives, or the codes of
    /// categories that it is made of, or, where making it takes long beside decoding, the bytes of each row. `None`
    /// where bytes alone do not tell.
    fn values(&self, bytes: Buffer) -> Option<ArrayRef> {
        let _ = bytes;
        None
    }

    /// Where the bytes as stored lie among the elements of a dataset, of rows that are parts of them, for a reader of
    /// several parts of the same rows. `None` where bytes alone do not tell what rows hold.
    fn place(&self) -> Option<Place<'_>> {
        None
    }

    /// The array that [`Rows::array`] gives of rows that are stored as these bytes; `None` where they hold something
    /// odd, or there is no [`Coded::place`].
    fn array_of(&self, bytes: Buffer) -> Option<ArrayRef> {
        let _ = bytes;
        None
    }

    /// Appends the keys of the dictionary array that [`Rows::array`] gives, a byte each; returns whether it did. It may
    /// append nothing where there is no dictionary, a row is missing, or there are too many labels.
    ///
    /// # Errors
    /// As [`Rows::array`].
    fn append_byte_keys(&self, range: RowRange, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<bool, Error> {
        let _ = (range, out, interrupt);
        Ok(false)
    }

    /// Calls `take` with the values of `range` as NUL-terminated texts, in pieces that end with a value, until it
    /// returns `false`. Makes no array in between. Returns whether rows can do that; without it, `take` is not called.
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

    /// The number that each of these codes stands for, as in [`Rows::array`]. Its place is the code, as unsigned.
    fn code_values(&self) -> Option<ArrayRef> {
        None
    }

    /// As [`Rows::array`], the codes themselves: integers of one or two bytes. `None` of rows that are not stored as
    /// such ([`Facts::codes`](super::Facts::codes)).
    ///
    /// # Errors
    /// As [`Rows::array`].
    fn codes(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        let _ = (range, interrupt);
        Ok(None)
    }

    /// The summary of the array that [`Rows::array`] gives where [`Coded::values`], [`Coded::append_byte_keys`] or
    /// [`Coded::codes`] gives `values`; `None` where that is not known at once.
    fn summary_of(&self, values: &dyn Array, interrupt: &Interrupt) -> Option<Summary> {
        let _ = interrupt;
        statistics::summary(values)
    }

    /// As [`Coded::summary_of`], where none of the rows is odd; `None` where one may be, or it takes an array to know.
    fn sound_summary_of(&self, values: &dyn Array, interrupt: &Interrupt) -> Option<Summary> {
        let _ = (values, interrupt);
        None
    }
}

/// Summaries of rows that take no array. Each default knows nothing.
pub trait Summaries {
    /// The exact summary of the rows of `range`, found without their values; `None` where it takes these.
    ///
    /// # Errors
    /// As [`Rows::array`].
    fn summary(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<Summary>, Error> {
        let _ = (range, interrupt);
        Ok(None)
    }

    /// As [`Summaries::summary`], of the codes of the labels that [`Rows::array`] gives. A code without a label may be
    /// among them.
    ///
    /// # Errors
    /// As [`Rows::array`].
    fn summary_of_codes(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<Summary>, Error> {
        let _ = (range, interrupt);
        Ok(None)
    }

    /// The exact summary of the rows of `range`, found by looking at their bytes where they lie. `None` where rows may
    /// be odd, or it takes arrays.
    ///
    /// # Errors
    /// As [`Rows::array`].
    fn scan(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<Summary>, Error> {
        let _ = (range, interrupt);
        Ok(None)
    }

    /// Whether rows are computed from data that are verified before the first row is read: no single row can fail or be
    /// odd.
    fn is_computed(&self, interrupt: &Interrupt) -> bool {
        let _ = interrupt;
        false
    }
}

impl dyn Rows + '_ {
    /// [`Rows::bytes`], of rows that have a [`StoredFacts::width`](super::StoredFacts::width).
    ///
    /// # Errors
    /// [`Error::NotStored`].
    pub fn stored_bytes(&self) -> Result<&dyn StoredBytes, Error> {
        self.bytes().ok_or(Error::NotStored)
    }
}
