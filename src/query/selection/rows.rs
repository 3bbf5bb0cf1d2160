//! The selected rows of a column.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowDictionaryKeyType, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, DictionaryArray, LargeStringArray, PrimitiveArray};
use arrow_buffer::ArrowNativeType;
use arrow_buffer::{BooleanBuffer, Buffer, MutableBuffer};
use arrow_schema::ArrowError;
use arrow_schema::DataType;

use super::{Selected, SelectionPiece};
use crate::source::Interrupt;
use crate::store::{
    Alike, ChunkDecoding, Error, Facts, Fitter, Fitting, RowRange, Rows, SharedRows, StoredBytes, StoredFacts,
};

/// Bytes of values to read from the column at once.
const AT_ONCE: u64 = 16 << 20;

/// Number of rows whose size is examined first.
const FIRST_WEIGHED: u64 = 256;

/// Longest gap of unwanted rows that is read along: values of variable length cost much each, and a new read costs
/// about as much as these.
const GAP: usize = 64;

/// The rows of a column that a selection found. Reading decodes only chunks that hold some of them.
#[derive(Debug)]
pub struct SelectedRows {
    rows: Arc<dyn Rows>,
    selected: Arc<Selected>,
    facts: Facts,
}

/// Some of the wanted rows.
enum Span {
    /// Rows of the column to read together, and the wanted ones among them (`None`: all).
    Read(Range<u64>, Option<BooleanBuffer>),
    /// Stored values of wanted rows, which were kept.
    Kept(Buffer),
}

impl SelectedRows {
    /// Wraps `rows`, which must have as many rows as the selection's table.
    pub fn new(rows: Arc<dyn Rows>, selected: Arc<Selected>) -> Self {
        let inner = rows.facts();
        let facts = Facts {
            len: selected.len(),
            // A selection changes neither values nor their storage, only their positions.
            natural_rows: None,
            stride: None,
            cuts: None,
            stored: StoredFacts { decoded: ChunkDecoding::Never, ..inner.stored.clone() },
            codes: 0,
            outline_tells_nulls: false,
            fields_lie_apart: false,
            alike: Alike::default(),
            ..inner.clone()
        };
        Self { rows, selected, facts }
    }

    fn spans(&self, range: &RowRange, interrupt: &Interrupt) -> Result<Vec<Span>, Error> {
        let most = (AT_ONCE / self.rows.stored_width().unwrap_or(1).max(1)).max(1);
        let mut spans = Vec::new();
        for piece in self.selected.pieces(range, interrupt)? {
            if let Some(bytes) = self.selected.values(&piece, self.rows.as_ref()) {
                spans.push(Span::Kept(bytes));
                continue;
            }
            let rows = match &piece.bits {
                None => std::iter::once(piece.first..piece.first + piece.length).collect(),
                Some(bits) => self.wanted(&piece, bits),
            };
            for rows in rows {
                for start in (rows.start..rows.end).step_by(usize::try_from(most).unwrap_or(usize::MAX)) {
                    let end = rows.end.min(start.saturating_add(most));
                    // Within the piece, which lies in one block if it has bits.
                    let at = (start - piece.first) as usize;
                    let bits = piece.bits.as_ref().map(|bits| bits.slice(at, (end - start) as usize));
                    spans.push(Span::Read(start..end, bits.filter(|bits| bits.count_set_bits() < bits.len())));
                }
            }
        }
        Ok(spans)
    }

    /// Returns the stretches of a piece to read. They leave out whole chunks and, for values of variable length, gaps
    /// of more than [`GAP`] rows.
    fn wanted(&self, piece: &SelectionPiece, bits: &BooleanBuffer) -> Vec<Range<u64>> {
        let natural = self.rows.natural_rows().filter(|natural| *natural > 0);
        let has_width = self.rows.stored_width().is_some();
        let mut wanted: Vec<Range<u64>> = Vec::new();
        for (start, end) in bits.set_slices() {
            let run = piece.first + start as u64..piece.first + end as u64;
            match wanted.last_mut() {
                Some(last) => {
                    let near = run.start - last.end <= GAP as u64;
                    let same_chunk = natural.is_none_or(|natural| (last.end - 1) / natural == run.start / natural);
                    if near || has_width && same_chunk {
                        last.end = run.end;
                    } else {
                        wanted.push(run);
                    }
                }
                None => wanted.push(run),
            }
        }
        wanted
    }

