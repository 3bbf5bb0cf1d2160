//! References in their form in memory: their target object, and their form in files.

use std::ffi::c_ulong;

use crate::catalogue::ReferenceKind;
use crate::h5::library::ffi::{self, Hid, Reference};
use crate::h5::library::{Id, check, text};
use crate::h5::worker::address::info_of;

/// Opens the target of a reference; `None`: a null or dangling reference.
pub(in crate::h5::worker) fn dereference(location: Hid, kind: ReferenceKind, element: &[u8]) -> Option<Id> {
    let mut reference = copy(element)?;
    // SAFETY: an open location; 64 bytes hold a reference of any kind, in the form that libhdf5 itself returned.
    let opened = unsafe {
        let old = |kind| ffi::H5Rdereference2(location, ffi::DEFAULT, kind, reference.0.as_ptr().cast());
        match kind {
            ReferenceKind::Object => Id::own(old(ffi::R_OBJECT1)),
            ReferenceKind::Region => Id::own(old(ffi::R_REGION1)),
            ReferenceKind::Standard => Id::own(ffi::H5Ropen_object(&mut reference, ffi::DEFAULT, ffi::DEFAULT)),
        }
    };
    opened.ok()
}

/// An aligned copy of a reference in memory; `None`: a null reference.
fn copy(element: &[u8]) -> Option<Reference> {
    if element.iter().all(|byte| *byte == 0) {
        return None;
    }
    let mut reference = Reference([0; 64]);
    reference.0.get_mut(..element.len())?.copy_from_slice(element);
    Some(reference)
}

/// The stored form of a standard reference: its type, and the bytes after the header. These are the object's token
/// after its length; then the selection after its length and rank, or the attribute's name after its length. `None`: a
/// null or dangling reference, or one into another file than that of this number.
pub(super) fn stored(element: &[u8], file_number: c_ulong, address_size: u8) -> Option<(u8, Vec<u8>)> {
    let object = dereference(ffi::DEFAULT, ReferenceKind::Standard, element)?;
    let info = info_of(object.raw()).ok().filter(|info| info.file_number == file_number)?;
    let mut reference = copy(element)?;
    let mut body = vec![address_size];
    body.extend_from_slice(info.token.0.get(..usize::from(address_size))?);
    // SAFETY: as in `dereference`.
    let kind = unsafe { ffi::H5Rget_type(&reference) };
    match kind {
        ffi::R_REGION2 => {
            // SAFETY: as in `dereference`; an open dataspace then.
            let space = Id::own(unsafe { ffi::H5Ropen_region(&mut reference, ffi::DEFAULT, ffi::DEFAULT) }).ok()?;
            let rank = check(unsafe { ffi::H5Sget_simple_extent_ndims(space.raw()) }).ok()?;
            let selection = selection(&space)?;
            body.extend_from_slice(&u32::try_from(selection.len()).ok()?.to_le_bytes());
            body.extend_from_slice(&(rank as u32).to_le_bytes());
            body.extend_from_slice(&selection);
        }
        ffi::R_ATTRIBUTE => {
            // SAFETY: as in `dereference`.
            let name = text(|buffer, size| unsafe { ffi::H5Rget_attr_name(&reference, buffer, size) }).ok()?;
            body.extend_from_slice(&u16::try_from(name.len()).ok()?.to_le_bytes());
            body.extend_from_slice(&name);
        }
        _ => {}
    }
    Some((u8::try_from(kind).ok()?, body))
}

/// A selection in its form in files: the part of `H5Sencode2`'s result after the extent.
fn selection(space: &Id) -> Option<Vec<u8>> {
    let mut length = 0;
    // SAFETY: an open dataspace; without a buffer the call returns only the length.
    check(unsafe { ffi::H5Sencode2(space.raw(), std::ptr::null_mut(), &mut length, ffi::DEFAULT) }).ok()?;
    let mut bytes = vec![0u8; length];
    // SAFETY: as above; `bytes` has the returned length.
    check(unsafe { ffi::H5Sencode2(space.raw(), bytes.as_mut_ptr().cast(), &mut length, ffi::DEFAULT) }).ok()?;
    // Three bytes of versions and widths, the length of the extent, the extent, the selection.
    let extent = u32::from_le_bytes(*bytes.get(3..)?.first_chunk()?);
    bytes.get(7usize.checked_add(usize::try_from(extent).ok()?)?..).map(<[u8]>::to_vec)
}
