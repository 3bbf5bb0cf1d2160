//! Results about some sources, in one file that travels to other hosts (`hepfs prepare --export`).
//!
//! It holds entries of a cache folder, as they are there. Numbers are little-endian:
//!
//! ```text
//! 8 bytes  b"hepfs\0L1"
//! entries  see `kept`; each names the identity of its source on the host where it was learnt
//! 8 bytes  xxh3 of all before
//! ```
//!
//! Of each local file there is one more entry, [`CONTENT`], the SHA-256 of all its bytes. A file elsewhere is the same
//! source if it has that hash: size and times would let other content pass, and statistics decide which rows are
//! skipped. An object of a store is the same if its identity is, which has its version.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use xxhash_rust::xxh3::Xxh3;

use super::{KeptFolder, decode, encode, key, parts};
use crate::source::{self, Identity, Interrupt, Opener, Source};

const MAGIC: &[u8; 8] = b"hepfs\0L1";

/// The entry with the hash of a local file's bytes.
pub(super) const CONTENT: &str = "SHA-256 of all bytes";

/// Bytes of the longest key.
const LONGEST_KEY: u64 = 64 << 10;

/// Most bytes of all keys together, which are kept in memory.
const MOST_KEYS: usize = 64 << 20;

/// Bytes to check at once.
const PIECE: usize = 1 << 20;

/// Why nothing is taken from a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LearntError {
    /// It cannot be opened or read.
    #[error(transparent)]
    Source(#[from] source::Error),
    /// Others than this user and root may have written it.
    #[error("{path}: {reason}", path = .0.display(), reason = .1)]
    Refused(PathBuf, &'static str),
    /// Not such a file, or a damaged one.
    #[error("{path}: not a file of `hepfs prepare --export`, or damaged: {reason}", path = .0.display(), reason = .1)]
    Damaged(PathBuf, &'static str),
    /// Another version of hepfs made it.
    #[error(
        "{path}: made by hepfs {version}, and this is {own}",
        path = .0.display(),
        version = .1.escape_debug(),
        own = env!("CARGO_PKG_VERSION")
    )]
    Version(PathBuf, String),
}

/// Entries about sources, learnt elsewhere. Only their keys are in memory.
#[derive(Debug)]
pub struct LearntFile {
    file: Source,
    sources: Vec<Learnt>,
    /// Sources of this process that were compared, with the position of each in `sources`.
    compared: Mutex<HashMap<Identity, Option<usize>>>,
}

/// The entries about one source.
#[derive(Debug)]
struct Learnt {
    /// Identity where it was learnt.
    identity: Identity,
    /// Place of each entry in the file.
    entries: HashMap<String, Range<u64>>,
}

impl LearntFile {
    /// Opens a file, or the object at an address, checks all of it, and lists its entries. A local file is refused if
    /// others may write to it. Of an object, that is left to its store.
    ///
    /// # Errors
    /// See [`LearntError`].
    pub fn open(path: &Path, opener: &Opener) -> Result<Self, LearntError> {
        let file = opener.open(path, &Interrupt::new())?;
        let described = file.descriptor().map(rustix::fs::fstat).transpose();
        let described = described.map_err(|error| source::Error::Io { path: path.to_owned(), error: error.into() })?;
        if let Some(stat) = described {
            if stat.st_uid != rustix::process::geteuid().as_raw() && stat.st_uid != 0 {
                return Err(LearntError::Refused(path.to_owned(), "it belongs to another user"));
            }
            if stat.st_mode & 0o022 != 0 {
                return Err(LearntError::Refused(path.to_owned(), "others may write to it"));
            }
        }
        let size = file.identity().size;
        let start = MAGIC.len() as u64;
        let end = size.checked_sub(8).filter(|end| *end >= start).ok_or_else(|| damaged(path, "it is too short"))?;
        if bytes(&file, 0, start)? != MAGIC {
            return Err(damaged(path, "it begins otherwise"));
        }
        if !is_whole(&file, end)? {
            return Err(damaged(path, "its checksum differs"));
        }
        let (mut at, mut keys, mut sources) = (start, 0, Vec::<Learnt>::new());
        let mut positions = HashMap::<Identity, usize>::new();
        while at < end {
            let (key, next) = entry_at(&file, at, end)?.ok_or_else(|| damaged(path, "an entry passes its end"))?;
            keys += key.len();
            if keys > MOST_KEYS {
                return Err(damaged(path, "its keys take too much memory"));
            }
            let (version, identity, what) = parts(&key).ok_or_else(|| damaged(path, "a key cannot be read"))?;
            if version != env!("CARGO_PKG_VERSION") {
                return Err(LearntError::Version(path.to_owned(), version));
            }
            let position = *positions.entry(identity).or_insert_with(|| {
                sources.push(Learnt { identity, entries: HashMap::new() });
                sources.len() - 1
            });
            if let Some(learnt) = sources.get_mut(position) {
                learnt.entries.insert(what, at..next);
            }
            at = next;
        }
        Ok(Self { file, sources, compared: Mutex::default() })
    }

