//! A leaf of the schema: the size and content of its pages.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, NullArray};

use super::dictionary::DictionaryPage;
use super::levels::{Levels, bit_width, equal_bytes, most_bytes};
use super::plain::{append_fixed, append_texts, text_bytes};
use super::shred::{MOST_ENTRIES, ShredNode, ShredStep, Shredded, required_levels, shred};
use super::squeezed;
use crate::store::TextLength;
use crate::views::Misfit;
use crate::views::parquet::thrift::page::PageEncoding;

/// Physical types of Parquet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::views::parquet) enum Physical {
    /// One bit.
    Boolean,
    /// 32 bits, also for narrower integers.
    Int32,
    /// 64 bits.
    Int64,
    /// IEEE 754 single.
    Float,
    /// IEEE 754 double.
    Double,
    /// Bytes, preceded by their length.
    ByteArray,
    /// This many bytes.
    FixedLenByteArray(i32),
}

/// Where a leaf's values come from, and how they are converted.
#[derive(Clone, Debug)]
pub(in crate::views::parquet) enum LeafValues {
    /// Cells of this many bytes.
    Cells(u64),
    /// Booleans, a bit each.
    Bits,
    /// Texts, each preceded by its length.
    Texts(TextLength),
    /// Indices into a dictionary.
    Indices(Arc<DictionaryPage>),
}

/// A primitive column of the Parquet schema.
#[derive(Clone, Debug)]
pub(in crate::views::parquet) struct ParquetLeaf {
    /// Path of the leaf in the schema: `["l", "list", "element"]`.
    pub path: Vec<String>,
    /// How a value is stored.
    pub physical: Physical,
    /// Definition level of a present value.
    pub max_definition: u16,
    /// Number of lists around the leaf.
    pub max_repetition: u16,
    /// Encoding of the leaf's pages.
    pub encoding: PageEncoding,
    /// Whether the stored bytes, row after row, are the cells of [`ParquetLeaf::cells`] or
    /// [`ParquetLeaf::stored_cell`].
    pub stored: bool,
    pub(in crate::views::parquet) nodes: Vec<ShredNode>,
    pub(in crate::views::parquet) values: LeafValues,
    /// Whether labels of categories are replaced by their values, since they are not text.
    pub(in crate::views::parquet) looked_up: bool,
}

/// Sizes of the body of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::views::parquet) struct Body {
    /// Bytes of the body.
    pub bytes: u64,
    /// Number of entries (`num_values`): values, nulls and empty lists.
    pub entries: u32,
    /// Number of entries without a value.
    pub nulls: u32,
}

/// A body with a fixed place per row: `before`, `width` bytes for each row, and `after` zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::views::parquet) struct FixedWidthBody {
    /// Bytes before the first row: levels, and the lead of indices. [`ParquetLeaf::lead`] makes them.
    pub before: u64,
    /// Bytes of a row.
    pub width: u64,
    /// Bytes after the last row.
    pub after: u64,
}

impl ParquetLeaf {
    /// Returns the number of entries of a row that is not null. `None`: it differs between rows.
    pub(in crate::views::parquet) fn entries_of_row(&self) -> Option<u64> {
        self.nodes.iter().try_fold(1u64, |entries, node| match node.step {
            ShredStep::List => None,
            ShredStep::FixedList(length) => entries.checked_mul(length as u64),
            ShredStep::Field(_) | ShredStep::Value => Some(entries),
        })
    }

    /// Returns the positions of the compound fields that lead to the leaf.
    pub fn fields(&self) -> Vec<usize> {
        self.nodes.iter().map_while(|node| if let ShredStep::Field(at) = node.step { Some(at) } else { None }).collect()
    }

    /// Whether any node on the path to the leaf is nullable.
    fn is_nullable(&self) -> bool {
        self.nodes.iter().any(|node| node.nullable)
    }

    /// Returns the bytes of the largest body of a page of `rows` rows, compressed if it
    /// [can be](ParquetLeaf::is_squeezed). `None`: the size depends on the data, or overflows.
    pub fn most_body(&self, rows: u64) -> Option<u64> {
        let entries = self.entries_of_row()?.checked_mul(rows)?;
        let values = match &self.values {
            LeafValues::Cells(width) => entries.checked_mul(*width)?,
            LeafValues::Bits => entries.div_ceil(8),
            LeafValues::Texts(TextLength::Stored(width)) => squeezed::most_bytes(*width, entries)?,
            LeafValues::Texts(texts) => texts.slot()?.checked_add(4)?.checked_mul(entries)?,
            LeafValues::Indices(dictionary) => dictionary.bytes(entries)?,
        };
        values.checked_add(self.most_levels(entries)?)
    }

