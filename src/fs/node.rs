//! The interface between the adapter and a directory, a file or a link, whatever it shows.

use std::sync::Arc;
use std::time::SystemTime;

use bstr::{BStr, BString, ByteSlice};

use super::Error;
use crate::session;
pub use crate::session::{Children, EntryKind};
use crate::source::Interrupt;
use crate::store::Answer;
use crate::views::{AccessPattern, Effort, Size};

/// A shared node.
pub type NodeRef = Arc<dyn Node>;

/// The fields of `stat` other than the size, and the state of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Kind of node.
    pub kind: EntryKind,
    /// Permission bits; no write bit is ever set.
    pub mode: u16,
    /// The HDF5 file's modification time; a directory may have its own.
    pub mtime: SystemTime,
    /// Last change of the HDF5 file's inode.
    pub ctime: SystemTime,
    /// Last access to the HDF5 file.
    pub atime: SystemTime,
    /// Digest of the source's identity, another one for each state; 0: the node belongs to no source.
    pub identity: u64,
}

/// A directory, a file or a link. Every call may be slow unless its documentation says otherwise; slow calls check
/// `interrupt`.
///
/// Calls that make no sense for a kind return [`NotADirectory`](session::Error::NotADirectory) or
/// [`NotAFile`](session::Error::NotAFile); the default methods do so.
pub trait Node: Send + Sync {
    /// The fields of `stat` other than the size; never slow.
    fn attributes(&self) -> Attributes;

    /// Whether the node still belongs to the file at the source's path; never slow. After `false`, lookups and opens
    /// answer `ESTALE`, so the kernel asks again from the root.
    fn is_current(&self) -> bool;

    /// Finds the child of this name in a directory.
    ///
    /// # Errors
    /// [`session::Error::NotFound`] if the directory has no such name.
    fn lookup(&self, name: &[u8], interrupt: &Interrupt) -> Result<NodeRef, Error> {
        let _ = (name, interrupt);
        Err(session::Error::NotADirectory.into())
    }

    /// The names in a directory.
    ///
    /// # Errors
    /// See [`Error`].
    fn children(&self, interrupt: &Interrupt) -> Result<Children, Error> {
        let _ = interrupt;
        Err(session::Error::NotADirectory.into())
    }

    /// The target of a symbolic link; never slow.
    ///
    /// # Errors
    /// [`session::Error::NotAFile`] for anything else.
    fn readlink(&self) -> Result<BString, Error> {
        Err(session::Error::NotAFile.into())
    }

    /// The size of a file; 0 for directories and live files.
    ///
    /// # Errors
    /// See [`Error`].
    fn size(&self, effort: Effort, interrupt: &Interrupt) -> Result<Size, Error> {
        let _ = (effort, interrupt);
        Ok(Size::Exact(0))
    }

    /// Appends at most `length` bytes of a file from `offset` on to `answer`; fewer only at the end of the file.
    ///
    /// # Errors
    /// See [`Error`].
    fn gather(&self, offset: u64, length: usize, answer: &mut Answer, interrupt: &Interrupt) -> Result<(), Error> {
        let _ = (offset, length, answer, interrupt);
        Err(session::Error::NotAFile.into())
    }

    /// The node that an open file reads from, if this node only stands for its name; `None`: this node itself.
    ///
    /// # Errors
    /// See [`Error`].
    fn opened(&self) -> Result<Option<NodeRef>, Error> {
        Ok(None)
    }

    /// How programs usually read the file.
    fn access(&self) -> AccessPattern {
        AccessPattern::Any
    }

    /// The extended attributes of the node.
    ///
    /// # Errors
    /// See [`Error`].
    fn xattrs(&self, interrupt: &Interrupt) -> Result<Box<dyn Xattrs>, Error> {
        let _ = interrupt;
        Ok(Box::new(Vec::new()))
    }
}

/// The extended attributes of a node. A copy asks for each by its name, so each value is computed separately.
pub trait Xattrs {
    /// All names (`user.units`), in the order of the file.
    fn names(&self) -> Vec<BString>;

    /// The value under a name; `None`: no such attribute, or its value cannot be shown.
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
