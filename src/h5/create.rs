//! Creates HDF5 files: groups, datasets, attributes, references.
//!
//! Here libhdf5 runs in this process, not in the sandboxed worker: it writes a new file and reads none. The library is
//! built without thread safety, so a [`CreatedObject`] exists only under its lock.
//!
//! Dropping the owner of an identifier releases it, every return value is checked, and an error names the object being
//! written and the reason from libhdf5.

use std::ffi::{CStr, CString, c_void};
use std::fs::OpenOptions;
use std::io;
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

use hdf5_metno_sys::{LOCK, h5, h5d, h5e, h5f, h5g, h5l, h5p};

pub use super::element::FillSetting;
use super::element::{AttributeValue, ElementType, Plain};
use super::library::{FailureReason, Id, check};
use super::objects::attributes::{create_references, create_value};
use super::objects::storage::timeless;
pub use super::objects::storage::{Storage, UNLIMITED};
use super::objects::types::Type;
use super::objects::{DEFAULT, c_string, create_dataset, hyperslab, space};
use super::steps::References;

/// The text for a full disk in an error of libhdf5, among addresses and numbers.
const FULL: &str = "No space left on device";

/// An error of creating a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system did not create the file; a file that exists stays untouched.
    #[error("{path}: {error}", path = .path.display())]
    Create {
        /// The requested path.
        path: PathBuf,
        /// The error from the system.
        error: io::Error,
    },
    /// libhdf5 cannot take the path.
    #[error("{path:?}: contains a NUL byte", path = .0)]
    Path(PathBuf),
    /// libhdf5 refused, with its own words (innermost message of its error stack first).
    #[error("cannot write {path}: {reason}")]
    Hdf5 {
        /// HDF5 path of the object being written.
        path: String,
        /// Why libhdf5 refused.
        reason: String,
    },
}

/// Creates a file at an unused path, and lets `write` fill its root group.
///
/// # Errors
/// See [`Error`], and those of `write`. After an error the file does not exist.
pub fn file<E: From<Error>>(
    path: &Path,
    write: impl for<'f> FnOnce(&CreatedObject<'f>) -> Result<(), E>,
) -> Result<(), E> {
    if let Err(error) = OpenOptions::new().write(true).create_new(true).open(path) {
        return Err(Error::Create { path: path.to_owned(), error }.into());
    }
    let written = fill(path, write);
    if written.is_err() {
        // The file is ours, and half a file is worthless. The first error is the one to report.
        std::fs::remove_file(path).ok();
    }
    written
}

fn fill<E: From<Error>>(path: &Path, write: impl for<'f> FnOnce(&CreatedObject<'f>) -> Result<(), E>) -> Result<(), E> {
    let _lock = LOCK.lock();
    prepare().at("/")?;
    let file = File::create(path)?;
    write(file.root())?;
    Ok(file.close()?)
}

/// Initialises the library and silences its error messages: we report them. Needs its lock.
fn prepare() -> Result<(), FailureReason> {
    // At its exit the library would repeat the writes that a full disk refused, and die.
    // SAFETY: no arguments. It fails if the library is initialised already; then the same call came before that.
    unsafe { h5::H5dont_atexit() };
    // SAFETY: no arguments.
    check(unsafe { h5::H5open() })?;
    // SAFETY: no callback.
    check(unsafe { h5e::H5Eset_auto2(h5e::H5E_DEFAULT, None, ptr::null_mut()) })?;
    Ok(())
}

/// Adds the object to an error of libhdf5.
trait Context<T> {
    /// `path` is the HDF5 path of the object being written.
    fn at(self, path: &str) -> Result<T, Error>;
}

impl<T> Context<T> for Result<T, FailureReason> {
    fn at(self, path: &str) -> Result<T, Error> {
        self.map_err(|reason| {
            let is_full = reason.0.contains(FULL);
            Error::Hdf5 { path: path.to_owned(), reason: if is_full { "the disk is full".into() } else { reason.0 } }
        })
    }
}

/// An open group or dataset (or the file: its root group), with its path. It cannot outlive the call that creates the
/// file.
#[derive(Debug)]
pub struct CreatedObject<'f> {
    id: Id,
    path: String,
    /// Belongs to one file alone, and to the thread that holds the lock.
    file: PhantomData<*mut &'f ()>,
}

/// A file being written.
#[derive(Debug)]
struct File<'f> {
    root: CreatedObject<'f>,
}

