//! A column of waveforms, each encoded independently.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt8Type, UInt64Type};
use arrow_array::{Array, ArrayRef, FixedSizeListArray, Int32Array, LargeListArray, NullArray};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer, ToByteSlice};
use arrow_schema::{DataType, Field};
use arrow_select::concat::concat;

use crate::catalogue::{ByteOrder, Class, Datatype};
use crate::codec::waveform::Coding;
use crate::source::Interrupt;
use crate::store::decode::{Oddities, Oddity, widen};
use crate::store::{
    ARRAY_BYTES, ChunkDecoding, Containers, Error, Facts, Fitter, Fitting, Hints, RowRange, Rows, StoredBytes,
    StoredFacts, Tally, cores, try_memory,
};
use crate::table::rows::offsets::alike_entries;

/// Most samples of a waveform.
const MOST_SAMPLES: u64 = 1 << 26;

/// Samples that justify using another core.
const WORTH_A_CORE: usize = 64 << 10;

/// Number of rows whose sizes are read at once.
const AT_ONCE: u64 = 16 << 10;

/// Most bytes of a decoded row in `.npy` and `.raw`: reading a part of a row decodes the whole row.
const WIDEST: u64 = 1 << 20;

/// The number of samples of each waveform.
#[derive(Clone, Debug)]
pub enum Samples {
    /// All waveforms have this many.
    All(u32),
    /// Each waveform has its own number.
    Each(Arc<dyn Rows>),
}

/// Waveforms, decoded on demand on all cores. A waveform that does not decode to the expected number of samples is
/// null.
#[derive(Debug)]
pub struct EncodedRows {
    coding: Coding,
    offsets: Arc<dyn Rows>,
    bytes: Arc<dyn Rows>,
    samples: Samples,
    path: String,
    tally: Arc<Tally>,
    facts: Facts,
}

impl EncodedRows {
    /// Waveform `i` is encoded in `bytes`, one-byte unsigned integers, from offset `i` to offset `i + 1`.
    ///
    /// # Errors
    /// Rows of another type or of inconsistent length.
    pub fn new(
        path: String,
        coding: Coding,
        (offsets, bytes): (Arc<dyn Rows>, Arc<dyn Rows>),
        samples: Samples,
        tally: Arc<Tally>,
    ) -> Result<Self, String> {
        if *offsets.data_type() != DataType::UInt64 || *bytes.data_type() != DataType::UInt8 {
            return Err(format!("encoded waveforms of type {}", bytes.data_type()));
        }
        let rows = offsets.len().saturating_sub(1);
        let item = Arc::new(Field::new_list_field(DataType::Int32, true));
        let decoded = match samples {
            Samples::All(samples) => {
                Some(Arc::new(array_of(samples.into()))).filter(|row| (1..=WIDEST).contains(&row.size))
            }
            Samples::Each(_) => None,
        };
        let data_type = match &samples {
            Samples::All(samples) if u64::from(*samples) <= MOST_SAMPLES => {
                DataType::FixedSizeList(item, *samples as i32)
            }
            Samples::All(samples) => return Err(format!("waveforms of {samples} samples")),
            Samples::Each(sizes) if !sizes.data_type().is_integer() || sizes.len() != rows => {
                return Err(format!("{} sizes of type {} for {rows} waveforms", sizes.len(), sizes.data_type()));
            }
            Samples::Each(_) => DataType::LargeList(item),
        };
        let facts = Facts {
            nullable: true,
            hints: Hints { items: Some(Box::default()), nullable: true, ..Hints::default() },
            // Each row is decoded independently, so the chunks of the offsets do not reflect the work.
            natural_rows: match &decoded {
                Some(row) => Some((4 * WORTH_A_CORE as u64 / row.size).max(1)),
                None => offsets.natural_rows(),
            },
            stored: StoredFacts {
                width: decoded.as_ref().map(|row| row.size),
                datatype: decoded,
                decoded: ChunkDecoding::Never,
            },
            outline_tells_nulls: true,
            alike: alike_entries(
                &offsets,
                match &samples {
                    Samples::Each(sizes) => Some(sizes.clone()),
                    Samples::All(_) => None,
                },
            ),
            containers: Containers::of_all([&offsets, &bytes]),
            ..Facts::new(rows, data_type)
        };
        Ok(Self { coding, offsets, bytes, samples, path, tally, facts })
    }

    fn failed(&self, reason: impl ToString) -> Error {
        Error::unsupported(&self.path, reason)
    }

    /// The expected number of samples of each waveform. `None`: not a valid number.
    fn sizes(&self, range: &RowRange, interrupt: &Interrupt) -> Result<Vec<Option<usize>>, Error> {
        match &self.samples {
            Samples::All(samples) => Ok(vec![Some(*samples as usize); count(range)]),
            Samples::Each(sizes) => {
                let sizes = widen::unsigned(&sizes.array(range.clone(), interrupt)?)
                    .ok_or_else(|| self.failed("sizes that are no integers"))?;
                // A negative number appears as 2^63 or more, which is too large.
                Ok(sizes.iter().map(|size| size.filter(|size| *size <= MOST_SAMPLES).map(|n| n as usize)).collect())
            }
        }
    }

