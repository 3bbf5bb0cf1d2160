//! Attributes of groups and datasets, references among them.

use std::ffi::{CStr, c_void};

use hdf5_metno_sys::{h5a, h5r, h5s};

use super::SampleError;
use super::types::{Number, Text, Type};
use super::writer::{Context, DEFAULT, Node, c_string, space};
use crate::h5::worker::error::{Id, Reason, check};

/// How references are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum References {
    /// `H5T_STD_REF`, of HDF5 1.12 and HEP001 of July 2026.
    Standard,
    /// `H5T_STD_REF_OBJ`, of HEP001 of April 2026.
    Object,
}

fn scalar() -> Result<Id, Reason> {
    // SAFETY: no pointers.
    Id::own(unsafe { h5s::H5Screate(h5s::H5S_class_t::H5S_SCALAR) })
}

impl Node {
    /// Creates an attribute and writes its value, `length` elements (a scalar without).
    ///
    /// # Safety
    /// `value` leads to as many elements of the datatype in memory.
    unsafe fn attribute(
        &self,
        name: &CStr,
        datatype: &Type,
        length: Option<u64>,
        value: *const c_void,
    ) -> Result<(), SampleError> {
        let write = || {
            let space = match length {
                None => scalar()?,
                Some(length) => space(&[length], None)?,
            };
            // SAFETY: a C string and open identifiers.
            let attribute = Id::own(unsafe {
                h5a::H5Acreate2(self.raw(), name.as_ptr(), datatype.file(), space.raw(), DEFAULT, DEFAULT)
            })?;
            // SAFETY: the caller vouches for the value.
            check(unsafe { h5a::H5Awrite(attribute.raw(), datatype.memory(), value) })
        };
        write().at(&format!("{}@{}", self.path(), name.to_string_lossy()))?;
        Ok(())
    }

    /// A scalar fixed-length string, terminated by a NUL.
    pub fn text(&self, name: &CStr, charset: Text, value: &str) -> Result<(), SampleError> {
        let datatype = Type::fixed_text(charset, value.len() + 1).at(self.path())?;
        let bytes = c_string(value).at(self.path())?;
        // SAFETY: one element of that many bytes.
        unsafe { self.attribute(name, &datatype, None, bytes.as_ptr().cast()) }
    }

    /// A scalar ASCII string of exactly its bytes, without a NUL.
    pub fn text_padded(&self, name: &CStr, value: &str) -> Result<(), SampleError> {
        let datatype = Type::padded_text(value.len()).at(self.path())?;
        // SAFETY: one element of that many bytes.
        unsafe { self.attribute(name, &datatype, None, value.as_ptr().cast()) }
    }

    /// A list of fixed-length UTF-8 strings.
    pub fn texts(&self, name: &CStr, values: &[&str]) -> Result<(), SampleError> {
        let size = values.iter().map(|value| value.len()).max().unwrap_or(0) + 1;
        let datatype = Type::fixed_text(Text::Utf8, size).at(self.path())?;
        let mut bytes = Vec::new();
        for value in values {
            bytes.extend_from_slice(value.as_bytes());
            bytes.resize(bytes.len() + datatype.size() - value.len(), 0);
        }
        // SAFETY: every value takes `size` bytes.
        unsafe { self.attribute(name, &datatype, Some(values.len() as u64), bytes.as_ptr().cast()) }
    }

    /// A scalar number.
    pub fn number<T: Number>(&self, name: &CStr, value: T) -> Result<(), SampleError> {
        let datatype = Type::number::<T>().at(self.path())?;
        // SAFETY: one element of the type.
        unsafe { self.attribute(name, &datatype, None, (&raw const value).cast()) }
    }

    /// A list of numbers.
    pub fn numbers<T: Number>(&self, name: &CStr, values: &[T]) -> Result<(), SampleError> {
        let datatype = Type::number::<T>().at(self.path())?;
        // SAFETY: as many elements of the type.
        unsafe { self.attribute(name, &datatype, Some(values.len() as u64), values.as_ptr().cast()) }
    }

    /// A scalar of the boolean datatype (HEP001 of July 2026 §5).
    pub fn boolean(&self, name: &CStr, value: bool) -> Result<(), SampleError> {
        let datatype = Type::boolean().at(self.path())?;
        let value = i8::from(value);
        // SAFETY: one element of a one-byte type.
        unsafe { self.attribute(name, &datatype, None, (&raw const value).cast()) }
    }

    /// A scalar reference to another object of the file.
    pub fn reference(&self, name: &CStr, kind: References, to: &Node) -> Result<(), SampleError> {
        self.write_references(name, kind, &[to], None)
    }

    /// A list of references to other objects of the file.
    pub fn references(&self, name: &CStr, kind: References, to: &[&Node]) -> Result<(), SampleError> {
        self.write_references(name, kind, to, Some(to.len() as u64))
    }

    fn write_references(
        &self,
        name: &CStr,
        kind: References,
        to: &[&Node],
        length: Option<u64>,
    ) -> Result<(), SampleError> {
        let datatype = Type::reference(kind).at(self.path())?;
        match kind {
            References::Standard => {
                let references = to.iter().map(|node| StandardReference::to(node)).collect::<Result<Vec<_>, _>>();
                let references = references.at(self.path())?;
                // SAFETY: the wrapper has the layout of H5R_ref_t; a scalar is written with one.
                unsafe { self.attribute(name, &datatype, length, references.as_ptr().cast()) }
            }
            References::Object => {
                let references = to.iter().map(|node| object_reference(node)).collect::<Result<Vec<_>, _>>();
                let references = references.at(self.path())?;
                // SAFETY: as many addresses (hobj_ref_t).
                unsafe { self.attribute(name, &datatype, length, references.as_ptr().cast()) }
            }
        }
    }
}

/// A reference of the unified kind, which holds its file open until it is released.
#[repr(transparent)]
struct StandardReference(h5r::H5R_ref_t);

impl StandardReference {
    fn to(node: &Node) -> Result<Self, Reason> {
        let path = c_string(node.path())?;
        let mut reference = h5r::H5R_ref_t::default();
        // SAFETY: a C string, and the reference is written before it is used.
        check(unsafe { h5r::H5Rcreate_object(node.raw(), path.as_ptr(), DEFAULT, &raw mut reference) })?;
        Ok(Self(reference))
    }
}

impl Drop for StandardReference {
    fn drop(&mut self) {
        // SAFETY: it was created by H5Rcreate_object and is released once. A failure is nobody's concern any more, but
        // must leave no message.
        check(unsafe { h5r::H5Rdestroy(&raw mut self.0) }).ok();
    }
}

fn object_reference(node: &Node) -> Result<u64, Reason> {
    let path = c_string(node.path())?;
    let mut reference = 0u64;
    // SAFETY: a C string, and an object reference is an address of eight bytes.
    check(unsafe {
        h5r::H5Rcreate((&raw mut reference).cast(), node.raw(), path.as_ptr(), h5r::H5R_type_t::H5R_OBJECT1, -1)
    })?;
    Ok(reference)
}