    /// Returns the most bytes that the levels of a page of `entries` entries take, if all rows have equally many.
    fn most_levels(&self, entries: u64) -> Option<u64> {
        let repetition = match self.max_repetition {
            0 => 0,
            // Arrays of one element: each row has a single entry.
            most if self.entries_of_row() == Some(1) => equal_bytes(entries, bit_width(most))?,
            most => most_bytes(entries, bit_width(most))?,
        };
        let definition = match self.max_definition {
            0 => 0,
            most if self.is_nullable() => most_bytes(entries, bit_width(most))?,
            most => equal_bytes(entries, bit_width(most))?,
        };
        repetition.checked_add(definition)
    }

    /// Whether a body always has exactly [`ParquetLeaf::most_body`] bytes.
    pub fn is_exact(&self) -> bool {
        !self.is_nullable() && self.entries_of_row().is_some() && !matches!(self.values, LeafValues::Texts(_))
    }

    /// Returns the bytes of a cell, if a body is PLAIN cells and nothing else, one per row.
    #[cfg(test)]
    pub fn cell_width(&self) -> Option<u64> {
        match self.values {
            LeafValues::Cells(width) if self.is_exact() && self.max_definition == 0 => Some(width),
            _ => None,
        }
    }

    /// Returns the layout of a page of `rows` rows with a fixed place per row: PLAIN cells, also with constant levels,
    /// or indices. `None`: rows have no fixed place, or the page is too large.
    pub fn cells(&self, rows: u64) -> Option<FixedWidthBody> {
        let entries_of_row = self.entries_of_row()?;
        let entries = entries_of_row.checked_mul(rows)?;
        let width = match &self.values {
            _ if !self.is_exact() => return None,
            LeafValues::Cells(width) => entries_of_row.checked_mul(*width)?,
            LeafValues::Indices(dictionary) => entries_of_row.checked_mul(dictionary.index_width())?,
            LeafValues::Bits | LeafValues::Texts(_) => return None,
        };
        let mut of_indices = Vec::new();
        if let LeafValues::Indices(dictionary) = &self.values {
            dictionary.append_lead(usize::try_from(entries).ok()?, &mut of_indices);
        }
        // A page header counts at most MOST_ENTRIES.
        let before = self.most_levels(entries).filter(|_| entries <= MOST_ENTRIES as u64)?;
        let before = before.checked_add(of_indices.len() as u64)?;
        let after = self.most_body(rows)?.checked_sub(before)?.checked_sub(width.checked_mul(rows)?)?;
        Some(FixedWidthBody { before, width, after })
    }

    /// Appends the bytes before the first row of a page of `rows` rows with fixed places.
    ///
    /// # Errors
    /// More entries than a page can have.
    pub fn lead(&self, rows: u64, out: &mut Vec<u8>) -> Result<(), Misfit> {
        let count = usize::try_from(rows).map_err(|error| Misfit::Size(error.to_string()))?;
        let (repetition, definition) = required_levels(&self.nodes, count)?;
        self.append_levels(repetition.as_ref(), definition.as_ref(), out)?;
        if let LeafValues::Indices(dictionary) = &self.values {
            let entries = self.entries_of_row().and_then(|entries| usize::try_from(entries.checked_mul(rows)?).ok());
            dictionary
                .append_lead(entries.ok_or_else(|| Misfit::Size("more entries than a page can have".into()))?, out);
        }
        Ok(())
    }

    /// Whether the leaf's values are texts, which may be shown with other bytes than stored.
    pub fn holds_texts(&self) -> bool {
        matches!(self.values, LeafValues::Texts(_))
    }

    /// Whether pages with [fixed places](ParquetLeaf::most_body) are of version 2, and compressed if they would be
    /// longer: those of texts that are shown as stored except for invalid UTF-8.
    pub fn is_squeezed(&self) -> bool {
        matches!(self.values, LeafValues::Texts(TextLength::Stored(_)))
    }

    /// Returns the leaf's dictionary.
    pub fn dictionary(&self) -> Option<&DictionaryPage> {
        match &self.values {
            LeafValues::Indices(dictionary) => Some(dictionary),
            _ => None,
        }
    }

