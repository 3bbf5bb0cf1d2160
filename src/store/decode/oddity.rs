//! Records odd values, in one bit per row and kind, since every value of a file may be odd.

use std::collections::BTreeMap;

/// A stored value that breaks a rule, while its neighbours stay readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Oddity {
    /// A boolean that is neither 0 nor 1: shown as null.
    InvalidBoolean,
    /// An enumeration code without a member: shown as its number.
    UnnamedCode,
    /// A category code past the last category: shown as null.
    CategoryOutOfRange,
    /// A list whose offsets decrease or exceed its values: shown as null.
    InvalidOffsets,
    /// A null list with elements, which are not shown.
    NullNotEmpty,
    /// Text that is not UTF-8: invalid bytes are shown as U+FFFD.
    InvalidText,
    /// A count of time units out of range of 64 bits in the shown unit: shown as null.
    TimeOutOfRange,
    /// An encoded waveform that is damaged or has an unexpected length: shown as null.
    Undecodable,
    /// An integer of a column that other files have as floats, which cannot represent it exactly: shown as the nearest
    /// float.
    Rounded,
    /// A float of more than 64 bits that float64 cannot represent: shown as the nearest float64.
    Nearest,
}

/// The oddities of some rows, by kind and row, counted from the first row decoded. A row has each oddity at most once,
/// however many of its items are odd.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Oddities {
    /// A bit per row, up to the last odd one.
    rows: BTreeMap<Oddity, Vec<u64>>,
}

impl Oddities {
    /// No oddities.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether no row is odd.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds an oddity of a row. Row numbers must stay below the number of bits in memory.
    pub fn add(&mut self, oddity: Oddity, row: u64) {
        let words = self.rows.entry(oddity).or_default();
        let at = (row / 64) as usize;
        if words.len() <= at {
            words.resize(at + 1, 0);
        }
        words[at] |= 1 << (row % 64);
    }

    /// Adds `oddity` for each of the first `len` rows that `is_odd` accepts.
    pub fn add_where(&mut self, oddity: Oddity, len: usize, is_odd: impl Fn(usize) -> bool) {
        self.extend((0..len).filter(|row| is_odd(*row)).map(|row| (oddity, row as u64)));
    }

    /// Each oddity with its rows, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Oddity, u64)> {
        self.rows.iter().flat_map(|(oddity, words)| {
            let rows = words.iter().zip(0..).filter(|(word, _)| **word != 0).flat_map(|(word, at)| {
                (0..64u64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * 64 + bit)
            });
            rows.map(|row| (*oddity, row))
        })
    }

    /// Spreads the oddities of distinct rows over all rows; `keys` has the index of each row among the distinct ones.
    pub fn of_shared(&self, keys: &[u32]) -> Self {
        let mut all = Self::new();
        for (oddity, words) in &self.rows {
            all.add_where(*oddity, keys.len(), |row| {
                words.get(keys[row] as usize / 64).is_some_and(|word| word >> (keys[row] % 64) & 1 == 1)
            });
        }
        all
    }

    /// Keeps the oddities of rows that `is_odd` accepts.
    pub fn retain(&mut self, is_odd: impl Fn(u64) -> bool) {
        if !self.is_empty() {
            let before = std::mem::take(self);
            self.extend(before.iter().filter(|(_, row)| is_odd(*row)));
        }
    }
}

impl Extend<(Oddity, u64)> for Oddities {
    fn extend<I: IntoIterator<Item = (Oddity, u64)>>(&mut self, odd: I) {
        odd.into_iter().for_each(|(oddity, row)| self.add(oddity, row));
    }
}

impl FromIterator<(Oddity, u64)> for Oddities {
    fn from_iter<I: IntoIterator<Item = (Oddity, u64)>>(odd: I) -> Self {
        let mut all = Self::new();
        all.extend(odd);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_odd_once_and_in_order() {
        let odd = [(Oddity::InvalidText, 200), (Oddity::InvalidBoolean, 64), (Oddity::InvalidText, 3)];
        let mut all: Oddities = odd.into_iter().chain(odd).collect();
        let told = [(Oddity::InvalidBoolean, 64), (Oddity::InvalidText, 3), (Oddity::InvalidText, 200)];
        assert!(all.iter().eq(told));
        let of_rows = [(Oddity::InvalidBoolean, 1), (Oddity::InvalidText, 0), (Oddity::InvalidText, 3)];
        assert!(all.of_shared(&[3, 64, 5, 200]).iter().eq(of_rows));
        all.retain(|row| row != 3);
        assert!(all.iter().eq([told[0], told[2]]));
        all.retain(|_| false);
        assert!(all.is_empty());
    }
}
