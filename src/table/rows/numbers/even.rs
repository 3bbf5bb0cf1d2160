//! A column of evenly spaced numbers, none of which is stored.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array};
use arrow_schema::DataType;

use crate::source::Interrupt;
use crate::store::statistics::{Scalar, Summary};
use crate::store::{Alike, Error, Facts, RowRange, Rows, Summaries};

/// Evenly spaced numbers, in float64 or int64.
#[derive(Debug)]
pub struct EvenRows {
    spacing: Spacing,
    facts: Facts,
}

/// The formula from row number to value. Which one it is decides the last bit.
#[derive(Clone, Copy, Debug)]
enum Spacing {
    /// row / rate + first.
    Rate { first: f64, rate: f64 },
    /// row · step + first.
    Step { first: f64, step: f64 },
    /// As `Step`, with integers; it never overflows.
    Whole { first: i64, step: i64 },
}

impl EvenRows {
    /// `len` numbers; row `i` is `i / rate + first`.
    pub fn with_rate(first: f64, rate: f64, len: u64) -> Self {
        Self::new(Spacing::Rate { first, rate }, len)
    }

    /// `len` numbers; row `i` is `i · step + first`.
    pub fn with_step(first: f64, step: f64, len: u64) -> Self {
        Self::new(Spacing::Step { first, step }, len)
    }

    /// `len` numbers in int64; row `i` is `i · step + first`. `None`: the last number does not fit.
    pub fn whole(first: i64, step: i64, len: u64) -> Option<Self> {
        let last = i128::from(first) + i128::from(step) * i128::from(len.saturating_sub(1));
        i64::try_from(last).ok()?;
        Some(Self::new(Spacing::Whole { first, step }, len))
    }

    fn new(spacing: Spacing, len: u64) -> Self {
        let is_whole = matches!(spacing, Spacing::Whole { .. });
        let data_type = if is_whole { DataType::Int64 } else { DataType::Float64 };
        let is_one = match spacing {
            Spacing::Rate { rate, .. } => rate.is_infinite(),
            Spacing::Step { step, .. } => step == 0.0,
            Spacing::Whole { step, .. } => step == 0,
        };
        let alike = if is_one { Alike::all() } else { Alike::default() };
        Self { spacing, facts: Facts { alike, ..Facts::new(len, data_type) } }
    }

    fn at(&self, row: u64) -> f64 {
        match self.spacing {
            Spacing::Rate { first, rate } => row as f64 / rate + first,
            Spacing::Step { first, step } => row as f64 * step + first,
            Spacing::Whole { first, step } => first.wrapping_add(step.wrapping_mul(row as i64)) as f64,
        }
    }
}

impl Rows for EvenRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        crate::store::count_of(&range, self.facts.len, "evenly spaced numbers")?;
        interrupt.check()?;
        if let Spacing::Whole { first, step } = self.spacing {
            let numbers = range.map(|row| first.wrapping_add(step.wrapping_mul(row as i64)));
            return Ok(Arc::new(Int64Array::from_iter_values(numbers)));
        }
        Ok(Arc::new(Float64Array::from_iter_values(range.map(|row| self.at(row)))))
    }

    fn known(&self) -> Option<&dyn Summaries> {
        Some(self)
    }
}

impl Summaries for EvenRows {
    fn summary(&self, range: RowRange, _: &Interrupt) -> Result<Option<Summary>, Error> {
        let last = range.end.checked_sub(1).filter(|last| *last >= range.start);
        let Some(last) = last.filter(|_| self.facts.data_type == DataType::Float64) else { return Ok(None) };
        let ends = [self.at(range.start), self.at(last)];
        if ends.iter().any(|end| !end.is_finite()) {
            return Ok(None);
        }
        // Rounding keeps the order. Zeros get the signs that Parquet demands.
        let (min, max) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        let (min, max) = (if min == 0.0 { -0.0 } else { min }, if max == 0.0 { 0.0 } else { max });
        let [min, max] = [min, max].map(|end| Some(Scalar::Float(end)));
        Ok(Some(Summary { rows: range.end - range.start, nulls: 0, nans: 0, min, max }))
    }

    fn is_computed(&self, _: &Interrupt) -> bool {
        true
    }
}