    /// Appends `bytes` of rows with a fixed stored width; reads only these bytes.
    fn append_parts(
        &self,
        range: RowRange,
        width: u64,
        bytes: Range<u64>,
        out: &mut Vec<u8>,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        for row in range {
            let [piece] = self
                .selected
                .pieces(&(row..row + 1), interrupt)?
                .try_into()
                .map_err(|_| self.error(format!("row {row} of {} selected", self.facts.len)))?;
            let skip = piece.bits.as_ref().and_then(|bits| bits.set_indices().next()).unwrap_or(0) as u64;
            let start = (row * width).max(bytes.start);
            let length = ((row + 1) * width).min(bytes.end).saturating_sub(start);
            let from = (piece.first + skip).saturating_mul(width).saturating_add(start - row * width);
            self.rows.stored_bytes()?.append(from, length as usize, out, interrupt)?;
        }
        Ok(())
    }

    /// Joins the arrays that `read` returns for the rows of `range`. With `is_light`, arrays take a few bytes a row,
    /// whatever their values take.
    fn gather(
        &self,
        range: &RowRange,
        is_light: bool,
        read: &dyn Fn(RowRange) -> Result<Option<ArrayRef>, Error>,
        interrupt: &Interrupt,
    ) -> Result<Option<ArrayRef>, Error> {
        let mut parts = Vec::new();
        for span in self.spans(range, interrupt)? {
            interrupt.check()?;
            let (rows, bits) = match span {
                Span::Kept(bytes) => {
                    parts.push(
                        self.rows
                            .coded()
                            .and_then(|coded| coded.values(bytes))
                            .ok_or_else(|| self.error("kept values that cannot be decoded"))?,
                    );
                    continue;
                }
                Span::Read(rows, bits) => (rows, bits),
            };
            let Some(bits) = bits else {
                let Some(array) = read(rows)? else { return Ok(None) };
                parts.push(array);
                continue;
            };
            // If the rows between wanted ones take too much memory, the wanted ones are read run by run.
            if !is_light && self.rows.fitting(rows.clone(), AT_ONCE, interrupt)?.end < rows.end {
                for run in runs(&rows, Some(&bits)) {
                    interrupt.check()?;
                    let Some(array) = read(run)? else { return Ok(None) };
                    parts.push(array);
                }
                continue;
            }
            let Some(array) = read(rows)? else { return Ok(None) };
            let filtered = arrow_select::filter::filter(array.as_ref(), &BooleanArray::new(bits, None));
            parts.push(filtered.map_err(|error| self.error(error))?);
        }
        let array = match parts.as_slice() {
            [] => return read(0..0),
            [only] => only.clone(),
            parts => {
                let joined = joined(parts, interrupt);
                interrupt.check()?;
                joined.map_err(|error| self.error(error))?
            }
        };
        if array.len() as u64 == range.end.saturating_sub(range.start) {
            Ok(Some(array))
        } else {
            Err(self.error(format!("rows {range:?} of {} selected", self.facts.len)))
        }
    }

