//! Computes the contents of an index: one pass over the column (two for a bitmap), on all cores.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, UInt64Array, new_empty_array};
use arrow_schema::DataType;

use super::kind::IndexKind;
use super::stored::ElementEncoder;
use super::subject::IndexedColumn;
use crate::h5;
use crate::h5::element::AttributeValue;
use crate::indexes::bitmap::{self, BitmapValues};
use crate::indexes::bloom::{self, Scheme};
use crate::indexes::minmax::{self, MinMaxEntry};
use crate::indexes::{canonical, order};
use crate::producer::Error;
use crate::producer::boolean;
use crate::producer::options::Revision;
use crate::source::Interrupt;
use crate::store::statistics::Scalar;
use crate::store::{self, cores};

/// Most distinct values that a bitmap may have.
const MOST_VALUES: usize = 65_536;

/// Most rows in a block for one thread, unless a chunk has more.
const BLOCK_ROWS: u64 = 1 << 18;

/// Most bytes in a block for one thread, unless eight rows take more.
const BLOCK_BYTES: u64 = 32 << 20;

/// Most bytes in a chunk of bitmaps, or of filters unless one filter takes more.
const CHUNK_BYTES: u64 = 64 << 10;

/// Settings for building an index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct IndexSettings {
    /// Rate of false positives that a filter may have.
    pub false_positives: f64,
    /// Seed of the filters' hash, in July.
    pub seed: u32,
    /// Most memory to use for an index under construction, in bytes.
    pub memory: u64,
}

/// The contents of an index, ready to be written.
#[derive(Debug)]
pub(super) struct EncodedIndex {
    /// Shape of the index's dataset.
    pub layout: IndexLayout,
    /// Elements of the index's dataset.
    pub elements: Data,
    /// Attributes of the index's dataset, besides those that every index has.
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// The values of a bitmap, as elements of their own dataset. `None`: another kind of index.
    pub values: Option<h5::ElementPayload>,
}

/// Shape of a dataset that belongs to an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IndexLayout {
    /// Number of elements along each dimension.
    pub extents: Vec<u64>,
    /// Whether each dimension can grow with the table.
    pub grows: Vec<bool>,
    /// Number of elements of a chunk along each dimension.
    pub chunk: Vec<u64>,
}

/// Elements of an index's dataset.
#[derive(Debug)]
pub(super) enum Data {
    /// Entries of `CHUNK_MINMAX`, whose bounds are not yet in the column's stored form.
    Entries(Vec<MinMaxEntry>),
    /// Row numbers, sorted by the rows' values, and the number of bytes that each takes: 4 or 8.
    Rows(Vec<u64>, u8),
    /// Bitmaps or filters, one row of bytes after the other.
    Bytes(Vec<u8>),
}

/// Computes an index of a column.
///
/// # Errors
/// The column cannot have such an index or cannot be read, or memory does not suffice.
pub(super) fn compute(
    subject: &IndexedColumn,
    kind: IndexKind,
    settings: &IndexSettings,
    progress: &(dyn Fn(u64) + Sync),
    interrupt: &Interrupt,
) -> Result<EncodedIndex, Error> {
    let data_type = subject.values.data_type();
    let is_suitable = match kind {
        IndexKind::MinMax | IndexKind::Sorted => order::has_order(data_type),
        IndexKind::Bitmap | IndexKind::Bloom => canonical::has_canonical(data_type),
    };
    if !is_suitable {
        let reason = format!(
            "HEP001 §8: {} is of values with an order or canonical bytes, not of {data_type}",
            kind.stored_name()
        );
        return Err(Error::refused(&subject.path, reason));
    }
    let pass = Pass { subject, settings, progress, interrupt };
    match kind {
        IndexKind::MinMax => pass.minmax(),
        IndexKind::Sorted => pass.sorted(),
        IndexKind::Bitmap => pass.bitmap(),
        IndexKind::Bloom => pass.bloom(),
    }
}

struct Pass<'a> {
    subject: &'a IndexedColumn,
    settings: &'a IndexSettings,
    progress: &'a (dyn Fn(u64) + Sync),
    interrupt: &'a Interrupt,
}

