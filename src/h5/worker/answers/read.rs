//! Elements, read by libhdf5 into the memory shared with the daemon.

use std::ffi::{OsStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::dataset::layout;
use crate::catalogue::{Layout, ObjectId, product};
use crate::h5::library::{Id, check, ffi};
use crate::h5::protocol::{MAX_ELEMENTS, MAX_HEAP, SHARED, WorkerAnswer, WorkerRefusal};
use crate::h5::worker::driver;
use crate::h5::worker::kept::OpenedDataset;
use crate::h5::worker::session::WorkerSession;
use crate::h5::worker::values::{Aligned, Dataspace, HeapOutput, describe, reclaim};

/// Most bytes of elements in memory: a reference takes 64 there and 18 on disk.
const MAX_MEMORY: u64 = 4 * MAX_ELEMENTS;

/// Most chunks in one read by libhdf5.
const MAX_CHUNKS: u64 = 16_384;

impl WorkerSession {
    /// Opens a dataset for reading, unless its elements are in a file that the worker may not read.
    pub fn open_for_reading(&mut self, id: ObjectId) -> Result<OpenedDataset, WorkerRefusal> {
        if let Some(opened) = self.opened.take()
            && opened.id == id
        {
            return Ok(opened);
        }
        let address_size = self.file(id.file)?.address_size;
        driver::take_refused();
        let dataset = self.open_dataset(id)?;
        // SAFETY: an open dataset.
        let (datatype, space) =
            unsafe { (Id::own(ffi::H5Dget_type(dataset.raw()))?, Id::own(ffi::H5Dget_space(dataset.raw()))?) };
        let (_, plan) = describe(&datatype, address_size)?;
        let extent = Dataspace::of(&space)?;
        // SAFETY: an open dataset.
        let dcpl = Id::own(unsafe { ffi::H5Dget_create_plist(dataset.raw()) })?;
        let mut chunks = Vec::new();
        let mut layout = layout(&dataset, &dcpl, &extent, 0)?;
        self.recognise_own(&mut layout, id.file);
        match layout {
            Layout::Chunked { chunk, .. } => chunks = chunk,
            Layout::External { files } => {
                let names: Vec<&[u8]> = files.iter().map(|file| file.as_slice()).collect();
                self.may_follow(id, &names, "external raw storage")?;
            }
            Layout::Virtual { sources } => {
                let others: Vec<&[u8]> =
                    sources.iter().map(|source| source.file.as_slice()).filter(|file| file != b".").collect();
                if !others.is_empty() && !self.follows() {
                    self.may_follow(id, &others, "virtual dataset")?;
                }
            }
            _ => {}
        }
        Ok(OpenedDataset { id, dataset, datatype, plan, extent, chunk: chunks })
    }

    fn may_follow(&self, id: ObjectId, files: &[&[u8]], what: &str) -> Result<(), WorkerRefusal> {
        let folder = self.folder_of(id.file).map(Path::to_owned).unwrap_or_default();
        for file in files {
            let path = folder.join(OsStr::from_bytes(file));
            if !self.follows() {
                return Err(not_followed(&path, what, "which is not followed"));
            }
            if driver::permitted(&path).is_none() {
                return Err(not_followed(&path, what, "which is missing or outside the source's folder"));
            }
        }
        Ok(())
    }

    /// Reads a box of elements.
    pub fn read(&mut self, id: ObjectId, start: &[u64], count: &[u64]) -> Result<WorkerAnswer, WorkerRefusal> {
        let opened = self.open_for_reading(id)?;
        let answer = self.read_opened(&opened, start, count);
        self.opened = Some(opened);
        answer
    }

    fn read_opened(
        &mut self,
        opened: &OpenedDataset,
        start: &[u64],
        count: &[u64],
    ) -> Result<WorkerAnswer, WorkerRefusal> {
        let too_large = |bytes, limit| {
            let what = format!("reading {count:?} elements of the dataset at address {}", opened.id.address);
            WorkerRefusal::TooLarge { what, bytes, limit }
        };
        if opened.extent.null {
            return Ok(WorkerAnswer::Elements { bytes: 0, heap: 0 });
        }
        let elements = select(&opened.extent, start, count)?.0;
        let (disk, memory) = (opened.plan.disk, opened.plan.memory);
        let size = elements.saturating_mul(disk as u64);
        if size > MAX_ELEMENTS {
            return Err(too_large(size, MAX_ELEMENTS));
        }
        if elements.saturating_mul(memory as u64) > MAX_MEMORY {
            return Err(too_large(elements.saturating_mul(memory as u64), MAX_MEMORY));
        }
        let file = self.file(opened.id.file)?;
        let mut heap = HeapOutput::new(MAX_HEAP as usize, file.address_size, file.file_number);
        let mut done = 0;
        for (first, rows) in slabs(start, count, &opened.chunk) {
            let (mut start, mut count) = (start.to_vec(), count.to_vec());
            if let (Some(start), Some(count)) = (start.first_mut(), count.first_mut()) {
                (*start, *count) = (first, rows);
            }
            let (elements, selection) = select(&opened.extent, &start, &count)?;
            let elements = elements as usize;
            if elements == 0 {
                continue;
            }
            let place = self.shared.bytes().get_mut(done..).and_then(|rest| rest.get_mut(..elements * disk));
            let place = place.ok_or_else(|| too_large(size, SHARED))?;
            done += place.len();
            if opened.plan.is_copy() {
                // SAFETY: the place has room for the elements, which have the same form in memory and on disk.
                unsafe { selection.read(opened, place.as_mut_ptr().cast())? };
                continue;
            }
            let mut buffer = Aligned::zeroed(elements * memory);
            place.fill(0);
            // SAFETY: `buffer` has room for the elements in memory, and libhdf5 writes it by the plan's type.
            let encoded = unsafe {
                selection.read(opened, buffer.pointer())?;
                opened.plan.encode_all(buffer.bytes(), place, &mut heap)
            };
            if opened.plan.allocates() {
                reclaim(&opened.datatype, elements, &mut buffer)?;
            }
            encoded.map_err(|overflow| too_large(overflow.0 as u64, MAX_HEAP))?;
        }
        let heap = heap.bytes;
        match self.shared.bytes().get_mut(done..).and_then(|rest| rest.get_mut(..heap.len())) {
            Some(place) => place.copy_from_slice(&heap),
            None => return Err(too_large(heap.len() as u64, MAX_HEAP)),
        }
        Ok(WorkerAnswer::Elements { bytes: size, heap: heap.len() as u64 })
    }
}

/// Cuts a box along its first dimension, at chunk boundaries, so that no piece touches too many chunks: libhdf5 takes
/// two kilobytes of memory for each. Returns the first row and the number of rows of each piece.
fn slabs(start: &[u64], count: &[u64], chunk: &[u64]) -> Vec<(u64, u64)> {
    let (Some(start_0), Some(count_0), Some(chunk_0)) = (start.first(), count.first(), chunk.first()) else {
        return vec![(start.first().copied().unwrap_or(0), count.first().copied().unwrap_or(1))];
    };
    if count.contains(&0) || chunk.contains(&0) {
        return Vec::new();
    }
    let across = start.iter().zip(count).zip(chunk).skip(1).fold(1u64, |across, ((start, count), chunk)| {
        across.saturating_mul((start.saturating_add(count - 1) / chunk).saturating_sub(start / chunk).saturating_add(1))
    });
    let step = (MAX_CHUNKS / across).max(1);
    let end = start_0.saturating_add(*count_0);
    let mut slabs = Vec::new();
    let mut at = *start_0;
    while at < end {
        let next = (at / chunk_0).saturating_add(step).saturating_mul(*chunk_0).min(end);
        slabs.push((at, next - at));
        at = next;
    }
    slabs
}

fn not_followed(path: &Path, what: &str, why: &str) -> WorkerRefusal {
    WorkerRefusal::Hdf5(format!("the {what} lies in another file, {:?}, {why}", path))
}

/// The selected elements.
pub(super) enum ReadSelection {
    /// No element: libhdf5 is not called, since an empty selection means everything to it.
    Nothing,
    /// The one element of a scalar.
    Scalar,
    /// A box, with its space in memory and in the file.
    Box { memory: Id, file: Id },
}

impl ReadSelection {
    /// Reads the elements selected.
    ///
    /// # Safety
    /// `buffer` has room for them, in the form they have in memory.
    pub unsafe fn read(&self, opened: &OpenedDataset, buffer: *mut c_void) -> Result<(), WorkerRefusal> {
        let (memory, file) = match self {
            ReadSelection::Nothing => return Ok(()),
            ReadSelection::Scalar => (ffi::ALL, ffi::ALL),
            ReadSelection::Box { memory, file } => (memory.raw(), file.raw()),
        };
        driver::take_refused();
        // SAFETY: open objects, and the caller's promise.
        let status =
            unsafe { ffi::H5Dread(opened.dataset.raw(), opened.datatype.raw(), memory, file, ffi::DEFAULT, buffer) };
        // No H5Treclaim after a failed read: the buffer may hold invalid pointers, and H5Treclaim would crash.
        let result = check(status).map_err(|reason| reason.with_missing_filters(&opened.dataset));
        // A virtual dataset shows fill values if a source does not open; a refusal must not look like that.
        if let Some(path) = driver::take_refused() {
            return Err(refused_source(path));
        }
        result?;
        Ok(())
    }
}

fn refused_source(path: PathBuf) -> WorkerRefusal {
    not_followed(&path, "virtual dataset's source", "which may not be followed")
}

/// Selects a box of elements. Returns their number, and the selection.
pub(super) fn select(extent: &Dataspace, start: &[u64], count: &[u64]) -> Result<(u64, ReadSelection), WorkerRefusal> {
    let rank = extent.shape.len();
    let fits = start.len() == rank
        && count.len() == rank
        && extent
            .shape
            .iter()
            .zip(start.iter().zip(count))
            .all(|(extent, (start, count))| start.checked_add(*count).is_some_and(|end| end <= *extent));
    if !fits {
        return Err(WorkerRefusal::Hdf5(format!(
            "elements {count:?} from {start:?} were requested, but the extent is {:?}",
            extent.shape
        )));
    }
    let elements = product(count).ok_or_else(|| WorkerRefusal::Hdf5("a box of 2^64 elements".into()))?;
    if elements == 0 {
        return Ok((0, ReadSelection::Nothing));
    }
    if rank == 0 {
        return Ok((elements, ReadSelection::Scalar));
    }
    // SAFETY: arrays of `rank` numbers; null for stride and block means 1.
    unsafe {
        let file = Id::own(ffi::H5Screate_simple(rank as i32, extent.shape.as_ptr(), std::ptr::null()))?;
        check(ffi::H5Sselect_hyperslab(
            file.raw(),
            ffi::SELECT_SET,
            start.as_ptr(),
            std::ptr::null(),
            count.as_ptr(),
            std::ptr::null(),
        ))?;
        let memory = Id::own(ffi::H5Screate_simple(1, &elements, std::ptr::null()))?;
        Ok((elements, ReadSelection::Box { memory, file }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_cut_at_borders_of_chunks() {
        assert_eq!(slabs(&[], &[], &[]), [(0, 1)]);
        assert_eq!(slabs(&[5], &[7], &[]), [(5, 7)]);
        assert_eq!(slabs(&[5], &[7], &[2]), [(5, 7)]);
        assert_eq!(slabs(&[5], &[40_000], &[2]), [(5, 32_768 - 5 + 4), (32_772, 40_005 - 32_772)]);
        // 10,000 chunks are side by side: one row of chunks at a time.
        assert_eq!(slabs(&[1, 0], &[5, 10_000], &[2, 1]), [(1, 1), (2, 2), (4, 2)]);
        assert_eq!(slabs(&[0, 0], &[0, 10], &[2, 1]), []);
        assert_eq!(slabs(&[0, 0], &[3, 10], &[u64::MAX, u64::MAX]), [(0, 3)]);
    }
}
