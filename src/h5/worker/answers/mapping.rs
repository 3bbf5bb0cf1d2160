//! The mappings of a virtual dataset, if they are runs of elements, or chunks, of datasets in the same file.
//!
//! It refuses all other kinds (strides, points, unlimited selections, numbered names, other files): for those, the
//! daemon reads the elements through libhdf5.

use std::time::{Duration, Instant};

use bstr::BString;

use super::dataset::{layout, names};
use crate::catalogue::{Layout, MappedSource, Mapping, ObjectId, product};
use crate::codec::structure::mapped::VirtualDataset;
use crate::codec::structure::{Area, ElementSelection};
use crate::h5::library::{FailureReason, Id, check, ffi};
use crate::h5::protocol::{MAX_SOURCE_PATHS, MAX_SOURCES, PAGE, WorkerAnswer, WorkerRefusal};
use crate::h5::worker::address::address_of;
use crate::h5::worker::kept::{MappedDataset, MappedDatasets, MappingWalk, VirtualMappings};
use crate::h5::worker::session::WorkerSession;
use crate::h5::worker::values::Dataspace;

/// Most mappings that are read. (If libhdf5 must be asked, each takes ten microseconds and some 10 KiB of memory: the
/// memory limit of a worker stops it earlier.)
const MAX_MAPPINGS: usize = 1 << 20;

/// Longest encoding of a mapping: three numbers of 10 bytes and one of 5.
const MAX_MAPPING: usize = 35;

/// Longest time for a page, so that the deadline catches hangs and not large datasets.
const PAGE_TIME: Duration = Duration::from_secs(2);

impl WorkerSession {
    /// Answers with a page of the mappings of a virtual dataset.
    pub fn mappings(&mut self, id: ObjectId, start: u64, by_chunk: bool) -> Result<WorkerAnswer, WorkerRefusal> {
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        let began = Instant::now();
        let mut walk = match self.mapping_walk.take() {
            Some(walk) if (walk.id, walk.by_chunk, walk.next) == (id, by_chunk, start) => walk,
            _ => self.begin_walk(id, by_chunk)?,
        };
        // A worker started between two pages repeats the earlier pages.
        while walk.next < start.min(walk.count) {
            self.next_mapping(&mut walk)?;
        }
        let known = walk.sources.met.len();
        let mut runs: Vec<Mapping> = Vec::new();
        while walk.next < walk.count && runs.len() < PAGE / MAX_MAPPING && began.elapsed() < PAGE_TIME {
            let run = self.next_mapping(&mut walk)?;
            if !runs.last_mut().is_some_and(|last| last.join(&run)) {
                runs.push(run);
            }
        }
        let sources = walk.sources.met.iter().skip(known).map(|source| source.mapped.clone()).collect();
        let next = (walk.next < walk.count).then_some(walk.next as u64);
        if next.is_some() {
            self.mapping_walk = Some(walk);
        }
        Ok(WorkerAnswer::Mappings { sources, runs, next })
    }

    fn begin_walk(&mut self, id: ObjectId, by_chunk: bool) -> Result<MappingWalk, FailureReason> {
        let (mappings, shape, count) = match self.stored_virtual(id) {
            Some(VirtualDataset { mappings, shape, .. }) => {
                let count = mappings.len();
                (VirtualMappings::Stored(mappings), shape, count)
            }
            None => self.listed_mappings(id)?,
        };
        if count > MAX_MAPPINGS {
            return Err(FailureReason::new(format!("{count} mappings, more than {MAX_MAPPINGS}")));
        }
        Ok(MappingWalk { id, by_chunk, mappings, shape, count, next: 0, sources: MappedDatasets::default() })
    }

    /// The mappings of a virtual dataset in libhdf5, its shape, and their number.
    fn listed_mappings(&mut self, id: ObjectId) -> Result<(VirtualMappings, Vec<u64>, usize), FailureReason> {
        let dataset = self.open_dataset(id)?;
        // SAFETY: an open dataset.
        let (space, dcpl) =
            unsafe { (Id::own(ffi::H5Dget_space(dataset.raw()))?, Id::own(ffi::H5Dget_create_plist(dataset.raw()))?) };
        let mut count = 0;
        // SAFETY: an open property list; a place for the answer.
        check(unsafe { ffi::H5Pget_virtual_count(dcpl.raw(), &mut count) })?;
        Ok((VirtualMappings::Listed(dcpl), Dataspace::of(&space)?.shape, count))
    }

