//! What a `SORTED_ROWS` index says of a condition: the rows of a stretch of it, which is searched for by halves.

use arrow_array::Array;

use super::Ask;
use crate::query::ranges::{Ranges, Test};
use crate::store::decode::widen;
use crate::store::{Error, Rows};
use crate::table::IndexForm;

/// Rows that are remembered of a condition at most: of more, a look at the values is not much dearer.
const MOST_ROWS: u64 = 1 << 20;

/// Ranges that are searched for at most: each takes a value of the column for each halving, twice.
const MOST_RANGES: usize = 8;

/// Elements of the index taken at once.
const STEP: u64 = 1 << 16;

/// The rows that satisfy a condition, in their order; `None` where the index does not tell, or they are many.
pub(in crate::query) fn rows(
    form: &IndexForm,
    order: &dyn Rows,
    tails: [u64; 2],
    ask: &Ask<'_>,
) -> Result<Option<Vec<u64>>, Error> {
    // The order of codes is none of labels.
    let (Test::Compare { ranges, negated: false }, None) = (ask.test, &form.labels) else { return Ok(None) };
    let Some(valued) = form.rows().checked_sub(tails[0]).and_then(|rest| rest.checked_sub(tails[1])) else {
        return Ok(None);
    };
    let ends = ranges.ends();
    if ends.len() > MOST_RANGES {
        return Ok(None);
    }
    let search = Search { form, order, valued, ask };
    let mut found = Vec::new();
    for [below, up_to] in &ends {
        let (Some(first), Some(last)) = (search.end_of(below)?, search.end_of(up_to)?) else { return Ok(None) };
        if last.saturating_sub(first).saturating_add(found.len() as u64) > MOST_ROWS {
            return Ok(None);
        }
        for start in (first..last).step_by(STEP as usize) {
            let Some(mut rows) = search.rows(start, last.min(start + STEP))? else { return Ok(None) };
            found.append(&mut rows);
        }
    }
    // One that is only trusted may name a row twice.
    found.sort_unstable();
    found.dedup();
    Ok(Some(found))
}

struct Search<'a> {
    form: &'a IndexForm,
    order: &'a dyn Rows,
    /// Elements before the tails.
    valued: u64,
    ask: &'a Ask<'a>,
}

impl Search<'_> {
    /// Elements `start..end` of the index; `None` where they are no rows.
    fn rows(&self, start: u64, end: u64) -> Result<Option<Vec<u64>>, Error> {
        self.ask.interrupt.check()?;
        let array = self.order.array(start..end, self.ask.interrupt)?;
        let Some(wide) = widen::unsigned(&array) else { return Ok(None) };
        let rows = wide.values().to_vec();
        Ok(rows.iter().all(|row| *row < self.form.rows()).then_some(rows))
    }

    /// How many of the sorted values lie in `ranges`, which hold all values up to some end; `None` where that cannot be
    /// told.
    fn end_of(&self, ranges: &Ranges) -> Result<Option<u64>, Error> {
        let (mut least, mut greatest) = (0, self.valued);
        while least < greatest {
            let middle = least + (greatest - least) / 2;
            let Some(row) = self.rows(middle, middle + 1)?.and_then(|rows| rows.first().copied()) else {
                return Ok(None);
            };
            let value = self.form.values.array(row..row + 1, self.ask.interrupt)?;
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
