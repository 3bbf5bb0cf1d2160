//! Creates HDF5 objects, for new files and for the writing worker. The library must be initialised.

pub(super) mod attributes;
pub(super) mod storage;
pub(super) mod types;

use std::ffi::{CStr, CString};
use std::ptr;

use hdf5_metno_sys::{h5d, h5p, h5s};

use self::storage::Storage;
use self::types::{Type, of_charset};
use super::element::FillSetting;
use super::library::{FailureReason, Id, check};
use crate::catalogue::Charset;

/// `H5P_DEFAULT`.
pub(super) const DEFAULT: i64 = 0;

/// Makes a C string of a name.
pub(super) fn c_string(text: &str) -> Result<CString, FailureReason> {
    CString::new(text).map_err(|_| FailureReason::new(format!("{text:?} contains a NUL byte")))
}

/// Creates a simple dataspace.
pub(super) fn space(dims: &[u64], max: Option<&[u64]>) -> Result<Id, FailureReason> {
    let rank = i32::try_from(dims.len()).map_err(|_| FailureReason::new("too many dimensions"))?;
    if max.is_some_and(|max| max.len() != dims.len()) {
        return Err(FailureReason::new("the extents and their limits differ in number"));
    }
    // SAFETY: `rank` extents each, or no limits.
    Id::own(unsafe { h5s::H5Screate_simple(rank, dims.as_ptr(), max.map_or(ptr::null(), <[u64]>::as_ptr)) })
}

/// Selects a box in a dataspace of these extents, for reading or writing.
pub(super) fn hyperslab(extents: &[u64], start: &[u64], count: &[u64]) -> Result<Id, FailureReason> {
    if start.len() != extents.len() || count.len() != extents.len() {
        return Err(FailureReason::new("the box has another number of dimensions than the dataset"));
    }
    let file = space(extents, None)?;
    let select = h5s::H5S_seloper_t::H5S_SELECT_SET;
    let (start, count) = (start.as_ptr(), count.as_ptr());
    // SAFETY: as many numbers as the dataspace has dimensions, checked above.
    check(unsafe { h5s::H5Sselect_hyperslab(file.raw(), select, start, ptr::null(), count, ptr::null()) })?;
    Ok(file)
}

/// A property list for links with UTF-8 names, which makes libhdf5 create the missing groups of a path.
pub(super) fn links() -> Result<Id, FailureReason> {
    // SAFETY: no pointers.
    let links = Id::own(unsafe { h5p::H5Pcreate(*h5p::H5P_CLS_LINK_CREATE) })?;
    // SAFETY: no pointers.
    check(unsafe { h5p::H5Pset_char_encoding(links.raw(), of_charset(Charset::Utf8)) })?;
    // SAFETY: no pointers.
    check(unsafe { h5p::H5Pset_create_intermediate_group(links.raw(), 1) })?;
    Ok(links)
}

/// Creates a dataset as a member of `location`; without a name, the dataset has no link yet.
pub(super) fn create_dataset(
    location: i64,
    name: Option<&CStr>,
    datatype: &Type,
    storage: &Storage,
    fill: &FillSetting,
) -> Result<Id, FailureReason> {
    let space = space(&storage.extents, Some(&storage.limits))?;
    let creation = storage.property_list()?;
    fill.set(&creation, datatype)?;
    let (datatype, space, creation) = (datatype.file(), space.raw(), creation.raw());
    let Some(name) = name else {
        // SAFETY: open identifiers.
        return Id::own(unsafe { h5d::H5Dcreate_anon(location, datatype, space, creation, DEFAULT) });
    };
    let links = links()?;
    // SAFETY: a C string and open identifiers.
    Id::own(unsafe { h5d::H5Dcreate2(location, name.as_ptr(), datatype, space, links.raw(), creation, DEFAULT) })
}
