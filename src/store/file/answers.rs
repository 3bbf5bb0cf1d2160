//! Remembers what the HDF5 worker said of a file: asked once, and kept in the user's cache folder, so that a later
//! mount of the same file starts no worker.
//!
//! One entry a file holds what it is and every group, object and small chunk map asked for so far; a large chunk map
//! has an entry of its own. An entry is found again by the file's identity and by [`FORM`], the version of libhdf5 and
//! the worker's settings. What it holds is written a moment after the last answer, and when the file is dropped.
//!
//! Only what will be the same next time is remembered: answers in which everything could be read, about a file whose
//! identity stands for its content (no writer has it open, it had not just changed, it leads to no others). A failure
//! may be over the next time.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::File;
use crate::catalogue::{Attribute, ChunkMap, FileInfo, Group, Object, ObjectId};
use crate::h5;
use crate::source::{Interrupt, Source};
use crate::store::{Reservation, Store};

/// Counts up when the types of [`crate::catalogue`] change, or what the worker makes of a file: an entry of another
/// form is ignored. A test holds the form to its number.
const FORM: u32 = 6;

/// Bytes of answers remembered of a file, beyond a share of the memory budget: some 100,000 columns.
const MOST_REMEMBERED: u64 = 64 << 20;

/// The share of the budget that the answers about one file may take.
const SHARE: u64 = 16;

/// Bytes of an answer's entry beside its content, about.
const OVERHEAD: u64 = 96;

/// A chunk map of more bytes than this has an entry of its own, so that not all are read when the file is opened.
const LARGE_MAP: usize = 64 << 10;

/// A chunk map of more bytes than this is not kept: it would fill a cache folder of the usual size.
const LARGEST_MAP: usize = 128 << 20;

/// A question to the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Asked {
    Group(ObjectId),
    Object(ObjectId),
    Chunks(ObjectId),
    Path(ObjectId),
}

/// Postcard of an answer, with its part of the memory budget.
#[derive(Debug)]
struct Remembered(Box<[u8]>, #[expect(dead_code, reason = "it is given back with the answer")] Reservation);

/// Answers in memory.
#[derive(Debug, Default)]
struct Known {
    answers: BTreeMap<Asked, Arc<Remembered>>,
    /// Bytes that they take.
    bytes: u64,
}

/// Bytes that end in an error where there would be too many to remember.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MOST_REMEMBERED as usize {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Answers about a closed file, for its next opening; evicted when memory is short.
#[derive(Debug)]
pub(in crate::store) struct Closed {
    what: String,
    info: FileInfo,
    known: Known,
}

/// Answers about one file.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// The key under which they are kept, which tells workers apart; `None`: nothing is remembered.
    what: Option<String>,
    known: Mutex<Known>,
    /// Whether there is one that is not kept yet.
    unsaved: AtomicBool,
    /// Whether [`Saver`](super::Saver) has been told of it.
    told: AtomicBool,
}

impl Answers {
    /// None, and none will be remembered.
    pub fn none() -> Self {
        Self::default()
    }

    /// Those that an earlier opening has left, or the cache folder has, with what the file is.
    pub fn of(store: &Store, source: &Source, client: &h5::Client) -> (Self, Option<FileInfo>) {
        if client.follows_external() || !source.was_settled() {
            return (Self::none(), None);
        }
        let what = format!("catalogue {FORM} {}", client.settings());
        let closed = store.closed().get(&source.identity()).filter(|closed| closed.what == what);
        if let Some(Closed { known: Known { answers, bytes }, info, .. }) = closed.as_deref() {
            let known = Known { answers: answers.clone(), bytes: *bytes };
            return (Self { what: Some(what), known: known.into(), ..Self::default() }, Some(info.clone()));
        }
        let entry = store.kept().get(&source.identity(), &what);
        let answers = Self { what: Some(what), ..Self::default() };
        let Some(entry) = entry.as_deref().and_then(decode) else { return (answers, None) };
        for (asked, answer) in entry.answers {
            answers.remember(store, asked, answer);
        }
        (answers, Some(entry.info))
    }

    /// Remembers an answer while there is room; says whether it is.
    fn remember(&self, store: &Store, asked: Asked, answer: &[u8]) -> bool {
        let bytes = answer.len() as u64 + OVERHEAD;
        let most = MOST_REMEMBERED.min(store.budget().limit() / SHARE);
        if self.known.lock().bytes.saturating_add(bytes) > most {
            return false;
        }
        // Not under the lock: it may evict what others keep.
        let Some(reserved) = store.budget().try_reserve(bytes) else { return false };
        let mut known = self.known.lock();
        if known.answers.insert(asked, Remembered(answer.into(), reserved).into()).is_none() {
            known.bytes += bytes;
        }
        true
    }

