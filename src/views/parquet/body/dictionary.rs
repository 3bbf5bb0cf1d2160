//! Dictionary pages and indices into them: one bit-packed run of whole bytes, so that codes can be copied.
//!
//! The run is as long as if nothing were null; unused indices are zeros at its end, which no reader looks at. The size
//! of a page then hardly depends on its data.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use super::levels::{append_packed_header, packed_bytes};
use super::plain::{PageSelection, append_cells, append_mapped};

use crate::views::Misfit;

/// Most values in a dictionary: indices have three bytes at most, since fastparquet misreads those of four.
const MOST_ENTRIES: u32 = 1 << 24;

/// A dictionary page, and the mapping from values to its entries.
#[derive(Debug)]
pub(in crate::views::parquet) struct DictionaryPage {
    /// The page's body. `None`: it is made on demand.
    body: Option<Vec<u8>>,
    /// Length of the body in bytes.
    length: u64,
    entries: u32,
    width: Width,
    index: Index,
}

/// Width of an index in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    One,
    Two,
    Three,
}

#[derive(Debug)]
enum Index {
    /// The index is the value's own byte or bytes.
    Own,
    /// The index is the array's key.
    Key { labels: usize },
    /// The index is found by the array's key, since some labels are equal or null.
    Remapped(Vec<u32>),
    /// The index is found by the text, since each array brings its own labels.
    Text(HashMap<Vec<u8>, u32>),
}

impl Width {
    fn bytes(self) -> u32 {
        match self {
            Width::One => 1,
            Width::Two => 2,
            Width::Three => 3,
        }
    }
}

impl DictionaryPage {
    /// Returns a dictionary of all 8-bit numbers, in the order of their bytes.
    pub fn identity(signed: bool) -> Self {
        let numbers = 0..=u8::MAX;
        let body =
            numbers.flat_map(|byte| (if signed { i32::from(byte as i8) } else { i32::from(byte) }).to_le_bytes());
        let body: Vec<u8> = body.collect();
        Self { length: body.len() as u64, body: Some(body), entries: 256, width: Width::One, index: Index::Own }
    }

    /// Returns a dictionary of numbers of `bytes` bytes, one per [code](crate::store::Facts::codes); the page is made
    /// elsewhere. `None`: the number of codes is not that of one or two bytes.
    pub fn of_codes(count: u64, bytes: u64) -> Option<Self> {
        let (entries, width) = match count {
            0x100 => (0x100, Width::One),
            0x1_0000 => (0x1_0000, Width::Two),
            _ => return None,
        };
        Some(Self { body: None, length: count.checked_mul(bytes)?, entries, width, index: Index::Own })
    }

    /// Returns a dictionary of the labels of categories, with the keys of the arrays. `None`: the categories have no
    /// labels, or more than a page can hold.
    pub fn categories(labels: &ArrayRef) -> Option<Self> {
        let (mut dictionary, places) = Self::of(labels)?;
        let straight = places.iter().enumerate().all(|(key, place)| *place as usize == key);
        dictionary.index = if straight { Index::Key { labels: labels.len() } } else { Index::Remapped(places) };
        Some(dictionary)
    }

    /// Returns a dictionary of all names and numbers that an enumeration can show. `None`: a page cannot hold them.
    pub fn names(names: &ArrayRef) -> Option<Self> {
        let (mut dictionary, places) = Self::of(names)?;
        let texts = names.as_string_opt::<i64>()?;
        let places = texts.iter().zip(places).filter_map(|(text, place)| Some((text?.as_bytes().to_vec(), place)));
        dictionary.index = Index::Text(places.collect());
        Some(dictionary)
    }

