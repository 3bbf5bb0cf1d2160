//! Dictionaries of the file: labels of categories, and of one-byte enumerations.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, LargeStringArray, UInt64Array};
use arrow_buffer::Buffer;
use arrow_schema::DataType;

use crate::store::EnumerationNames;
use crate::store::decode::widen;
use crate::views::Misfit;

/// A set of distinct labels.
#[derive(Debug)]
pub(in crate::views::ipc) struct IpcDictionary {
    labels: ArrayRef,
    ordered: bool,
    keys: Keys,
}

/// Maps a key in the rows to a key in the file.
#[derive(Debug)]
enum Keys {
    /// Both keys are the same number.
    Same,
    /// The new key stands at the position of the old one; −1 for a null label.
    Position(Vec<i64>),
    /// The new key belongs to the label's text.
    Text(HashMap<String, i64>),
}

impl IpcDictionary {
    /// Returns the dictionary of a categorical column. Equal labels are merged, since pandas rejects duplicates; keys
    /// of null labels become null. `None`: readers do not expect labels of this type in a dictionary, or there is no
    /// label: even under a null, a key must point to some entry.
    pub fn of_categories(labels: &ArrayRef, ordered: bool) -> Option<Self> {
        let contents = Contents::of(labels)?;
        let mut known: HashMap<&[u8], i64> = HashMap::with_capacity(labels.len());
        let mut kept = Vec::with_capacity(labels.len());
        let mut keys = Vec::with_capacity(labels.len());
        for position in 0..labels.len() {
            if labels.is_null(position) {
                keys.push(-1);
                continue;
            }
            let next = kept.len() as i64;
            let key = *known.entry(contents.label(position)).or_insert(next);
            if key == next {
                kept.push(position as u64);
            }
            keys.push(key);
        }
        if kept.is_empty() {
            return None;
        }
        if kept.len() == labels.len() {
            return Some(Self { labels: labels.clone(), ordered, keys: Keys::Same });
        }
        let labels = arrow_select::take::take(labels, &UInt64Array::from(kept), None).ok()?;
        Some(Self { labels, ordered, keys: Keys::Position(keys) })
    }

    /// Returns the dictionary of a one-byte enumeration: its names, then the numbers of unnamed codes, 256 codes in
    /// all. `None`: any other enumeration.
    pub fn of_codes(names: &EnumerationNames) -> Option<Self> {
        if !names.is_of_one_byte() {
            return None;
        }
        let mut labels: Vec<String> = names.names().map(str::to_owned).collect();
        let unnamed = names.codes().filter(|code| !names.has_name(*code));
        labels.extend(unnamed.map(|code| code.to_string()));
        let mut keys = HashMap::with_capacity(labels.len());
        // A member may be named like a number.
        labels.retain(|label| {
            let next = keys.len() as i64;
            *keys.entry(label.clone()).or_insert(next) == next
        });
        Some(Self { labels: Arc::new(LargeStringArray::from(labels)), ordered: false, keys: Keys::Text(keys) })
    }

    /// Returns the labels.
    pub fn labels(&self) -> &ArrayRef {
        &self.labels
    }

    /// Whether the order of the labels is meaningful.
    pub fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// Returns the bytes of a key: of the smallest signed integer that can number all labels.
    pub fn key_width(&self) -> u64 {
        match self.labels.len() {
            0..=0x80 => 1,
            0x81..=0x8000 => 2,
            0x8001..=0x8000_0000 => 4,
            _ => 8,
        }
    }

    /// Returns the dictionary's type in the schema.
    pub fn data_type(&self) -> DataType {
        let key = match self.key_width() {
            1 => DataType::Int8,
            2 => DataType::Int16,
            4 => DataType::Int32,
            _ => DataType::Int64,
        };
        DataType::Dictionary(Box::new(key), Box::new(self.labels.data_type().clone()))
    }