    /// Adds the rows of `range` while they fit; returns whether all did.
    fn add_fitting(&self, range: &RowRange, fitter: &mut Fitter, interrupt: &Interrupt) -> Result<bool, Error> {
        for span in self.spans(range, interrupt)? {
            interrupt.check()?;
            let (rows, bits) = match span {
                Span::Kept(bytes) => {
                    let width = self.rows.stored_width().unwrap_or(0);
                    let count = (bytes.len() as u64).checked_div(width).unwrap_or(0);
                    if !fitter.add(count, bytes.len() as u64) {
                        return Ok(false);
                    }
                    continue;
                }
                Span::Read(rows, bits) => (rows, bits),
            };
            let found = self.rows.fitting(rows.clone(), fitter.left(), interrupt)?;
            let wanted = bits.as_ref().map_or(rows.end - rows.start, |bits| bits.count_set_bits() as u64);
            if found.end >= rows.end && fitter.add(wanted, found.bytes) {
                continue;
            }
            for run in runs(&rows, bits.as_ref()) {
                let found = self.rows.fitting(run.clone(), fitter.left(), interrupt)?;
                if !fitter.add(found.end - run.start, found.bytes) || found.end < run.end {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn error(&self, reason: impl ToString) -> Error {
        Error::unsupported(self.selected.path(), reason)
    }
}

impl Rows for SelectedRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let picked = self.selected.picked(self.rows.as_ref(), &range, interrupt)?;
        if let Some(array) = picked.and_then(|bytes| self.rows.coded()?.array_of(MutableBuffer::from(bytes).into())) {
            return Ok(array);
        }
        let array = self.gather(&range, false, &|rows| self.rows.array(rows, interrupt).map(Some), interrupt)?;
        // Any range of rows can be read.
        array.ok_or_else(|| self.error("rows that cannot be read"))
    }

    fn outline(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        // Only numbers and labels are kept, and these have no lengths.
        if self.rows.stored_width().is_some() && !self.rows.data_type().is_nested() {
            return Ok(None);
        }
        self.gather(&range, true, &|rows| self.rows.outline(rows, interrupt), interrupt)
    }

    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        let mut fitter = Fitter::new(range.start, bytes);
        // A few rows may fill the room, so the window grows as rows fit.
        let mut window = FIRST_WEIGHED;
        while fitter.fitting().end < range.end {
            let start = fitter.fitting().end;
            let part = start..start.saturating_add(window).min(range.end);
            if !self.add_fitting(&part, &mut fitter, interrupt)? || fitter.fitting().end < part.end {
                break;
            }
            window = window.saturating_mul(4);
        }
        Ok(fitter.fitting())
    }

    fn shared(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<SharedRows>, Error> {
        let (mut parts, mut keys) = (Vec::new(), Vec::new());
        let (mut values, mut bytes) = (0, 0u64);
        for span in self.spans(&range, interrupt)? {
            let Span::Read(rows, bits) = span else { return Ok(None) };
            let Some(shared) = self.rows.shared(rows, interrupt)? else { return Ok(None) };
            bytes = bytes.saturating_add(shared.values.get_array_memory_size() as u64);
            if bytes > AT_ONCE {
                return Ok(None);
            }
            let of_column = shared.keys.into_iter().enumerate();
            let wanted = of_column.filter(|(row, _)| bits.as_ref().is_none_or(|bits| bits.value(*row)));
            keys.extend(wanted.map(|(_, key)| values + key));
            // Rows examined together are fewer than 2^32.
            values += shared.values.len() as u32;
            parts.push(shared.values);
        }
        if parts.is_empty() || keys.len() as u64 != range.end.saturating_sub(range.start) {
            return Ok(None);
        }
        let values = joined(&parts, interrupt).map_err(|error| self.error(error))?;
        Ok(Some(SharedRows { values, keys }))
    }

    fn bytes(&self) -> Option<&dyn StoredBytes> {
        self.facts.stored.width.map(|_| self as _)
    }
}

impl StoredBytes for SelectedRows {
    fn append(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        let width = self.facts.stored.width.filter(|width| *width > 0).ok_or(Error::NotStored)?;
        let end = offset.checked_add(length as u64).filter(|end| end.div_ceil(width) <= self.facts.len);
        let end = end.ok_or_else(|| self.error(format!("bytes from {offset} on pass the end")))?;
        let range = offset / width..end.div_ceil(width);
        if width > AT_ONCE {
            return self.append_parts(range, width, offset..end, out, interrupt);
        }
        let picked = self.selected.picked(self.rows.as_ref(), &range, interrupt)?;
        let spans = if picked.is_some() { Vec::new() } else { self.spans(&range, interrupt)? };
        let mut wanted = picked.unwrap_or_default();
        for span in spans {
            interrupt.check()?;
            let (rows, bits) = match span {
                Span::Read(rows, bits) => (rows, bits),
                Span::Kept(bytes) => {
                    wanted.extend_from_slice(&bytes);
                    continue;
                }
            };
            let bytes = (rows.end - rows.start).checked_mul(width).and_then(|bytes| usize::try_from(bytes).ok());
            let (Some(bytes), Some(from)) = (bytes, rows.start.checked_mul(width)) else {
                return Err(self.error(format!("rows {rows:?} of {width} bytes overflow")));
            };
            let Some(bits) = bits else {
                self.rows.stored_bytes()?.append(from, bytes, &mut wanted, interrupt)?;
                continue;
            };
            let mut stored = Vec::new();
            self.rows.stored_bytes()?.append(from, bytes, &mut stored, interrupt)?;
            // As wide as the part of the array just read.
            let width = width as usize;
            for (start, end) in bits.set_slices() {
                wanted.extend_from_slice(stored.get(start * width..end * width).unwrap_or_default());
            }
        }
        let skip = (offset % width) as usize;
        let bytes = wanted.get(skip..).and_then(|bytes| bytes.get(..length));
        out.extend_from_slice(bytes.ok_or_else(|| self.error("stored rows came short"))?);
        Ok(())
    }
}

/// Returns the runs of wanted rows in `rows`.
fn runs<'a>(rows: &Range<u64>, bits: Option<&'a BooleanBuffer>) -> Box<dyn Iterator<Item = Range<u64>> + 'a> {
    let (start, all) = (rows.start, rows.clone());
    match bits {
        Some(bits) => Box::new(bits.set_slices().map(move |(from, to)| start + from as u64..start + to as u64)),
        None => Box::new(std::iter::once(all)),
    }
}

