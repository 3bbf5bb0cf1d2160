//! The state of a worker between requests: the open files, and the list, map or dataset of the last request.

use std::ffi::{OsStr, c_ulong};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bstr::BString;

use super::address::{address_of, info_of, token};
use super::driver::{self, DriverAccess, DriverSource};
use super::kept::{LinkListing, MappingWalk, OpenedDataset, Paths};
use super::shared::SharedMemory;
use super::start::start_library;
use crate::catalogue::{Chunk, FileInfo, ObjectId};
use crate::codec::structure::Widths;
use crate::codec::structure::mapped::VirtualDataset;
use crate::h5::library::{FailureReason, Id, c_string, check, ffi};
use crate::h5::protocol::{Hello, Sandbox, WorkerAnswer, WorkerRefusal};

/// Most files that a source may link to.
const MAX_FILES: usize = 1024;

/// An open file.
#[derive(Debug)]
pub(super) struct WorkerFile {
    pub id: Id,
    /// Width of addresses in bytes.
    pub address_size: u8,
    length_size: u8,
    pub user_block: u64,
    /// libhdf5's number for it; objects name their file by this number.
    pub file_number: c_ulong,
    pub swmr: bool,
    /// Whether metadata are in an image of libhdf5's cache, so that the bytes at their addresses may be old.
    has_image: bool,
}

/// The state of a worker between requests: see the module.
#[derive(Debug)]
pub(super) struct WorkerSession {
    setup: Setup,
    fapl: Option<Id>,
    /// Paths by number, the source first.
    paths: Vec<PathBuf>,
    open: Vec<Option<WorkerFile>>,
    new_files: Vec<Vec<u8>>,
    pub shared: SharedMemory,
    /// The links of the last listed group.
    pub listing: Option<LinkListing>,
    /// Bytes left for attribute values of members, during the description of one.
    pub values_left: Option<usize>,
    /// Whether to skip the values of attributes that point into a heap.
    pub plain: bool,
    /// The chunks of the dataset of the last request.
    pub chunk_map: Option<(ObjectId, Vec<Chunk>)>,
    /// The walk through the mappings of the virtual dataset of the last request.
    pub mapping_walk: Option<MappingWalk>,
    /// The last dataset read.
    pub opened: Option<OpenedDataset>,
    /// The walk for paths of objects.
    pub object_paths: Option<Paths>,
}

#[derive(Debug)]
struct Setup {
    source: DriverSource,
    follow: Option<PathBuf>,
    plugins: Option<Vec<u8>>,
    sandbox: Sandbox,
    wanted: Vec<BString>,
    page_time: Duration,
}

impl WorkerSession {
    pub fn new(hello: &Hello, source: DriverSource, shared: SharedMemory, sandbox: Sandbox) -> Self {
        let path = |bytes: &Vec<u8>| PathBuf::from(OsStr::from_bytes(bytes));
        // Without Landlock nothing would keep external raw storage inside the folder.
        let follow = hello.follow.as_ref().map(path).filter(|_| sandbox.landlock);
        let paths: Vec<_> = std::iter::once(path(&hello.path)).chain(hello.files.iter().map(path)).collect();
        let open = paths.iter().map(|_| None).collect();
        let wanted = hello.wanted.iter().map(|name| name.as_str().into()).collect();
        Self {
            setup: Setup {
                source,
                follow,
                plugins: hello.plugins.clone(),
                sandbox,
                wanted,
                page_time: hello.page_time,
            },
            fapl: None,
            paths,
            open,
            new_files: Vec::new(),
            shared,
            listing: None,
            values_left: None,
            plain: false,
            chunk_map: None,
            mapping_walk: None,
            opened: None,
            object_paths: None,
        }
    }

