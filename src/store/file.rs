//! An opened HDF5 file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Error, Store};
use crate::catalogue::FileInfo;
use crate::h5::Client;
use crate::source::Source;

/// An opened HDF5 file: its bytes, the worker that speaks libhdf5 about it, and the store that keeps what was decoded.
///
/// Everything kept of it belongs to one state of the file; when the last user drops it, the store forgets it.
#[derive(Debug)]
pub struct File {
    serial: u64,
    source: Arc<Source>,
    client: Arc<Client>,
    info: FileInfo,
    store: Arc<Store>,
}

impl File {
    /// A file whose facts are known.
    pub fn new(store: Arc<Store>, source: Arc<Source>, client: Arc<Client>, info: FileInfo) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self { serial: NEXT.fetch_add(1, Ordering::Relaxed), source, client, info, store }
    }

    /// Number of this opening, unique in the process: what is cached of the file is cached under it.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// Its bytes.
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Its worker.
    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Facts about it.
    pub fn info(&self) -> &FileInfo {
        &self.info
    }

    /// Where decoded chunks are kept.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Bytes of a variable-length descriptor as stored: length, address, index.
    pub fn descriptor_size(&self) -> usize {
        4 + usize::from(self.info.address_size) + 4
    }

    /// Says whether what was read still belongs to the file that was opened. A file that is written to in SWMR mode
    /// may grow: that is no change.
    ///
    /// # Errors
    /// [`source::Error::Changed`](crate::source::Error::Changed) after a rewrite in place.
    pub fn check(&self) -> Result<(), Error> {
        if self.info.swmr { Ok(()) } else { Ok(self.source.check()?) }
    }

    /// Length of the file in bytes, as opened; as it is now where a writer has it open.
    pub(super) fn size(&self) -> Result<u64, Error> {
        Ok(if self.info.swmr { self.source.metadata()?.len() } else { self.source.identity().size })
    }

    /// Fills `out` from byte `offset` on, and counts.
    pub(super) fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        self.source.read_at(offset, out)?;
        self.store.stats().bytes_read.add(out.len() as u64);
        Ok(())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.store.forget(self.serial);
    }
}
