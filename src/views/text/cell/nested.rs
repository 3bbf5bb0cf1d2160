//! Dictionaries, structs and lists: cells composed of other cells.

use std::cell::RefCell;
use std::ops::Range;

use arrow_array::{AnyDictionaryArray, Array, FixedSizeListArray, GenericListArray, OffsetSizeTrait, StructArray};
use arrow_buffer::NullBuffer;

use super::room::SLACK;
use super::style::{JsonStyle, Style};
use super::{BlockColumn, CellWriter, Frame, NoText, column_by, column_of};
use crate::views::json;

/// Cells of a dictionary array: keys and labels.
pub(in crate::views::text) struct DictionaryCells<'a, S: Style> {
    keys: Vec<usize>,
    labels: Labels<'a, S>,
}

enum Labels<'a, S: Style> {
    /// All labels rendered and concatenated, with their offsets: for dictionaries shorter than their block.
    Written { bytes: Vec<u8>, offsets: Vec<usize>, longest: usize },
    /// Labels rendered as they occur.
    Values(BlockColumn<'a, S>),
}

impl<'a, S: Style> DictionaryCells<'a, S> {
    pub fn new(array: &'a dyn AnyDictionaryArray, depth: usize) -> Result<Self, NoText> {
        let values = BlockColumn::<S>::nested(array.values().as_ref(), depth + 1)?;
        let count = array.values().len();
        let keys = if count == 0 { Vec::new() } else { array.normalized_keys() };
        if count > keys.len() {
            return Ok(Self { keys, labels: Labels::Values(values) });
        }
        let mut bytes = Vec::new();
        let mut offsets = Vec::with_capacity(count + 1);
        offsets.push(0);
        for label in 0..count {
            values.write(label, b"", &mut bytes);
            offsets.push(bytes.len());
        }
        // The slack lets the last label be copied with one wide store as well.
        bytes.resize(bytes.len() + SLACK, 0);
        let longest = offsets.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
        Ok(Self { keys, labels: Labels::Written { bytes, offsets, longest } })
    }
}

impl<S: Style> CellWriter<S> for DictionaryCells<'_, S> {
    #[inline]
    fn write(&self, row: usize, out: &mut Vec<u8>) {
        let key = self.keys[row];
        match &self.labels {
            Labels::Written { bytes, offsets, .. } => out.extend_from_slice(&bytes[offsets[key]..offsets[key + 1]]),
            Labels::Values(values) => values.cell.write(key, out),
        }
    }

    #[inline]
    fn length(&self, row: usize, scratch: &mut Vec<u8>) -> usize {
        let key = self.keys[row];
        match &self.labels {
            Labels::Written { offsets, .. } => offsets[key + 1] - offsets[key],
            Labels::Values(values) => values.cell.length(key, scratch),
        }
    }

    fn column(&self, rows: Range<usize>, nulls: Option<&NullBuffer>, frame: Frame<'_>, out: &mut Vec<u8>) {
        match &self.labels {
            Labels::Written { bytes, offsets, longest } => {
                column_by(rows, nulls, frame, out, *longest, |row, room| {
                    let key = self.keys[row];
                    room.extend_within(bytes, offsets[key], offsets[key + 1]);
                });
            }
            Labels::Values(_) => column_of(self, rows, nulls, frame, out),
        }
    }
}

/// Cells of compounds, such as `{"re":1.5,"im":0.0}`.
pub(in crate::views::text) struct StructCells<'a> {
    /// For each field, the bytes before its value (`{"re":` or `,"im":`), and its values.
    fields: Vec<(Vec<u8>, BlockColumn<'a, JsonStyle>)>,
    scratch: RefCell<Vec<u8>>,
}

impl<'a> StructCells<'a> {
    pub fn new(array: &'a StructArray, depth: usize) -> Result<Self, NoText> {
        let fields = array
            .fields()
            .iter()
            .zip(array.columns())
            .enumerate()
            .map(|(position, (field, child))| {
                let mut key = vec![if position == 0 { b'{' } else { b',' }];
                json::write_string(field.name().as_bytes(), &mut key);
                key.push(b':');
                Ok((key, BlockColumn::nested(child.as_ref(), depth + 1)?))
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { fields, scratch: RefCell::default() })
    }
}

impl StructCells<'_> {
    fn json(&self, row: usize, out: &mut Vec<u8>, flush: &mut dyn FnMut(&mut Vec<u8>)) {
        for (key, field) in &self.fields {
            out.extend_from_slice(key);
            field.stream(row, b"null", out, flush);
        }
        out.extend_from_slice(if self.fields.is_empty() { b"{}" } else { b"}" });
    }
}