impl<'f> File<'f> {
    /// Creates the file, or empties the existing one. Needs the lock of the library.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| Error::Path(path.to_owned()))?;
        let id = timeless(*h5p::H5P_CLS_FILE_CREATE).and_then(|creation| {
            // SAFETY: a C string and open property lists.
            Id::own(unsafe { h5f::H5Fcreate(name.as_ptr(), h5f::H5F_ACC_TRUNC, creation.raw(), DEFAULT) })
        });
        Ok(Self { root: CreatedObject { id: id.at("/")?, path: "/".into(), file: PhantomData } })
    }

    /// The root group.
    pub fn root(&self) -> &CreatedObject<'f> {
        &self.root
    }

    /// Flushes and closes: the last moment at which a full disk shows.
    pub fn close(self) -> Result<(), Error> {
        // SAFETY: the file's identifier is open.
        check(unsafe { h5f::H5Fflush(self.root.id.raw(), h5f::H5F_scope_t::H5F_SCOPE_GLOBAL) }).at("/")?;
        let id = self.root.id.release();
        // SAFETY: the identifier was taken from its owner and is closed once.
        check(unsafe { h5f::H5Fclose(id) }).at("/")?;
        Ok(())
    }
}

impl<'f> CreatedObject<'f> {
    /// The HDF5 path.
    pub fn path(&self) -> &str {
        &self.path
    }

    fn raw(&self) -> i64 {
        self.id.raw()
    }

    fn child_path(&self, name: &str) -> String {
        format!("{}/{name}", self.path.trim_end_matches('/'))
    }

    /// Creates a group in this group.
    ///
    /// # Errors
    /// See [`Error::Hdf5`].
    pub fn group(&self, name: &str) -> Result<Self, Error> {
        let path = self.child_path(name);
        let id = c_string(name).and_then(|name| {
            let creation = timeless(*h5p::H5P_CLS_GROUP_CREATE)?;
            // SAFETY: a C string and open property lists.
            Id::own(unsafe { h5g::H5Gcreate2(self.id.raw(), name.as_ptr(), DEFAULT, creation.raw(), DEFAULT) })
        });
        let id = id.at(&path)?;
        Ok(Self { id, path, file: PhantomData })
    }

    /// Creates a soft link to `target` in this group.
    ///
    /// # Errors
    /// See [`Error::Hdf5`].
    pub fn soft_link(&self, name: &str, target: &str) -> Result<(), Error> {
        let link = c_string(target).and_then(|target| {
            let name = c_string(name)?;
            // SAFETY: C strings and an open group.
            check(unsafe { h5l::H5Lcreate_soft(target.as_ptr(), self.raw(), name.as_ptr(), DEFAULT, DEFAULT) })
        });
        link.map(drop).at(&self.child_path(name))
    }

    /// Creates a dataset in this group.
    ///
    /// # Errors
    /// See [`Error::Hdf5`].
    pub fn dataset(
        &self,
        name: &str,
        element: &ElementType,
        storage: &Storage,
        fill: &FillSetting,
    ) -> Result<CreatedDataset<'f>, Error> {
        let path = self.child_path(name);
        let created = Type::new(element).and_then(|datatype| {
            let id = create_dataset(self.id.raw(), Some(&c_string(name)?), &datatype, storage, fill)?;
            Ok((id, datatype))
        });
        let (id, datatype) = created.at(&path)?;
        Ok(CreatedDataset {
            node: CreatedObject { id, path, file: PhantomData },
            datatype,
            extents: storage.extents.clone(),
        })
    }

    /// Creates an attribute.
    ///
    /// # Errors
    /// See [`Error::Hdf5`].
    pub fn attribute(&self, name: &str, value: &AttributeValue) -> Result<(), Error> {
        let value = c_string(name).and_then(|name| create_value(self.raw(), &name, value));
        value.at(&self.path_of(name))
    }

    /// Creates an attribute with a reference to another object of the file.
    ///
    /// # Errors
    /// See [`Error::Hdf5`].
    pub fn reference(&self, name: &str, kind: References, to: &Self) -> Result<(), Error> {
        self.write_references(name, kind, &[to], false)
    }

    /// Creates an attribute with a list of references to other objects of the file.
    ///
    /// # Errors
    /// See [`Error::Hdf5`].
    pub fn references(&self, name: &str, kind: References, to: &[&Self]) -> Result<(), Error> {
        self.write_references(name, kind, to, true)
    }

    fn write_references(&self, name: &str, kind: References, to: &[&Self], is_list: bool) -> Result<(), Error> {
        let to: Vec<i64> = to.iter().map(|node| node.raw()).collect();
        let references = c_string(name).and_then(|name| create_references(self.raw(), &name, kind, &to, is_list));
        references.at(&self.path_of(name))
    }

    fn path_of(&self, attribute: &str) -> String {
        format!("{}@{attribute}", self.path)
    }
}

/// A dataset being written.
#[derive(Debug)]
pub struct CreatedDataset<'f> {
    node: CreatedObject<'f>,
    datatype: Type,
    extents: Vec<u64>,
}

