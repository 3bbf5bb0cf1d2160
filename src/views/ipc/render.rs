//! Renders rows to the bytes of their buffers.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::BooleanBuffer;
use arrow_schema::DataType;

use super::layout::{Position, bytes_of_slots};
use super::plan::{INLINE, IpcNode, IpcNodeKind, StreamGroup, VIEW, Views, walk_below};

use crate::views::Misfit;

/// A piece of rows of a column.
#[derive(Clone, Copy, Debug)]
pub(super) struct ColumnPiece<'a> {
    /// The column and the batch.
    pub position: Position<'a>,
    /// Number of the piece in the batch.
    pub number: u64,
    /// Which part of the column to render.
    pub part: &'a StreamGroup,
}

impl ColumnPiece<'_> {
    /// Returns the bytes of each stream of the part for these rows. A bitmap begins with the byte that contains its
    /// first bit. Trailing zeros may be missing. A stream of stored values is left empty. The last stream is built in
    /// `memory`, since fresh memory costs more than copying.
    ///
    /// # Errors
    /// If `array` differs from the plan.
    pub fn render(&self, array: &ArrayRef, memory: Vec<u8>) -> Result<Vec<Vec<u8>>, Misfit> {
        let plan = self.position.plan;
        let streams = plan.streams.get(self.part.streams.clone()).unwrap_or_default();
        let mut out = vec![Vec::new(); streams.len()];
        if let Some(last) = out.last_mut() {
            *last = memory;
        }
        let mut next = 0;
        walk_below(&plan.nodes, self.part.node, array, &mut |node, number, array| {
            let first = next;
            while streams.get(next).is_some_and(|stream| stream.node == number) {
                next += 1;
            }
            let Some([validity, buffers @ ..]) = out.get_mut(first..next) else { return Ok(()) };
            let rows = self.position.rows_before(node.domain, self.number);
            if node.nulls.is_some() {
                *validity = self.validity(node, rows, array)?;
            }
            self.buffers(node, rows, array, buffers)
        })?;
        Ok(out)
    }

    fn is_last(&self) -> bool {
        self.number + 1 >= self.position.pieces()
    }

    fn validity(&self, node: &IpcNode, rows: u64, array: &ArrayRef) -> Result<Vec<u8>, Misfit> {
        if let IpcNodeKind::Keys(_, labels) = &node.kind {
            let keys = labels.keys(array)?;
            return Ok(bits(rows, keys.len(), |row| keys[row].is_some()));
        }
        Ok(match array.nulls() {
            None => bits(rows, array.len(), |_| true),
            Some(nulls) => copy_bits(rows, nulls.inner()),
        })
    }

    fn buffers(&self, node: &IpcNode, rows: u64, array: &ArrayRef, out: &mut [Vec<u8>]) -> Result<(), Misfit> {
        let other = || Misfit::Array(format!("values of {} where another type was expected", array.data_type()));
        match (&node.kind, out) {
            (IpcNodeKind::Values(width), [values]) => {
                if self.position.plan.direct.is_none() && !append_cells(array, *width, values) {
                    return Err(other());
                }
            }
            (IpcNodeKind::Bits, [values]) => {
                *values = copy_bits(rows, array.as_boolean_opt().ok_or_else(other)?.values())
            }
            (IpcNodeKind::Keys(width, labels), [values]) => {
                let width = usize::try_from(*width).unwrap_or(8).min(8);
                for key in labels.keys(array)? {
                    // Readers look up keys under a null as well.
                    values.extend_from_slice(&key.unwrap_or(0).to_le_bytes()[..width]);
                }
            }
            (IpcNodeKind::Views(views), [cells, slots @ ..]) => self.views(node, views, rows, array, cells, slots)?,
            (IpcNodeKind::Text, [offsets, bytes]) => {
                let (range, data) = match array.as_binary_opt::<i32>() {
                    Some(cells) => {
                        let own: Vec<i64> = cells.value_offsets().iter().copied().map(i64::from).collect();
                        (self.offsets(node, &own, offsets), cells.value_data())
                    }
                    None => {
                        let text = array.as_string_opt::<i64>().ok_or_else(other)?;
                        (self.offsets(node, text.value_offsets(), offsets), text.value_data())
                    }
                };
                bytes.extend_from_slice(data.get(range).unwrap_or_default());
            }
            (IpcNodeKind::List, [offsets]) => {
                let list = array.as_list_opt::<i64>().ok_or_else(other)?;
                self.offsets(node, list.value_offsets(), offsets);
            }
            (IpcNodeKind::Struct(_) | IpcNodeKind::FixedList(_), []) => {}
            _ => return Err(other()),
        }
        Ok(())
    }

    /// Appends offsets relative to the batch; returns the range of the array's own offsets.
    fn offsets(&self, node: &IpcNode, own: &[i64], out: &mut Vec<u8>) -> std::ops::Range<usize> {
        let before = node.length.map_or(0, |length| self.position.length_before(length, self.number));
        let (first, last) = (own.first().copied().unwrap_or(0), own.last().copied().unwrap_or(0));
        // The last offset is the first of the next piece.
        let shown = if self.is_last() { own } else { own.split_last().map_or(own, |(_, rest)| rest) };
        out.reserve(shown.len() * 8);
        for offset in shown {
            out.extend((before as i64).wrapping_add(offset - first).to_le_bytes());
        }
        // Offsets of an Arrow array lie within memory, hence within usize.
        first as usize..last as usize
    }

    fn views(
        &self,
        node: &IpcNode,
        views: &Views,
        rows: u64,
        array: &ArrayRef,
        cells: &mut Vec<u8>,
        slots: &mut [Vec<u8>],
    ) -> Result<(), Misfit> {
        let slots =
            if views.shared.is_some() { slots.split_first_mut().map_or(&mut [][..], |(_, rest)| rest) } else { slots };
        let total = self.position.rows_before(node.domain, self.position.pieces());
        // Data buffers are in this order: shared texts, usual slots, longer slots.
        let mut buffer = i32::from(views.shared.is_some());
        let mut targets: Vec<Slots<'_>> = Vec::with_capacity(2);
        let widths = [views.usual, views.longer].into_iter().filter(|width| *width > 0);
        for (width, bytes) in widths.zip(slots.iter_mut()) {
            let per_buffer = bytes_of_slots(width);
            let buffers = total.saturating_mul(width).div_ceil(per_buffer);
            targets.push(Slots { width, per_buffer, buffer, rows, bytes });
            buffer = buffer.saturating_add(i32::try_from(buffers).unwrap_or(i32::MAX));
        }
        let texts = Texts::new(array)?;
        cells.reserve(array.len() * VIEW as usize);
        let mut known: HashMap<usize, i32> = HashMap::new();
        for row in 0..array.len() {
            let Some((label, text)) = texts.row(row) else {
                cells.extend([0; VIEW as usize]);
                continue;
            };
            let length =
                i32::try_from(text.len()).map_err(|_| Misfit::Size("a text of more than 2^31 bytes".into()))?;
            cells.extend(length.to_le_bytes());
            if text.len() <= INLINE {
                cells.extend_from_slice(text.as_bytes());
                cells.resize(cells.len() + INLINE - text.len(), 0);
                continue;
            }
            cells.extend_from_slice(&text.as_bytes()[..4]);
            if let (Some(shared), Some(label)) = (&views.shared, label) {
                let position = *known
                    .entry(label)
                    .or_insert_with(|| shared.positions.get(text).map_or(-1, |position| *position as i32));
                if position >= 0 {
                    cells.extend(0_i32.to_le_bytes());
                    cells.extend(position.to_le_bytes());
                    continue;
                }
            }
            let target = targets.iter_mut().find(|target| target.width >= text.len() as u64);
            let target = target
                .ok_or_else(|| Misfit::Size(format!("a text of {} bytes, longer than its type allows", text.len())))?;
            let (buffer, position) = target.put(row as u64, text.as_bytes());
            cells.extend(buffer.to_le_bytes());
            cells.extend(position.to_le_bytes());
        }
        Ok(())
    }
}

