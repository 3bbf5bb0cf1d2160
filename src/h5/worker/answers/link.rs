//! Links: listing a group, and resolving paths without ever letting libhdf5 follow one into another file.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use bstr::BString;

use super::attribute::{OF_A_MEMBER, OF_ONE};
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

/// A page of a listing takes no longer, so that the deadline is for what hangs and not for what is large.
const PAGE_TIME: Duration = Duration::from_secs(2);

impl Session {
    /// A page of a group, of links before `end`.
    pub fn group(&mut self, id: ObjectId, start: u64, end: u64) -> Result<Answer, Refusal> {
        let began = Instant::now();
        let group = self.open_object(id)?;
        // SAFETY: an open object.
        if unsafe { ffi::H5Iget_type(group.raw()) } != ffi::I_GROUP {
            return Err(Refusal::Hdf5(format!("the object at address {} is no group", id.address)));
        }
        // Links come and go only in files that are being written; those are read as they were at the first page.
        let listing = match self.listing.take() {
            Some(listing) if start > 0 && listing.id == id => listing,
            _ => list(&group, id)?,
        };
        let mut page = GroupPage {
            attributes: if start == 0 { self.attributes(&group, id.file, OF_ONE)? } else { Vec::new() },
            creation_order: listing.creation_order,
            total: listing.links.len() as u64,
            count: 0,
            links: Vec::new(),
            next: None,
        };
        let links = listing.links.iter().skip(usize::try_from(start).unwrap_or(usize::MAX));
        for (next, found) in (start..).zip(links) {
            if next >= end || page.links.len() >= PAGE || (page.count > 0 && began.elapsed() >= PAGE_TIME) {
                page.next = Some(next);
                break;
            }
            let target = self.target(&group, id, found);
            page.push(&Link { name: found.name.clone(), target });
        }
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
                Target::Soft { path: path.into(), object: object.filter(is_there) }
            }),
            ffi::L_EXTERNAL => value(group, &found.name).and_then(|value| unpack(&value)).map(|(file, path)| {
                let object =
                    self.resolve_external(id.file, &file, &path, &mut 0).ok().map(|id| self.object(id, OF_A_MEMBER));
                Target::External { file: file.into(), path: path.into(), object: object.filter(is_there) }
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

/// Lists a group: in creation order where that is tracked and indexed, else bytewise by name.
fn list(group: &Id, id: ObjectId) -> Result<Listing, Reason> {
    let mut flags = 0;
    // SAFETY: an open group; a place for the flags.
    let creation_order = unsafe {
        let status = Id::own(ffi::H5Gget_create_plist(group.raw()))
            .and_then(|gcpl| check(ffi::H5Pget_link_creation_order(gcpl.raw(), &mut flags)));
        let both = ffi::CREATION_ORDER_TRACKED | ffi::CREATION_ORDER_INDEXED;
        status.is_ok() && flags & both == both
    };
    let (links, failure) = found(group, if creation_order { ffi::INDEX_CREATION } else { ffi::INDEX_NAME })?;
    Ok(Listing { id, creation_order, links, failure })
}

/// The links of a group in the order of an index, with the reason why some are missing; an error where there would be
/// none at all.
pub(super) fn found(group: &Id, index: c_int) -> Result<(Vec<Found>, Option<Reason>), Reason> {
    let mut links: Vec<Found> = Vec::new();
    let mut position = 0;
    let by_name = index == ffi::INDEX_NAME;
    // libhdf5 puts names in order by reading each twice.
    let order = if by_name { ffi::ITER_NATIVE } else { ffi::ITER_INCREASING };
    // SAFETY: the callback gets `links` back and is not called afterwards.
    let status = with_room_for_links(group, || unsafe {
        ffi::H5Literate2(group.raw(), index, order, &mut position, collect, (&raw mut links).cast())
    });
    if by_name {
        links.sort_by(|a, b| a.name.cmp(&b.name));
    }
    match check(status) {
        Ok(0) => Ok((links, None)),
        Ok(_) => Ok((links, Some(Reason::new(format!("more than {MAX_LINKS} links"))))),
        Err(reason) if links.is_empty() => Err(reason),
        Err(reason) => Ok((links, Some(reason))),
    }
}

unsafe extern "C" fn collect(_: Hid, name: *const c_char, info: *const LinkInfo, data: *mut c_void) -> Herr {
    // SAFETY: `data` is the vector given to H5Literate2; name and info are valid during the call.
    let (links, name, info) = unsafe { (&mut *data.cast::<Vec<Found>>(), CStr::from_ptr(name).to_bytes(), &*info) };
    if links.len() >= MAX_LINKS {
        return 1;
    }
    links.push(Found { name: name.into(), kind: info.kind, token: Token(info.value.0) });
    0
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
