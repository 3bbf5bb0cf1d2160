//! Verifies sorted values with their rows: distinct rows, as many as the column has, make a permutation.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrow_array::cast::AsArray;

use super::column::in_parallel;
use super::gather::{GatheredColumn, RowOrder, STEP, elements};
use super::passes::passes;
use super::{Task, Verdict};
use crate::indexes::order::{Keys, present};
use crate::indexes::verdict::IndexFacts;
use crate::store::{ARRAY_BYTES, Error, Rows, fixed_width};
use crate::table::ValueRules;

/// Values of an index that are sorted within each run of `run` elements.
pub(super) struct IndexValues<'a> {
    pub rows: &'a dyn Rows,
    pub run: u64,
    pub rules: &'static ValueRules,
}

/// Verifies with at most `memory` bytes for values of the column.
pub(super) fn verify(
    task: &Task<'_>,
    index: &IndexValues<'_>,
    order: &RowOrder<'_>,
    memory: u64,
) -> Result<Verdict, Error> {
    let (rows, data_type) = (task.form.rows(), task.form.values.data_type());
    let Some(empty) = Keys::new(data_type).filter(|_| index.rows.data_type() == data_type) else {
        let why = format!("values of type {data_type}, of type {} in the index", index.rows.data_type());
        return Ok(Verdict::Unverifiable { why });
    };
    if index.rows.len() != rows || order.rows.len() != rows {
        let found = format!("{} values, {} rows of {rows}", index.rows.len(), order.rows.len());
        return Ok(Verdict::broken(index.rules.elements, "lengths", found));
    }
    let words = rows.div_ceil(64);
    let Some(_held) = task.form.file.store().budget().try_reserve(words.saturating_mul(8)) else {
        let why = format!("needs {} bytes of memory at once: a larger --cache-size helps", words.saturating_mul(8));
        return Ok(Verdict::Unverifiable { why });
    };
    let seen: Vec<AtomicU64> = (0..words).map(|_| AtomicU64::new(0)).collect();
    let is_one_run = AtomicBool::new(true);
    let check = Check { index, order, empty: &empty, seen: &seen, is_one_run: &is_one_run };
    let broken = passes(task, order, &empty, memory, &mut |task, range, column| check.part(task, &range, column))?;
    let facts = IndexFacts { is_one_run: is_one_run.into_inner(), ..IndexFacts::default() };
    Ok(broken.unwrap_or(Verdict::Verified(facts)))
}

struct Check<'a> {
    index: &'a IndexValues<'a>,
    order: &'a RowOrder<'a>,
    empty: &'a Keys,
    /// A bit for each row, set once an element has named it.
    seen: &'a [AtomicU64],
    is_one_run: &'a AtomicBool,
}

impl Check<'_> {
    fn part(&self, task: &Task<'_>, range: &Range<u64>, column: &GatheredColumn) -> Result<Option<Verdict>, Error> {
        let IndexValues { rows: values, run, rules } = self.index;
        // Texts are in memory three times: as bytes, as an array and as keys.
        let step =
            ARRAY_BYTES / (3 * fixed_width(values.data_type()).max(task.form.values.stored_width().unwrap_or(0)) + 8);
        in_parallel(range.end - range.start, step.clamp(1, STEP), task, &|part| {
            let (start, end) = (range.start + part.start, range.start + part.end);
            // Includes the value before `start`, to compare with.
            let first = start.saturating_sub(1);
            let mut keys = self.empty.clone();
            let array = present(&values.array(first..end, task.interrupt)?);
            if array.as_string_opt::<i64>().is_some_and(|texts| memchr::memchr(0, texts.value_data()).is_some()) {
                let why =
                    "the column has strings with a NUL in them, which writers order as if they ended there".into();
                return Err(Verdict::Unverifiable { why }.into());
            }
            if !keys.extend(array.as_ref()) {
                let why = format!("values of type {}", values.data_type());
                return Err(Verdict::Unverifiable { why }.into());
            }
            let rows = elements(task, self.order, start..end)?;
            for (element, row) in (start..).zip(rows.values()) {
                // It fits, because a step is small.
                let at = (element - first) as usize;
                let broken = |rule, found| Err(Verdict::broken(rule, format!("element {element}"), found).into());
                if !column.value(*row).is_some_and(|value| value.equals(&keys, at)) {
                    return broken(rules.values, format!("another value than that of row {row}"));
                }
                let bit = 1 << (row % 64);
                let word = self.seen.get((row / 64) as usize);
                if word.is_none_or(|word| word.fetch_or(bit, Ordering::Relaxed) & bit != 0) {
                    return broken(rules.distinct, format!("row {row} once more"));
                }
                if at > 0 && keys.order_among(at - 1, &keys, at).is_gt() {
                    if !element.is_multiple_of((*run).max(1)) {
                        return broken(rules.order, format!("row {row} after one of a greater value"));
                    }
                    self.is_one_run.store(false, Ordering::Relaxed);
                }
            }
            Ok(())
        })
    }
}