/// The slots of a stream for these rows alone.
struct Slots<'a> {
    width: u64,
    per_buffer: u64,
    /// Number of the stream's first data buffer.
    buffer: i32,
    /// Number of rows of the batch before these rows.
    rows: u64,
    bytes: &'a mut Vec<u8>,
}

impl Slots<'_> {
    /// Writes a text into a row's slot; returns its data buffer and the position in that buffer.
    fn put(&mut self, row: u64, text: &[u8]) -> (i32, i32) {
        // A piece's rows fit in memory, and positions in a buffer stay below 2^30.
        let start = (row * self.width) as usize;
        self.bytes.resize(start, 0);
        self.bytes.extend_from_slice(text);
        let position = (self.rows + row) * self.width;
        (self.buffer + (position / self.per_buffer) as i32, (position % self.per_buffer) as i32)
    }
}

/// The texts of an array of strings or labels.
enum Texts<'a> {
    Plain(&'a arrow_array::LargeStringArray),
    Labels { keys: Vec<Option<usize>>, labels: &'a arrow_array::LargeStringArray },
}

impl<'a> Texts<'a> {
    fn new(array: &'a ArrayRef) -> Result<Self, Misfit> {
        let other = || Misfit::Array(format!("{} where text was expected", array.data_type()));
        if let Some(dictionary) = array.as_any_dictionary_opt() {
            let labels = dictionary.values().as_string_opt::<i64>().ok_or_else(other)?;
            let keys = dictionary.normalized_keys();
            let keys = keys.into_iter().enumerate().map(|(row, key)| dictionary.keys().is_valid(row).then_some(key));
            return Ok(Texts::Labels { keys: keys.collect(), labels });
        }
        Ok(Texts::Plain(array.as_string_opt::<i64>().ok_or_else(other)?))
    }

    /// Returns the text of a row and, for labels, the label's number. `None`: the row is null.
    fn row(&self, row: usize) -> Option<(Option<usize>, &'a str)> {
        match self {
            Texts::Plain(texts) => texts.is_valid(row).then(|| (None, texts.value(row))),
            Texts::Labels { keys, labels } => {
                let key = (*keys.get(row)?)?;
                (key < labels.len() && labels.is_valid(key)).then(|| (Some(key), labels.value(key)))
            }
        }
    }
}

/// Appends fixed-width values as they lie in memory, which is little-endian on all supported machines; returns whether
/// the array's type has such values.
fn append_cells(array: &ArrayRef, width: u64, out: &mut Vec<u8>) -> bool {
    let data_type = array.data_type();
    let own = match data_type {
        DataType::FixedSizeBinary(width) => usize::try_from(*width).ok(),
        number => number.primitive_width(),
    };
    let Some(width) = own.filter(|own| *own as u64 == width) else { return false };
    let data = array.to_data();
    let bytes = data.buffers().first().and_then(|buffer| {
        let start = data.offset().checked_mul(width)?;
        buffer.as_slice().get(start..start.checked_add(data.len().checked_mul(width)?)?)
    });
    out.extend_from_slice(bytes.unwrap_or_default());
    bytes.is_some()
}

fn copy_bits(first: u64, from: &BooleanBuffer) -> Vec<u8> {
    if first.is_multiple_of(8) && from.offset() == 0 {
        let bytes = from.len().div_ceil(8);
        let mut out = from.values().get(..bytes).unwrap_or_default().to_vec();
        // Bits past the end belong to other values.
        if let Some(last) = out.last_mut().filter(|_| !from.len().is_multiple_of(8)) {
            *last &= (1 << (from.len() % 8)) - 1;
        }
        return out;
    }
    bits(first, from.len(), |row| from.value(row))
}

/// Returns `count` bits, shifted to the position of the first one within its byte; empty if `count` is 0.
fn bits(first: u64, count: usize, bit: impl Fn(usize) -> bool) -> Vec<u8> {
    if count == 0 {
        return Vec::new();
    }
    let phase = (first % 8) as usize;
    let mut out = vec![0_u8; (phase + count).div_ceil(8)];
    for row in 0..count {
        if bit(row) {
            let place = phase + row;
            out[place / 8] |= 1 << (place % 8);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_begin_behind_the_place_of_the_first() {
        assert_eq!(bits(8, 3, |row| row != 1), [0b101]);
        assert_eq!(bits(14, 3, |_| true), [0b1100_0000, 0b1]);
        // A piece without rows has no byte: the piece before holds its last bits.
        assert!(bits(14, 0, |_| true).is_empty());
        assert_eq!(copy_bits(16, &BooleanBuffer::from(vec![true, false, true])), [0b101]);
        assert_eq!(copy_bits(17, &BooleanBuffer::from(vec![true, false, true])), [0b1010]);
    }
}
