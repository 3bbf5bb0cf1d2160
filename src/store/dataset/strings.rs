//! Strings as stored: none counts as missing, and no encoding is assumed.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::LargeBinaryBuilder;
use arrow_array::{ArrayRef, LargeBinaryArray};
use arrow_schema::DataType;

use super::rows::{fitting, shared_elements};
use super::{StoredDataset, count_of};
use crate::catalogue::{Class, Padding};
use crate::source::Interrupt;
use crate::store::{Coded, Containers, Error, Facts, Fitting, RowRange, Rows, SharedRows};

/// The bytes of each string, without padding; the fill value is treated like any other value. Variable-length strings
/// end at their first NUL.
#[derive(Debug)]
pub struct StoredStrings {
    dataset: Arc<StoredDataset>,
    facts: Facts,
}

impl StoredStrings {
    /// The first `len` elements of `dataset`, which must be strings.
    pub fn new(dataset: Arc<StoredDataset>, len: u64) -> Self {
        let facts = Facts {
            natural_rows: dataset.natural_rows(),
            containers: Containers::one(dataset.clone()),
            ..Facts::new(len.min(dataset.len()), DataType::LargeBinary)
        };
        Self { facts, dataset }
    }

    /// See [`Store::admit`](crate::store::Store::admit).
    fn admit(&self, range: &RowRange, bytes: u64) -> Result<(), Error> {
        let store = self.dataset.file().store();
        store.admit(self.dataset.path(), bytes, || format!("strings {}..{}", range.start, range.end))
    }

    /// The padding of fixed-length strings.
    fn padding(&self) -> Option<Padding> {
        match self.dataset.description().datatype.class {
            Class::FixedString { padding, .. } => Some(padding),
            _ => None,
        }
    }

    /// The bytes of fixed-length strings.
    fn fixed(&self, range: &RowRange, padding: Padding, interrupt: &Interrupt) -> Result<LargeBinaryArray, Error> {
        let width = self.dataset.element_size();
        self.admit(range, (range.end - range.start).saturating_mul(width.saturating_add(8)))?;
        // Positions within the dataset, which has fewer than 2^63 bytes.
        let mut bytes = vec![0; ((range.end - range.start) * width) as usize];
        self.dataset.read_bytes(range.start * width, &mut bytes, interrupt)?;
        let cells = bytes.chunks_exact((width as usize).max(1));
        Ok(LargeBinaryArray::from_iter_values(cells.map(|cell| padding.strip(cell))))
    }
}

/// Rows whose descriptors are read at once: few enough that descriptors and content fit in a processor's cache.
const BATCH: u64 = 1 << 13;

/// Most bytes of strings handed out together.
const RUN: usize = 64 << 10;

/// Room per string if there are few.
const ROOM: usize = 64;

/// Most bytes of a string to copy inline.
const SHORT: usize = 32;

/// Concatenated strings, each followed by a NUL.
struct Run {
    /// A buffer of fixed size.
    bytes: Vec<u8>,
    /// The end of each string, its NUL included; begins with 0.
    ends: Vec<usize>,
}

impl Run {
    /// Makes room for this many strings, up to [`RUN`].
    fn new(count: usize) -> Self {
        Self { bytes: vec![0; count.saturating_mul(ROOM).min(RUN)], ends: vec![0] }
    }

