//! The node of a directory.

use std::time::SystemTime;

use super::file::shown_xattrs;
use super::{Attributes, Children, EntryKind, Error, Interrupt, Node, NodeRef, Xattrs, node, plain_attributes};
use crate::session::Spot;

/// A directory: a source folder, a source, a group, a table, or a directory of one of these.
pub(super) struct DirectoryNode(pub Spot);

impl Node for DirectoryNode {
    fn attributes(&self) -> Attributes {
        let plain = |time| plain_attributes(EntryKind::Directory, time);
        match &self.0 {
            Spot::Root(root) => DirectoryNode(root.shown.clone()).attributes(),
            Spot::Live(_, since) => plain(*since),
            Spot::Folder(folder) => plain(folder.modified()),
            Spot::Several(several) => plain(several.since()),
            Spot::Source(root) => {
                root.stamp().map_or_else(|| plain(SystemTime::now()), |stamp| stamp.attributes(EntryKind::Directory))
            }
            Spot::Directory(directory) => {
                let of_file = directory.opened().attributes(EntryKind::Directory);
                Attributes { mtime: directory.mtime().unwrap_or(of_file.mtime), ..of_file }
            }
            Spot::Dataset(dataset) => plain(dataset.since()),
            Spot::Partition(partition) => plain(partition.since),
            of_file => {
                let opened = of_file.opened();
                opened.map_or_else(|| plain(SystemTime::now()), |opened| opened.attributes(EntryKind::Directory))
            }
        }
    }

    fn is_current(&self) -> bool {
        match &self.0 {
            Spot::Root(_) | Spot::Live(..) | Spot::Several(_) | Spot::Dataset(_) => true,
            Spot::Folder(folder) => folder.is_current(),
            Spot::Source(root) => root.is_current(),
            Spot::Partition(partition) => partition.file.is_current(),
            of_file => of_file.opened().is_none_or(|opened| opened.is_current()),
        }
    }

    fn lookup(&self, name: &[u8], interrupt: &Interrupt) -> Result<NodeRef, Error> {
        Ok(node(self.0.lookup(name, interrupt)?))
    }

    fn children(&self, interrupt: &Interrupt) -> Result<Children, Error> {
        Ok(self.0.listed(interrupt)?)
    }

    fn xattrs(&self, interrupt: &Interrupt) -> Result<Box<dyn Xattrs>, Error> {
        Ok(match self.0.attributes(interrupt)? {
            Some((attributes, opened)) => shown_xattrs(&attributes, &opened, interrupt),
            None => Box::new(Vec::new()),
        })
    }
}
