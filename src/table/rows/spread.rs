//! Repeats the coordinates along an axis as a column of a grid.

use std::sync::{Arc, OnceLock};

use arrow_array::{Array, ArrayRef, UInt64Array, new_empty_array};
use arrow_select::concat::concat;
use arrow_select::take::take;

use crate::source::Interrupt;
use crate::store::statistics::{self, Summary};
use crate::store::{Alike, Error, Facts, Hints, RowRange, Rows, Summaries, count_of};

/// Most source rows to summarise.
const MOST_SUMMED: u64 = 1 << 16;

/// The first `count` rows of another column, each repeated `run` times, and this whole sequence repeated as often as
/// needed. Rows must have a fixed width.
#[derive(Debug)]
pub struct SpreadRows {
    rows: Arc<dyn Rows>,
    count: u64,
    run: u64,
    facts: Facts,
    path: String,
    /// The summary of all source rows, once needed.
    summed: OnceLock<Option<Summary>>,
}

impl SpreadRows {
    /// `len` rows from the first `count` of `rows`, each repeated `run` times; `count` is limited to the number of
    /// rows.
    pub fn new(path: String, rows: Arc<dyn Rows>, count: u64, run: u64, len: u64) -> Self {
        let count = count.min(rows.len());
        let len = if count == 0 { 0 } else { len };
        let inner = rows.facts();
        let facts = Facts {
            nullable: inner.nullable,
            hints: Hints { stored: false, ..inner.hints.clone() },
            alike: Alike::new({
                let rows = rows.clone();
                // Repeated rows are alike only if all source rows are.
                move |row, interrupt| Ok(if rows.alike_until(0, interrupt)? >= count { u64::MAX } else { row })
            }),
            containers: inner.containers.clone(),
            ..Facts::new(len, inner.data_type.clone())
        };
        Self { rows, count, run: run.max(1), facts, path, summed: OnceLock::new() }
    }

    /// The source rows for a non-empty `range`, numbered on beyond the end of one cycle.
    fn sources(&self, range: &RowRange) -> RowRange {
        range.start / self.run..(range.end - 1) / self.run + 1
    }

    /// The distinct source rows among `sources`, and where in their numbering these begin.
    fn values(&self, sources: &RowRange, interrupt: &Interrupt) -> Result<(ArrayRef, u64), Error> {
        let (first, behind) = (sources.start % self.count, sources.end - sources.start);
        if behind >= self.count {
            return Ok((self.rows.array(0..self.count, interrupt)?, sources.start - first));
        }
        let end = self.count.min(first + behind);
        let values = self.rows.array(first..end, interrupt)?;
        if end == first + behind {
            return Ok((values, sources.start));
        }
        let others = self.rows.array(0..first + behind - end, interrupt)?;
        let values = concat(&[values.as_ref(), others.as_ref()]).map_err(|error| self.failed(error))?;
        Ok((values, sources.start))
    }

    fn failed(&self, error: impl ToString) -> Error {
        Error::unsupported(&self.path, error)
    }
}

impl Rows for SpreadRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let length = count_of(&range, self.facts.len, &self.path)?;
        if length == 0 {
            return Ok(new_empty_array(&self.facts.data_type));
        }
        let sources = self.sources(&range);
        let (values, first) = self.values(&sources, interrupt)?;
        if self.run == 1 && values.len() == length && first == sources.start {
            return Ok(values);
        }
        let mut places = Vec::with_capacity(length);
        for source in sources {
            interrupt.check()?;
            let behind = (source + 1).saturating_mul(self.run).min(range.end) - range.start;
            places.resize(behind as usize, (source - first) % self.count);
        }
        take(&values, &UInt64Array::from(places), None).map_err(|error| self.failed(error))
    }

    fn known(&self) -> Option<&dyn Summaries> {
        Some(self)
    }
}

impl Summaries for SpreadRows {
    fn summary(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<Summary>, Error> {
        if self.count > MOST_SUMMED || count_of(&range, self.facts.len, &self.path)? == 0 {
            return Ok(None);
        }
        let sources = self.sources(&range);
        let is_all = sources.end - sources.start >= self.count;
        let summed = match self.summed.get() {
            Some(summed) if is_all => summed.clone(),
            _ => statistics::summary(self.values(&sources, interrupt)?.0.as_ref()),
        };
        if is_all {
            self.summed.get_or_init(|| summed.clone());
        }
        // Repetitions are not counted, so a summary with nulls or NaN would be wrong.
        let summed = summed.filter(|summed| summed.nulls == 0 && summed.nans == 0);
        Ok(summed.map(|summed| Summary { rows: range.end - range.start, ..summed }))
    }

    fn is_computed(&self, interrupt: &Interrupt) -> bool {
        self.rows.known().is_some_and(|known| known.is_computed(interrupt))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use proptest::prelude::*;

    use super::super::HeldRows;
    use super::*;

    proptest! {
        #[test]
        fn each_row_is_that_of_its_place(
            count in 1_u64..9, run in 1_u64..9, len in 0_u64..99, a in 0_u64..99, b in 0_u64..99,
        ) {
            let values = Arc::new(arrow_array::Int64Array::from_iter_values((0..count as i64).map(|at| 7 - at * at)));
            let held = Arc::new(HeldRows::new(values.clone(), false, Hints::default()));
            let rows = SpreadRows::new("/x".into(), held, count, run, len);
            let (range, none) = (a.min(b).min(len)..a.max(b).min(len), Interrupt::new());
            let wanted: Vec<i64> = range.clone().map(|row| values.value((row / run % count) as usize)).collect();
            let array = rows.array(range.clone(), &none).unwrap();
            prop_assert_eq!(array.as_primitive::<Int64Type>().values(), wanted.as_slice());
            let summed = rows.summary(range, &none).unwrap();
            prop_assert_eq!(summed, statistics::summary(array.as_ref()).filter(|_| !wanted.is_empty()));
        }
    }
}