/// Joins parts of a column. Labels keep their positions in the dictionary of the first part, as in arrays of the column
/// itself; labels that only later parts have follow.
pub(in crate::query) fn joined(parts: &[ArrayRef], interrupt: &Interrupt) -> Result<ArrayRef, ArrowError> {
    if let Some(DataType::Dictionary(key, _)) = parts.first().map(|part| part.data_type()) {
        match **key {
            DataType::Int32 => return dictionaries::<Int32Type>(parts, interrupt),
            DataType::Int64 => return dictionaries::<Int64Type>(parts, interrupt),
            _ => {}
        }
    }
    concatenated(parts)
}

fn concatenated(parts: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    arrow_select::concat::concat(&parts.iter().map(AsRef::as_ref).collect::<Vec<_>>())
}

fn dictionaries<K: ArrowDictionaryKeyType>(parts: &[ArrayRef], interrupt: &Interrupt) -> Result<ArrayRef, ArrowError> {
    let Some(first) = parts.first() else { return Ok(arrow_array::new_empty_array(&K::DATA_TYPE)) };
    let first = first.as_dictionary::<K>().values();
    let mut merged: Option<Labels> = None;
    let mut keys: Vec<ArrayRef> = Vec::with_capacity(parts.len());
    for part in parts {
        let part = part.as_dictionary::<K>();
        let own = part.values();
        if own.to_data().ptr_eq(&first.to_data()) || own.to_data() == first.to_data() {
            keys.push(Arc::new(part.keys().clone()));
            continue;
        }
        interrupt.check().map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
        // Only enumerations have different dictionaries: each part adds the unnamed codes that it found.
        let (Some(first), Some(own)) = (first.as_string_opt(), own.as_string_opt()) else { return concatenated(parts) };
        let places = merged.get_or_insert_with(|| Labels::new(first)).places::<K>(own)?;
        // The key under a null is arbitrary.
        let moved = part.keys().unary::<_, K>(|key| places.get(key.as_usize()).copied().unwrap_or_default());
        keys.push(Arc::new(moved));
    }
    let keys = concatenated(&keys)?;
    let keys: &PrimitiveArray<K> = keys.as_primitive();
    let labels = match merged {
        Some(merged) => Arc::new(LargeStringArray::from(merged.texts)),
        None => first.clone(),
    };
    Ok(Arc::new(DictionaryArray::<K>::try_new(keys.clone(), labels)?))
}

/// Distinct labels of several dictionaries, in order of appearance.
struct Labels {
    texts: Vec<Option<String>>,
    places: HashMap<Option<String>, usize>,
}

impl Labels {
    /// Starts with the labels of the first dictionary, which keep their positions.
    fn new(first: &LargeStringArray) -> Self {
        let texts: Vec<Option<String>> = first.iter().map(|text| text.map(str::to_owned)).collect();
        let mut places = HashMap::with_capacity(texts.len());
        for (at, text) in texts.iter().enumerate() {
            places.entry(text.clone()).or_insert(at);
        }
        Self { texts, places }
    }

    /// Returns the positions of the labels of another dictionary; new ones are appended.
    fn places<K: ArrowDictionaryKeyType>(&mut self, own: &LargeStringArray) -> Result<Vec<K::Native>, ArrowError> {
        let texts = &mut self.texts;
        let places = own.iter().map(|text| {
            let text = text.map(str::to_owned);
            let place = *self.places.entry(text.clone()).or_insert_with(|| {
                texts.push(text);
                texts.len() - 1
            });
            K::Native::from_usize(place).ok_or(ArrowError::DictionaryKeyOverflowError)
        });
        places.collect()
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Int32Array;

    use super::*;

    /// Names of an enumeration, and behind them the codes without a name that each part met, as the column gives them.
    #[test]
    fn labels_of_all_parts_are_there_once() {
        let part = |keys: Vec<Option<i32>>, labels: &[&str]| -> ArrayRef {
            let labels = Arc::new(LargeStringArray::from(labels.to_vec()));
            Arc::new(DictionaryArray::<Int32Type>::new(Int32Array::from(keys), labels))
        };
        let parts = [
            part(vec![Some(0), None, Some(2)], &["a", "b", "7"]),
            part(vec![Some(3), Some(1), None, Some(2)], &["a", "b", "9", "7"]),
            part(vec![Some(1)], &["a", "b", "7"]),
            part(vec![Some(2)], &["a", "b", "9"]),
        ];
        let joined = joined(&parts, &Interrupt::new()).unwrap();
        let expected = part(
            vec![Some(0), None, Some(2), Some(2), Some(1), None, Some(3), Some(1), Some(3)],
            &["a", "b", "7", "9"],
        );
        assert_eq!(joined.to_data(), expected.to_data());
    }
}
