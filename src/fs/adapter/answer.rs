//! Sends what lies in several places as one answer, which `fuser` has no call for.

use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;

use fuser::RequestId;

use super::pipe::{Filled, Pipes};
use crate::fs::service::Part;

/// Bytes of `struct fuse_out_header`.
const HEADER: usize = 16;

/// The kernel's end of the session. All session threads share one: an answer must come by the descriptor that its request
/// came by.
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
    /// `ENOENT` where nobody waits for it any more.
    pub fn send(&self, filled: Filled<'_>) -> io::Result<()> {
        filled.send(&self.device, &self.pipes)
    }

    /// Sends parts that lie in memory.
    ///
    /// # Errors
    /// `ENOENT` where nobody waits for the answer any more.
    pub fn write(&self, request: RequestId, made: &[u8], parts: &[Part]) -> io::Result<()> {
        let header = header(request, parts.iter().map(Part::len).sum())?;
        let mut slices = vec![IoSlice::new(&header)];
        slices.extend(parts.iter().map(|part| IoSlice::new(part.bytes(made))));
        // The kernel takes all or nothing.
        rustix::io::writev(&self.device, &slices)?;
        Ok(())
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
