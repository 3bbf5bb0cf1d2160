//! A dataset as a line of bytes.

mod access;
mod field;
mod mapped;
mod picked;
mod plain;
mod planned;
mod rows;
mod slabs;
mod strings;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::ArrayRef;

use crate::catalogue::{self, Datatype, Elements};
use crate::source::Interrupt;
use crate::store::ahead::PlannedReads;
use crate::store::chunked::{ChunkReader, Chunks, FillElement, FillError};
use crate::store::decode::outline::{has_outline, outline};
use crate::store::heap::{ElementBatch, Heap, HeapPiece, IN_MEMORY, Move, Pieces, leads_on, length_of, relocate};
use crate::store::rows::RowsContainer;
use crate::store::{Alike, Error, File, Lent, Span, StoredRun};

use access::ElementAccess;
pub use access::Reach;
pub use field::{FieldRows, RowPart};
use mapped::{MappedRuns, VirtualReader};
pub use picked::StridedField;
#[cfg(test)]
pub(crate) use plain::PlainElements;
pub use rows::DatasetRows;
pub(crate) use rows::count_of;
pub use strings::StoredStrings;

/// Most bytes per read of a source, so that interrupts are checked in between.
const READ: usize = 16 << 20;

/// The elements of a dataset as stored, in row-major order, whatever its rank and layout.
#[derive(Debug)]
pub struct StoredDataset {
    file: Arc<File>,
    path: String,
    description: Arc<catalogue::Dataset>,
    len: u64,
    bytes: u64,
    fill: Arc<Result<FillElement, FillError>>,
    access: ElementAccess,
    fields: slabs::Fields,
    /// Reads of contiguous elements that are planned, in units of [`planned::UNIT`] bytes.
    planned: PlannedReads,
}