    /// Returns a page of the distinct texts, and the entry of each of `texts`.
    fn of(texts: &ArrayRef) -> Option<(Self, Vec<u32>)> {
        let texts = texts.as_string_opt::<i64>()?;
        let mut body = Vec::new();
        let mut places = Vec::with_capacity(texts.len());
        let mut place_of: HashMap<&str, u32> = HashMap::with_capacity(texts.len());
        for text in texts {
            let Some(text) = text else {
                // Keys of a null label are null and need no entry.
                places.push(0);
                continue;
            };
            let next = u32::try_from(place_of.len()).ok()?;
            places.push(match place_of.get(text) {
                Some(place) => *place,
                None => {
                    place_of.insert(text, next);
                    body.extend_from_slice(&u32::try_from(text.len()).ok()?.to_le_bytes());
                    body.extend_from_slice(text.as_bytes());
                    next
                }
            });
        }
        let entries = u32::try_from(place_of.len()).ok().filter(|entries| *entries > 0)?;
        i32::try_from(body.len()).ok()?;
        let width = match entries {
            0..=0x100 => Width::One,
            0x101..=0x1_0000 => Width::Two,
            0x1_0001..=MOST_ENTRIES => Width::Three,
            _ => return None,
        };
        Some((Self { length: body.len() as u64, body: Some(body), entries, width, index: Index::Own }, places))
    }

    /// Returns the page's body, PLAIN values. `None`: numbers of codes.
    pub fn body(&self) -> Option<&[u8]> {
        self.body.as_deref()
    }

    /// Returns the length of the body in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the number of values in the page.
    pub fn entries(&self) -> u32 {
        self.entries
    }

    /// Returns the bytes of an index.
    pub fn index_width(&self) -> u64 {
        u64::from(self.width.bytes())
    }

    /// Whether a value's index is its own byte.
    pub fn is_by_byte(&self) -> bool {
        matches!(self.index, Index::Own) && self.body.is_some()
    }

    /// Whether the page's entries are the labels of categories, in their order.
    pub fn is_of_categories(&self) -> bool {
        matches!(self.index, Index::Key { .. } | Index::Remapped(_))
    }

    /// Whether a value's index is its key, in one byte.
    pub fn is_by_byte_key(&self) -> bool {
        matches!(self.index, Index::Key { .. }) && self.width == Width::One
    }

    /// Returns the bytes of the indices of a page of `entries` entries. `None`: their number overflows.
    pub fn bytes(&self, entries: u64) -> Option<u64> {
        if entries == 0 { Some(1) } else { packed_bytes(entries, self.width.bytes() * 8)?.checked_add(1) }
    }

    /// Appends the bytes before the indices of a page of `entries` entries.
    pub fn append_lead(&self, entries: usize, out: &mut Vec<u8>) {
        out.push(self.width.bytes() as u8 * 8);
        if entries > 0 {
            append_packed_header(entries, out);
        }
    }