    /// Whether pages consist of the [codes](crate::store::Coded::codes) of rows.
    pub fn takes_codes(&self) -> bool {
        self.dictionary().is_some_and(|dictionary| dictionary.body().is_none())
    }

    /// Returns the sizes of the body that [`ParquetLeaf::append`] would write.
    ///
    /// # Errors
    /// As [`ParquetLeaf::append`].
    pub fn measure(&self, column: &ArrayRef) -> Result<Body, Misfit> {
        let shredded = self.shred(column)?;
        let present = (shredded.entries - shredded.nulls) as u64;
        let values = match &self.values {
            LeafValues::Cells(width) => present.checked_mul(*width),
            LeafValues::Bits => Some(present.div_ceil(8)),
            LeafValues::Texts(texts) => Some(text_bytes(&shredded.values, &shredded.selection, texts.slot())?),
            LeafValues::Indices(dictionary) => dictionary.bytes(shredded.entries as u64),
        };
        let level =
            |levels: &Option<Levels>, most| levels.as_ref().map_or(Some(0), |levels| levels.bytes(bit_width(most)));
        let bytes = values
            .and_then(|values| values.checked_add(level(&shredded.repetition, self.max_repetition)?))
            .and_then(|bytes| bytes.checked_add(level(&shredded.definition, self.max_definition)?));
        body(bytes, &shredded)
    }

    /// Returns the most bytes that [`ParquetLeaf::append`] takes for rows with this outline, assuming that all texts
    /// are shown as long as stored; the entries are exact. `None`: the outline does not suffice. `tells_nulls` means
    /// that the outline has the nulls of rows and of their parts.
    ///
    /// # Errors
    /// More than a page can hold, or an outline of another column.
    pub fn room(&self, outline: &ArrayRef, tells_nulls: bool) -> Result<Option<Body>, Misfit> {
        let other =
            || Misfit::Array(format!("an outline of {} where its column has another type", outline.data_type()));
        let (mut array, mut empty, mut container) = (outline.clone(), 0_usize, false);
        for (at, node) in self.nodes.iter().enumerate() {
            let is_last = matches!(self.nodes.get(at + 1..), Some([ShredNode { step: ShredStep::Value, .. }]));
            array = match node.step {
                ShredStep::Field(field) => {
                    container |= node.nullable;
                    array.as_struct_opt().and_then(|array| array.columns().get(field)).ok_or_else(other)?.clone()
                }
                // A null array has one entry, whatever its length.
                ShredStep::FixedList(length) if length > 1 && node.nullable && !container && tells_nulls && is_last => {
                    let lists = array.as_fixed_size_list_opt().ok_or_else(other)?;
                    empty += lists.null_count();
                    let items = (lists.len() - lists.null_count()).checked_mul(length).ok_or_else(other)?;
                    Arc::new(NullArray::new(items))
                }
                ShredStep::FixedList(length) if length != 1 && (node.nullable || container) => return Ok(None),
                ShredStep::FixedList(_) => {
                    container |= node.nullable;
                    array.as_fixed_size_list_opt().ok_or_else(other)?.values().clone()
                }
                ShredStep::List if container => return Ok(None),
                ShredStep::List => {
                    let list = array.as_list_opt::<i64>().ok_or_else(other)?;
                    let offsets = list.value_offsets();
                    empty += offsets.windows(2).filter(|pair| pair[0] == pair[1]).count();
                    let (first, last) = (offsets.first().copied().unwrap_or(0), offsets.last().copied().unwrap_or(0));
                    // Offsets of an Arrow array lie within its values.
                    list.values().slice(first as usize, (last - first) as usize)
                }
                ShredStep::Value => array,
            };
        }
        let present = array.len() as u64;
        let entries = array.len().checked_add(empty).filter(|entries| *entries <= MOST_ENTRIES);
        let entries = entries
            .ok_or_else(|| Misfit::Size(format!("{} entries are more than a page can have", array.len())))?
            as u64;
        let values = match &self.values {
            LeafValues::Cells(width) => present.checked_mul(*width),
            LeafValues::Bits => Some(present.div_ceil(8)),
            LeafValues::Texts(_) => {
                let Some(lengths) = array.as_primitive_opt::<UInt64Type>() else { return Ok(None) };
                let sum = lengths.values().iter().try_fold(0_u64, |sum, length| sum.checked_add(*length));
                let present = (lengths.len() - lengths.null_count()) as u64;
                sum.and_then(|sum| sum.checked_add(present.checked_mul(4)?))
            }
            LeafValues::Indices(dictionary) => dictionary.bytes(entries),
        };
        let levels = |most| if most == 0 { Some(0) } else { most_bytes(entries, bit_width(most)) };
        let bytes = values
            .and_then(|values| values.checked_add(levels(self.max_repetition)?))
            .and_then(|bytes| bytes.checked_add(levels(self.max_definition)?))
            .filter(|bytes| *bytes <= i32::MAX as u64);
        let bytes =
            bytes.ok_or_else(|| Misfit::Size(format!("{entries} entries take more bytes than a page can have")))?;
        Ok(Some(Body { bytes, entries: entries as u32, nulls: 0 }))
    }

