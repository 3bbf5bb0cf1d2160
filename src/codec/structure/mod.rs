//! Structures of the HDF5 file format that are read without libhdf5, as pure functions over their bytes.

pub mod heap;

/// `H5S_MAX_RANK`.
const MAX_RANK: usize = 32;

/// What is left to read.
#[derive(Clone, Debug)]
pub struct Rest<'a>(pub &'a [u8]);

impl<'a> Rest<'a> {
    /// The bytes that come next.
    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// A number of that many bytes.
    pub fn number(&mut self, width: usize) -> Option<u64> {
        self.take(width).map(little_endian)
    }

    /// One byte.
    pub fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    /// Passes over bytes.
    pub fn skip(&mut self, bytes: usize) -> Option<()> {
        self.take(bytes).map(drop)
    }

    /// How wide the numbers of a selection are.
    pub fn width(&mut self) -> Option<usize> {
        Some(usize::from(self.byte()?)).filter(|width| matches!(width, 2 | 4 | 8))
    }

    /// How many dimensions a selection has.
    pub fn rank(&mut self) -> Option<usize> {
        usize::try_from(self.number(4)?).ok().filter(|rank| (1..=MAX_RANK).contains(rank))
    }

    /// Numbers one behind the other.
    pub fn numbers(&mut self, width: usize, count: usize) -> Option<Vec<u64>> {
        (0..count).map(|_| self.number(width)).collect()
    }
}

/// An unsigned number of up to 8 bytes; wider ones do not occur.
#[inline]
pub fn little_endian(bytes: &[u8]) -> u64 {
    // Nearly all files have numbers of 8 bytes.
    if let Ok(bytes) = bytes.try_into() {
        return u64::from_le_bytes(bytes);
    }
    bytes.iter().take(8).rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
