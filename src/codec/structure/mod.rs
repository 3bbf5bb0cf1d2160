//! Structures of the HDF5 file format that are read without libhdf5, as pure functions over their bytes.

pub mod header;
pub mod heap;
pub mod mapped;

/// Bytes that an address and a length take in a file.
#[derive(Clone, Copy, Debug)]
pub struct Widths {
    /// Of an address.
    pub address: usize,
    /// Of a length.
    pub length: usize,
}

impl Widths {
    /// The address of what is nowhere.
    pub fn undefined(self) -> Option<u64> {
        u32::try_from(self.address).ok().and_then(|bytes| u64::MAX.checked_shr(64_u32.checked_sub(8 * bytes)?))
    }
}

/// Which elements of a dataset are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All.
    All,
    /// A box of them.
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

/// Flag of blocks that repeat at regular distances.
const REGULAR: u8 = 1;

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

    /// The head of a selection of blocks, up to its rank: whether they are regular, and how wide its numbers are.
    pub fn hyperslab(&mut self) -> Option<(bool, usize)> {
        let (flags, width) = match self.number(4)? {
            1 => self.skip(8).map(|()| (0, 4))?,
            2 => (self.byte()?, self.skip(4).map(|()| 8)?),
            3 => (self.byte()?, self.width()?),
            _ => return None,
        };
        (flags <= REGULAR).then_some((flags == REGULAR, width))
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
