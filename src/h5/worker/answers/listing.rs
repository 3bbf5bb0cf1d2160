//! Lists the links of a group through libhdf5, with the values of soft and external ones.
//!
//! Names and values of a group of the old format (a symbol table) are in one heap, which libhdf5 reads as a whole
//! whenever its cache has no room for it. The heap is in memory during the walk through the group, so the walk reads
//! the values as well.

use std::collections::HashSet;
use std::ffi::{CStr, c_char, c_void};
use std::time::Instant;

use super::attribute::OF_ALL_MEMBERS;
use crate::catalogue::ObjectId;
use crate::h5::library::ffi::{self, Herr, Hid, LinkInfo, ObjectToken};
use crate::h5::library::{FailureReason, Id, c_string, check};
use crate::h5::protocol::MAX_LINKS;
use crate::h5::worker::kept::{LinkListing, ListedLink};
use crate::h5::worker::start::with_room_for_links;

/// Longest value of a soft or external link, in bytes.
const MAX_VALUE: usize = 64 << 10;

/// Most duplicate names in a message.
const MOST_NAMED: usize = 8;

/// Most bytes of values kept of one group: many links may share one value, which then takes little room in the file.
const MOST_VALUES: usize = 64 << 20;

/// An empty listing of a group: in creation order if that is tracked and indexed, otherwise bytewise by name.
pub(super) fn begin(group: &Id, id: ObjectId) -> LinkListing {
    let mut flags = 0;
    // SAFETY: an open group; a place for the flags.
    let creation_order = unsafe {
        let status = Id::own(ffi::H5Gget_create_plist(group.raw()))
            .and_then(|gcpl| check(ffi::H5Pget_link_creation_order(gcpl.raw(), &mut flags)));
        let both = ffi::CREATION_ORDER_TRACKED | ffi::CREATION_ORDER_INDEXED;
        status.is_ok() && flags & both == both
    };
    let mut listing = LinkListing::new(id, creation_order);
    (listing.values_left, listing.link_values_left) = (OF_ALL_MEMBERS, MOST_VALUES);
    listing
}

/// The links of a group by name, as far as they can be listed; an error if none can.
pub(super) fn found(group: &Id, id: ObjectId) -> Result<Vec<ListedLink>, FailureReason> {
    let mut listing = LinkListing::new(id, false);
    go_on(&mut listing, group, None)?;
    Ok(listing.links)
}

/// Adds links to a listing while time remains; once it is complete, they are in its order. An error if none can be
/// listed.
pub(super) fn go_on(listing: &mut LinkListing, group: &Id, until: Option<Instant>) -> Result<(), FailureReason> {
    let Some(mut position) = listing.next else { return Ok(()) };
    let index = if listing.creation_order { ffi::INDEX_CREATION } else { ffi::INDEX_NAME };
    let (links, values_left) = (std::mem::take(&mut listing.links), listing.link_values_left);
    let mut collected = Collected { links, values_left, until, is_late: false };
    // Unordered: for an order, libhdf5 reads all links first, names twice.
    // SAFETY: the callback gets `collected` back and is not called afterwards.
    let status = with_room_for_links(group, || unsafe {
        let data = (&raw mut collected).cast();
        ffi::H5Literate2(group.raw(), index, ffi::ITER_NATIVE, &mut position, collect, data)
    });
    (listing.links, listing.link_values_left) = (collected.links, collected.values_left);
    listing.next = None;
    match check(status) {
        Ok(0) => {}
        Ok(_) if collected.is_late => {
            listing.next = Some(position);
            return Ok(());
        }
        Ok(_) => listing.failure = Some(FailureReason::new(format!("more than {MAX_LINKS} links"))),
        Err(reason) if listing.links.is_empty() => return Err(reason),
        Err(reason) => listing.failure = Some(reason),
    }
    match listing.creation_order {
        true => listing.links.sort_by_key(|link| link.creation),
        false => listing.links.sort_by(|a, b| a.name.cmp(&b.name)),
    }
    if let Some(said) = leave_what_names_find(&mut listing.links, group) {
        let failure = listing.failure.take().map(|FailureReason(text)| format!("{text}; {said}"));
        listing.failure = Some(FailureReason(failure.unwrap_or(said)));
    }
    Ok(())
}

