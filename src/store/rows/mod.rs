//! The one trait a column is made of.

use std::fmt::Debug;
use std::ops::Range;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::Buffer;

use crate::source::Interrupt;
use crate::store::statistics::{self, Summary};
use crate::store::{Error, Lent, Place, Span};

mod cuts;
mod facts;
mod fitting;
mod hints;
#[cfg(test)]
pub(crate) mod in_memory;
mod shared;
mod stored;

pub use cuts::{Blocked, Cuts};
pub use facts::{Container, Containers, Decoded, Facts, StoredFacts};
pub use fitting::{Fitter, Fitting, for_each_array, for_each_counted};
pub use hints::{Hints, Names, Nan, TextLength, ValueSet};
pub use shared::{Shared, numbered};
pub use stored::for_each_stored;

/// Rows `start..end` of a column.
pub type RowRange = Range<u64>;

/// Whether [`Rows::for_each_terminated`] has called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terminated {
    /// With all values, or until it was told to stop.
    Done,
    /// Never: ask for arrays.
    Unsupported,
}

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
        Ok(Fitting::fixed(&range, crate::store::fixed_width(&self.facts().data_type), bytes))
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

    /// Appends `length` bytes as stored to `out`, from byte `offset` of all rows back to back. `None` from
    /// [`StoredFacts::width`] means that this cannot be called.
    ///
    /// # Errors
    /// See [`Error`]; `out` is as it was then.
    fn append_stored(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error>;

    /// Where the bytes as stored lie among the elements of a dataset, of rows that are parts of them, for a reader of
    /// several parts of the same rows. `None` where bytes alone do not tell what rows hold.
    fn place(&self) -> Option<Place<'_>> {
        None
    }

    /// The array that [`Rows::array`] gives of rows that are stored as these bytes; `None` where they hold something
    /// odd, or there is no [`Rows::place`].
    fn array_of_stored(&self, bytes: Buffer) -> Option<ArrayRef> {
        let _ = bytes;
        None
    }

    /// Where the same bytes lie, for a reader that need not copy them.
    ///
    /// # Errors
    /// See [`Error`].
    fn stored_span(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Span, Error> {
        let _ = (offset, interrupt);
        Ok(Span::Made(length))
    }

    /// Lends the same bytes to a parallel scan: decodes the chunk on the calling core, and gives back what the scan has
    /// passed. Requests of a scan have one length. `None` where bytes do not lie together.
    ///
    /// # Errors
    /// See [`Error`].
    fn lend_scanned(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Option<Lent>, Error> {
        let _ = (offset, length, interrupt);
        Ok(None)
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

    /// The number that each of these codes stands for, of [`Facts::data_type`]: its place is the code, as unsigned.
    fn code_values(&self) -> Option<ArrayRef> {
        None
    }

    /// As [`Rows::array`], the codes themselves: integers of one or two bytes.
    ///
    /// # Errors
    /// As [`Rows::array`]; [`Error::Unsupported`] where there are no codes.
    fn codes(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let _ = (range, interrupt);
        Err(Error::Unsupported { path: String::new(), reason: "rows are no codes".into() })
    }

    /// Calls `take` with the values of `range` as NUL-terminated texts, in pieces that end with a value, until it
    /// returns `false`. Makes no array in between, which only some rows can do.
    ///
    /// # Errors
    /// As [`Rows::array`].
    fn for_each_terminated(
        &self,
        range: RowRange,
        interrupt: &Interrupt,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<Terminated, Error> {
        let _ = (range, interrupt, take);
        Ok(Terminated::Unsupported)
    }

    /// What some rows hold whose bytes as stored are `bytes`: the array that [`Rows::array`] gives, or the codes of
    /// categories that it is made of, or, where making it takes long beside decoding, the bytes of each row. `None`
    /// where bytes alone do not tell.
    fn stored_values(&self, bytes: Buffer) -> Option<ArrayRef> {
        let _ = bytes;
        None
    }

    /// The summary of the array that [`Rows::array`] gives where [`Rows::stored_values`], [`Rows::append_byte_keys`] or
    /// [`Rows::codes`] gives `values`; `None` where that is not known at once.
    fn summary_of(&self, values: &dyn Array, interrupt: &Interrupt) -> Option<Summary> {
        let _ = interrupt;
        statistics::summary(values)
    }

    /// As [`Rows::summary_of`], where none of the rows is odd; `None` where one may be, or it takes an array to know.
    fn sound_summary_of(&self, values: &dyn Array, interrupt: &Interrupt) -> Option<Summary> {
        let _ = (values, interrupt);
        None
    }

    /// What the rows of `range` hold, exactly, found by looking at their bytes where they lie. `None` where rows may be
    /// odd, or it takes arrays.
    ///
    /// # Errors
    /// As [`Rows::array`].
    fn scan(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<Summary>, Error> {
        let _ = (range, interrupt);
        Ok(None)
    }

    /// What the rows of `range` hold, exactly, found without their values. `None` where it takes these.
    ///
    /// # Errors
    /// As [`Rows::array`].
    fn summary(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<Summary>, Error> {
        let _ = (range, interrupt);
        Ok(None)
    }

    /// As [`Rows::summary`], of the codes of the labels that [`Rows::array`] gives; a code without a label may be among
    /// them.
    ///
    /// # Errors
    /// As [`Rows::array`].
    fn summary_of_codes(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<Summary>, Error> {
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

    /// The end of the run of rows from `row` on which are alike, because nothing of them was ever stored; `row` where
    /// something was, or where that is not known. Reads no values.
    ///
    /// # Errors
    /// As [`Rows::array`].
    fn alike_until(&self, row: u64, interrupt: &Interrupt) -> Result<u64, Error> {
        let _ = interrupt;
        Ok(row)
    }

    /// Whether rows are computed from data that are verified before the first row is read: no single row can fail or be
    /// odd.
    fn is_computed(&self, interrupt: &Interrupt) -> bool {
        let _ = interrupt;
        false
    }
}
