//! An opened HDF5 file.

mod answers;
mod saver;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::catalogue::{FileInfo, ObjectId};
use crate::h5::{self, Client};
use crate::source::{Interrupt, Source};
use crate::store::{Error, Learner, Rows, Store};

use answers::Answers;
pub(super) use saver::Saver;

/// An opened HDF5 file: its bytes, the worker that speaks libhdf5 about it, and the store that keeps what was decoded.
///
/// Everything kept of it belongs to one state of the file; when the last user drops it, the store forgets it.
#[derive(Debug)]
pub struct File {
    serial: u64,
    source: Arc<Source>,
    client: Arc<Client>,
    info: FileInfo,
    store: Arc<Store>,
    answers: Answers,
    /// By HDF5 path and what tells columns of one path apart. They stay as long as the file is open, so that what is shown of a column stays what it was.
    learners: Mutex<BTreeMap<(String, ObjectId, u64), Arc<Learner>>>,
    /// What was learnt once for as long as the file is open, such as verdicts on search indexes.
    learnt: Mutex<BTreeMap<String, Arc<[u8]>>>,
}

impl File {
    /// A file: facts about it, and what its worker says of it, come from the cache folder where they are kept.
    ///
    /// # Errors
    /// Where they are not, and the worker cannot open it.
    pub fn open(
        store: Arc<Store>,
        source: Arc<Source>,
        client: Arc<Client>,
        interrupt: &Interrupt,
    ) -> Result<Self, h5::Error> {
        let (answers, known) = Answers::of(&store, &source, &client);
        let info = match known {
            Some(info) => info,
            None => {
                store.stats().catalogue_asked.add(1);
                client.file(interrupt)?
            }
        };
        // What a writer has open is asked for anew each time.
        let answers = if info.swmr { Answers::none() } else { answers };
        Ok(Self::with(store, source, client, info, answers))
    }

    /// A file whose facts are known; nothing that its worker says is remembered.
    pub fn new(store: Arc<Store>, source: Arc<Source>, client: Arc<Client>, info: FileInfo) -> Self {
        Self::with(store, source, client, info, Answers::none())
    }

