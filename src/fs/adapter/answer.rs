//! Sends an answer whose bytes lie in several places: `fuser` has no call for that.

use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;

use fuser::{ReplyData, RequestId};

use super::Shared;
use super::pipe::{Filled, Pipes};
use crate::fs::pool::{Reply, Ticket};
use crate::fs::service::OpenNode;
use crate::store::{Answer, AnswerPart};

/// Size of `struct fuse_out_header`, in bytes.
const HEADER: usize = 16;

/// The descriptor of the session. All session threads share one: the kernel takes an answer only on the descriptor that
/// delivered the request.
pub(super) struct Device {
    device: OwnedFd,
    pipes: Pipes,
}

impl Device {
    pub fn new(device: OwnedFd) -> Self {
        Self { device, pipes: Pipes::default() }
    }

    /// Fills a pipe with an answer some of whose parts lie in a source; `None`: the caller must read those parts.
    pub fn fill<'a>(&self, request: RequestId, parts: &'a [AnswerPart<'a>]) -> Option<Filled<'a>> {
        self.pipes.fill(&header(request, parts).ok()?, parts)
    }

    /// Sends the answer.
    ///
    /// # Errors
    /// `ENOENT` if the requester has gone.
    pub fn send(&self, filled: Filled<'_>) -> io::Result<()> {
        filled.send(&self.device, &self.pipes)
    }

    /// Sends parts that lie in memory.
    ///
    /// # Errors
    /// `ENOENT` if the requester has gone.
    pub fn write(&self, request: RequestId, parts: &[AnswerPart<'_>]) -> io::Result<()> {
        let header = header(request, parts)?;
        let mut slices = vec![IoSlice::new(&header)];
        slices.extend(parts.iter().map(|part| IoSlice::new(part.in_memory())));
        // The kernel takes all or nothing.
        rustix::io::writev(&self.device, &slices)?;
        Ok(())
    }
}

impl Shared {
    /// Answers a read of a file from `offset` on.
    pub(super) fn send(
        &self,
        request: RequestId,
        (file, offset): (&OpenNode, u64),
        answer: &mut Answer,
        ticket: &Ticket<ReplyData>,
    ) {
        self.requests.add_bytes(answer.len() as u64);
        let Some(device) = self.session.device() else {
            return ticket.fail(&crate::session::Error::Io("no session".into()).into());
        };
        if answer.is_stored() {
            let parts: Vec<_> = answer.parts().collect();
            if let Some(filled) = device.fill(request, &parts) {
                if let Some(reply) = ticket.claim() {
                    sent(reply, device.send(filled));
                }
                return;
            }
            drop(parts);
            if let Err(error) = file.read_stored(offset, answer, ticket.interrupt()) {
                return ticket.fail(&error);
            }
        }
        let Some(reply) = ticket.claim() else { return };
        match answer.parts().collect::<Vec<_>>().as_slice() {
            [] => reply.data(&[]),
            [part] => reply.data(part.in_memory()),
            parts => sent(reply, device.write(request, parts)),
        }
    }
}

/// Disposes of the `reply` object of a request that was answered without it.
fn sent(reply: ReplyData, outcome: io::Result<()>) {
    match outcome {
        // Dropped, the reply would answer a second time. It holds one reference to the session's descriptor, which then
        // stays open until the process ends.
        Ok(()) => std::mem::forget(reply),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {
            tracing::debug!("the requester of an answer has gone");
            std::mem::forget(reply);
        }
        Err(error) => reply.fail(&crate::session::Error::Io(format!("an answer could not be sent: {error}")).into()),
    }
}

/// The header of an answer of these parts: `struct fuse_out_header` of `linux/fuse.h`, with no error.
fn header(request: RequestId, parts: &[AnswerPart<'_>]) -> io::Result<[u8; HEADER]> {
    let length = parts.iter().map(AnswerPart::len).sum::<usize>();
    let total = u32::try_from(HEADER + length).map_err(io::Error::other)?;
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&total.to_ne_bytes());
    header[8..].copy_from_slice(&request.0.to_ne_bytes());
    Ok(header)
}
