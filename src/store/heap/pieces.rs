//! Memory that descriptors lead to.

use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::store::Reservation;

/// Bytes in memory that descriptors lead to: concatenated pieces.
#[derive(Debug, Default)]
pub(in crate::store) struct Pieces {
    /// The pieces, each with its first position.
    all: Vec<(u64, HeapPiece)>,
    end: u64,
}

/// A piece of the memory that descriptors lead to.
#[derive(Clone, Debug)]
pub(in crate::store) enum HeapPiece {
    /// The content of the fill value's descriptors.
    Fill(Arc<[u8]>),
    /// The content of a chunk's descriptors as read by a worker, or a copy with its own descriptors moved.
    Heap(Arc<(Vec<u8>, Reservation)>),
}

impl Deref for HeapPiece {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Fill(bytes) => bytes,
            Self::Heap(held) => &held.0,
        }
    }
}

impl Pieces {
    /// Appends a piece.
    pub fn push(&mut self, piece: HeapPiece) {
        let start = self.end;
        self.end = start.saturating_add(piece.len() as u64);
        if !piece.is_empty() {
            self.all.push((start, piece));
        }
    }

    /// The first position of the next piece.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The piece that contains these bytes, and their range in it; `None`: no piece contains all of them.
    pub fn find(&self, position: u64, bytes: u64) -> Option<(&HeapPiece, Range<usize>)> {
        let behind = self.all.partition_point(|(start, _)| *start <= position);
        let (start, piece) = self.all.get(behind.checked_sub(1)?)?;
        let first = usize::try_from(position - start).ok()?;
        let end = first.checked_add(usize::try_from(bytes).ok()?).filter(|end| *end <= piece.len())?;
        Some((piece, first..end))
    }
}

impl From<Arc<[u8]>> for Pieces {
    fn from(fill: Arc<[u8]>) -> Self {
        let mut pieces = Self::default();
        pieces.push(HeapPiece::Fill(fill));
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_lie_in_one_piece() {
        let mut pieces = Pieces::from(Arc::from([1u8, 2, 3].as_slice()));
        pieces.push(HeapPiece::Fill(Arc::default()));
        pieces.push(HeapPiece::Fill(Arc::from([4u8, 5].as_slice())));
        let found = |position, bytes| pieces.find(position, bytes).map(|(piece, range)| piece[range].to_vec());
        assert_eq!(pieces.end(), 5);
        assert_eq!(found(1, 2), Some(vec![2, 3]));
        assert_eq!(found(3, 2), Some(vec![4, 5]));
        assert_eq!(found(4, 0), Some(vec![]));
        for (position, bytes) in [(2, 2), (3, 3), (6, 1), (u64::MAX, u64::MAX)] {
            assert_eq!(found(position, bytes), None);
        }
    }
}
