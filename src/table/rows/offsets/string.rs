//! Strings as slices of a byte buffer (HEP001 July, "String elements — the `STRING_VALUES` group"), and bytes of any
//! length.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, LargeStringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt8Type;
use arrow_array::{ArrayRef, UInt64Array};
use arrow_schema::DataType;

use super::level::{ENTRY, Entries, Level, OFFSETS_AT_ONCE};
use crate::source::Interrupt;
use crate::store::decode::{Oddities, Oddity};
use crate::store::{
    ARRAY_BYTES, Containers, Error, Facts, Fitter, Fitting, Hints, RowRange, Rows, SharedRows, Tally, TextLength,
};

/// Most characters of one block of rows whose strings share characters.
const MOST_SHARED: u64 = 64 << 20;

/// Strings behind offsets, with U+FFFD for invalid UTF-8; or plain bytes.
#[derive(Debug)]
pub struct StringRows {
    level: Level,
    characters: Arc<dyn Rows>,
    facts: Facts,
}

impl StringRows {
    /// At most `len` strings over `characters`, which must be one-byte unsigned integers.
    pub fn new(
        path: String,
        offsets: Arc<dyn Rows>,
        characters: Arc<dyn Rows>,
        mask: Option<Arc<dyn Rows>>,
        len: u64,
        tally: Arc<Tally>,
    ) -> Self {
        let level = Level::new(path, offsets, mask, len, tally);
        let facts = Facts {
            // Because of the mask, or of invalid offsets.
            nullable: true,
            hints: Hints { texts: TextLength::Within(characters.len()), nullable: true, ..Hints::default() },
            natural_rows: level.offsets.natural_rows(),
            alike: level.alike(),
            containers: Containers::of_all(level.rows().chain([&characters])),
            ..Facts::new(level.len, DataType::LargeUtf8)
        };
        Self { level, characters, facts }
    }

    /// The same rows as bytes, of type [`DataType::Binary`].
    pub fn as_bytes(self) -> Self {
        Self { facts: Facts { data_type: DataType::Binary, ..self.facts }, ..self }
    }

    /// The strings of `entries`; adds those with invalid UTF-8 to `odd`.
    fn strings(&self, entries: &Entries, odd: &mut Oddities, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let RowRange { start: first, end: last } = entries.hull();
        // A single string may be as long as all characters together; several may share characters.
        let shown = entries.total();
        let is_text = self.facts.data_type == DataType::LargeUtf8;
        let limit = if is_text { u64::MAX } else { i32::MAX as u64 }.min(MOST_SHARED.max(last - first));
        if shown > limit {
            return Err(Error::TooLarge {
                path: self.level.path.clone(),
                what: "a block of strings".into(),
                bytes: shown,
                limit,
                option: "characters at once",
            });
        }
        let characters = self.characters.array(first..last, interrupt)?;
        let Some(characters) = characters.as_primitive_opt::<UInt8Type>() else {
            return Err(Error::unsupported(
                &self.level.path,
                format!("CHARS holds {}, not one-byte unsigned integers", characters.data_type()),
            ));
        };
        let rows = entries.spans.iter().enumerate().map(|(row, (start, end))| {
            let is_null = entries.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
            let cell =
                if start == end { &[] } else { &characters.values()[(start - first) as usize..(end - first) as usize] };
            (row, (!is_null).then_some(cell))
        });
        if !is_text {
            let mut builder = BinaryBuilder::with_capacity(entries.spans.len(), characters.values().len());
            rows.for_each(|(_, cell)| builder.append_option(cell));
            return Ok(Arc::new(builder.finish()));
        }
        let mut builder = LargeStringBuilder::with_capacity(entries.spans.len(), characters.values().len());
        for (row, text) in rows {
            let Some(text) = text else {
                builder.append_null();
                continue;
            };
            if text.is_empty() {
                builder.append_value("");
            } else {
                let text = String::from_utf8_lossy(text);
                if matches!(text, Cow::Owned(_)) {
                    odd.add(Oddity::InvalidText, row as u64);
                }
                builder.append_value(text);
            }
        }
        Ok(Arc::new(builder.finish()))
    }
}

impl Rows for StringRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let (entries, mut odd) = self.level.look(range.clone(), self.characters.len(), interrupt)?;
        let strings = self.strings(&entries, &mut odd, interrupt)?;
        self.level.tally.add(range, &odd);
        Ok(strings)
    }

    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        let mut fitter = Fitter::new(range.start, bytes);
        // All characters from the first to the last are read, including gaps.
        let mut read: Option<(u64, u64)> = None;
        while fitter.fitting().end < range.end {
            interrupt.check()?;
            let start = fitter.fitting().end;
            let end = start.saturating_add(OFFSETS_AT_ONCE).min(range.end);
            for &(first, last) in &self.level.entries(start..end, self.characters.len(), interrupt)?.spans {
                let mut bytes = ENTRY.saturating_add(last - first);
                if first < last {
                    let (from, to) = read.unwrap_or((first, first));
                    let wider = (from.min(first), to.max(last));
                    bytes = bytes.saturating_add((wider.1 - wider.0) - (to - from));
                    read = Some(wider);
                }
                if !fitter.add(1, bytes) {
                    return Ok(fitter.fitting());
                }
            }
        }
        Ok(fitter.fitting())
    }

    fn shared(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<SharedRows>, Error> {
        let entries = self.level.entries(range, self.characters.len(), interrupt)?;
        let (entries, keys) = entries.distinct();
        let hull = entries.hull();
        if entries.total().saturating_add(hull.end - hull.start) > ARRAY_BYTES {
            return Ok(None);
        }
        Ok(Some(SharedRows { values: self.strings(&entries, &mut Oddities::new(), interrupt)?, keys }))
    }

    fn outline(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        let entries = self.level.entries(range, self.characters.len(), interrupt)?;
        let lengths: Vec<u64> = entries.spans.iter().map(|(start, end)| end - start).collect();
        Ok(Some(Arc::new(UInt64Array::new(lengths.into(), entries.nulls))))
    }
}
