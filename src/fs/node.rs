//! What the adapter asks of a directory, a file or a link, without knowing what it shows.

use std::fmt::{self, Debug, Display, Formatter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use bstr::{BStr, BString, ByteSlice};

use super::Error;
use crate::source::Interrupt;
use crate::store::Answer;
use crate::store::pass::Progress;
use crate::table::{Finding, Table};
use crate::views::{Access, Effort, Size};

/// A shared node.
pub type NodeRef = Arc<dyn Node>;

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A regular file whose bytes never change.
    File,
    /// A regular file whose bytes are made anew at each open (`.hepfs/stats`): served with `direct_io`, TTL 0, size 0.
    LiveFile,
    /// A symbolic link.
    Symlink,
}

/// What `stat` shows beside the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Kind of node.
    pub kind: Kind,
    /// Permission bits; no write bit is ever set.
    pub mode: u16,
    /// The HDF5 file's times, but for directories of which it tells another.
    pub mtime: SystemTime,
    /// Last change of the HDF5 file's inode.
    pub ctime: SystemTime,
    /// Last access.
    pub atime: SystemTime,
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// The name as shown.
    pub name: BString,
    /// What it is.
    pub kind: Kind,
}

/// All names in a directory, in the order shown. Where there may be very many, each is made when it is asked for.
#[derive(Clone)]
pub struct Children {
    names: Arc<dyn Names>,
    lasting: bool,
}

/// Names by their places in a directory, which begin at 0 and may leave gaps.
pub trait Names: Send + Sync {
    /// The first name at a place or behind it, with its own place.
    fn at(&self, place: u64) -> Option<(u64, DirEntry)>;
}

impl Names for Vec<DirEntry> {
    fn at(&self, place: u64) -> Option<(u64, DirEntry)> {
        Some((place, self.get(usize::try_from(place).ok()?)?.clone()))
    }
}

impl Children {
    /// Those that are made when they are asked for.
    pub fn new(names: impl Names + 'static) -> Self {
        Self { names: Arc::new(names), lasting: false }
    }

    /// The same names, which the directory has as long as it is there: the kernel may keep them.
    pub fn lasting(self) -> Self {
        Self { lasting: true, ..self }
    }

    /// Whether they are [`Children::lasting`].
    pub fn are_lasting(&self) -> bool {
        self.lasting
    }

    /// The first name at a place or behind it, with its own place.
    pub fn at(&self, place: u64) -> Option<(u64, DirEntry)> {
        self.names.at(place)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = DirEntry> {
        let mut place = 0;
        std::iter::from_fn(move || {
            let (at, entry) = self.at(place)?;
            place = at + 1;
            Some(entry)
        })
    }
}

impl Debug for Children {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl FromIterator<DirEntry> for Children {
    fn from_iter<I: IntoIterator<Item = DirEntry>>(names: I) -> Self {
        Self::new(Vec::from_iter(names))
    }
}

/// The files of a dataset: of the table that several files have at one path.
#[derive(Clone, Debug)]
pub struct DatasetFiles {
    /// How many are in it.
    pub count: usize,
    /// Those that are not, in the order of their paths.
    pub left_out: Arc<[LeftOut]>,
}

/// A file that a dataset leaves out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its path as a mount shows it.
    pub file: BString,
    /// Its path.
    pub source: PathBuf,
    /// Why.
    pub finding: Finding,
}

impl LeftOut {
    /// Why: what cannot be opened names itself.
    pub fn reason(&self) -> &str {
        let found = &self.finding.found;
        found.strip_prefix(&format!("{}: ", self.source.display())).unwrap_or(found)
    }
}

impl Display for LeftOut {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.reason())
    }
}

/// A directory, a file or a link. Every call may be slow unless it says otherwise; slow calls look at `interrupt`.
///
/// Calls that make no sense for a kind answer [`Error::NotADirectory`] or [`Error::NotAFile`]; those are provided.
pub trait Node: Send + Sync {
    /// What `stat` shows; never slow.
    fn attributes(&self) -> Attributes;

    /// Whether the node still belongs to the file that lies under the source's path; never slow. `false` makes lookups
    /// and opens answer `ESTALE`, so that the kernel asks again from the top.
    fn is_current(&self) -> bool;

    /// Whether a directory holds no more than what is shown elsewhere or made anew, or what a dialect made up beside
    /// its group: what walks a tree to do something with its tables leaves it out.
    fn repeats(&self) -> bool {
        false
    }

