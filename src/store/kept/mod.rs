//! Entries about sources in the user's cache folder: block indexes, page sizes, statistics.
//!
//! Everything here can be recomputed, so deleting the folder loses nothing, and any fault of it (a full disk, a damaged
//! entry, another user's folder) costs time and nothing else: an entry is either the bytes that were put, or absent.
//!
//! Each entry is a file named by a hash of its key, with all numbers little-endian:
//!
//! ```text
//! 8 bytes  b"hepfs\0K1"
//! 4 bytes  length of the key
//! key      postcard of (version of hepfs, identity of the source, what it is)
//! 8 bytes  length of the bytes
//! bytes
//! 8 bytes  xxh3 of all before
//! ```
//!
//! Entries are written to a temporary name and renamed, so several processes can share a folder without locks: each
//! sees an entry complete or not at all. Reading sets an entry's mtime; when all entries exceed the limit, the oldest
//! are removed. Only files with the names of entries are ever removed.

mod learnt;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, FileTimes, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use rustix::fs::Access;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::source::{self, Identity, Interrupt, Source};

pub use learnt::{LearntError, LearntFile, LearntWriter, WrittenEntries};

const MAGIC: &[u8; 8] = b"hepfs\0K1";

/// Bytes of an entry besides its key and content.
const FRAME: usize = MAGIC.len() + 4 + 8 + 8;

/// Suffix of the name of an entry, after 32 hexadecimal digits.
const SUFFIX: &str = ".kept";

/// Suffix of the name of an entry that is being written.
const TEMPORARY: &str = ".part";

/// A temporary file untouched for this long belongs to a process that was killed.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Entries to put into a small folder before listing it again: other processes put entries as well.
const MOST_PUT: u64 = 256;

/// Unit of disk space.
const BLOCK: u64 = 4096;

/// A folder of entries about sources, bounded in size; and a file of entries from elsewhere, which come first. Clones
/// share both.
#[derive(Clone, Debug)]
pub struct KeptFolder {
    folder: Option<Arc<Folder>>,
    learnt: Arc<OnceLock<LearntFile>>,
}

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// Most bytes of all entries.
    limit: u64,
    swept: Mutex<Swept>,
    /// The first fault of the folder, or of one that it shares with.
    trouble: Arc<OnceLock<String>>,
}

/// Sizes of the folder, updated since it was last listed.
#[derive(Debug, Default)]
struct Swept {
    /// Bytes of all entries.
    bytes: u64,
    /// Number of further entries to put before listing again.
    unseen: u64,
}

impl KeptFolder {
    /// A cache that keeps nothing.
    pub fn none() -> Self {
        Self { folder: None, learnt: Arc::default() }
    }

    /// Keeps entries in a folder of this user, created when the first is put, with at most `limit` bytes on disk (apart
    /// from simultaneous additions of other processes).
    pub fn new(folder: PathBuf, limit: u64) -> Self {
        Self::with(folder, limit, Arc::default())
    }

    fn with(path: PathBuf, limit: u64, trouble: Arc<OnceLock<String>>) -> Self {
        let folder = Folder { path, limit, swept: Mutex::default(), trouble };
        Self { folder: Some(Arc::new(folder)), learnt: Arc::default() }
    }

    /// A folder in this one, with a limit of its own: no bytes, no folder. Of faults of both, the first one is said.
    pub fn below(&self, name: &str, limit: u64) -> Self {
        let folder = self.folder.as_ref().filter(|_| limit > 0);
        folder.map_or_else(Self::none, |above| Self::with(above.path.join(name), limit, above.trouble.clone()))
    }

    /// Takes entries from this file as well, before those of the folder: so all mounts that have the file show the
    /// same. Only the first call counts.
    pub fn learn_from(&self, file: LearntFile) {
        self.learnt.set(file).ok();
    }

    /// Finds out whether the learnt file is about this source, before anything is asked about it. A local file that is
    /// not the very one is read whole for that, once; the folder keeps the hash.
    ///
    /// # Errors
    /// If the source cannot be read.
    pub fn compare(&self, source: &Source, interrupt: &Interrupt) -> Result<(), source::Error> {
        let Some(learnt) = self.learnt.get() else { return Ok(()) };
        learnt.compare(source, || {
            let identity = source.identity();
            let kept = self.folder.as_ref().and_then(|folder| folder.get(&key(&identity, learnt::CONTENT)).ok()?);
            if let Some(hash) = kept.and_then(|kept| kept.try_into().ok()) {
                return Ok(hash);
            }
            let hash = source.digest(interrupt)?;
            self.put(&identity, learnt::CONTENT, &hash);
            Ok(hash)
        })
    }

