//! Listing a directory: names alone, or each with what a lookup of it would answer.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, SystemTime};

use bstr::ByteSlice;
use fuser::{FileAttr, INodeNo, ReplyDirectory, ReplyDirectoryPlus};

use super::{GENERATION, Shared, file_type};
use crate::fs::Error;
use crate::fs::node::{Attributes, Kind};
use crate::fs::pool::Ticket;
use crate::fs::service::Stat;

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
        let mut found = Vec::new();
        for entry in self.service.list(&directory, offset) {
            ticket.interrupt().check()?;
            // "." and ".." are not looked up, and the kernel does not count them.
            let dots = matches!(entry.name.as_slice(), b"." | b"..");
            let node = (!dots).then(|| self.service.lookup_listed(&directory, &entry, ticket.interrupt()));
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
                    // `fuser` has one time for name and attributes here.
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

    /// The kernel takes nothing but number and kind of "." and "..".
    fn dots_attr(&self, number: u64) -> FileAttr {
        let time = SystemTime::UNIX_EPOCH;
        let kind = Kind::Directory;
        let attributes = Attributes { kind, mode: 0o555, mtime: time, ctime: time, atime: time };
        let (attr_ttl, entry_ttl) = (Duration::ZERO, Duration::ZERO);
        self.attr(&Stat { number, attributes, size: 0, attr_ttl, entry_ttl })
    }
}
