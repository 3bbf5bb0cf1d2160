//! A part of every row of a dataset: a field of a compound, or a position in the rows of an array.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_select::concat::concat;

use super::plain::PlainElements;
use super::rows::{count_of, distinct, hints_of};
use super::slabs::{SLAB, gather};
use super::{StoredDataset, StridedField};
use crate::catalogue::{Class, Datatype, product};
use crate::source::Interrupt;
use crate::store::decode::{FillTest, HeapBytes, Oddities, VariableParts, Weigher, arrow_type, decode};
use crate::store::statistics::Summary;
use crate::store::{
    ARRAY_BYTES, ChunkDecoding, Coded, Containers, Error, Facts, Fitter, Fitting, RowRange, Rows, RowsContainer,
    SharedRows, StoredBytes, StoredFacts, Tally, fixed_width,
};

/// Bytes of whole rows to gather from at a time: they fit in a processor's second-level cache.
const TILE: u64 = 256 << 10;

/// A longer part is read by itself: the bytes between two of them are not worth reading.
const LONG: u64 = 4 << 10;

/// A part of a row.
#[derive(Clone, Debug)]
pub struct RowPart {
    /// Its type.
    pub datatype: Datatype,
    /// Bytes before it in the row.
    pub offset: u64,
}

/// The same part of each row of a dataset; rows lie along the first axis.
///
/// Rows are read tile by tile, and only the part is kept. A row longer than a tile is not read whole.
#[derive(Debug)]
pub struct FieldRows {
    dataset: Arc<StoredDataset>,
    part: RowPart,
    /// Elements in a row.
    per_row: u64,
    /// Bytes of a row.
    stride: u64,
    missing: FillTest,
    facts: Facts,
    tally: Arc<Tally>,
}

impl FieldRows {
    /// The part of all rows of `dataset`, which has a first axis. `tally` counts oddities.
    pub fn new(dataset: Arc<StoredDataset>, part: RowPart, missing: FillTest, tally: Arc<Tally>) -> Self {
        let shape = &dataset.description().shape;
        let len = shape.first().copied().unwrap_or(0);
        let per_row = product(shape.get(1..).unwrap_or_default()).unwrap_or(0);
        let stride = per_row.saturating_mul(dataset.element_size());
        dataset.note_field(part.offset, part.datatype.size);
        let datatype = &part.datatype;
        let facts = Facts {
            nullable: missing.finds_rows() || datatype.is_boolean() || datatype.is_reference(),
            hints: hints_of(datatype, &dataset),
            natural_rows: dataset.natural_rows(),
            stride: Some(stride),
            stored: StoredFacts::of(Arc::new(datatype.clone()), ChunkDecoding::Asked(dataset.clone())),
            alike: dataset.alike(per_row),
            containers: Containers::one(dataset.clone()),
            ..Facts::new(len, arrow_type(datatype))
        };
        Self { dataset, part, per_row, stride, missing, facts, tally }
    }

    /// See [`Store::admit`](crate::store::Store::admit).
    fn admit(&self, range: &RowRange, bytes: u64) -> Result<(), Error> {
        let store = self.dataset.file().store();
        store.admit(self.dataset.path(), bytes, || format!("a field of rows {}..{}", range.start, range.end))
    }

    fn unsupported(&self, reason: String) -> Error {
        Error::unsupported(self.dataset.path(), reason)
    }

    /// Whether the part contains descriptors or references.
    fn leads_elsewhere(&self) -> bool {
        self.part.datatype.is_variable() || self.part.datatype.holds_reference()
    }

    /// The number of rows to read together, and the elements to read of each: all of them, or those that contain the
    /// part of a long row.
    fn tile(&self) -> (u64, std::ops::Range<u64>) {
        match TILE / self.stride.max(1) {
            0 => {
                let size = self.dataset.element_size().max(1);
                let end = self.part.offset.saturating_add(self.part.datatype.size);
                (1, self.part.offset / size..end.div_ceil(size))
            }
            rows => (rows, 0..self.per_row),
        }
    }