    /// The folder, if any.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_ref().map(|folder| folder.path.as_path())
    }

    /// Creates the folder now, so that a warning about its faults comes at once.
    pub fn try_out(&self) {
        if let Some(folder) = &self.folder
            && let Err(error) = folder.make().and_then(|()| Ok(rustix::fs::access(&folder.path, Access::WRITE_OK)?))
        {
            folder.warn("cannot be written to", &error);
        }
    }

    /// The first fault of the folder, if any.
    pub fn trouble(&self) -> Option<&str> {
        self.folder.as_ref()?.trouble.get().map(String::as_str)
    }

    /// The entry put under `what` for a source with this identity: the same bytes, or `None` if there is no complete
    /// and undamaged one.
    ///
    /// `what` names everything besides the source on which the bytes depend: object path, view, options, version of the
    /// computation.
    pub fn get(&self, identity: &Identity, what: &str) -> Option<Vec<u8>> {
        if let Some(learnt) = self.learnt.get().and_then(|learnt| learnt.get(identity, what)) {
            return Some(learnt);
        }
        let folder = self.folder.as_ref()?;
        folder.get(&key(identity, what)).unwrap_or_else(|error| {
            folder.warn("cannot be read", &error);
            None
        })
    }

    /// Keeps `bytes` as `what` of a source with this identity; returns whether they are kept. May list the folder and
    /// remove old entries, so no request should wait for it.
    ///
    /// The bytes must come from a source that had this identity all the while; see
    /// [`Opening::keep`](super::Opening::keep).
    pub fn put(&self, identity: &Identity, what: &str, bytes: &[u8]) -> bool {
        let Some(folder) = &self.folder else { return false };
        match folder.put(&key(identity, what), bytes) {
            Ok(kept) => kept,
            Err(error) => {
                folder.warn("cannot be written to", &error);
                false
            }
        }
    }
}

/// The version is part of the key, since other versions may compute differently.
fn key(identity: &Identity, what: &str) -> Vec<u8> {
    // Serialising such a value to a vector does not fail; an empty key would find nothing.
    postcard::to_stdvec(&(env!("CARGO_PKG_VERSION"), identity, what)).unwrap_or_default()
}

fn file_name(key: &[u8]) -> String {
    format!("{:032x}{SUFFIX}", xxh3_128(key))
}

fn is_entry(name: &str) -> bool {
    name.strip_suffix(SUFFIX).is_some_and(|hash| hash.len() == 32 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn is_temporary(name: &str) -> bool {
    name.strip_suffix(TEMPORARY).and_then(|name| name.get(..32 + SUFFIX.len())).is_some_and(is_entry)
}

/// The file of an entry.
fn encode(key: &[u8], bytes: &[u8]) -> Option<Vec<u8>> {
    let mut entry = Vec::with_capacity(FRAME + key.len() + bytes.len());
    entry.extend_from_slice(MAGIC);
    entry.extend_from_slice(&u32::try_from(key.len()).ok()?.to_le_bytes());
    entry.extend_from_slice(key);
    entry.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    entry.extend_from_slice(bytes);
    entry.extend_from_slice(&xxh3_64(&entry).to_le_bytes());
    Some(entry)
}

/// The key of an entry; `None`: not an entry.
fn key_of(entry: &[u8]) -> Option<&[u8]> {
    let (length, rest) = entry.strip_prefix(MAGIC)?.split_first_chunk::<4>()?;
    rest.get(..usize::try_from(u32::from_le_bytes(*length)).ok()?)
}

/// The bytes of an entry with this key; `None`: not such an entry, or incomplete.
fn decode(mut entry: Vec<u8>, key: &[u8]) -> Option<Vec<u8>> {
    let (rest, sum) = entry.split_last_chunk::<8>()?;
    if xxh3_64(rest) != u64::from_le_bytes(*sum) {
        return None;
    }
    let rest = rest.strip_prefix(MAGIC)?;
    let (key_length, rest) = rest.split_first_chunk::<4>()?;
    let (found, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*key_length)).ok()?)?;
    let (length, bytes) = rest.split_first_chunk::<8>()?;
    if found != key || u64::from_le_bytes(*length) != bytes.len() as u64 {
        return None;
    }
    let start = entry.len() - 8 - bytes.len();
    entry.truncate(entry.len() - 8);
    entry.drain(..start);
    Some(entry)
}

fn on_disk(length: u64) -> u64 {
    length.div_ceil(BLOCK).saturating_mul(BLOCK)
}

fn ours(metadata: &Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw()
}

/// The parts of a key: version of hepfs, identity, what the entry is.
fn parts(key: &[u8]) -> Option<(String, Identity, String)> {
    postcard::from_bytes(key).ok()
}

fn refused(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, reason.to_owned())
}

impl Folder {
    /// Warns of a fault of the folder, but only of the first one.
    fn warn(&self, what: &str, error: &io::Error) {
        self.trouble.get_or_init(|| {
            let trouble = format!("the cache folder {} {what}: {error}", self.path.display());
            tracing::warn!("{trouble}; less is cached");
            trouble
        });
    }

