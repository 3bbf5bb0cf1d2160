//! References: the object behind one, and its text.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write;
use std::time::{Duration, Instant};

use bstr::ByteSlice;

use super::attribute::Aligned;
use super::dataset::text;
use super::error::{Id, Reason, check};
use super::ffi::{self, Hid, Reference};
use super::link::found;
use super::read::{Opened, reclaim, select};
use super::session::{Session, address_in, address_of, info_of};
use crate::catalogue::{Class, ObjectId, ReferenceKind, product};
use crate::h5::protocol::{Answer, PAGE, Refusal};

/// Objects that the walk for paths looks at.
const MAX_OBJECTS: usize = 1_000_000;

/// The walk pauses after this time; the daemon asks again.
const WALK_TIME: Duration = Duration::from_secs(3);

/// Blocks or points of a selection that are written out; `…` stands for the rest.
const MAX_BLOCKS: u64 = 64;

/// References answered at once.
const MAX_COUNT: u64 = 16_384;

/// Longest text of one reference.
const MAX_TEXT: usize = 64 << 10;

/// A walk over the hard links of a file, breadth-first: the first path that leads to an object stands for it.
#[derive(Debug)]
pub(super) struct Paths {
    file: u32,
    found: HashMap<u64, String>,
    queue: VecDeque<u64>,
}

/// What a reference points to.
struct Pointed {
    id: ObjectId,
    /// Selection or attribute, to go behind the path.
    suffix: String,
}

impl Session {
    /// The object a reference in its form in memory points to; `None` for a null or dangling one.
    pub fn target_of(&mut self, location: Hid, kind: ReferenceKind, element: &[u8], file: u32) -> Option<ObjectId> {
        let object = dereference(location, kind, element)?;
        self.identify(&object, file)
    }

    fn identify(&mut self, object: &Id, file: u32) -> Option<ObjectId> {
        let own = self.file(file).ok()?;
        let (here, there) = (info_of(own.id.raw()).ok()?, info_of(object.raw()).ok()?);
        // A standard reference may lead to another file; that has no address here.
        (here.file_number == there.file_number)
            .then(|| ObjectId { file, address: address_in(there.token, own.address_size) })
    }

    /// References as text.
    pub fn references(&mut self, id: ObjectId, start: u64, count: u64) -> Result<Answer, Refusal> {
        let opened = self.open_for_reading(id)?;
        let answer = self.references_in(&opened, start, count.min(MAX_COUNT));
        self.opened = Some(opened);
        answer
    }

    fn references_in(&mut self, opened: &Opened, start: u64, count: u64) -> Result<Answer, Refusal> {
        let Class::Reference(kind) = opened.described.class else {
            return Err(Refusal::Hdf5("the dataset holds no references".into()));
        };
        let began = Instant::now();
        let pointed = self.pointed(opened, kind, start, count)?;
        let mut wanted: Vec<u64> = pointed.iter().flatten().map(|pointed| pointed.id.address).collect();
        wanted.sort_unstable();
        wanted.dedup();
        if !self.walk(opened.id.file, &wanted, began)? {
            return Ok(Answer::Again);
        }
        let paths = self.object_paths.as_ref();
        let mut length = 0;
        let mut texts = Vec::new();
        for pointed in pointed {
            if length > PAGE && !texts.is_empty() {
                break;
            }
            let text = pointed.and_then(|Pointed { id, mut suffix }| {
                let path = paths?.found.get(&id.address)?;
                suffix.insert_str(0, path);
                Some(suffix)
            });
            length += text.as_ref().map_or(1, String::len);
            texts.push(text);
        }
        Ok(Answer::References(texts))
    }

    fn pointed(
        &mut self,
        opened: &Opened,
        kind: ReferenceKind,
        start: u64,
        count: u64,
    ) -> Result<Vec<Option<Pointed>>, Refusal> {
        if opened.extent.null || count == 0 {
            return Ok(Vec::new());
        }
        let total = product(&opened.extent.shape).unwrap_or(u64::MAX);
        if start.checked_add(count).is_none_or(|end| end > total) {
            return Err(Refusal::Hdf5(format!("references {start}..+{count} were asked for, but there are {total}")));
        }
        // Rows of a dataset of more dimensions are read whole, one after the other.
        let mut answers = Vec::new();
        let rank = opened.extent.shape.len();
        let row = opened.extent.shape.last().copied().unwrap_or(1).max(1);
        let mut at = start;
        let end = start + count;
        while at < end {
            let in_row = (row - at % row).min(end - at);
            let mut position = vec![0; rank];
            let mut rest = at;
            for (place, extent) in position.iter_mut().zip(&opened.extent.shape).rev() {
                *place = rest % (*extent).max(1);
                rest /= (*extent).max(1);
            }
            let mut counts = vec![1; rank];
            if let Some(last) = counts.last_mut() {
                *last = in_row;
            }
            self.pointed_in_box(opened, kind, &position, &counts, &mut answers)?;
            at += in_row;
        }
        Ok(answers)
    }

    fn pointed_in_box(
        &mut self,
        opened: &Opened,
        kind: ReferenceKind,
        start: &[u64],
        count: &[u64],
        answers: &mut Vec<Option<Pointed>>,
    ) -> Result<(), Refusal> {
        let (elements, selection) = select(&opened.extent, start, count)?;
        let memory = usize::try_from(elements).ok().and_then(|n| n.checked_mul(opened.plan.memory));
        let memory = memory.ok_or_else(|| Refusal::Hdf5("too many references".into()))?;
        let mut buffer = Aligned::zeroed(memory);
        // SAFETY: `buffer` has room for the elements in memory.
        unsafe { selection.read(opened, buffer.pointer())? };
        for element in buffer.bytes().chunks_exact(opened.plan.memory.max(1)) {
            answers.push(self.point(opened, kind, element));
        }
        if opened.plan.allocates() {
            reclaim(&opened.datatype, elements as usize, &mut buffer)?;
        }
        Ok(())
    }

