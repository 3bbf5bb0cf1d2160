//! Blocks in the framing that the filters of LZ4 and Bitshuffle share.
//!
//! ```text
//! 0        8           12
//! +--------+-----------+------------------+---------+------------------+---    +------+
//! | size   | block     | stored length 0  | block 0 | stored length 1  | …      | rest |
//! | u64 BE | u32 BE    | u32 BE           |         | u32 BE           |        |      |
//! +--------+-----------+------------------+---------+------------------+---    +------+
//! ```

use crate::codec::Error;

/// A chunk whose header was read; its remaining bytes begin with a block.
#[derive(Clone, Copy, Debug)]
pub(in crate::codec) struct Framed<'a> {
    /// Bytes of the chunk.
    pub size: u64,
    /// Bytes of a block; the last may be shorter.
    pub block: usize,
    rest: &'a [u8],
}

impl<'a> Framed<'a> {
    pub fn read(data: &'a [u8]) -> Result<Self, Error> {
        let mut framed = Self { size: 0, block: 0, rest: data };
        framed.size = u64::from_be_bytes(framed.number()?);
        framed.block = u32::from_be_bytes(framed.number()?) as usize;
        Ok(framed)
    }

    /// The next block as stored.
    pub fn take(&mut self) -> Result<&'a [u8], Error> {
        let stored = u32::from_be_bytes(self.number()?) as usize;
        let (block, rest) = self.rest.split_at_checked(stored).ok_or("a block ends after the chunk does")?;
        self.rest = rest;
        Ok(block)
    }

    /// The bytes after the blocks taken so far.
    pub fn rest(self) -> &'a [u8] {
        self.rest
    }

    fn number<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (number, rest) = self.rest.split_first_chunk().ok_or("a header is cut short")?;
        self.rest = rest;
        Ok(*number)
    }
}