    fn next_mapping(&mut self, walk: &mut MappingWalk) -> Result<Mapping, WorkerRefusal> {
        let index = walk.next;
        walk.next += 1;
        let (file, path, to, from) = match &walk.mappings {
            VirtualMappings::Stored(list) => {
                let stored =
                    list.get(index).ok_or_else(|| FailureReason::new(format!("mapping {index} is missing")))?;
                (stored.file.into(), stored.dataset.into(), Some(stored.to), Some(stored.from))
            }
            VirtualMappings::Listed(dcpl) => {
                let (file, path) = names(dcpl, index)?;
                // SAFETY: an open property list (so below).
                let to = Id::own(unsafe { ffi::H5Pget_virtual_vspace(dcpl.raw(), index) })?;
                // SAFETY: as above.
                let from = Id::own(unsafe { ffi::H5Pget_virtual_srcspace(dcpl.raw(), index) })?;
                (file, path, selected(&to)?, selected(&from)?)
            }
        };
        if !self.is_own(walk.id.file, &file) {
            return Err(FailureReason::new(format!("mapping {index} leads to another file")).into());
        }
        let source = self.mapped_source(walk, path)?;
        let known = walk.sources.met.get(source as usize).ok_or_else(|| FailureReason::new("a source is not known"))?;
        let boxes = to.and_then(|to| to.within(&walk.shape)).zip(from.and_then(|from| from.within(&known.shape)));
        let refused = |what: &str| FailureReason::new(format!("mapping {index} is not of {what}"));
        let (to, from) = boxes.ok_or_else(|| refused("one box of elements to another"))?;
        if let Some((start, extent)) = from.start.iter().zip(&known.shape).find(|(start, extent)| start >= extent) {
            let what = format!("mapping {index} leads to element {start} of a source with {extent}");
            return Err(WorkerRefusal::Beyond(what));
        }
        if walk.by_chunk {
            let (at, len, first) =
                chunks(&walk.shape, known, &to, &from).ok_or_else(|| refused("whole chunks to places of chunks"))?;
            return Ok(Mapping { at, len, source, first });
        }
        match (line(&walk.shape, &to.start, &to.count), line(&known.shape, &from.start, &from.count)) {
            (Some((at, len)), Some((first, of))) if len == of => Ok(Mapping { at, len, source, first }),
            _ => Err(refused("one run of elements to another").into()),
        }
    }

    /// The number of the source at `path`.
    fn mapped_source(&mut self, walk: &mut MappingWalk, path: BString) -> Result<u32, FailureReason> {
        if let Some(known) = walk.sources.by_path.get(&path) {
            return Ok(*known);
        }
        // Unlimited mappings number blocks with %b; in any mapping, %% is a percent sign.
        if path.contains(&b'%') {
            return Err(FailureReason::new("a source with % in its path"));
        }
        walk.sources.path_bytes += path.len();
        if walk.sources.met.len() >= MAX_SOURCES || walk.sources.path_bytes > MAX_SOURCE_PATHS {
            return Err(FailureReason::new(format!(
                "more than {MAX_SOURCES} sources, or {MAX_SOURCE_PATHS} bytes of their paths"
            )));
        }
        let file = self.file(walk.id.file)?;
        let root = ObjectId { file: walk.id.file, address: address_of(file.id.raw(), file.address_size)? };
        let id = self.resolve(root, &path, &mut 0)?;
        let dataset = self.open_dataset(id)?;
        // SAFETY: an open dataset.
        let (space, dcpl) =
            unsafe { (Id::own(ffi::H5Dget_space(dataset.raw()))?, Id::own(ffi::H5Dget_create_plist(dataset.raw()))?) };
        let extent = Dataspace::of(&space)?;
        let chunk = match layout(&dataset, &dcpl, &extent, 0)? {
            Layout::Chunked { chunk, .. } => chunk,
            _ => Vec::new(),
        };
        let number = walk.sources.met.len() as u32;
        walk.sources.met.push(MappedDataset {
            mapped: MappedSource { path: path.clone(), id },
            shape: extent.shape,
            chunk,
        });
        walk.sources.by_path.insert(path, number);
        Ok(number)
    }
}

