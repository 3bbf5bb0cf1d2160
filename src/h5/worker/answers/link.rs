//! Links: listing a group, and resolving paths without ever letting libhdf5 follow one into another file.

use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use bstr::BString;

use super::attribute::{OF_A_MEMBER, OF_ALL_MEMBERS, OF_ONE};
use crate::catalogue::{Link, ObjectId, Target};
use crate::h5::library::ffi::{self, Herr, Hid, LinkInfo, Token};
use crate::h5::library::{Id, Reason, c_string, check};
use crate::h5::protocol::{Answer, GroupPage, MAX_ITEM, MAX_LINKS, PAGE, Refusal};
use crate::h5::worker::address::{address_in, address_of};
use crate::h5::worker::kept::{Found, Listing};
use crate::h5::worker::session::Session;
use crate::h5::worker::start::with_room_for_links;

/// Soft and external links that one path may pass.
const MAX_HOPS: usize = 16;

/// Longest path of a soft or external link.
const MAX_VALUE: usize = 64 << 10;

impl Session {
    /// A page of a group, of links before `end`.
    pub fn group(&mut self, id: ObjectId, start: u64, end: u64) -> Result<Answer, Refusal> {
        let (began, page_time) = (Instant::now(), self.page_time());
        let group = self.open_object(id)?;
        // SAFETY: an open object.
        if unsafe { ffi::H5Iget_type(group.raw()) } != ffi::I_GROUP {
            return Err(Refusal::Hdf5(format!("the object at address {} is no group", id.address)));
        }
        // Links come and go only in files that are being written; those are read as they were at the first page.
        let mut listing = match self.listing.take() {
            Some(listing) if (start > 0 || listing.next.is_some()) && listing.id == id => listing,
            _ => begin(&group, id),
        };
        go_on(&mut listing, &group, Some(began + page_time))?;
        if listing.next.is_some() {
            self.listing = Some(listing);
            return Ok(Answer::Again);
        }
        let mut page = GroupPage {
            attributes: if start == 0 { self.attributes(&group, id.file, OF_ONE)? } else { Vec::new() },
            creation_order: listing.creation_order,
            total: listing.links.len() as u64,
            count: 0,
            links: Vec::new(),
            next: None,
        };
        let links = listing.links.iter().skip(usize::try_from(start).unwrap_or(usize::MAX));
        let mut values_left = listing.values_left;
        for (next, found) in (start..).zip(links) {
            if next >= end || page.links.len() >= PAGE || (page.count > 0 && began.elapsed() >= page_time) {
                page.next = Some(next);
                break;
            }
            self.values_left = Some(values_left);
            let target = self.target(&group, id, found);
            values_left = self.values_left.take().unwrap_or(0);
            page.push(&Link { name: found.name.clone(), target });
        }
        listing.values_left = values_left;
        if page.next.is_none() {
            if let Some(Reason(text)) = &listing.failure {
                // No link has an empty name: this one stands for those that could not be listed.
                page.push(&Link { name: BString::default(), target: Target::Unreadable(text.clone()) });
            }
        } else {
            self.listing = Some(listing);
        }
        Ok(Answer::Group(page))
    }

    fn target(&mut self, group: &Id, id: ObjectId, found: &Found) -> Target {
        let target = match found.kind {
            ffi::L_HARD => self.address(id.file, found.token).map(|id| Target::Hard(self.object(id, OF_A_MEMBER))),
            ffi::L_SOFT => value(group, &found.name).map(|path| {
                let object = self.resolve(id, &path, &mut 0).ok().map(|id| self.object(id, OF_A_MEMBER));
                Target::Soft { path: path.into(), object: object.filter(is_there).map(Box::new) }
            }),
            ffi::L_EXTERNAL => value(group, &found.name).and_then(|value| unpack(&value)).map(|(file, path)| {
                let object =
                    self.resolve_external(id.file, &file, &path, &mut 0).ok().map(|id| self.object(id, OF_A_MEMBER));
                Target::External { file: file.into(), path: path.into(), object: object.filter(is_there).map(Box::new) }
            }),
            other => Ok(Target::UserDefined(other as u32)),
        };
        target.unwrap_or_else(|Reason(text)| Target::Unreadable(text))
    }

    fn address(&mut self, file: u32, token: Token) -> Result<ObjectId, Reason> {
        Ok(ObjectId { file, address: address_in(token, self.file(file)?.address_size) })
    }