    fn point(&mut self, opened: &Opened, kind: ReferenceKind, element: &[u8]) -> Option<Pointed> {
        let location = opened.dataset.raw();
        let object = dereference(location, kind, element)?;
        let id = self.identify(&object, opened.id.file)?;
        let suffix = suffix(location, kind, element).unwrap_or_default();
        Some(Pointed { id, suffix })
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

/// What stands behind the path: the selection of a region (`[0:10,3:7]`), the name of an attribute (`@units`).
fn suffix(location: Hid, kind: ReferenceKind, element: &[u8]) -> Option<String> {
    let mut reference = copy(element)?;
    // SAFETY: as in `dereference`.
    let kind = match kind {
        ReferenceKind::Object => return None,
        ReferenceKind::Region => ffi::R_REGION1,
        ReferenceKind::Standard => unsafe { ffi::H5Rget_type(&reference) },
    };
    // SAFETY: as in `dereference`.
    let space = unsafe {
        match kind {
            ffi::R_REGION1 => ffi::H5Rget_region(location, kind, reference.0.as_ptr().cast()),
            ffi::R_REGION2 => ffi::H5Ropen_region(&mut reference, ffi::DEFAULT, ffi::DEFAULT),
            ffi::R_ATTRIBUTE => {
                let name = text(|buffer, size| ffi::H5Rget_attr_name(&reference, buffer, size)).ok()?;
                return Some(format!("@{}", name.to_str_lossy()));
            }
            _ => return None,
        }
    };
    let space = Id::own(space).ok()?;
    Some(selection(&space).unwrap_or_else(|_| "[?]".into()))
}

/// A selection as text: `[a:b,c:d]` for a block, half-open; several blocks joined by `;`; points as `[(1,2);(3,4)]`;
/// `[...]` for everything, `[]` for nothing.
fn selection(space: &Id) -> Result<String, Reason> {
    // SAFETY: an open dataspace (so below).
    let (rank, kind) = unsafe {
        (check(ffi::H5Sget_simple_extent_ndims(space.raw()))? as usize, ffi::H5Sget_select_type(space.raw()))
    };
    let number = |count: i64| u64::try_from(count).map_err(|_| Reason::of_library());
    let rank_checked = if rank == 0 || rank > ffi::MAX_RANK { 1 } else { rank };
    match kind {
        ffi::SELECT_NONE => Ok("[]".into()),
        ffi::SELECT_ALL => Ok("[...]".into()),
        ffi::SELECT_HYPERSLABS => {
            // SAFETY: as above.
            let count = number(unsafe { ffi::H5Sget_select_hyper_nblocks(space.raw()) })?;
            let shown = count.min(MAX_BLOCKS);
            let mut corners = vec![0u64; shown as usize * rank_checked * 2];
            // SAFETY: room for two corners of `rank` numbers for each block.
            check(unsafe { ffi::H5Sget_select_hyper_blocklist(space.raw(), 0, shown, corners.as_mut_ptr()) })?;
            Ok(write_blocks(&corners, rank_checked, shown < count))
        }
        ffi::SELECT_POINTS => {
            // SAFETY: as above.
            let count = number(unsafe { ffi::H5Sget_select_elem_npoints(space.raw()) })?;
            let shown = count.min(MAX_BLOCKS);
            let mut points = vec![0u64; shown as usize * rank_checked];
            // SAFETY: room for `rank` numbers for each point.
            check(unsafe { ffi::H5Sget_select_elem_pointlist(space.raw(), 0, shown, points.as_mut_ptr()) })?;
            Ok(write_points(&points, rank_checked, shown < count))
        }
        other => Err(Reason::new(format!("a selection of the unknown kind {other}"))),
    }
}

fn write_blocks(corners: &[u64], rank: usize, more: bool) -> String {
    let mut text = String::from("[");
    for (i, block) in corners.chunks_exact(2 * rank).enumerate() {
        let (first, last) = block.split_at(rank);
        let separators = std::iter::once(if i == 0 { "" } else { ";" }).chain(std::iter::repeat(","));
        for ((first, last), separator) in first.iter().zip(last).zip(separators) {
            // Writing to a string cannot fail.
            let _ = write!(text, "{separator}{first}:{}", last.saturating_add(1));
        }
    }
    text.push_str(if more { ";…]" } else { "]" });
    text
}

fn write_points(points: &[u64], rank: usize, more: bool) -> String {
    let mut text = String::from("[");
    for (i, point) in points.chunks_exact(rank).enumerate() {
        text.push_str(if i == 0 { "(" } else { ";(" });
        for (j, number) in point.iter().enumerate() {
            let _ = write!(text, "{}{number}", if j == 0 { "" } else { "," });
        }
        text.push(')');
    }
    text.push_str(if more { ";…]" } else { "]" });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_are_half_open_blocks_and_points() {
        assert_eq!(write_blocks(&[0, 3, 9, 6], 2, false), "[0:10,3:7]");
        assert_eq!(write_blocks(&[0, 3, 9, 6, 20, 0, 20, 0], 2, false), "[0:10,3:7;20:21,0:1]");
        assert_eq!(write_blocks(&[5, 5], 1, true), "[5:6;…]");
        assert_eq!(write_points(&[1, 2, 3, 4], 2, false), "[(1,2);(3,4)]");
        assert_eq!(write_points(&[1, 2], 1, true), "[(1);(2);…]");
    }
}
