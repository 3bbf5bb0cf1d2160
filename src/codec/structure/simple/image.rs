//! The bytes of a file: read in few large pieces, each given to one structure.

use std::collections::BTreeMap;

use super::BytesAt;

/// Bytes of the first read: most small files as a whole, of others most of the metadata.
const FIRST: u64 = 64 << 10;

/// Bytes of each later read.
const PIECE: u64 = 16 << 10;

/// Most bytes of a file that are read.
const MOST_READ: u64 = 1 << 20;

/// The bytes of a file.
pub(super) struct Image<'a> {
    read_at: &'a BytesAt<'a>,
    /// Length of the file.
    length: u64,
    /// End of the addresses in use.
    end: u64,
    /// The pieces read, by number.
    pieces: BTreeMap<u64, Vec<u8>>,
    /// Bytes that may still be read.
    left: u64,
    /// Ends of the structures met, by address.
    taken: BTreeMap<u64, u64>,
}

impl<'a> Image<'a> {
    /// The image of a file of `length` bytes; `None`: reading failed.
    pub fn new(read_at: &'a BytesAt<'a>, length: u64) -> Option<Self> {
        let mut image =
            Self { read_at, length, end: length, pieces: BTreeMap::new(), left: MOST_READ, taken: BTreeMap::new() };
        let first = image.load(0, FIRST.min(length))?;
        let pieces = first.chunks(PIECE as usize).map(<[u8]>::to_vec);
        image.pieces = (0..).zip(pieces).collect();
        Some(image)
    }

    /// Sets the end of the addresses in use; `None`: the file is shorter.
    pub fn end_at(&mut self, end: u64) -> Option<()> {
        self.end = end;
        (end <= self.length).then_some(())
    }

    /// End of the addresses in use.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Reads bytes within the addresses in use.
    pub fn peek(&mut self, address: u64, length: usize) -> Option<Vec<u8>> {
        let end = address.checked_add(u64::try_from(length).ok()?)?;
        if length == 0 || end > self.end || end - address > MOST_READ {
            return None;
        }
        let mut bytes = Vec::with_capacity(length);
        for number in address / PIECE..=(end - 1) / PIECE {
            let begin = number.checked_mul(PIECE)?;
            if !self.pieces.contains_key(&number) {
                let piece = self.load(begin, PIECE.min(self.length.checked_sub(begin)?))?;
                self.pieces.insert(number, piece);
            }
            let from = usize::try_from(address.saturating_sub(begin)).ok()?;
            let to = usize::try_from((end - begin).min(PIECE)).ok()?;
            bytes.extend_from_slice(self.pieces.get(&number)?.get(from..to)?);
        }
        Some(bytes)
    }

    /// Reads a structure; each is read once. `None`: some of its bytes belong to another.
    pub fn take(&mut self, address: u64, length: usize) -> Option<Vec<u8>> {
        let bytes = self.peek(address, length)?;
        let end = address.checked_add(length as u64)?;
        // Those before it are apart, so the last of them ends last.
        if self.taken.range(..end).next_back().is_some_and(|(_, before)| *before > address) {
            return None;
        }
        self.taken.insert(address, end);
        Some(bytes)
    }

    fn load(&mut self, begin: u64, length: u64) -> Option<Vec<u8>> {
        self.left = self.left.checked_sub(length)?;
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        (self.read_at)(begin, &mut bytes)?;
        Some(bytes)
    }
}
