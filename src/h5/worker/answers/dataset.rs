//! Datasets: extent, fill value, filters, layout and chunk maps.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::Arc;

use bstr::BString;

use super::attribute::OF_ONE;
use super::grid::ListedGrid;
use super::listed::ListedChunks;
use crate::catalogue::{
    Attribute, Chunk, Class, Dataset, DatasetDescription, Elements, Fill, Filter, Layout, ObjectId, PACKED_CHUNK,
    VirtualSource,
};
use crate::codec::structure::mapped::{MappingList, StoredFill};
use crate::h5::library::{FailureReason, Id, check, ffi, text};
use crate::h5::protocol::{PAGE, WorkerAnswer, WorkerRefusal, printable};
use crate::h5::worker::session::WorkerSession;
use crate::h5::worker::values::{Aligned, Dataspace, ElementConversion, HeapOutput, describe, reclaim};

/// Most bytes of a fill value that is described.
const MAX_FILL: usize = 1 << 20;

/// Most mappings of a virtual dataset that are listed (equal neighbours count once).
const MAX_MAPPINGS: usize = 65_536;

/// Most client data values requested of a filter: libhdf5 takes a larger number for an uninitialised variable.
const MAX_PARAMETERS: usize = 256;

/// Most attributes read for each field of a dataset of compounds: pandas writes up to six for a column.
const OF_A_FIELD: usize = 8;

/// Entries of a chunk index allowed beyond twice the number of positions.
const SPARE_ENTRIES: u64 = 64;

/// Longest encoding of a chunk: three numbers of 10 bytes and one of 5.
const MAX_CHUNK: usize = 35;

impl WorkerSession {
    /// Describes an open dataset, with at most `most` attributes, or more if it has many fields.
    pub fn dataset(&mut self, dataset: &Id, id: ObjectId, most: usize) -> Result<Dataset, FailureReason> {
        let file = self.file(id.file)?;
        let (address_size, user_block, file_number) = (file.address_size, file.user_block, file.file_number);
        // SAFETY: an open dataset.
        let (datatype, space) =
            unsafe { (Id::own(ffi::H5Dget_type(dataset.raw()))?, Id::own(ffi::H5Dget_space(dataset.raw()))?) };
        let (described, plan) = describe(&datatype, address_size)?;
        let extent = Dataspace::of(&space)?;
        // Tables of compounds have attributes for each field.
        let fields = if let Class::Compound { fields } = &described.class { fields.len() } else { 0 };
        let most = most.max(fields.saturating_mul(OF_A_FIELD).min(OF_ONE));
        let attributes: Vec<Attribute> = self.attributes(dataset, id.file, most)?;
        let stored =
            self.stored_virtual(id).and_then(|stored| Some((plan.fill_as_stored(stored.fill)?, stored.mappings)));
        let (fill, filters, mut layout) = match stored {
            // A copy of its creation list would copy all its mappings.
            Some((fill, mappings)) => (fill, Vec::new(), Layout::Virtual { sources: stored_sources(&mappings)? }),
            None => {
                // SAFETY: an open dataset.
                let dcpl = Id::own(unsafe { ffi::H5Dget_create_plist(dataset.raw()) })?;
                let fill = fill(&dcpl, &datatype, &plan, HeapOutput::new(MAX_FILL, address_size, file_number));
                (fill, filters(&dcpl)?, layout(dataset, &dcpl, &extent, user_block)?)
            }
        };
        self.recognise_own(&mut layout, id.file);
        let description = DatasetDescription {
            fill,
            filters,
            datatype: described,
            shape: extent.shape,
            max_shape: extent.max_shape,
            null: extent.null,
            attributes: attributes.into(),
        };
        Ok(Dataset { id, layout, description: Arc::new(description) })
    }

    /// Replaces the name of a mapped file with "." if it is the virtual dataset's own file, whatever it is called.
    pub fn recognise_own(&self, layout: &mut Layout, file: u32) {
        let Layout::Virtual { sources } = layout else { return };
        for source in sources.iter_mut().filter(|source| self.is_own(file, &source.file)) {
            source.file = ".".into();
        }
    }

