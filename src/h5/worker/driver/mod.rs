//! A file driver of libhdf5 over descriptors that are already open. It is read-only, except for the source of a writing
//! worker, whose changes go into an [`Overlay`].
//!
//! libhdf5 reaches files only through it. (The exception is external raw storage, which libhdf5 opens itself: the
//! worker checks it before reading, and the sandbox keeps the rest out.) The source's own path opens the descriptor
//! from the daemon, so both read the same inode even if another file takes the name. The driver refuses any other path,
//! or, if links may be followed, accepts it below the source's folder.

mod asked;
pub(super) mod disk;
pub(super) mod overlay;
mod space;

use std::cell::RefCell;
use std::ffi::{CStr, OsStr, c_char, c_int, c_uint, c_ulong, c_void};
use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

pub(super) use self::asked::{AskedSource, want};
use self::overlay::Overlay;
use crate::h5::library::ffi::{self, DriverClass, DriverFile, Herr, Hid};
use crate::h5::library::{FailureReason, Id, note_failure};

/// A value of `H5FD_class_value_t`; those from 512 on are free for anybody.
const VALUE: c_int = 0x4865;

/// The files that the driver may open.
#[derive(Debug)]
pub(super) struct DriverAccess {
    /// The path that stands for the source.
    pub path: PathBuf,
    /// The source.
    pub source: DriverSource,
    /// The canonical folder whose files may be opened.
    pub follow: Option<PathBuf>,
    /// Whether the source may be opened for writing.
    pub write: bool,
}

/// The source: a file, or bytes that the daemon gives.
#[derive(Clone, Copy, Debug)]
pub(super) enum DriverSource {
    File(SourceDescriptor),
    Asked(AskedSource),
}

impl DriverSource {
    /// Its length in bytes, now.
    pub fn length(self) -> io::Result<u64> {
        match self {
            Self::File(file) => disk::length(&file.file()),
            Self::Asked(asked) => Ok(asked.size),
        }
    }

    /// Fills `out` from byte `at` on.
    pub fn read_exact_at(self, out: &mut [u8], at: u64) -> io::Result<()> {
        match self {
            Self::File(file) => file.file().read_exact_at(out, at),
            Self::Asked(asked) => asked.read_exact_at(out, at),
        }
    }
}

/// A file: its descriptor, and its metadata from before the sandbox closed (`stat` takes a path on some systems).
#[derive(Clone, Copy, Debug)]
pub(super) struct SourceDescriptor {
    descriptor: RawFd,
    size: u64,
    device: u64,
    inode: u64,
}

impl SourceDescriptor {
    /// Takes over a descriptor for the rest of the process.
    pub fn of(descriptor: OwnedFd) -> io::Result<Self> {
        let file = File::from(descriptor);
        let metadata = file.metadata()?;
        Ok(Self {
            size: metadata.size(),
            device: metadata.dev(),
            inode: metadata.ino(),
            descriptor: file.into_raw_fd(),
        })
    }

    /// The descriptor as a file that nobody may close.
    pub fn file(self) -> ManuallyDrop<File> {
        // SAFETY: the descriptor is open as long as the process lives, and this file never closes it.
        ManuallyDrop::new(unsafe { File::from_raw_fd(self.descriptor) })
    }

    /// The number of the descriptor.
    pub fn descriptor(self) -> RawFd {
        self.descriptor
    }
}

