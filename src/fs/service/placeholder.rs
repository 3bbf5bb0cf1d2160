//! Stands in a listing for a name whose lookup failed.

use std::time::SystemTime;

use bstr::BString;

use crate::fs::Error;
use crate::fs::node::{Attributes, Children, EntryKind, Node, NodeRef, Xattrs};
use crate::session;
use crate::source::Interrupt;
use crate::store::Answer;
use crate::views::{Effort, Size};

/// A node with a kind and nothing else. It is never current, so the kernel looks the name up before it uses it, and
/// then gets the error.
pub struct Placeholder(pub EntryKind);

impl Node for Placeholder {
    fn attributes(&self) -> Attributes {
        let time = SystemTime::UNIX_EPOCH;
        Attributes { kind: self.0, mode: 0, mtime: time, ctime: time, atime: time, identity: 0 }
    }

    fn is_current(&self) -> bool {
        false
    }

    fn lookup(&self, _: &[u8], _: &Interrupt) -> Result<NodeRef, Error> {
        Err(session::Error::Stale.into())
    }

    fn children(&self, _: &Interrupt) -> Result<Children, Error> {
        Err(session::Error::Stale.into())
    }

    fn readlink(&self) -> Result<BString, Error> {
        Err(session::Error::Stale.into())
    }

    fn size(&self, _: Effort, _: &Interrupt) -> Result<Size, Error> {
        Err(session::Error::Stale.into())
    }

    fn gather(&self, _: u64, _: usize, _: &mut Answer, _: &Interrupt) -> Result<(), Error> {
        Err(session::Error::Stale.into())
    }

    fn xattrs(&self, _: &Interrupt) -> Result<Box<dyn Xattrs>, Error> {
        Err(session::Error::Stale.into())
    }
}