    /// The bytes of each waveform. `None`: its offsets fall or exceed the end.
    fn spans(&self, range: &RowRange, interrupt: &Interrupt) -> Result<Vec<Option<RowRange>>, Error> {
        let offsets = self.offsets.array(range.start..range.end.saturating_add(1), interrupt)?;
        let offsets = offsets.as_primitive::<UInt64Type>();
        let most = self.bytes.len();
        let pairs = offsets.values().windows(2);
        Ok(pairs.map(|pair| (pair[0] <= pair[1] && pair[1] <= most).then(|| pair[0]..pair[1])).collect())
    }

    /// The waveforms of these rows, with their bytes.
    fn waveforms(&self, range: &RowRange, interrupt: &Interrupt) -> Result<Waveforms, Error> {
        let spans = self.spans(range, interrupt)?;
        let sizes = self.sizes(range, interrupt)?;
        // Falling offsets leave gaps of any length, which are not read, and overlapping spans, which are read once.
        let mut runs: Vec<RowRange> = spans.iter().flatten().cloned().collect();
        runs.sort_unstable_by_key(|run| run.start);
        runs.dedup_by(|next, run| {
            let meets = next.start <= run.end;
            run.end = if meets { run.end.max(next.end) } else { run.end };
            meets
        });
        let read = |run: &RowRange| {
            interrupt.check()?;
            Ok::<_, Error>(self.bytes.array(run.clone(), interrupt)?.as_primitive::<UInt8Type>().values().clone())
        };
        let mut places = Vec::with_capacity(runs.len());
        let bytes = if let [run] = &runs[..] {
            places.push(0);
            read(run)?
        } else {
            try_memory(runs.iter().map(|run| run.end - run.start).sum())?;
            let mut bytes = Vec::new();
            for run in &runs {
                places.push(bytes.len());
                bytes.extend_from_slice(&read(run)?);
            }
            bytes.into()
        };
        let waveforms = spans.into_iter().zip(sizes).map(|(span, size)| {
            let span = span?;
            // The last run that begins at or before the span contains it.
            let run = runs.partition_point(|run| run.start <= span.start).checked_sub(1)?;
            let at = places.get(run)? + count(&(runs.get(run)?.start..span.start));
            let span = at..at + count(&span);
            (self.coding.samples(bytes.get(span.clone())?) == Some(size?)).then_some((span, size?))
        });
        Ok(Waveforms { waveforms: waveforms.collect(), bytes })
    }

    /// The rows that fit into `bytes` bytes; `weight` gives the bytes for a waveform's encoded bytes and samples.
    fn encoded(
        &self,
        range: RowRange,
        bytes: u64,
        interrupt: &Interrupt,
        weight: &dyn Fn(u64, u64) -> u64,
    ) -> Result<Fitting, Error> {
        let mut fitter = Fitter::new(range.start, bytes);
        while fitter.fitting().end < range.end {
            interrupt.check()?;
            let start = fitter.fitting().end;
            let part = start..start.saturating_add(AT_ONCE).min(range.end);
            for (span, size) in self.spans(&part, interrupt)?.into_iter().zip(self.sizes(&part, interrupt)?) {
                let encoded = span.map_or(0, |span| span.end - span.start);
                if !fitter.add(1, weight(encoded, size.unwrap_or(0) as u64)) {
                    return Ok(fitter.fitting());
                }
            }
        }
        Ok(fitter.fitting())
    }

    /// The lists of these rows; damaged waveforms are null.
    fn lists(&self, waveforms: &Waveforms, items: ArrayRef) -> Result<ArrayRef, Error> {
        let nulls: NullBuffer = waveforms.waveforms.iter().map(Option::is_some).collect();
        let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
        let item = Arc::new(Field::new_list_field(items.data_type().clone(), true));
        let lists: Result<ArrayRef, _> = match &self.samples {
            Samples::All(samples) => {
                let count = waveforms.waveforms.len();
                FixedSizeListArray::try_new_with_length(item, *samples as i32, items, nulls, count)
                    .map(|lists| Arc::new(lists) as ArrayRef)
            }
            Samples::Each(_) => {
                let lengths = waveforms.waveforms.iter().map(|waveform| waveform.as_ref().map_or(0, |(_, size)| *size));
                LargeListArray::try_new(item, OffsetBuffer::from_lengths(lengths), items, nulls)
                    .map(|lists| Arc::new(lists) as ArrayRef)
            }
        };
        lists.map_err(|error| self.failed(error))
    }

