//! Attributes of groups and datasets, references among them.

use std::ffi::{CStr, c_void};

use super::SampleError;
use super::writer::{Context, Node};
use crate::h5::objects::attributes::{create_attribute, create_references};
use crate::h5::objects::c_string;
use crate::h5::objects::types::{Number, Text, Type};
use crate::h5::steps::References;

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
        // SAFETY: the caller vouches for the value.
        unsafe { create_attribute(self.raw(), name, datatype, length, value) }.at(&self.path_of(name))
    }

    fn path_of(&self, name: &CStr) -> String {
        format!("{}@{}", self.path(), name.to_string_lossy())
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
        self.write_references(name, kind, &[to], false)
    }

    /// A list of references to other objects of the file.
    pub fn references(&self, name: &CStr, kind: References, to: &[&Node]) -> Result<(), SampleError> {
        self.write_references(name, kind, to, true)
    }

    fn write_references(&self, name: &CStr, kind: References, to: &[&Node], is_list: bool) -> Result<(), SampleError> {
        let to: Vec<i64> = to.iter().map(|node| node.raw()).collect();
        create_references(self.raw(), name, kind, &to, is_list).at(&self.path_of(name))
    }
}