    /// Answers with a page of the chunks of a dataset.
    pub fn chunks(&mut self, id: ObjectId, limit: u64, start: u64) -> Result<WorkerAnswer, WorkerRefusal> {
        let map = match self.chunk_map.take() {
            Some((known, map)) if known == id && start > 0 => map,
            _ => self.read_chunks(id, limit)?,
        };
        if map.len() as u64 > limit {
            return Err(too_many(id, map.len() as u64, limit));
        }
        let from = usize::try_from(start).unwrap_or(usize::MAX).min(map.len());
        let to = map.len().min(from.saturating_add(PAGE / MAX_CHUNK * 3));
        let chunks = map.get(from..to).unwrap_or_default().to_vec();
        let next = (to < map.len()).then_some(to as u64);
        if next.is_some() {
            self.chunk_map = Some((id, map));
        }
        Ok(WorkerAnswer::Chunks { chunks, next })
    }

    fn read_chunks(&mut self, id: ObjectId, limit: u64) -> Result<Vec<Chunk>, WorkerRefusal> {
        let dataset = self.open_dataset(id)?;
        // SAFETY: an open dataset.
        let (space, dcpl) =
            unsafe { (Id::own(ffi::H5Dget_space(dataset.raw()))?, Id::own(ffi::H5Dget_create_plist(dataset.raw()))?) };
        let extent = Dataspace::of(&space)?;
        let Layout::Chunked { chunk, .. } = layout(&dataset, &dcpl, &extent, 0)? else {
            return Err(WorkerRefusal::Hdf5("the dataset is not chunked".into()));
        };
        let grid = ListedGrid::of(&dataset, &extent.shape, &extent.max_shape, &chunk)?;
        let (positions, in_order, beyond_nodes) = (grid.positions(), grid.in_order, grid.beyond_nodes);
        let grows = self.file(id.file)?.swmr;
        // Room for two entries for each position; a longer walk must be going round in circles.
        let most = positions.saturating_mul(2).saturating_add(SPARE_ENTRIES).min(limit.saturating_add(1));
        let mut walk = ChunkWalk { grid, entries: Vec::new(), most };
        // SAFETY: an open dataset; the callback gets `walk` back and is not called afterwards.
        let status = unsafe { ffi::H5Dchunk_iter(dataset.raw(), ffi::DEFAULT, collect, (&raw mut walk).cast()) };
        let (is_endless, failure) = match check(status) {
            Ok(status) => (status > 0, None),
            // The entries listed before the error are good.
            Err(reason) if !walk.entries.is_empty() => (false, Some(WorkerRefusal::from(reason))),
            Err(reason) => return Err(reason.into()),
        };
        if walk.entries.len() as u64 > limit {
            return Err(too_many(id, walk.entries.len() as u64, limit));
        }
        let (entries, ends_early) = (walk.entries, failure.is_some());
        let listed = ListedChunks { entries, positions, in_order, grows, is_endless, ends_early, beyond_nodes };
        let mut chunks = listed.settle().map_err(|reason| failure.unwrap_or(WorkerRefusal::Hdf5(reason)))?;
        if in_order {
            mark_lost(&dataset, &walk.grid, &mut chunks);
        }
        Ok(chunks)
    }
}

/// Marks as unknown those chunks that a tree lists but a search by its keys does not find: libhdf5 reads them as if
/// they had never been written. If there are very many chunks, it looks up some of them, and the last, to which the
/// rightmost keys lead.
fn mark_lost(dataset: &Id, grid: &ListedGrid, chunks: &mut [Chunk]) {
    let (step, last) = (chunks.len() / MOST_LOOKED_UP + 1, chunks.len().saturating_sub(1));
    for (at, chunk) in chunks.iter_mut().enumerate() {
        if chunk.is_unknown() || chunk.size == 0 || at % step > 0 && at < last {
            continue;
        }
        let (offset, mut bytes) = (grid.offset(chunk.index), 0);
        // SAFETY: an open dataset; an offset for each dimension, and a place for the answer.
        let status = unsafe { ffi::H5Dget_chunk_storage_size(dataset.raw(), offset.as_ptr(), &mut bytes) };
        // Some versions report a missing chunk as an error.
        if status < 0 || bytes == 0 {
            *chunk = Chunk::unknown(chunk.index);
        }
    }
}

