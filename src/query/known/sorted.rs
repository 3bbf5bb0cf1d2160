//! The answer of a sorted index: a range of its rows, found by binary search.

use std::ops::Range;

use arrow_array::{Array, ArrayRef};

use super::Ask;
use crate::indexes::order::present;
use crate::query::ranges::{ValueRanges, ValueTest};
use crate::store::decode::widen;
use crate::store::{Error, Rows};
use crate::table::IndexForm;

/// Most rows to remember for a condition: for more, reading the values costs little more.
const MOST_ROWS: u64 = 1 << 20;

/// Most ranges to search for: each step of a bisection reads a value of the column, and both ends of a range take one.
const MOST_RANGES: usize = 8;

/// Number of elements of the index to read at once.
const STEP: u64 = 1 << 16;

/// Most runs to search.
const MOST_RUNS: u64 = 1 << 12;

/// Returns the rows that satisfy a condition, in order. `None`: the index cannot answer, or there are too many rows.
pub(in crate::query) fn rows(
    form: &IndexForm,
    order: &dyn Rows,
    tails: [u64; 2],
    ask: &Ask<'_>,
) -> Result<Option<Vec<u64>>, Error> {
    let Some(valued) = form.rows().checked_sub(tails[0]).and_then(|rest| rest.checked_sub(tails[1])) else {
        return Ok(None);
    };
    Search { form, order, values: None, ask }.found(valued, u64::MAX)
}

/// As [`rows`], for an index with values of its own, which ascend within runs of this length.
pub(in crate::query) fn rows_of_values(
    form: &IndexForm,
    order: &dyn Rows,
    values: &dyn Rows,
    run: u64,
    ask: &Ask<'_>,
) -> Result<Option<Vec<u64>>, Error> {
    Search { form, order, values: Some(values), ask }.found(form.rows(), run.max(1))
}

struct Search<'a> {
    form: &'a IndexForm,
    order: &'a dyn Rows,
    /// The value of each element of `order`. `None`: the column has the values.
    values: Option<&'a dyn Rows>,
    ask: &'a Ask<'a>,
}

impl Search<'_> {
    /// Searches the first `valued` elements, which ascend within each run.
    fn found(&self, valued: u64, run: u64) -> Result<Option<Vec<u64>>, Error> {
        // Codes and labels have different orders.
        let (ValueTest::Compare { ranges, negated: false }, None) = (self.ask.test, &self.form.labels) else {
            return Ok(None);
        };
        let Some(ends) = ranges.ends() else { return Ok(None) };
        if ends.len() > MOST_RANGES || valued.div_ceil(run) > MOST_RUNS {
            return Ok(None);
        }
        let mut found = Vec::new();
        let (mut from, mut is_told) = (0, true);
        while from < valued && is_told {
            let to = from.saturating_add(run).min(valued);
            for [below, up_to] in &ends {
                let (Some(first), Some(last)) = (self.end_of(below, from..to)?, self.end_of(up_to, from..to)?) else {
                    return Ok(None);
                };
                is_told = is_told && self.add(first..last, &mut found)?;
            }
            from = to;
        }
        // An unverified index may name a row twice.
        found.sort_unstable();
        found.dedup();
        Ok(is_told.then_some(found))
    }

    /// Adds the rows of elements with non-null values. Returns `false` if an element is not a row, or there are too
    /// many.
    fn add(&self, elements: Range<u64>, found: &mut Vec<u64>) -> Result<bool, Error> {
        if elements.end.saturating_sub(elements.start).saturating_add(found.len() as u64) > MOST_ROWS {
            return Ok(false);
        }
        for start in elements.clone().step_by(STEP as usize) {
            let end = elements.end.min(start + STEP);
            let Some(mut rows) = self.rows(start, end)? else { return Ok(false) };
            if let Some(values) = self.values.filter(|values| values.nullable()) {
                let values = values.array(start..end, self.ask.interrupt)?;
                let mut is_valid = (0..values.len()).map(|at| values.is_valid(at));
                rows.retain(|_| is_valid.next().unwrap_or(false));
            }
            found.append(&mut rows);
        }
        Ok(true)
    }

    /// Reads elements `start..end` of the index. `None`: one of them is not a row.
    fn rows(&self, start: u64, end: u64) -> Result<Option<Vec<u64>>, Error> {
        self.ask.interrupt.check()?;
        let array = self.order.array(start..end, self.ask.interrupt)?;
        let Some(wide) = widen::unsigned(&array) else { return Ok(None) };
        let rows = wide.values().to_vec();
        Ok(rows.iter().all(|row| *row < self.form.rows()).then_some(rows))
    }

    /// Reads the value of an element, as an array of one row. `None`: the element is not a row.
    fn value(&self, element: u64) -> Result<Option<ArrayRef>, Error> {
        if let Some(values) = self.values {
            self.ask.interrupt.check()?;
            return Ok(Some(present(&values.array(element..element + 1, self.ask.interrupt)?)));
        }
        let Some(row) = self.rows(element, element + 1)?.and_then(|rows| rows.first().copied()) else {
            return Ok(None);
        };
        Ok(Some(self.form.values.array(row..row + 1, self.ask.interrupt)?))
    }

    /// Finds where the values of a run that lie in `ranges` end; `ranges` must hold all values up to some end. `None`:
    /// a value cannot be compared.
    fn end_of(&self, ranges: &ValueRanges, run: Range<u64>) -> Result<Option<u64>, Error> {
        let (mut least, mut greatest) = (run.start, run.end);
        while least < greatest {
            let middle = least + (greatest - least) / 2;
            let Some(value) = self.value(middle)? else { return Ok(None) };
            match ranges.matching(value.as_ref()) {
                Some(holds) if holds.len() == 1 && value.is_valid(0) => {
                    if holds.value(0) {
                        least = middle + 1;
                    } else {
                        greatest = middle;
                    }
                }
                _ => return Ok(None),
            }
        }
        Ok(Some(least))
    }
}
