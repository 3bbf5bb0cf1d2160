//! Paths to files, and the keys below a directory, in bytewise order of whole keys.
//!
//! All three protocols walk here. A file answers from the node of its first use, which stays among the files used
//! last: so a reader that asks twice gets bytes of one layout, as it does from an open file of a mount.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bstr::{BStr, BString, ByteSlice, ByteVec};
use lru::LruCache;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::fs::{DirEntry, EntryKind, Error, NodeRef, tree};
use crate::session::walk::{Astray, follow};
use crate::session::{self, Spot};
use crate::source::Interrupt;
use crate::store::Answer;
use crate::views::{Effort, Size};

/// Files used last. Each may keep a source open.
const MOST_RECENT: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// Longest live file: its bytes are made at each request.
const LIVE_LIMIT: usize = 16 << 20;

/// Longest footer of a Parquet or Arrow file that the tag covers.
const FOOTER_LIMIT: u64 = 64 << 20;

/// A directory of selections, which no listing enters: `where` with this file in it.
const WHERE: &[u8] = b"where";
const VALUES: &[u8] = b"values.txt";

/// The tree of names.
pub struct Names {
    root: Spot,
    /// The options that bytes depend on, as text.
    options: String,
    recent: Mutex<LruCache<BString, Arc<ServedFile>>>,
}

/// The thing at a path.
pub enum FoundPath {
    /// A directory, with its path after all links.
    Directory(NodeRef, BString),
    /// A file whose size is known.
    File(Arc<ServedFile>),
    /// A file whose size takes a pass over its values.
    Unmeasured(Unmeasured),
}

/// A file of unknown size.
pub struct Unmeasured {
    /// Its path after all links.
    pub path: BString,
    node: NodeRef,
}

/// A file, as it is served.
pub struct ServedFile {
    node: NodeRef,
    /// The bytes of a live file.
    content: Option<Vec<u8>>,
    /// Its size in bytes.
    pub size: u64,
    /// Its strong entity tag, with quotes; `None`: a live file.
    pub tag: Option<String>,
    /// When the source changed.
    pub modified: SystemTime,
    /// Its path after all links.
    pub path: BString,
}

impl ServedFile {
    /// Reads exactly `length` bytes from `offset` on.
    ///
    /// # Errors
    /// Those of the node.
    pub fn read(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Vec<u8>, Error> {
        let bytes = Answer::collect(|answer| match &self.content {
            Some(content) => {
                answer.append(content, offset, length);
                Ok(())
            }
            None => self.node.gather(offset, length, answer, interrupt),
        })?;
        if bytes.len() == length {
            return Ok(bytes);
        }
        let (got, size) = (bytes.len(), self.size);
        Err(session::Error::Io(format!("{got} bytes at {offset} instead of {length}, in a file of {size}")).into())
    }

    /// The footer of a Parquet or Arrow file. Its statistics and lengths are those known when the file was first
    /// used, so two servers may show one table with different footers.
    fn footer(&self, interrupt: &Interrupt) -> Result<Vec<u8>, Error> {
        let marks: [(&[u8], u64); 2] = [(b"PAR1", 8), (b"ARROW1", 10)];
        if !is_table(self.path.as_bstr()) || self.size < 16 {
            return Ok(Vec::new());
        }
        let end = self.read(self.size - 16, 16, interrupt)?;
        let Some((mark, behind)) = marks.into_iter().find(|(mark, _)| end.ends_with(mark)) else {
            return Ok(Vec::new());
        };
        let stated = end.get(end.len() - mark.len() - 4..).and_then(|bytes| bytes.first_chunk());
        let length = u64::from(stated.map_or(0, |bytes| u32::from_le_bytes(*bytes))) + behind;
        let length = length.min(self.size).min(FOOTER_LIMIT);
        self.read(self.size - length, length as usize, interrupt)
    }
}

impl Names {
    /// The tree below a root. `options` are those that bytes depend on.
    pub(super) fn new(root: Spot, options: String) -> Self {
        Self { root, options, recent: Mutex::new(LruCache::new(MOST_RECENT)) }
    }

    /// Finds what a path leads to, links included. A file that changed meanwhile is looked up once more.
    ///
    /// # Errors
    /// [`session::Error::NotFound`] if it leads nowhere; see [`Error`].
    pub fn find(&self, path: &BStr, interrupt: &Interrupt) -> Result<FoundPath, Error> {
        match self.find_once(path, interrupt) {
            Err(Error::Session(session::Error::Stale)) => self.find_once(path, interrupt),
            found => found,
        }
    }