    /// Calls `take` for each tile within `range`: its rows, its elements, the offset of the part within a row, and the
    /// bytes of a row there.
    fn tiles(
        &self,
        range: &RowRange,
        mut take: impl FnMut(RowRange, std::ops::Range<u64>, usize, usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (rows, within) = self.tile();
        let size = self.dataset.element_size();
        let limit = self.dataset.file().store().max_chunk();
        if size > limit {
            return Err(Error::TooLarge {
                path: self.dataset.path().to_owned(),
                what: "an element".into(),
                bytes: size,
                limit,
                option: "--max-chunk",
            });
        }
        let offset = self.part.offset - within.start * size;
        let stride = (within.end - within.start) * size;
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min(start.saturating_add(rows));
            // Positions within the dataset, which has fewer than 2^63 bytes.
            let elements = start * self.per_row + within.start..(end - 1) * self.per_row + within.end;
            take(start..end, elements, offset as usize, stride as usize)?;
            start = end;
        }
        Ok(())
    }

    /// The part, if it contains no descriptors or references.
    fn elements(&self) -> PlainElements<'_> {
        PlainElements { datatype: &self.part.datatype, data_type: &self.facts.data_type, missing: &self.missing }
    }

    /// Rejects a part that exceeds its row.
    fn check_place(&self) -> Result<(), Error> {
        match self.part.offset.checked_add(self.part.datatype.size) {
            Some(end) if end <= self.stride && self.part.datatype.size > 0 => Ok(()),
            _ => Err(self.unsupported("a field lies outside its compound".into())),
        }
    }

    /// Appends the bytes of the parts of `range`, concatenated.
    fn gather(&self, range: &RowRange, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        let size = self.part.datatype.size;
        // The elements of one chunk are decoded together in any case.
        if self.is_far_between() && !(self.per_row == 1 && self.dataset.is_decoded()) {
            // The caller has checked the number of bytes.
            return self.append_pieces(range.start * size..range.end * size, out, interrupt);
        }
        // Each read requests a part of the range, like a sequential reader.
        let slab = self.dataset.slab_rows(self.stride);
        let rows = slab.unwrap_or_else(|| (SLAB / self.stride.max(1)).max(1));
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min((start / rows + 1).saturating_mul(rows));
            let field = (self.part.offset, size);
            if slab.is_none() || !self.dataset.append_from_slab(field, &(start..end), self.facts.len, out, interrupt) {
                self.gather_rows(&(start..end), out, interrupt)?;
            }
            start = end;
        }
        // All gathered bytes must stem from one state of the file.
        self.dataset.file().check()
    }

    /// Gathers the parts of a few rows from the rows themselves.
    fn gather_rows(&self, range: &RowRange, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        let (offset, stride, size) =
            (self.part.offset as usize, self.stride as usize, self.part.datatype.size as usize);
        let bytes = range.start * self.stride..range.end * self.stride;
        // The rows of a tile are whole: longer ones are decoded, or far apart.
        let tile = self.tile().0 * self.stride;
        self.dataset.for_each_piece(bytes, tile, interrupt, &mut |rows| append(rows, offset, stride, size, out))
    }

    /// Whether reading each part by itself beats reading it with its surroundings.
    fn is_far_between(&self) -> bool {
        self.stride > TILE || self.part.datatype.size > LONG
    }

    /// Appends these bytes of the concatenated parts; reads each part by itself, and no more of it than requested.
    fn append_pieces(
        &self,
        bytes: std::ops::Range<u64>,
        out: &mut Vec<u8>,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        let (size, mut at) = (self.part.datatype.size, bytes.start);
        while at < bytes.end {
            interrupt.check()?;
            let (row, within) = (at / size, at % size);
            let (count, start) = ((size - within).min(bytes.end - at), row * self.stride + self.part.offset + within);
            self.dataset.for_each_piece(start..start + count, SLAB, interrupt, &mut |piece| {
                out.extend_from_slice(piece);
            })?;
            at += count;
        }
        Ok(())
    }

    fn decoded(
        &self,
        first: u64,
        bytes: Buffer,
        count: usize,
        heap: &dyn VariableParts,
        oddities: &mut Oddities,
    ) -> Result<ArrayRef, Error> {
        self.missing
            .decode(&self.part.datatype, bytes, count, heap, oddities)
            .map_err(|error| error.cause.at(self.dataset.path(), first.saturating_add(error.row)))
    }

    /// Rows whose parts contain descriptors or references: decoded tile by tile, since each tile has its own heap.
    fn looked_up(&self, range: &RowRange, interrupt: &Interrupt) -> Result<(ArrayRef, Oddities), Error> {
        let (mut arrays, mut oddities, mut taken) = (Vec::new(), Oddities::new(), 0u64);
        let weigher = Weigher::new(&self.part.datatype, self.dataset.file().source().identity().size);
        self.tiles(range, |rows, elements, offset, stride| {
            interrupt.check()?;
            let batch = self.dataset.read_elements(elements, interrupt)?;
            let mut part = Vec::new();
            append(&batch.bytes, offset, stride, self.part.datatype.size as usize, &mut part);
            // As in `DatasetRows::array`.
            let most = self.dataset.file().store().max_value().saturating_sub(taken);
            taken = taken.saturating_add(weigher.weight_of_all(&part, self.part.datatype.size, most, &batch.heap));
            self.admit(range, taken)?;
            let mut odd = Oddities::new();
            let count = (rows.end - rows.start) as usize;
            arrays.push(self.decoded(rows.start, part.into(), count, &batch.heap, &mut odd)?);
            oddities.extend(odd.iter().map(|(oddity, row)| (oddity, row + rows.start - range.start)));
            Ok(())
        })?;
        let arrays: Vec<&dyn arrow_array::Array> = arrays.iter().map(AsRef::as_ref).collect();
        let array = match arrays.as_slice() {
            [] => decode(&self.part.datatype, Buffer::default(), 0, &HeapBytes(&[]), &mut Oddities::new())
                .map_err(|error| self.unsupported(error.to_string()))?,
            arrays => concat(arrays).map_err(|error| self.unsupported(error.to_string()))?,
        };
        Ok((array, oddities))
    }
}

