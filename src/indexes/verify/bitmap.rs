//! Verifies a `BITMAP`: every bit of every value.

use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::{Array, ArrayRef};
use parking_lot::Mutex;

use super::column::{ColumnSlice, End};
use super::{Task, Verdict};
use crate::indexes::bitmap::BitmapValues;
use crate::indexes::occurring::Occurring;
use crate::indexes::verdict::IndexFacts;
use crate::store::{Error, Rows, StoredDataset};
use crate::table::BitmapRules;

/// Most bytes of bitmaps that a thread holds, over all values.
const MOST_BITS: u64 = 16 << 20;

/// Number of values of the index to read at once.
const VALUES: u64 = 1 << 16;

/// Most values of an index: the bits of 64 rows must fit.
const MOST_VALUES: u64 = MOST_BITS / 8;

/// The index under verification.
pub(super) struct Bits<'a> {
    pub bits: &'a StoredDataset,
    pub row_bytes: u64,
    pub rules: &'static BitmapRules,
}

pub(super) fn verify(task: &Task<'_>, index: &Bits<'_>, stored: &dyn Rows, exhaustive: bool) -> Result<Verdict, Error> {
    let count = stored.len();
    if count > MOST_VALUES {
        return Ok(Verdict::Unverifiable { why: format!("{count} values, more than {MOST_VALUES}") });
    }
    let mut values = BitmapValues::default();
    // Nulls and NaN equal nothing: their bits are never read.
    let mut is_asked = Vec::new();
    for first in (0..count).step_by(VALUES as usize) {
        let array = stored.array(first..first.saturating_add(VALUES).min(count), task.interrupt)?;
        match values.extend(array.as_ref()) {
            Ok(true) => is_asked.extend(has_value(&array)),
            Ok(false) => return Ok(Verdict::Unverifiable { why: format!("values of type {}", array.data_type()) }),
            Err([a, b]) => {
                return Ok(Verdict::broken(index.rules.distinct, format!("values {a} and {b}"), "the same value"));
            }
        }
    }
    let most = (MOST_BITS * 8 / count.max(1)).max(64);
    // A multiple of 64, so that no two parts share a byte.
    let step = (task.step().min(most) / 64).max(1) * 64;
    let complete = AtomicBool::new(true);
    let occurring = Mutex::new(Occurring::new(count, task.form.rows()));
    let broken = task.column(step, &|part: ColumnSlice<'_>| {
        let mut missing = None;
        let mut expected = vec![vec![0_u8; part.values.len().div_ceil(8)]; values.len()];
        values.find(part.values.as_ref(), |row, value| match value.and_then(|value| expected.get_mut(value)) {
            Some(bits) => bits[row / 8] |= 1 << (row % 8),
            None => missing = missing.or(Some(row)),
        });
        if let Some(row) = missing {
            complete.store(false, Ordering::Relaxed);
            if exhaustive {
                let place = format!("row {}", part.first + row as u64);
                return Err(End::Decided(Verdict::broken(index.rules.exhaustive, place, "a value without a bitmap")));
            }
        }
        if let Some(occurring) = occurring.lock().as_mut() {
            (0..).zip(&expected).for_each(|(value, bits)| occurring.add(value, part.first, bits));
        }
        let mut bits = vec![0; part.values.len().div_ceil(8)];
        for (value, expected) in expected.iter().enumerate().filter(|(value, _)| is_asked.get(*value) == Some(&true)) {
            let offset = (value as u64).checked_mul(index.row_bytes).and_then(|row| row.checked_add(part.first / 8));
            index.bits.read_bytes(offset.unwrap_or(u64::MAX), &mut bits, task.interrupt)?;
            let padding = part.values.len() % 8;
            if let Some(last) = bits.last_mut().filter(|_| padding > 0) {
                *last &= (1 << padding) - 1;
            }
            if let Some(byte) = (0..bits.len()).find(|byte| bits[*byte] != expected[*byte]) {
                let bit = (bits[byte] ^ expected[byte]).trailing_zeros();
                let row = part.first + 8 * byte as u64 + u64::from(bit);
                let found =
                    if bits[byte] >> bit & 1 == 1 { "set, the row has another" } else { "not set, the row has it" };
                return Err(End::Decided(Verdict::broken(
                    index.rules.bits,
                    format!("value {value}, row {row}"),
                    found,
                )));
            }
        }
        Ok(())
    })?;
    let exhaustive = complete.into_inner();
    let occurring = occurring.into_inner().filter(|_| exhaustive);
    let facts = IndexFacts { exhaustive, occurring, ..IndexFacts::default() };
    Ok(broken.unwrap_or(Verdict::Verified(facts)))
}

/// Returns for each value whether it is neither null nor NaN.
fn has_value(values: &ArrayRef) -> Vec<bool> {
    let mut has_value = vec![false; values.len()];
    crate::indexes::canonical::for_each(values.as_ref(), |row, _| has_value[row] = true);
    has_value
}
