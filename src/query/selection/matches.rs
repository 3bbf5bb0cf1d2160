//! The matching rows of a block, and values read while finding them.

use std::ops::Range;

use arrow_buffer::{BooleanBuffer, Buffer};

use crate::store::Reservation;

/// Values are kept if at most one row in this many matches.
const FEW: usize = 16;

/// The matching rows of a block.
#[derive(Debug)]
pub(in crate::query) struct Matches {
    pub bits: BooleanBuffer,
    /// Compared values of the matching rows, kept if these are few, so that reading them does not decode the block
    /// again.
    pub values: Vec<MatchedBytes>,
    /// Whether values were decoded to find the rows.
    pub was_decoded: bool,
    /// Memory reserved for the matches. `None`: they are not kept.
    pub held: Option<Reservation>,
}

impl Matches {
    /// Returns the bytes of memory that the matches take.
    pub fn bytes(&self) -> usize {
        let values = self.values.iter().map(|values| values.bytes.len() + size_of::<MatchedBytes>()).sum::<usize>();
        self.bits.inner().len() + values + size_of::<Self>()
    }
}

/// Stored bytes of some rows of one column.
#[derive(Debug)]
pub(in crate::query) struct MatchedBytes {
    /// Position of the column in the predicate.
    pub column: usize,
    /// The rows of the block that have a value here.
    rows: BooleanBuffer,
    width: usize,
    bytes: Buffer,
}

impl MatchedBytes {
    /// Picks the stored bytes of `rows` from those of the whole block. `None`: the rows are not few.
    pub fn new(column: usize, rows: &BooleanBuffer, width: u64, stored: &[u8]) -> Option<Self> {
        let width = usize::try_from(width).ok().filter(|width| *width > 0)?;
        let count = rows.count_set_bits();
        if count == 0 || count > rows.len() / FEW {
            return None;
        }
        let mut bytes = Vec::with_capacity(count.checked_mul(width)?);
        for (start, end) in rows.set_slices() {
            bytes.extend_from_slice(stored.get(start * width..end * width)?);
        }
        Some(Self { column, rows: rows.clone(), width, bytes: bytes.into() })
    }

    /// Restricts the values to the rows that match in the end. `None`: some of these rows have no value here.
    pub fn of(self, rows: &BooleanBuffer) -> Option<Self> {
        if (&self.rows & rows).count_set_bits() < rows.count_set_bits() {
            return None;
        }
        let bytes = if self.rows.count_set_bits() == rows.count_set_bits() {
            self.bytes
        } else {
            let all = self.rows.set_indices().zip(self.bytes.chunks_exact(self.width));
            all.filter(|(row, _)| rows.value(*row)).flat_map(|(_, value)| value).copied().collect::<Vec<_>>().into()
        };
        Some(Self { rows: rows.clone(), bytes, ..self })
    }

    /// Returns the bytes of the rows at some positions, counted from the first row.
    pub fn at(&self, places: Range<usize>) -> Option<Buffer> {
        let (start, length) = (places.start.checked_mul(self.width)?, places.len().checked_mul(self.width)?);
        let is_there = start.checked_add(length).is_some_and(|end| end <= self.bytes.len());
        is_there.then(|| self.bytes.slice_with_length(start, length))
    }
}
