//! Lists a group of very many links with two workers.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use parking_lot::Mutex;

use super::Client;
use super::requests::{SharedClient, nonsense};
use crate::catalogue::{Attribute, DatasetDescription, Group, Link, Object, ObjectId, Target};
use crate::h5::error::Error;
use crate::h5::protocol::{GroupPage, LINKS_AT_ONCE, Request, WorkerAnswer};
use crate::source::Interrupt;

/// Fewest links that are worth the start of a second worker.
const WORTH_A_WORKER: u64 = 4 * LINKS_AT_ONCE;

/// Most links of a group: the worker's limit, and one link that stands for the rest.
const MAX_LINKS: usize = crate::h5::protocol::MAX_LINKS + 1;

/// Number of pages that libhdf5 could list only without the values of some attributes. After so many, the client lists
/// all other pages without these values from the start.
const MOST_HUNG: usize = 2;

/// Listed parts of a group, each with the number of its first link, in any order.
type Parts = Vec<(u64, Vec<Link>)>;

/// Lists a group: see [`Client::group`].
pub(super) fn group(inner: &Arc<SharedClient>, id: ObjectId, interrupt: &Interrupt) -> Result<Group, Error> {
    let mut first = inner.page(id, &(0..LINKS_AT_ONCE), interrupt)?;
    let attributes = std::mem::take(&mut first.attributes).into();
    let mut links = Vec::new();
    take(&first, &mut links)?;
    if let Some(start) = first.next {
        drop(first.links);
        let parts = parts(inner, id, start..first.total, interrupt)?;
        let count = parts.iter().map(|(_, part)| part.len()).fold(links.len(), usize::saturating_add);
        if count > MAX_LINKS {
            return Err(nonsense());
        }
        links.reserve_exact(count - links.len());
        parts.into_iter().for_each(|(_, mut part)| links.append(&mut part));
    }
    Ok(Group::new(id, attributes, links, first.creation_order))
}

/// Builds a group from its only page.
pub(super) fn whole(id: ObjectId, page: GroupPage) -> Result<Group, Error> {
    let mut links = Vec::new();
    take(&page, &mut links)?;
    Ok(Group::new(id, page.attributes.into(), links, page.creation_order))
}

/// The links from the second page on, in their order.
fn parts(inner: &Arc<SharedClient>, id: ObjectId, rest: Range<u64>, interrupt: &Interrupt) -> Result<Parts, Error> {
    let next = AtomicU64::new(rest.start);
    let take = || {
        let start = next.fetch_add(LINKS_AT_ONCE, Ordering::Relaxed);
        // The last part has no end: the listing reports at its own end which links could not be listed.
        let end = start.saturating_add(LINKS_AT_ONCE);
        (start < rest.end).then_some(start..if end < rest.end { end } else { u64::MAX })
    };
    let stop = Interrupt::new();
    let is_open = AtomicBool::new(false);
    let left = Mutex::new(None);
    // The first worker repeats a part that fails here, or fails at it as well and reports the error.
    let help = || {
        let mut done = Parts::new();
        let second = Client::new(inner.source.clone(), inner.options.clone());
        if second.file(&stop).is_ok() {
            is_open.store(true, Ordering::SeqCst);
            while let Some(part) = take() {
                match second.inner.links(id, &part, &stop) {
                    Ok(links) => done.push((part.start, links)),
                    Err(_) => {
                        *left.lock() = Some(part);
                        break;
                    }
                }
            }
        }
        done
    };
    let mut all = thread::scope(|scope| {
        let is_helped = rest.end.saturating_sub(rest.start) > WORTH_A_WORKER && inner.is_same_to_all(interrupt)?;
        let helper = if is_helped { thread::Builder::new().spawn_scoped(scope, help).ok() } else { None };
        let mut done = Parts::new();
        let mut result = Ok(());
        while let (Ok(()), Some(part)) = (&result, take()) {
            result = inner.links(id, &part, interrupt).map(|links| done.push((part.start, links)));
        }
        if result.is_err() || !is_open.load(Ordering::SeqCst) {
            stop.raise();
        }
        done.extend(helper.and_then(|helper| helper.join().ok()).unwrap_or_default());
        result.map(|()| done)
    })?;
    if let Some(part) = left.into_inner() {
        all.push((part.start, inner.links(id, &part, interrupt)?));
    }
    all.sort_unstable_by_key(|(start, _)| *start);
    Ok(all)
}

