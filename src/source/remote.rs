//! Objects of stores on a network.
//!
//! A kind of store implements [`ObjectStore`] and [`RemoteObject`]. An [`Opener`] opens what a path or an address leads
//! to, so its callers need not know which of both they have.

use std::ffi::OsStr;
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bstr::{BString, ByteSlice};

use super::{Error, Interrupt, Source, SourceStat, stat};

/// Beginnings of addresses. A local path of this form is given as `./s3://…`.
const SCHEMES: [&[u8]; 5] = [b"s3://", b"gs://", b"az://", b"https://", b"http://"];

/// Objects of at most this many bytes are fetched whole when they are first read, unless options or memory forbid it:
/// that takes no longer than a few round trips.
pub const FETCHED_WHOLE: u64 = 16 << 20;

/// Whether a text is the address of an object in a store, not a path.
pub fn is_address(path: &Path) -> bool {
    SCHEMES.iter().any(|scheme| path.as_os_str().as_bytes().starts_with(scheme))
}

/// The address of a folder, and the pattern that chooses its members: `*` stands for any text. `None`: the address is
/// that of an object, or a path.
pub fn folder_of(address: &Path) -> Option<(&Path, &[u8])> {
    let bytes = address.as_os_str().as_bytes();
    let (scheme, below) = bytes.split_once_str("://").filter(|_| is_address(address))?;
    let name = match below.rfind_byte(b'/') {
        Some(slash) => bytes.len() - below.len() + slash + 1,
        // A bucket.
        None if !scheme.starts_with(b"http") => bytes.len(),
        None => return None,
    };
    let (folder, pattern) = bytes.split_at(name);
    (pattern.is_empty() || pattern.contains(&b'*')).then_some((Path::new(OsStr::from_bytes(folder)), pattern))
}

/// Whether a name matches a pattern of [`folder_of`]; each does where there is no pattern.
pub fn matches(name: &[u8], pattern: &[u8]) -> bool {
    if pattern.is_empty() {
        return true;
    }
    let mut parts = pattern.split(|byte| *byte == b'*');
    let (first, last) = (parts.next().unwrap_or_default(), parts.next_back());
    let Some(rest) = name.strip_prefix(first) else { return false };
    let Some(last) = last else { return rest.is_empty() };
    // Each part as early as it comes leaves the most for those behind it.
    let rest = parts.try_fold(rest, |rest, part| rest.find(part).map(|at| &rest[at + part.len()..]));
    rest.is_some_and(|rest| rest.ends_with(last))
}

/// The path from the root of the file system; an address as it is.
///
/// # Errors
/// Where the current folder is gone.
pub fn absolute(path: &Path) -> io::Result<PathBuf> {
    if is_address(path) { Ok(path.to_owned()) } else { std::path::absolute(path) }
}

/// A store of objects, or several, by their addresses.
pub trait ObjectStore: Debug + Send + Sync {
    /// Opens the version of an object that is at an address now.
    ///
    /// # Errors
    /// Those of [`Source::open`], and [`Error::Interrupted`].
    fn open(&self, address: &Path, interrupt: &Interrupt) -> Result<Arc<dyn RemoteObject>, Error>;

    /// Looks up what is at an address. An answer may be as old as the store's rules for looking again allow: each
    /// request of the kernel asks, so few questions about an address may wait for the network, and none longer than
    /// [`StatMemo::patience`](super::StatMemo::patience) allows.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] where nothing is there.
    fn stat(&self, address: &Path) -> io::Result<SourceStat>;

    /// Lists the objects and folders in a folder, whose address ends with `/`. An answer may be as old as one of
    /// [`ObjectStore::stat`], and what it says of an object serves for opening it. Each lookup of a name asks: an answer
    /// that has not changed is the same list.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] where a store has no lists; those of [`Source::open`], and
    /// [`Error::Interrupted`].
    fn list(&self, folder: &Path, _: &Interrupt) -> Result<Arc<Vec<Listed>>, Error> {
        let error =
            io::Error::new(io::ErrorKind::Unsupported, "this server lists nothing: name the objects themselves");
        Err(Error::Io { path: folder.to_owned(), error })
    }

    /// Counts of requests and bytes so far, by name.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// A member of a folder in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The part of its address behind that of the folder, without a slash at its end.
    pub name: BString,
    /// Its kind, identity and times, as the list says. `None`: no path can name it, for a part of its key is empty, `.`
    /// or `..`, or has a control character; a slash at its end is a part of its name.
    pub stat: Option<SourceStat>,
}

/// One version of an object.
pub trait RemoteObject: Debug + Send + Sync {
    /// Its identity, times and mode.
    fn stat(&self) -> SourceStat;

    /// Fills `out` from byte `offset` on with bytes of this version alone. The range ends within its size.
    ///
    /// # Errors
    /// [`Error::Changed`] where the store has this version no longer, [`Error::Interrupted`] once the flag is raised.
    fn read_at(&self, offset: u64, out: &mut [u8], interrupt: &Interrupt) -> Result<(), Error>;

    /// Whether its bytes are all fetched when it is first read.
    fn comes_whole(&self) -> bool {
        self.stat().identity.size <= FETCHED_WHOLE
    }