    fn with(store: Arc<Store>, source: Arc<Source>, client: Arc<Client>, info: FileInfo, answers: Answers) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let serial = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { serial, source, client, info, store, answers, learners: Mutex::default(), learnt: Mutex::default() }
    }

    /// Number of this opening, unique in the process: what is cached of the file is cached under it.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// Its bytes.
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Its worker.
    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Facts about it.
    pub fn info(&self) -> &FileInfo {
        &self.info
    }

    /// Where decoded chunks are kept.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Bytes of a variable-length descriptor as stored: length, address, index.
    pub fn descriptor_size(&self) -> usize {
        4 + usize::from(self.info.address_size) + 4
    }

    /// Says whether what was read still belongs to the file that was opened. A file that is written to in SWMR mode
    /// may grow: that is no change.
    ///
    /// # Errors
    /// [`source::Error::Changed`](crate::source::Error::Changed) after a rewrite in place.
    pub fn check(&self) -> Result<(), Error> {
        if self.info.swmr { Ok(()) } else { Ok(self.source.check()?) }
    }

    /// What is kept of this file as `what` in the user's cache folder; see [`Kept::get`](crate::store::Kept::get). Nothing is of a
    /// file whose identity does not stand for its content: one that a writer has open in SWMR mode, or that may read others.
    pub fn kept(&self, what: &str) -> Option<Vec<u8>> {
        if !self.has_one_content() {
            return None;
        }
        let found = self.store.kept().get(&self.source.identity(), what)?;
        self.store.stats().kept_found.add(1);
        Some(found)
    }

    /// Whether its identity stands for its content: no writer has it open in SWMR mode, and it reads no other files.
    pub fn has_one_content(&self) -> bool {
        !self.info.swmr && !self.client.follows_external()
    }

    /// What was learnt of this file as `what`: since it was opened, or kept by somebody else.
    pub fn recall(&self, what: &str) -> Option<Arc<[u8]>> {
        if let Some(known) = self.learnt.lock().get(what) {
            return Some(known.clone());
        }
        let kept: Arc<[u8]> = self.kept(what)?.into();
        Some(self.learnt.lock().entry(what.to_owned()).or_insert(kept).clone())
    }

    /// Remembers what was learnt as `what` for as long as the file is open, and if it is `lasting` keeps it where that can be.
    /// Says whether it is kept.
    pub fn note(&self, what: &str, bytes: &[u8], lasting: bool) -> bool {
        self.learnt.lock().insert(what.to_owned(), bytes.into());
        lasting && self.keep(what, bytes)
    }

    /// Whether files show what is known as `what`: as it was `now`, when it was first asked of this state of the source.
    pub fn shows(&self, what: &str, now: bool) -> bool {
        // The source may have been opened before, and forgotten when nobody used it.
        self.store.decisions().take(&self.source.identity(), what, now)
    }

    /// Why [`File::keep`] keeps nothing of this file, where something about the file or the options is in the way.
    pub fn why_not_kept(&self) -> Option<&'static str> {
        if self.store.kept().folder().is_none() {
            Some("there is no cache folder")
        } else if self.info.swmr {
            Some("a writer has the file open in SWMR mode, so its content may change")
        } else if self.client.follows_external() {
            Some("with --follow-external values may lie in other files, whose changes nothing tells")
        } else if !self.source.was_settled() {
            Some("the file had just been written when it was opened")
        } else if self.source.check().is_err() {
            Some("the file has changed since it was opened")
        } else {
            None
        }
    }

    /// Keeps what was computed from this file as `what`; says whether it is kept. See [`Kept::put`](crate::store::Kept::put).
    /// Nothing is kept where the file may have changed since it was opened.
    pub fn keep(&self, what: &str, bytes: &[u8]) -> bool {
        let kept = self.put(what, bytes);
        self.store.stats().kept_written.add(u64::from(kept));
        kept
    }

    /// As [`File::keep`], uncounted.
    pub(in crate::store) fn put(&self, what: &str, bytes: &[u8]) -> bool {
        self.why_not_kept().is_none() && self.store.kept().put(&self.source.identity(), what, bytes)
    }

    /// What learns the statistics of the column at `path`, which is object `id`, always the same one; `None` where there
    /// are none: of types without order, and of files whose identity does not stand for their content, as for what is
    /// kept.
    pub fn learner(self: &Arc<Self>, path: &str, id: ObjectId, rows: &dyn Rows) -> Option<Arc<Learner>> {
        if !self.has_one_content() {
            return None;
        }
        // Two paths that are no UTF-8 may read the same: the object's number tells them apart.
        let key = (path.to_owned(), id, rows.len());
        let mut learners = self.learners.lock();
        if let Some(known) = learners.get(&key) {
            return Some(known.clone());
        }
        let fresh = Arc::new(Learner::new(&Arc::downgrade(self), path, id, rows)?);
        learners.insert(key, fresh.clone());
        Some(fresh)
    }

    /// The learners of columns opened so far, by HDF5 path.
    pub fn learners(&self) -> Vec<Arc<Learner>> {
        self.learners.lock().values().cloned().collect()
    }

    /// Length of the file in bytes, as opened; as it is now where a writer has it open.
    pub(in crate::store) fn size(&self) -> Result<u64, Error> {
        Ok(if self.info.swmr { self.source.metadata()?.len() } else { self.source.identity().size })
    }

    /// Fills `out` from byte `offset` on, and counts.
    pub(in crate::store) fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        self.source.read_at(offset, out)?;
        self.store.stats().bytes_read.add(out.len() as u64);
        Ok(())
    }

    /// Appends `length` bytes from byte `offset` on to `out`, and counts.
    pub(in crate::store) fn append_at(&self, offset: u64, length: usize, out: &mut Vec<u8>) -> Result<(), Error> {
        self.source.append_at(offset, length, out)?;
        self.store.stats().bytes_read.add(length as u64);
        Ok(())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.save_answers();
        self.store.forget(self.serial);
    }
}
