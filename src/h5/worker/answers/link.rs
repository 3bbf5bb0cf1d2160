//! Links: pages of a group, and the resolution of paths, in which libhdf5 never follows a link into another file.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use bstr::BString;

use super::attribute::{OF_A_MEMBER, OF_ONE};
use super::listing::{begin, go_on, link_info, value_of};
use crate::catalogue::{Dangling, Link, MOST_LINKS_PASSED, ObjectId, Target};
use crate::h5::library::ffi::{self, ObjectToken};
use crate::h5::library::{FailureReason, Id, c_string, check};
use crate::h5::protocol::{GroupPage, MAX_ITEM, PAGE, WorkerAnswer, WorkerRefusal};
use crate::h5::worker::address::{address_in, address_of};
use crate::h5::worker::kept::{LinkListing, ListedLink};
use crate::h5::worker::session::WorkerSession;

/// Number of lookups of links in a group of the old format, after which its whole list is read instead: each lookup
/// reads a heap for which libhdf5's cache may have no room.
const OFTEN: u32 = 256;

/// `H5G_STORAGE_TYPE_SYMBOL_TABLE`: a group in the old format.
const SYMBOL_TABLE: std::ffi::c_int = 0;

impl WorkerSession {
    /// Answers with a page of a group: its links from `start` on, before `end`.
    pub fn group(&mut self, id: ObjectId, start: u64, end: u64) -> Result<WorkerAnswer, WorkerRefusal> {
        let (began, page_time) = (Instant::now(), self.page_time());
        let group = self.open_object(id)?;
        // SAFETY: an open object.
        if unsafe { ffi::H5Iget_type(group.raw()) } != ffi::I_GROUP {
            return Err(WorkerRefusal::Hdf5(format!("the object at address {} is not a group", id.address)));
        }
        // Links change only in a file that a writer has open; then the pages show the links at the time of the first
        // page.
        let mut listing = match self.listing.take() {
            Some(listing) if (start > 0 || listing.next.is_some()) && listing.id == id => listing,
            _ => begin(&group, id),
        };
        go_on(&mut listing, &group, Some(began + page_time))?;
        if listing.next.is_some() {
            self.listing = Some(listing);
            return Ok(WorkerAnswer::Again);
        }
        let mut page = GroupPage {
            attributes: if start == 0 { self.attributes(&group, id.file, OF_ONE)? } else { Vec::new() },
            creation_order: listing.creation_order,
            total: listing.links.len() as u64,
            count: 0,
            links: Vec::new(),
            next: None,
        };
        let mut values_left = listing.values_left;
        self.listing = Some(listing);
        for next in start.. {
            let found = usize::try_from(next).ok().and_then(|at| self.listing.as_ref()?.links.get(at).cloned());
            let Some(found) = found else { break };
            if next >= end || page.links.len() >= PAGE || (page.count > 0 && began.elapsed() >= page_time) {
                page.next = Some(next);
                break;
            }
            self.values_left = Some(values_left);
            let name = found.name.clone();
            let target = self.target(id, found).unwrap_or_else(|FailureReason(text)| Target::Unreadable(text));
            values_left = self.values_left.take().unwrap_or(0);
            page.push(&Link { name, target });
        }
        if page.next.is_some() {
            self.listing.iter_mut().for_each(|listing| listing.values_left = values_left);
        } else if let Some(FailureReason(text)) = self.listing.take().and_then(|listing| listing.failure) {
            // No link has an empty name: this one stands for those that could not be listed.
            page.push(&Link { name: BString::default(), target: Target::Unreadable(text) });
        }
        Ok(WorkerAnswer::Group(page))
    }

    fn target(&mut self, id: ObjectId, found: ListedLink) -> Result<Target, FailureReason> {
        Ok(match found.kind {
            ffi::L_HARD => {
                let id = self.address(id.file, found.token)?;
                Target::Hard(self.object(id, OF_A_MEMBER))
            }
            ffi::L_SOFT => {
                let (path, mut hops) = (self.link_value(id, found)?, 1);
                let object = self.resolve(id, &path, &mut hops).ok().map(|id| self.object(id, OF_A_MEMBER));
                let is_too_far = object.is_none() && hops > MOST_LINKS_PASSED;
                let dangling = if is_too_far { Dangling::TooManyLinks } else { Dangling::Nowhere };
                Target::Soft { path: path.into(), object: object.filter(is_there).map(Box::new).ok_or(dangling) }
            }
            ffi::L_EXTERNAL => {
                let (file, path) = unpack(&self.link_value(id, found)?)?;
                let object =
                    self.resolve_external(id.file, &file, &path, &mut 0).ok().map(|id| self.object(id, OF_A_MEMBER));
                Target::External { file: file.into(), path: path.into(), object: object.filter(is_there).map(Box::new) }
            }
            other => Target::UserDefined(other as u32),
        })
    }

    fn address(&mut self, file: u32, token: ObjectToken) -> Result<ObjectId, FailureReason> {
        Ok(ObjectId { file, address: address_in(token, self.file(file)?.address_size) })
    }

