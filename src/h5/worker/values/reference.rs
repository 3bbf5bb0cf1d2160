//! References in the form they have in memory: the object behind one, and the form they have in files.

use std::ffi::c_ulong;

use crate::catalogue::ReferenceKind;
use crate::h5::library::ffi::{self, Hid, Reference};
use crate::h5::library::{Id, check, text};
use crate::h5::worker::address::info_of;

/// Opens what a reference points to.
pub(in crate::h5::worker) fn dereference(location: Hid, kind: ReferenceKind, element: &[u8]) -> Option<Id> {
    let mut reference = copy(element)?;
    // SAFETY: an open location; 64 bytes hold a reference of any kind, in the form libhdf5 itself gave.
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

/// A reference in memory of its own; `None` for a null one.
fn copy(element: &[u8]) -> Option<Reference> {
    if element.iter().all(|byte| *byte == 0) {
        return None;
    }
    let mut reference = Reference([0; 64]);
    reference.0.get_mut(..element.len())?.copy_from_slice(element);
    Some(reference)
}

/// A standard reference as it is stored: its type, and what stands behind the header: the object's token behind its
/// length; then the selection behind its length and rank, or the attribute's name behind its length. `None` for a null
/// or dangling one, and for one into another file than that of this number.
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

/// A selection in the form it has in files: what `H5Sencode2` puts behind the extent.
fn selection(space: &Id) -> Option<Vec<u8>> {
    let mut length = 0;
    // SAFETY: an open dataspace; without a buffer only the length is asked for.
    check(unsafe { ffi::H5Sencode2(space.raw(), std::ptr::null_mut(), &mut length, ffi::DEFAULT) }).ok()?;
    let mut bytes = vec![0u8; length];
    // SAFETY: as above; `bytes` has the length asked for.
    check(unsafe { ffi::H5Sencode2(space.raw(), bytes.as_mut_ptr().cast(), &mut length, ffi::DEFAULT) }).ok()?;
    // Three bytes of versions and widths, the length of the extent, the extent, the selection.
    let extent = u32::from_le_bytes(*bytes.get(3..)?.first_chunk()?);
    bytes.get(7usize.checked_add(usize::try_from(extent).ok()?)?..).map(<[u8]>::to_vec)
}