    fn get<T: DeserializeOwned>(&self, asked: Asked) -> Option<T> {
        let answer = self.known.lock().answers.get(&asked)?.clone();
        postcard::from_bytes(&answer.0).ok()
    }
}

/// An entry: what the file is, what was asked and the length of each answer; then the answers.
fn encode(info: &FileInfo, answers: &BTreeMap<Asked, &[u8]>) -> Option<Vec<u8>> {
    let lengths: Vec<(Asked, u64)> = answers.iter().map(|(asked, answer)| (*asked, answer.len() as u64)).collect();
    let mut entry = postcard::to_stdvec(&(info, lengths)).ok()?;
    answers.values().for_each(|answer| entry.extend_from_slice(answer));
    Some(entry)
}

/// The parts of an entry made by [`encode`].
struct Entry<'a> {
    info: FileInfo,
    answers: Vec<(Asked, &'a [u8])>,
}

/// Takes an entry apart. It is whole, but it need not be ours.
fn decode(entry: &[u8]) -> Option<Entry<'_>> {
    let ((info, lengths), mut rest) = postcard::take_from_bytes::<(FileInfo, Vec<(Asked, u64)>)>(entry).ok()?;
    let mut answers = Vec::with_capacity(lengths.len());
    for (asked, length) in lengths {
        let (answer, behind) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        answers.push((asked, answer));
        rest = behind;
    }
    (rest.is_empty() && !info.swmr).then_some(Entry { info, answers })
}

/// Whether all chunks could be told; what could not be read may be readable next time.
fn is_known(map: &ChunkMap) -> bool {
    map.iter().all(|chunk| !chunk.is_unknown())
}

impl File {
    /// A group with its links and a description of every object behind them; see [`h5::Client::group`].
    ///
    /// # Errors
    /// As there.
    pub fn group(self: &Arc<Self>, id: ObjectId, interrupt: &Interrupt) -> Result<Group, h5::Error> {
        let group = self.answer(Asked::Group(id), |group| self.lasts(group), || self.client().group(id, interrupt))?;
        if id == self.info().root {
            self.root_attributes.get_or_init(|| group.attributes.clone());
        }
        Ok(group)
    }

    /// Whether a group will be told so the next time.
    fn lasts(&self, group: &Group) -> bool {
        // Why a plugin cannot be loaded may lie outside its folder, and pass.
        group.is_whole() && (!self.client().has_plugins() || group.has_all_filters())
    }

    /// The attributes of the root group, which is listed for it if it has not been.
    ///
    /// # Errors
    /// As [`File::group`].
    pub fn root_attributes(self: &Arc<Self>, interrupt: &Interrupt) -> Result<Arc<[Attribute]>, h5::Error> {
        match self.root_attributes.get() {
            Some(known) => Ok(known.clone()),
            None => Ok(self.group(self.info().root, interrupt)?.attributes),
        }
    }

    /// One object.
    ///
    /// # Errors
    /// See [`h5::Error`].
    pub fn object(self: &Arc<Self>, id: ObjectId, interrupt: &Interrupt) -> Result<Object, h5::Error> {
        let plugins = self.client().has_plugins();
        let lasts = |object: &Object| object.is_whole() && (!plugins || object.has_all_filters());
        self.answer(Asked::Object(id), lasts, || self.client().object(id, interrupt))
    }

    /// The path of an object, the shortest one; `None` where no hard links lead to it from the root.
    ///
    /// # Errors
    /// See [`h5::Client::paths`].
    pub fn path_of(self: &Arc<Self>, id: ObjectId, interrupt: &Interrupt) -> Result<Option<String>, h5::Error> {
        self.answer(Asked::Path(id), Option::is_some, || {
            Ok(self.client().paths(id.file, &[id.address], interrupt)?.pop().flatten())
        })
    }

