//! Bits of a `BITMAP` (HEP001 §8.6): row r has bit r % 8 of byte r / 8, the least significant first, as in Arrow.

use std::collections::HashMap;

use arrow_array::Array;

use super::canonical;

/// Returns the length in bytes of one value's bitmap over `rows` rows.
pub fn bytes(rows: u64) -> u64 {
    rows.div_ceil(8)
}

/// Number of bytes to test for zero together: for most values, most bits are not set.
const TOGETHER: usize = 64;

/// Number of set bits among the first `rows`.
pub fn count(bits: &[u8], rows: usize) -> u64 {
    let (whole, rest) = bits.split_at(bits.len().min(rows / 8));
    let mut groups = whole.chunks_exact(TOGETHER);
    let mut count = 0;
    for group in &mut groups {
        let words = group.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word));
        if words.clone().fold(0, |all, word| all | word) != 0 {
            count += words.map(|word| u64::from(word.count_ones())).sum::<u64>();
        }
    }
    let last = rest.first().map_or(0, |last| last & ((1 << (rows % 8)) - 1));
    let single = groups.remainder().iter().chain([&last]);
    count + single.map(|byte| u64::from(byte.count_ones())).sum::<u64>()
}

/// The values of a bitmap, found by their canonical bytes.
#[derive(Clone, Debug, Default)]
pub struct BitmapValues {
    positions: HashMap<Box<[u8]>, usize>,
    count: usize,
}

impl BitmapValues {
    /// Adds values at the next positions; returns whether their type has canonical bytes. Nulls and NaN take a position
    /// but equal nothing.
    ///
    /// # Errors
    /// The positions of two equal values.
    pub fn extend(&mut self, values: &dyn Array) -> Result<bool, [usize; 2]> {
        let mut twice = None;
        let known = canonical::for_each(values, |row, bytes| {
            let at = self.count + row;
            if let Some(before) = self.positions.get(bytes) {
                twice.get_or_insert([*before, at]);
            } else {
                self.positions.insert(bytes.into(), at);
            }
        });
        self.count += values.len();
        twice.map_or(Ok(known), Err)
    }

    /// Adds the values not there yet, to build a bitmap; returns their rows in `values`, in the order of their
    /// positions. Skips values of a type without canonical bytes.
    pub fn extend_new(&mut self, values: &dyn Array) -> Vec<usize> {
        let mut new = Vec::new();
        canonical::for_each(values, |row, bytes| {
            if !self.positions.contains_key(bytes) {
                self.positions.insert(bytes.into(), self.count);
                self.count += 1;
                new.push(row);
            }
        });
        new
    }

    /// Returns the position of the value with these canonical bytes.
    pub fn position(&self, bytes: &[u8]) -> Option<usize> {
        self.positions.get(bytes).copied()
    }

    /// Number of values, including nulls and NaN.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Calls `see` with each row of `array` that is neither null nor NaN, and with the position of its value, `None` if
    /// the bitmap lacks it. Returns whether the type has canonical bytes.
    pub fn find(&self, array: &dyn Array, mut see: impl FnMut(usize, Option<usize>)) -> bool {
        // Values nearly always come in runs or from a small set: comparing with the last one costs less than hashing.
        let mut last: Option<(Box<[u8]>, Option<usize>)> = None;
        canonical::for_each(array, |row, bytes| {
            let position = match &last {
                Some((seen, position)) if **seen == *bytes => *position,
                _ => {
                    let position = self.positions.get(bytes).copied();
                    last = Some((bytes.into(), position));
                    position
                }
            };
            see(row, position);
        })
    }

    /// Returns for each value the bits of the rows of `array` that have it.
    pub fn bitmaps(&self, array: &dyn Array) -> Vec<Vec<u8>> {
        let mut bitmaps = vec![vec![0; array.len().div_ceil(8)]; self.count];
        self.find(array, |row, position| {
            if let Some(bitmap) = position.and_then(|position| bitmaps.get_mut(position)) {
                bitmap[row / 8] |= 1 << (row % 8);
            }
        });
        bitmaps
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Float32Array, Int16Array};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bits_are_counted_up_to_any_row(
            pieces in prop::collection::vec((prop_oneof![Just(0), any::<u8>()], 0..100_usize), 0..10),
            part in 0..=100_usize,
        ) {
            let bits: Vec<u8> = pieces.into_iter().flat_map(|(byte, count)| vec![byte; count]).collect();
            let rows = bits.len() * 8 * part / 100;
            let expected = (0..rows).filter(|row| bits[row / 8] >> (row % 8) & 1 == 1).count();
            prop_assert_eq!(count(&bits, rows), expected as u64);
        }
    }

    #[test]
    fn each_value_has_its_rows() {
        let mut values = BitmapValues::default();
        assert_eq!(values.extend(&Int16Array::from(vec![Some(7), None, Some(-1)])), Ok(true));
        assert_eq!(values.len(), 3);
        let rows = Int16Array::from(vec![Some(-1), Some(7), None, Some(3), Some(7), None, None, None, Some(-1)]);
        assert_eq!(values.bitmaps(&rows), [vec![0b1_0010, 0], vec![0, 0], vec![1, 1]]);
        assert_eq!(values.extend(&Int16Array::from(vec![7])), Err([0, 3]));
    }

    #[test]
    fn new_values_are_added_once() {
        let mut values = BitmapValues::default();
        let array = Float32Array::from(vec![Some(0.0), Some(-0.0), None, Some(f32::NAN), Some(2.0)]);
        assert_eq!(values.extend_new(&array), [0, 4]);
        assert_eq!(values.extend_new(&array), [0; 0]);
        assert_eq!(values.bitmaps(&array), [vec![0b11], vec![0b1_0000]]);
        assert_eq!(bytes(9), 2);
    }
}