    /// Returns the buffers of the labels, without a validity bitmap since none is null.
    pub fn buffers(&self) -> Vec<Buffer> {
        match Contents::of(&self.labels) {
            Some(Contents::Texts(labels)) => {
                let offsets = labels.value_offsets();
                let first = offsets.first().copied().unwrap_or(0);
                let last = offsets.last().copied().unwrap_or(0);
                // Offsets of an Arrow array lie within memory, hence within usize.
                let bytes = labels.values().slice_with_length(first as usize, (last - first) as usize);
                vec![offsets.iter().map(|offset| offset - first).collect(), bytes]
            }
            Some(Contents::Numbers { bytes, .. }) => vec![bytes],
            None => Vec::new(),
        }
    }

    /// Returns the key of each row. `None`: the row is null.
    ///
    /// # Errors
    /// If `array` has no keys, or an unknown label.
    pub fn keys(&self, array: &ArrayRef) -> Result<Vec<Option<i64>>, Misfit> {
        let dictionary =
            array.as_any_dictionary_opt().ok_or_else(|| Misfit::Array(format!("{} has no keys", array.data_type())))?;
        let named: Vec<i64>;
        let positions: Option<&[i64]> = match &self.keys {
            Keys::Same => None,
            Keys::Position(positions) => Some(positions),
            Keys::Text(known) => {
                let labels = dictionary
                    .values()
                    .as_string_opt::<i64>()
                    .ok_or_else(|| Misfit::Array("labels that are no text".into()))?;
                let numbers = labels.iter().map(|label| known.get(label.unwrap_or_default()).copied());
                // A label that no row uses need not be known.
                named = numbers.map(|number| number.unwrap_or(i64::MIN)).collect();
                Some(&named)
            }
        };
        let wide = widen::signed(dictionary.keys()).ok_or_else(|| Misfit::Array("keys that are no integers".into()))?;
        let count = self.labels.len() as i64;
        let keys = wide.iter().map(|value| {
            let Some(key) = value else { return Ok(None) };
            let key = match positions {
                None => key,
                Some(positions) => {
                    let at = usize::try_from(key).ok().and_then(|key| positions.get(key));
                    *at.ok_or_else(|| Misfit::Array(format!("key {key} of {} labels", positions.len())))?
                }
            };
            match key {
                -1 => Ok(None),
                key if (0..count).contains(&key) => Ok(Some(key)),
                _ => Err(Misfit::Array(format!("key {key} of {count} labels"))),
            }
        });
        keys.collect()
    }

    /// Returns the number of null rows: missing values, and values whose label is null.
    pub fn nulls(&self, array: &ArrayRef) -> u64 {
        match &self.keys {
            Keys::Position(_) => {
                let keys = self.keys(array);
                keys.map_or(0, |keys| keys.iter().filter(|key| key.is_none()).count() as u64)
            }
            Keys::Same | Keys::Text(_) => array.null_count() as u64,
        }
    }
}

/// The bytes of each label, which identify it.
enum Contents<'a> {
    Texts(&'a LargeStringArray),
    Numbers { bytes: Buffer, width: usize },
}

impl<'a> Contents<'a> {
    /// Returns the contents. `None`: readers do not expect labels of this type in a dictionary.
    fn of(labels: &'a ArrayRef) -> Option<Self> {
        if let Some(labels) = labels.as_string_opt::<i64>() {
            return Some(Contents::Texts(labels));
        }
        let data_type = labels.data_type();
        // pandas rejects a set of labels that contains NaN.
        if !data_type.is_integer() {
            return None;
        }
        let width = data_type.primitive_width()?;
        let data = labels.to_data();
        let bytes = data.buffers().first()?.slice_with_length(data.offset() * width, labels.len() * width);
        Some(Contents::Numbers { bytes, width })
    }

    fn label(&self, position: usize) -> &[u8] {
        match self {
            Contents::Texts(labels) => labels.value(position).as_bytes(),
            Contents::Numbers { bytes, width } => {
                bytes.get(position * width..(position + 1) * width).unwrap_or_default()
            }
        }
    }
}
