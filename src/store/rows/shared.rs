//! Rows with many equal stored values.

use std::collections::HashMap;
use std::hash::Hash;

use arrow_array::ArrayRef;

/// Some rows, with each distinct stored row decoded once: [`Rows::shared`](super::Rows::shared).
#[derive(Clone, Debug)]
pub struct SharedRows {
    /// The distinct rows.
    pub values: ArrayRef,
    /// The index of each row among them.
    pub keys: Vec<u32>,
}

/// Deduplicates stored rows: the distinct ones in order of first occurrence, and the index of each row among them.
pub fn numbered<T: Copy + Eq + Hash>(stored: impl Iterator<Item = T>) -> (Vec<T>, Vec<u32>) {
    let (mut distinct, mut numbers) = (Vec::new(), HashMap::new());
    let keys = stored.map(|stored| {
        *numbers.entry(stored).or_insert_with(|| {
            distinct.push(stored);
            // Rows examined together number fewer than 2^32.
            distinct.len() as u32 - 1
        })
    });
    let keys = keys.collect();
    (distinct, keys)
}