    /// Appends the body of a V1 page with all rows of `column`: repetition levels, definition levels, values.
    ///
    /// # Errors
    /// An array of another column, a null where the column allows none, a text longer than foreseen, or more than a
    /// page can hold; `out` is then unchanged.
    pub fn append(&self, column: &ArrayRef, out: &mut Vec<u8>) -> Result<Body, Misfit> {
        let from = out.len();
        let result = self.append_body(column, out);
        if result.is_err() {
            out.truncate(from);
        }
        result
    }

    /// Whether the values of a page without nulls are the keys of its rows, one byte each.
    pub fn takes_byte_keys(&self) -> bool {
        let by_key = matches!(&self.values, LeafValues::Indices(dictionary) if dictionary.is_by_byte_key());
        by_key && matches!(self.nodes.as_slice(), [ShredNode { step: ShredStep::Value, .. }])
    }

    /// As [`ParquetLeaf::append`], for a leaf that [`ParquetLeaf::takes_byte_keys`] and rows without nulls.
    ///
    /// # Errors
    /// More than a page can hold, or another leaf.
    pub fn append_byte_keys(&self, keys: &[u8], out: &mut Vec<u8>) -> Result<Body, Misfit> {
        let LeafValues::Indices(dictionary) = &self.values else {
            return Err(Misfit::Array("keys of a leaf without indices".into()));
        };
        let from = out.len();
        self.append_present(keys.len(), out)?;
        dictionary.append_byte_keys(keys, out)?;
        let entries = u32::try_from(keys.len()).map_err(|error| Misfit::Size(error.to_string()))?;
        Ok(Body { bytes: (out.len() - from) as u64, entries, nulls: 0 })
    }

    /// Returns the bytes of a cell of a flat column whose stored bytes are the cells of its present values.
    pub fn stored_cell(&self) -> Option<u64> {
        match (&self.values, self.nodes.as_slice()) {
            (LeafValues::Cells(width), [ShredNode { step: ShredStep::Value, .. }]) if self.stored => Some(*width),
            _ => None,
        }
    }

    /// Appends the levels of rows without nulls of a flat column.
    ///
    /// # Errors
    /// More than a page can hold.
    pub fn append_present(&self, rows: usize, out: &mut Vec<u8>) -> Result<(), Misfit> {
        let levels = (self.max_definition > 0).then(|| Levels::of_nulls(None, rows));
        self.append_levels(None, levels.as_ref(), out)
    }

    fn append_body(&self, column: &ArrayRef, out: &mut Vec<u8>) -> Result<Body, Misfit> {
        let from = out.len();
        let shredded = self.shred(column)?;
        self.append_levels(shredded.repetition.as_ref(), shredded.definition.as_ref(), out)?;
        let before = out.len();
        match &self.values {
            LeafValues::Cells(width) => {
                append_fixed(&shredded.values, &shredded.selection, out)?;
                // An array of another type has cells of another width.
                let due = width.checked_mul((shredded.entries - shredded.nulls) as u64);
                if due != Some((out.len() - before) as u64) {
                    return Err(Misfit::Array(format!(
                        "an array of {} where cells of {width} bytes are due",
                        column.data_type()
                    )));
                }
            }
            LeafValues::Bits => append_fixed(&shredded.values, &shredded.selection, out)?,
            LeafValues::Texts(texts) => append_texts(&shredded.values, &shredded.selection, texts.slot(), out)?,
            LeafValues::Indices(dictionary) => {
                dictionary.append(&shredded.values, &shredded.selection, shredded.entries, out)?;
            }
        }
        body(Some((out.len() - from) as u64), &shredded)
    }

