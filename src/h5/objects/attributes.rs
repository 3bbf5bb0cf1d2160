//! Attributes with a value, and references to objects.

use std::ffi::{CStr, c_void};

use hdf5_metno_sys::{h5a, h5r, h5s};

use super::types::Type;
use super::{DEFAULT, space};
use crate::h5::element::AttributeValue;
use crate::h5::library::{FailureReason, Id, check};
use crate::h5::steps::References;

fn scalar() -> Result<Id, FailureReason> {
    // SAFETY: no pointers.
    Id::own(unsafe { h5s::H5Screate(h5s::H5S_class_t::H5S_SCALAR) })
}

/// Creates an attribute of an object and writes its value of `length` elements (`None`: a scalar).
///
/// # Safety
/// `value` points to that many elements of the datatype in memory.
unsafe fn create_attribute(
    object: i64,
    name: &CStr,
    datatype: &Type,
    length: Option<u64>,
    value: *const c_void,
) -> Result<(), FailureReason> {
    let space = match length {
        None => scalar()?,
        Some(length) => space(&[length], None)?,
    };
    // SAFETY: a C string and open identifiers.
    let attribute =
        Id::own(unsafe { h5a::H5Acreate2(object, name.as_ptr(), datatype.file(), space.raw(), DEFAULT, DEFAULT) })?;
    // SAFETY: the caller vouches for the value.
    check(unsafe { h5a::H5Awrite(attribute.raw(), datatype.memory(), value) })?;
    Ok(())
}

/// Creates an attribute of an object.
pub(in crate::h5) fn create_value(object: i64, name: &CStr, value: &AttributeValue) -> Result<(), FailureReason> {
    let (AttributeValue::Scalar(element, bytes) | AttributeValue::List(element, bytes)) = value;
    let datatype = Type::new(element)?;
    let length = match value {
        AttributeValue::Scalar(..) => None,
        AttributeValue::List(..) => Some((bytes.len() / datatype.size()) as u64),
    };
    let elements = length.map_or(1, |length| length as usize);
    if bytes.len() != elements * datatype.size() || !datatype.pointers()?.is_empty() {
        return Err(FailureReason::new("the value is not of its type"));
    }
    // SAFETY: as many elements of a type without pointers, checked above.
    unsafe { create_attribute(object, name, &datatype, length, bytes.as_ptr().cast()) }
}

/// Creates an attribute of references to open objects (a scalar unless `is_list`).
pub(in crate::h5) fn create_references(
    object: i64,
    name: &CStr,
    kind: References,
    to: &[i64],
    is_list: bool,
) -> Result<(), FailureReason> {
    if !is_list && to.len() != 1 {
        return Err(FailureReason::new(format!("{} references for one", to.len())));
    }
    let datatype = Type::reference(kind)?;
    let length = is_list.then_some(to.len() as u64);
    match kind {
        References::Standard => {
            let references = to.iter().map(|object| StandardReference::to(*object)).collect::<Result<Vec<_>, _>>()?;
            // SAFETY: the wrapper has the layout of H5R_ref_t; a scalar has exactly one.
            unsafe { create_attribute(object, name, &datatype, length, references.as_ptr().cast()) }
        }
        References::Object => {
            let references = to.iter().map(|object| object_reference(*object)).collect::<Result<Vec<_>, _>>()?;
            // SAFETY: as many addresses (hobj_ref_t).
            unsafe { create_attribute(object, name, &datatype, length, references.as_ptr().cast()) }
        }
    }
}

/// A reference of the unified kind, which holds its file open until its release.
#[repr(transparent)]
struct StandardReference(h5r::H5R_ref_t);

impl StandardReference {
    fn to(object: i64) -> Result<Self, FailureReason> {
        let mut reference = h5r::H5R_ref_t::default();
        // SAFETY: a C string, and the reference is written before it is used.
        check(unsafe { h5r::H5Rcreate_object(object, c".".as_ptr(), DEFAULT, &raw mut reference) })?;
        Ok(Self(reference))
    }
}

impl Drop for StandardReference {
    fn drop(&mut self) {
        // SAFETY: H5Rcreate_object created it, and this releases it once. A failure changes nothing, but must leave no
        // message.
        check(unsafe { h5r::H5Rdestroy(&raw mut self.0) }).ok();
    }
}

fn object_reference(object: i64) -> Result<u64, FailureReason> {
    let mut reference = 0u64;
    let (place, kind) = ((&raw mut reference).cast(), h5r::H5R_type_t::H5R_OBJECT1);
    // SAFETY: a C string, and an object reference is an address of eight bytes.
    check(unsafe { h5r::H5Rcreate(place, object, c".".as_ptr(), kind, -1) })?;
    Ok(reference)
}
