//! Rows many of which lead to the same bytes.

use std::collections::HashMap;
use std::hash::Hash;

use arrow_array::ArrayRef;

/// Some rows, each that is stored once made once: [`Rows::shared`](super::Rows::shared).
#[derive(Clone, Debug)]
pub struct Shared {
    /// What is stored.
    pub values: ArrayRef,
    /// Which of it each row is.
    pub keys: Vec<u32>,
}

/// Numbers what rows are stored as: the distinct ones in the order met, and which of them each row is.
pub fn numbered<T: Copy + Eq + Hash>(stored: impl Iterator<Item = T>) -> (Vec<T>, Vec<u32>) {
    let (mut distinct, mut numbers) = (Vec::new(), HashMap::new());
    let keys = stored.map(|stored| {
        *numbers.entry(stored).or_insert_with(|| {
            distinct.push(stored);
            // Rows that are looked at together are fewer than 2^32.
            distinct.len() as u32 - 1
        })
    });
    let keys = keys.collect();
    (distinct, keys)
}
