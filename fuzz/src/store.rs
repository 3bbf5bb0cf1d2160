//! What the sources of the store look for, where there is no file: a heap is one collection in the input.

#[path = "../../src/store/rows/cuts.rs"]
#[allow(dead_code, reason = "no more than blocks are needed to read statistics")]
mod cuts;
#[path = "../../src/store/decode/mod.rs"]
#[allow(unused_imports, reason = "what the rest of the store takes from it")]
pub mod decode;
#[path = "../../src/store/rows/shared.rs"]
#[allow(dead_code, reason = "no more than the numbering is needed to read references")]
mod shared;
#[path = "statistics.rs"]
pub mod statistics;
pub mod heap {
    //! Where the sources look for each other.

    pub const REGION: u8 = 3;
    pub const ATTRIBUTE: u8 = 4;
}

use std::ops::Range;
use std::path::Path;

pub use cuts::Blocked;
pub use shared::numbered;

use crate::codec::structure::heap::Sizes;

/// Rows of a column.
type RowRange = Range<u64>;

/// Errors that can come without a file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path}: {what} takes {bytes} bytes, more than {limit} ({option})")]
    TooLarge { path: String, what: String, bytes: u64, limit: u64, option: &'static str },
}

/// Why a descriptor leads nowhere.
#[derive(Debug, thiserror::Error)]
pub enum Unresolved {
    #[error("{0}")]
    Invalid(String),
    #[error(transparent)]
    Store(#[from] Error),
}

/// A file that is nothing but its heap. Every object has a path.
pub struct File {
    pub address_size: u8,
    pub collection: Vec<u8>,
}

impl File {
    pub fn store(&self) -> &Self {
        self
    }

    pub fn source(&self) -> &Self {
        self
    }

    pub fn client(&self) -> &Self {
        self
    }

    pub fn info(&self) -> &Self {
        self
    }

    pub fn path(&self) -> &Path {
        Path::new("input")
    }

    pub fn max_value(&self) -> u64 {
        1 << 20
    }

    pub fn size(&self) -> Result<u64, Error> {
        Ok(u64::MAX)
    }

    pub fn paths(&self, _: u32, addresses: &[u64], _: &Interrupt) -> Result<Vec<Option<String>>, Error> {
        Ok(addresses.iter().map(|address| (address % 3 > 0).then(|| format!("/{address}"))).collect())
    }
}

/// A target is never interrupted.
pub struct Interrupt;

impl Interrupt {
    pub fn check(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// Resolves descriptors.
pub struct Heap {
    pub file: File,
    pub file_number: u32,
    pub interrupt: Interrupt,
}

impl Heap {
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor(self)
    }
}

/// Resolves one after the other.
pub struct Cursor<'a>(&'a Heap);

impl Cursor<'_> {
    pub fn object(&mut self, _: u64, index: u32) -> Result<&[u8], Unresolved> {
        let invalid = || Unresolved::Invalid("nothing there".into());
        let collection = &self.0.file.collection;
        let objects = Sizes::new(8).objects(collection).map_err(|_| invalid())?;
        let object = u16::try_from(index).ok().and_then(|index| objects.find(collection, index)).ok_or_else(invalid)?;
        collection.get(object.start..object.start + object.length).ok_or_else(invalid)
    }

    pub fn resolve(&mut self, descriptor: &[u8], width: u64) -> Result<&[u8], Unresolved> {
        let invalid = || Unresolved::Invalid("too short".into());
        let (length, rest) = descriptor.split_first_chunk().ok_or_else(invalid)?;
        let rest = rest.get(usize::from(self.0.file.address_size)..).ok_or_else(invalid)?;
        let index = u32::from_le_bytes(*rest.first_chunk().ok_or_else(invalid)?);
        let bytes = u64::from(u32::from_le_bytes(*length)).checked_mul(width).ok_or_else(invalid)?;
        self.object(0, index)?.get(..usize::try_from(bytes).unwrap_or(usize::MAX)).ok_or_else(invalid)
    }
}
