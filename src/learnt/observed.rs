//! Rows that pass their values to a learner.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, UInt8Array};
use arrow_buffer::Buffer;

use super::learner::Learner;
use crate::source::Interrupt;
use crate::store::statistics::Summary;
use crate::store::{
    Coded, Error, Facts, Fitting, Lent, RowRange, Rows, SharedRows, Span, StoredBytes, StridedField, Summaries,
    for_each_stored,
};

/// Bytes copied at a time to learn from them: few enough for the processor's cache, in memory used before.
const COPIED: usize = 64 << 10;

/// The rows of a column, whose values a [`Learner`] sees as they are read: arrays, keys, and bytes of decoded chunks.
/// Bytes copied unchanged from the file are not scanned: that would be most of the work.
#[derive(Debug)]
pub struct Observed {
    rows: Arc<dyn Rows>,
    learner: Arc<Learner>,
}

impl Observed {
    /// Makes `learner`, which must be made for these rows, see their values.
    pub fn new(rows: Arc<dyn Rows>, learner: Arc<Learner>) -> Self {
        Self { rows, learner }
    }

    /// Learns from `length` stored bytes at byte `offset`, in pieces of about `most`; `part` returns ranges of them.
    fn observe_stored(
        &self,
        (offset, length): (u64, usize),
        most: usize,
        interrupt: &Interrupt,
        part: impl Fn(Range<usize>) -> Buffer,
    ) {
        let Some(width) = self.rows.stored_width().filter(|width| *width > 0 && self.rows.is_decoded()) else { return };
        if length == 0 {
            return;
        }
        let end = offset.saturating_add(length as u64);
        let (first, last) = (offset.div_ceil(width), end / width);
        if first < last {
            let lead = (first * width - offset) as usize;
            let at_once = (most / width as usize).max(1);
            self.learner.observe_by(first, (last - first) as usize, &|rows| {
                rows.clone().step_by(at_once).try_fold(Summary::default(), |all, start| {
                    let end = rows.end.min(start.saturating_add(at_once));
                    // At most `length`: the rows lie within these bytes.
                    let [start, end] = [start, end].map(|row| lead + row * width as usize);
                    let (coded, bytes) = (self.rows.coded()?, part(start..end));
                    Some(all.merge(coded.summary_of(coded.values(bytes)?.as_ref(), interrupt)?))
                })
            });
        }
        // Requests may begin or end within a row. The second request for a part of a row reads that row once more, from
        // a chunk that was just decoded.
        let (before, after) = (offset / width, last);
        for (row, is_cut, beyond) in [
            (before, !offset.is_multiple_of(width), before.checked_sub(1)),
            (after, !end.is_multiple_of(width), after.checked_add(1)),
        ] {
            if is_cut
                && !self.learner.has_seen(&(row..row + 1))
                && beyond.is_none_or(|row| row == self.rows.len() || self.learner.has_seen(&(row..row + 1)))
            {
                // A row that cannot be read stays unknown.
                drop(self.array(row..row + 1, interrupt));
            }
        }
    }

    /// Learns from borrowed bytes.
    fn observe_lent(&self, lent: &Lent, offset: u64, interrupt: &Interrupt) {
        self.observe_stored((offset, lent.len()), usize::MAX, interrupt, |range| {
            lent.part(range).map_or_else(Buffer::default, Buffer::from)
        });
    }
}

impl Rows for Observed {
    fn facts(&self) -> &Facts {
        self.rows.facts()
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let array = self.rows.array(range.clone(), interrupt)?;
        // An array of another length would be attributed to the wrong rows.
        if array.len() as u64 == range.end.saturating_sub(range.start) {
            self.learner.observe(range.start, array.as_ref());
        }
        Ok(array)
    }

    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        self.rows.fitting(range, bytes, interrupt)
    }

    fn shared(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<SharedRows>, Error> {
        self.rows.shared(range, interrupt)
    }

    fn outline(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        self.rows.outline(range, interrupt)
    }

    fn array_for_field(&self, fields: &[usize], range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        match fields {
            [] => self.array(range, interrupt),
            // Compounds have no statistics.
            fields => self.rows.array_for_field(fields, range, interrupt),
        }
    }

    fn bytes(&self) -> Option<&dyn StoredBytes> {
        self.rows.bytes().map(|_| self as _)
    }

    fn coded(&self) -> Option<&dyn Coded> {
        self.rows.coded().map(|_| self as _)
    }

    fn known(&self) -> Option<&dyn Summaries> {
        Some(self)
    }
}