    /// Number of samples of a waveform in the array; even a null waveform may have some.
    fn room(&self, waveform: &Option<Waveform>) -> usize {
        match (waveform, &self.samples) {
            (Some((_, size)), _) => *size,
            (None, Samples::All(samples)) => *samples as usize,
            (None, Samples::Each(_)) => 0,
        }
    }

    /// Decodes waveforms one after another.
    fn decode(&self, bytes: &[u8], waveforms: &[Option<Waveform>], out: &mut [i32]) {
        let mut rest = out;
        for waveform in waveforms {
            let Some((samples, behind)) = rest.split_at_mut_checked(self.room(waveform)) else { return };
            if let Some(content) = waveform.as_ref().and_then(|(span, _)| bytes.get(span.clone())) {
                // The number of samples was checked before.
                let _ = self.coding.decode(content, samples);
            }
            rest = behind;
        }
    }
}

/// The place of a waveform's bytes, and its number of samples.
type Waveform = (std::ops::Range<usize>, usize);

/// Encoded waveforms.
struct Waveforms {
    bytes: ScalarBuffer<u8>,
    /// The waveforms. `None`: damaged.
    waveforms: Vec<Option<Waveform>>,
}

/// The datatype of a row of `samples` decoded samples.
fn array_of(samples: u64) -> Datatype {
    let base = Box::new(Datatype::integer(4, true, ByteOrder::Little));
    Datatype { size: 4 * samples, class: Class::Array { dims: vec![samples], base } }
}

fn count(range: &RowRange) -> usize {
    usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX)
}

impl Rows for EncodedRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let waveforms = self.waveforms(&range, interrupt)?;
        // Callers ask for at most what fits into memory.
        let total: usize = waveforms.waveforms.iter().map(|waveform| self.room(waveform)).sum();
        try_memory(4 * total as u64)?;
        let mut samples = vec![0; total];
        let parts = (total / WORTH_A_CORE).clamp(1, cores());
        let per_part = waveforms.waveforms.len().div_ceil(parts).max(1);
        std::thread::scope(|scope| {
            let mut rest = samples.as_mut_slice();
            let mut work = waveforms.waveforms.chunks(per_part).peekable();
            while let Some(part) = work.next() {
                let (out, behind) = rest.split_at_mut(part.iter().map(|waveform| self.room(waveform)).sum());
                rest = behind;
                let mut decode = || self.decode(&waveforms.bytes, part, out);
                if work.peek().is_some() {
                    scope.spawn(decode);
                } else {
                    decode();
                }
            }
        });
        let mut odd = Oddities::new();
        odd.add_where(Oddity::Undecodable, waveforms.waveforms.len(), |row| waveforms.waveforms[row].is_none());
        self.tally.add(range, &odd);
        self.lists(&waveforms, Arc::new(Int32Array::from(samples)))
    }

    fn outline(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        let mut outlines = Vec::new();
        let mut start = range.start;
        while start < range.end || outlines.is_empty() {
            interrupt.check()?;
            let end = self.encoded(start..range.end, ARRAY_BYTES, interrupt, &|span, _| span)?.end;
            let waveforms = self.waveforms(&(start..end.max(start)), interrupt)?;
            let room = waveforms.waveforms.iter().map(|waveform| self.room(waveform)).sum();
            outlines.push(self.lists(&waveforms, Arc::new(NullArray::new(room)))?);
            start = end.max(start + 1);
        }
        let outlines: Vec<&dyn Array> = outlines.iter().map(AsRef::as_ref).collect();
        concat(&outlines).map(Some).map_err(|error| self.failed(error))
    }

    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        self.encoded(range, bytes, interrupt, &|span, size| span.saturating_add(4 * size).saturating_add(24))
    }

    fn bytes(&self) -> Option<&dyn StoredBytes> {
        self.facts.stored.width.map(|_| self as _)
    }
}

impl StoredBytes for EncodedRows {
    /// Appends decoded samples: the encoding counts as a filter.
    fn append(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        let width = self.facts.stored.width.ok_or(Error::NotStored)?;
        let end = offset.checked_add(length as u64).filter(|end| end.div_ceil(width) <= self.facts.len);
        let end = end.ok_or_else(|| self.failed(format!("{length} bytes from byte {offset} on")))?;
        let range = offset / width..end.div_ceil(width);
        let waveforms = self.waveforms(&range, interrupt)?;
        if let Some(damaged) = waveforms.waveforms.iter().position(Option::is_none) {
            return Err(self.failed(format!("the waveform of row {} is damaged", range.start + damaged as u64)));
        }
        let bytes = (range.end - range.start) * width;
        try_memory(bytes)?;
        let mut samples = vec![0; bytes as usize / 4];
        self.decode(&waveforms.bytes, &waveforms.waveforms, &mut samples);
        // These rows cover the bytes from `offset` to `end`.
        let skipped = (offset - range.start * width) as usize;
        out.extend_from_slice(&samples.to_byte_slice()[skipped..skipped + length]);
        Ok(())
    }
}
