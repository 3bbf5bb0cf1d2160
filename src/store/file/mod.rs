//! An opened HDF5 file.

mod answers;
mod saver;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::{Error, Opening, SourceConstancy, Store};
use crate::catalogue::{Attribute, FileInfo};
use crate::h5::{self, Client};
use crate::source::{Interrupt, Source};

use answers::Answers;
pub(super) use answers::Closed;
pub(super) use saver::Saver;

/// An opened HDF5 file: an [`Opening`], the worker that runs libhdf5 on it, and the worker's answers.
#[derive(Debug)]
pub struct File {
    opening: Arc<Opening>,
    client: Arc<Client>,
    info: FileInfo,
    answers: Answers,
    /// Attributes of the root group, once it was listed.
    root_attributes: OnceLock<Arc<[Attribute]>>,
    /// Damaged chunk indexes found so far, by HDF5 path of the dataset.
    damage: Mutex<BTreeMap<String, Damage>>,
    /// Virtual datasets found so far that do not consist of chunks of one source, by HDF5 path, and why.
    unfollowed: Mutex<BTreeMap<String, String>>,
}

/// A fault of a chunk index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Number of chunks that cannot be read because of it.
    pub chunks: u64,
    /// Position of the first such chunk in the grid.
    pub first: u64,
    /// The fault.
    pub reason: String,
}

/// Most datasets whose damage is recorded.
const MOST_DAMAGED: usize = 10_000;

impl File {
    /// Opens a file. Facts about it, and its worker's answers, come from the cache folder if they are kept there.
    ///
    /// # Errors
    /// The cache folder does not have them, and the worker cannot open the file.
    pub fn open(
        store: Arc<Store>,
        source: Arc<Source>,
        client: Arc<Client>,
        interrupt: &Interrupt,
    ) -> Result<Arc<Self>, h5::Error> {
        let (answers, known) = Answers::of(&store, &source, &client);
        let is_new = known.is_none();
        let info = match known {
            Some(info) => info,
            None => {
                store.counters().catalogue_asked.add(1);
                client.file(interrupt)?
            }
        };
        // Answers about a file that a writer has open are not remembered.
        let answers = if info.swmr { Answers::none() } else { answers };
        let file = Arc::new(Self::with(store, source, client, info, answers));
        if is_new {
            file.look_ahead(interrupt)?;
        }
        Ok(file)
    }

    /// A file with known facts; its worker's answers are not remembered.
    pub fn new(store: Arc<Store>, source: Arc<Source>, client: Arc<Client>, info: FileInfo) -> Self {
        Self::with(store, source, client, info, Answers::none())
    }

    fn with(store: Arc<Store>, source: Arc<Source>, client: Arc<Client>, info: FileInfo, answers: Answers) -> Self {
        let content = match (info.swmr, client.follows_external()) {
            (true, _) => SourceConstancy::Growing,
            (false, true) => SourceConstancy::Scattered,
            (false, false) => SourceConstancy::Fixed,
        };
        Self {
            opening: Opening::new(store, source, content),
            client,
            info,
            answers,
            root_attributes: OnceLock::new(),
            damage: Mutex::default(),
            unfollowed: Mutex::default(),
        }
    }

    /// Damaged chunk indexes found so far, by HDF5 path of the dataset.
    pub fn damage(&self) -> BTreeMap<String, Damage> {
        self.damage.lock().clone()
    }

    /// Records that the chunk index of a dataset is damaged.
    pub(super) fn report_damage(&self, path: &str, damage: Damage) {
        tracing::warn!("{path}: chunk {}: {}", damage.first, damage.reason);
        let mut known = self.damage.lock();
        if known.len() < MOST_DAMAGED || known.contains_key(path) {
            known.insert(path.to_owned(), damage);
        }
    }

    /// Virtual datasets found so far that do not consist of chunks of one source, by HDF5 path, and why.
    pub fn unfollowed(&self) -> BTreeMap<String, String> {
        self.unfollowed.lock().clone()
    }

    /// Records that a virtual dataset does not consist of chunks of one source.
    pub(super) fn report_unfollowed(&self, path: &str, reason: String) {
        let mut known = self.unfollowed.lock();
        if known.len() < MOST_DAMAGED {
            known.insert(path.to_owned(), reason);
        }
    }

    /// The part that is independent of HDF5: bytes, and facts learnt about them.
    pub fn opening(&self) -> &Arc<Opening> {
        &self.opening
    }

    /// Its worker.
    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Facts about it.
    pub fn info(&self) -> &FileInfo {
        &self.info
    }

    /// Bytes of a variable-length descriptor as stored: length, address, index.
    pub fn descriptor_size(&self) -> usize {
        4 + usize::from(self.info.address_size) + 4
    }

    /// See [`Opening::serial`].
    pub fn serial(&self) -> u64 {
        self.opening.serial()
    }

    /// See [`Opening::source`].
    pub fn source(&self) -> &Arc<Source> {
        self.opening.source()
    }

    /// See [`Opening::store`].
    pub fn store(&self) -> &Arc<Store> {
        self.opening.store()
    }

    /// See [`Opening::check`].
    ///
    /// # Errors
    /// As [`Opening::check`].
    pub fn check(&self) -> Result<(), Error> {
        self.opening.check()
    }

    /// See [`Opening::why_not_kept`].
    pub fn why_not_kept(&self) -> Option<&'static str> {
        self.opening.why_not_kept()
    }

    /// See [`Opening::size`].
    pub(super) fn size(&self) -> Result<u64, Error> {
        self.opening.size()
    }

    /// See [`Opening::read_at`].
    pub(super) fn read_at(&self, offset: u64, out: &mut [u8], interrupt: &Interrupt) -> Result<(), Error> {
        self.opening.read_at(offset, out, interrupt)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.save_answers();
        self.close();
    }
}