    /// The child with this name, of a directory.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is none.
    fn lookup(&self, name: &[u8], interrupt: &Interrupt) -> Result<NodeRef, Error> {
        let _ = (name, interrupt);
        Err(Error::NotADirectory)
    }

    /// The names in a directory.
    ///
    /// # Errors
    /// See [`Error`].
    fn children(&self, interrupt: &Interrupt) -> Result<Children, Error> {
        let _ = interrupt;
        Err(Error::NotADirectory)
    }

    /// The target of a symbolic link; never slow.
    ///
    /// # Errors
    /// [`Error::NotAFile`] for anything else.
    fn readlink(&self) -> Result<BString, Error> {
        Err(Error::NotAFile)
    }

    /// The size of a file; 0 for what has none, directories and live files.
    ///
    /// # Errors
    /// See [`Error`].
    fn size(&self, effort: Effort, interrupt: &Interrupt) -> Result<Size, Error> {
        let _ = (effort, interrupt);
        Ok(Size::Exact(0))
    }

    /// Appends at most `length` bytes of a file from `offset` on to `answer`; fewer only at the end.
    ///
    /// # Errors
    /// See [`Error`].
    fn gather(&self, offset: u64, length: usize, answer: &mut Answer, interrupt: &Interrupt) -> Result<(), Error> {
        let _ = (offset, length, answer, interrupt);
        Err(Error::NotAFile)
    }

    /// What an open file reads of, where this is no more than a name of it; `None` where the node itself serves.
    ///
    /// # Errors
    /// See [`Error`].
    fn opened(&self) -> Result<Option<NodeRef>, Error> {
        Ok(None)
    }

    /// The progress of the passes of [`Effort::Prepared`]; `None` where there are none. Never slow.
    fn progress(&self) -> Option<Progress> {
        None
    }

    /// The table of a directory that shows one, once it was listed. Never slow.
    fn table(&self) -> Option<Arc<Table>> {
        None
    }

    /// The files of a directory that is a dataset; `None` of any other.
    ///
    /// # Errors
    /// See [`Error`].
    fn dataset(&self, interrupt: &Interrupt) -> Result<Option<DatasetFiles>, Error> {
        let _ = interrupt;
        Ok(None)
    }

    /// The rows of all these files as one table, which holds them open.
    ///
    /// # Errors
    /// [`Error::NotFound`] where the directory is no dataset.
    fn whole_dataset(&self, interrupt: &Interrupt) -> Result<Arc<Table>, Error> {
        let _ = interrupt;
        Err(Error::NotFound)
    }

    /// The path of the HDF5 file that a directory belongs to; `None` of folders above files. Never slow.
    fn source(&self) -> Option<&Path> {
        None
    }

    /// Looks where all that a directory shows lies in its file, that of directories below left out, so that damaged
    /// chunk indexes are met and reported. Calls `failed` for each object where that fails, by its HDF5 path.
    fn examine(&self, failed: &mut dyn FnMut(&str, String), interrupt: &Interrupt) {
        let _ = (failed, interrupt);
    }

    /// The reason why results of such passes are not kept for later mounts; `None` where they may be.
    fn why_not_kept(&self) -> Option<&'static str> {
        None
    }

    /// How a file is usually read.
    fn access(&self) -> Access {
        Access::Any
    }

    /// Extended attributes.
    ///
    /// # Errors
    /// See [`Error`].
    fn xattrs(&self, interrupt: &Interrupt) -> Result<Box<dyn Xattrs>, Error> {
        let _ = interrupt;
        Ok(Box::new(Vec::new()))
    }
}

/// The extended attributes of a node. A copy asks for each by its name, so that values are made one by one.
pub trait Xattrs {
    /// All names (`user.units`), in the order of the file.
    fn names(&self) -> Vec<BString>;

    /// The value under a name; `None` where there is none that can be shown.
    fn value(&self, name: &BStr) -> Option<Vec<u8>>;
}

impl Xattrs for Vec<(BString, Vec<u8>)> {
    fn names(&self) -> Vec<BString> {
        self.iter().map(|(name, _)| name.clone()).collect()
    }

    fn value(&self, name: &BStr) -> Option<Vec<u8>> {
        self.iter().find(|(known, _)| known.as_bstr() == name).map(|(_, value)| value.clone())
    }
}
