//! The meaning of a request, without the kernel's protocol: the part of the file system that tests can call.
//!
//! A call that may be slow comes in two halves. One asks the nodes, and may be interrupted. The other records the
//! outcome (a counted lookup, an open file) once the answer is sure to be sent.

mod inodes;
mod open_file;
mod placeholder;
mod xattrs;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bstr::{BStr, BString, ByteSlice};
use parking_lot::RwLock;

use super::Error;
use super::node::{Attributes, Children, EntryKind, NodeRef};
use crate::session;
use crate::source::Interrupt;
use crate::store::Answer;
use crate::views::{Effort, Size};
use inodes::{Inode, Wholeness};
pub use inodes::{Inodes, KnownName, ROOT};
pub use open_file::OpenNode;
use placeholder::Placeholder;
pub use xattrs::ListedXattrs;

/// Most bytes of a small file: one read-ahead, which every mount has.
const SMALL: u64 = 128 << 10;

/// Longest live file, in bytes: it stays in memory while open.
const LIVE_LIMIT: usize = 64 << 20;

/// Longest name the kernel takes (`FUSE_NAME_MAX` is larger, but programs have `NAME_MAX`).
const NAME_MAX: usize = 255;

/// Approximate bytes in an answer to a listing: glibc reads directories 32 KiB at a time.
const LISTING_BYTES: usize = 32 << 10;

/// Bytes of `struct fuse_direntplus` beside the name.
const LISTING_ENTRY_BYTES: usize = 152;

/// The attributes of a node for the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Stat {
    /// Inode number.
    pub number: u64,
    /// Kind, mode and times.
    pub attributes: Attributes,
    /// Size in bytes.
    pub size: u64,
    /// How long the kernel may keep kind, mode, times and size.
    pub attr_ttl: Duration,
    /// How long the kernel may keep the name.
    pub entry_ttl: Duration,
}

/// A node found under a name, not yet counted.
pub struct FoundNode {
    node: NodeRef,
    size: Size,
}

/// An open directory, with its names from the time of the open.
pub struct OpenDirectory {
    number: u64,
    node: NodeRef,
    names: Children,
}

/// One name of a listing.
pub struct ListedName {
    /// The name.
    pub name: BString,
    /// The offset of the next name.
    pub next: u64,
    /// Kind of the node under this name.
    pub kind: EntryKind,
    /// Inode number of the node.
    pub number: u64,
}

/// The inodes and the open files, with the answers to requests about them.
pub struct Service {
    inodes: Inodes,
    files: RwLock<HashMap<u64, Arc<OpenNode>>>,
    directories: RwLock<HashMap<u64, Arc<OpenDirectory>>>,
    next_handle: AtomicU64,
    ttl: Duration,
    xattrs: ListedXattrs,
}

impl Service {
    /// Serves the tree under `root`; the kernel keeps immutable answers for `ttl`.
    pub fn new(root: NodeRef, ttl: Duration, xattrs: ListedXattrs) -> Self {
        Self {
            inodes: Inodes::new(root),
            files: RwLock::default(),
            directories: RwLock::default(),
            next_handle: AtomicU64::new(1),
            ttl,
            xattrs,
        }
    }

    /// The inode numbers of the names that the kernel knows.
    pub fn inodes(&self) -> &Inodes {
        &self.inodes
    }

    /// The inode of this number, which must be current.
    fn current(&self, number: u64) -> Result<Inode, Error> {
        let inode = self.inodes.get(number).ok_or(session::Error::Stale)?;
        if number == ROOT || inode.node.is_current() { Ok(inode) } else { Err(session::Error::Stale.into()) }
    }

    /// Looks a name up in memory, and counts it; `None`: its node must be asked.
    pub fn lookup_known(&self, parent: u64, name: &BStr) -> Result<Option<Stat>, Error> {
        self.current(parent)?;
        let Some(child) = self.inodes.child(parent, name) else { return Ok(None) };
        let Some(size) = known_size(&child)? else { return Ok(None) };
        let counted = self.inodes.remember(parent, name, child.node);
        Ok(Some(self.stat(&counted, size)))
    }

