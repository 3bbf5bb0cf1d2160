//! Elements, read by libhdf5 into the memory shared with the daemon.

use std::ffi::{OsStr, c_void};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

use super::attribute::Aligned;
use super::dataset::Extent;
use super::datatype::{Heap, Plan, describe};
use super::driver;
use super::error::{Id, Reason, check};
use super::ffi;
use super::session::Session;
use crate::catalogue::{Datatype, Layout, ObjectId, product};
use crate::h5::protocol::{Answer, MAX_ELEMENTS, MAX_HEAP, Refusal, SHARED};

/// Bytes that elements may take in memory: a reference takes 64 there and 18 on disk.
const MAX_MEMORY: u64 = 4 * MAX_ELEMENTS;

/// The memory shared with the daemon: elements, then heap.
#[derive(Debug)]
pub(super) struct SharedMemory {
    start: NonNull<u8>,
}

impl SharedMemory {
    pub fn map(memory: OwnedFd) -> io::Result<Self> {
        // SAFETY: a new mapping of a descriptor of at least SHARED bytes whose size is sealed.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                SHARED as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                memory.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(start.cast()).map(|start| Self { start }).ok_or_else(|| io::Error::other("mapped at zero"))
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping has SHARED bytes and lives as long as the process; the daemon only reads it, and only
        // between requests.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), SHARED as usize) }
    }
}

/// A dataset that stays open between reads, so that libhdf5's chunk cache does.
#[derive(Debug)]
pub(super) struct Opened {
    pub id: ObjectId,
    pub dataset: Id,
    pub datatype: Id,
    pub described: Datatype,
    pub plan: Plan,
    pub extent: Extent,
}

