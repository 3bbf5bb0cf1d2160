//! `SORTED_ROWS`: rows that follow each other strictly in the total order are all different, so as many as the column
//! has are a permutation.
//!
//! Rows that follow each other lie anywhere in the column, so their values are gathered before they are compared: all
//! of the column where memory allows; else those of as many elements of the index as fit, then those of the next ones,
//! by another pass over the column.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::column::in_parallel;
use super::gather::{Column, Order, Refusal, STEP, Value, Wanted, elements, gather};
use super::{Task, Verdict};
use crate::indexes::order::Keys;
use crate::indexes::verdict::Facts;
use crate::store::Error;

/// Passes over the column at most: each decodes all of it.
const MOST_PASSES: u64 = 8;

/// Verifies with `memory` bytes for values.
pub(super) fn verify(task: &Task<'_>, order: &Order<'_>, tails: [u64; 2], memory: u64) -> Result<Verdict, Error> {
    let rows = task.form.rows();
    let data_type = task.form.values.data_type();
    let Some(empty) = Keys::new(data_type) else {
        return Ok(Verdict::Unverifiable { why: format!("values of type {data_type}") });
    };
    let mut at_once = match at_once(task, &empty, memory) {
        Ok(at_once) => at_once,
        Err(bytes) => return Ok(needs(bytes, memory)),
    };
    let told = AtomicU64::new(0);
    let mut start = 0;
    // A column without rows has tails all the same.
    while start < rows.max(1) {
        let passes = rows.div_ceil(at_once).max(1);
        let progress = |rows| {
            told.fetch_add(rows / passes, Ordering::Relaxed);
            (task.progress)(rows / passes);
        };
        let task = &Task { progress: &progress, ..*task };
        let range = start..rows.min(start.saturating_add(at_once));
        // With the one before, so that no pair is left out between two passes.
        let wanted = match passes {
            1 => None,
            _ => match Wanted::new(task, order, start.saturating_sub(1)..range.end)? {
                Ok(wanted) => Some(wanted),
                Err(broken) => return Ok(broken),
            },
        };
        let column = match gather(task, &empty, wanted, memory)? {
            Ok(column) => column,
            Err(Refusal::Decided(verdict)) => return Ok(verdict),
            // Texts are longer than was known, or others hold the memory.
            Err(Refusal::Short(_)) if rows.div_ceil(at_once.div_ceil(2)) <= MOST_PASSES && at_once > 1 => {
                at_once = at_once.div_ceil(2);
                continue;
            }
            Err(Refusal::Short(bytes)) => return Ok(needs(bytes, memory)),
        };
        if column.tails != tails {
            return Ok(Verdict::broken(
                order.rules.tails,
                "attributes",
                format!("{tails:?}, the column has {:?}", column.tails),
            ));
        }
        if let Some(broken) = follow(task, order, &range, &column)? {
            return Ok(broken);
        }
        start = range.end.max(1);
    }
    (task.progress)(rows.saturating_sub(told.into_inner()));
    Ok(Verdict::Verified(Facts::default()))
}

/// How many elements of the index are gathered at once; an error with the bytes needed where they take too many passes.
fn at_once(task: &Task<'_>, empty: &Keys, memory: u64) -> Result<u64, u64> {
    let rows = task.form.rows();
    let of_text = if empty.is_text() { task.form.values.stored_width().unwrap_or(0) } else { 0 };
    let width = empty.width().saturating_add(of_text);
    // A bit each says which are missing.
    let of = |rows: u64| rows.saturating_mul(width).saturating_add(rows / 8);
    if of(rows) <= memory {
        return Ok(rows.max(1));
    }
    let (marks, fewest) = (Wanted::bytes(rows), rows.div_ceil(MOST_PASSES));
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

/// Whether each of these elements follows the one before it.
fn follow(task: &Task<'_>, order: &Order<'_>, range: &Range<u64>, column: &Column) -> Result<Option<Verdict>, Error> {
    in_parallel(range.end - range.start, STEP, task, &|part| {
        let first = (range.start + part.start).saturating_sub(1);
        let rows = elements(task, order, first..range.start + part.end)?;
        let mut before: Option<Value<'_>> = None;
        for (at, row) in (first..).zip(rows.values()) {
            let value = column.value(*row);
            // One that was not gathered is none of those that the index named a moment ago.
            let is_right = value.is_some_and(|value| before.is_none_or(|before| before.is_before(&value)));
            if !is_right {
                let found = format!("row {row} behind row {}", before.map_or(*row, |before| before.row));
                return Err(Verdict::broken(order.rules.order, format!("element {at}"), found).into());
            }
            before = value;
        }
        Ok(())
    })
}
