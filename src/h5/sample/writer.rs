//! Writing HDF5 objects: safe wrappers around the calls of libhdf5 that create things.
//!
//! Every identifier is released when its owner goes out of scope, every return is checked, and an error says which
//! object was being written and why libhdf5 refused.

use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use hdf5_metno_sys::{h5d, h5f, h5g, h5p};

use super::SampleError;
use crate::h5::objects::storage::{Fill, Storage, timeless};
use crate::h5::objects::types::{Plain, Type};
use crate::h5::objects::{DEFAULT, c_string, create_dataset, hyperslab, space};
use crate::h5::worker::error::{Id, Reason, check};

/// Says which object an error of libhdf5 is about.
pub(super) trait Context<T> {
    /// `path` is the HDF5 path of what was being written.
    fn at(self, path: &str) -> Result<T, SampleError>;
}

impl<T> Context<T> for Result<T, Reason> {
    fn at(self, path: &str) -> Result<T, SampleError> {
        self.map_err(|reason| SampleError::Hdf5 { path: path.to_owned(), reason: reason.0 })
    }
}

/// An open group or dataset (or the file: its root group), with its path.
#[derive(Debug)]
pub(super) struct Node {
    id: Id,
    path: String,
}

/// A file that is being written.
#[derive(Debug)]
pub(super) struct File {
    root: Node,
}

impl File {
    /// Creates the file, or empties the one that is there. Needs the lock of the library.
    pub fn create(path: &Path) -> Result<Self, SampleError> {
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| SampleError::Path(path.to_owned()))?;
        let create = || {
            let creation = timeless(*h5p::H5P_CLS_FILE_CREATE)?;
            // SAFETY: a C string and open property lists.
            Id::own(unsafe { h5f::H5Fcreate(name.as_ptr(), h5f::H5F_ACC_TRUNC, creation.raw(), DEFAULT) })
        };
        Ok(Self { root: Node { id: create().at("/")?, path: "/".into() } })
    }

    /// The root group.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Flushes and closes: the last moment at which a full disk is noticed.
    pub fn close(self) -> Result<(), SampleError> {
        // SAFETY: the file's identifier is open.
        check(unsafe { h5f::H5Fflush(self.root.id.raw(), h5f::H5F_scope_t::H5F_SCOPE_GLOBAL) }).at("/")?;
        let id = self.root.id.release();
        // SAFETY: the identifier was taken from its owner and is closed once.
        check(unsafe { h5f::H5Fclose(id) }).at("/")?;
        Ok(())
    }
}

impl Node {
    /// The HDF5 path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The identifier.
    pub fn raw(&self) -> i64 {
        self.id.raw()
    }

    fn child_path(&self, name: &str) -> String {
        format!("{}/{name}", self.path.trim_end_matches('/'))
    }

    /// Creates a group below.
    pub fn group(&self, name: &str) -> Result<Node, SampleError> {
        let path = self.child_path(name);
        let create = || {
            let name = c_string(name)?;
            let creation = timeless(*h5p::H5P_CLS_GROUP_CREATE)?;
            // SAFETY: a C string and open property lists.
            Id::own(unsafe { h5g::H5Gcreate2(self.id.raw(), name.as_ptr(), DEFAULT, creation.raw(), DEFAULT) })
        };
        let id = create().at(&path)?;
        Ok(Node { id, path })
    }

    /// Creates a dataset below.
    pub fn dataset(&self, name: &str, datatype: Type, storage: &Storage, fill: &Fill) -> Result<Dataset, SampleError> {
        let path = self.child_path(name);
        let create = || create_dataset(self.id.raw(), Some(&c_string(name)?), &datatype, storage, fill);
        let id = create().at(&path)?;
        Ok(Dataset { node: Node { id, path }, datatype, extents: storage.extents.clone() })
    }
}

/// A dataset that is being written.
#[derive(Debug)]
pub(super) struct Dataset {
    node: Node,
    datatype: Type,
    extents: Vec<u64>,
}

impl Dataset {
    /// The object, for attributes and references.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Writes elements of a one-dimensional dataset from `start` on.
    pub fn write<T: Plain>(&self, start: u64, values: &[T]) -> Result<(), SampleError> {
        self.write_box(&[start], &[values.len() as u64], values)
    }

    /// Writes a box of elements.
    pub fn write_box<T: Plain>(&self, start: &[u64], count: &[u64], values: &[T]) -> Result<(), SampleError> {
        if self.datatype.is_variable() || size_of::<T>() != self.datatype.size() {
            return Err(Reason::new("the elements are not of the dataset's type")).at(&self.node.path);
        }
        // SAFETY: the elements have the size of the datatype in memory and no pointers.
        unsafe { self.write_elements(start, count, values.len(), values.as_ptr().cast()) }.at(&self.node.path)
    }

