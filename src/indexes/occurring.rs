//! The values of a `BITMAP` that occur in each block of rows. Verification gathers them, since it reads all bits
//! anyway.

use serde::{Deserialize, Serialize};

use crate::store::RowRange;

/// Number of rows of a block, as in the smallest row group of a Parquet file.
const BLOCK: u64 = 131_072;

/// Most values of a bitmap for which occurrences are gathered. With more, nearly every row group has most of them.
const MOST_VALUES: u64 = 256;

/// Most bytes of an [`Occurring`], which is part of the verdict.
const MOST_BYTES: u64 = 1 << 20;

/// A bit for each value of a bitmap in each block of rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occurring {
    rows: u64,
    values: u64,
    /// A bit for each value in the first block, then in the second, and so on.
    bits: Vec<u8>,
}

impl Occurring {
    /// Whether occurrences are gathered for this many values and rows.
    pub fn is_gathered(values: u64, rows: u64) -> bool {
        values <= MOST_VALUES && rows.div_ceil(BLOCK) <= MOST_BYTES * 8 / values.max(1)
    }

    /// Returns an empty record. `None`: too many values or rows.
    pub fn new(values: u64, rows: u64) -> Option<Self> {
        let is_gathered = Self::is_gathered(values, rows);
        // At most MOST_BYTES.
        is_gathered.then(|| Self { rows, values, bits: vec![0; (values * rows.div_ceil(BLOCK)).div_ceil(8) as usize] })
    }

    /// Records a value's bitmap over the rows from `first` on, a multiple of 8.
    pub fn add(&mut self, value: u64, mut first: u64, mut bits: &[u8]) {
        while !bits.is_empty() {
            let to_next = ((BLOCK - first % BLOCK) / 8).max(1) as usize;
            let (block, rest) = bits.split_at(to_next.min(bits.len()));
            let bit = first / BLOCK * self.values + value;
            if let Some(byte) = self.bits.get_mut((bit / 8) as usize).filter(|_| block.iter().any(|byte| *byte != 0)) {
                *byte |= 1 << (bit % 8);
            }
            first += 8 * block.len() as u64;
            bits = rest;
        }
    }

    /// Whether these rows are recorded.
    pub fn covers(&self, rows: &RowRange) -> bool {
        rows.end <= self.rows
    }

    /// Whether a block that holds some of `rows` has the value; true where nothing is recorded.
    pub fn may_occur(&self, value: u64, rows: &RowRange) -> bool {
        (rows.start / BLOCK..rows.end.div_ceil(BLOCK)).any(|block| {
            let bit = block.saturating_mul(self.values).saturating_add(value);
            self.bits.get((bit / 8) as usize).is_none_or(|byte| byte >> (bit % 8) & 1 == 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_the_values_of_their_rows() {
        let mut occurring = Occurring::new(3, 2 * BLOCK + 1).unwrap();
        // From eight rows before the second block on: a row of the first, none of the second, the only one of the
        // third.
        let mut bits = vec![0; 2 + BLOCK as usize / 8];
        (bits[0], bits[1 + BLOCK as usize / 8]) = (0x80, 1);
        occurring.add(2, BLOCK - 8, &bits);
        let blocks = [0..BLOCK, BLOCK..2 * BLOCK, 2 * BLOCK..2 * BLOCK + 1];
        let of = |value| blocks.clone().map(|rows| occurring.may_occur(value, &rows));
        assert_eq!([of(0), of(1), of(2)], [[false; 3], [false; 3], [true, false, true]]);
        assert!(occurring.may_occur(2, &(0..2 * BLOCK)) && !occurring.may_occur(1, &(0..2 * BLOCK + 1)));
        assert!(occurring.covers(&blocks[2]) && !occurring.covers(&(0..2 * BLOCK + 2)));
    }

    #[test]
    fn many_values_or_rows_are_left_out() {
        assert!(Occurring::is_gathered(256, 1 << 32) && !Occurring::is_gathered(257, 1));
        assert!(Occurring::new(u64::MAX, u64::MAX).is_none() && Occurring::new(0, 0).is_some());
    }
}
