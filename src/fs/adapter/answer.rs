//! Sends an answer whose bytes lie in several places, which `fuser` has no call for.

use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;

use fuser::{ReplyData, RequestId};

use super::Shared;
use super::pipe::{Filled, Pipes};
use crate::fs::Error;
use crate::fs::pool::{Answer, Ticket};
use crate::fs::service::{OpenFile, Part};

/// Bytes of `struct fuse_out_header`.
const HEADER: usize = 16;

/// The descriptor of the session. All session threads share one: the kernel takes an answer only on the descriptor that
/// the request came by.
pub(super) struct Device {
    device: OwnedFd,
    pipes: Pipes,
}

impl Device {
    pub fn new(device: OwnedFd) -> Self {
        Self { device, pipes: Pipes::default() }
    }

    /// An answer ready to be sent, of parts of which some lie in a source; `None` where they have to be read.
    pub fn fill<'a>(&self, request: RequestId, made: &[u8], parts: &'a [Part]) -> Option<Filled<'a>> {
        let length = parts.iter().map(Part::len).sum();
        self.pipes.fill(&header(request, length).ok()?, made, parts)
    }

    /// Sends it.
    ///
    /// # Errors
    /// `ENOENT` where the requester has gone.
    pub fn send(&self, filled: Filled<'_>) -> io::Result<()> {
        filled.send(&self.device, &self.pipes)
    }

    /// Sends parts that lie in memory.
    ///
    /// # Errors
    /// `ENOENT` where the requester has gone.
    pub fn write(&self, request: RequestId, made: &[u8], parts: &[Part]) -> io::Result<()> {
        let header = header(request, parts.iter().map(Part::len).sum())?;
        let mut slices = vec![IoSlice::new(&header)];
        slices.extend(parts.iter().map(|part| IoSlice::new(part.bytes(made))));
        // The kernel takes all or nothing.
        rustix::io::writev(&self.device, &slices)?;
        Ok(())
    }
}

impl Shared {
    /// Answers a read with the parts that were gathered for it.
    pub(super) fn send(
        &self,
        request: RequestId,
        (file, offset): (&OpenFile, u64),
        made: &mut Vec<u8>,
        mut parts: Vec<Part>,
        ticket: &Ticket<ReplyData>,
    ) {
        let Some(device) = self.session.device() else { return ticket.fail(&Error::Io("no session".into())) };
        if parts.iter().any(Part::is_stored) {
            if let Some(filled) = device.fill(request, made, &parts) {
                if let Some(reply) = ticket.claim() {
                    sent(reply, device.send(filled));
                }
                return;
            }
            if let Err(error) = file.read_stored(offset, &mut parts, made, ticket.interrupt()) {
                return ticket.fail(&error);
            }
        }
        let Some(reply) = ticket.claim() else { return };
        match parts.as_slice() {
            [] => reply.data(&[]),
            [part] => reply.data(part.bytes(made)),
            parts => sent(reply, device.write(request, made, parts)),
        }
    }
}

/// Ends a request that was answered without `reply`.
fn sent(reply: ReplyData, outcome: io::Result<()>) {
    match outcome {
        // Dropped, it would answer a second time. It holds one count of the session's descriptor, which then stays open
        // until the process ends.
        Ok(()) => std::mem::forget(reply),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {
            tracing::debug!("the requester of an answer has gone");
            std::mem::forget(reply);
        }
        Err(error) => reply.fail(&Error::Io(format!("an answer could not be sent: {error}"))),
    }
}

/// What precedes an answer of `length` bytes: `struct fuse_out_header` of `linux/fuse.h`, with no error.
fn header(request: RequestId, length: usize) -> io::Result<[u8; HEADER]> {
    let total = u32::try_from(HEADER + length).map_err(io::Error::other)?;
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&total.to_ne_bytes());
    header[8..].copy_from_slice(&request.0.to_ne_bytes());
    Ok(header)
}
