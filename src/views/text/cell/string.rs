//! Strings and bytes.

use std::ops::Range;

use arrow_array::types::ByteArrayType;
use arrow_array::{ArrayAccessor, GenericByteArray, OffsetSizeTrait};
use arrow_buffer::NullBuffer;

use super::style::Style;
use super::{CellWriter, Frame, column_by, column_of};

/// Most bytes of a text that the column loop copies inline.
const SHORT: usize = 64;

/// Cells of concatenated texts.
pub(in crate::views::text) struct StringCells<'a, O> {
    offsets: &'a [O],
    bytes: &'a [u8],
    /// Whether no text of the block contains a byte that needs quotes or an escape: one scan over all bytes.
    clean: bool,
}

impl<'a, O: OffsetSizeTrait> StringCells<'a, O> {
    pub fn new<S: Style, T: ByteArrayType<Offset = O>>(array: &'a GenericByteArray<T>) -> Self {
        let (offsets, bytes) = (array.value_offsets(), array.value_data());
        let used = match (offsets.first(), offsets.last()) {
            (Some(first), Some(last)) => bytes.get(first.as_usize()..last.as_usize()).unwrap_or_default(),
            _ => &[],
        };
        // Without an early exit within a piece, the compiler vectorises this loop.
        let clean = !used.chunks(4096).any(|piece| piece.iter().fold(false, |found, &byte| found | S::special(byte)));
        Self { offsets, bytes, clean }
    }

    #[inline]
    fn text(&self, row: usize) -> &'a [u8] {
        &self.bytes[self.offsets[row].as_usize()..self.offsets[row + 1].as_usize()]
    }
}

impl<S: Style, O: OffsetSizeTrait> CellWriter<S> for StringCells<'_, O> {
    #[inline]
    fn write(&self, row: usize, out: &mut Vec<u8>) {
        let text = self.text(row);
        if self.clean { S::clean_string(text, out) } else { S::string(text, out) }
    }

    #[inline]
    fn length(&self, row: usize, _: &mut Vec<u8>) -> usize {
        let text = self.text(row);
        if self.clean { S::clean_string_length(text.len()) } else { S::string_length(text) }
    }

    fn column(&self, rows: Range<usize>, nulls: Option<&NullBuffer>, frame: Frame<'_>, out: &mut Vec<u8>) {
        let longest = self.offsets.windows(2).map(|pair| pair[1].as_usize() - pair[0].as_usize()).max().unwrap_or(0);
        if !self.clean || longest > SHORT {
            return column_of::<S>(self, rows, nulls, frame, out);
        }
        let longest = longest + 2 * S::AROUND.len() + S::EMPTY.len();
        column_by(rows, nulls, frame, out, longest, |row, room| {
            let (start, end) = (self.offsets[row].as_usize(), self.offsets[row + 1].as_usize());
            if start == end {
                room.extend(S::EMPTY);
            } else {
                room.extend(S::AROUND);
                room.extend_within(self.bytes, start, end);
                room.extend(S::AROUND);
            }
        });
    }
}

/// Cells of bytes, written as lower-case hexadecimal digits.
pub(in crate::views::text) struct Hex<A>(pub A);

impl<'a, S: Style, A: ArrayAccessor<Item = &'a [u8]>> CellWriter<S> for Hex<A> {
    fn write(&self, row: usize, out: &mut Vec<u8>) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let cell = self.0.value(row);
        let mut text = Vec::with_capacity(2 * cell.len());
        for &byte in cell {
            text.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        S::clean_string(&text, out);
    }

    fn length(&self, row: usize, _: &mut Vec<u8>) -> usize {
        S::clean_string_length(2 * self.0.value(row).len())
    }
}
