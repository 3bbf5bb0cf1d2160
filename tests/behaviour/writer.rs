//! Writes HDF5 files with libhdf5 itself, for what no committed file can show: writers at work, filters of our own,
//! tables of a size that only a file without data can have.

use std::ffi::{CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use hdf5_metno_sys::h5::{H5open, hsize_t};
use hdf5_metno_sys::h5a::{H5Aclose, H5Acreate2, H5Awrite};
use hdf5_metno_sys::h5d::{
    H5D_alloc_time_t, H5D_fill_time_t, H5Dclose, H5Dcreate2, H5Dflush, H5Dget_space, H5Dset_extent, H5Dwrite,
};
use hdf5_metno_sys::h5f::{
    H5F_ACC_TRUNC, H5F_LIBVER_LATEST, H5F_scope_t, H5Fclose, H5Fcreate, H5Fflush, H5Fstart_swmr_write,
};
use hdf5_metno_sys::h5g::{H5Gclose, H5Gcreate2};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::{
    H5P_CLS_DATASET_CREATE, H5P_CLS_FILE_ACCESS, H5Pclose, H5Pcreate, H5Pset_alloc_time, H5Pset_chunk,
    H5Pset_fill_time, H5Pset_filter, H5Pset_libver_bounds,
};
use hdf5_metno_sys::h5s::{
    H5S_UNLIMITED, H5S_class_t, H5S_seloper_t, H5Sclose, H5Screate, H5Screate_simple, H5Sselect_hyperslab,
};
use hdf5_metno_sys::h5t::{H5T_C_S1, H5T_STD_I64LE, H5Tclose, H5Tcopy, H5Tset_size};
use hdf5_metno_sys::h5z::{H5Z_class2_t, H5Z_filter_t, H5Zregister};

/// A file being written. libhdf5 is not made for threads, so every call holds its lock.
pub struct Writer {
    file: hid_t,
    closed: bool,
}

/// A table group being written.
pub struct Table {
    group: hid_t,
}

/// A column that can grow.
pub struct Column {
    dataset: hid_t,
    rows: u64,
}

/// Runs a call of libhdf5.
fn call<T: PartialOrd + Default + Copy>(what: &str, call: impl FnOnce() -> T) -> T {
    let _one = hdf5_metno_sys::LOCK.lock();
    // The library's own types have numbers only once it is open. SAFETY: takes no argument, and may be called again.
    assert!(unsafe { H5open() } >= 0);
    let answer = call();
    assert!(answer >= T::default(), "{what} failed");
    answer
}

fn c(name: &str) -> CString {
    CString::new(name).unwrap()
}

impl Writer {
    /// Creates a file in the newest format, which SWMR needs.
    pub fn create(path: &Path) -> Self {
        let path = CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: property lists and files are used as libhdf5 gave them, strings end in NUL.
        let file = call("creating a file", || unsafe {
            let access = H5Pcreate(*H5P_CLS_FILE_ACCESS);
            H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
            let file = H5Fcreate(path.as_ptr(), H5F_ACC_TRUNC, 0, access);
            H5Pclose(access);
            file
        });
        Self { file, closed: false }
    }

    /// Adds a HEP001 table.
    pub fn table(&self, name: &str) -> Table {
        let name = c(name);
        // SAFETY: as above.
        let group = call("creating a group", || unsafe { H5Gcreate2(self.file, name.as_ptr(), 0, 0, 0) });
        let table = Table { group };
        table.attribute("CLASS", "COLUMN_TABLE");
        table.attribute("VERSION", "1.0");
        table
    }

    /// From now on others may read while this one writes. All tables must be closed.
    pub fn start_swmr(&self) {
        // SAFETY: as above.
        call("starting SWMR", || unsafe { H5Fstart_swmr_write(self.file) });
    }

    /// Writes what libhdf5 still keeps in memory.
    pub fn flush(&self) {
        // SAFETY: as above.
        call("flushing", || unsafe { H5Fflush(self.file, H5F_scope_t::H5F_SCOPE_GLOBAL) });
    }

    /// Closes the file.
    pub fn close(mut self) {
        self.closed = true;
        // SAFETY: as above; it is not used afterwards.
        call("closing a file", || unsafe { H5Fclose(self.file) });
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.closed {
            let _one = hdf5_metno_sys::LOCK.lock();
            // SAFETY: as above.
            unsafe { H5Fclose(self.file) };
        }
    }
}

impl Table {
    /// A text attribute of fixed length.
    pub fn attribute(&self, name: &str, value: &str) {
        let name = c(name);
        // SAFETY: the value has as many bytes as the type says.
        call("writing an attribute", || unsafe {
            let kind = H5Tcopy(*H5T_C_S1);
            H5Tset_size(kind, value.len());
            let space = H5Screate(H5S_class_t::H5S_SCALAR);
            let attribute = H5Acreate2(self.group, name.as_ptr(), kind, space, 0, 0);
            let outcome = H5Awrite(attribute, kind, value.as_ptr().cast::<c_void>());
            H5Aclose(attribute);
            H5Sclose(space);
            H5Tclose(kind);
            outcome
        });
    }

    /// A column of int64, chunked, of rows never written.
    pub fn never_written(&self, name: &str, rows: u64, chunk: u64) -> Column {
        self.create(name, rows, chunk, None)
    }

    /// A column of int64 that lies in one piece, whose rows were given room and never written.
    pub fn hollow(&self, name: &str, rows: u64) {
        let (name, size): (CString, [hsize_t; 1]) = (c(name), [rows]);
        // SAFETY: as above.
        let dataset = call("creating a dataset", || unsafe {
            let space = H5Screate_simple(1, size.as_ptr(), std::ptr::null());
            let creation = H5Pcreate(*H5P_CLS_DATASET_CREATE);
            H5Pset_alloc_time(creation, H5D_alloc_time_t::H5D_ALLOC_TIME_EARLY);
            H5Pset_fill_time(creation, H5D_fill_time_t::H5D_FILL_TIME_NEVER);
            let dataset = H5Dcreate2(self.group, name.as_ptr(), *H5T_STD_I64LE, space, 0, creation, 0);
            H5Pclose(creation);
            H5Sclose(space);
            dataset
        });
        drop(Column { dataset, rows });
    }

    /// A column of int64 with these values, in chunks of `chunk` rows.
    pub fn column(&self, name: &str, values: &[i64], chunk: u64) -> Column {
        let mut column = self.create(name, 0, chunk, None);
        column.append(values);
        column
    }

    /// The same through a filter that was registered before.
    pub fn filtered(&self, name: &str, values: &[i64], chunk: u64, filter: H5Z_filter_t) -> Column {
        let mut column = self.create(name, 0, chunk, Some(filter));
        column.append(values);
        column
    }

    fn create(&self, name: &str, rows: u64, chunk: u64, filter: Option<H5Z_filter_t>) -> Column {
        let name = c(name);
        let (size, most, chunk): ([hsize_t; 1], [hsize_t; 1], [hsize_t; 1]) = ([rows], [H5S_UNLIMITED], [chunk]);
        // SAFETY: arrays have as many elements as the rank says.
        let dataset = call("creating a dataset", || unsafe {
            let space = H5Screate_simple(1, size.as_ptr(), most.as_ptr());
            let creation = H5Pcreate(*H5P_CLS_DATASET_CREATE);
            H5Pset_chunk(creation, 1, chunk.as_ptr());
            if let Some(filter) = filter {
                H5Pset_filter(creation, filter, 0, 0, std::ptr::null());
            }
            let dataset = H5Dcreate2(self.group, name.as_ptr(), *H5T_STD_I64LE, space, 0, creation, 0);
            H5Pclose(creation);
            H5Sclose(space);
            dataset
        });
        Column { dataset, rows }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        let _one = hdf5_metno_sys::LOCK.lock();
        // SAFETY: as above.
        unsafe { H5Gclose(self.group) };
    }
}

impl Column {
    /// Appends values and writes them out.
    pub fn append(&mut self, values: &[i64]) {
        let (start, count): ([hsize_t; 1], [hsize_t; 1]) = ([self.rows], [values.len() as u64]);
        self.rows += values.len() as u64;
        let size: [hsize_t; 1] = [self.rows];
        // SAFETY: the selection has as many elements as there are values.
        call("appending", || unsafe {
            H5Dset_extent(self.dataset, size.as_ptr());
            let file_space = H5Dget_space(self.dataset);
            let set = H5S_seloper_t::H5S_SELECT_SET;
            H5Sselect_hyperslab(file_space, set, start.as_ptr(), std::ptr::null(), count.as_ptr(), std::ptr::null());
            let memory = H5Screate_simple(1, count.as_ptr(), std::ptr::null());
            let outcome =
                H5Dwrite(self.dataset, *H5T_STD_I64LE, memory, file_space, 0, values.as_ptr().cast::<c_void>());
            H5Sclose(memory);
            H5Sclose(file_space);
            H5Dflush(self.dataset);
            outcome
        });
    }
}

impl Drop for Column {
    fn drop(&mut self) {
        let _one = hdf5_metno_sys::LOCK.lock();
        // SAFETY: as above.
        unsafe { H5Dclose(self.dataset) };
    }
}

/// The number of [`inverting_filter`]; those from 256 to 511 are for tests.
pub const INVERTING: H5Z_filter_t = 300;

/// Registers a filter that inverts every bit, as the plugin in `plugin.c` does.
pub fn register_inverting_filter() {
    let class = H5Z_class2_t {
        version: 1,
        id: INVERTING,
        encoder_present: 1,
        decoder_present: 1,
        name: c"inverting".as_ptr(),
        filter: Some(inverting_filter),
        ..Default::default()
    };
    // SAFETY: libhdf5 copies the class.
    call("registering a filter", || unsafe { H5Zregister((&raw const class).cast()) });
}

/// # Safety
/// `buffer` leads to a buffer of at least `used` bytes.
unsafe extern "C" fn inverting_filter(
    _flags: std::ffi::c_uint,
    _count: usize,
    _values: *const std::ffi::c_uint,
    used: usize,
    _size: *mut usize,
    buffer: *mut *mut c_void,
) -> usize {
    // SAFETY: by contract.
    let bytes = unsafe { std::slice::from_raw_parts_mut((*buffer).cast::<u8>(), used) };
    bytes.iter_mut().for_each(|byte| *byte = !*byte);
    used
}