/// State behind the C callbacks; the worker has one thread.
#[derive(Default)]
struct State {
    access: Option<DriverAccess>,
    /// The last file that the driver refused.
    refused: Option<PathBuf>,
    /// The held-back changes of the source while it is open for writing.
    overlay: Option<Overlay>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// Runs `f` on the state; `None`: the state is in use already (which never happens in one thread without re-entry).
fn with_state<T>(f: impl FnOnce(&mut State) -> T) -> Option<T> {
    STATE.with(|state| state.try_borrow_mut().ok().map(|mut state| f(&mut state)))
}

/// Takes the last file refused since the last call.
pub(super) fn take_refused() -> Option<PathBuf> {
    with_state(|state| state.refused.take()).flatten()
}

/// Remembers a refused file.
pub(super) fn note_refused(path: PathBuf) {
    with_state(|state| state.refused = Some(path));
}

/// Takes the changes held back since the source was opened for writing; the source must be closed.
pub(super) fn take_overlay() -> Option<Overlay> {
    with_state(|state| state.overlay.take()).flatten()
}

/// Makes bytes beyond the source's end of addresses go to the file at once. The source must have just been opened.
pub(super) fn arm() {
    with_state(|state| state.overlay.as_mut().map(Overlay::arm));
}

/// Whether the driver may open other files.
fn follows() -> bool {
    with_state(|state| state.access.as_ref().is_some_and(|access| access.follow.is_some())) == Some(true)
}

/// Registers the driver; its identifier goes into file access lists.
pub(super) fn register(access: DriverAccess) -> Result<Id, FailureReason> {
    with_state(|state| state.access = Some(access));
    // SAFETY: the class is a valid constant.
    Id::own(unsafe { ffi::H5FDregister(&CLASS) })
}

/// The canonical form of a path below the permitted folder; `None`: no folder is permitted, or the path leads
/// elsewhere.
pub(super) fn permitted(path: &Path) -> Option<PathBuf> {
    let folder = with_state(|state| state.access.as_ref()?.follow.clone()).flatten()?;
    let canonical = path.canonicalize().ok()?;
    (canonical.starts_with(&folder) && canonical != folder).then_some(canonical)
}

static CLASS: DriverClass = DriverClass {
    version: 1,
    value: VALUE,
    name: c"hepfs".as_ptr(),
    max_address: i64::MAX as u64,
    // H5F_CLOSE_WEAK: open objects keep their file open.
    close_degree: 1,
    terminate: None,
    superblock_size: None,
    superblock_encode: None,
    superblock_decode: None,
    fapl_size: 0,
    fapl_get: None,
    fapl_copy: None,
    fapl_free: None,
    dxpl_size: 0,
    dxpl_copy: None,
    dxpl_free: None,
    open: Some(open),
    close: Some(close),
    compare: Some(compare),
    query: Some(query),
    type_map: None,
    alloc: None,
    free: Some(free),
    get_eoa: Some(get_eoa),
    set_eoa: Some(set_eoa),
    get_eof: Some(get_eof),
    handle: None,
    read: Some(read),
    write: Some(write),
    read_vector: None,
    write_vector: None,
    read_selection: None,
    write_selection: None,
    flush: None,
    truncate: Some(truncate),
    // They lock nothing (the command that starts a writing worker has done so), but libhdf5 checks for a writer only
    // with a driver that has these callbacks.
    lock: Some(lock),
    unlock: Some(unlock),
    delete: None,
    control: None,
    // H5FD_FLMAP_DEFAULT: freed space of one kind of metadata never becomes another kind.
    free_lists: [0; 7],
};

/// An open file; libhdf5's part comes first, as it demands.
#[repr(C)]
struct Open {
    public: DriverFile,
    bytes: OpenBytes,
    /// Whether we close the descriptor (not the source's).
    owned: bool,
    /// Whether the file is the source, open for writing.
    writes: bool,
    eoa: u64,
    eof: u64,
    device: u64,
    inode: u64,
}

/// The bytes of an open file.
enum OpenBytes {
    File(ManuallyDrop<File>),
    Asked(AskedSource),
}

unsafe extern "C" fn open(name: *const c_char, flags: c_uint, _: Hid, _: u64) -> *mut DriverFile {
    if name.is_null() || flags & ffi::ACC_WRITING & !ffi::ACC_RDWR != 0 {
        return std::ptr::null_mut();
    }
    // SAFETY: the library gives a C string.
    let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes()));
    match open_path(path, flags & ffi::ACC_RDWR != 0) {
        Ok(file) => Box::into_raw(Box::new(file)).cast(),
        Err(error) => {
            note_failure(format!("{}: {error}", path.display()));
            std::ptr::null_mut()
        }
    }
}