/// Keeps, of links with the same name, which only a damaged group has, the one that libhdf5 finds by it; names them in
/// the result.
fn leave_what_names_find(links: &mut Vec<ListedLink>, group: &Id) -> Option<String> {
    let mut places: Vec<usize> = (0..links.len()).collect();
    // Usually they are in this order already.
    places.sort_by(|a, b| links[*a].name.cmp(&links[*b].name));
    let (mut others, mut names) = (HashSet::<usize>::new(), Vec::new());
    for alike in places.chunk_by(|a, b| links[*a].name == links[*b].name).filter(|alike| alike.len() > 1) {
        let name = &links[alike[0]].name;
        let info = c_string(name).and_then(|name| link_info(group, &name));
        let kept = alike
            .iter()
            .find(|at| {
                let ListedLink { kind, token, .. } = &links[**at];
                info.as_ref().is_ok_and(|info| info.kind == *kind && ObjectToken(info.value.0) == *token)
            })
            .unwrap_or(&alike[0]);
        others.extend(alike.iter().filter(|at| *at != kept));
        if names.len() < MOST_NAMED {
            names.push(format!("{name:?}"));
        }
    }
    if others.is_empty() {
        return None;
    }
    let mut at = 0..;
    links.retain(|_| at.next().is_none_or(|at| !others.contains(&at)));
    let (count, names) = (others.len(), names.join(", "));
    Some(format!("{count} of its links share the name of another ({names}); libhdf5 finds the one shown here"))
}

/// Looks a link up by its name, which has no slash, so libhdf5 traverses nothing.
pub(super) fn link_info(group: &Id, name: &CStr) -> Result<LinkInfo, FailureReason> {
    let mut info =
        LinkInfo { kind: -1, creation_valid: false, creation: 0, charset: 0, value: ffi::LinkValue([0; 16]) };
    // SAFETY: an open group, a C string, a place for the answer.
    check(unsafe { ffi::H5Lget_info2(group.raw(), name.as_ptr(), &mut info, ffi::DEFAULT) })?;
    Ok(info)
}

/// The links of a walk in progress.
struct Collected {
    links: Vec<ListedLink>,
    values_left: usize,
    until: Option<Instant>,
    is_late: bool,
}

/// Number of links between two checks of the clock.
const UNWATCHED: usize = 1024;

unsafe extern "C" fn collect(group: Hid, name: *const c_char, info: *const LinkInfo, data: *mut c_void) -> Herr {
    // SAFETY: `data` is what was given to H5Literate2; name and info are valid during the call.
    let (all, name, info) = unsafe { (&mut *data.cast::<Collected>(), CStr::from_ptr(name), &*info) };
    if all.links.len() >= MAX_LINKS {
        return 1;
    }
    let has_value = matches!(info.kind, ffi::L_SOFT | ffi::L_EXTERNAL) && all.values_left > 0;
    // A failure here repeats when the value is needed, and gives the reason then.
    let value = if has_value { value_of(group, name, info, all.values_left).ok() } else { None };
    all.values_left -= value.as_ref().map_or(0, Vec::len);
    all.links.push(ListedLink {
        name: name.to_bytes().into(),
        kind: info.kind,
        token: ObjectToken(info.value.0),
        creation: info.creation,
        value,
    });
    let is_watched = has_value || all.links.len().is_multiple_of(UNWATCHED);
    all.is_late = is_watched && all.until.is_some_and(|until| Instant::now() >= until);
    Herr::from(all.is_late)
}

/// The value of a soft link (without its NUL) or of an external link (packed) during a listing; an error if it is
/// longer than `most`.
pub(super) fn value_of(group: Hid, name: &CStr, info: &LinkInfo, most: usize) -> Result<Vec<u8>, FailureReason> {
    let size = u64::from_ne_bytes(info.value.0[..8].try_into().unwrap_or_default());
    let size = usize::try_from(size).ok().filter(|size| *size <= MAX_VALUE);
    let size = size.ok_or_else(|| FailureReason::new(format!("a link with a value of more than {MAX_VALUE} bytes")))?;
    if size > most {
        return Err(FailureReason::new("no room for the value of a link"));
    }
    let mut value = vec![0u8; size];
    // SAFETY: an open group, a C string; `value` has the size given.
    check(unsafe { ffi::H5Lget_val(group, name.as_ptr(), value.as_mut_ptr().cast(), size, ffi::DEFAULT) })?;
    if info.kind == ffi::L_SOFT {
        let end = value.iter().position(|byte| *byte == 0).unwrap_or(size);
        value.truncate(end);
    }
    Ok(value)
}