    /// Finds the object at the end of `path`, which begins at the group `from` or, if absolute, at the root of its
    /// file.
    pub fn resolve(&mut self, from: ObjectId, path: &[u8], hops: &mut usize) -> Result<ObjectId, FailureReason> {
        let mut at = from;
        if path.first() == Some(&b'/') {
            let file = self.file(from.file)?;
            at.address = address_of(file.id.raw(), file.address_size)?;
        }
        for name in path.split(|byte| *byte == b'/').filter(|name| !matches!(name, [] | [b'.'])) {
            let found = self.found(at, name)?;
            at = match (found.kind, found.value) {
                (ffi::L_HARD, _) => self.address(at.file, found.token)?,
                (ffi::L_SOFT, Some(path)) => {
                    hop(hops)?;
                    self.resolve(at, &path, hops)?
                }
                (ffi::L_EXTERNAL, Some(value)) => {
                    let (file, path) = unpack(&value)?;
                    self.resolve_external(at.file, &file, &path, hops)?
                }
                (other, _) => return Err(FailureReason::new(format!("a path through a link of class {other}"))),
            };
        }
        Ok(at)
    }

    /// Finds a link of a group: in the list of its links, if that is in memory, or by libhdf5.
    fn found(&mut self, at: ObjectId, name: &[u8]) -> Result<ListedLink, FailureReason> {
        match self.listed(at).map(|listing| listing.link(name).cloned()) {
            Some(None) => return Err(FailureReason::new("no such link")),
            Some(Some(found)) if found.kind == ffi::L_HARD || found.value.is_some() => return Ok(found),
            _ => {}
        }
        let group = self.open_object(at)?;
        // SAFETY: an open object.
        if unsafe { ffi::H5Iget_type(group.raw()) } != ffi::I_GROUP {
            return Err(FailureReason::new("a path through an object that is not a group"));
        }
        let c_name = c_string(name)?;
        let info = link_info(&group, &c_name)?;
        let value = match info.kind {
            ffi::L_SOFT | ffi::L_EXTERNAL => Some(value_of(group.raw(), &c_name, &info, usize::MAX)?),
            _ => None,
        };
        self.note_passed(at, &group);
        let (kind, token, creation) = (info.kind, ObjectToken(info.value.0), info.creation);
        Ok(ListedLink { name: name.into(), kind, token, creation, value })
    }

    /// The value of a soft or external link of a group.
    fn link_value(&mut self, group: ObjectId, found: ListedLink) -> Result<Vec<u8>, FailureReason> {
        match found.value {
            Some(value) => Ok(value),
            None => Ok(self.found(group, &found.name)?.value.unwrap_or_default()),
        }
    }

    /// The list of a group's links, if it is in memory.
    fn listed(&self, group: ObjectId) -> Option<&LinkListing> {
        let listing = self.listing.as_ref()?;
        let passed = listing.passed.get(&group).and_then(|passed| passed.listing.as_deref());
        let listing = if listing.id == group { Some(listing) } else { passed };
        listing.filter(|listing| listing.is_whole())
    }

    /// Counts a lookup of a link by libhdf5. Lists a group of the old format after [`OFTEN`] of them.
    fn note_passed(&mut self, id: ObjectId, group: &Id) {
        let until = Instant::now() + self.page_time();
        let Some(listing) = self.listing.as_mut().filter(|listing| listing.id != id) else { return };
        let passed = listing.passed.entry(id).or_default();
        passed.asked = passed.asked.saturating_add(1);
        if passed.asked == OFTEN {
            let mut info = ffi::GroupInfo::default();
            // SAFETY: an open group; a place for the answer.
            let is_known = check(unsafe { ffi::H5Gget_info(group.raw(), &mut info) }).is_ok();
            let is_slow = is_known && info.storage == SYMBOL_TABLE && info.links <= listing.passed_left;
            passed.listing = is_slow.then(|| Box::new(LinkListing::new(id, false)));
            listing.passed_left -= if is_slow { info.links } else { 0 };
        }
        if let Some(part) = &mut passed.listing {
            part.link_values_left = std::mem::take(&mut listing.link_values_left);
            let gone_on = go_on(part, group, Some(until));
            listing.link_values_left = std::mem::take(&mut part.link_values_left);
            if gone_on.is_err() {
                passed.listing = None;
            }
        }
    }

    fn resolve_external(
        &mut self,
        from: u32,
        file: &[u8],
        path: &[u8],
        hops: &mut usize,
    ) -> Result<ObjectId, FailureReason> {
        hop(hops)?;
        if !self.follows() {
            return Err(FailureReason::new("a path through an external link, which is not followed"));
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

/// Whether the object opens: a soft or external link to any other is dangling.
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
            // Every link encodes; if one did not, the daemon would refuse the page for its count.
            Err(_) => {}
        }
        self.count += 1;
    }
}

fn hop(hops: &mut usize) -> Result<(), FailureReason> {
    *hops += 1;
    if *hops > MOST_LINKS_PASSED {
        Err(FailureReason::new(format!("a path through more than {MOST_LINKS_PASSED} links")))
    } else {
        Ok(())
    }
}

/// File and path of an external link's value.
fn unpack(value: &[u8]) -> Result<(Vec<u8>, Vec<u8>), FailureReason> {
    let (mut file, mut path) = (std::ptr::null(), std::ptr::null());
    let mut flags = 0;
    // libhdf5 searches the value for two terminated strings; a third NUL keeps it inside.
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
            return Err(FailureReason::new("an external link without file or path"));
        }
        Ok((CStr::from_ptr(file).to_bytes().to_vec(), CStr::from_ptr(path).to_bytes().to_vec()))
    }
}