impl ElementSelection {
    /// The selected box of a dataset of `shape`; `None`: the selection has another rank.
    fn within(self, shape: &[u64]) -> Option<Area> {
        match self {
            Self::All => Some(Area { start: vec![0; shape.len()], count: shape.to_vec() }),
            Self::Box(area) => (area.start.len() == shape.len()).then_some(area),
        }
    }
}

/// The selection of a dataspace; `None`: neither everything nor one box.
fn selected(space: &Id) -> Result<Option<ElementSelection>, FailureReason> {
    // SAFETY: an open dataspace (so below).
    match unsafe { ffi::H5Sget_select_type(space.raw()) } {
        ffi::SELECTION_ALL => Ok(Some(ElementSelection::All)),
        ffi::SELECTION_HYPERSLABS => {
            // SAFETY: as above.
            let (rank, regular) = unsafe {
                (
                    check(ffi::H5Sget_simple_extent_ndims(space.raw()))? as usize,
                    check(ffi::H5Sis_regular_hyperslab(space.raw()))? > 0,
                )
            };
            if !regular {
                return Ok(None);
            }
            let [mut start, mut stride, mut count, mut block] = [(); 4].map(|()| vec![0u64; rank]);
            // SAFETY: as above; a number for each dimension in every array.
            check(unsafe {
                ffi::H5Sget_regular_hyperslab(
                    space.raw(),
                    start.as_mut_ptr(),
                    stride.as_mut_ptr(),
                    count.as_mut_ptr(),
                    block.as_mut_ptr(),
                )
            })?;
            let blocks = count.iter().zip(&block).zip(&stride);
            // Adjacent blocks are one. (An unlimited count or block exceeds every extent.)
            let extent: Option<Vec<u64>> = blocks
                .map(|((count, block), stride)| match count {
                    1 => Some(*block),
                    _ if stride == block => count.checked_mul(*block),
                    _ => None,
                })
                .collect();
            Ok(extent.map(|count| ElementSelection::Box(Area { start, count })))
        }
        _ => Ok(None),
    }
}

/// The chunk of a virtual dataset of `shape` at `to`, the number of chunks in a row from there, and the first chunk of
/// `source` at `from`. `None` unless both are chunks (cut off at most by the extent) and the source has one chunk a
/// row.
fn chunks(shape: &[u64], source: &MappedDataset, to: &Area, from: &Area) -> Option<(u64, u64, u64)> {
    let chunk = source.chunk.as_slice();
    let ([height, widths @ ..], [first, before @ ..]) = (chunk, from.start.as_slice()) else { return None };
    let has_one_a_row = source.shape.get(1..)? == widths && before.iter().all(|start| *start == 0);
    let is_there = first.checked_add(*from.count.first()?)? <= *source.shape.first()?;
    if to.count != from.count || shape.len() != chunk.len() || !has_one_a_row || !is_there || first % height != 0 {
        return None;
    }
    let (mut at, mut are_rows) = (0u64, true);
    for (dim, (extent, chunk)) in shape.iter().zip(chunk).enumerate() {
        let (start, count) = (*to.start.get(dim)?, *to.count.get(dim)?);
        let left = extent.checked_sub(start)?;
        // Along the first dimension there may be several chunks, the last of which may be cut off.
        let is_cut = count == left.min(*chunk);
        let is_whole = is_cut || dim == 0 && (count == left || count < left && count % chunk == 0);
        if count == 0 || start % chunk != 0 || !is_whole {
            return None;
        }
        are_rows &= dim == 0 || extent.div_ceil(*chunk) == 1;
        at = at.checked_mul(extent.div_ceil(*chunk))?.checked_add(start / chunk)?;
    }
    let len = to.count.first()?.div_ceil(*height);
    (len == 1 || are_rows).then_some((at, len, first / height))
}