/// Appends the part of each row in `bytes`.
fn append(bytes: &[u8], offset: usize, stride: usize, size: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + bytes.len() / stride.max(1) * size, 0);
    gather(bytes, offset, stride, size, &mut out[start..]);
}

impl Rows for FieldRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let count = count_of(&range, self.facts.len, self.dataset.path())?;
        self.check_place()?;
        let width = self.part.datatype.size.max(fixed_width(&self.facts.data_type));
        self.admit(&range, (count as u64).saturating_mul(width))?;
        let bytes = count * self.part.datatype.size as usize;
        let (array, oddities) = if self.leads_elsewhere() {
            self.looked_up(&range, interrupt)?
        } else {
            let mut part = Vec::with_capacity(bytes);
            self.gather(&range, &mut part, interrupt)?;
            let mut oddities = Oddities::new();
            let part = MutableBuffer::from(part).into();
            (self.decoded(range.start, part, count, &HeapBytes(&[]), &mut oddities)?, oddities)
        };
        self.tally.add(range, &oddities);
        Ok(array)
    }

    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        let weigher = Weigher::new(&self.part.datatype, self.dataset.file().source().identity().size);
        if let Some(width) = weigher.fixed() {
            return Ok(Fitting::fixed(&range, width, bytes));
        }
        let mut fitter = Fitter::new(range.start, bytes);
        let mut full = false;
        while fitter.fitting().end < range.end && !full {
            interrupt.check()?;
            let start = fitter.fitting().end;
            let tile = start..start.saturating_add(self.tile().0).min(range.end);
            self.tiles(&tile, |_, elements, offset, stride| {
                let batch = self.dataset.read_elements(elements, interrupt)?;
                let mut part = Vec::new();
                let size = self.part.datatype.size as usize;
                append(&batch.bytes, offset, stride, size, &mut part);
                let mut cells = part.chunks_exact(size.max(1));
                full = !cells.all(|cell| fitter.add(1, weigher.weight(cell, fitter.left(), &batch.heap)));
                Ok(())
            })?;
        }
        Ok(fitter.fitting())
    }

    fn shared(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<SharedRows>, Error> {
        let count = count_of(&range, self.facts.len, self.dataset.path())? as u64;
        self.check_place()?;
        let RowPart { datatype, .. } = &self.part;
        // Elements read by a worker lead into the heap of their own chunk.
        let is_long = count.saturating_mul(datatype.size) > ARRAY_BYTES;
        if !datatype.is_variable() || is_long || self.dataset.through_worker() {
            return Ok(None);
        }
        let mut stored = Vec::new();
        self.gather(&range, &mut stored, interrupt)?;
        let heap = self.dataset.heap_as_stored(interrupt);
        let Some((distinct, keys)) = distinct(&self.dataset, datatype, &stored, &heap) else { return Ok(None) };
        let count = distinct.len() / datatype.size as usize;
        let mut oddities = Oddities::new();
        let values = self.decoded(range.start, distinct, count, &heap, &mut oddities)?;
        self.tally.add(range, &oddities.of_shared(&keys));
        Ok(Some(SharedRows { values, keys }))
    }

    fn outline(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        let count = count_of(&range, self.facts.len, self.dataset.path())?;
        let datatype = &self.part.datatype;
        if matches!(datatype.class, Class::Sequence { .. }) && self.missing.finds_rows() {
            return Ok(None);
        }
        let mut part = Vec::new();
        if datatype.is_variable() {
            self.admit(&range, (count as u64).saturating_mul(datatype.size))?;
            self.gather(&range, &mut part, interrupt)?;
        }
        Ok(self.dataset.outline_in(datatype, &part, count))
    }

    fn bytes(&self) -> Option<&dyn StoredBytes> {
        Some(self)
    }

    fn coded(&self) -> Option<&dyn Coded> {
        Some(self)
    }
}