impl StoredBytes for Observed {
    fn append(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        let start = out.len();
        self.rows.stored_bytes()?.append(offset, length, out, interrupt)?;
        if let Some(bytes) = out.get(start..).filter(|bytes| bytes.len() == length) {
            self.observe_stored((offset, length), COPIED, interrupt, |range| {
                Buffer::from(bytes.get(range).unwrap_or_default())
            });
        }
        Ok(())
    }

    fn span(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Span, Error> {
        let span = self.rows.stored_bytes()?.span(offset, length, interrupt)?;
        if let Span::Lent(lent) = &span {
            self.observe_lent(lent, offset, interrupt);
        }
        Ok(span)
    }

    fn lend(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Option<Lent>, Error> {
        let lent = self.rows.stored_bytes()?.lend(offset, length, interrupt)?;
        if let Some(lent) = lent.as_ref().filter(|lent| lent.len() == length) {
            self.observe_lent(lent, offset, interrupt);
        }
        Ok(lent)
    }
}

impl Coded for Observed {
    fn place(&self) -> Option<StridedField<'_>> {
        self.rows.coded()?.place()
    }

    fn array_of(&self, bytes: Buffer) -> Option<ArrayRef> {
        self.rows.coded()?.array_of(bytes)
    }

    fn append_byte_keys(&self, range: RowRange, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<bool, Error> {
        let Some(coded) = self.rows.coded() else { return Ok(false) };
        let start = out.len();
        let appended = coded.append_byte_keys(range.clone(), out, interrupt)?;
        if let Some(keys) = out.get(start..).filter(|_| appended)
            && keys.len() as u64 == range.end.saturating_sub(range.start)
        {
            self.learner.observe_by(range.start, keys.len(), &|part| {
                let keys = UInt8Array::new(Buffer::from(keys.get(part)?).into(), None);
                coded.summary_of(&keys, interrupt)
            });
        }
        Ok(appended)
    }

    fn code_values(&self) -> Option<ArrayRef> {
        self.rows.coded()?.code_values()
    }

    fn codes(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        let Some(coded) = self.rows.coded() else { return Ok(None) };
        let Some(codes) = coded.codes(range.clone(), interrupt)? else { return Ok(None) };
        if codes.len() as u64 == range.end.saturating_sub(range.start) {
            self.learner.observe_by(range.start, codes.len(), &|part| {
                coded.summary_of(codes.slice(part.start, part.len()).as_ref(), interrupt)
            });
        }
        Ok(Some(codes))
    }

    fn values(&self, bytes: Buffer) -> Option<ArrayRef> {
        self.rows.coded()?.values(bytes)
    }

    fn summary_of(&self, values: &dyn Array, interrupt: &Interrupt) -> Option<Summary> {
        self.rows.coded()?.summary_of(values, interrupt)
    }

    fn sound_summary_of(&self, values: &dyn Array, interrupt: &Interrupt) -> Option<Summary> {
        self.rows.coded()?.sound_summary_of(values, interrupt)
    }
}

impl Summaries for Observed {
    fn scan(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<Summary>, Error> {
        let Some(coded) = self.rows.coded() else { return Ok(None) };
        let summary = |bytes| coded.sound_summary_of(coded.values(bytes)?.as_ref(), interrupt);
        let Some(width) = self.rows.stored_width().filter(|_| summary(Buffer::default()).is_some()) else {
            return Ok(None);
        };
        let mut all = Summary::default();
        let came_to_end = for_each_stored(self.rows.as_ref(), range, interrupt, &mut |rows, bytes| {
            self.learner.by_block(&rows).all(|part| {
                // Positions within these bytes.
                let [start, end] = [part.start, part.end].map(|row| ((row - rows.start) * width) as usize);
                let Some(of_part) = summary(bytes.slice_with_length(start, end - start)) else { return false };
                self.learner.observe_by(part.start, (part.end - part.start) as usize, &|_| Some(of_part.clone()));
                all = std::mem::take(&mut all).merge(of_part);
                true
            })
        })?;
        Ok(came_to_end.then_some(all))
    }

    fn summary(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<Summary>, Error> {
        self.rows.known().map_or(Ok(None), |known| known.summary(range, interrupt))
    }

    fn summary_of_codes(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<Summary>, Error> {
        self.rows.known().map_or(Ok(None), |known| known.summary_of_codes(range, interrupt))
    }

    fn is_computed(&self, interrupt: &Interrupt) -> bool {
        self.rows.known().is_some_and(|known| known.is_computed(interrupt))
    }
}
