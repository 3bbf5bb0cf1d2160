//! Verifies the bounds of runs of rows: the least and the greatest value of each, exactly.

use std::collections::HashMap;

use arrow_array::{Array, ArrayRef};
use parking_lot::Mutex;

use super::column::ColumnSlice;
use super::{Task, Verdict};
use crate::indexes::minmax::{MinMaxEntry, are_bounds, by_chunk};
use crate::indexes::order::present;
use crate::indexes::verdict::IndexFacts;
use crate::store::{Error, Rows};
use crate::table::BoundsRules;

/// Most runs whose bounds a thread holds.
const MOST_RUNS: u64 = 1 << 16;

pub(super) fn verify(task: &Task<'_>, bounds: &dyn Rows, rules: &BoundsRules) -> Result<Verdict, Error> {
    let run = task.form.chunk.max(1);
    // Runs that have been read only in part.
    let begun: Mutex<HashMap<u64, MinMaxEntry>> = Mutex::default();
    let broken = task.column(task.step().min(run.saturating_mul(MOST_RUNS)), &|part: ColumnSlice<'_>| {
        let entries = by_chunk(part.values, part.first, run)
            .ok_or_else(|| Verdict::Unverifiable { why: format!("values of type {}", part.values.data_type()) })?;
        for (number, entry) in entries {
            let entry = {
                let mut begun = begun.lock();
                let entry = begun.remove(&number).map_or(entry.clone(), |before| before.merge(entry));
                if entry.n < run {
                    begun.insert(number, entry);
                    continue;
                }
                entry
            };
            if number < bounds.len() / 2 {
                let said: ArrayRef = bounds.array(2 * number..2 * number + 2, task.interrupt)?;
                let is_right = said.data_type() == part.values.data_type() && are_bounds(&present(&said), &entry);
                if !is_right {
                    let place = format!("rows {} to {}", number * run, (number + 1) * run - 1);
                    return Err(Verdict::broken(rules.bounds, place, "other bounds than the values have").into());
                }
            }
        }
        Ok(())
    })?;
    Ok(broken.unwrap_or_else(|| Verdict::Verified(IndexFacts::default())))
}
