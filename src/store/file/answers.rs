//! Remembers the HDF5 worker's answers about a file, also in the user's cache folder, so that a later mount of the same
//! file starts no worker.
//!
//! One entry per file contains the facts about it, and every group, object and small chunk map requested so far; a
//! large chunk map has its own entry. The key is the file's identity, [`FORM`], the version of libhdf5, and the
//! worker's settings. Entries are written a moment after the last answer, and when the file is dropped.
//!
//! Only answers that will be the same next time are remembered: those without failures, about a file whose identity
//! determines its content (no writer has it open, it had not just changed, it does not lead to others). A failure may
//! be gone next time.

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
use crate::catalogue::{Attribute, ChunkMap, Dataset, FileInfo, Group, Layout, Object, ObjectId};
use crate::h5;
use crate::source::{Interrupt, Source};
use crate::store::{Reservation, Store};

/// Version of the types of [`crate::catalogue`] and of the worker's interpretation of a file: entries of another
/// version are ignored. A test ties the form to this number.
const FORM: u32 = 6;

/// Most bytes of answers to remember for a file, unless [`SHARE`] allows fewer: some 100,000 columns.
const MOST_REMEMBERED: u64 = 64 << 20;

/// Share of the budget, as a divisor, for the answers about one file.
const SHARE: u64 = 16;

/// Approximate bytes of an answer's entry besides its content.
const OVERHEAD: u64 = 96;

/// Most chunks of a dataset whose stored bytes are counted: this takes a few milliseconds.
const FEW_CHUNKS: u64 = 1 << 16;

/// Bytes of the largest chunk map in the common entry. A larger one has its own, so that opening the file does not read
/// all of them.
const LARGE_MAP: usize = 64 << 10;

/// Bytes of the largest chunk map to keep: a larger one would fill a cache folder of the default size.
const LARGEST_MAP: usize = 128 << 20;

/// A question to the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Asked {
    Group(ObjectId),
    Object(ObjectId),
    Chunks(ObjectId),
    Path(ObjectId),
}

/// An answer as Postcard, with its share of the memory budget.
#[derive(Debug)]
struct Remembered(Box<[u8]>, #[expect(dead_code, reason = "it is given back with the answer")] Reservation);

/// Answers in memory.
#[derive(Debug, Default)]
struct Known {
    answers: BTreeMap<Asked, Arc<Remembered>>,
    /// Bytes that the answers take.
    bytes: u64,
}

/// A writer that fails once there are too many bytes to remember.
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

/// Answers about a closed file, for its next opening; evicted under memory pressure.
#[derive(Debug)]
pub(in crate::store) struct Closed {
    what: String,
    info: FileInfo,
    known: Known,
}

/// Answers about one file.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// The key in the cache folder, which distinguishes workers; `None`: nothing is remembered.
    what: Option<String>,
    known: Mutex<Known>,
    /// Whether some answer has not been saved.
    unsaved: AtomicBool,
    /// Whether [`Saver`](super::Saver) has been notified of unsaved answers.
    told: AtomicBool,
}

impl Answers {
    /// No answers; none will be remembered either.
    pub fn none() -> Self {
        Self::default()
    }

    /// The answers of an earlier opening or of the cache folder, with the facts about the file.
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

    /// Remembers an answer if there is room; returns whether it did.
    fn remember(&self, store: &Store, asked: Asked, answer: &[u8]) -> bool {
        let bytes = answer.len() as u64 + OVERHEAD;
        let most = MOST_REMEMBERED.min(store.budget().limit() / SHARE);
        if self.known.lock().bytes.saturating_add(bytes) > most {
            return false;
        }
        // Reserves memory outside the lock, since that may evict what other files remember.
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

/// Encodes an entry: the facts about the file, the questions, the length of each answer; then the answers.
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

/// Parses an entry, which is complete but may be foreign.
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

/// Whether the map is complete; unreadable parts may be readable next time.
fn is_known(map: &ChunkMap) -> bool {
    map.iter().all(|chunk| !chunk.is_unknown())
}

impl File {
    /// A group with its links, and a description of every object behind them; see [`h5::Client::group`].
    ///
    /// # Errors
    /// As [`h5::Client::group`].
    pub fn group(self: &Arc<Self>, id: ObjectId, interrupt: &Interrupt) -> Result<Group, h5::Error> {
        let group = self.answer(Asked::Group(id), |group| self.lasts(group), || self.client().group(id, interrupt))?;
        if id == self.info().root {
            self.root_attributes.get_or_init(|| group.attributes.clone());
        }
        Ok(group)
    }

    /// Whether the next request for a group will get the same answer.
    fn lasts(&self, group: &Group) -> bool {
        // What keeps a plugin from loading may be outside of its folder, and may go away.
        group.is_whole() && (!self.client().has_plugins() || group.has_all_filters())
    }

    /// The attributes of the root group; lists it if need be.
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

    /// The shortest path of an object; `None`: no hard links lead to it from the root.
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
            // Saved at once: that takes a fraction of the time of the request, and a process that ends soon would lose
            // it.
            Ok(bytes) if bytes.len() <= LARGEST_MAP => {
                self.opening.put(&what, &bytes);
            }
            _ => {}
        }
        Ok(map)
    }

    /// Bytes that a dataset's elements take in the file, without the heap objects of elements of variable length.
    /// `None`: they lie elsewhere, their index is damaged, or too many chunks would have to be counted.
    ///
    /// # Errors
    /// See [`h5::Client::chunks`].
    pub fn stored_bytes(self: &Arc<Self>, dataset: &Dataset, interrupt: &Interrupt) -> Result<Option<u64>, h5::Error> {
        let chunks = match &dataset.layout {
            Layout::Contiguous { address: None } => return Ok(Some(0)),
            Layout::Compact | Layout::Contiguous { .. } => return Ok(dataset.bytes()),
            Layout::Chunked { chunk, .. } => {
                let counts = dataset.shape.iter().zip(chunk).map(|(extent, chunk)| extent.div_ceil((*chunk).max(1)));
                counts.fold(1, u64::saturating_mul)
            }
            Layout::Virtual { .. } | Layout::External { .. } | Layout::Unknown(_) => return Ok(None),
        };
        if chunks > FEW_CHUNKS {
            return Ok(None);
        }
        let map = self.chunks(dataset.id, chunks, interrupt)?;
        Ok(is_known(&map).then(|| map.iter().map(|chunk| chunk.size).fold(0, u64::saturating_add)))
    }

    /// Remembers the single answer in which the worker describes a small file.
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

    /// The remembered answer, or the worker's, remembered if it `lasts`.
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

    /// Writes unsaved answers to the cache folder, merged with those that others have saved meanwhile. A thread also
    /// does this from time to time, and so does dropping the file.
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
