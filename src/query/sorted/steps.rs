//! Counts the work of an order.

use std::sync::atomic::{AtomicU64, Ordering};

use super::PART;
use crate::table::Column;

/// Steps of making a key, of making and selecting it with a limit, of moving it once, of reading a value, of putting it
/// into order, and of writing it.
const STEPS_OF_KEY: u64 = 10;
const STEPS_OF_SELECTED_KEY: u64 = 21;
pub(super) const STEPS_OF_MOVE: u64 = 2;
const STEPS_OF_READING: u64 = 3;
const STEPS_OF_HOLDING: u64 = 2;
const STEPS_OF_WRITING: u64 = 9;

/// Steps of reading and of holding a text, where a number has 1 of each.
const READING_TEXT: u64 = 2;
const HOLDING_TEXT: u64 = 10;

/// Counts the work of an order in steps of about 7 ns, for the time left. Searching a value takes one step.
#[derive(Debug, Default)]
pub struct Steps {
    done: AtomicU64,
    /// Rows of the table that is searched.
    rows: u64,
    keys: u64,
    columns: u64,
    weight: Weight,
    limit: Option<u64>,
}

impl Steps {
    /// Weighs an order by `keys` keys. The table searched has `rows` rows; `columns` are written.
    pub fn new(rows: u64, keys: usize, limit: Option<u64>, columns: &[&Column]) -> Self {
        let weight = columns.iter().map(|column| Weight::of(column)).sum();
        Self { done: AtomicU64::new(0), rows, keys: keys as u64, columns: columns.len() as u64, weight, limit }
    }

    /// Returns the steps done so far.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, steps: u64) {
        self.done.fetch_add(steps, Ordering::Relaxed);
    }

    /// Returns the steps of sorting, holding and writing `rows` rows.
    pub fn of(&self, rows: u64) -> u64 {
        let held = self.limit.map_or(rows, |limit| limit.min(rows));
        let merges = u64::from(held.div_ceil(PART as u64).next_power_of_two().ilog2());
        let making = rows.saturating_mul(self.of_keys());
        let moving = held.saturating_mul(1 + merges).saturating_mul(STEPS_OF_MOVE);
        let holding = self.of_holding(held, self.weight);
        making.saturating_add(moving).saturating_add(holding).saturating_add(self.of_writing(held))
    }

    /// Returns the steps of making the keys of a row.
    pub(super) fn of_keys(&self) -> u64 {
        self.keys.saturating_mul(if self.limit.is_some() { STEPS_OF_SELECTED_KEY } else { STEPS_OF_KEY })
    }

    /// Returns the steps of writing `rows` rows.
    pub fn of_writing(&self, rows: u64) -> u64 {
        rows.saturating_mul(self.columns).saturating_mul(STEPS_OF_WRITING)
    }

    /// Returns the steps of reading columns of this weight whole, and of holding `values` values of each in order.
    pub(super) fn of_holding(&self, values: u64, weight: Weight) -> u64 {
        let reading = self.rows.saturating_mul(STEPS_OF_READING).saturating_mul(weight.reading);
        reading.saturating_add(values.saturating_mul(STEPS_OF_HOLDING).saturating_mul(weight.holding))
    }
}

/// Time of reading and of holding a value of each of some columns, where a number takes 1.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weight {
    reading: u64,
    holding: u64,
}

impl Weight {
    pub(super) fn of(column: &Column) -> Self {
        let is_narrow = column.rows.as_ref().is_ok_and(|rows| rows.data_type().primitive_width().is_some());
        if is_narrow { Self { reading: 1, holding: 1 } } else { Self { reading: READING_TEXT, holding: HOLDING_TEXT } }
    }
}

impl std::iter::Sum for Weight {
    fn sum<I: Iterator<Item = Self>>(weights: I) -> Self {
        weights.fold(Self::default(), |sum, one| Self {
            reading: sum.reading + one.reading,
            holding: sum.holding + one.holding,
        })
    }
}