    /// Writes variable-length strings of a one-dimensional dataset from `start` on.
    ///
    /// Empty ones are written as null pointers: the file then holds an empty descriptor for them and nothing else, where an
    /// empty C string takes 16 bytes of heap (16 MB for a million rows). Both read as the empty string.
    pub fn write_texts(&self, start: u64, values: &[&CStr]) -> Result<(), SampleError> {
        if !self.datatype.is_variable() {
            return Err(Reason::new("the dataset holds no variable-length strings")).at(&self.node.path);
        }
        let pointer = |value: &&CStr| if value.is_empty() { ptr::null() } else { value.as_ptr() };
        let pointers: Vec<_> = values.iter().map(pointer).collect();
        // SAFETY: an element in memory is null or a pointer to a C string; the strings outlive the call.
        unsafe { self.write_elements(&[start], &[values.len() as u64], pointers.len(), pointers.as_ptr().cast()) }
            .at(&self.node.path)
    }

    /// Makes a one-dimensional dataset longer by these elements.
    pub fn append<T: Plain>(&mut self, values: &[T]) -> Result<(), SampleError> {
        let [start] = self.extents[..] else {
            return Err(Reason::new("only one dimension can be appended to")).at(&self.node.path);
        };
        let extent = start + values.len() as u64;
        // SAFETY: one extent for one dimension.
        check(unsafe { h5d::H5Dset_extent(self.node.id.raw(), &raw const extent) }).at(&self.node.path)?;
        self.extents = vec![extent];
        self.write(start, values)
    }

    /// # Safety
    /// `values` leads to `length` elements of the datatype in memory.
    unsafe fn write_elements(
        &self,
        start: &[u64],
        count: &[u64],
        length: usize,
        values: *const c_void,
    ) -> Result<(), Reason> {
        if crate::catalogue::product(count) != Some(length as u64) {
            return Err(Reason::new("the box has another number of elements than are given"));
        }
        if length == 0 {
            return Ok(());
        }
        let file = hyperslab(&self.extents, start, count)?;
        let memory = space(count, None)?;
        // SAFETY: the memory space has `length` elements, for which the caller vouches. A box outside of the extents is
        // refused by libhdf5.
        check(unsafe {
            h5d::H5Dwrite(self.node.id.raw(), self.datatype.memory(), memory.raw(), file.raw(), DEFAULT, values)
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use hdf5_metno_sys::LOCK;

    use super::*;
    use crate::h5::sample::prepare;

    #[test]
    fn what_goes_wrong_is_told_with_the_path_and_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let _lock = LOCK.lock();
        prepare().unwrap();
        let told = |result: Result<(), SampleError>| result.unwrap_err().to_string();

        let error = File::create(folder.path()).unwrap_err().to_string();
        assert!(error.contains("Is a directory"), "{error}");

        let file = File::create(&folder.path().join("a.h5")).unwrap();
        let group = file.root().group("g").unwrap();
        let number = || Type::number::<i64>().unwrap();
        let dataset = group.dataset("d", number(), &Storage::contiguous(&[3]), &Fill::of(7i64)).unwrap();
        dataset.write(0, &[1i64, 2, 3]).unwrap();

        let error = told(dataset.write(1, &[1i64, 2, 3]));
        assert!(error.starts_with("cannot write /g/d: "), "{error}");
        let error = told(dataset.write(0, &[1i16]));
        assert_eq!(error, "cannot write /g/d: the elements are not of the dataset's type");
        let error = told(dataset.write_box(&[0], &[2], &[1i64]));
        assert_eq!(error, "cannot write /g/d: the box has another number of elements than are given");
        let error = told(dataset.write_texts(0, &[c"text"]));
        assert_eq!(error, "cannot write /g/d: the dataset holds no variable-length strings");
        let error = told(group.group("d").map(drop));
        assert!(error.starts_with("cannot write /g/d: ") && error.contains("exists"), "{error}");
        let error = told(group.group("n\0").map(drop));
        assert!(error.contains("contains a NUL byte"), "{error}");
        let fill = Fill::of(7i16);
        let error = told(group.dataset("e", number(), &Storage::contiguous(&[3]), &fill).map(drop));
        assert_eq!(error, "cannot write /g/e: the fill value is not of the datatype");
        dataset.node().number(c"twice", 1u8).unwrap();
        let error = told(dataset.node().number(c"twice", 1u8));
        assert!(error.starts_with("cannot write /g/d@twice: "), "{error}");
    }
}
