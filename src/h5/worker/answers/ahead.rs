//! Lists a small file in one answer: most of its groups and chunk maps take less time than a round trip.

use std::collections::{HashSet, VecDeque};
use std::time::Instant;

use crate::catalogue::{Layout, Link, Object, ObjectId};
use crate::h5::library::{check, ffi};
use crate::h5::protocol::{CHUNKS_AHEAD, LINKS_AT_ONCE, Request, WorkerAnswer, WorkerRefusal};
use crate::h5::worker::address::address_of;
use crate::h5::worker::session::WorkerSession;

/// Most groups in the answer.
const MOST_GROUPS: usize = 32;

/// Most chunk maps in the answer.
const MOST_MAPS: usize = 16;

/// Most links of a group in the answer.
const MOST_LINKS: u64 = 256;

/// Bytes of links after which no further group is listed.
const ENOUGH: usize = 128 << 10;

/// Share of a page's time after which nothing further is read: 200 ms. Small files take 1 to 5; a busy machine may take
/// ten times as long, and the client asks for the missing parts one by one.
const SHARE: u32 = 10;

impl WorkerSession {
    /// Lists groups from the root down, breadth first, then the chunk maps of their datasets. It omits a part that
    /// fails: the daemon then asks for it and gets the error.
    pub fn ahead(&mut self) -> Result<WorkerAnswer, WorkerRefusal> {
        let (began, long) = (Instant::now(), self.page_time() / SHARE);
        let file = self.file(0)?;
        let root = ObjectId { file: 0, address: address_of(file.id.raw(), file.address_size)? };
        let (mut answers, mut bytes) = (Vec::new(), 0);
        let (mut groups, mut seen) = (VecDeque::from([root]), HashSet::from([root]));
        let mut chunked = Vec::new();
        while let Some(id) = groups.pop_front()
            && answers.len() < MOST_GROUPS
            && bytes < ENOUGH
            && began.elapsed() < long
        {
            if !self.has_few_links(id) {
                continue;
            }
            let Ok(WorkerAnswer::Group(page)) = self.group(id, 0, LINKS_AT_ONCE) else { continue };
            if page.next.is_some() {
                continue;
            }
            bytes += page.links.len();
            let mut rest = page.links.as_slice();
            while let Ok((link, behind)) = postcard::take_from_bytes::<Link>(rest) {
                rest = behind;
                match link.target.followed() {
                    Some(Object::Group { id, .. }) if seen.insert(*id) => groups.push_back(*id),
                    Some(Object::Dataset(dataset)) if matches!(dataset.layout, Layout::Chunked { .. }) => {
                        chunked.push(dataset.id);
                    }
                    _ => {}
                }
            }
            let request = Request::Group { id, start: 0, end: LINKS_AT_ONCE, plain: false };
            answers.push((request, WorkerAnswer::Group(page)));
        }
        for id in chunked.into_iter().take(MOST_MAPS) {
            if began.elapsed() >= long {
                break;
            }
            if let Ok(answer @ WorkerAnswer::Chunks { next: None, .. }) = self.chunks(id, CHUNKS_AHEAD, 0) {
                answers.push((Request::Chunks { id, limit: CHUNKS_AHEAD, start: 0 }, answer));
            }
        }
        Ok(WorkerAnswer::Ahead(answers))
    }

    fn has_few_links(&mut self, id: ObjectId) -> bool {
        let mut info = ffi::GroupInfo::default();
        let group = self.open_object(id).and_then(|group| {
            // SAFETY: an open object; a place for the answer.
            check(unsafe { ffi::H5Gget_info(group.raw(), &mut info) })
        });
        group.is_ok() && info.links <= MOST_LINKS
    }
}
