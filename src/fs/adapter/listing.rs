//! Lists a directory: names alone, or each name with the answer of its lookup.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant, SystemTime};

use bstr::ByteSlice;
use fuser::{FileAttr, INodeNo, ReplyDirectory, ReplyDirectoryPlus};

use super::{GENERATION, QUICK, Shared, file_type};
use crate::fs::Error;
use crate::fs::node::{Attributes, EntryKind};
use crate::fs::pool::Ticket;
use crate::fs::service::Stat;
use crate::views::Effort;

/// Time that a listing may spend on the sizes of names nobody has asked for yet.
///
/// After its first answer the kernel lists with attributes only if a program has looked up names of the directory
/// meanwhile. Such a program nearly always looks up the rest as well, one request after the other.
const LOOKED_AHEAD: Duration = Duration::from_micros(QUICK.as_micros() as u64 / 2);

impl Shared {
    pub fn list(&self, handle: u64, offset: u64, ticket: &Ticket<ReplyDirectory>) -> Result<(), Error> {
        let directory = self.service.directory(handle)?;
        let listed = self.service.list(&directory, offset);
        let Some(mut reply) = ticket.claim() else { return Ok(()) };
        for entry in listed {
            let name = OsStr::from_bytes(&entry.name);
            if reply.add(INodeNo(entry.number), entry.next, file_type(entry.kind), name) {
                break;
            }
        }
        reply.ok();
        Ok(())
    }

    pub fn list_plus(&self, handle: u64, offset: u64, ticket: &Ticket<ReplyDirectoryPlus>) -> Result<(), Error> {
        let directory = self.service.directory(handle)?;
        let (mut found, began) = (Vec::new(), Instant::now());
        for entry in self.service.list(&directory, offset) {
            ticket.interrupt().check()?;
            // The kernel looks up neither "." nor "..", and counts no lookup for them.
            let dots = matches!(entry.name.as_slice(), b"." | b"..");
            let is_asked = offset > 0 && began.elapsed() < LOOKED_AHEAD;
            let effort = if is_asked { Effort::Quick } else { Effort::Known };
            let node = (!dots).then(|| self.service.lookup_listed(&directory, &entry, effort, ticket.interrupt()));
            found.push((entry, node));
        }
        let Some(mut reply) = ticket.claim() else { return Ok(()) };
        for (entry, node) in found {
            let name = OsStr::from_bytes(&entry.name);
            let full = match node {
                None => {
                    let attr = self.dots_attr(entry.number);
                    reply.add(attr.ino, entry.next, name, &Duration::ZERO, &attr, GENERATION)
                }
                Some(node) => {
                    let stat = self.service.count(directory.number(), entry.name.as_bstr(), node);
                    // `fuser` takes one time for name and attributes here.
                    let ttl = stat.attr_ttl.min(stat.entry_ttl);
                    let full = reply.add(INodeNo(stat.number), entry.next, name, &ttl, &self.attr(&stat), GENERATION);
                    if full {
                        self.service.inodes().forget(stat.number, 1);
                    }
                    full
                }
            };
            if full {
                break;
            }
        }
        reply.ok();
        Ok(())
    }

    /// Attributes of "." and "..": the kernel uses their number and kind alone.
    fn dots_attr(&self, number: u64) -> FileAttr {
        let time = SystemTime::UNIX_EPOCH;
        let kind = EntryKind::Directory;
        let attributes = Attributes { kind, mode: 0o555, mtime: time, ctime: time, atime: time, identity: 0 };
        let (attr_ttl, entry_ttl) = (Duration::ZERO, Duration::ZERO);
        self.attr(&Stat { number, attributes, size: 0, attr_ttl, entry_ttl })
    }
}
