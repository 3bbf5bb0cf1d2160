//! A column in memory.

use arrow_array::ArrayRef;

use crate::source::Interrupt;
use crate::store::{Error, Facts, Hints, RowRange, Rows, Summaries};

/// The rows of an array. They have no stored bytes.
#[derive(Debug)]
pub struct HeldRows {
    array: ArrayRef,
    facts: Facts,
}

impl HeldRows {
    /// The rows of `array`, nullable if it has nulls or if `nullable`.
    pub fn new(array: ArrayRef, nullable: bool, hints: Hints) -> Self {
        let nullable = nullable || array.is_nullable();
        let facts = Facts { nullable, hints, ..Facts::new(array.len() as u64, array.data_type().clone()) };
        Self { array, facts }
    }
}

impl Rows for HeldRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, _: &Interrupt) -> Result<ArrayRef, Error> {
        let length = range.end.checked_sub(range.start).filter(|_| range.end <= self.facts.len);
        let length = length.ok_or_else(|| Error::unsupported("", format!("rows {range:?} of {}", self.facts.len)))?;
        // Within the bounds of the array.
        Ok(self.array.slice(range.start as usize, length as usize))
    }

    fn known(&self) -> Option<&dyn Summaries> {
        Some(self)
    }
}

impl Summaries for HeldRows {
    fn is_computed(&self, _: &Interrupt) -> bool {
        true
    }
}