    /// Announces ranges that will be read soon, in this order, so that they may be fetched side by side. Never waits,
    /// and promises nothing.
    fn plan(&self, _ranges: &[Range<u64>]) {}
}

/// Opens sources: files, and the objects of a store if there is one.
#[derive(Clone, Debug, Default)]
pub struct Opener {
    store: Option<Arc<dyn ObjectStore>>,
}

impl Opener {
    /// An opener of files, and of the objects of this store.
    pub fn new(store: Arc<dyn ObjectStore>) -> Self {
        Self { store: Some(store) }
    }

    fn store(&self, address: &Path) -> Result<&Arc<dyn ObjectStore>, Error> {
        self.store.as_ref().ok_or_else(|| Error::NoStore(address.to_owned()))
    }

    /// Opens the file at a path, or the object at an address.
    ///
    /// # Errors
    /// As [`Source::open`]; [`Error::NoStore`] for an address without a store.
    pub fn open(&self, path: &Path, interrupt: &Interrupt) -> Result<Source, Error> {
        if !is_address(path) {
            return Source::open(path);
        }
        let store = self.store(path)?;
        let object = store.open(path, interrupt)?;
        Ok(Source::remote(RemoteSource {
            address: path.to_owned(),
            opened: object.stat(),
            object,
            store: store.clone(),
        }))
    }

    /// Looks up what a path or an address leads to. Each request looks a path up once; see [`stat`].
    ///
    /// # Errors
    /// [`Error::Io`] with the error of `stat(2)` or of the store; [`Error::NoStore`] for an address without a store.
    pub fn stat(&self, path: &Path) -> Result<SourceStat, Error> {
        let found = if is_address(path) { self.store(path)?.stat(path) } else { stat(path) };
        found.map_err(|error| Error::Io { path: path.to_owned(), error })
    }

    /// Whether it leads to a folder. An address says so itself.
    pub fn is_folder(&self, path: &Path) -> bool {
        if is_address(path) { folder_of(path).is_some() } else { stat(path).is_ok_and(|found| found.is_folder()) }
    }

    /// Lists the members of the folder at an address.
    ///
    /// # Errors
    /// Those of [`ObjectStore::list`]; [`Error::NoStore`] without a store.
    pub fn list(&self, folder: &Path, interrupt: &Interrupt) -> Result<Arc<Vec<Listed>>, Error> {
        self.store(folder)?.list(folder, interrupt)
    }

    /// Counts of the store so far, by name.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        self.store.as_ref().map(|store| store.counters()).unwrap_or_default()
    }
}

/// An object that was opened as a source.
#[derive(Debug)]
pub(super) struct RemoteSource {
    pub(super) address: PathBuf,
    pub(super) opened: SourceStat,
    object: Arc<dyn RemoteObject>,
    pub(super) store: Arc<dyn ObjectStore>,
}

impl RemoteSource {
    /// As [`Source::read_at`].
    pub fn read_at(&self, offset: u64, out: &mut [u8], interrupt: &Interrupt) -> Result<(), Error> {
        let (end, size) = (offset.saturating_add(out.len() as u64), self.opened.identity.size);
        if end > size {
            return Err(Error::Truncated { path: self.address.clone(), offset, end, size });
        }
        // A store may not be asked for a range without bytes.
        if out.is_empty() { Ok(()) } else { self.object.read_at(offset, out, interrupt) }
    }

    /// As [`Source::comes_whole`].
    pub fn comes_whole(&self) -> bool {
        self.object.comes_whole()
    }

    /// As [`Source::plan`].
    pub fn plan(&self, ranges: impl Iterator<Item = Range<u64>>) {
        let size = self.opened.identity.size;
        let within: Vec<_> = ranges.filter(|range| !range.is_empty() && range.end <= size).collect();
        if !within.is_empty() {
            self.object.plan(&within);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (name, pattern) in
            [("a.h5", "*.h5"), ("a.h5", "a*5"), ("a.h5", "*"), ("", "*"), ("aXbXb", "a*b*b"), ("a", "a")]
        {
            assert!(matches(name.as_bytes(), pattern.as_bytes()), "{name} {pattern}");
        }
        for (name, pattern) in
            [("a.h5", "*.nc"), ("aXb", "a*b*b"), ("ab", "a*bb"), ("ab", "a"), ("a", "aa*a"), ("aa", "aa*a")]
        {
            assert!(!matches(name.as_bytes(), pattern.as_bytes()), "{name} {pattern}");
        }
    }

    #[test]
    fn an_address_says_whether_it_is_a_folder() {
        let folder = |address: &'static str| {
            folder_of(Path::new(address)).map(|(folder, pattern)| (folder.to_str().unwrap(), pattern.to_str().unwrap()))
        };
        assert_eq!(folder("s3://bucket/runs/"), Some(("s3://bucket/runs/", "")));
        assert_eq!(folder("s3://bucket/runs/*.h5"), Some(("s3://bucket/runs/", "*.h5")));
        assert_eq!(folder("s3://bucket"), Some(("s3://bucket", "")));
        assert_eq!(folder("s3://bucket/a.h5"), None);
        assert_eq!(folder("https://host"), None);
        assert_eq!(folder("./s3://bucket/"), None);
    }
}