    /// Finds what is known of a source, if that was not done before. `hash` hashes all its bytes. Nothing is taken for
    /// one that had just been written: its identity does not stand for the bytes that are hashed.
    ///
    /// # Errors
    /// Those of `hash`.
    pub(super) fn compare(
        &self,
        source: &Source,
        hash: impl FnOnce() -> Result<[u8; 32], source::Error>,
    ) -> Result<(), source::Error> {
        let identity = source.identity();
        if self.compared.lock().contains_key(&identity) {
            return Ok(());
        }
        let (file, path) = (self.file.path().display(), source.path().display());
        if !source.was_settled() {
            tracing::warn!("{path} had just been written when it was opened: nothing is taken from {file} for it");
            return Ok(());
        }
        let position = match self.sources.iter().position(|learnt| learnt.identity == identity) {
            Some(position) => Some(position),
            None => self.same_content(source, hash)?,
        };
        if position.is_none() {
            tracing::warn!("{file} knows nothing of {path} as it is now: nothing is taken from there for it");
        }
        self.compared.lock().insert(identity, position);
        Ok(())
    }

    fn same_content(
        &self,
        source: &Source,
        hash: impl FnOnce() -> Result<[u8; 32], source::Error>,
    ) -> Result<Option<usize>, source::Error> {
        let size = source.identity().size;
        let of_size = self.sources.iter().map(|learnt| Some(learnt).filter(|learnt| learnt.identity.size == size));
        let hashes: Vec<_> = of_size.map(|learnt| self.entry(learnt?, CONTENT)).collect();
        if source.is_remote() || hashes.iter().all(Option::is_none) {
            return Ok(None);
        }
        let hash = hash()?;
        Ok(hashes.iter().position(|known| known.as_deref() == Some(&hash)))
    }

    /// The entry `what` about a source of this process that was [compared](Self::compare).
    pub(super) fn get(&self, identity: &Identity, what: &str) -> Option<Vec<u8>> {
        let position = (*self.compared.lock().get(identity)?)?;
        self.entry(self.sources.get(position)?, what)
    }

    fn entry(&self, learnt: &Learnt, what: &str) -> Option<Vec<u8>> {
        let place = learnt.entries.get(what)?;
        let found = bytes(&self.file, place.start, place.end - place.start);
        found.ok().and_then(|found| decode(found, &key(&learnt.identity, what)))
    }
}

/// The key of the entry at byte `at` of a file whose entries end at `end`, and the end of the entry. `None`: no
/// entry fits there, or its key is too long.
fn entry_at(file: &Source, at: u64, end: u64) -> Result<Option<(Vec<u8>, u64)>, source::Error> {
    // Its magic, the length of the key, the key, the length of the bytes, the bytes, a checksum.
    let Some(length) = number_at(file, at + 8, 4, end)?.filter(|length| *length <= LONGEST_KEY) else {
        return Ok(None);
    };
    let behind_key = at + 12 + length;
    let Some(content) = number_at(file, behind_key, 8, end)? else { return Ok(None) };
    let next = (behind_key + 16).checked_add(content).filter(|next| *next <= end);
    let key = bytes(file, at + 12, length)?;
    Ok(next.map(|next| (key, next)))
}