impl<'f> CreatedDataset<'f> {
    /// The dataset as an object, for attributes and references.
    pub fn node(&self) -> &CreatedObject<'f> {
        &self.node
    }

    /// Writes elements of a one-dimensional dataset from `start` on.
    ///
    /// # Errors
    /// See [`Error::Hdf5`].
    pub fn write<T: Plain>(&self, start: u64, values: &[T]) -> Result<(), Error> {
        self.write_box(&[start], &[values.len() as u64], values)
    }

    /// Writes a box of elements.
    ///
    /// # Errors
    /// See [`Error::Hdf5`].
    pub fn write_box<T: Plain>(&self, start: &[u64], count: &[u64], values: &[T]) -> Result<(), Error> {
        if self.datatype.is_variable() || size_of::<T>() != self.datatype.size() {
            return Err(FailureReason::new("the elements are not of the dataset's type")).at(&self.node.path);
        }
        // SAFETY: the elements have the size of the datatype in memory and no pointers.
        unsafe { self.write_elements(start, count, values.len(), values.as_ptr().cast()) }.at(&self.node.path)
    }

    /// Writes variable-length strings of a one-dimensional dataset from `start` on.
    ///
    /// It writes empty strings as null pointers: the file then holds only an empty descriptor for each, whereas an
    /// empty C string takes 16 bytes of heap (16 MB for a million rows). Both read as the empty string.
    ///
    /// # Errors
    /// See [`Error::Hdf5`].
    pub fn write_texts(&self, start: u64, values: &[&CStr]) -> Result<(), Error> {
        if !self.datatype.is_variable() {
            return Err(FailureReason::new("the dataset holds no variable-length strings")).at(&self.node.path);
        }
        let pointers: Vec<_> =
            values.iter().map(|value| if value.is_empty() { ptr::null() } else { value.as_ptr() }).collect();
        // SAFETY: an element in memory is null or a pointer to a C string; the strings outlive the call.
        unsafe { self.write_elements(&[start], &[values.len() as u64], pointers.len(), pointers.as_ptr().cast()) }
            .at(&self.node.path)
    }

    /// Appends elements to a one-dimensional dataset.
    ///
    /// # Errors
    /// See [`Error::Hdf5`].
    pub fn append<T: Plain>(&mut self, values: &[T]) -> Result<(), Error> {
        let [start] = self.extents[..] else {
            return Err(FailureReason::new("only one dimension can be appended to")).at(&self.node.path);
        };
        let extent = start + values.len() as u64;
        // SAFETY: one extent for one dimension.
        check(unsafe { h5d::H5Dset_extent(self.node.id.raw(), &raw const extent) }).at(&self.node.path)?;
        self.extents = vec![extent];
        self.write(start, values)
    }

    /// # Safety
    /// `values` points to `length` elements of the datatype in memory.
    unsafe fn write_elements(
        &self,
        start: &[u64],
        count: &[u64],
        length: usize,
        values: *const c_void,
    ) -> Result<(), FailureReason> {
        if crate::catalogue::product(count) != Some(length as u64) {
            return Err(FailureReason::new("the box has another number of elements than are given"));
        }
        if length == 0 {
            return Ok(());
        }
        let file = hyperslab(&self.extents, start, count)?;
        let memory = space(count, None)?;
        // SAFETY: the memory space has `length` elements, for which the caller vouches. libhdf5 refuses a box outside
        // the extents.
        check(unsafe {
            h5d::H5Dwrite(self.node.id.raw(), self.datatype.memory(), memory.raw(), file.raw(), DEFAULT, values)
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h5::element::ElementNumber;

    #[test]
    fn what_goes_wrong_is_told_with_the_path_and_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let _lock = LOCK.lock();
        prepare().unwrap();
        let told = |result: Result<(), Error>| result.unwrap_err().to_string();

        let error = File::create(folder.path()).unwrap_err().to_string();
        assert!(error.contains("Is a directory"), "{error}");

        let file = File::create(&folder.path().join("a.h5")).unwrap();
        let group = file.root().group("g").unwrap();
        let number = &i64::ELEMENT;
        let dataset = group.dataset("d", number, &Storage::contiguous(&[3]), &FillSetting::of(7i64)).unwrap();
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
        let fill = FillSetting::of(7i16);
        let error = told(group.dataset("e", number, &Storage::contiguous(&[3]), &fill).map(drop));
        assert_eq!(error, "cannot write /g/e: the fill value is not of the datatype");
        dataset.node().attribute("twice", &AttributeValue::number(1u8)).unwrap();
        let error = told(dataset.node().attribute("twice", &AttributeValue::number(1u8)));
        assert!(error.starts_with("cannot write /g/d@twice: "), "{error}");
    }
}