/// First element and number of elements of a box in an array of `shape`, if they are consecutive in row-major order;
/// `None`: they are not, the box is empty, or it exceeds the array.
fn line(shape: &[u64], start: &[u64], count: &[u64]) -> Option<(u64, u64)> {
    let (mut first, mut several) = (0u64, false);
    for ((extent, start), count) in shape.iter().zip(start).zip(count) {
        // After a dimension with several elements, each dimension must be whole.
        let fits = start.checked_add(*count).is_some_and(|end| end <= *extent);
        if *count == 0 || !fits || (several && count != extent) {
            return None;
        }
        several |= *count > 1;
        first = first.checked_mul(*extent)?.checked_add(*start)?;
    }
    Some((first, product(count)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn boxes_of_whole_rows_are_runs() {
        assert_eq!(line(&[100], &[20], &[30]), Some((20, 30)));
        assert_eq!(line(&[10, 3], &[4, 0], &[2, 3]), Some((12, 6)));
        assert_eq!(line(&[10, 3], &[4, 1], &[1, 2]), Some((13, 2)));
        assert_eq!(line(&[10, 3], &[4, 1], &[2, 2]), None);
        assert_eq!(line(&[10, 1, 3], &[4, 0, 0], &[6, 1, 3]), Some((12, 18)));
        assert_eq!(line(&[], &[], &[]), Some((0, 1)));
        assert_eq!(line(&[10], &[5], &[0]), None);
        assert_eq!(line(&[10], &[5], &[6]), None);
        assert_eq!(line(&[10], &[5], &[u64::MAX]), None);
        assert_eq!(line(&[u64::MAX, 2, 2], &[u64::MAX - 1, 0, 0], &[1, 2, 2]), None);
    }

    fn source(shape: &[u64], chunk: &[u64]) -> MappedDataset {
        let mapped = MappedSource { path: "/raw".into(), id: ObjectId { file: 0, address: 96 } };
        MappedDataset { mapped, shape: shape.to_vec(), chunk: chunk.to_vec() }
    }

    #[test]
    fn boxes_of_chunks_are_chunks() {
        let area = |start: &[u64], count: &[u64]| Area { start: start.to_vec(), count: count.to_vec() };
        let line = source(&[40], &[4]);
        let at = |start, count, first| chunks(&[14], &line, &area(&[start], &[count]), &area(&[first], &[count]));
        assert_eq!(at(4, 4, 12), Some((1, 1, 3)));
        assert_eq!(at(12, 2, 0), Some((3, 1, 0)));
        assert_eq!(at(4, 10, 8), Some((1, 3, 2)));
        for broken in [at(4, 3, 12), at(3, 4, 12), at(4, 4, 13), at(12, 4, 0), at(16, 4, 0), at(4, 0, 4), at(4, 10, 32)]
        {
            assert_eq!(broken, None);
        }
        let plane = source(&[8, 2], &[2, 2]);
        let at = |start: &[u64; 2], count: &[u64; 2], first: &[u64; 2]| {
            chunks(&[4, 3], &plane, &area(start, count), &area(first, count))
        };
        assert_eq!(at(&[2, 2], &[2, 1], &[6, 0]), Some((3, 1, 3)));
        assert_eq!(at(&[0, 0], &[2, 2], &[4, 0]), Some((0, 1, 2)));
        for broken in [at(&[2, 2], &[2, 1], &[6, 1]), at(&[2, 1], &[2, 2], &[6, 0]), at(&[0, 0], &[4, 2], &[4, 0])] {
            assert_eq!(broken, None);
        }
        // Chunks side by side are not consecutive in the source.
        assert_eq!(chunks(&[4], &source(&[4], &[]), &area(&[0], &[4]), &area(&[0], &[4])), None);
        assert_eq!(chunks(&[4, 3], &source(&[8, 4], &[2, 2]), &area(&[0, 0], &[2, 2]), &area(&[0, 0], &[2, 2])), None);
    }

    proptest! {
        /// Compared with the numbers of all elements of the box.
        #[test]
        fn a_run_is_one_exactly_where_its_elements_follow_each_other(
            dims in prop::collection::vec((1u64..5, 0u64..5, 1u64..5), 1..4),
        ) {
            let shape: Vec<u64> = dims.iter().map(|dim| dim.0).collect();
            let start: Vec<u64> = dims.iter().map(|dim| dim.1 % dim.0).collect();
            let count: Vec<u64> = dims.iter().zip(&start).map(|(dim, start)| dim.2.min(dim.0 - start)).collect();
            let mut numbers = vec![0u64];
            for ((extent, start), count) in shape.iter().zip(&start).zip(&count) {
                let inner = |outer: u64| (*start..start + count).map(move |i| outer * extent + i);
                numbers = numbers.into_iter().flat_map(inner).collect();
            }
            let follow = numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]);
            prop_assert_eq!(line(&shape, &start, &count), follow.then_some((numbers[0], numbers.len() as u64)));
        }
    }
}
