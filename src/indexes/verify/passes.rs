//! Passes over a column: each gathers the values of as many elements of an index as memory allows.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::gather::{GatherRefusal, GatheredColumn, RowOrder, WantedRows, gather};
use super::{Task, Verdict};
use crate::indexes::order::Keys;
use crate::store::Error;

/// Most passes over the column: each decodes all of it.
const MOST_PASSES: u64 = 8;

/// Checks some elements of an index. The given column has their values, and that of the element before them.
type Check<'a> = dyn FnMut(&Task<'_>, Range<u64>, &GatheredColumn) -> Result<Option<Verdict>, Error> + 'a;

/// Passes all elements of an index to `check`, a part at a time, with their values in `memory` bytes. A verdict from
/// `check` ends the passes, and so does a lack of memory.
pub(super) fn passes(
    task: &Task<'_>,
    order: &RowOrder<'_>,
    empty: &Keys,
    memory: u64,
    check: &mut Check<'_>,
) -> Result<Option<Verdict>, Error> {
    let rows = task.form.rows();
    let mut at_once = match at_once(task, empty, memory) {
        Ok(at_once) => at_once,
        Err(bytes) => return Ok(Some(needs(bytes, memory))),
    };
    let told = AtomicU64::new(0);
    let mut start = 0;
    // Even a column without rows must have its tails checked.
    while start < rows.max(1) {
        let passes = rows.div_ceil(at_once).max(1);
        let progress = |rows| {
            told.fetch_add(rows / passes, Ordering::Relaxed);
            (task.progress)(rows / passes);
        };
        let task = &Task { progress: &progress, ..*task };
        let range = start..rows.min(start.saturating_add(at_once));
        // Includes the element before, so that every pair is compared.
        let wanted = match passes {
            1 => None,
            _ => match WantedRows::new(task, order, start.saturating_sub(1)..range.end)? {
                Ok(wanted) => Some(wanted),
                Err(broken) => return Ok(Some(broken)),
            },
        };
        let column = match gather(task, empty, wanted, memory)? {
            Ok(column) => column,
            Err(GatherRefusal::Decided(verdict)) => return Ok(Some(verdict)),
            // Texts are longer than expected, or others hold the memory.
            Err(GatherRefusal::Short(_)) if rows.div_ceil(at_once.div_ceil(2)) <= MOST_PASSES && at_once > 1 => {
                at_once = at_once.div_ceil(2);
                continue;
            }
            Err(GatherRefusal::Short(bytes)) => return Ok(Some(needs(bytes, memory))),
        };
        if let Some(verdict) = check(task, range.clone(), &column)? {
            return Ok(Some(verdict));
        }
        start = range.end.max(1);
    }
    (task.progress)(rows.saturating_sub(told.into_inner()));
    Ok(None)
}

/// Number of elements whose values are gathered at once. `Err`: the bytes that are needed to avoid too many passes.
fn at_once(task: &Task<'_>, empty: &Keys, memory: u64) -> Result<u64, u64> {
    let rows = task.form.rows();
    let of_text = if empty.is_text() { task.form.values.stored_width().unwrap_or(0) } else { 0 };
    let width = empty.width().saturating_add(of_text);
    // One bit for each value marks nulls.
    let of = |rows: u64| rows.saturating_mul(width).saturating_add(rows / 8);
    if of(rows) <= memory {
        return Ok(rows.max(1));
    }
    let (marks, fewest) = (WantedRows::bytes(rows), rows.div_ceil(MOST_PASSES));
    let least = of(fewest + 1).saturating_add(marks);
    if least > memory {
        return Err(least);
    }
    Ok(((memory - marks) / width.saturating_add(1)).max(fewest))
}

fn needs(bytes: u64, memory: u64) -> Verdict {
    let why = format!("needs {bytes} bytes of memory at once, more than {memory}: a larger --cache-size helps");
    Verdict::Unverifiable { why }
}