/// Most chunks of a tree that are looked up: about 50 ms.
const MOST_LOOKED_UP: usize = 1 << 14;

fn too_many(id: ObjectId, count: u64, limit: u64) -> WorkerRefusal {
    WorkerRefusal::TooLarge {
        what: format!("the list of the chunks of the dataset at address {}", id.address),
        bytes: count.saturating_mul(PACKED_CHUNK),
        limit: limit.saturating_mul(PACKED_CHUNK),
    }
}

struct ChunkWalk {
    grid: ListedGrid,
    /// Chunks with their positions; chunks outside the extent have none, and libhdf5 never reads them either.
    entries: Vec<(Option<u64>, Chunk)>,
    most: u64,
}

unsafe extern "C" fn collect(offset: *const u64, mask: c_uint, address: u64, size: u64, data: *mut c_void) -> c_int {
    // SAFETY: `data` is the walk given to H5Dchunk_iter; there is an offset for each dimension.
    let (walk, offset) = unsafe {
        let walk = &mut *data.cast::<ChunkWalk>();
        let rank = walk.grid.rank();
        (walk, std::slice::from_raw_parts(offset, rank))
    };
    if address != ffi::ADDRESS_UNDEFINED {
        walk.entries.push((walk.grid.index(offset), Chunk { index: 0, address, size, mask }));
    }
    // One entry more than the limit shows that the limit is exceeded.
    c_int::from(walk.entries.len() as u64 >= walk.most)
}

impl ElementConversion {
    /// Converts a stored fill value to that of the catalogue; `None`: libhdf5 must convert it, or report an error.
    fn fill_as_stored(&self, fill: StoredFill) -> Option<Fill> {
        match fill {
            StoredFill::Undefined => Some(Fill::Undefined),
            StoredFill::Default => Some(Fill::Default),
            StoredFill::Value(bytes) => {
                let is_told = self.is_copy() && bytes.len() == self.disk;
                (is_told && self.disk <= MAX_FILL).then(|| Fill::Explicit(Elements { bytes, heap: Vec::new() }))
            }
        }
    }
}

fn fill(dcpl: &Id, datatype: &Id, plan: &ElementConversion, heap: HeapOutput) -> Fill {
    match try_fill(dcpl, datatype, plan, heap) {
        Ok(fill) => fill,
        Err(FailureReason(text)) => Fill::Unreadable(text),
    }
}

fn try_fill(dcpl: &Id, datatype: &Id, plan: &ElementConversion, mut heap: HeapOutput) -> Result<Fill, FailureReason> {
    let mut status = -1;
    // SAFETY: an open property list; a place for the answer.
    check(unsafe { ffi::H5Pfill_value_defined(dcpl.raw(), &mut status) })?;
    match status {
        ffi::FILL_UNDEFINED => Ok(Fill::Undefined),
        ffi::FILL_DEFAULT => Ok(Fill::Default),
        ffi::FILL_USER if plan.memory > MAX_FILL || plan.disk > MAX_FILL => {
            Err(FailureReason::new(format!("the fill value of {} bytes is larger than {MAX_FILL}", plan.disk)))
        }
        ffi::FILL_USER => {
            let mut buffer = Aligned::zeroed(plan.memory);
            // SAFETY: `buffer` has room for one element of the type in memory.
            check(unsafe { ffi::H5Pget_fill_value(dcpl.raw(), datatype.raw(), buffer.pointer()) })?;
            let mut elements = Elements { bytes: vec![0; plan.disk], heap: Vec::new() };
            // SAFETY: libhdf5 wrote the buffer by the plan's type.
            let encoded = unsafe { plan.encode_all(buffer.bytes(), &mut elements.bytes, &mut heap) };
            if plan.allocates() {
                reclaim(datatype, 1, &mut buffer)?;
            }
            encoded.map_err(|overflow| {
                FailureReason::new(format!("the fill value of {} bytes is too large", overflow.0))
            })?;
            elements.heap = heap.bytes;
            Ok(Fill::Explicit(elements))
        }
        other => Err(FailureReason::new(format!("a fill value of the unknown status {other}"))),
    }
}

