//! The offsets level of list columns and string values (HEP001 July, "Members of a list column group").

use std::sync::Arc;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_buffer::{BooleanBuffer, NullBuffer};

use crate::source::Interrupt;
use crate::store::decode::{Oddities, Oddity, widen};
use crate::store::{Alike, Error, RowRange, Rows, Tally, numbered};

/// Rows whose offsets are read at once for weighing.
pub(super) const OFFSETS_AT_ONCE: u64 = 1 << 14;

/// Bytes of an entry without its values: offsets, and bookkeeping while an array is made.
pub(super) const ENTRY: u64 = 24;

/// `OFFSETS` and the optional `MASK` of one level.
#[derive(Debug)]
pub(super) struct Level {
    pub path: String,
    pub offsets: Arc<dyn Rows>,
    pub mask: Option<Arc<dyn Rows>>,
    pub len: u64,
    pub tally: Arc<Tally>,
}

/// Some entries of a level.
pub(super) struct Entries {
    /// Start and end of each entry; equal for null ones.
    pub spans: Vec<(u64, u64)>,
    /// Which entries are null: by the mask, or because their offsets are invalid.
    pub nulls: Option<NullBuffer>,
}

impl Entries {
    /// The distinct entries, and for each entry its position among them.
    pub fn distinct(&self) -> (Self, Vec<u32>) {
        // Where a null entry lies means nothing.
        let stored = self
            .spans
            .iter()
            .enumerate()
            .map(|(row, span)| self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)).then_some(*span));
        let (distinct, keys) = numbered(stored);
        let nulls = NullBuffer::from_iter(distinct.iter().map(Option::is_some));
        let spans = distinct.into_iter().map(Option::unwrap_or_default).collect();
        (Self { spans, nulls: Some(nulls).filter(|nulls| nulls.null_count() > 0) }, keys)
    }

    /// The range from the first to the last value of all entries; empty if no entry has values.
    pub fn hull(&self) -> RowRange {
        let used = self.spans.iter().filter(|(start, end)| start < end);
        let hull = used.copied().reduce(|(first, last), (start, end)| (first.min(start), last.max(end)));
        hull.map_or(0..0, |(first, last)| first..last)
    }

    /// Total number of values of all entries; shared values count for each entry.
    pub fn total(&self) -> u64 {
        self.spans.iter().map(|(start, end)| end - start).fold(0, u64::saturating_add)
    }

    /// The range of values of all entries. `None`: entries do not follow each other without gaps.
    pub fn contiguous(&self) -> Option<(u64, u64)> {
        let mut used = self.spans.iter().filter(|(start, end)| start < end);
        let Some(&(first, mut last)) = used.next() else { return Some((0, 0)) };
        for &(start, end) in used {
            if start != last {
                return None;
            }
            last = end;
        }
        Some((first, last))
    }
}

/// Where entries are alike: neither their offsets are stored, nor their rows of `beside`.
pub(in crate::table::rows) fn alike_entries(offsets: &Arc<dyn Rows>, beside: Option<Arc<dyn Rows>>) -> Alike {
    let offsets = offsets.clone();
    Alike::new(move |row, interrupt| {
        // An entry ends where the next one begins.
        let end = offsets.alike_until(row, interrupt)?.saturating_sub(1);
        match &beside {
            Some(beside) if end > row => Ok(end.min(beside.alike_until(row, interrupt)?)),
            _ => Ok(end),
        }
    })
}

impl Level {
    /// A level of at most `len` entries; fewer if `OFFSETS` is shorter than `len + 1` or `MASK` than `len`.
    pub fn new(path: String, offsets: Arc<dyn Rows>, mask: Option<Arc<dyn Rows>>, len: u64, tally: Arc<Tally>) -> Self {
        let len = len.min(offsets.len().saturating_sub(1));
        let len = mask.as_ref().map_or(len, |mask| len.min(mask.len()));
        Self { path, offsets, mask, len, tally }
    }

    /// The rows that the level reads.
    pub fn rows(&self) -> impl Iterator<Item = &Arc<dyn Rows>> {
        [&self.offsets].into_iter().chain(&self.mask)
    }

    /// Where entries are alike: none of their offsets and masks is stored.
    pub fn alike(&self) -> Alike {
        alike_entries(&self.offsets, self.mask.clone())
    }

    /// The entries of `range`, whose offsets are checked against the number of values. Counts their oddities.
    pub fn entries(&self, range: RowRange, values: u64, interrupt: &Interrupt) -> Result<Entries, Error> {
        let (entries, odd) = self.look(range.clone(), values, interrupt)?;
        self.tally.add(range, &odd);
        Ok(entries)
    }

    /// As [`Level::entries`], but returns the oddities without counting them.
    pub fn look(&self, range: RowRange, values: u64, interrupt: &Interrupt) -> Result<(Entries, Oddities), Error> {
        crate::store::count_of(&range, self.len, &self.path)?;
        if range.is_empty() {
            return Ok((Entries { spans: Vec::new(), nulls: None }, Oddities::new()));
        }
        let offsets = self.offsets.array(range.start..range.end + 1, interrupt)?;
        let offsets = widen::unsigned(&offsets)
            .ok_or_else(|| Error::unsupported(&self.path, format!("OFFSETS of type {}", offsets.data_type())))?;
        let mask = self.mask.as_ref().map(|mask| mask.array(range, interrupt)).transpose()?;
        // A mask byte other than 0 and 1 is null in the array, and makes the entry null as well.
        let mask = mask.as_ref().and_then(|mask| mask.as_boolean_opt()).map(|mask| match mask.nulls() {
            Some(known) => mask.values() & known.inner(),
            None => mask.values().clone(),
        });
        let mut odd = Oddities::new();
        let mut spans = Vec::with_capacity(offsets.len());
        let mut valid = Vec::with_capacity(offsets.len());
        for (row, pair) in offsets.values().windows(2).enumerate() {
            let (start, end) = (pair[0], pair[1]);
            let sound = start <= end && end <= values && offsets.is_valid(row) && offsets.is_valid(row + 1);
            if !sound {
                odd.add(Oddity::InvalidOffsets, row as u64);
            }
            let shown = sound && mask.as_ref().is_none_or(|mask| mask.value(row));
            if sound && !shown && start < end {
                odd.add(Oddity::NullNotEmpty, row as u64);
            }
            spans.push(if shown { (start, end) } else { (start.min(values), start.min(values)) });
            valid.push(shown);
        }
        let nulls = valid.contains(&false).then(|| NullBuffer::new(BooleanBuffer::from(valid)));
        Ok((Entries { spans, nulls }, odd))
    }
}
