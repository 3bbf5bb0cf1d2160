//! Verifies a `SORTED_ROWS`: rows that strictly ascend in the total order are distinct, so as many as the column has
//! make a permutation.
//!
//! Successive rows may lie anywhere in the column, so their values are gathered first: the whole column if memory
//! allows; otherwise as many elements of the index as fit, then the next ones in another pass over the column.

use std::ops::Range;

use super::column::in_parallel;
use super::gather::{GatheredColumn, GatheredValue, RowOrder, STEP, elements};
use super::passes::passes;
use super::{Task, Verdict};
use crate::indexes::order::Keys;
use crate::indexes::verdict::IndexFacts;
use crate::store::Error;
use crate::table::SortedRules;

/// Verifies with at most `memory` bytes for values of the column.
pub(super) fn verify(
    task: &Task<'_>,
    order: &RowOrder<'_>,
    tails: [u64; 2],
    rules: &SortedRules,
    memory: u64,
) -> Result<Verdict, Error> {
    let data_type = task.form.values.data_type();
    let Some(empty) = Keys::new(data_type) else {
        return Ok(Verdict::Unverifiable { why: format!("values of type {data_type}") });
    };
    let broken = passes(task, order, &empty, memory, &mut |task, range, column| {
        if column.tails != tails {
            let found = format!("{tails:?}, the column has {:?}", column.tails);
            return Ok(Some(Verdict::broken(rules.tails, "attributes", found)));
        }
        follow(task, order, rules, &range, column)
    })?;
    Ok(broken.unwrap_or_else(|| Verdict::Verified(IndexFacts::default())))
}

/// Checks that each element of `range` follows its predecessor.
fn follow(
    task: &Task<'_>,
    order: &RowOrder<'_>,
    rules: &SortedRules,
    range: &Range<u64>,
    column: &GatheredColumn,
) -> Result<Option<Verdict>, Error> {
    in_parallel(range.end - range.start, STEP, task, &|part| {
        let first = (range.start + part.start).saturating_sub(1);
        let rows = elements(task, order, first..range.start + part.end)?;
        let mut before: Option<GatheredValue<'_>> = None;
        for (at, row) in (first..).zip(rows.values()) {
            let value = column.value(*row);
            // No value: the index now names other rows than a moment ago.
            let is_right = value.is_some_and(|value| before.is_none_or(|before| before.is_before(&value)));
            if !is_right {
                let found = format!("row {row} after row {}", before.map_or(*row, |before| before.row));
                return Err(Verdict::broken(rules.order, format!("element {at}"), found).into());
            }
            before = value;
        }
        Ok(())
    })
}