    /// The object at the end of `path`, which begins at the group `from` or, absolute, at the root of its file.
    pub fn resolve(&mut self, from: ObjectId, path: &[u8], hops: &mut usize) -> Result<ObjectId, Reason> {
        let mut at = from;
        if path.first() == Some(&b'/') {
            let file = self.file(from.file)?;
            at.address = address_of(file.id.raw(), file.address_size)?;
        }
        for name in path.split(|byte| *byte == b'/').filter(|name| !matches!(name, [] | [b'.'])) {
            let group = self.open_object(at)?;
            // SAFETY: an open object.
            if unsafe { ffi::H5Iget_type(group.raw()) } != ffi::I_GROUP {
                return Err(Reason::new("a path through something that is no group"));
            }
            let info = link_info(&group, name)?;
            at = match info.kind {
                ffi::L_HARD => self.address(at.file, Token(info.value.0))?,
                ffi::L_SOFT => {
                    hop(hops)?;
                    let path = value(&group, name)?;
                    self.resolve(at, &path, hops)?
                }
                ffi::L_EXTERNAL => {
                    let (file, path) = unpack(&value(&group, name)?)?;
                    self.resolve_external(at.file, &file, &path, hops)?
                }
                other => return Err(Reason::new(format!("a path through a link of class {other}"))),
            };
        }
        Ok(at)
    }

    fn resolve_external(&mut self, from: u32, file: &[u8], path: &[u8], hops: &mut usize) -> Result<ObjectId, Reason> {
        hop(hops)?;
        if !self.follows() {
            return Err(Reason::new("a path through an external link, which are not followed"));
        }
        let name = Path::new(OsStr::from_bytes(file));
        let folder = self.folder_of(from).map(Path::to_owned).unwrap_or_default();
        let number = self.number_of(&folder.join(name))?;
        let root = {
            let file = self.file(number)?;
            address_of(file.id.raw(), file.address_size)?
        };
        self.resolve(ObjectId { file: number, address: root }, path, hops)
    }
}

/// A soft or external link to something that does not open leads nowhere.
fn is_there(object: &crate::catalogue::Object) -> bool {
    !matches!(object, crate::catalogue::Object::Unreadable { .. })
}

impl GroupPage {
    fn push(&mut self, link: &Link) {
        let before = self.links.len();
        let encoded = postcard::to_extend(link, std::mem::take(&mut self.links));
        match encoded {
            Ok(links) if links.len() - before <= MAX_ITEM => self.links = links,
            Ok(mut links) => {
                let bytes = links.len() - before;
                links.truncate(before);
                self.links = links;
                let text = format!("its description of {bytes} bytes is larger than {MAX_ITEM}");
                self.push(&Link { name: link.name.clone(), target: Target::Unreadable(text) });
                return;
            }
            // Nothing in a link fails to encode; were it so, the daemon would refuse the page for its count.
            Err(_) => {}
        }
        self.count += 1;
    }
}

fn hop(hops: &mut usize) -> Result<(), Reason> {
    *hops += 1;
    if *hops > MAX_HOPS { Err(Reason::new(format!("a path through more than {MAX_HOPS} links"))) } else { Ok(()) }
}

/// A listing of a group with nothing in it yet: in creation order where that is tracked and indexed, else bytewise by
/// name.
fn begin(group: &Id, id: ObjectId) -> Listing {
    let mut flags = 0;
    // SAFETY: an open group; a place for the flags.
    let creation_order = unsafe {
        let status = Id::own(ffi::H5Gget_create_plist(group.raw()))
            .and_then(|gcpl| check(ffi::H5Pget_link_creation_order(gcpl.raw(), &mut flags)));
        let both = ffi::CREATION_ORDER_TRACKED | ffi::CREATION_ORDER_INDEXED;
        status.is_ok() && flags & both == both
    };
    empty(id, creation_order)
}

/// A listing before its first link.
fn empty(id: ObjectId, creation_order: bool) -> Listing {
    Listing { id, creation_order, links: Vec::new(), next: Some(0), failure: None, values_left: OF_ALL_MEMBERS }
}

/// The links of a group by name, as far as they can be listed; an error where that would be none at all.
pub(super) fn found(group: &Id, id: ObjectId) -> Result<Vec<Found>, Reason> {
    let mut listing = empty(id, false);
    go_on(&mut listing, group, None)?;
    Ok(listing.links)
}