impl FailureReason {
    /// Names the filters that this worker lacks, if a read failed for lack of one.
    pub fn with_missing_filters(self, dataset: &Id) -> Self {
        // SAFETY: an open dataset; a filter's number is any number.
        let dcpl = unsafe { Id::own(ffi::H5Dget_create_plist(dataset.raw())) };
        let filters = dcpl.and_then(|dcpl| filters(&dcpl)).unwrap_or_default();
        // SAFETY: as above.
        let missing = filters.iter().filter(|filter| unsafe { ffi::H5Zfilter_avail(filter.id) } <= 0);
        let missing: Vec<String> = missing.map(|filter| format!("{} ({})", filter.id, filter.name)).collect();
        if missing.is_empty() {
            return self;
        }
        FailureReason::new(format!("no filter {} here, neither built in nor a plugin: {}", missing.join(", "), self.0))
    }
}

fn filters(dcpl: &Id) -> Result<Vec<Filter>, FailureReason> {
    // SAFETY: an open property list (so below).
    let count = check(unsafe { ffi::H5Pget_nfilters(dcpl.raw()) })?;
    (0..count as c_uint)
        .map(|index| {
            let (mut flags, mut config, mut length) = (0, 0, MAX_PARAMETERS);
            let mut parameters = vec![0; MAX_PARAMETERS];
            let mut name = [0u8; 256];
            // SAFETY: all buffers have the sizes given; the last byte of `name` stays a NUL.
            let id = check(unsafe {
                ffi::H5Pget_filter2(
                    dcpl.raw(),
                    index,
                    &mut flags,
                    &mut length,
                    parameters.as_mut_ptr(),
                    name.len() - 1,
                    name.as_mut_ptr().cast(),
                    &mut config,
                )
            })?;
            // Of a longer list, libhdf5 returns the length but not the rest.
            parameters.truncate(length);
            parameters.shrink_to_fit();
            let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
            let name = printable(name.get(..end).unwrap_or_default());
            // SAFETY: a filter's number is any number.
            let available = unsafe { ffi::H5Zfilter_avail(id) } > 0;
            Ok(Filter { id, optional: flags & ffi::FILTER_OPTIONAL != 0, parameters, name, available })
        })
        .collect()
}

