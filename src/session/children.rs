//! The names in a directory.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use bstr::BString;

/// Kinds of things that a name can stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A regular file whose bytes never change.
    File,
    /// A regular file whose bytes are made anew at each open (`.hepfs/stats`).
    LiveFile,
    /// A symbolic link.
    Symlink,
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// The name as shown.
    pub name: BString,
    /// Its kind.
    pub kind: Kind,
}

impl DirEntry {
    /// A directory of this name.
    pub fn directory(name: BString) -> Self {
        Self { name, kind: Kind::Directory }
    }
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