    fn end(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Whether a string of `length` bytes fits.
    #[inline]
    fn has_room(&self, length: usize) -> bool {
        length < self.bytes.len() - self.end()
    }

    /// Appends `bytes[range]`, which must fit.
    #[inline]
    fn push(&mut self, bytes: &[u8], range: Range<usize>) {
        let (start, length) = (self.end(), range.len());
        let end = start + length;
        // The next string overwrites the surplus bytes.
        let wide =
            (bytes.get(range.start..range.start.saturating_add(SHORT)), self.bytes.get_mut(start..start + SHORT));
        if let (Some(from), Some(to)) = wide
            && length <= SHORT
        {
            to.copy_from_slice(from);
        } else {
            self.bytes[start..end].copy_from_slice(&bytes[range]);
        }
        self.bytes[end] = 0;
        self.ends.push(end + 1);
    }

    /// Cuts each string at its first NUL. A count over all bytes comes first, since hardly any string contains one.
    fn cut_at_nuls(&mut self) {
        let taken = self.end();
        if memchr::memchr_iter(0, &self.bytes[..taken]).count() < self.ends.len() {
            return;
        }
        let (mut start, mut kept) = (0, 0);
        for end in self.ends.iter_mut().skip(1) {
            let length = Padding::NullTerminated.strip(&self.bytes[start..*end]).len() + 1;
            self.bytes.copy_within(start..start + length, kept);
            start = *end;
            kept += length;
            *end = kept;
        }
    }

    /// Hands out the strings, and clears the buffer.
    fn hand_out(&mut self, take: &mut impl FnMut(&[u8], &[usize]) -> bool) -> bool {
        self.cut_at_nuls();
        let goes_on = self.ends.len() == 1 || take(&self.bytes[..self.end()], &self.ends);
        self.ends.truncate(1);
        goes_on
    }
}

impl StoredStrings {
    /// Calls `take` with the strings of `range` in runs, each with the strings' boundaries, until it returns `false`.
    fn runs(
        &self,
        range: RowRange,
        interrupt: &Interrupt,
        mut take: impl FnMut(&[u8], &[usize]) -> bool,
    ) -> Result<(), Error> {
        let count = count_of(&range, self.facts.len, self.dataset.path())?;
        let width = usize::try_from(self.dataset.element_size()).unwrap_or(usize::MAX).max(1);
        // Elements read by a worker come with the content of a whole chunk.
        let chunk = self.dataset.natural_rows().filter(|_| self.dataset.through_worker());
        let batch = chunk.unwrap_or(0).max(BATCH);
        let mut run = Run::new(count);
        let mut first = range.start;
        while first < range.end {
            let last = first.saturating_add(batch).min(range.end);
            interrupt.check()?;
            let elements = self.dataset.read_elements(first..last, interrupt)?;
            let mut cursor = elements.heap.cursor();
            for (row, descriptor) in (first..).zip(elements.bytes.chunks_exact(width)) {
                let (bytes, place) =
                    cursor.locate(descriptor, 1).map_err(|cause| cause.at(self.dataset.path(), row))?;
                if run.has_room(place.len()) {
                    run.push(bytes, place);
                    continue;
                }
                if !run.hand_out(&mut take) {
                    return Ok(());
                }
                if run.has_room(place.len()) {
                    run.push(bytes, place);
                    continue;
                }
                // Long strings are handed out one at a time.
                interrupt.check()?;
                let text = Padding::NullTerminated.strip(bytes.get(place).unwrap_or_default());
                let mut alone = Vec::with_capacity(text.len() + 1);
                alone.extend_from_slice(text);
                alone.push(0);
                if !take(&alone, &[0, alone.len()]) {
                    return Ok(());
                }
            }
            first = last;
        }
        run.hand_out(&mut take);
        Ok(())
    }
}

impl Rows for StoredStrings {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let count = count_of(&range, self.facts.len, self.dataset.path())?;
        if let Some(padding) = self.padding() {
            return Ok(Arc::new(self.fixed(&range, padding, interrupt)?));
        }
        self.admit(&range, (count as u64).saturating_mul(16))?;
        let mut strings = LargeBinaryBuilder::with_capacity(count, count);
        let (mut taken, mut admitted) = ((count as u64).saturating_mul(8), Ok(()));
        self.runs(range.clone(), interrupt, |run, ends| {
            taken = taken.saturating_add(run.len() as u64);
            admitted = self.admit(&range, taken);
            if admitted.is_ok() {
                for (start, end) in ends.iter().zip(ends.iter().skip(1)) {
                    strings.append_value(&run[*start..end - 1]);
                }
            }
            admitted.is_ok()
        })?;
        admitted?;
        Ok(Arc::new(strings.finish()))
    }

    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        fitting(&self.dataset, &self.dataset.description().datatype, 1, range, bytes, interrupt)
    }

    fn shared(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<SharedRows>, Error> {
        let first = range.start;
        let datatype = &self.dataset.description().datatype;
        let Some((batch, distinct, keys)) = shared_elements(&self.dataset, datatype, range, interrupt)? else {
            return Ok(None);
        };
        let mut cursor = batch.heap.cursor();
        let mut strings = LargeBinaryBuilder::new();
        for descriptor in distinct.chunks_exact(datatype.size.max(1) as usize) {
            let bytes = cursor.resolve(descriptor, 1).map_err(|cause| cause.at(self.dataset.path(), first))?;
            strings.append_value(Padding::NullTerminated.strip(bytes));
        }
        Ok(Some(SharedRows { values: Arc::new(strings.finish()), keys }))
    }

    fn coded(&self) -> Option<&dyn Coded> {
        Some(self)
    }
}

impl Coded for StoredStrings {
    fn for_each_terminated(
        &self,
        range: RowRange,
        interrupt: &Interrupt,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<bool, Error> {
        if self.padding().is_some() {
            return Ok(false);
        }
        self.runs(range, interrupt, |run, _| take(run))?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn strings_end_at_their_first_nul(
            strings in prop::collection::vec(prop::collection::vec(0u8..4, 0..70), 0..20),
        ) {
            let mut run = Run::new(1 << 10);
            let (mut expected, mut ends) = (Vec::new(), vec![0]);
            let all = strings.concat();
            let mut start = 0;
            for string in &strings {
                run.push(&all, start..start + string.len());
                start += string.len();
                expected.extend(string.iter().take_while(|byte| **byte != 0));
                expected.push(0);
                ends.push(expected.len());
            }
            let mut handed_out = Vec::new();
            let goes_on = run.hand_out(&mut |run, ends| {
                handed_out.push((run.to_vec(), ends.to_vec()));
                true
            });
            prop_assert!(goes_on);
            prop_assert_eq!(handed_out.pop().unwrap_or((Vec::new(), vec![0])), (expected, ends));
            prop_assert_eq!(run.end(), 0);
        }
    }
}
