//! References: the object behind one, and the paths of objects.

use std::collections::{HashMap, VecDeque};
use std::ffi::c_ulong;
use std::time::{Duration, Instant};

use bstr::ByteSlice;

use super::link::found;
use super::session::{Session, address_in, address_of, info_of};
use crate::catalogue::{ObjectId, ReferenceKind};
use crate::h5::library::ffi::{self, Hid, Reference};
use crate::h5::library::text;
use crate::h5::library::{Id, check};
use crate::h5::protocol::{Answer, PAGE, Refusal};

/// Objects that the walk for paths looks at.
const MAX_OBJECTS: usize = 1_000_000;

/// The walk pauses after this time; the daemon asks again.
const WALK_TIME: Duration = Duration::from_secs(3);

/// Longest path.
const MAX_TEXT: usize = 64 << 10;

/// A walk over the hard links of a file, breadth-first: the first path that leads to an object stands for it.
#[derive(Debug)]
pub(super) struct Paths {
    file: u32,
    found: HashMap<u64, String>,
    queue: VecDeque<u64>,
}

impl Session {
    /// The object a reference in its form in memory points to; `None` for a null or dangling one.
    pub fn target_of(&mut self, location: Hid, kind: ReferenceKind, element: &[u8], file: u32) -> Option<ObjectId> {
        let object = dereference(location, kind, element)?;
        self.identify(&object, file)
    }

    fn identify(&mut self, object: &Id, file: u32) -> Option<ObjectId> {
        let own = self.file(file).ok()?;
        let there = info_of(object.raw()).ok()?;
        // A standard reference may lead to another file; that has no address here.
        (own.file_number == there.file_number)
            .then(|| ObjectId { file, address: address_in(there.token, own.address_size) })
    }

    /// The paths of the objects at these addresses, as many as fit into an answer.
    pub fn paths(&mut self, file: u32, addresses: &[u64]) -> Result<Answer, Refusal> {
        let mut wanted = addresses.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        if !self.walk(file, &wanted, Instant::now())? {
            return Ok(Answer::Again);
        }
        let found = self.object_paths.as_ref();
        let mut length = 0;
        let mut paths = Vec::new();
        for address in addresses {
            if length > PAGE {
                break;
            }
            let path = found.and_then(|paths| paths.found.get(address)).cloned();
            length += path.as_ref().map_or(1, String::len);
            paths.push(path);
        }
        Ok(Answer::Paths(paths))
    }

    /// Walks on until every wanted object has a path, or all were seen; `false` where the time ran out first.
    fn walk(&mut self, file: u32, wanted: &[u64], began: Instant) -> Result<bool, Refusal> {
        let own = self.file(file)?;
        let (address_size, root) = (own.address_size, address_of(own.id.raw(), own.address_size)?);
        let mut paths = match self.object_paths.take() {
            Some(paths) if paths.file == file => paths,
            _ => Paths { file, found: HashMap::from([(root, "/".into())]), queue: VecDeque::from([root]) },
        };
        let mut missing = wanted.iter().filter(|address| !paths.found.contains_key(address)).count();
        let mut done = true;
        while missing > 0
            && let Some(address) = paths.queue.pop_front()
        {
            if began.elapsed() > WALK_TIME {
                paths.queue.push_front(address);
                done = false;
                break;
            }
            let Ok(group) = self.open_object(ObjectId { file, address }) else { continue };
            // SAFETY: an open object.
            if unsafe { ffi::H5Iget_type(group.raw()) } != ffi::I_GROUP {
                continue;
            }
            let Ok((links, _)) = found(&group, ffi::INDEX_NAME) else { continue };
            let prefix = paths.found.get(&address).filter(|path| *path != "/").cloned().unwrap_or_default();
            for link in links.iter().filter(|link| link.kind == ffi::L_HARD) {
                let address = address_in(link.token, address_size);
                if paths.found.len() >= MAX_OBJECTS {
                    break;
                }
                if paths.found.contains_key(&address) || prefix.len() + link.name.len() > MAX_TEXT {
                    continue;
                }
                missing -= usize::from(wanted.binary_search(&address).is_ok());
                paths.found.insert(address, format!("{prefix}/{}", link.name.to_str_lossy()));
                paths.queue.push_back(address);
            }
        }
        self.object_paths = Some(paths);
        Ok(done)
    }
}

/// Opens what a reference points to.
fn dereference(location: Hid, kind: ReferenceKind, element: &[u8]) -> Option<Id> {
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
