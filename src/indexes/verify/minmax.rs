//! Verifies a `CHUNK_MINMAX`: each entry exactly.

use std::collections::HashMap;

use arrow_array::StructArray;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use parking_lot::Mutex;

use super::column::{ColumnSlice, End};
use super::{Task, Verdict};
use crate::indexes::minmax::{MinMaxEntry, by_chunk, stored};
use crate::indexes::verdict::IndexFacts;
use crate::store::statistics::Scalar;
use crate::store::{Error, Rows};
use crate::table::{MinMaxRules, Rule};

/// Most entries that a thread holds.
const MOST_ENTRIES: u64 = 1 << 16;

pub(super) fn verify(task: &Task<'_>, entries: &dyn Rows, rules: &MinMaxRules) -> Result<Verdict, Error> {
    // Chunks that were partly read.
    let begun: Mutex<HashMap<u64, MinMaxEntry>> = Mutex::default();
    let step = task.step().min(task.form.chunk.saturating_mul(MOST_ENTRIES));
    let broken = task.column(step, &|part: ColumnSlice<'_>| {
        let found = by_chunk(part.values, part.first, task.form.chunk).ok_or_else(|| unordered(task))?;
        let mut whole = Vec::with_capacity(found.len());
        for (chunk, entry) in found {
            let mut begun = begun.lock();
            let entry = match begun.remove(&chunk) {
                Some(before) => before.merge(entry),
                None => entry,
            };
            if entry.n == rows_of(task, chunk) {
                whole.push((chunk, entry));
            } else {
                begun.insert(chunk, entry);
            }
        }
        compare(task, entries, rules, &whole)
    })?;
    Ok(broken.unwrap_or_else(|| Verdict::Verified(IndexFacts::default())))
}

fn unordered(task: &Task<'_>) -> End {
    End::Decided(Verdict::Unverifiable { why: format!("values of type {}", task.form.values.data_type()) })
}

fn rows_of(task: &Task<'_>, chunk: u64) -> u64 {
    let start = chunk.saturating_mul(task.form.chunk);
    start.saturating_add(task.form.chunk).min(task.form.rows()).saturating_sub(start)
}

/// Compares the stated entries of `whole` chunks with those of the column; chunks that follow each other are read
/// together.
fn compare(task: &Task<'_>, entries: &dyn Rows, rules: &MinMaxRules, whole: &[(u64, MinMaxEntry)]) -> Result<(), End> {
    for run in whole.chunk_by(|(a, _), (b, _)| a + 1 == *b) {
        let (Some((first, _)), Some((last, _))) = (run.first(), run.last()) else { continue };
        let array = entries.array(*first..last + 1, task.interrupt)?;
        let Some(array) = array.as_struct_opt() else { return Err(unordered(task)) };
        for (at, (chunk, entry)) in run.iter().enumerate() {
            if let Some((rule, found)) = differs(array, at, entry, rules) {
                return Err(End::Decided(Verdict::broken(rule, format!("chunk {chunk}"), found)));
            }
        }
    }
    Ok(())
}

fn differs(
    array: &StructArray,
    at: usize,
    entry: &MinMaxEntry,
    rules: &MinMaxRules,
) -> Option<(&'static Rule, String)> {
    let counts = [
        ("n", entry.n, rules.rows),
        ("fill_count", entry.fill_count, rules.missing),
        ("nan_count", entry.nan_count, rules.nans),
    ];
    for (name, expected, rule) in counts {
        let column = array.column_by_name(name).and_then(|column| column.as_primitive_opt::<UInt64Type>());
        let said = column.filter(|column| at < column.len()).map(|column| column.value(at));
        if said != Some(expected) {
            return Some((rule, format!("{name} is {}, the column has {expected}", said.unwrap_or_default())));
        }
    }
    let bounds = [("min", &entry.min, rules.least), ("max", &entry.max, rules.greatest)];
    for (name, expected, rule) in bounds {
        // Where no value has an order, the stated bound has no meaning.
        let Some(expected) = expected else { continue };
        let said = array.column_by_name(name).and_then(|column| stored(column, at));
        if said.as_ref().is_none_or(|said| said.order(expected).is_ne() || !same_kind(said, expected)) {
            return Some((rule, format!("{name} is {}, the column has {}", text(said.as_ref()), text(Some(expected)))));
        }
    }
    None
}

fn same_kind(a: &Scalar, b: &Scalar) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}

/// Formats a value for a finding.
fn text(value: Option<&Scalar>) -> String {
    match value {
        None => "no value".into(),
        Some(Scalar::Bool(value)) => value.to_string(),
        Some(Scalar::Int(value)) => value.to_string(),
        Some(Scalar::UInt(value)) => value.to_string(),
        Some(Scalar::Float(value)) => format!("{value:?}"),
        Some(Scalar::Text(text)) => format!("{:?}", bstr::BStr::new(text.get(..64).unwrap_or(text))),
    }
}