fn open_path(path: &Path, writes: bool) -> io::Result<Open> {
    let source = with_state(|state| state.access.as_ref().filter(|a| a.path == path).map(|a| (a.source, a.write)));
    let (source, owned) = match source.flatten() {
        Some((DriverSource::File(source), true)) if writes => {
            // The file grows from one opening to the next.
            let size = disk::length(&source.file())?;
            with_state(|state| state.overlay = Some(Overlay::new(size)));
            (DriverSource::File(SourceDescriptor { size, ..source }), false)
        }
        _ if writes => return Err(io::ErrorKind::PermissionDenied.into()),
        Some((source, _)) => (source, false),
        None => (DriverSource::File(SourceDescriptor::of(open_followed(path)?.into())?), true),
    };
    let (bytes, eof, [device, inode]) = match source {
        // `close` closes it once, if it is ours.
        DriverSource::File(file) => (OpenBytes::File(file.file()), file.size, [file.device, file.inode]),
        // No file is open beside it.
        DriverSource::Asked(asked) => (OpenBytes::Asked(asked), asked.size, [0; 2]),
    };
    // SAFETY: all zeros is a valid value (numbers and a null pointer); the library fills it in.
    let public = unsafe { std::mem::zeroed() };
    Ok(Open { public, bytes, owned, writes, eoa: 0, eof, device, inode })
}

/// Opens another file, if permitted.
fn open_followed(path: &Path) -> io::Result<File> {
    let refuse = || {
        note_refused(path.to_owned());
        io::Error::from(io::ErrorKind::PermissionDenied)
    };
    if !follows() {
        return Err(refuse());
    }
    // libhdf5 tries several paths for one name, so a dangling one is simply missing. Relative paths are relative to the
    // worker's directory, which has nothing to do with the source's.
    if path.is_relative() {
        return Err(io::ErrorKind::NotFound.into());
    }
    path.canonicalize().map_err(|error| if error.kind() == io::ErrorKind::NotFound { error } else { refuse() })?;
    let path = permitted(path).ok_or_else(refuse)?;
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(&path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(refuse()) }
}

unsafe extern "C" fn close(file: *mut DriverFile) -> Herr {
    // SAFETY: the library gives back the file from `open`, once.
    let mut file = unsafe { Box::from_raw(file.cast::<Open>()) };
    if file.owned
        && let OpenBytes::File(file) = &mut file.bytes
    {
        // SAFETY: dropped once, here.
        unsafe { ManuallyDrop::drop(file) };
    }
    0
}

unsafe extern "C" fn compare(a: *const DriverFile, b: *const DriverFile) -> c_int {
    // SAFETY: the library passes files from `open`.
    let (a, b) = unsafe { (&*a.cast::<Open>(), &*b.cast::<Open>()) };
    (a.device, a.inode).cmp(&(b.device, b.inode)) as c_int
}

unsafe extern "C" fn query(_: *const DriverFile, flags: *mut c_ulong) -> Herr {
    if flags.is_null() {
        return 0;
    }
    let features = ffi::FEATURE_SWMR_IO | ffi::FEATURE_DEFAULT_COMPATIBLE;
    let writes = with_state(|state| state.access.as_ref().is_some_and(|access| access.write)) == Some(true);
    // Accumulated bytes lose their kind before the write.
    let reading = ffi::FEATURE_ACCUMULATE_METADATA_READ | ffi::FEATURE_DATA_SIEVE;
    // SAFETY: checked above; the library gives a place for the flags.
    unsafe { *flags = if writes { features } else { features | reading } };
    0
}

unsafe extern "C" fn get_eoa(file: *const DriverFile, _: c_int) -> u64 {
    // SAFETY: the library passes a file from `open`.
    unsafe { (*file.cast::<Open>()).eoa }
}

