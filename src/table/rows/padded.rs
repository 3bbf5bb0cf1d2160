//! Rows that end early, padded with nulls.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, new_null_array};
use arrow_select::concat::concat;

use crate::source::Interrupt;
use crate::store::{Alike, Error, Facts, Fitting, Hints, RowRange, Rows, Span, StoredBytes, StoredFacts};

/// The rows of another column, followed by nulls up to a length. Stored nulls have the bytes `fill`, like elements that
/// were never written.
#[derive(Debug)]
pub struct PaddedRows {
    rows: Arc<dyn Rows>,
    facts: Facts,
    fill: Vec<u8>,
    path: String,
}

impl PaddedRows {
    /// Pads `rows` to `len` rows. They have no stored bytes if `fill` is not as wide as an element.
    pub fn new(path: String, rows: Arc<dyn Rows>, len: u64, fill: Vec<u8>) -> Self {
        let inner = rows.facts();
        let hints = inner.hints.clone();
        let width = inner.stored.width.filter(|width| *width > 0 && *width == fill.len() as u64);
        let facts = Facts {
            len: len.max(inner.len),
            nullable: true,
            hints: Hints { stored: false, nan: hints.nan.among_others(), ..hints },
            stored: StoredFacts { width, ..inner.stored.clone() },
            codes: 0,
            fields_lie_apart: false,
            alike: Alike::new({
                let rows = rows.clone();
                move |row, interrupt| {
                    let is_stored = row < rows.len();
                    Ok(if is_stored { rows.alike_until(row, interrupt)? } else { u64::MAX })
                }
            }),
            ..inner.clone()
        };
        Self { facts, rows, fill, path }
    }

    fn failed(&self, reason: impl ToString) -> Error {
        Error::unsupported(&self.path, reason)
    }

    /// The part of a range within the inner rows.
    fn within(&self, range: &RowRange) -> RowRange {
        range.start.min(self.rows.len())..range.end.min(self.rows.len())
    }

    /// An array that ends early, padded with nulls up to `range`.
    fn padded(&self, array: ArrayRef, range: &RowRange) -> Result<ArrayRef, Error> {
        let wanted = usize::try_from(range.end.saturating_sub(range.start)).map_err(|error| self.failed(error))?;
        let missing = wanted.saturating_sub(array.len());
        if missing == 0 {
            return Ok(array);
        }
        let missing = new_null_array(array.data_type(), missing);
        concat(&[array.as_ref(), missing.as_ref()]).map_err(|error| self.failed(error))
    }
}

impl Rows for PaddedRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        if range.start > range.end || range.end > self.facts.len {
            return Err(self.failed(format!("rows {range:?} of {}", self.facts.len)));
        }
        self.padded(self.rows.array(self.within(&range), interrupt)?, &range)
    }

    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        let within = self.within(&range);
        if within.is_empty() {
            return Ok(Fitting::fixed(&range, crate::store::fixed_width(&self.facts.data_type), bytes));
        }
        self.rows.fitting(within, bytes, interrupt)
    }

    fn outline(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        let outline = self.rows.outline(self.within(&range), interrupt)?;
        outline.map(|outline| self.padded(outline, &range)).transpose()
    }

    fn bytes(&self) -> Option<&dyn StoredBytes> {
        self.facts.stored.width.map(|_| self as _)
    }
}

impl StoredBytes for PaddedRows {
    fn append(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        let width = self.facts.stored.width.ok_or(Error::NotStored)?;
        let end = self.rows.len().saturating_mul(width);
        let within = (end.saturating_sub(offset)).min(length as u64) as usize;
        if within > 0 {
            self.rows.stored_bytes()?.append(offset, within, out, interrupt)?;
        }
        // The inner rows end at the end of an element.
        let at = offset.max(end) % width;
        out.extend(self.fill.iter().cycle().skip(at as usize).take(length - within));
        Ok(())
    }

    fn span(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Span, Error> {
        let end = self.rows.len().saturating_mul(self.rows.stored_width().unwrap_or(0));
        match offset.checked_add(length as u64) {
            Some(behind) if behind <= end => self.rows.stored_bytes()?.span(offset, length, interrupt),
            _ => Ok(Span::Made(length)),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;

    use super::super::HeldRows;
    use super::*;

    #[test]
    fn what_is_behind_the_end_is_missing() {
        let held = Arc::new(HeldRows::new(Arc::new(Int64Array::from(vec![1, 2])), false, Hints::default()));
        let rows = PaddedRows::new("/x".into(), held, 5, Vec::new());
        let none = Interrupt::new();
        let array = |range: RowRange| rows.array(range, &none).unwrap();
        assert_eq!(array(1..4).as_ref(), &Int64Array::from(vec![Some(2), None, None]) as &dyn Array);
        assert_eq!((array(3..5).null_count(), (&rows as &dyn Rows).alike_until(2, &none).unwrap()), (2, 5));
        assert!(rows.array(4..6, &none).is_err());
        assert_eq!((rows.facts().stored.width, rows.facts().nullable), (None, true));
    }
}
