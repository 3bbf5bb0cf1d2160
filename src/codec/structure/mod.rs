//! Reads structures of the HDF5 file format without libhdf5, as pure functions over their bytes.

pub mod header;
pub mod heap;
pub mod leads;
pub mod mapped;
pub mod simple;

/// Bytes of an address and of a length in a file.
#[derive(Clone, Copy, Debug)]
pub struct Widths {
    /// Bytes of an address.
    pub address: usize,
    /// Bytes of a length.
    pub length: usize,
}

impl Widths {
    /// The undefined address.
    pub fn undefined(self) -> Option<u64> {
        u32::try_from(self.address).ok().and_then(|bytes| u64::MAX.checked_shr(64_u32.checked_sub(8 * bytes)?))
    }
}

/// A selection of a dataset's elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElementSelection {
    /// All elements.
    All,
    /// A box of elements.
    Box(Area),
}

/// A box of elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    /// Its first element.
    pub start: Vec<u64>,
    /// Its extent.
    pub count: Vec<u64>,
}

/// `H5S_MAX_RANK`.
const MAX_RANK: usize = 32;

/// Flag of a regular selection: blocks at equal distances.
const REGULAR: u8 = 1;

/// The remaining bytes of a slice.
#[derive(Clone, Debug)]
pub struct Rest<'a>(pub &'a [u8]);

impl<'a> Rest<'a> {
    /// The next bytes.
    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// The next number, of `width` bytes.
    pub fn number(&mut self, width: usize) -> Option<u64> {
        self.take(width).map(little_endian)
    }

    /// The next byte.
    pub fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    /// Skips this many bytes.
    pub fn skip(&mut self, bytes: usize) -> Option<()> {
        self.take(bytes).map(drop)
    }

    /// Reads the head of a hyperslab selection up to its rank: whether it is regular, and the width of its numbers.
    pub fn hyperslab(&mut self) -> Option<(bool, usize)> {
        let (flags, width) = match self.number(4)? {
            1 => self.skip(8).map(|()| (0, 4))?,
            2 => (self.byte()?, self.skip(4).map(|()| 8)?),
            3 => (self.byte()?, self.width()?),
            _ => return None,
        };
        (flags <= REGULAR).then_some((flags == REGULAR, width))
    }

    /// The width of a selection's numbers.
    pub fn width(&mut self) -> Option<usize> {
        Some(usize::from(self.byte()?)).filter(|width| matches!(width, 2 | 4 | 8))
    }

    /// The number of dimensions of a selection.
    pub fn rank(&mut self) -> Option<usize> {
        usize::try_from(self.number(4)?).ok().filter(|rank| (1..=MAX_RANK).contains(rank))
    }

    /// Numbers in succession.
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