    /// Appends the indices of the selected values of `array` for a page of `entries` entries.
    ///
    /// # Errors
    /// A value that is not in the dictionary, or an array of another type.
    pub fn append(
        &self,
        array: &ArrayRef,
        selection: &PageSelection,
        entries: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Misfit> {
        self.framed(entries, out, |out| self.append_indices(array, selection, out))
    }

    /// Appends the values' keys, one byte each, as indices.
    ///
    /// # Errors
    /// More than a page can hold.
    pub fn append_byte_keys(&self, keys: &[u8], out: &mut Vec<u8>) -> Result<(), Misfit> {
        self.framed(keys.len(), out, |out| {
            out.extend_from_slice(keys);
            Ok(())
        })
    }

    /// Frames the indices that `append` appends: the lead of a page of `entries` entries before them, zeros after them.
    fn framed(
        &self,
        entries: usize,
        out: &mut Vec<u8>,
        append: impl FnOnce(&mut Vec<u8>) -> Result<(), Misfit>,
    ) -> Result<(), Misfit> {
        let bytes = self.bytes(entries as u64).and_then(|bytes| usize::try_from(bytes).ok());
        let end = bytes
            .and_then(|bytes| bytes.checked_add(out.len()))
            .ok_or_else(|| Misfit::Size("a page of too many indices".into()))?;
        out.reserve(end - out.len());
        self.append_lead(entries, out);
        append(out)?;
        if out.len() > end {
            return Err(Misfit::Array("more values than entries in a page".into()));
        }
        out.resize(end, 0);
        Ok(())
    }

    fn append_indices(&self, array: &ArrayRef, selection: &PageSelection, out: &mut Vec<u8>) -> Result<(), Misfit> {
        match &self.index {
            Index::Own => match array.data_type() {
                DataType::Int8 if self.width == Width::One => {
                    selection.runs(array.as_primitive::<Int8Type>().values(), |run| append_cells(run, out))
                }
                DataType::UInt8 if self.width == Width::One => {
                    selection.runs(array.as_primitive::<UInt8Type>().values(), |run| append_cells(run, out))
                }
                DataType::Int16 if self.width == Width::Two => {
                    selection.runs(array.as_primitive::<Int16Type>().values(), |run| append_cells(run, out))
                }
                DataType::UInt16 if self.width == Width::Two => {
                    selection.runs(array.as_primitive::<UInt16Type>().values(), |run| append_cells(run, out))
                }
                other => Err(Misfit::Array(format!("{other} is no code of {} bytes", self.width.bytes()))),
            },
            Index::Key { labels } => {
                if keyed(array)?.values().len() != *labels {
                    return Err(Misfit::Array("categories other than the column's".into()));
                }
                self.append_keys(array, selection, None, out)
            }
            Index::Remapped(places) => {
                if keyed(array)?.values().len() != places.len() {
                    return Err(Misfit::Array("categories other than the column's".into()));
                }
                self.append_keys(array, selection, Some(places), out)
            }
            Index::Text(place_of) => {
                let labelled = keyed(array)?;
                let labels = labelled
                    .values()
                    .as_string_opt::<i64>()
                    .ok_or_else(|| Misfit::Array("names that are no text".into()))?;
                // A key whose name is null is null.
                let place =
                    |label: Option<&str>| label.map_or(Some(0), |label| place_of.get(label.as_bytes()).copied());
                let places: Vec<Option<u32>> = labels.iter().map(place).collect();
                // A code's second name is among the labels, but no key uses it.
                if places.contains(&None) {
                    let keys = labelled.normalized_keys();
                    let mut used = keys.iter().enumerate().filter(|(row, _)| array.is_valid(*row)).map(|(_, key)| *key);
                    if let Some(key) = used.find(|key| places.get(*key) == Some(&None)) {
                        return Err(Misfit::Array(format!(
                            "{:?} is none of the enumeration's names and numbers",
                            labels.value(key)
                        )));
                    }
                }
                let places: Vec<u32> = places.into_iter().map(|place| place.unwrap_or(0)).collect();
                self.append_keys(array, selection, Some(&places), out)
            }
        }
    }

    fn append_keys(
        &self,
        array: &ArrayRef,
        selection: &PageSelection,
        places: Option<&[u32]>,
        out: &mut Vec<u8>,
    ) -> Result<(), Misfit> {
        // Keys that are not null lie within the labels (an invariant of dictionary arrays), and entries within the
        // page.
        let place = |key: usize| places.map_or(key as u32, |places| places.get(key).copied().unwrap_or(0));
        let keys = keyed(array)?.keys();
        if let Some(keys) = keys.as_primitive_opt::<Int64Type>() {
            return selection.runs(keys.values(), |run| self.append_run(run, |key| place(key as usize), out));
        }
        let keys = keys
            .as_primitive_opt::<Int32Type>()
            .ok_or_else(|| Misfit::Array(format!("keys of {}", keys.data_type())))?;
        selection.runs(keys.values(), |run| self.append_run(run, |key| place(key as usize), out))
    }

    fn append_run<T: Copy>(&self, keys: &[T], place: impl Fn(T) -> u32, out: &mut Vec<u8>) {
        match self.width {
            Width::One => append_mapped(keys, |key| place(key) as u8, out),
            Width::Two => append_mapped(keys, |key| place(key) as u16, out),
            Width::Three => {
                for block in keys.chunks(256) {
                    let mut indices = [[0; 3]; 256];
                    for (index, key) in indices.iter_mut().zip(block) {
                        let [low, middle, high, _] = place(*key).to_le_bytes();
                        *index = [low, middle, high];
                    }
                    out.extend_from_slice(indices[..block.len()].as_flattened());
                }
            }
        }
    }
}

fn keyed(array: &ArrayRef) -> Result<&dyn arrow_array::AnyDictionaryArray, Misfit> {
    array.as_any_dictionary_opt().ok_or_else(|| Misfit::Array(format!("{} is no dictionary", array.data_type())))
}