/// An [`ElementAccess`], with the composition of a virtual dataset resolved.
enum Route<'a> {
    Unwritten,
    Run(u64),
    Chunks(&'a Arc<Chunks>),
    Mapped(MappedRuns<'a>),
}

/// It counts as decoded if its bytes come from filters or from the HDF5 worker.
impl RowsContainer for StoredDataset {
    fn is_decoded(&self) -> bool {
        match &self.access {
            ElementAccess::Chunks(chunks) => chunks.is_decoded(),
            ElementAccess::Virtual(access) => access.is_decoded(),
            ElementAccess::Unwritten | ElementAccess::Run(_) => false,
        }
    }

    fn examine(&self, interrupt: &Interrupt) -> Result<(), Error> {
        match &self.access {
            ElementAccess::Chunks(chunks) => chunks.map(interrupt).map(drop),
            ElementAccess::Virtual(_) => match self.route(interrupt)? {
                Route::Chunks(chunks) => chunks.map(interrupt).map(drop),
                _ => Ok(()),
            },
            ElementAccess::Unwritten | ElementAccess::Run(_) => Ok(()),
        }
    }
}

impl StoredDataset {
    /// The dataset `description` at `path` (which errors mention). Reads nothing.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if sizes overflow, or if storage is external and not followed.
    pub fn new(file: Arc<File>, path: String, description: Arc<catalogue::Dataset>) -> Result<Self, Error> {
        let size = description.datatype.size;
        let len = description.len().ok_or_else(|| Error::unsupported(&path, "more than 2^64 elements"))?;
        let bytes = len.checked_mul(size).filter(|bytes| *bytes <= i64::MAX as u64);
        let bytes = bytes
            .ok_or_else(|| Error::unsupported(&path, format!("{len} elements of {size} bytes pass 2^63 bytes")))?;
        if size == 0 {
            return Err(Error::unsupported(&path, "elements of 0 bytes"));
        }
        let fill = FillElement::of(&description, file.info().address_size);
        let access =
            if len == 0 { ElementAccess::Unwritten } else { ElementAccess::new(&file, &path, &description, &fill)? };
        let (fields, planned) = Default::default();
        Ok(Self { file, path, description, len, bytes, fill, access, fields, planned })
    }

    /// The file it is in.
    pub fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// The path, as given.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The catalogue's description.
    pub fn description(&self) -> &Arc<catalogue::Dataset> {
        &self.description
    }

    /// Number of elements.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of one element as stored; a variable-length part counts as its descriptor.
    pub fn element_size(&self) -> u64 {
        self.description.datatype.size
    }

    /// Bytes of all elements.
    pub fn byte_len(&self) -> u64 {
        self.bytes
    }

    /// Extent of a chunk along the first dimension (for a column, in rows): the natural grain of reading. `None`:
    /// elements are contiguous.
    pub fn natural_rows(&self) -> Option<u64> {
        match &self.access {
            ElementAccess::Chunks(chunks) => chunks.grid.first_extent(),
            // The chunks of its sources are not known before the first read, nor aligned with its rows.
            ElementAccess::Virtual(access) => access.worker.grid.first_extent(),
            ElementAccess::Unwritten | ElementAccess::Run(_) => None,
        }
    }

    /// Bytes of a chunk, if each chunk is one run of elements.
    pub fn run_bytes(&self) -> Option<u64> {
        self.chunks()?.grid.run_bytes()
    }

    /// Whether elements come from the HDF5 worker: slowly, one read at a time. Unknown for a virtual dataset before the
    /// first read.
    pub fn through_worker(&self) -> bool {
        match &self.access {
            ElementAccess::Chunks(chunks) => matches!(chunks.reader, ChunkReader::Worker { .. }),
            ElementAccess::Virtual(access) => access.is_through_worker(),
            ElementAccess::Unwritten | ElementAccess::Run(_) => false,
        }
    }

    /// The chunks that hold its elements. `None`: they lie in one run, in the sources of a virtual dataset, or nowhere.
    fn chunks(&self) -> Option<&Arc<Chunks>> {
        if let ElementAccess::Chunks(chunks) = &self.access { Some(chunks) } else { None }
    }

    fn route(&self, interrupt: &Interrupt) -> Result<Route<'_>, Error> {
        Ok(match &self.access {
            ElementAccess::Unwritten => Route::Unwritten,
            ElementAccess::Run(address) => Route::Run(*address),
            ElementAccess::Chunks(chunks) => Route::Chunks(chunks),
            ElementAccess::Virtual(access) => match access.follow(&self.description, &self.fill, interrupt)? {
                VirtualReader::Mapped(mapped) => Route::Mapped(mapped),
                VirtualReader::Chunks(chunks) => Route::Chunks(chunks),
            },
        })
    }

    /// Fills `out` from byte `offset` on, counted over all elements, in the type and byte order of the file.
    ///
    /// Variable-length parts are descriptors; without [`StoredDataset::read_elements`], only their length (the first 4
    /// bytes, little-endian) is meaningful.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::Unsupported`] for bytes past the end.
    pub fn read_bytes(&self, offset: u64, out: &mut [u8], interrupt: &Interrupt) -> Result<(), Error> {
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > self.bytes) {
            return Err(self.past_the_end(offset, out.len() as u64, "byte", self.bytes));
        }
        if out.is_empty() {
            return Ok(());
        }
        let result = self.read_unchecked(offset, out, interrupt);
        // Bytes cached earlier and bytes read now must stem from one state of the file.
        self.file.check()?;
        result
    }

    /// Appends `length` bytes from byte `offset` on to `out`, for readers that pass once, as the kernel does to fill
    /// its page cache: releases decoded chunks behind a sequential reader.
    ///
    /// # Errors
    /// As [`StoredDataset::read_bytes`]; `out` is then unchanged.
    pub fn append_once(
        &self,
        offset: u64,
        length: usize,
        out: &mut Vec<u8>,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        if offset.checked_add(length as u64).is_none_or(|end| end > self.bytes) {
            return Err(self.past_the_end(offset, length as u64, "byte", self.bytes));
        }
        if length == 0 {
            return Ok(());
        }
        let start = out.len();
        let result = match self.route(interrupt)? {
            // In other grids, chunks that were read may also contain bytes to come.
            Route::Chunks(chunks) if chunks.grid.is_line() => {
                let result = chunks.append(offset, length, out, interrupt);
                chunks.release_behind(offset.saturating_add(length as u64));
                self.file.check().and(result)
            }
            Route::Run(address) => {
                let result = self.append_run(address, offset, length, out, interrupt);
                self.file.check().and(result)
            }
            Route::Mapped(mapped) => {
                let result = mapped.append(offset, length, out, self.fill()?, interrupt);
                self.file.check().and(result)
            }
            _ => {
                out.resize(start.saturating_add(length), 0);
                self.read_bytes(offset, &mut out[start..], interrupt)
            }
        };
        if result.is_err() {
            out.truncate(start);
        }
        result
    }

    fn append_run(
        &self,
        address: u64,
        offset: u64,
        length: usize,
        out: &mut Vec<u8>,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        let (mut at, mut left) = (self.planned_at(address, offset, length as u64)?, length);
        while left > 0 {
            interrupt.check()?;
            let count = left.min(READ);
            self.file.opening().append_at(at, count, out, interrupt)?;
            at = at.saturating_add(count as u64);
            left -= count;
        }
        Ok(())
    }

    /// Calls `take` with `bytes` of the elements, piece by piece: decoded chunks in place, without a copy, and other
    /// bytes in reads of at most `most`. Pieces end at element boundaries if `bytes` and `most` do.
    ///
    /// # Errors
    /// As [`StoredDataset::read_bytes`].
    fn for_each_piece(
        &self,
        bytes: Range<u64>,
        most: u64,
        interrupt: &Interrupt,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Error> {
        let mut read = Vec::new();
        if let Route::Chunks(chunks) = self.route(interrupt)?
            && chunks.grid.is_line()
        {
            if bytes.end > self.bytes {
                return Err(self.past_the_end(bytes.start, bytes.end.saturating_sub(bytes.start), "byte", self.bytes));
            }
            let end = bytes.end;
            let result = chunks.pieces(bytes, most, &mut read, interrupt, &mut |decoded, read| {
                take(decoded.unwrap_or(read));
                read.clear();
            });
            chunks.release_behind_fields(end);
            return self.file.check().and(result);
        }
        let mut at = bytes.start;
        while at < bytes.end {
            interrupt.check()?;
            let count = most.max(1).min(bytes.end - at);
            // At most `most`, a tile in memory.
            read.resize(count as usize, 0);
            self.read_bytes(at, &mut read, interrupt)?;
            take(&read);
            at += count;
        }
        Ok(())
    }

    /// Borrows the bytes `offset..offset + length` without a copy, if they are contiguous, decoded or in the file;
    /// `None`: they are not, or exceed the end. Otherwise as [`StoredDataset::append_once`].
    ///
    /// # Errors
    /// As [`StoredDataset::read_bytes`].
    pub fn lend(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Option<Lent>, Error> {
        let Some(end) = offset.checked_add(length as u64).filter(|end| *end <= self.bytes) else { return Ok(None) };
        let lent = match self.route(interrupt)? {
            Route::Run(address) => {
                self.file.opening().lend(self.planned_at(address, offset, length as u64)?, length, interrupt)
            }
            Route::Mapped(mapped) => return mapped.lend(offset, length, interrupt),
            Route::Chunks(chunks) if chunks.grid.is_line() => {
                let lent = chunks.lend(offset, length, interrupt);
                // Without a loan the caller reads the bytes next, so the reader has not passed them yet.
                if let Ok(Some(_)) = &lent {
                    chunks.release_behind(end);
                }
                lent
            }
            _ => return Ok(None),
        };
        self.file.check().and(lent)
    }

    /// Locates up to `length` bytes from `offset` on. Otherwise as [`StoredDataset::append_once`].
    ///
    /// # Errors
    /// As [`StoredDataset::read_bytes`].
    pub fn span(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Span, Error> {
        if offset.checked_add(length as u64).is_none_or(|end| end > self.bytes) {
            return Ok(Span::Made(length));
        }
        let span = match self.route(interrupt)? {
            Route::Run(address) => {
                let at = self.planned_at(address, offset, length as u64)?;
                StoredRun::span(self.file.opening(), at, length)
            }
            Route::Mapped(mapped) => return mapped.span(offset, length, interrupt),
            Route::Chunks(chunks) if chunks.grid.is_line() => {
                let span = chunks.span(offset, length, interrupt)?;
                // As in `lend`.
                if let Span::Lent(lent) = &span {
                    chunks.release_behind(offset.saturating_add(lent.len() as u64));
                }
                span
            }
            _ => return Ok(Span::Made(length)),
        };
        // Bytes read later, under a lease or not, are checked then.
        if let Span::Lent(_) = &span {
            self.file.check()?;
        }
        Ok(span)
    }

    /// As [`StoredDataset::lend`], for [`StoredBytes::lend`](crate::store::StoredBytes::lend).
    ///
    /// # Errors
    /// As [`StoredDataset::read_bytes`].
    pub fn lend_scanned(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Option<Lent>, Error> {
        if offset.checked_add(length as u64).is_none_or(|end| end > self.bytes) {
            return Ok(None);
        }
        if let Route::Chunks(chunks) = self.route(interrupt)? {
            let lent = chunks.lend_scanned(offset, length, interrupt);
            self.file.check()?;
            if let Some(lent) = lent? {
                return Ok(Some(lent));
            }
        }
        self.lend(offset, length, interrupt)
    }

    /// The end of the unwritten elements that begin at `element`; `element` if it is written, or nothing is known.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn unwritten_until(&self, element: u64, interrupt: &Interrupt) -> Result<u64, Error> {
        let size = self.element_size().max(1);
        let end = match self.route(interrupt)? {
            Route::Unwritten => self.bytes,
            Route::Chunks(chunks) => {
                let end = chunks.unwritten_until(element.saturating_mul(size).min(self.bytes), interrupt);
                self.file.check()?;
                end?
            }
            Route::Run(_) | Route::Mapped(_) => return Ok(element),
        };
        Ok((end.min(self.bytes) / size).max(element))
    }

    /// Where rows of `per_row` elements are alike: no chunk of them was ever written.
    fn alike(self: &Arc<Self>, per_row: u64) -> Alike {
        let (dataset, per_row) = (self.clone(), per_row.max(1));
        Alike::new(move |row, interrupt| {
            let element = row.saturating_mul(per_row).min(dataset.len());
            Ok(dataset.unwritten_until(element, interrupt)? / per_row)
        })
    }

    /// The outline of `count` rows of `datatype` from byte `offset` on; `None`: the type has none.
    fn outline(
        &self,
        datatype: &Datatype,
        offset: u64,
        count: usize,
        interrupt: &Interrupt,
    ) -> Result<Option<ArrayRef>, Error> {
        let mut bytes = Vec::new();
        if datatype.is_variable() && has_outline(datatype) {
            let length = (count as u64).checked_mul(datatype.size).filter(|bytes| *bytes <= self.bytes);
            let length = length.ok_or_else(|| self.past_the_end(offset, count as u64, "row", self.len))?;
            // At most as long as the elements that the caller wants, 16 bytes or a few more each.
            self.file.store().admit(&self.path, length, || format!("{count} elements"))?;
            bytes.resize(length as usize, 0);
            self.read_bytes(offset, &mut bytes, interrupt)?;
        }
        Ok(self.outline_in(datatype, &bytes, count))
    }

    /// The outline of `count` rows of `datatype`, from their bytes.
    fn outline_in(&self, datatype: &Datatype, bytes: &[u8], count: usize) -> Option<ArrayRef> {
        let (address_size, through_worker) = (usize::from(self.file.info().address_size), self.through_worker());
        outline(datatype, (bytes, 0, datatype.size as usize), count, &|descriptor: &[u8]| {
            length_of(descriptor, address_size, through_worker)
        })
    }

    fn read_unchecked(&self, offset: u64, out: &mut [u8], interrupt: &Interrupt) -> Result<(), Error> {
        match self.route(interrupt)? {
            Route::Unwritten => {
                let phase = (offset % self.element_size()) as usize;
                self.fill()?.write(phase, out);
                Ok(())
            }
            Route::Run(address) => {
                let mut at = self.planned_at(address, offset, out.len() as u64)?;
                for part in out.chunks_mut(READ) {
                    interrupt.check()?;
                    self.file.read_at(at, part, interrupt)?;
                    at = at.saturating_add(part.len() as u64);
                }
                Ok(())
            }
            Route::Chunks(chunks) => {
                let result = chunks.read(offset, out, interrupt);
                // As in `append_once`.
                if chunks.grid.is_line() {
                    chunks.release_far_behind(offset.saturating_add(out.len() as u64));
                }
                result
            }
            Route::Mapped(mapped) => mapped.read(offset, out, self.fill()?, interrupt),
        }
    }

    /// Elements `range`, with the content of their variable-length parts.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::Unsupported`] for elements past the end.
    pub fn read_elements(&self, range: Range<u64>, interrupt: &Interrupt) -> Result<ElementBatch, Error> {
        let count = range.end.checked_sub(range.start).filter(|_| range.end <= self.len);
        let count = count.ok_or_else(|| {
            self.past_the_end(range.start, range.end.saturating_sub(range.start), "element", self.len)
        })?;
        // Cannot overflow: all elements together take less than 2^63 bytes.
        let (offset, length) = (range.start * self.element_size(), count * self.element_size());
        self.file.store().admit(&self.path, length, || format!("{count} elements"))?;
        let mut bytes = vec![0; length as usize];
        let heap = match self.route(interrupt)? {
            Route::Chunks(chunks) if self.through_worker() && self.description.datatype.has_descriptors() => {
                let memory = self.gather_variable(chunks, offset, &mut bytes, interrupt)?;
                self.heap(memory, interrupt)
            }
            _ => {
                self.read_bytes(offset, &mut bytes, interrupt)?;
                self.plan_collections(&bytes);
                self.heap_as_stored(interrupt)
            }
        };
        Ok(ElementBatch { bytes, heap })
    }

    /// The heap for stored descriptors and those of the fill value, unless a worker reads the elements.
    fn heap_as_stored(&self, interrupt: &Interrupt) -> Heap {
        let memory = self.fill.as_ref().as_ref().map(|fill| fill.heap.clone());
        self.heap(memory.unwrap_or_default().into(), interrupt)
    }

    fn heap(&self, memory: Pieces, interrupt: &Interrupt) -> Heap {
        Heap::new(self.file.clone(), self.description.id.file, memory, interrupt.clone())
    }

    /// Variable-length elements that a worker reads: those of each chunk lead into that chunk's own heap.
    fn gather_variable(
        &self,
        chunks: &Arc<Chunks>,
        offset: u64,
        out: &mut [u8],
        interrupt: &Interrupt,
    ) -> Result<Pieces, Error> {
        let outside = || Error::unsupported(&self.path, "a run lies outside the bytes asked for");
        let (mut memory, datatype) = (Pieces::default(), &self.description.datatype);
        let (leads_on, store) = (leads_on(datatype), self.file.store());
        // Position of each chunk's heap: a range may touch a chunk in several boxes.
        let mut begun = HashMap::new();
        chunks.grid.visit(offset, out.len() as u64, |index, runs| {
            interrupt.check()?;
            let block = chunks.worker_block(index, interrupt)?;
            let mut elements = Elements { bytes: Vec::new(), heap: Vec::new() };
            let runs: Vec<_> = runs.collect();
            for run in &runs {
                let part = block.bytes.get(run.chunk as usize..(run.chunk + run.length) as usize);
                elements.bytes.extend_from_slice(part.ok_or_else(outside)?);
            }
            // A thread that waits for memory must hold no buffer, and the next chunk may wait.
            let heap = block.heap.clone();
            drop(block);
            // A heap whose own descriptors are moved is copied for each box.
            let known = begun.get(&index).copied().filter(|_| !leads_on);
            let base = known.unwrap_or(memory.end());
            let (heap, mut moved) = (heap.filter(|_| known.is_none()), None);
            if let Some(heap) = &heap {
                let length = heap.0.len() as u64;
                store.admit(&self.path, base.saturating_add(length), || "what some elements lead to".into())?;
                if leads_on {
                    moved = Some(store.budget().charge(length));
                    elements.heap.clone_from(&heap.0);
                }
            }
            let to = Move { base, index: IN_MEMORY, address_size: self.file.info().address_size };
            relocate(datatype, &mut elements, to).map_err(|reason| Error::unsupported(&self.path, reason))?;
            let mut rest = &elements.bytes[..];
            for run in &runs {
                let target = out.get_mut(run.out as usize..(run.out + run.length) as usize).ok_or_else(outside)?;
                let (part, tail) = rest.split_at_checked(target.len()).ok_or_else(outside)?;
                target.copy_from_slice(part);
                rest = tail;
            }
            begun.insert(index, base);
            if let Some(heap) = moved.map(|held| Arc::new((elements.heap, held))).or(heap) {
                memory.push(HeapPiece::Heap(heap));
            }
            Ok::<_, Error>(())
        })?;
        self.file.check()?;
        Ok(memory)
    }

    pub(super) fn fill_value(&self) -> &Result<FillElement, FillError> {
        &self.fill
    }

    fn fill(&self) -> Result<&FillElement, Error> {
        self.fill.as_ref().as_ref().map_err(|reason| Error::unsupported(&self.path, reason))
    }

    fn past_the_end(&self, first: u64, count: u64, what: &str, len: u64) -> Error {
        Error::unsupported(&self.path, format!("{count} {what}s from {first} on were requested, but there are {len}"))
    }
}