    /// Looks a name up, in its directory's node if need be. [`Service::count`] must follow before the kernel gets the
    /// answer.
    pub fn lookup(&self, parent: u64, name: &BStr, effort: Effort, interrupt: &Interrupt) -> Result<FoundNode, Error> {
        let directory = self.current(parent)?;
        let known = self.inodes.child(parent, name);
        if let Some(inode) = &known
            && let Some(size) = known_size(inode)?
        {
            return Ok(FoundNode { node: inode.node.clone(), size });
        }
        let node = match known {
            Some(inode) => inode.node,
            None => directory.node.lookup(name, interrupt)?,
        };
        if !node.is_current() {
            return Err(session::Error::Stale.into());
        }
        let size = measure(&node, effort, interrupt)?;
        Ok(FoundNode { node, size })
    }

    /// Counts a lookup whose answer is about to be sent.
    pub fn count(&self, parent: u64, name: &BStr, found: FoundNode) -> Stat {
        let inode = self.inodes.remember(parent, name, found.node);
        self.learn(&inode, found.size);
        self.stat(&inode, inode.exact.map_or(found.size, Size::Exact))
    }

    /// The attributes of an inode from memory; `None`: the node must be asked.
    pub fn attributes_known(&self, number: u64) -> Result<Option<Stat>, Error> {
        let inode = self.readable(number)?;
        Ok(known_size(&inode)?.map(|size| self.stat(&inode, size)))
    }

    /// The attributes of an inode; asks its node if need be.
    pub fn attributes(&self, number: u64, interrupt: &Interrupt) -> Result<Stat, Error> {
        let inode = self.readable(number)?;
        let size = match known_size(&inode)? {
            Some(size) => size,
            None => measure(&inode.node, Effort::Quick, interrupt)?,
        };
        self.learn(&inode, size);
        // A concurrent open may have found the exact size, and an upper bound must not follow it.
        let exact = self.inodes.get(number).and_then(|inode| inode.exact);
        Ok(self.stat(&inode, exact.map_or(size, Size::Exact)))
    }

    /// The inode, if it is current or open: `fstat` carries no handle, and a program that reads a file replaced since
    /// keeps the old one.
    fn readable(&self, number: u64) -> Result<Inode, Error> {
        let inode = self.inodes.get(number).ok_or(session::Error::Stale)?;
        if inode.is_open { Ok(inode) } else { self.current(number) }
    }

    /// The target of a symbolic link.
    pub fn readlink(&self, number: u64) -> Result<BString, Error> {
        self.current(number)?.node.readlink()
    }

    /// Opens a file with [`Effort::Free`] or [`Effort::Exact`]; `None`: the open takes more than `effort`.
    pub fn open(&self, number: u64, effort: Effort, interrupt: &Interrupt) -> Result<Option<OpenNode>, Error> {
        let inode = self.current(number)?;
        let node = inode.node;
        match node.attributes().kind {
            EntryKind::Directory | EntryKind::Symlink => Err(session::Error::NotAFile.into()),
            EntryKind::LiveFile if effort == Effort::Free => Ok(None),
            EntryKind::LiveFile => {
                let mut content = Answer::collect(|answer| node.gather(0, LIVE_LIMIT, answer, interrupt))?;
                content.truncate(LIVE_LIMIT);
                Ok(Some(OpenNode::new(number, node, content.len() as u64, Some(content))))
            }
            EntryKind::File => {
                let node = node.opened()?.unwrap_or(node);
                let size = match inode.exact {
                    Some(bytes) => Size::Exact(bytes),
                    None => node.size(effort, interrupt)?,
                };
                match size {
                    Size::Exact(size) => self.open_sized(OpenNode::new(number, node, size, None), effort, interrupt),
                    Size::AtMost(_) if effort == Effort::Exact => {
                        Err(session::Error::Io("the node returned no exact size".to_owned()).into())
                    }
                    Size::AtMost(_) => Ok(None),
                }
            }
        }
    }

