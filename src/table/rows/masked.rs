//! A column of values beside a mask that says which are missing.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer};
use arrow_schema::DataType;

use crate::catalogue::Datatype;
use crate::source::Interrupt;
use crate::store::decode::widen;
use crate::store::{Error, Fitting, Hints, Lent, RowRange, Rows, Span};

/// Values, missing where a mask is true or not zero, or else where it is not, and behind its end. Bytes
/// as stored stay those of the values.
#[derive(Debug)]
pub struct MaskedRows {
    values: Arc<dyn Rows>,
    mask: Arc<dyn Rows>,
    /// What the mask says of a value that is there.
    valid: bool,
    path: String,
}

impl MaskedRows {
    /// # Errors
    /// The type of a mask that is neither booleans nor integers.
    pub fn new(path: String, values: Arc<dyn Rows>, mask: Arc<dyn Rows>) -> Result<Self, String> {
        match mask.data_type() {
            DataType::Boolean => {}
            integers if integers.is_integer() => {}
            other => return Err(format!("a mask of type {other}")),
        }
        Ok(Self { values, mask, valid: false, path })
    }

    /// The same with a mask that is `valid` where a value is there.
    pub fn valid_when(self, valid: bool) -> Self {
        Self { valid, ..self }
    }

    fn failed(&self, reason: impl ToString) -> Error {
        Error::Unsupported { path: self.path.clone(), reason: reason.to_string() }
    }

    /// Which rows of `range` are there.
    fn present(&self, range: &RowRange, interrupt: &Interrupt) -> Result<BooleanBuffer, Error> {
        let count = usize::try_from(range.end.saturating_sub(range.start)).map_err(|error| self.failed(error))?;
        let masked = range.start.min(self.mask.len())..range.end.min(self.mask.len());
        let mask = self.mask.array(masked, interrupt)?;
        let marked = match mask.as_boolean_opt() {
            Some(mask) => mask.values().clone(),
            None => {
                let numbers = widen::signed(&mask).ok_or_else(|| self.failed("a mask of no integers"))?;
                BooleanBuffer::collect_bool(numbers.len(), |row| numbers.value(row) != 0)
            }
        };
        let valid = if self.valid { marked } else { !&marked };
        let present = match mask.nulls() {
            // A mask that means nothing hides no noise.
            Some(nulls) => &valid & nulls.inner(),
            None => valid,
        };
        if present.len() == count {
            return Ok(present);
        }
        let mut padded = BooleanBufferBuilder::new(count);
        padded.append_buffer(&present);
        padded.append_n(count.saturating_sub(present.len()), false);
        Ok(padded.finish())
    }

    /// The array, null where a row is not there.
    fn masked(&self, array: &dyn Array, present: BooleanBuffer) -> Result<ArrayRef, Error> {
        let nulls = NullBuffer::union(array.nulls(), Some(&NullBuffer::new(present)));
        let data = array.to_data().into_builder().nulls(nulls).build();
        Ok(make_array(data.map_err(|error| self.failed(error))?))
    }
}

impl Rows for MaskedRows {
    fn len(&self) -> u64 {
        self.values.len()
    }

    fn data_type(&self) -> &DataType {
        self.values.data_type()
    }

    fn examine(&self, interrupt: &Interrupt) -> Result<(), Error> {
        self.values.examine(interrupt)?;
        self.mask.examine(interrupt)
    }

    fn nullable(&self) -> bool {
        true
    }

    fn hints(&self) -> Hints {
        self.values.hints()
    }

    fn stored_type(&self) -> Option<&Datatype> {
        self.values.stored_type()
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let present = self.present(&range, interrupt)?;
        let values = self.values.array(range, interrupt)?;
        self.masked(&values, present)
    }

    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        self.values.fitting(range, bytes, interrupt)
    }

    fn outline(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        let Some(outline) = self.values.outline(range.clone(), interrupt)? else { return Ok(None) };
        if *outline.data_type() == DataType::Null {
            return Ok(Some(outline));
        }
        let present = self.present(&range, interrupt)?;
        self.masked(&outline, present).map(Some)
    }

    fn stored_width(&self) -> Option<u64> {
        self.values.stored_width()
    }

    fn append_stored(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        self.values.append_stored(offset, length, out, interrupt)
    }

    fn stored_span(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Span, Error> {
        self.values.stored_span(offset, length, interrupt)
    }

    fn lend_scanned(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Option<Lent>, Error> {
        self.values.lend_scanned(offset, length, interrupt)
    }

    fn is_decoded(&self) -> bool {
        self.values.is_decoded()
    }

    fn alike_until(&self, row: u64, interrupt: &Interrupt) -> Result<u64, Error> {
        let values = self.values.alike_until(row, interrupt)?;
        // Behind the end of the mask all are missing.
        let mask = if row < self.mask.len() { self.mask.alike_until(row, interrupt)? } else { u64::MAX };
        Ok(values.min(mask).max(row))
    }

    fn natural_rows(&self) -> Option<u64> {
        self.values.natural_rows()
    }
}