/// A number of `width` bytes; `None`: it passes `end`.
fn number_at(file: &Source, at: u64, width: usize, end: u64) -> Result<Option<u64>, source::Error> {
    if at.checked_add(width as u64).is_none_or(|behind| behind > end) {
        return Ok(None);
    }
    let mut number = [0; 8];
    file.read_at(at, number.get_mut(..width).unwrap_or_default(), &Interrupt::new())?;
    Ok(Some(u64::from_le_bytes(number)))
}

fn damaged(path: &Path, reason: &'static str) -> LearntError {
    LearntError::Damaged(path.to_owned(), reason)
}

/// Whether the bytes before `end` have the checksum that stands there.
fn is_whole(file: &Source, end: u64) -> Result<bool, source::Error> {
    let (mut sum, mut at) = (Xxh3::new(), 0);
    while at < end {
        let piece = bytes(file, at, (end - at).min(PIECE as u64))?;
        sum.update(&piece);
        at += piece.len() as u64;
    }
    Ok(bytes(file, end, 8)? == sum.digest().to_le_bytes())
}

/// Bytes that lie within the file.
fn bytes(file: &Source, at: u64, length: u64) -> Result<Vec<u8>, source::Error> {
    let mut read = Vec::new();
    file.append_at(at, usize::try_from(length).unwrap_or(usize::MAX), &mut read, &Interrupt::new())?;
    Ok(read)
}

/// Collects what a cache folder holds of some sources, for a [`LearntFile`].
#[derive(Debug, Default)]
pub struct LearntWriter {
    /// The identity of each source, and the hash of a local one.
    sources: HashMap<Identity, Option<[u8; 32]>>,
}

/// Counts what a [`LearntWriter`] has written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrittenEntries {
    /// Number of entries, without hashes of files.
    pub entries: u64,
    /// Number of sources.
    pub sources: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

impl LearntWriter {
    /// Adds a source; reads all of a local one. Leaves out one that had just been written when it was opened: its
    /// identity does not stand for its bytes.
    ///
    /// # Errors
    /// If it cannot be read, or has changed.
    pub fn add(&mut self, source: &Source, interrupt: &Interrupt) -> Result<(), source::Error> {
        let identity = source.identity();
        if source.was_settled() && !self.sources.contains_key(&identity) {
            let hash = if source.is_remote() { None } else { Some(source.digest(interrupt)?) };
            self.sources.insert(identity, hash);
        }
        Ok(())
    }

    /// Writes all that the folder holds of these sources.
    ///
    /// # Errors
    /// If the folder cannot be read, or `out` cannot be written to.
    pub fn write(&self, kept: &KeptFolder, out: &mut impl Write) -> io::Result<WrittenEntries> {
        let written = WrittenEntries { sources: self.sources.len() as u64, ..WrittenEntries::default() };
        let mut out = Summed { out, sum: Xxh3::new(), written };
        out.put(MAGIC)?;
        let hashes = self.sources.iter().filter_map(|(identity, hash)| encode(&key(identity, CONTENT), &(*hash)?));
        for entry in hashes.collect::<BTreeSet<_>>() {
            out.put(&entry)?;
        }
        if let Some(folder) = &kept.folder {
            folder.each(|key, entry| match parts(key) {
                Some((version, identity, what))
                    if version == env!("CARGO_PKG_VERSION")
                        && what != CONTENT
                        && self.sources.contains_key(&identity) =>
                {
                    out.written.entries += 1;
                    out.put(entry)
                }
                _ => Ok(()),
            })?;
        }
        let sum = out.sum.digest();
        out.put(&sum.to_le_bytes())?;
        Ok(out.written)
    }
}

/// A writer with the checksum of all that went through it.
struct Summed<'a, W> {
    out: &'a mut W,
    sum: Xxh3,
    written: WrittenEntries,
}

impl<W: Write> Summed<'_, W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum.update(bytes);
        self.written.bytes += bytes.len() as u64;
        self.out.write_all(bytes)
    }
}
