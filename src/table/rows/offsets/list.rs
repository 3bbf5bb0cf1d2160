//! A list column: each row is a slice of the values (HEP001 July, "List columns").

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, LargeListArray, new_empty_array};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};

use super::level::{ENTRY, Entries, Level, OFFSETS_AT_ONCE};
use crate::source::Interrupt;
use crate::store::decode::outline::lists;
use crate::store::{ARRAY_BYTES, Containers, Error, Facts, Fitter, Fitting, Hints, RowRange, Rows, SharedRows, Tally};

/// Most values read at once for one block of rows; a hostile file can make one list span them all.
const MOST_VALUES: u64 = 1 << 27;

/// Most bytes of values gathered for one block of rows; a hostile file can make each list span all values.
const MOST_BYTES: u64 = 64 << 20;

/// Lists of any depth: values may be lists themselves.
#[derive(Debug)]
pub struct ListRows {
    level: Level,
    values: Arc<dyn Rows>,
    facts: Facts,
}

impl ListRows {
    /// At most `len` lists over `values`. `offsets` must be integers, `mask` booleans.
    pub fn new(
        path: String,
        offsets: Arc<dyn Rows>,
        values: Arc<dyn Rows>,
        mask: Option<Arc<dyn Rows>>,
        len: u64,
        tally: Arc<Tally>,
    ) -> Self {
        let data_type = DataType::LargeList(Arc::new(Field::new_list_field(values.data_type().clone(), true)));
        let level = Level::new(path, offsets, mask, len, tally);
        // Any value of a list may be null.
        let items = Hints { nullable: true, ..values.hints().clone() };
        let facts = Facts {
            // Because of the mask, or of invalid offsets.
            nullable: true,
            hints: Hints { items: Some(Box::new(items)), nullable: true, ..Hints::default() },
            natural_rows: level.offsets.natural_rows(),
            alike: level.alike(),
            containers: Containers::of_all(level.rows().chain([&values])),
            ..Facts::new(level.len, data_type)
        };
        Self { level, values, facts }
    }

    /// Joins the arrays that `read` gives for the values of all entries.
    fn items(
        &self,
        entries: &Entries,
        read: &dyn Fn(RowRange) -> Result<Option<ArrayRef>, Error>,
        interrupt: &Interrupt,
    ) -> Result<Option<ArrayRef>, Error> {
        let total = entries.total();
        if total > MOST_VALUES {
            return Err(Error::TooLarge {
                path: self.level.path.clone(),
                what: format!("a block of lists with {total} values"),
                bytes: total,
                limit: MOST_VALUES,
                option: "values at once",
            });
        }
        if let Some((start, end)) = entries.contiguous() {
            return read(start..end);
        }
        // Offsets that jump (a broken list between sound ones): gather list by list.
        let mut pieces = Vec::new();
        for &(start, end) in entries.spans.iter().filter(|(start, end)| start < end) {
            interrupt.check()?;
            let Some(piece) = read(start..end)? else { return Ok(None) };
            pieces.push(piece);
        }
        let pieces: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
        arrow_select::concat::concat(&pieces).map(Some).map_err(|error| self.arrow_error(&error))
    }
}

impl Rows for ListRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let entries = self.level.entries(range, self.values.len(), interrupt)?;
        self.lists(&entries, interrupt)
    }

    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        let mut fitter = Fitter::new(range.start, bytes);
        while fitter.fitting().end < range.end {
            interrupt.check()?;
            let start = fitter.fitting().end;
            let end = start.saturating_add(OFFSETS_AT_ONCE).min(range.end);
            let entries = self.level.entries(start..end, self.values.len(), interrupt)?;
            // In most cases, all entries fit and follow each other.
            if let Some((first, last)) = entries.contiguous() {
                let values = self.values.fitting(first..last, fitter.left(), interrupt)?;
                let taken = values.bytes.saturating_add(ENTRY.saturating_mul(end - start));
                if values.end >= last && taken <= fitter.left() {
                    fitter.add(end - start, taken);
                    continue;
                }
            }
            for (first, last) in entries.spans {
                let left = fitter.left();
                let values = match first < last {
                    true => self.values.fitting(first..last, left, interrupt)?,
                    false => Fitting { end: last, bytes: 0 },
                };
                // If the values of an entry do not fit, it takes more than what is left.
                let taken = if values.end < last { left.saturating_add(1) } else { values.bytes };
                if !fitter.add(1, taken.saturating_add(ENTRY)) {
                    return Ok(fitter.fitting());
                }
            }
        }
        Ok(fitter.fitting())
    }

    fn shared(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<SharedRows>, Error> {
        let entries = self.level.entries(range, self.values.len(), interrupt)?;
        let (entries, keys) = entries.distinct();
        let used = entries.spans.iter().filter(|(start, end)| start < end);
        let mut left = ARRAY_BYTES;
        for &(start, end) in used {
            let fitting = self.values.fitting(start..end, left, interrupt)?;
            if fitting.end < end || fitting.bytes > left {
                return Ok(None);
            }
            left -= fitting.bytes;
        }
        Ok(Some(SharedRows { values: self.lists(&entries, interrupt)?, keys }))
    }

    fn outline(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        let entries = self.level.entries(range, self.values.len(), interrupt)?;
        let items = self.items(&entries, &|values| self.values.outline(values, interrupt), interrupt)?;
        let lengths = entries.spans.iter().map(|(start, end)| (end - start) as usize);
        Ok(items.and_then(|items| lists(OffsetBuffer::from_lengths(lengths), items)))
    }
}

impl ListRows {
    /// Reserves memory for lists that jump, which may share values.
    fn admit(&self, entries: &Entries, interrupt: &Interrupt) -> Result<(), Error> {
        let mut left = MOST_BYTES;
        for &(start, end) in entries.spans.iter().filter(|(start, end)| start < end) {
            let fitting = self.values.fitting(start..end, left, interrupt)?;
            if fitting.end < end || fitting.bytes > left {
                return Err(Error::TooLarge {
                    path: self.level.path.clone(),
                    what: format!("a block of {} lists that jump", entries.spans.len()),
                    bytes: MOST_BYTES.saturating_add(1),
                    limit: MOST_BYTES,
                    option: "bytes at once",
                });
            }
            left -= fitting.bytes;
        }
        Ok(())
    }

    /// The lists of `entries`.
    fn lists(&self, entries: &Entries, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        if entries.contiguous().is_none() {
            self.admit(entries, interrupt)?;
        }
        let values = self.items(entries, &|values| self.values.array(values, interrupt).map(Some), interrupt)?;
        // Never needed: `read` gives an array for all values.
        let values = values.unwrap_or_else(|| new_empty_array(self.values.data_type()));
        let lengths = entries.spans.iter().map(|(start, end)| (end - start) as usize);
        let DataType::LargeList(field) = &self.facts.data_type else {
            return Ok(new_empty_array(&self.facts.data_type));
        };
        // An enumeration's dictionary type is fixed, so values always have the declared type.
        let list =
            LargeListArray::try_new(field.clone(), OffsetBuffer::from_lengths(lengths), values, entries.nulls.clone())
                .map_err(|error| self.arrow_error(&error))?;
        Ok(Arc::new(list))
    }

    fn arrow_error(&self, error: &arrow_schema::ArrowError) -> Error {
        Error::unsupported(&self.level.path, error)
    }
}