/// Adds links to a listing, as far as there is time; once it is whole, they are in its order. An error where there
/// would be none at all.
fn go_on(listing: &mut Listing, group: &Id, until: Option<Instant>) -> Result<(), Reason> {
    let Some(mut position) = listing.next else { return Ok(()) };
    let index = if listing.creation_order { ffi::INDEX_CREATION } else { ffi::INDEX_NAME };
    let mut collected = Collected { links: std::mem::take(&mut listing.links), until, is_late: false };
    // libhdf5 puts links in order by reading all of them first, names twice.
    // SAFETY: the callback gets `collected` back and is not called afterwards.
    let status = with_room_for_links(group, || unsafe {
        let data = (&raw mut collected).cast();
        ffi::H5Literate2(group.raw(), index, ffi::ITER_NATIVE, &mut position, collect, data)
    });
    listing.links = collected.links;
    listing.next = None;
    match check(status) {
        Ok(0) => {}
        Ok(_) if collected.is_late => {
            listing.next = Some(position);
            return Ok(());
        }
        Ok(_) => listing.failure = Some(Reason::new(format!("more than {MAX_LINKS} links"))),
        Err(reason) if listing.links.is_empty() => return Err(reason),
        Err(reason) => listing.failure = Some(reason),
    }
    match listing.creation_order {
        true => listing.links.sort_by_key(|link| link.creation),
        false => listing.links.sort_by(|a, b| a.name.cmp(&b.name)),
    }
    Ok(())
}

/// Links while the library tells them.
struct Collected {
    links: Vec<Found>,
    until: Option<Instant>,
    is_late: bool,
}

/// Links between two looks at the clock.
const UNWATCHED: usize = 1024;

unsafe extern "C" fn collect(_: Hid, name: *const c_char, info: *const LinkInfo, data: *mut c_void) -> Herr {
    // SAFETY: `data` is what was given to H5Literate2; name and info are valid during the call.
    let (all, name, info) = unsafe { (&mut *data.cast::<Collected>(), CStr::from_ptr(name).to_bytes(), &*info) };
    if all.links.len() >= MAX_LINKS {
        return 1;
    }
    all.links.push(Found { name: name.into(), kind: info.kind, token: Token(info.value.0), creation: info.creation });
    all.is_late = all.links.len().is_multiple_of(UNWATCHED) && all.until.is_some_and(|until| Instant::now() >= until);
    Herr::from(all.is_late)
}

fn link_info(group: &Id, name: &[u8]) -> Result<LinkInfo, Reason> {
    let mut info =
        LinkInfo { kind: -1, creation_valid: false, creation: 0, charset: 0, value: ffi::LinkValue([0; 16]) };
    let name = c_string(name)?;
    // SAFETY: an open group, a C string, a place for the answer. The name has no slash, so nothing is traversed.
    check(unsafe { ffi::H5Lget_info2(group.raw(), name.as_ptr(), &mut info, ffi::DEFAULT) })?;
    Ok(info)
}

/// The value of a soft link (without its NUL) or of an external link (packed).
fn value(group: &Id, name: &[u8]) -> Result<Vec<u8>, Reason> {
    let info = link_info(group, name)?;
    let size = u64::from_ne_bytes(info.value.0[..8].try_into().unwrap_or_default());
    let size = usize::try_from(size).ok().filter(|size| *size <= MAX_VALUE);
    let size = size.ok_or_else(|| Reason::new(format!("a link with a value of more than {MAX_VALUE} bytes")))?;
    let mut value = vec![0u8; size];
    let name = c_string(name)?;
    // SAFETY: `value` has the size given.
    check(unsafe { ffi::H5Lget_val(group.raw(), name.as_ptr(), value.as_mut_ptr().cast(), size, ffi::DEFAULT) })?;
    if info.kind == ffi::L_SOFT {
        let end = value.iter().position(|byte| *byte == 0).unwrap_or(size);
        value.truncate(end);
    }
    Ok(value)
}

/// File and path of an external link's value.
fn unpack(value: &[u8]) -> Result<(Vec<u8>, Vec<u8>), Reason> {
    let (mut file, mut path) = (std::ptr::null(), std::ptr::null());
    let mut flags = 0;
    // The library looks for two terminated strings in the value; a third NUL makes sure that it stays inside.
    let mut terminated = value.to_vec();
    terminated.push(0);
    // SAFETY: a buffer with its size; places for three answers that point into it.
    unsafe {
        check(ffi::H5Lunpack_elink_val(
            terminated.as_ptr().cast(),
            terminated.len(),
            &mut flags,
            &mut file,
            &mut path,
        ))?;
        if file.is_null() || path.is_null() {
            return Err(Reason::new("an external link without file or path"));
        }
        Ok((CStr::from_ptr(file).to_bytes().to_vec(), CStr::from_ptr(path).to_bytes().to_vec()))
    }
}