impl Pass<'_> {
    fn refused(&self, reason: impl Into<String>) -> Error {
        Error::refused(&self.subject.path, reason)
    }

    fn unordered(&self) -> Error {
        self.refused("the values have no order")
    }

    fn too_many(&self) -> Error {
        self.refused(format!(
            "more than {MOST_VALUES} distinct values: BITMAP is for few; CHUNK_BLOOM (bloom) serves many"
        ))
    }

    /// Returns this number of bytes, or fails if it exceeds the memory limit.
    fn fits(&self, what: &str, bytes: Option<u64>) -> Result<usize, Error> {
        let limit = self.settings.memory;
        let fits = bytes.filter(|bytes| *bytes <= limit).and_then(|bytes| usize::try_from(bytes).ok());
        fits.ok_or_else(|| {
            let bytes = bytes.map_or_else(|| "2^64 or more".to_owned(), |bytes| bytes.to_string());
            self.refused(format!("building {what} takes {bytes} bytes of memory, more than {limit} (--memory)"))
        })
    }

    /// Number of rows in a block: whole chunks if these are small, and always a multiple of 8, as bitmaps need.
    fn block(&self) -> u64 {
        let width = self.subject.values.stored_width().unwrap_or(16).max(1);
        let most = (BLOCK_BYTES / width).clamp(8, BLOCK_ROWS.max(self.subject.chunk_rows()));
        let natural = self.subject.chunk_rows();
        let rows = if natural <= most { most / natural * natural } else { most };
        rows.next_multiple_of(8)
    }

    /// The rows of the block of this number.
    fn rows_of(&self, number: u64) -> Range<u64> {
        let block = self.block();
        number * block..self.subject.rows.min((number + 1) * block)
    }

    /// Maps each block with `look` on all cores, and passes the results to `take` in the order of the blocks.
    fn each<T: Send>(
        &self,
        look: impl Fn(u64, &ArrayRef) -> Result<T, Error> + Sync,
        mut take: impl FnMut(Range<u64>, T) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let blocks = self.subject.rows.div_ceil(self.block());
        let threads = cores();
        let (next, failed) = (AtomicU64::new(0), AtomicBool::new(false));
        // The bound keeps finished blocks, which lie in memory, from getting far ahead of the slowest one.
        let (sender, receiver) = crossbeam_channel::bounded(threads);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let (sender, next, failed, look) = (sender.clone(), &next, &failed, &look);
                scope.spawn(move || {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= blocks || failed.load(Ordering::Relaxed) {
                            return;
                        }
                        let rows = self.rows_of(number);
                        let values = self.subject.values.array(rows.clone(), self.interrupt);
                        let looked = values.map_err(Error::from).and_then(|values| look(rows.start, &values));
                        (self.progress)(rows.end - rows.start);
                        if sender.send((number, looked)).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            let mut waiting = BTreeMap::new();
            let mut at = 0;
            let mut outcome = Ok(());
            for (number, looked) in receiver {
                waiting.insert(number, looked);
                while let Some(looked) = waiting.remove(&at).filter(|_| outcome.is_ok()) {
                    outcome = looked.and_then(|looked| take(self.rows_of(at), looked));
                    at += 1;
                }
                if outcome.is_err() {
                    failed.store(true, Ordering::Relaxed);
                }
            }
            outcome
        })?;
        self.interrupt.check().map_err(store::Error::from)?;
        Ok(())
    }

    fn minmax(&self) -> Result<EncodedIndex, Error> {
        let chunk = self.subject.chunk_rows();
        let count = self.subject.chunks();
        self.fits("CHUNK_MINMAX", count.checked_mul(size_of::<MinMaxEntry>() as u64))?;
        let mut entries: Vec<MinMaxEntry> = Vec::new();
        self.each(
            |first, values| minmax::by_chunk(values, first, chunk).ok_or_else(|| self.unordered()),
            |_, found| {
                for (number, entry) in found {
                    match entries.pop() {
                        Some(last) if entries.len() as u64 == number => entries.push(last.merge(entry)),
                        last => entries.extend(last.into_iter().chain([entry])),
                    }
                }
                Ok(())
            },
        )?;
        Ok(EncodedIndex {
            layout: IndexLayout { extents: vec![count], grows: vec![true], chunk: vec![count.clamp(64, 4096)] },
            elements: Data::Entries(entries),
            attributes: self.chunk_shape(),
            values: None,
        })
    }

    /// The attribute that states the rows of a chunk, which April demands.
    fn chunk_shape(&self) -> Vec<(&'static str, AttributeValue)> {
        match self.subject.revision {
            Revision::April => vec![("chunk_shape", AttributeValue::numbers(&[self.subject.chunk_rows()]))],
            Revision::July => Vec::new(),
        }
    }

    fn sorted(&self) -> Result<EncodedIndex, Error> {
        let rows = self.subject.rows;
        let width = self.subject.values.stored_width().unwrap_or(32).max(8);
        self.fits("SORTED_ROWS", rows.checked_mul(width.saturating_add(8)))?;
        let mut keys = order::Keys::new(self.subject.values.data_type()).ok_or_else(|| self.unordered())?;
        let most = self.settings.memory;
        self.each(
            |_, values| Ok(values.clone()),
            |_, values| {
                if !keys.extend(&values) {
                    return Err(self.unordered());
                }
                let bytes = keys.bytes().saturating_add(8 * rows);
                if bytes > most { self.fits("SORTED_ROWS", Some(bytes)).map(|_| ()) } else { Ok(()) }
            },
        )?;
        let sorted = keys.sorted(most.saturating_sub(keys.bytes()));
        let [missing, nans] = keys.tails();
        Ok(EncodedIndex {
            layout: IndexLayout { extents: vec![rows], grows: vec![true], chunk: vec![rows.clamp(1024, 131_072)] },
            elements: Data::Rows(sorted, if rows <= 1 << 32 { 4 } else { 8 }),
            attributes: vec![
                ("nan_tail_length", AttributeValue::number(nans)),
                ("fill_tail_length", AttributeValue::number(missing)),
                ("ordered", boolean::value(true)),
            ],
            values: None,
        })
    }

    fn bitmap(&self) -> Result<EncodedIndex, Error> {
        let (mut known, mut distinct) = (BitmapValues::default(), Vec::new());
        self.each(
            |_, values| {
                let mut own = BitmapValues::default();
                let new = own.extend_new(values);
                if new.len() > MOST_VALUES { Err(self.too_many()) } else { Ok(taken(values, new)) }
            },
            |_, values| {
                let new = known.extend_new(&values);
                if known.len() > MOST_VALUES {
                    return Err(self.too_many());
                }
                distinct.push(taken(&values, new));
                Ok(())
            },
        )?;
        let values = self.in_order(&distinct)?;
        let (count, row_bytes) = (values.len() as u64, bitmap::bytes(self.subject.rows));
        let bytes = self.fits(&format!("BITMAP of {count} values"), count.checked_mul(row_bytes))?;
        let mut positions = BitmapValues::default();
        positions.extend(&values).map_err(|_| self.refused("two distinct values that are equal"))?;
        let mut bits = vec![0; bytes];
        let row_bytes = row_bytes as usize;
        self.each(
            |_, values| Ok(positions.bitmaps(values)),
            |rows, found| {
                // A block begins with a whole byte.
                let from = (rows.start / 8) as usize;
                for (row, found) in bits.chunks_exact_mut(row_bytes.max(1)).zip(found) {
                    if let Some(place) = row.get_mut(from..from + found.len()) {
                        place.copy_from_slice(&found);
                    }
                }
                Ok(())
            },
        )?;
        let mut encoder = ElementEncoder::new(&self.subject.datatype, 1);
        (0..values.len()).filter_map(|row| scalar(&values, row)).for_each(|value| encoder.value(&value));
        let across = (row_bytes as u64).clamp(1, CHUNK_BYTES);
        Ok(EncodedIndex {
            layout: IndexLayout {
                extents: vec![count, row_bytes as u64],
                grows: vec![true, true],
                chunk: vec![(CHUNK_BYTES / across).clamp(1, count.max(1)), across],
            },
            elements: Data::Bytes(bits),
            attributes: vec![
                ("ordered", boolean::value(self.subject.is_ordered)),
                ("exhaustive", boolean::value(true)),
            ],
            values: Some(encoder.finish()),
        })
    }

    /// Merges distinct values in ascending order.
    fn in_order(&self, parts: &[ArrayRef]) -> Result<ArrayRef, Error> {
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        if parts.is_empty() {
            return Ok(new_empty_array(self.subject.values.data_type()));
        }
        let all = arrow_select::concat::concat(&parts).map_err(|error| self.refused(error.to_string()))?;
        let Some(mut keys) = order::Keys::new(all.data_type()) else { return Ok(all) };
        keys.extend(&all);
        let sorted = UInt64Array::from(keys.sorted(u64::MAX));
        arrow_select::take::take(&all, &sorted, None).map_err(|error| self.refused(error.to_string()))
    }

    fn bloom(&self) -> Result<EncodedIndex, Error> {
        let (chunk, count) = (self.subject.chunk_rows(), self.subject.chunks());
        let (bits, k) = parameters(chunk.min(self.subject.rows.max(1)), self.settings.false_positives);
        let width = bits / 8;
        let bytes = self.fits("CHUNK_BLOOM", count.checked_mul(width))?;
        // A chunk may span many blocks of rows, and its filter is large, so all threads fill one filter.
        let filters: Vec<AtomicU8> = (0..bytes).map(|_| AtomicU8::new(0)).collect();
        // April's text on seeds is ambiguous. Readers try each way to read it; this writer follows the wording.
        let (scheme, family) = match self.subject.revision {
            Revision::July => (Scheme::OneHash { seed: self.settings.seed }, "murmur3_x64_128_double"),
            Revision::April => (Scheme::LowHigh, "murmur3_128_double"),
        };
        self.each(
            |first, values| {
                let end = first + values.len() as u64;
                let mut row = first;
                while row < end {
                    let number = row / chunk;
                    let to = end.min((number + 1).saturating_mul(chunk));
                    let from = (number * width) as usize;
                    if let Some(filter) = filters.get(from..from + width as usize) {
                        let values = values.slice((row - first) as usize, (to - row) as usize);
                        bloom::insert(filter, &values, scheme, k);
                    }
                    row = to;
                }
                Ok(())
            },
            |_, ()| Ok(()),
        )?;
        let mut attributes = vec![
            ("k", AttributeValue::number(k)),
            ("m_bits", AttributeValue::number(bits)),
            ("hash_family", AttributeValue::ascii(family)),
        ];
        if self.subject.revision == Revision::July {
            attributes.push(("seed", AttributeValue::number(self.settings.seed)));
        }
        attributes.extend(self.chunk_shape());
        Ok(EncodedIndex {
            layout: IndexLayout {
                extents: vec![count, width],
                grows: vec![true, false],
                chunk: vec![(CHUNK_BYTES / width).clamp(1, count.max(1)), width],
            },
            elements: Data::Bytes(filters.into_iter().map(AtomicU8::into_inner).collect()),
            attributes,
            values: None,
        })
    }
}

