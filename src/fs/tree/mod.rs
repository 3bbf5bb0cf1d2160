//! The tree of names over HDF5 files: the node of each part of a session.
//!
//! A node belongs to one opening of a source (`OpenedSource`). If another file takes the source's path, the nodes of
//! the old opening stop being current, the kernel asks again from the root, and a new opening answers.

mod directory;
mod file;
mod left_out;
mod live;
mod named;
mod part;
mod selections;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use bstr::BString;

use self::directory::DirectoryNode;
use self::named::FileName;
use super::Error;
use super::node::{Attributes, Children, EntryKind, Node, NodeRef, Xattrs};
use crate::session::{self, FileSpot, OpenError, OpenedSource, Session, Spot};
use crate::source::{Interrupt, Stamp};
use crate::views::{Effort, Size};

/// The root of a mount of these sources: one file shows its root group, anything else one directory each.
///
/// # Errors
/// If no source that the user named can be opened, as a file or as a folder with a file of a known format. If only some
/// fail, `.hepfs/errors` lists their errors.
pub fn root(session: &Arc<Session>, sources: &[PathBuf], interrupt: &Interrupt) -> Result<NodeRef, OpenError> {
    Ok(node(session::root(session, sources, interrupt)?))
}

/// Creates the node of a spot.
pub(crate) fn node(spot: Spot) -> NodeRef {
    match spot {
        Spot::Link(opened, target) => Arc::new(LinkNode { opened, target }),
        Spot::File(FileSpot::Numbered(directory, in_columns, number)) => {
            Arc::new(FileName::new(directory, in_columns, number))
        }
        Spot::File(FileSpot::Shown(file)) => file,
        Spot::File(FileSpot::Chosen(file)) => file,
        Spot::File(FileSpot::Part(part)) => part,
        Spot::File(FileSpot::LeftOut(left_out)) => left_out,
        Spot::File(FileSpot::Live(file)) => file,
        directory => Arc::new(DirectoryNode(directory)),
    }
}

/// Attributes of a node that belongs to no HDF5 file.
fn plain_attributes(kind: EntryKind, time: SystemTime) -> Attributes {
    let mode = if kind == EntryKind::Directory { 0o555 } else { 0o444 };
    Attributes { kind, mode, mtime: time, ctime: time, atime: time, identity: 0 }
}

impl Stamp {
    /// Attributes of a node of this kind. A directory is searchable if it is readable.
    fn attributes(&self, kind: EntryKind) -> Attributes {
        let [mtime, ctime, atime] = self.times;
        let mode = match kind {
            EntryKind::Directory => self.mode | (self.mode >> 2),
            EntryKind::Symlink => 0o777,
            EntryKind::File | EntryKind::LiveFile => self.mode,
        };
        Attributes { kind, mode, mtime, ctime, atime, identity: 0 }
    }
}

impl OpenedSource {
    /// Attributes of a node of this kind, with the HDF5 file's times, read bits and identity.
    fn attributes(&self, kind: EntryKind) -> Attributes {
        let identity = self.opening().source().identity().digest();
        Attributes { identity, ..self.stamp().attributes(kind) }
    }
}

/// A symbolic link.
struct LinkNode {
    opened: Arc<OpenedSource>,
    target: BString,
}

impl Node for LinkNode {
    fn attributes(&self) -> Attributes {
        self.opened.attributes(EntryKind::Symlink)
    }

    fn is_current(&self) -> bool {
        self.opened.is_current()
    }

    fn readlink(&self) -> Result<BString, Error> {
        Ok(self.target.clone())
    }

    fn size(&self, _: Effort, _: &Interrupt) -> Result<Size, Error> {
        Ok(Size::Exact(self.target.len() as u64))
    }
}
