//! A column of waveforms, each encoded by itself.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt8Type, UInt64Type};
use arrow_array::{ArrayRef, FixedSizeListArray, Int32Array, LargeListArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field};

use crate::codec::waveform::Coding;
use crate::source::Interrupt;
use crate::store::decode::{Oddities, Oddity, widen};
use crate::store::{Error, Fitter, Fitting, Hints, RowRange, Rows, Tally};

/// Most samples of a waveform.
const MOST_SAMPLES: u64 = 1 << 26;

/// Samples for which another core is worth its start.
const WORTH_A_CORE: u64 = 64 << 10;

/// Rows whose sizes are read at once.
const AT_ONCE: u64 = 16 << 10;

/// How many samples each waveform has.
#[derive(Clone, Debug)]
pub enum Samples {
    /// All have this many.
    All(u32),
    /// Each its own number.
    Each(Arc<dyn Rows>),
}

/// Waveforms, decoded as they are read, on all cores. What cannot be decoded to the samples that it should have is
/// missing.
#[derive(Debug)]
pub struct EncodedRows {
    coding: Coding,
    offsets: Arc<dyn Rows>,
    bytes: Arc<dyn Rows>,
    samples: Samples,
    data_type: DataType,
    path: String,
    tally: Arc<Tally>,
}

impl EncodedRows {
    /// Waveform `i` is encoded in `bytes`, of one-byte unsigned integers, from offset `i` to offset `i + 1`.
    ///
    /// # Errors
    /// What has another type, or another length.
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
        Ok(Self { coding, offsets, bytes, samples, data_type, path, tally })
    }

    fn failed(&self, reason: impl ToString) -> Error {
        Error::Unsupported { path: self.path.clone(), reason: reason.to_string() }
    }

    /// Samples that each waveform should have; `None` where that is no number.
    fn sizes(&self, range: &RowRange, interrupt: &Interrupt) -> Result<Vec<Option<usize>>, Error> {
        match &self.samples {
            Samples::All(samples) => Ok(vec![Some(*samples as usize); count(range)]),
            Samples::Each(sizes) => {
                let sizes = widen::unsigned(&sizes.array(range.clone(), interrupt)?)
                    .ok_or_else(|| self.failed("sizes that are no integers"))?;
                // A negative one is past 2^63.
                let size = |size: Option<u64>| size.filter(|size| *size <= MOST_SAMPLES).map(|size| size as usize);
                Ok(sizes.iter().map(size).collect())
            }
        }
    }

    /// Where the bytes of each waveform lie; `None` where the offsets fall or pass the end.
    fn spans(&self, range: &RowRange, interrupt: &Interrupt) -> Result<Vec<Option<RowRange>>, Error> {
        let offsets = self.offsets.array(range.start..range.end.saturating_add(1), interrupt)?;
        let offsets = offsets.as_primitive::<UInt64Type>();
        let most = self.bytes.len();
        let span = |pair: &[u64]| (pair[0] <= pair[1] && pair[1] <= most).then(|| pair[0]..pair[1]);
        Ok(offsets.values().windows(2).map(span).collect())
    }

    /// Decodes some waveforms, whose bytes begin at `start` of the column's, one behind the other.
    fn decode(&self, start: u64, bytes: &[u8], waveforms: &[(Option<RowRange>, Option<usize>)]) -> Decoded {
        let mut decoded = Decoded::default();
        for (span, size) in waveforms {
            let before = decoded.samples.len();
            let content = span.as_ref().and_then(|span| {
                bytes.get(span.start.checked_sub(start)? as usize..span.end.checked_sub(start)? as usize)
            });
            let whole = content.zip(*size).and_then(|(content, size)| {
                self.coding.decode(content, size, &mut decoded.samples)?;
                (decoded.samples.len() - before == size).then_some(())
            });
            if whole.is_none() {
                decoded.samples.truncate(before);
                if let Samples::All(samples) = self.samples {
                    decoded.samples.resize(before + samples as usize, 0);
                }
            }
            decoded.valid.push(whole.is_some());
            decoded.lengths.push(decoded.samples.len() - before);
        }
        decoded
    }
}

/// Waveforms decoded.
#[derive(Default)]
struct Decoded {
    samples: Vec<i32>,
    lengths: Vec<usize>,
    valid: Vec<bool>,
}

fn count(range: &RowRange) -> usize {
    usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX)
}