    fn append_levels(
        &self,
        repetition: Option<&Levels>,
        definition: Option<&Levels>,
        out: &mut Vec<u8>,
    ) -> Result<(), Misfit> {
        for (levels, most) in [(repetition, self.max_repetition), (definition, self.max_definition)] {
            if let Some(levels) = levels {
                levels.append(bit_width(most), out)?;
            }
        }
        Ok(())
    }

    fn shred(&self, column: &ArrayRef) -> Result<Shredded, Misfit> {
        let mut shredded = shred(&self.nodes, column)?;
        if self.looked_up {
            let dictionary = shredded.values.as_any_dictionary_opt();
            let dictionary =
                dictionary.ok_or_else(|| Misfit::Array(format!("{} is no dictionary", shredded.values.data_type())))?;
            let looked_up = arrow_select::take::take(dictionary.values(), dictionary.keys(), None);
            shredded.values = looked_up.map_err(|error| Misfit::Size(error.to_string()))?;
        }
        Ok(shredded)
    }
}

fn body(bytes: Option<u64>, shredded: &Shredded) -> Result<Body, Misfit> {
    let bytes = bytes.filter(|bytes| *bytes <= i32::MAX as u64);
    let bytes = bytes
        .ok_or_else(|| Misfit::Size(format!("{} entries take more bytes than a page can have", shredded.entries)))?;
    // Shredding keeps entries below 2^31.
    Ok(Body { bytes, entries: shredded.entries as u32, nulls: shredded.nulls as u32 })
}

#[cfg(test)]
mod tests {
    use arrow_array::{DictionaryArray, FixedSizeListArray, Int64Array, LargeStringArray, new_null_array};
    use arrow_buffer::NullBuffer;
    use arrow_schema::{DataType, Field};

    use super::*;
    use crate::store::Hints;
    use crate::views::parquet::columns::shape::{Given, LeafMapping};

    #[test]
    fn an_outline_tells_how_long_arrays_are_some_of_which_are_missing() {
        for (rows, length, missing) in [(0, 3, 2), (1, 2, 1), (100, 5, 3), (1000, 40, 999), (9, 4, 100)] {
            let nulls = NullBuffer::from_iter((0..rows).map(|row| row % missing + 1 < missing));
            let list = |items: ArrayRef| {
                let item = Arc::new(Field::new_list_field(items.data_type().clone(), true));
                let nulls = Some(nulls.clone());
                Arc::new(FixedSizeListArray::try_new_with_length(item, length, items, nulls, rows).unwrap()) as ArrayRef
            };
            let count = rows * length as usize;
            let (array, outline) =
                (list(Arc::new(Int64Array::from(vec![7; count]))), list(new_null_array(&DataType::Null, count)));
            let hints = Hints { items: Some(Box::default()), nullable: true, ..Hints::default() };
            let given = Given::default();
            let shape = LeafMapping::new("x", array.data_type(), true, &hints, given).unwrap();
            let [leaf] = shape.leaves() else { panic!("one leaf") };
            let (room, body) =
                (leaf.room(&outline, true).unwrap().unwrap(), leaf.append(&array, &mut Vec::new()).unwrap());
            assert_eq!(room.entries, body.entries);
            assert!(room.bytes >= body.bytes && room.bytes <= body.bytes + body.bytes / 8 + 32, "{room:?} {body:?}");
            assert_eq!(leaf.room(&outline, false).unwrap(), None);
        }
    }

    #[test]
    fn keys_as_bytes_make_the_same_page() {
        let labels: ArrayRef = Arc::new(LargeStringArray::from_iter_values((0..256).map(|label| label.to_string())));
        let given = Given { labels: Some(labels.clone()), ..Given::default() };
        for (count, nullable) in [(0, true), (1, true), (1000, true), (1003, false)] {
            let bytes: Vec<u8> = (0..count).map(|row: u32| (row * 7) as u8).collect();
            let keys = Int64Array::from_iter_values(bytes.iter().map(|key| i64::from(*key)));
            let array: ArrayRef = Arc::new(DictionaryArray::new(keys, labels.clone()));
            let shape = LeafMapping::new("x", array.data_type(), nullable, &Hints::default(), given.clone()).unwrap();
            let [leaf] = shape.leaves() else { panic!("one leaf") };
            assert!(leaf.takes_byte_keys());
            let (mut by_array, mut by_bytes) = (vec![1], vec![1]);
            let bodies = (leaf.append(&array, &mut by_array), leaf.append_byte_keys(&bytes, &mut by_bytes));
            assert_eq!(bodies.0, bodies.1);
            assert_eq!(by_array, by_bytes);
        }
    }
}