/// Number of bytes of the pieces in which a JSON value is measured.
const PIECE: usize = 64 << 10;

/// Returns the bytes of a JSON value in another style, computed piece by piece.
fn length_of<S: Style>(scratch: &mut Vec<u8>, json: impl FnOnce(&mut Vec<u8>, &mut dyn FnMut(&mut Vec<u8>))) -> usize {
    let (mut length, mut special) = (0, false);
    scratch.clear();
    json(scratch, &mut |piece| {
        if piece.len() >= PIECE {
            length += S::piece_length(piece, &mut special);
            piece.clear();
        }
    });
    length += S::piece_length(scratch, &mut special);
    length + S::around_length(special)
}

impl<S: Style> CellWriter<S> for StructCells<'_> {
    fn length(&self, row: usize, scratch: &mut Vec<u8>) -> usize {
        length_of::<S>(scratch, |out, flush| self.json(row, out, flush))
    }

    fn stream(&self, row: usize, out: &mut Vec<u8>, flush: &mut dyn FnMut(&mut Vec<u8>)) {
        self.json(row, out, flush);
    }

    fn write(&self, row: usize, out: &mut Vec<u8>) {
        S::nested(&self.scratch, out, |out| {
            for (key, field) in &self.fields {
                out.extend_from_slice(key);
                field.write(row, b"null", out);
            }
            out.extend_from_slice(if self.fields.is_empty() { b"{}" } else { b"}" });
        });
    }
}

/// Lists as ranges of their child array.
pub(in crate::views::text) trait Lists {
    /// Returns the range of one list's elements.
    fn range(&self, row: usize) -> Range<usize>;
}

impl<O: OffsetSizeTrait> Lists for &GenericListArray<O> {
    fn range(&self, row: usize) -> Range<usize> {
        let offsets = self.value_offsets();
        offsets[row].as_usize()..offsets[row + 1].as_usize()
    }
}

/// Lists of equal length.
pub(in crate::views::text) struct Windows<'a>(pub &'a FixedSizeListArray);

impl Lists for Windows<'_> {
    fn range(&self, row: usize) -> Range<usize> {
        let length = usize::try_from(self.0.value_length()).unwrap_or(0);
        row * length..(row + 1) * length
    }
}

/// Cells of lists, such as `[1,2,3]`.
pub(in crate::views::text) struct ListCells<'a, L> {
    lists: L,
    elements: BlockColumn<'a, JsonStyle>,
    scratch: RefCell<Vec<u8>>,
}

impl<'a, O: OffsetSizeTrait> ListCells<'a, &'a GenericListArray<O>> {
    pub fn new(lists: &'a GenericListArray<O>, depth: usize) -> Result<Self, NoText> {
        Ok(Self {
            elements: BlockColumn::nested(lists.values().as_ref(), depth + 1)?,
            lists,
            scratch: RefCell::default(),
        })
    }
}

impl<'a> ListCells<'a, Windows<'a>> {
    pub fn windows(lists: &'a FixedSizeListArray, depth: usize) -> Result<Self, NoText> {
        let elements = BlockColumn::nested(lists.values().as_ref(), depth + 1)?;
        Ok(Self { elements, lists: Windows(lists), scratch: RefCell::default() })
    }
}

impl<L: Lists> ListCells<'_, L> {
    fn json(&self, row: usize, out: &mut Vec<u8>, flush: &mut dyn FnMut(&mut Vec<u8>)) {
        out.push(b'[');
        for (position, element) in self.lists.range(row).enumerate() {
            if position > 0 {
                out.push(b',');
            }
            self.elements.stream(element, b"null", out, flush);
        }
        out.push(b']');
    }
}

impl<S: Style, L: Lists> CellWriter<S> for ListCells<'_, L> {
    fn length(&self, row: usize, scratch: &mut Vec<u8>) -> usize {
        length_of::<S>(scratch, |out, flush| self.json(row, out, flush))
    }

    fn stream(&self, row: usize, out: &mut Vec<u8>, flush: &mut dyn FnMut(&mut Vec<u8>)) {
        self.json(row, out, flush);
    }

    fn write(&self, row: usize, out: &mut Vec<u8>) {
        S::nested(&self.scratch, out, |out| {
            out.push(b'[');
            for (position, element) in self.lists.range(row).enumerate() {
                if position > 0 {
                    out.push(b',');
                }
                self.elements.write(element, b"null", out);
            }
            out.push(b']');
        });
    }
}