/// Number of bits in a filter, and of hashes, for this many values and this rate of false positives.
fn parameters(values: u64, false_positives: f64) -> (u64, u16) {
    let values = values.max(1) as f64;
    let ln2 = std::f64::consts::LN_2;
    let bits = (-values * false_positives.ln() / (ln2 * ln2)).ceil().max(8.0);
    // Rounded up to whole bytes, and bounded.
    let bits = (bits as u64).min(1 << 40).next_multiple_of(8);
    let k = (bits as f64 / values * ln2).round().clamp(1.0, 30.0);
    (bits, k as u16)
}

fn taken(values: &ArrayRef, rows: Vec<usize>) -> ArrayRef {
    let rows: UInt64Array = rows.into_iter().map(|row| row as u64).collect();
    // The fallback is never used, since the rows lie in the array.
    arrow_select::take::take(values, &rows, None).unwrap_or_else(|_| values.slice(0, 0))
}

/// The value in one row of an array. `None`: a type that no index covers.
fn scalar(array: &ArrayRef, row: usize) -> Option<Scalar> {
    macro_rules! numbers {
        ($($arrow:ident $primitive:ident $make:expr),*) => {
            match array.data_type() {
                $(DataType::$arrow => $make(array.as_primitive::<$primitive>().value(row)),)*
                DataType::Boolean => Scalar::Bool(array.as_boolean().value(row)),
                DataType::LargeUtf8 => Scalar::Text(array.as_string::<i64>().value(row).into()),
                DataType::FixedSizeBinary(_) => Scalar::Text(array.as_fixed_size_binary().value(row).to_vec()),
                _ => return None,
            }
        };
    }
    Some(numbers!(
        Int8 Int8Type |value| Scalar::Int(i64::from(value)),
        Int16 Int16Type |value| Scalar::Int(i64::from(value)),
        Int32 Int32Type |value| Scalar::Int(i64::from(value)),
        Int64 Int64Type Scalar::Int,
        UInt8 UInt8Type |value| Scalar::UInt(u64::from(value)),
        UInt16 UInt16Type |value| Scalar::UInt(u64::from(value)),
        UInt32 UInt32Type |value| Scalar::UInt(u64::from(value)),
        UInt64 UInt64Type Scalar::UInt,
        Float16 Float16Type |value: half::f16| Scalar::Float(value.to_f64()),
        Float32 Float32Type |value| Scalar::Float(f64::from(value)),
        Float64 Float64Type Scalar::Float
    ))
}