    fn find_once(&self, path: &BStr, interrupt: &Interrupt) -> Result<FoundPath, Error> {
        if let Some(file) = self.recent(path) {
            return Ok(FoundPath::File(file));
        }
        let followed = follow(self.root.clone(), path, interrupt).map_err(|astray| match astray {
            Astray::NotFound(..) | Astray::Nowhere(_) | Astray::Failed(session::Error::NotADirectory) => {
                session::Error::NotFound
            }
            Astray::Failed(error) => error,
        })?;
        let (path, node) = (BString::from(bstr::join("/", &followed.names)), tree::node(followed.spot));
        if !node.is_current() {
            return Err(session::Error::Stale.into());
        }
        Ok(match node.attributes().kind {
            EntryKind::Directory => FoundPath::Directory(node, path),
            EntryKind::Symlink => return Err(session::Error::NotFound.into()),
            EntryKind::LiveFile => FoundPath::File(Arc::new(live(node, path, interrupt)?)),
            EntryKind::File => {
                if let Some(file) = self.recent(path.as_bstr()) {
                    return Ok(FoundPath::File(file));
                }
                let node = node.opened()?.unwrap_or(node);
                match node.size(Effort::Free, interrupt)? {
                    Size::Exact(size) => FoundPath::File(self.served(node, path, size, interrupt)?),
                    Size::AtMost(_) => FoundPath::Unmeasured(Unmeasured { path, node }),
                }
            }
        })
    }

    /// Measures a file, by a pass over its values if need be.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn measure(&self, file: Unmeasured, interrupt: &Interrupt) -> Result<Arc<ServedFile>, Error> {
        let size = file.node.size(Effort::Exact, interrupt)?.bytes();
        self.served(file.node, file.path, size, interrupt)
    }

    fn recent(&self, path: &BStr) -> Option<Arc<ServedFile>> {
        let file = self.recent.lock().get::<BStr>(path).cloned()?;
        if file.node.is_current() {
            return Some(file);
        }
        self.recent.lock().pop::<BStr>(path);
        None
    }

    fn served(&self, node: NodeRef, path: BString, size: u64, interrupt: &Interrupt) -> Result<Arc<ServedFile>, Error> {
        let attributes = node.attributes();
        let mut file = ServedFile { node, content: None, size, tag: None, modified: attributes.mtime, path };
        let since = attributes.mtime.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut hash = Sha256::new();
        for part in [
            env!("CARGO_PKG_VERSION").as_bytes(),
            self.options.as_bytes(),
            &attributes.identity.to_le_bytes(),
            &since.as_nanos().to_le_bytes(),
            &size.to_le_bytes(),
            &file.path,
            &file.footer(interrupt)?,
        ] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        file.tag = Some(format!("\"{}\"", hex(hash.finalize().get(..16).unwrap_or_default())));
        let file = Arc::new(file);
        self.recent.lock().put(file.path.clone(), file.clone());
        Ok(file)
    }

    /// The names in a directory that a listing shows, without those of selections, which have no end.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn listed(&self, directory: &NodeRef, interrupt: &Interrupt) -> Result<impl Iterator<Item = DirEntry>, Error> {
        let names = directory.children(interrupt)?;
        let has_selections = directory
            .lookup(WHERE, interrupt)
            .and_then(|selections| selections.lookup(VALUES, interrupt))
            .is_ok_and(|values| values.attributes().kind == EntryKind::File);
        let mut place = 0;
        let every = std::iter::from_fn(move || {
            let (at, entry) = names.at(place)?;
            place = at + 1;
            Some(entry)
        });
        Ok(every.filter(move |entry| !(has_selections && entry.name == WHERE) && entry.kind != EntryKind::LiveFile))
    }

    /// Size and tag of a file in a listing, as far as they are known without a pass: a listing begins none.
    pub fn known(&self, path: &BStr, node: &NodeRef, interrupt: &Interrupt) -> Option<(u64, Option<String>)> {
        if let Some(file) = self.recent(path) {
            return Some((file.size, file.tag.clone()));
        }
        // Of tables, some milliseconds of reads may tell it.
        let effort = if is_table(path) { Effort::Quick } else { Effort::Free };
        match node.size(effort, interrupt) {
            Ok(Size::Exact(size)) => Some((size, None)),
            _ => None,
        }
    }

    /// The keys below a directory.
    pub fn keys<'a>(&'a self, wanted: KeyRange<'a>, interrupt: &'a Interrupt) -> KeyWalk<'a> {
        let root = tree::node(self.root.clone());
        let mut keys = KeyWalk { names: self, wanted, interrupt, above: Vec::new(), last: None };
        keys.enter(root, BString::default());
        keys
    }
}

/// Whether a file has a footer, by which readers find the values that they want.
fn is_table(path: &BStr) -> bool {
    path.ends_with(b".parquet") || path.ends_with(b".arrow")
}

/// Lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A live file with the bytes of this moment.
fn live(node: NodeRef, path: BString, interrupt: &Interrupt) -> Result<ServedFile, Error> {
    let mut content = Answer::collect(|answer| node.gather(0, LIVE_LIMIT, answer, interrupt))?;
    content.truncate(LIVE_LIMIT);
    let size = content.len() as u64;
    Ok(ServedFile { node, content: Some(content), size, tag: None, modified: SystemTime::now(), path })
}