    /// Opens a file of known size; `None`: the open takes more than `effort`.
    ///
    /// Query engines open each of many small files twice for a query, and again for the next. From the second open on,
    /// the kernel's page cache keeps a small file that was read whole without an error. A damaged file bypasses the
    /// cache: a page that cannot be filled would fail the sound bytes in it as well.
    fn open_sized(&self, file: OpenNode, effort: Effort, interrupt: &Interrupt) -> Result<Option<OpenNode>, Error> {
        if !file.is_direct() || file.size > SMALL {
            return Ok(Some(file));
        }
        let is_whole = match self.inodes.wholeness(file.number) {
            Wholeness::Read(is_whole) => is_whole,
            Wholeness::Opened if effort == Effort::Free => return Ok(None),
            Wholeness::Opened => {
                let (node, length) = (file.node(), file.size as usize);
                let whole = Answer::collect(|answer| node.gather(0, length, answer, interrupt));
                interrupt.check()?;
                let is_whole = whole.is_ok_and(|whole| whole.len() == length);
                self.inodes.set_wholeness(file.number, Wholeness::Read(is_whole));
                is_whole
            }
            Wholeness::Unopened => {
                self.inodes.set_wholeness(file.number, Wholeness::Opened);
                false
            }
        };
        Ok(Some(if is_whole { file.kept() } else { file }))
    }

    /// Records an open file whose handle is about to be sent.
    pub fn opened(&self, mut file: OpenNode) -> u64 {
        let handle = self.next_handle.fetch_add(1, Ordering::Relaxed);
        if file.content.is_none() {
            self.inodes.set_exact(file.number, file.size);
        }
        self.inodes.opened(file.number);
        let mut files = self.files.write();
        if let Some(other) = files.values().find(|other| file.is_direct() && other.number == file.number) {
            file.join(other);
        }
        files.insert(handle, Arc::new(file));
        handle
    }

    /// The open file with this handle.
    pub fn file(&self, handle: u64) -> Result<Arc<OpenNode>, Error> {
        self.files.read().get(&handle).cloned().ok_or_else(|| session::Error::Stale.into())
    }

    /// Closes a file.
    pub fn close(&self, handle: u64) {
        let file = self.files.write().remove(&handle);
        if let Some(file) = file {
            self.inodes.closed(file.number);
        }
    }

    /// Opens a directory.
    pub fn open_directory(&self, number: u64, interrupt: &Interrupt) -> Result<OpenDirectory, Error> {
        let node = self.current(number)?.node;
        if node.attributes().kind != EntryKind::Directory {
            return Err(session::Error::NotADirectory.into());
        }
        let names = node.children(interrupt)?;
        Ok(OpenDirectory { number, node, names })
    }

    /// Records an open directory whose handle is about to be sent.
    pub fn opened_directory(&self, directory: OpenDirectory) -> u64 {
        let handle = self.next_handle.fetch_add(1, Ordering::Relaxed);
        self.directories.write().insert(handle, Arc::new(directory));
        handle
    }

    /// The open directory with this handle.
    pub fn directory(&self, handle: u64) -> Result<Arc<OpenDirectory>, Error> {
        self.directories.read().get(&handle).cloned().ok_or_else(|| session::Error::Stale.into())
    }

    /// Closes a directory.
    pub fn close_directory(&self, handle: u64) {
        let directory = self.directories.write().remove(&handle);
        drop(directory);
    }

    /// One answer's worth of the names from `offset` on.
    pub fn list(&self, directory: &OpenDirectory, offset: u64) -> Vec<ListedName> {
        let mut listed = Vec::new();
        let (mut bytes, mut next) = (0, offset);
        while bytes <= LISTING_BYTES {
            let position = next;
            next += 1;
            let entry = match position {
                0 => ListedName { name: ".".into(), next, kind: EntryKind::Directory, number: directory.number },
                1 => {
                    let number = self.inodes.parent(directory.number);
                    ListedName { name: "..".into(), next, kind: EntryKind::Directory, number }
                }
                _ => {
                    let Some((place, entry)) = directory.names.at(position - 2) else { break };
                    next = place + 3;
                    if !is_name(&entry.name) {
                        // The kernel answers EIO for the whole directory when it meets such a name.
                        tracing::error!("not shown: {:?} is not a file name", entry.name);
                        continue;
                    }
                    let number = self.inodes.number(directory.number, entry.name.as_bstr());
                    ListedName { name: entry.name, next, kind: entry.kind, number }
                }
            };
            bytes += LISTING_ENTRY_BYTES + entry.name.len().next_multiple_of(8);
            listed.push(entry);
        }
        listed
    }

