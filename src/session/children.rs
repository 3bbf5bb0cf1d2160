//! The names in a directory.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use bstr::BString;

/// Kinds of directory entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A regular file whose bytes never change.
    File,
    /// A regular file whose bytes are generated at each open (`.hepfs/stats`).
    LiveFile,
    /// A symbolic link.
    Symlink,
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// The name as shown.
    pub name: BString,
    /// The kind of thing that has the name.
    pub kind: EntryKind,
}

impl DirEntry {
    /// An entry for a directory.
    pub fn directory(name: BString) -> Self {
        Self { name, kind: EntryKind::Directory }
    }
}

/// All names in a directory, in the order shown. A directory may have very many, so a name may be made on demand.
#[derive(Clone)]
pub struct Children {
    names: Arc<dyn DirectoryNames>,
    lasting: bool,
}

/// Names by place in a directory. Places begin at 0 and may have gaps.
pub trait DirectoryNames: Send + Sync {
    /// The first name at or after a place, with its own place; `None`: the place is past the last name.
    fn at(&self, place: u64) -> Option<(u64, DirEntry)>;
}

impl DirectoryNames for Vec<DirEntry> {
    fn at(&self, place: u64) -> Option<(u64, DirEntry)> {
        Some((place, self.get(usize::try_from(place).ok()?)?.clone()))
    }
}

impl Children {
    /// The names that `names` makes on demand.
    pub fn new(names: impl DirectoryNames + 'static) -> Self {
        Self { names: Arc::new(names), lasting: false }
    }

    /// Marks the names as unchanging for as long as the directory exists: the kernel may cache them.
    pub fn lasting(self) -> Self {
        Self { lasting: true, ..self }
    }

    /// Whether the kernel may cache the names; see [`Children::lasting`].
    pub fn are_lasting(&self) -> bool {
        self.lasting
    }

    /// The first name at or after a place, with its own place; `None`: the place is past the last name.
    pub fn at(&self, place: u64) -> Option<(u64, DirEntry)> {
        self.names.at(place)
    }

    /// Iterates over all names, in the order shown.
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
