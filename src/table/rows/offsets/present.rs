//! A column that stores only the present values.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, UInt64Array};
use arrow_select::take::take;

use super::level::{ENTRY, OFFSETS_AT_ONCE};
use crate::source::Interrupt;
use crate::store::decode::widen;
use crate::store::{Containers, Error, Facts, Fitter, Fitting, Hints, RowRange, Rows};

/// Values in succession, and for each row the index of its value; a negative index means null.
#[derive(Debug)]
pub struct PresentRows {
    path: String,
    indices: Arc<dyn Rows>,
    values: Arc<dyn Rows>,
    facts: Facts,
}

impl PresentRows {
    /// Spreads `values` over the rows of `indices`.
    ///
    /// # Errors
    /// The type of `indices`, if they are not integers.
    pub fn new(path: String, indices: Arc<dyn Rows>, values: Arc<dyn Rows>) -> Result<Self, String> {
        match indices.data_type() {
            integers if integers.is_integer() => {
                let facts = Facts {
                    nullable: true,
                    hints: Hints { stored: false, nullable: true, ..values.hints().clone() },
                    natural_rows: indices.natural_rows(),
                    containers: Containers::of_all([&indices, &values]),
                    ..Facts::new(indices.len(), values.data_type().clone())
                };
                Ok(Self { path, indices, values, facts })
            }
            other => Err(format!("indices of type {other}")),
        }
    }

    fn failed(&self, reason: impl ToString) -> Error {
        Error::unsupported(&self.path, reason)
    }

    /// The indices of these rows, and the range of values that they refer to.
    fn indices(&self, rows: RowRange, interrupt: &Interrupt) -> Result<(Int64Array, Range<u64>), Error> {
        let indices = widen::signed(&self.indices.array(rows.clone(), interrupt)?);
        let indices = indices.ok_or_else(|| self.failed("indices that are no integers"))?;
        let mut used: Option<Range<u64>> = None;
        for (row, index) in indices.iter().enumerate() {
            // A null or negative index refers to no value.
            let Some(index) = index.and_then(|index| u64::try_from(index).ok()) else { continue };
            let next = used.as_ref().map_or(index, |used| used.end);
            if index != next || index >= self.values.len() {
                let (row, count) = (rows.start + row as u64, self.values.len());
                return Err(self.failed(format!("row {row}: index {index} where {next} of {count} is due")));
            }
            used = Some(used.map_or(index, |used| used.start)..index + 1);
        }
        Ok((indices, used.unwrap_or(0..0)))
    }
}

impl Rows for PresentRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let (indices, used) = self.indices(range, interrupt)?;
        let places: UInt64Array = indices.iter().map(|index| Some(u64::try_from(index?).ok()? - used.start)).collect();
        let values = self.values.array(used.clone(), interrupt)?;
        if places.null_count() == 0 {
            return Ok(values);
        }
        take(&values, &places, None).map_err(|error| self.failed(error))
    }

    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        let mut fitter = Fitter::new(range.start, bytes);
        while fitter.fitting().end < range.end {
            interrupt.check()?;
            let start = fitter.fitting().end;
            let end = start.saturating_add(OFFSETS_AT_ONCE).min(range.end);
            let (indices, used) = self.indices(start..end, interrupt)?;
            let values = self.values.fitting(used.clone(), fitter.left(), interrupt)?;
            let taken = values.bytes.saturating_add(ENTRY.saturating_mul(end - start));
            if values.end >= used.end && taken <= fitter.left() {
                fitter.add(end - start, taken);
                continue;
            }
            for index in &indices {
                let value = match index.and_then(|index| u64::try_from(index).ok()) {
                    Some(index) => self.values.fitting(index..index + 1, u64::MAX, interrupt)?.bytes,
                    None => 0,
                };
                if !fitter.add(1, value.saturating_add(ENTRY)) {
                    return Ok(fitter.fitting());
                }
            }
        }
        Ok(fitter.fitting())
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int16Type;
    use arrow_array::{Int8Array, Int16Array};

    use super::*;
    use crate::store::rows::in_memory::MemoryRows;

    fn rows(indices: &[i8]) -> PresentRows {
        let indices = Arc::new(MemoryRows::new(Arc::new(Int8Array::from(indices.to_vec()))));
        let values = Arc::new(MemoryRows::new(Arc::new(Int16Array::from(vec![10, 20, 30]))));
        PresentRows::new("/t/x".into(), indices, values).unwrap()
    }

    #[test]
    fn a_row_below_zero_is_missing_and_the_others_follow_each_other() {
        let rows = rows(&[-1, 0, -5, 1, 2, -1]);
        for (start, end) in [(0, 6), (2, 4), (4, 6), (5, 6), (3, 3)] {
            let array = rows.array(start..end, &Interrupt::new()).unwrap();
            let all = [None, Some(10), None, Some(20), Some(30), None];
            assert_eq!(
                array.as_primitive::<Int16Type>(),
                &Int16Array::from(all[start as usize..end as usize].to_vec())
            );
            assert_eq!(rows.fitting(start..end, u64::MAX, &Interrupt::new()).unwrap().end, end);
        }
        assert_eq!(rows.fitting(0..6, 3 * (ENTRY + 2), &Interrupt::new()).unwrap().end, 3);
    }

    #[test]
    fn indices_that_jump_or_pass_the_end_are_errors_of_their_rows() {
        for (indices, sound) in [(&[0, 2, 1][..], 0..1), (&[0, 1, 1], 0..2), (&[-1, 2, 3], 0..2), (&[-1, 1, 0], 0..2)] {
            let rows = rows(indices);
            assert!(rows.array(sound, &Interrupt::new()).is_ok());
            let error = rows.array(0..3, &Interrupt::new()).unwrap_err().to_string();
            assert!(error.contains("/t/x") && error.contains("is due"), "{error}");
            assert!(rows.fitting(0..3, 1, &Interrupt::new()).is_err());
        }
    }
}