impl StoredBytes for FieldRows {
    fn append(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        self.check_place()?;
        let (size, start) = (self.part.datatype.size, out.len());
        let end = offset.checked_add(length as u64).map(|end| end.div_ceil(size)).filter(|end| *end <= self.facts.len);
        let end = end.ok_or_else(|| self.unsupported(format!("{length} bytes from {offset} on pass the end")))?;
        // Whole parts; the first and the last may be requested in pieces.
        let (before, result) = if self.is_far_between() {
            (0, self.append_pieces(offset..offset + length as u64, out, interrupt))
        } else {
            ((offset % size) as usize, self.gather(&(offset / size..end), out, interrupt))
        };
        if result.is_err() {
            out.truncate(start);
        } else {
            out.drain(start..start + before);
            out.truncate(start + length);
        }
        result
    }
}

impl Coded for FieldRows {
    fn place(&self) -> Option<StridedField<'_>> {
        let is_plain = !self.leads_elsewhere() && self.check_place().is_ok();
        let RowPart { datatype, offset } = &self.part;
        is_plain.then_some(StridedField {
            dataset: &self.dataset,
            stride: self.stride,
            offset: *offset,
            width: datatype.size,
        })
    }

    fn array_of(&self, bytes: Buffer) -> Option<ArrayRef> {
        self.place()?;
        let mut oddities = Oddities::new();
        let count = bytes.len() / usize::try_from(self.part.datatype.size).ok()?;
        let array = self.decoded(0, bytes, count, &HeapBytes(&[]), &mut oddities).ok()?;
        // Oddities are counted per row, so they rule this out.
        oddities.is_empty().then_some(array)
    }

    fn values(&self, bytes: Buffer) -> Option<ArrayRef> {
        if self.leads_elsewhere() { None } else { self.elements().stored_values(bytes) }
    }

    fn summary_of(&self, values: &dyn Array, _: &Interrupt) -> Option<Summary> {
        self.elements().summary_of(values)
    }

    fn sound_summary_of(&self, values: &dyn Array, _: &Interrupt) -> Option<Summary> {
        self.elements().sound_summary_of(values)
    }
}