impl Rows for EncodedRows {
    fn len(&self) -> u64 {
        self.offsets.len().saturating_sub(1)
    }

    fn data_type(&self) -> &DataType {
        &self.data_type
    }

    fn examine(&self, interrupt: &Interrupt) -> Result<(), Error> {
        self.offsets.examine(interrupt)?;
        self.bytes.examine(interrupt)
    }

    fn nullable(&self) -> bool {
        true
    }

    fn hints(&self) -> Hints {
        Hints { items: Some(Box::default()), nullable: true, ..Hints::default() }
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let spans = self.spans(&range, interrupt)?;
        let sizes = self.sizes(&range, interrupt)?;
        let start = spans.iter().flatten().map(|span| span.start).min().unwrap_or(0);
        let end = spans.iter().flatten().map(|span| span.end).max().unwrap_or(0);
        let used = spans.iter().flatten().map(|span| span.end - span.start).fold(0, u64::saturating_add);
        if end - start > used {
            // Offsets that fall leave gaps, which may be of any length.
            return Err(self.failed(format!("rows {range:?}: offsets of encoded waveforms fall")));
        }
        let bytes = self.bytes.array(start..end, interrupt)?;
        let bytes = bytes.as_primitive::<UInt8Type>().values();
        let waveforms: Vec<_> = spans.into_iter().zip(sizes).collect();
        let total: u64 = waveforms.iter().filter_map(|(_, size)| *size).map(|size| size as u64).sum();
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let parts = (total / WORTH_A_CORE).clamp(1, cores) as usize;
        let decoded: Vec<Decoded> = std::thread::scope(|scope| {
            let work = waveforms.chunks(waveforms.len().div_ceil(parts).max(1));
            let threads: Vec<_> = work.map(|part| scope.spawn(move || self.decode(start, bytes, part))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or_default()).collect()
        });
        let mut all = Decoded::default();
        for part in decoded {
            all.samples.extend(part.samples);
            all.lengths.extend(part.lengths);
            all.valid.extend(part.valid);
        }
        if all.valid.len() != waveforms.len() {
            return Err(self.failed("a decoder failed"));
        }
        let is_odd = |(row, valid): (usize, &bool)| (!valid).then_some((Oddity::Undecodable, row as u64));
        let odd: Oddities = all.valid.iter().enumerate().filter_map(is_odd).collect();
        self.tally.add(range, &odd);
        let nulls = (!odd.is_empty()).then(|| NullBuffer::from(all.valid));
        let samples: ArrayRef = Arc::new(Int32Array::from(all.samples));
        let lists: Result<ArrayRef, _> = match &self.data_type {
            DataType::FixedSizeList(item, size) => {
                let count = waveforms.len();
                FixedSizeListArray::try_new_with_length(item.clone(), *size, samples, nulls, count)
                    .map(|lists| Arc::new(lists) as ArrayRef)
            }
            DataType::LargeList(item) => {
                let offsets = OffsetBuffer::from_lengths(all.lengths);
                LargeListArray::try_new(item.clone(), offsets, samples, nulls).map(|lists| Arc::new(lists) as ArrayRef)
            }
            other => return Err(self.failed(other)),
        };
        lists.map_err(|error| self.failed(error))
    }

    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        let mut fitter = Fitter::new(range.start, bytes);
        while fitter.fitting().end < range.end {
            interrupt.check()?;
            let start = fitter.fitting().end;
            let part = start..start.saturating_add(AT_ONCE).min(range.end);
            for (span, size) in self.spans(&part, interrupt)?.into_iter().zip(self.sizes(&part, interrupt)?) {
                let encoded = span.map_or(0, |span| span.end - span.start);
                // Decoded twice: in the parts, and together.
                let taken = encoded.saturating_add(8 * size.unwrap_or(0) as u64).saturating_add(24);
                if !fitter.add(1, taken) {
                    return Ok(fitter.fitting());
                }
            }
        }
        Ok(fitter.fitting())
    }

    fn stored_width(&self) -> Option<u64> {
        None
    }

    fn append_stored(&self, _: u64, _: usize, _: &mut Vec<u8>, _: &Interrupt) -> Result<(), Error> {
        Err(self.failed("waveforms are stored encoded"))
    }

    fn natural_rows(&self) -> Option<u64> {
        self.offsets.natural_rows()
    }
}