impl SharedClient {
    /// Whether two workers list the same links under the same numbers: no writer has the file open, and the client
    /// follows no links to other files.
    fn is_same_to_all(self: &Arc<Self>, interrupt: &Interrupt) -> Result<bool, Error> {
        Ok(!self.options.follow_external && !self.file(interrupt)?.swmr)
    }

    /// Lists a part of the links of a group, in as many pages as needed.
    fn links(self: &Arc<Self>, id: ObjectId, part: &Range<u64>, interrupt: &Interrupt) -> Result<Vec<Link>, Error> {
        let mut links = Vec::new();
        let mut rest = part.clone();
        loop {
            let page = self.page(id, &rest, interrupt)?;
            take(&page, &mut links)?;
            match page.next {
                Some(next) if next < part.end => rest.start = next,
                _ => return Ok(links),
            }
        }
    }

    /// Lists a page of the links of a group. If libhdf5 dies or hangs, an attribute of a member may point to nonsense
    /// in a heap: the client then lists the page again without the values of such attributes. After [`MOST_HUNG`] pages
    /// on which libhdf5 hung, or died repeatedly, it lists all other pages of the file without them from the start.
    fn page(self: &Arc<Self>, id: ObjectId, part: &Range<u64>, interrupt: &Interrupt) -> Result<GroupPage, Error> {
        let place = (id, part.start);
        let is_known = {
            let hung = self.hung.lock();
            hung.len() >= MOST_HUNG || hung.contains(&place)
        };
        let is_hung = !is_known
            && match self.page_of(id, part, false, interrupt) {
                Err(Error::Deadline { .. } | Error::Poisoned(_)) => true,
                Err(Error::Died(_)) => false,
                other => return other,
            };
        let page = self.page_of(id, part, true, interrupt)?;
        if is_hung {
            self.hung.lock().insert(place);
        }
        Ok(page)
    }

    fn page_of(
        self: &Arc<Self>,
        id: ObjectId,
        part: &Range<u64>,
        plain: bool,
        interrupt: &Interrupt,
    ) -> Result<GroupPage, Error> {
        let Range { start, end } = *part;
        loop {
            match self.call(Request::Group { id, start, end, plain }, interrupt)?.0 {
                WorkerAnswer::Group(page)
                    if page.next.is_none_or(|next| next > start) && page.total <= MAX_LINKS as u64 =>
                {
                    return Ok(page);
                }
                WorkerAnswer::Again => {}
                _ => return Err(nonsense()),
            }
        }
    }
}

/// Most earlier datasets to compare with a new one, whose description may equal one of theirs.
const MOST_ALIKE: usize = 8;

/// Adds the links of a page. Datasets near each other share equal descriptions.
fn take(page: &GroupPage, links: &mut Vec<Link>) -> Result<(), Error> {
    let mut rest = page.links.as_slice();
    let mut met: VecDeque<Arc<DatasetDescription>> = VecDeque::new();
    let nothing: Arc<[Attribute]> = Arc::default();
    for _ in 0..page.count {
        let (mut link, behind) = postcard::take_from_bytes::<Link>(rest).map_err(|_| nonsense())?;
        match &mut link.target {
            Target::Hard(Object::Dataset(dataset)) => {
                if let Some(known) = met.iter().find(|known| ***known == *dataset.description).cloned() {
                    Arc::make_mut(dataset).description = known;
                } else {
                    met.push_front(dataset.description.clone());
                    met.truncate(MOST_ALIKE);
                }
            }
            Target::Hard(Object::Group { attributes, .. }) if attributes.is_empty() => {
                attributes.clone_from(&nothing);
            }
            _ => {}
        }
        if links.len() >= MAX_LINKS {
            return Err(nonsense());
        }
        links.push(link);
        rest = behind;
    }
    Ok(())
}
