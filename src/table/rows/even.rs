//! A column of moments with a rate: nothing of it is stored.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array};
use arrow_schema::DataType;

use crate::source::Interrupt;
use crate::store::statistics::{Scalar, Summary};
use crate::store::{Error, RowRange, Rows};

/// Evenly spaced numbers in float64.
#[derive(Debug)]
pub struct EvenRows {
    first: f64,
    spacing: Spacing,
    len: u64,
}

/// From a number to the next: by what each is computed decides its last bit.
#[derive(Clone, Copy, Debug)]
enum Spacing {
    /// row / rate.
    Rate(f64),
    /// row · step.
    Step(f64),
}

impl EvenRows {
    /// `len` numbers, of which row `i` is `i / rate + first`.
    pub fn with_rate(first: f64, rate: f64, len: u64) -> Self {
        Self { first, spacing: Spacing::Rate(rate), len }
    }

    /// `len` numbers, of which row `i` is `i · step + first`.
    pub fn with_step(first: f64, step: f64, len: u64) -> Self {
        Self { first, spacing: Spacing::Step(step), len }
    }

    fn at(&self, row: u64) -> f64 {
        self.first
            + match self.spacing {
                Spacing::Rate(rate) => row as f64 / rate,
                Spacing::Step(step) => row as f64 * step,
            }
    }
}

impl Rows for EvenRows {
    fn len(&self) -> u64 {
        self.len
    }

    fn data_type(&self) -> &DataType {
        &DataType::Float64
    }

    fn nullable(&self) -> bool {
        false
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        crate::store::count_of(&range, self.len, "evenly spaced numbers")?;
        interrupt.check()?;
        Ok(Arc::new(Float64Array::from_iter_values(range.map(|row| self.at(row)))))
    }

    fn summary(&self, range: RowRange, _: &Interrupt) -> Result<Option<Summary>, Error> {
        let Some(last) = range.end.checked_sub(1).filter(|last| *last >= range.start) else { return Ok(None) };
        let ends = [self.at(range.start), self.at(last)];
        if ends.iter().any(|end| !end.is_finite()) {
            return Ok(None);
        }
        // Rounding keeps the order. Zeros are of the signs that Parquet asks for.
        let (min, max) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        let (min, max) = (if min == 0.0 { -0.0 } else { min }, if max == 0.0 { 0.0 } else { max });
        let [min, max] = [min, max].map(|end| Some(Scalar::Float(end)));
        Ok(Some(Summary { rows: range.end - range.start, nulls: 0, nans: 0, min, max }))
    }

    fn stored_width(&self) -> Option<u64> {
        None
    }

    fn append_stored(&self, _: u64, _: usize, _: &mut Vec<u8>, _: &Interrupt) -> Result<(), Error> {
        Err(Error::Unsupported { path: "rate".into(), reason: "moments with a rate are not stored".into() })
    }

    fn natural_rows(&self) -> Option<u64> {
        None
    }
}