/// Which keys a walk is to find.
#[derive(Clone, Copy, Debug)]
pub struct KeyRange<'a> {
    /// How keys begin.
    pub prefix: &'a [u8],
    /// Keys after this one; empty: all.
    pub after: &'a [u8],
    /// The end of a common beginning, for which keys are listed as one; empty: each key is listed.
    pub delimiter: &'a [u8],
    /// When the walk stops, wherever it is.
    pub deadline: Option<Instant>,
}

/// A key, or several with a common beginning.
#[derive(Debug)]
pub enum Key {
    /// A file whose size is known.
    File {
        /// Its path.
        key: BString,
        /// Its size in bytes.
        size: u64,
        /// Its tag, if it is known.
        tag: Option<String>,
        /// When its source changed.
        modified: SystemTime,
    },
    /// Keys that begin so.
    Common(BString),
}

impl Key {
    /// The key, or the common beginning.
    pub fn text(&self) -> &BStr {
        match self {
            Key::File { key, .. } | Key::Common(key) => key.as_bstr(),
        }
    }
}

/// A walk over keys, which looks at one directory at a time.
pub struct KeyWalk<'a> {
    names: &'a Names,
    wanted: KeyRange<'a>,
    interrupt: &'a Interrupt,
    /// The directories on the way, with their keys to come; the next key is the last.
    above: Vec<(NodeRef, Vec<(BString, EntryKind)>)>,
    /// The last key that was looked at.
    last: Option<BString>,
}

impl KeyWalk<'_> {
    /// How long a walk for one answer may take.
    pub const PATIENCE: Duration = Duration::from_secs(10);

    /// The key at which the walk stopped before its end.
    pub fn stopped(&self) -> Option<&BStr> {
        self.last.as_ref().filter(|_| !self.above.is_empty()).map(|last| last.as_bstr())
    }

    fn enter(&mut self, directory: NodeRef, path: BString) {
        let listed = match self.names.listed(&directory, self.interrupt) {
            Ok(listed) => listed,
            Err(error) => {
                // One damaged group must not hide all others.
                error.log();
                return;
            }
        };
        let keys = listed.filter(|entry| entry.kind != EntryKind::Symlink).map(|DirEntry { mut name, kind }| {
            if kind == EntryKind::Directory {
                name.push(b'/');
            }
            name.insert_str(0, &path);
            (name, kind)
        });
        let mut keys: Vec<_> = keys.filter(|(key, kind)| self.may_matter(key, *kind)).collect();
        // Keys of files in a directory begin with its key, slash included: so this is the order of all keys.
        keys.sort_unstable_by(|one, other| other.0.cmp(&one.0));
        self.above.push((directory, keys));
    }

    /// Whether this key, or one below it, may be wanted.
    fn may_matter(&self, key: &BString, kind: EntryKind) -> bool {
        let KeyRange { prefix, after, .. } = self.wanted;
        let is_directory = kind == EntryKind::Directory;
        (key.starts_with(prefix) || is_directory && prefix.starts_with(key))
            && (key.as_slice() > after || is_directory && after.starts_with(key))
    }

    /// The beginning that a key has in common with others.
    fn common(&self, key: &[u8]) -> Option<BString> {
        let KeyRange { prefix, delimiter, .. } = self.wanted;
        let rest = key.strip_prefix(prefix).filter(|_| !delimiter.is_empty())?;
        let end = prefix.len() + rest.find(delimiter)? + delimiter.len();
        key.get(..end).map(BString::from)
    }
}

impl Iterator for KeyWalk<'_> {
    type Item = Key;

    fn next(&mut self) -> Option<Key> {
        loop {
            let is_late = self.wanted.deadline.is_some_and(|deadline| Instant::now() > deadline);
            if is_late && self.last.is_some() || self.interrupt.is_raised() {
                return None;
            }
            let (directory, keys) = self.above.last_mut()?;
            let Some((key, kind)) = keys.pop() else {
                self.above.pop();
                continue;
            };
            let directory = directory.clone();
            let after = self.wanted.after;
            if let Some(common) = self.common(&key) {
                let is_new = self.last.as_ref() != Some(&common)
                    && (common.as_slice() > after || after.len() > common.len() && after.starts_with(&common));
                if is_new {
                    self.last = Some(common.clone());
                    return Some(Key::Common(common));
                }
                continue;
            }
            let name = key.trim_end_with(|character| character == '/').rsplit_str("/").next().unwrap_or_default();
            let Ok(node) = directory.lookup(name, self.interrupt) else { continue };
            if kind == EntryKind::Directory {
                self.enter(node, key);
                continue;
            }
            self.last = Some(key.clone());
            if let Some((size, tag)) = self.names.known(key.as_bstr(), &node, self.interrupt) {
                return Some(Key::File { size, tag, modified: node.attributes().mtime, key });
            }
        }
    }
}
