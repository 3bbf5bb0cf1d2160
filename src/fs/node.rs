//! What the adapter asks of a directory, a file or a link, without knowing what it shows.

use std::sync::Arc;
use std::time::SystemTime;

use bstr::{BStr, BString, ByteSlice};

use super::Error;
use crate::session;
pub use crate::session::{Children, Kind};
use crate::source::Interrupt;
use crate::store::Answer;
use crate::views::{Access, Effort, Size};

/// A shared node.
pub type NodeRef = Arc<dyn Node>;

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

/// A directory, a file or a link. Every call may be slow unless it says otherwise; slow calls look at `interrupt`.
///
/// Calls that make no sense for a kind answer [`NotADirectory`](session::Error::NotADirectory) or
/// [`NotAFile`](session::Error::NotAFile); those are provided.
pub trait Node: Send + Sync {
    /// What `stat` shows; never slow.
    fn attributes(&self) -> Attributes;

    /// Whether the node still belongs to the file that lies under the source's path; never slow. `false` makes lookups
    /// and opens answer `ESTALE`, so that the kernel asks again from the top.
    fn is_current(&self) -> bool;

    /// The child with this name, of a directory.
    ///
    /// # Errors
    /// [`session::Error::NotFound`] where there is none.
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
        Err(session::Error::NotAFile.into())
    }

    /// What an open file reads of, where this is no more than a name of it; `None` where the node itself serves.
    ///
    /// # Errors
    /// See [`Error`].
    fn opened(&self) -> Result<Option<NodeRef>, Error> {
        Ok(None)
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