    /// Whether the folder exists; an error if it cannot be trusted.
    fn check(&self) -> io::Result<bool> {
        let found = match std::fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            found => found?,
        };
        if !ours(&found) {
            return Err(refused("it belongs to another user"));
        }
        let folder = std::fs::metadata(&self.path)?;
        if !folder.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        if !ours(&folder) {
            return Err(refused("it belongs to another user"));
        }
        if folder.mode() & 0o022 != 0 {
            return Err(refused("others may write to it"));
        }
        Ok(true)
    }

    fn get(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        if !self.check()? {
            return Ok(None);
        }
        let Some(mut file) = self.open(&file_name(key))? else { return Ok(None) };
        let entry = self.read(&mut file)?;
        let Some(bytes) = decode(entry, key) else {
            self.warn("holds a damaged entry", &io::ErrorKind::InvalidData.into());
            return Ok(None);
        };
        let now = SystemTime::now();
        // On a read-only file system the order of use is not recorded.
        let _ = file.set_times(FileTimes::new().set_accessed(now).set_modified(now));
        Ok(Some(bytes))
    }

    /// Opens the file of an entry; `None`: no such file, or one larger than the folder may be.
    fn open(&self, name: &str) -> io::Result<Option<File>> {
        // A link leads elsewhere; opening a pipe would block.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = match OpenOptions::new().read(true).custom_flags(flags).open(self.path.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() || !ours(&metadata) {
            return Err(refused("an entry belongs to another user or is not a file"));
        }
        Ok((metadata.len() <= self.limit).then_some(file))
    }

    /// Reads the rest of an opened entry.
    fn read(&self, file: &mut File) -> io::Result<Vec<u8>> {
        let mut entry = Vec::with_capacity(file.metadata().map_or(0, |metadata| metadata.len() as usize));
        file.take(self.limit).read_to_end(&mut entry)?;
        Ok(entry)
    }

    /// Calls `take` with the key and all bytes of each entry, in the order of names. Leaves out those that are damaged,
    /// or go meanwhile.
    fn each(&self, mut take: impl FnMut(&[u8], &[u8]) -> io::Result<()>) -> io::Result<()> {
        if !self.check()? {
            return Ok(());
        }
        let names = std::fs::read_dir(&self.path)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        for name in names.filter(|name| is_entry(name)).collect::<BTreeSet<_>>() {
            let Some(mut file) = self.open(&name)? else { continue };
            let entry = self.read(&mut file)?;
            if let Some(key) = key_of(&entry)
                && decode(entry.clone(), key).is_some()
            {
                take(key, &entry)?;
            }
        }
        Ok(())
    }

    fn put(&self, key: &[u8], bytes: &[u8]) -> io::Result<bool> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let Some(entry) = encode(key, bytes) else { return Ok(false) };
        let size = on_disk(entry.len() as u64);
        if size > self.limit {
            return Ok(false);
        }
        self.make()?;
        let name = file_name(key);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let temporary = self.path.join(format!("{name}.{}-{number}{TEMPORARY}", std::process::id()));
        let written = write_new(&temporary, &entry).and_then(|()| std::fs::rename(&temporary, self.path.join(name)));
        if written.is_err() {
            let _ = std::fs::remove_file(&temporary);
        }
        written?;
        self.bound(size)?;
        Ok(true)
    }

    /// Makes the folder if it is missing.
    fn make(&self) -> io::Result<()> {
        if self.check()? {
            return Ok(());
        }
        if let Some(parent) = self.path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        match DirBuilder::new().mode(0o700).create(&self.path) {
            // Another process created it first.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.check().map(drop),
            made => made,
        }
    }

    /// Removes the least recently used entries while all, including `added` new bytes, exceed the limit.
    fn bound(&self, added: u64) -> io::Result<()> {
        let mut swept = self.swept.lock();
        swept.bytes = swept.bytes.saturating_add(added);
        if let Some(unseen) = swept.unseen.checked_sub(1)
            && swept.bytes <= self.limit
        {
            swept.unseen = unseen;
            return Ok(());
        }
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            // Another process may have removed an entry just now, which is harmless.
            let Ok(metadata) = entry.metadata() else { continue };
            let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            if is_temporary(name) && used.elapsed().is_ok_and(|age| age > ABANDONED) {
                let _ = std::fs::remove_file(entry.path());
            } else if is_entry(name) && metadata.is_file() {
                entries.push((used, on_disk(metadata.len()), entry.path()));
            }
        }
        let mut bytes = entries.iter().map(|(_, size, _)| *size).fold(0, u64::saturating_add);
        if bytes > self.limit {
            entries.sort();
            // Frees a little more than needed, so that not every new entry lists the folder. The last entry is the one
            // just put.
            let enough = self.limit - self.limit / 16;
            let newest = entries.len().saturating_sub(1);
            for (_, size, path) in entries.drain(..newest) {
                if bytes <= enough {
                    break;
                }
                match std::fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => bytes = bytes.saturating_sub(size),
                }
            }
        }
        // At this interval, listing adds nothing noticeable to an entry.
        *swept = Swept { bytes, unseen: MOST_PUT.max(entries.len() as u64 / 4) };
        Ok(())
    }
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    // Not synchronised: the checksum finds entries that a crash tore.
    file.write_all(bytes)
}
