//! What must be known of a column's values before it is decided how they are stored.

use std::collections::HashSet;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, LargeStringArray};
use arrow_schema::DataType;

use super::cells::{self, Failure};
use super::fills::{self, Bound};
use super::types;

/// Most different texts that are gathered.
const MOST_LABELS: usize = 1024;

/// Bytes of the longest of them.
const LONGEST_LABEL: usize = 4096;

/// What is known of the values of a column, or of the items of lists or the fields of structs.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// Every value was looked at. Otherwise a choice that some value contradicts is found out when it is written.
    pub is_known: bool,
    /// Rows and missing ones were counted, or the file says how many there are.
    pub(super) is_counted: bool,
    /// Rows, where they were counted.
    pub rows: u64,
    /// Missing ones among them.
    pub nulls: u64,
    /// Least and greatest number; NaN is none.
    pub(super) range: Option<[Bound; 2]>,
    /// Which of the values that may stand for missing ones occur, a bit for each.
    pub(super) met: u32,
    /// Bytes of the longest text.
    pub(super) longest: usize,
    /// Bytes of all texts.
    pub(super) bytes: u64,
    /// A text has a NUL.
    pub(super) has_nul: bool,
    /// The texts, where these are wanted and few.
    pub(super) labels: Option<HashSet<Box<str>>>,
    /// Of items or fields.
    pub(super) parts: Vec<Profile>,
}

impl Profile {
    /// One that holds for any values of a type until [`Profile::see`] says more.
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

    /// The same, which gathers the texts of a column as long as they are few.
    pub fn gathering(self) -> Self {
        Self { labels: Some(HashSet::new()), ..self }
    }

    /// Whether values of this type must be looked at before anything can be chosen. Of others nearly every choice
    /// holds, and is given up when a value contradicts it.
    pub fn is_needed(data_type: &DataType, nullable: bool) -> bool {
        match data_type {
            // Labels are gathered as they come.
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
                // Texts in lists have no longest one.
                text if text.is_string() => false,
                inner => Self::is_needed(inner, item.is_nullable()),
            },
            _ => false,
        }
    }

    /// Looks at values.
    ///
    /// # Errors
    /// Where they are of a type that is not stored.
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
                    // What lies below a missing row is none of its values.
                    let field = cells::masked(field, array.nulls())?;
                    self.part(at)?.see(&field)?;
                }
                // Fields of missing rows are no missing fields.
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
        // All at once: texts are short.
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

    /// Takes over what a file says of the least and greatest numbers of its parts, and how many are missing.
    pub fn believe(&mut self, least: &ArrayRef, greatest: &ArrayRef, rows: u64, nulls: u64) {
        for bounds in [least, greatest].map(cells::normal).into_iter().flatten() {
            self.widen(fills::numbers(&bounds).0);
        }
        self.rows += rows;
        self.nulls += nulls;
        self.is_counted = true;
    }

    fn widen(&mut self, range: Option<[Bound; 2]>) {
        self.range = match (self.range, range) {
            (Some([a, b]), Some([c, d])) => Some([a.min(c), b.max(d)]),
            (known, found) => known.or(found),
        };
    }

    fn part(&mut self, at: usize) -> Result<&mut Self, Failure> {
        self.parts.get_mut(at).ok_or_else(|| Failure::Wrong("the values are of another type than before".into()))
    }

    /// Says that every value was looked at.
    pub fn finish(&mut self) {
        (self.is_known, self.is_counted) = (true, true);
        self.parts.iter_mut().for_each(Self::finish);
    }
}
