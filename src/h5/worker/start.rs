//! Starts libhdf5, with its plugins, file access and treatment of external links.

use std::ffi::{OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;

use super::driver::{self, DriverAccess};
use crate::h5::library::ffi::{self, Hid};
use crate::h5::library::{FailureReason, Id, c_string, check};

/// Bytes of libhdf5's chunk cache for each dataset: the store reads in pieces, and must not decode a chunk for each.
const CHUNK_CACHE: usize = 32 << 20;

/// Bytes of libhdf5's metadata cache, in stored form; in memory an object header takes about twenty times as much.
const METADATA_CACHE: usize = 512 << 10;

/// Bytes of libhdf5's metadata cache during a walk through a group of more than [`MANY_LINKS`] links, which reads no
/// object header.
const LINKS_CACHE: usize = 32 << 20;
const MANY_LINKS: u64 = 1 << 14;

/// Initialises libhdf5, as far as that is the same for all workers.
pub(super) fn prepare_library() -> Result<(), FailureReason> {
    // SAFETY: calls of the library in the order it wants; no pointers but null.
    unsafe {
        ffi::H5dont_atexit();
        check(ffi::H5open())?;
        check(ffi::H5Eset_auto2(ffi::DEFAULT, std::ptr::null(), std::ptr::null_mut()))?;
    }
    Ok(())
}

/// Lets the initialised libhdf5 load plugins from the folder `plugins` alone. Returns the file access list.
pub(super) fn start_library(access: DriverAccess, plugins: Option<&[u8]>) -> Result<Id, FailureReason> {
    // SAFETY: calls of the library in the order it wants; the arguments are plain numbers and valid pointers.
    unsafe {
        // Only the user's plugins: none from the environment or from the path compiled in.
        let mut count = 0;
        check(ffi::H5PLsize(&mut count))?;
        for index in (0..count).rev() {
            check(ffi::H5PLremove(index))?;
        }
        // H5PL_FILTER_PLUGIN is 1.
        check(ffi::H5PLset_loading_state(u32::from(plugins.is_some())))?;
        if let Some(plugins) = plugins {
            check(ffi::H5PLappend(c_string(plugins)?.as_ptr()))?;
        }
        if access.follow.is_none() {
            refuse_external_traversal()?;
        }
        let driver = driver::register(access)?;
        let fapl = Id::own(ffi::H5Pcreate(ffi::H5P_CLS_FILE_ACCESS_ID_g))?;
        check(ffi::H5Pset_driver(fapl.raw(), driver.raw(), std::ptr::null()))?;
        check(ffi::H5Pset_file_locking(fapl.raw(), false, true))?;
        check(ffi::H5Pset_cache(fapl.raw(), 0, 521, CHUNK_CACHE, 0.75))?;
        limit_metadata(&fapl)?;
        Ok(fapl)
    }
}

/// Keeps libhdf5's metadata cache small: a walk through a group of very many objects visits each once.
fn limit_metadata(fapl: &Id) -> Result<(), FailureReason> {
    let mut config = ffi::MetadataCache::default();
    // SAFETY: an access list; a place for the settings.
    unsafe {
        check(ffi::H5Pget_mdc_config(fapl.raw(), &mut config))?;
        resize(&mut config, METADATA_CACHE);
        check(ffi::H5Pset_mdc_config(fapl.raw(), &config))?;
    }
    Ok(())
}

fn resize(config: &mut ffi::MetadataCache, most: usize) {
    config.set_initial_size = true;
    config.initial_size = most;
    config.max_size = most;
    config.min_size = config.min_size.min(most);
}

/// Walks through a group of very many links with a cache that holds their heap: libhdf5 visits them in the order of
/// hashes, and would read a block of the heap with their names anew for nearly each of a million.
pub(super) fn with_room_for_links<T>(group: &Id, iterate: impl FnOnce() -> T) -> T {
    let mut info = ffi::GroupInfo::default();
    // SAFETY: an open group; a place for the answer.
    let is_large = check(unsafe { ffi::H5Gget_info(group.raw(), &mut info) }).is_ok() && info.links > MANY_LINKS;
    // SAFETY: an open group.
    let file = if is_large { Id::own(unsafe { ffi::H5Iget_file_id(group.raw()) }).ok() } else { None };
    let set = |most| {
        let Some(file) = &file else { return };
        let mut config = ffi::MetadataCache::default();
        // SAFETY: an open file; a place for the settings. A failure only makes the walk slower.
        unsafe {
            if check(ffi::H5Fget_mdc_config(file.raw(), &mut config)).is_ok() {
                resize(&mut config, most);
                ffi::H5Fset_mdc_config(file.raw(), &config);
            }
        }
    };
    set(LINKS_CACHE);
    let outcome = iterate();
    set(METADATA_CACHE);
    outcome
}

/// Replaces the library's class of external links by one that it never traverses.
///
/// The worker resolves paths itself, link by link. A path that reaches libhdf5 all the same (the sources of a virtual
/// dataset) must not pass through an external link unseen. If other files may be followed, it may: the driver opens
/// only files below the source's folder.
fn refuse_external_traversal() -> Result<(), FailureReason> {
    static CLASS: ffi::LinkClass = ffi::LinkClass {
        version: 1,
        kind: ffi::L_EXTERNAL,
        comment: c"external links, not followed".as_ptr(),
        create: None,
        rename: None,
        copy: None,
        traverse: Some(refuse),
        delete: None,
        query: Some(copy_value),
    };
    // SAFETY: a valid constant.
    check(unsafe { ffi::H5Lregister(&CLASS) }).map(|_| ())
}

/// Remembers the target file of the link: a byte of flags, then its name (HDF5 file format, external links).
unsafe extern "C" fn refuse(_: *const c_char, _: Hid, value: *const c_void, size: usize, _: Hid, _: Hid) -> Hid {
    // SAFETY: as long as the library says.
    let value = if value.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(value.cast::<u8>(), size) } };
    let name = value.get(1..).and_then(|value| value.split(|byte| *byte == 0).next()).unwrap_or_default();
    driver::note_refused(OsStr::from_bytes(name).into());
    -1
}

unsafe extern "C" fn copy_value(
    _: *const c_char,
    value: *const c_void,
    size: usize,
    buffer: *mut c_void,
    buffer_size: usize,
) -> isize {
    if !buffer.is_null() && !value.is_null() {
        // SAFETY: both are as long as the library says.
        unsafe { std::ptr::copy_nonoverlapping(value.cast::<u8>(), buffer.cast::<u8>(), size.min(buffer_size)) };
    }
    isize::try_from(size).unwrap_or(-1)
}