unsafe extern "C" fn set_eoa(file: *mut DriverFile, _: c_int, address: u64) -> Herr {
    // SAFETY: the library passes a file from `open`.
    let file = unsafe { &mut *file.cast::<Open>() };
    file.eoa = address;
    if file.writes {
        with_state(|state| state.overlay.as_mut().map(|overlay| overlay.set_addresses(address)));
    }
    0
}

unsafe extern "C" fn get_eof(file: *const DriverFile, _: c_int) -> u64 {
    // SAFETY: the library passes a file from `open`.
    let file = unsafe { &*file.cast::<Open>() };
    let end = if file.writes { with_state(|state| state.overlay.as_ref().map(Overlay::end)).flatten() } else { None };
    end.unwrap_or(file.eof)
}

unsafe extern "C" fn free(_: *mut DriverFile, _: c_int, _: Hid, _: u64, _: u64) -> Herr {
    // The file never gets shorter: freed bytes at its end are in use until everything is committed.
    0
}

unsafe extern "C" fn truncate(file: *mut DriverFile, _: Hid, _: bool) -> Herr {
    // SAFETY: the library passes a file from `open`.
    let file = unsafe { &*file.cast::<Open>() };
    if file.writes {
        with_state(|state| state.overlay.as_mut().map(|overlay| overlay.set_end(file.eoa)));
    }
    0
}

unsafe extern "C" fn read(
    file: *mut DriverFile,
    _: c_int,
    _: Hid,
    address: u64,
    size: usize,
    buffer: *mut c_void,
) -> Herr {
    if buffer.is_null() || address.checked_add(size as u64).is_none_or(|end| end > i64::MAX as u64) {
        return -1;
    }
    // SAFETY: the library passes a file from `open` and a buffer of `size` bytes.
    let (open, whole) = unsafe { (&(*file.cast::<Open>()), std::slice::from_raw_parts_mut(buffer.cast::<u8>(), size)) };
    let read = match &open.bytes {
        OpenBytes::File(file) => read_file(file, address, whole),
        OpenBytes::Asked(asked) => asked.read_at(whole, address).map_err(|error| (address, error)),
    };
    if let Err((position, error)) = read {
        note_failure(format!("byte {position}: {error}"));
        return -1;
    }
    if open.writes {
        with_state(|state| state.overlay.as_ref().map(|overlay| overlay.patch(address, whole)));
    }
    0
}

/// Fills the buffer; an error has the byte at which it failed.
fn read_file(file: &File, address: u64, mut buffer: &mut [u8]) -> Result<(), (u64, io::Error)> {
    let mut position = address;
    while !buffer.is_empty() {
        match file.read_at(buffer, position) {
            // Past the end of the file, but within the length that the format states: zeros, as in the library's own
            // drivers.
            Ok(0) => {
                buffer.fill(0);
                break;
            }
            Ok(n) => {
                position += n as u64;
                buffer = buffer.get_mut(n..).unwrap_or_default();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err((position, error)),
        }
    }
    Ok(())
}

unsafe extern "C" fn write(
    file: *mut DriverFile,
    kind: c_int,
    _: Hid,
    address: u64,
    size: usize,
    bytes: *const c_void,
) -> Herr {
    // SAFETY: the library passes a file from `open`.
    let file = unsafe { &*file.cast::<Open>() };
    let OpenBytes::File(target) = &file.bytes else { return -1 };
    if !file.writes || bytes.is_null() {
        return -1;
    }
    // SAFETY: the library passes `size` bytes.
    let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), size) };
    let written = with_state(|state| {
        let overlay = state.overlay.as_mut()?;
        let result = overlay.write(target, address, bytes, kind);
        result.map_err(|error| note_failure(format!("{address} bytes were written: {error}"))).ok()
    });
    if written.flatten().is_some() { 0 } else { -1 }
}

unsafe extern "C" fn lock(_: *mut DriverFile, _: bool) -> Herr {
    0
}

unsafe extern "C" fn unlock(_: *mut DriverFile) -> Herr {
    0
}