    /// The chunks of a chunked dataset.
    ///
    /// # Errors
    /// See [`h5::Client::chunks`].
    pub(in crate::store) fn chunks(
        self: &Arc<Self>,
        id: ObjectId,
        limit: u64,
        interrupt: &Interrupt,
    ) -> Result<ChunkMap, h5::Error> {
        let Some(what) = &self.answers.what else {
            self.store().counters().catalogue_asked.add(1);
            return self.client().chunks(id, limit, interrupt);
        };
        let what = format!("{what} chunks {id:?}");
        let known = self.answers.get::<ChunkMap>(Asked::Chunks(id)).or_else(|| {
            // A large map has an entry of its own.
            postcard::from_bytes(&self.store().kept().get(&self.source().identity(), &what)?).ok()
        });
        if let Some(map) = known.filter(|map| map.len() as u64 <= limit) {
            self.store().counters().catalogue_found.add(1);
            return Ok(map);
        }
        let map = self.client().chunks(id, limit, interrupt)?;
        self.store().counters().catalogue_asked.add(1);
        if !is_known(&map) {
            return Ok(map);
        }
        match postcard::to_stdvec(&map) {
            Ok(bytes) if bytes.len() <= LARGE_MAP => self.remember(Asked::Chunks(id), &bytes),
            // At once: it takes a part of the time that asking took, and a process that ends soon would leave it half
            // done.
            Ok(bytes) if bytes.len() <= LARGEST_MAP => {
                self.opening.put(&what, &bytes);
            }
            _ => {}
        }
        Ok(map)
    }

    /// Remembers what the worker tells of a small file in one answer.
    pub(super) fn look_ahead(self: &Arc<Self>, interrupt: &Interrupt) -> Result<(), h5::Error> {
        if self.answers.what.is_none() {
            return Ok(());
        }
        let ahead = self.client().ahead(interrupt)?;
        self.store().counters().catalogue_asked.add(1);
        for group in ahead.groups.into_iter().filter(|group| self.lasts(group)) {
            self.remember_as(Asked::Group(group.id), &group);
        }
        for (id, map) in ahead.chunks.into_iter().filter(|(_, map)| is_known(map)) {
            self.remember_as(Asked::Chunks(id), &map);
        }
        Ok(())
    }

    /// The remembered answer, or the worker's; remembered where it `lasts`.
    fn answer<T: Serialize + DeserializeOwned>(
        self: &Arc<Self>,
        asked: Asked,
        lasts: impl FnOnce(&T) -> bool,
        ask: impl FnOnce() -> Result<T, h5::Error>,
    ) -> Result<T, h5::Error> {
        if let Some(known) = self.answers.get(asked) {
            self.store().counters().catalogue_found.add(1);
            return Ok(known);
        }
        let answer = ask()?;
        self.store().counters().catalogue_asked.add(1);
        if self.answers.what.is_some() && lasts(&answer) {
            self.remember_as(asked, &answer);
        }
        Ok(answer)
    }

    fn remember_as<T: Serialize>(self: &Arc<Self>, asked: Asked, answer: &T) {
        if let Ok(bytes) = postcard::to_io(answer, Bounded(Vec::new())) {
            self.remember(asked, &bytes.0);
        }
    }

    fn remember(self: &Arc<Self>, asked: Asked, answer: &[u8]) {
        if self.answers.remember(self.store(), asked, answer) && self.store().kept().folder().is_some() {
            self.answers.unsaved.store(true, Ordering::Release);
            if !self.answers.told.swap(true, Ordering::AcqRel) {
                self.store().saver().tell(self);
            }
        }
    }

    /// Writes what the worker said and is not kept yet to the cache folder, together with what others have put there
    /// meanwhile. It is done in passing, too, and when the file is dropped.
    pub fn save_answers(&self) {
        self.answers.told.store(false, Ordering::Release);
        if !self.answers.unsaved.swap(false, Ordering::AcqRel) {
            return;
        }
        let Some(what) = &self.answers.what else { return };
        let others = self.store().kept().get(&self.source().identity(), what);
        let others = others.as_deref().and_then(decode).map(|entry| entry.answers).unwrap_or_default();
        let known: Vec<_> =
            self.answers.known.lock().answers.iter().map(|(asked, answer)| (*asked, answer.clone())).collect();
        let mut all: BTreeMap<Asked, &[u8]> = known.iter().map(|(asked, answer)| (*asked, &*answer.0)).collect();
        let mut bytes = all.values().map(|answer| answer.len() as u64).sum::<u64>();
        for (asked, answer) in others {
            let more = bytes.saturating_add(answer.len() as u64);
            if more <= MOST_REMEMBERED && !all.contains_key(&asked) {
                all.insert(asked, answer);
                bytes = more;
            }
        }
        if let Some(entry) = encode(self.info(), &all) {
            self.opening.put(what, &entry);
        }
    }

    /// Leaves the answers to the next opening of the same state of the file.
    pub(super) fn close(&self) {
        let Some(what) = &self.answers.what else { return };
        let known = std::mem::take(&mut *self.answers.known.lock());
        if !known.answers.is_empty() && self.source().check().is_ok() {
            let closed = Closed { what: what.clone(), info: self.info().clone(), known };
            self.store().closed().insert(self.source().identity(), closed.into());
        }
    }
}