impl Session {
    /// Opens a dataset for reading, unless its elements lie where they may not be read from.
    pub fn open_for_reading(&mut self, id: ObjectId) -> Result<Opened, Refusal> {
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
        let (described, plan) = describe(&datatype, address_size)?;
        let extent = Extent::of(&space)?;
        match self.dataset(&dataset, id)?.layout {
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
        Ok(Opened { id, dataset, datatype, described, plan, extent })
    }

    fn may_follow(&self, id: ObjectId, files: &[&[u8]], what: &str) -> Result<(), Refusal> {
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
    pub fn read(&mut self, id: ObjectId, start: &[u64], count: &[u64]) -> Result<Answer, Refusal> {
        let opened = self.open_for_reading(id)?;
        let answer = self.read_opened(&opened, start, count);
        self.opened = Some(opened);
        answer
    }

    fn read_opened(&mut self, opened: &Opened, start: &[u64], count: &[u64]) -> Result<Answer, Refusal> {
        let what = || format!("reading {count:?} elements of the dataset at address {}", opened.id.address);
        let too_large = |bytes, limit| Refusal::TooLarge { what: what(), bytes, limit };
        if opened.extent.null {
            return Ok(Answer::Elements { bytes: 0, heap: 0 });
        }
        let (elements, selection) = select(&opened.extent, start, count)?;
        let size = elements.saturating_mul(opened.plan.disk as u64);
        if size > MAX_ELEMENTS {
            return Err(too_large(size, MAX_ELEMENTS));
        }
        let memory = elements.saturating_mul(opened.plan.memory as u64);
        if memory > MAX_MEMORY {
            return Err(too_large(memory, MAX_MEMORY));
        }
        if elements == 0 {
            return Ok(Answer::Elements { bytes: 0, heap: 0 });
        }
        let address_size = self.file(opened.id.file)?.address_size;
        if opened.plan.is_copy() {
            // SAFETY: the shared memory has room for MAX_ELEMENTS bytes.
            unsafe { selection.read(opened, self.shared.start.as_ptr().cast())? };
            return Ok(Answer::Elements { bytes: size, heap: 0 });
        }
        let mut buffer = Aligned::zeroed(memory as usize);
        // SAFETY: `buffer` has room for the elements in memory.
        unsafe { selection.read(opened, buffer.pointer())? };
        let mut heap = Heap::new(MAX_HEAP as usize, address_size);
        let encoded = match self.shared.bytes().get_mut(..size as usize) {
            Some(disk) => {
                disk.fill(0);
                // SAFETY: libhdf5 wrote the buffer by the plan's type.
                unsafe { opened.plan.encode_all(buffer.bytes(), disk, &mut heap) }
            }
            None => return Err(too_large(size, SHARED)),
        };
        if opened.plan.allocates() {
            reclaim(&opened.datatype, elements as usize, &mut buffer)?;
        }
        encoded.map_err(|overflow| too_large(overflow.0 as u64, MAX_HEAP))?;
        let length = heap.bytes.len();
        match self.shared.bytes().get_mut(size as usize..size as usize + length) {
            Some(place) => place.copy_from_slice(&heap.bytes),
            None => return Err(too_large(length as u64, MAX_HEAP)),
        }
        Ok(Answer::Elements { bytes: size, heap: length as u64 })
    }
}

fn not_followed(path: &Path, what: &str, why: &str) -> Refusal {
    Refusal::Hdf5(format!("the {what} lies in another file, {:?}, {why}", path))
}

/// What to read: a space in memory and one in the file.
pub(super) struct Selection {
    memory: Option<Id>,
    file: Option<Id>,
}

impl Selection {
    /// Reads the elements selected.
    ///
    /// # Safety
    /// `buffer` has room for them, in the form they have in memory.
    pub unsafe fn read(&self, opened: &Opened, buffer: *mut c_void) -> Result<(), Refusal> {
        let raw = |space: &Option<Id>| space.as_ref().map_or(ffi::ALL, Id::raw);
        driver::take_refused();
        // SAFETY: open objects, and the caller's promise.
        let status = unsafe {
            ffi::H5Dread(
                opened.dataset.raw(),
                opened.datatype.raw(),
                raw(&self.memory),
                raw(&self.file),
                ffi::DEFAULT,
                buffer,
            )
        };
        // No H5Treclaim after a failed read: the buffer may hold pointers to nothing, and that crashes.
        let result = check(status).map_err(|reason| reason.with_missing_filters(&opened.dataset));
        // A virtual dataset shows fill values where a source cannot be opened; a refusal must not look like that.
        if let Some(path) = driver::take_refused() {
            return Err(refused_source(path));
        }
        result?;
        Ok(())
    }
}

fn refused_source(path: PathBuf) -> Refusal {
    not_followed(&path, "virtual dataset's source", "which may not be followed")
}

/// Selects a box; answers its number of elements, too.
pub(super) fn select(extent: &Extent, start: &[u64], count: &[u64]) -> Result<(u64, Selection), Refusal> {
    let rank = extent.shape.len();
    let fits = start.len() == rank
        && count.len() == rank
        && extent
            .shape
            .iter()
            .zip(start.iter().zip(count))
            .all(|(extent, (start, count))| start.checked_add(*count).is_some_and(|end| end <= *extent));
    if !fits {
        return Err(Refusal::Hdf5(format!(
            "elements {count:?} from {start:?} were asked for, but the extent is {:?}",
            extent.shape
        )));
    }
    let elements = product(count).ok_or_else(|| Refusal::Hdf5("a box of 2^64 elements".into()))?;
    if rank == 0 || elements == 0 {
        return Ok((elements, Selection { memory: None, file: None }));
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
        Ok((elements, Selection { memory: Some(memory), file: Some(file) }))
    }
}

/// Frees what libhdf5 allocated for elements that it read *successfully*.
pub(super) fn reclaim(datatype: &Id, count: usize, buffer: &mut Aligned) -> Result<(), Reason> {
    let count = count as u64;
    // SAFETY: `buffer` holds `count` elements that libhdf5 wrote.
    unsafe {
        let space = Id::own(ffi::H5Screate_simple(1, &count, std::ptr::null()))?;
        check(ffi::H5Treclaim(datatype.raw(), space.raw(), ffi::DEFAULT, buffer.pointer()))?;
    }
    Ok(())
}