pub(super) fn layout(dataset: &Id, dcpl: &Id, extent: &Dataspace, user_block: u64) -> Result<Layout, FailureReason> {
    // SAFETY: open objects (so below).
    match unsafe { ffi::H5Pget_layout(dcpl.raw()) } {
        ffi::LAYOUT_COMPACT => Ok(Layout::Compact),
        ffi::LAYOUT_CONTIGUOUS => {
            let files = external_files(dcpl)?;
            if !files.is_empty() {
                return Ok(Layout::External { files });
            }
            // SAFETY: as above.
            let address = unsafe { ffi::H5Dget_offset(dataset.raw()) };
            // libhdf5 adds the user block even to the undefined address.
            if address.wrapping_sub(user_block) == ffi::ADDRESS_UNDEFINED || address == ffi::ADDRESS_UNDEFINED {
                // Not allocated, or an error: neither has an address.
                let _ = FailureReason::of_library();
                return Ok(Layout::Contiguous { address: None });
            }
            Ok(Layout::Contiguous { address: Some(address) })
        }
        ffi::LAYOUT_CHUNKED => {
            let rank = extent.shape.len();
            let mut chunk = [0u64; ffi::MAX_RANK + 1];
            let mut options = 0;
            // SAFETY: as above; room for one dimension more than the maximum.
            let found = unsafe {
                let found = check(ffi::H5Pget_chunk(dcpl.raw(), chunk.len() as c_int, chunk.as_mut_ptr()))?;
                check(ffi::H5Pget_chunk_opts(dcpl.raw(), &mut options))?;
                found as usize
            };
            let chunk = chunk.get(..found).filter(|_| found == rank).map(<[u64]>::to_vec);
            match chunk {
                Some(chunk) if !chunk.contains(&0) => {
                    Ok(Layout::Chunked { chunk, partial_unfiltered: options & ffi::DONT_FILTER_PARTIAL_CHUNKS != 0 })
                }
                _ => Err(FailureReason::new(format!("chunks of {found} dimensions in a dataset of {rank}"))),
            }
        }
        ffi::LAYOUT_VIRTUAL => Ok(Layout::Virtual { sources: virtual_sources(dcpl)? }),
        other if other < 0 => Err(FailureReason::of_library()),
        other => Ok(Layout::Unknown(other)),
    }
}

fn external_files(dcpl: &Id) -> Result<Vec<BString>, FailureReason> {
    // SAFETY: an open property list (so below).
    let count = check(unsafe { ffi::H5Pget_external_count(dcpl.raw()) })?;
    (0..count as c_uint)
        .map(|index| {
            let mut name = vec![0 as c_char; libc::PATH_MAX as usize + 1];
            let (mut offset, mut size) = (0, 0);
            // SAFETY: `name` is one byte longer than the stated length, so it always ends with a NUL.
            unsafe {
                check(ffi::H5Pget_external(
                    dcpl.raw(),
                    index,
                    name.len() - 1,
                    name.as_mut_ptr(),
                    &mut offset,
                    &mut size,
                ))?;
                Ok(BString::from(CStr::from_ptr(name.as_ptr()).to_bytes()))
            }
        })
        .collect()
}

/// The target file and dataset of a mapping in a creation list.
pub(super) fn names(dcpl: &Id, index: usize) -> Result<(BString, BString), FailureReason> {
    // SAFETY: an open property list (so below); `text` gives a buffer with its size.
    let file = text(|buffer, size| unsafe { ffi::H5Pget_virtual_filename(dcpl.raw(), index, buffer, size) })?;
    // SAFETY: as above.
    let dataset = text(|buffer, size| unsafe { ffi::H5Pget_virtual_dsetname(dcpl.raw(), index, buffer, size) })?;
    Ok((file, dataset))
}

fn virtual_sources(dcpl: &Id) -> Result<Vec<VirtualSource>, FailureReason> {
    let mut count = 0;
    // SAFETY: an open property list.
    check(unsafe { ffi::H5Pget_virtual_count(dcpl.raw(), &mut count) })?;
    distinct((0..count).map(|index| {
        let (file, dataset) = names(dcpl, index)?;
        Ok(VirtualSource { file, dataset })
    }))
}

fn stored_sources(mappings: &MappingList) -> Result<Vec<VirtualSource>, FailureReason> {
    let stored = (0..mappings.len()).filter_map(|index| mappings.get(index));
    distinct(stored.map(|mapping| Ok(VirtualSource { file: mapping.file.into(), dataset: mapping.dataset.into() })))
}

/// The sources of mappings; equal neighbours count once.
fn distinct(
    all: impl Iterator<Item = Result<VirtualSource, FailureReason>>,
) -> Result<Vec<VirtualSource>, FailureReason> {
    let mut sources: Vec<VirtualSource> = Vec::new();
    for source in all {
        let source = source?;
        if sources.last() != Some(&source) {
            if sources.len() >= MAX_MAPPINGS {
                return Err(FailureReason::new(format!("a virtual dataset of more than {MAX_MAPPINGS} sources")));
            }
            sources.push(source);
        }
    }
    Ok(sources)
}