    /// Files numbered since the last call.
    pub fn take_new_files(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.new_files)
    }

    /// Names of attributes that are read of every object, however many attributes the object has.
    pub fn wanted(&self) -> &[BString] {
        &self.setup.wanted
    }

    /// Longest time for listing links for one answer.
    pub fn page_time(&self) -> Duration {
        self.setup.page_time
    }

    /// Whether links and data may lead to other files.
    pub fn follows(&self) -> bool {
        self.setup.follow.is_some()
    }

    /// The folder of a file, for relative names in it.
    pub fn folder_of(&self, file: u32) -> Option<&Path> {
        self.paths.get(file as usize)?.parent()
    }

    /// Whether `name` in a mapping of a virtual dataset in `file` means that file itself.
    pub fn is_own(&self, file: u32, name: &[u8]) -> bool {
        let own = self.paths.get(file as usize);
        name == b"."
            || own.is_some_and(|own| own.parent().is_some_and(|folder| folder.join(OsStr::from_bytes(name)) == *own))
    }

    /// Starts libhdf5 and opens the source.
    pub fn open(&mut self) -> Result<WorkerAnswer, WorkerRefusal> {
        if self.fapl.is_none() {
            let access = DriverAccess {
                path: self.paths.first().cloned().unwrap_or_default(),
                source: self.setup.source,
                follow: self.setup.follow.clone(),
                write: false,
            };
            self.fapl = Some(start_library(access, self.setup.plugins.as_deref())?);
        }
        if self.open.first().is_some_and(Option::is_none) {
            let file = self.open_path(0).map_err(|reason| WorkerRefusal::NotHdf5(reason.0))?;
            if !matches!(file.address_size, 2 | 4 | 8) {
                return Err(WorkerRefusal::NotHdf5(format!(
                    "addresses of {} bytes are not supported",
                    file.address_size
                )));
            }
            if let Some(place) = self.open.first_mut() {
                *place = Some(file);
            }
        }
        let file = self.file(0)?;
        let mut info = ffi::FileInfo2 {
            superblock_version: 0,
            superblock_size: 0,
            superblock_extension_size: 0,
            free_version: 0,
            free_meta: 0,
            free_total: 0,
            shared_version: 0,
            shared_header: 0,
            shared_messages: [0; 2],
        };
        // SAFETY: the file is open, `info` a place for the answer.
        let superblock = match unsafe { ffi::H5Fget_info2(file.id.raw(), &mut info) } {
            status if status < 0 => {
                let _ = FailureReason::of_library();
                0
            }
            _ => info.superblock_version,
        };
        let info = FileInfo {
            superblock,
            user_block: file.user_block,
            address_size: file.address_size,
            length_size: file.length_size,
            swmr: file.swmr,
            has_image: file.has_image,
            root: ObjectId { file: 0, address: address_of(file.id.raw(), file.address_size)? },
        };
        Ok(WorkerAnswer::Open { info, sandbox: self.setup.sandbox.clone() })
    }

    fn open_path(&self, number: u32) -> Result<WorkerFile, FailureReason> {
        let path = self.paths.get(number as usize).ok_or_else(|| FailureReason::new("no such file"))?;
        let name = c_string(path.as_os_str().as_bytes())?;
        let fapl = self.fapl.as_ref().ok_or_else(|| FailureReason::new("the file was not opened"))?.raw();
        // SAFETY: a C string and an access list.
        let open = |flags| Id::own(unsafe { ffi::H5Fopen(name.as_ptr(), flags, fapl) });
        let (id, swmr) = match open(ffi::ACC_RDONLY) {
            Ok(id) => (id, false),
            Err(reason) if reason.0.contains("already open for") || reason.0.contains("marked") => {
                match open(ffi::ACC_RDONLY | ffi::ACC_SWMR_READ) {
                    Ok(id) => (id, true),
                    Err(_) => {
                        return Err(FailureReason::new(format!(
                            "the file is marked as open for writing; if no writer has it, `h5clear -s` clears it: {}",
                            reason.0
                        )));
                    }
                }
            }
            Err(reason) => return Err(reason),
        };
        let (mut user_block, mut address, mut length) = (0, 0, 0);
        let (mut image_address, mut image_size) = (0, 0);
        // SAFETY: the file is open; a place for each number.
        unsafe {
            let fcpl = Id::own(ffi::H5Fget_create_plist(id.raw()))?;
            check(ffi::H5Pget_userblock(fcpl.raw(), &mut user_block))?;
            check(ffi::H5Pget_sizes(fcpl.raw(), &mut address, &mut length))?;
            check(ffi::H5Fget_mdc_image_info(id.raw(), &mut image_address, &mut image_size))?;
        }
        Ok(WorkerFile {
            file_number: info_of(id.raw())?.file_number,
            id,
            address_size: u8::try_from(address).unwrap_or(u8::MAX),
            length_size: u8::try_from(length).unwrap_or(u8::MAX),
            user_block,
            swmr,
            has_image: image_size > 0,
        })
    }

    /// An open file by its number.
    pub fn file(&mut self, number: u32) -> Result<&WorkerFile, FailureReason> {
        let missing = || FailureReason::new(format!("no linked file has the number {number}"));
        if self.open.get(number as usize).ok_or_else(missing)?.is_none() {
            if number == 0 {
                return Err(FailureReason::new("the file was not opened"));
            }
            let file = self.open_path(number)?;
            if let Some(place) = self.open.get_mut(number as usize) {
                *place = Some(file);
            }
        }
        self.open.get(number as usize).and_then(Option::as_ref).ok_or_else(missing)
    }

    /// Opens another file, which must be permitted, and returns its number.
    pub fn number_of(&mut self, path: &Path) -> Result<u32, FailureReason> {
        let path = driver::permitted(path)
            .ok_or_else(|| FailureReason::new("outside the folder that may be followed into"))?;
        let known = self.paths.iter().position(|known| *known == path);
        let number = match known {
            Some(number) => number,
            None if self.paths.len() >= MAX_FILES => return Err(FailureReason::new("too many linked files")),
            None => {
                self.paths.push(path.clone());
                self.open.push(None);
                self.new_files.push(path.into_os_string().into_vec());
                self.paths.len() - 1
            }
        };
        let number = u32::try_from(number).map_err(|_| FailureReason::new("too many linked files"))?;
        self.file(number)?;
        Ok(number)
    }

    /// Opens an object by its address.
    pub fn open_object(&mut self, id: ObjectId) -> Result<Id, FailureReason> {
        let file = self.file(id.file)?;
        let token = token(id.address, file.address_size)?;
        // SAFETY: the file is open.
        Id::own(unsafe { ffi::H5Oopen_by_token(file.id.raw(), token) })
    }

    /// Reads the virtual dataset at an address from the bytes of the file; `None`: another kind of dataset, or one that
    /// only libhdf5 can read.
    pub fn stored_virtual(&mut self, id: ObjectId) -> Option<VirtualDataset> {
        let source = self.setup.source;
        // A writer may change bytes between two reads; linked files are open in libhdf5 alone.
        let file = self.file(id.file).ok().filter(|file| id.file == 0 && !file.swmr && !file.has_image)?;
        let widths = Widths { address: file.address_size.into(), length: file.length_size.into() };
        let user_block = file.user_block;
        let read = |address: u64, length: usize| {
            let at = address.checked_add(user_block)?;
            // No buffer is longer than the file.
            let length = (source.length().ok()?.checked_sub(at)?).min(length as u64) as usize;
            let mut bytes = vec![0; length];
            source.read_exact_at(&mut bytes, at).ok()?;
            Some(bytes)
        };
        VirtualDataset::read(id.address, widths, &read)
    }

    /// Opens a dataset.
    pub fn open_dataset(&mut self, id: ObjectId) -> Result<Id, FailureReason> {
        let object = self.open_object(id)?;
        // SAFETY: an open object.
        match unsafe { ffi::H5Iget_type(object.raw()) } {
            ffi::I_DATASET => Ok(object),
            _ => Err(FailureReason::new(format!("the object at address {} is not a dataset", id.address))),
        }
    }
}
