//! Gathers the facts about a column's values that planning its storage needs.

use std::collections::HashSet;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, LargeStringArray};
use arrow_schema::DataType;

use super::cells::{self, Failure};
use super::fills::{self, RangeEnd};
use super::types;

/// Most distinct texts to gather.
const MOST_LABELS: usize = 1024;

/// Longest text to gather, in bytes.
const LONGEST_LABEL: usize = 4096;

/// Facts about the values of a column, of items of lists, or of fields of structs.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// Whether every value was seen. Otherwise the encoder may meet values that contradict a choice.
    pub is_known: bool,
    /// Whether rows and nulls were counted, or are known from the file.
    pub(super) is_counted: bool,
    /// Number of rows, if counted.
    pub rows: u64,
    /// Number of nulls among them.
    pub nulls: u64,
    /// Least and greatest number, NaN aside. `None`: no number is known.
    pub(super) range: Option<[RangeEnd; 2]>,
    /// A bit for each candidate fill value that occurs.
    pub(super) met: u32,
    /// Number of bytes in the longest text.
    pub(super) longest: usize,
    /// Number of bytes in all texts.
    pub(super) bytes: u64,
    /// Whether a text has a NUL.
    pub(super) has_nul: bool,
    /// The distinct texts. `None`: they are not gathered, or too many, or one is too long.
    pub(super) labels: Option<HashSet<Box<str>>>,
    /// Profiles of the items of lists, or of the fields of structs.
    pub(super) parts: Vec<Profile>,
}

impl Profile {
    /// A profile that allows any values of the type, as long as [`Profile::see`] does not restrict it.
    pub fn unknown(data_type: &DataType) -> Self {
        let parts = match types::plain(data_type) {
            DataType::Struct(fields) => fields.iter().map(|field| Self::unknown(field.data_type())).collect(),
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::FixedSizeList(item, _) => vec![Self::unknown(item.data_type())],
            _ => Vec::new(),
        };
        Self { parts, ..Self::default() }
    }

    /// This profile, which from now on gathers distinct texts while they are few.
    pub fn gathering(self) -> Self {
        Self { labels: Some(HashSet::new()), ..self }
    }

    /// Whether planning needs to see values of this type beforehand. For other types nearly every choice holds, and a
    /// value that contradicts one makes the writer start again.
    pub fn is_needed(data_type: &DataType, nullable: bool) -> bool {
        match data_type {
            // The encoder gathers labels as it meets them.
            DataType::Dictionary(_, labels) if labels.is_string() => return false,
            _ => {}
        }
        match types::plain(data_type) {
            text if text.is_string() => true,
            DataType::Boolean => nullable,
            DataType::Int8 | DataType::UInt8 | DataType::Int16 | DataType::UInt16 | DataType::Float16 => true,
            DataType::FixedSizeBinary(width) => *width < 8,
            DataType::Struct(fields) => {
                fields.iter().any(|field| Self::is_needed(field.data_type(), field.is_nullable()))
            }
            DataType::FixedSizeList(item, _) => item.is_nullable() || Self::is_needed(item.data_type(), true),
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item) => match types::plain(item.data_type()) {
                // Texts in lists have no fixed width.
                text if text.is_string() => false,
                inner => Self::is_needed(inner, item.is_nullable()),
            },
            _ => false,
        }
    }

    /// Adds the values of an array to the profile.
    ///
    /// # Errors
    /// The type cannot be stored.
    pub fn see(&mut self, array: &ArrayRef) -> Result<(), Failure> {
        let array = cells::normal(array)?;
        self.rows += array.len() as u64;
        self.nulls += array.logical_null_count() as u64;
        match array.data_type() {
            DataType::LargeUtf8 => self.see_texts(array.as_string::<i64>()),
            DataType::FixedSizeBinary(_) => self.met |= fills::met_bytes(array.as_fixed_size_binary()),
            DataType::LargeList(_) => {
                let (_, values) = cells::lists(&array)?;
                self.part(0)?.see(&values)?;
            }
            DataType::FixedSizeList(..) => {
                let values = cells::items(&array)?;
                self.part(0)?.see(&values)?;
            }
            DataType::Struct(_) => {
                for (at, field) in array.as_struct().columns().iter().enumerate() {
                    // Values in a null row do not count.
                    let field = cells::masked(field, array.nulls())?;
                    self.part(at)?.see(&field)?;
                }
                // Nulls in a null row do not count either.
                for part in &mut self.parts {
                    part.nulls = part.nulls.saturating_sub(array.null_count() as u64);
                }
            }
            _ => {
                let (range, met) = fills::numbers(&array);
                self.widen(range);
                self.met |= met;
            }
        }
        Ok(())
    }

    fn see_texts(&mut self, texts: &LargeStringArray) {
        let offsets = texts.value_offsets();
        let (first, last) = (offsets.first().copied().unwrap_or(0), offsets.last().copied().unwrap_or(0));
        let bytes = texts.value_data().get(first as usize..last as usize).unwrap_or_default();
        self.bytes += bytes.len() as u64;
        // One search covers all texts, since these are short.
        self.has_nul |= memchr::memchr(0, bytes).is_some();
        for (row, ends) in offsets.windows(2).enumerate() {
            let length = (ends[1] - ends[0]) as usize;
            self.longest = self.longest.max(length);
            if length <= fills::LONGEST_TEXT && texts.is_valid(row) {
                self.met |= fills::met_text(texts.value(row).as_bytes());
            }
        }
        for text in texts.iter().flatten() {
            let Some(labels) = &mut self.labels else { break };
            if text.len() <= LONGEST_LABEL && !labels.contains(text) {
                labels.insert(text.into());
            }
            if text.len() > LONGEST_LABEL || labels.len() > MOST_LABELS {
                self.labels = None;
            }
        }
    }

    /// Adds what a file's own statistics say about some of its values: least and greatest number, rows, nulls.
    pub fn believe(&mut self, least: &ArrayRef, greatest: &ArrayRef, rows: u64, nulls: u64) {
        for bounds in [least, greatest].map(cells::normal).into_iter().flatten() {
            self.widen(fills::numbers(&bounds).0);
        }
        self.rows += rows;
        self.nulls += nulls;
        self.is_counted = true;
    }

    fn widen(&mut self, range: Option<[RangeEnd; 2]>) {
        self.range = match (self.range, range) {
            (Some([a, b]), Some([c, d])) => Some([a.min(c), b.max(d)]),
            (known, found) => known.or(found),
        };
    }

    fn part(&mut self, at: usize) -> Result<&mut Self, Failure> {
        self.parts.get_mut(at).ok_or_else(|| Failure::Wrong("the values are of another type than before".into()))
    }

    /// Declares that every value was seen.
    pub fn finish(&mut self) {
        (self.is_known, self.is_counted) = (true, true);
        self.parts.iter_mut().for_each(Self::finish);
    }
}