    /// Looks a listed name up. One bad name must not fail the listing, so it appears without a size, and the kernel
    /// asks again on its first use.
    pub fn lookup_listed(
        &self,
        directory: &OpenDirectory,
        entry: &ListedName,
        effort: Effort,
        interrupt: &Interrupt,
    ) -> FoundNode {
        let name = entry.name.as_bstr();
        let known = self.inodes.child(directory.number, name);
        if let Some(bytes) = known.as_ref().and_then(|inode| inode.exact)
            && let Some(inode) = &known
        {
            return FoundNode { node: inode.node.clone(), size: Size::Exact(bytes) };
        }
        let node = match known {
            Some(inode) => Ok(inode.node),
            None => directory.node.lookup(name, interrupt),
        };
        let measured = node.and_then(|node| Ok((measure(&node, effort, interrupt)?, node)));
        match measured {
            Ok((size, node)) => FoundNode { node, size },
            Err(error) => {
                tracing::debug!("{:?}: {error}", entry.name);
                FoundNode { node: Arc::new(Placeholder(entry.kind)), size: Size::AtMost(0) }
            }
        }
    }

    /// Whether the mount has extended attributes.
    pub fn has_xattrs(&self) -> bool {
        self.xattrs != ListedXattrs::None
    }

    /// The value of one extended attribute.
    pub fn extended_attribute(&self, number: u64, name: &BStr, interrupt: &Interrupt) -> Result<Vec<u8>, Error> {
        let all = self.current(number)?.node.xattrs(interrupt)?;
        self.xattrs.value(all.as_ref(), name).ok_or(Error::NoAttribute)
    }

    /// The names of the listed extended attributes, each with a NUL behind it.
    pub fn extended_attribute_names(&self, number: u64, interrupt: &Interrupt) -> Result<Vec<u8>, Error> {
        let all = self.current(number)?.node.xattrs(interrupt)?;
        Ok(self.xattrs.listed(all.as_ref()).0)
    }

    fn learn(&self, inode: &Inode, size: Size) {
        if let Size::Exact(bytes) = size
            && inode.exact.is_none()
            && inode.kind() == EntryKind::File
        {
            self.inodes.set_exact(inode.number, bytes);
        }
    }

    fn stat(&self, inode: &Inode, size: Size) -> Stat {
        let attr_ttl = match size {
            Size::Exact(_) if inode.number == ROOT || inode.node.is_current() => self.ttl,
            _ => Duration::ZERO,
        };
        Stat {
            number: inode.number,
            attributes: inode.node.attributes(),
            size: size.bytes(),
            attr_ttl,
            entry_ttl: self.ttl,
        }
    }
}

impl OpenDirectory {
    /// The directory's number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether the kernel may keep its names from one open to the next.
    pub fn is_lasting(&self) -> bool {
        self.names.are_lasting()
    }
}

/// The size of a node, if known without asking the node.
fn known_size(inode: &Inode) -> Result<Option<Size>, Error> {
    Ok(match inode.kind() {
        EntryKind::Directory => Some(Size::Exact(0)),
        EntryKind::Symlink => Some(Size::Exact(inode.node.readlink()?.len() as u64)),
        EntryKind::LiveFile => Some(Size::AtMost(0)),
        EntryKind::File => inode.exact.map(Size::Exact),
    })
}

/// The size of a node. A size too hard to compute becomes an easy one: `stat` should not fail for a file that only
/// `open` must refuse.
fn measure(node: &NodeRef, effort: Effort, interrupt: &Interrupt) -> Result<Size, Error> {
    match node.attributes().kind {
        EntryKind::Directory => Ok(Size::Exact(0)),
        EntryKind::Symlink => Ok(Size::Exact(node.readlink()?.len() as u64)),
        EntryKind::LiveFile => Ok(Size::AtMost(0)),
        EntryKind::File => match node.size(effort, interrupt) {
            Err(error)
                if effort == Effort::Quick
                    && !matches!(error, Error::Session(session::Error::Interrupted | session::Error::Stale)) =>
            {
                node.size(Effort::Free, interrupt)
            }
            size => size,
        },
    }
}

/// Whether the kernel accepts these bytes as a file name.
fn is_name(name: &[u8]) -> bool {
    !name.is_empty()
        && name.len() <= NAME_MAX
        && name != b"."
        && name != b".."
        && !name.contains(&b'/')
        && !name.contains(&0)
}
