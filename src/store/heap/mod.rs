//! Resolves the descriptors of variable-length elements.
//!
//! In the bytes of an [`ElementBatch`], a variable-length part is a descriptor as the file stores it: a length (`u32`,
//! in base elements), an address (as wide as the file's addresses) and an index (`u32`), all little-endian. Its target
//! depends on the origin of the element:
//!
//! - from a chunk: object `index` of the global heap collection at that address;
//! - from the fill value, or from a worker's answer: bytes in memory. Such a descriptor has the highest bit of its
//!   index set, which no object of a collection can have (they are counted in 16 bits), and its address is a position
//!   in [`Heap`]'s own bytes.
//!
//! Bytes resolved from a sequence of sequences contain descriptors again.

mod collection;
mod collections;
mod pieces;
mod planned;
mod relocate;

use std::ops::Range;
use std::sync::Arc;

use crate::codec::structure::little_endian;
use crate::h5;
use crate::source::{Interrupt, Interrupted};
use crate::store::{Error, File};
use collection::Collection;
pub(super) use collections::Collections;
pub(super) use pieces::{HeapPiece, Pieces};
pub(super) use planned::collections;
pub(super) use relocate::{ATTRIBUTE, Move, REGION, leads_on, relocate};

/// Marks the index of a descriptor whose address is a position in memory.
pub(super) const IN_MEMORY: u32 = 1 << 31;

/// Stored elements, and the content of their variable-length parts.
#[derive(Clone, Debug)]
pub struct ElementBatch {
    /// Rows × element size bytes, in the file's own type and byte order.
    pub bytes: Vec<u8>,
    /// Resolves the descriptors in `bytes`.
    pub heap: Heap,
}

/// Resolves descriptors; see the module's description.
#[derive(Clone, Debug)]
pub struct Heap {
    pub(super) file: Arc<File>,
    /// Number of the file that contains the elements: `file`, or one that it leads to.
    pub(super) file_number: u32,
    memory: Arc<Pieces>,
    pub(super) interrupt: Interrupt,
}

/// Why a descriptor cannot be resolved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unresolved {
    /// It dangles, for this reason.
    #[error("{0}")]
    Invalid(String),
    /// Its bytes cannot be read.
    #[error(transparent)]
    Store(#[from] Error),
    /// The worker cannot determine the targets of references.
    #[error(transparent)]
    Worker(#[from] h5::Error),
}

impl Unresolved {
    /// Turns the failure into an error for a row of the dataset at `path`.
    pub fn at(self, path: &str, row: u64) -> Error {
        match self {
            Unresolved::Invalid(reason) => Error::Heap { path: path.into(), row, reason },
            Unresolved::Store(error) => error,
            Unresolved::Worker(h5::Error::Interrupted) => Interrupted.into(),
            Unresolved::Worker(error) => Error::Hdf5 { path: path.into(), error },
        }
    }
}

impl From<Interrupted> for Unresolved {
    fn from(interrupted: Interrupted) -> Self {
        Unresolved::Store(interrupted.into())
    }
}

/// The content of a descriptor, kept alive by itself.
#[derive(Clone, Debug)]
pub struct Resolved(Backing);

#[derive(Clone, Debug)]
enum Backing {
    Empty,
    Memory(HeapPiece, Range<usize>),
    Collection(Arc<Collection>, Range<usize>),
}

impl std::ops::Deref for Resolved {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Backing::Empty => &[],
            Backing::Memory(bytes, range) => bytes.get(range.clone()).unwrap_or_default(),
            Backing::Collection(collection, range) => collection.bytes(range.clone()),
        }
    }
}

/// Resolves one descriptor after the other and keeps the last collection: neighbours usually share one, so the shared
/// cache is used only when the collection changes. Nested sequences take one cursor per level.
#[derive(Debug)]
pub struct Cursor<'a> {
    heap: &'a Heap,
    address_size: usize,
    collection: Option<(u64, Arc<Collection>)>,
}

/// A descriptor, parsed in the width of the file's addresses.
struct Parsed {
    length: u32,
    address: u64,
    index: u32,
}

#[inline]
fn parse(descriptor: &[u8], address_size: usize) -> Option<Parsed> {
    // Nearly all files have addresses of 8 bytes.
    if let (8, Some(descriptor)) = (address_size, descriptor.first_chunk()) {
        let bits = u128::from_le_bytes(*descriptor);
        return Some(Parsed { length: bits as u32, address: (bits >> 32) as u64, index: (bits >> 96) as u32 });
    }
    let (length, rest) = descriptor.split_first_chunk::<4>()?;
    let (address, rest) = rest.split_at_checked(address_size)?;
    let index = rest.first_chunk::<4>()?;
    Some(Parsed {
        length: u32::from_le_bytes(*length),
        address: little_endian(address),
        index: u32::from_le_bytes(*index),
    })
}

/// Number of elements that a descriptor claims, in a file, or in a worker's answer, whose positions begin at zero.
#[inline]
pub(super) fn length_of(descriptor: &[u8], address_size: usize, through_worker: bool) -> u64 {
    match parse(descriptor, address_size) {
        Some(parsed) if parsed.address != 0 || parsed.index & IN_MEMORY != 0 || through_worker => parsed.length.into(),
        _ => 0,
    }
}

enum Target<'a> {
    Empty,
    Memory(&'a HeapPiece, Range<usize>),
    Object { address: u64, index: u32, bytes: u64 },
}

impl Heap {
    pub(super) fn new(file: Arc<File>, file_number: u32, memory: Pieces, interrupt: Interrupt) -> Self {
        Self { file, file_number, memory: Arc::new(memory), interrupt }
    }

    /// Bytes of a descriptor in the elements: length, address, index.
    pub fn descriptor_size(&self) -> usize {
        self.file.descriptor_size()
    }

    /// The content of `descriptor`: exactly its length times `base_size`, the size of a base element (1 for strings). A
    /// null descriptor has no content.
    ///
    /// # Errors
    /// [`Unresolved::Invalid`] if it dangles, or leads to too few bytes.
    pub fn resolve(&self, descriptor: &[u8], base_size: u64) -> Result<Resolved, Unresolved> {
        match self.target(descriptor, base_size)? {
            Target::Empty => Ok(Resolved(Backing::Empty)),
            Target::Memory(piece, range) => Ok(Resolved(Backing::Memory(piece.clone(), range))),
            Target::Object { address, index, bytes } => {
                let collection = Collection::get(&self.file, address, &self.interrupt)?;
                let range = collection.object(index, Some(bytes)).map_err(Unresolved::Invalid)?;
                Ok(Resolved(Backing::Collection(collection, range)))
            }
        }
    }

    /// A cursor, for many descriptors.
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor { heap: self, address_size: usize::from(self.file.info().address_size), collection: None }
    }

    fn target(&self, descriptor: &[u8], base_size: u64) -> Result<Target<'_>, Unresolved> {
        let Parsed { length, address, index } = parse(descriptor, usize::from(self.file.info().address_size))
            .ok_or_else(|| Unresolved::Invalid("the descriptor is cut short".into()))?;
        if length == 0 || (address == 0 && index & IN_MEMORY == 0) {
            return Ok(Target::Empty);
        }
        let bytes = u64::from(length).checked_mul(base_size);
        let bytes = bytes.ok_or_else(|| Unresolved::Invalid("the length passes 2^64".into()))?;
        if index & IN_MEMORY == 0 {
            return Ok(Target::Object { address, index, bytes });
        }
        match self.memory.find(address, bytes) {
            Some((piece, range)) => Ok(Target::Memory(piece, range)),
            None => Err(Unresolved::Invalid(format!(
                "{bytes} bytes at position {address} of a heap of {}",
                self.memory.end()
            ))),
        }
    }
}

impl Cursor<'_> {
    /// As [`Heap::resolve`]; the bytes stay valid until the next call.
    ///
    /// # Errors
    /// [`Unresolved::Invalid`] if the descriptor dangles, or leads to too few bytes.
    #[inline]
    pub fn resolve(&mut self, descriptor: &[u8], base_size: u64) -> Result<&[u8], Unresolved> {
        let (bytes, range) = self.locate(descriptor, base_size)?;
        Ok(bytes.get(range).unwrap_or_default())
    }

    /// Resolves a descriptor to a range of its container.
    ///
    /// # Errors
    /// As [`Cursor::resolve`].
    #[inline]
    pub(super) fn locate(&mut self, descriptor: &[u8], base_size: u64) -> Result<(&[u8], Range<usize>), Unresolved> {
        if let Some(range) = self.near(descriptor, base_size) {
            return Ok((self.collection.as_ref().map_or(&[], |(_, collection)| collection.whole()), range));
        }
        self.far(descriptor, base_size)
    }

    /// The range within the collection of the previous descriptor; `None`: another collection, or an error.
    #[inline]
    fn near(&self, descriptor: &[u8], base_size: u64) -> Option<Range<usize>> {
        let (known, collection) = self.collection.as_ref()?;
        let Parsed { length, address, index } = parse(descriptor, self.address_size)?;
        if address != *known || length == 0 {
            return None;
        }
        // The index of a descriptor into memory never equals that of an object.
        collection.find(index, u64::from(length).checked_mul(base_size)?)
    }

    #[cold]
    fn far(&mut self, descriptor: &[u8], base_size: u64) -> Result<(&[u8], Range<usize>), Unresolved> {
        let (address, index, bytes) = match self.heap.target(descriptor, base_size)? {
            Target::Empty => return Ok((&[], 0..0)),
            Target::Memory(piece, range) => return Ok((piece, range)),
            Target::Object { address, index, bytes } => (address, index, bytes),
        };
        let collection = self.collection(address)?;
        let range = collection.object(index, Some(bytes)).map_err(Unresolved::Invalid)?;
        Ok((collection.whole(), range))
    }

    /// The whole object `index` of the collection at `address`; the bytes stay valid until the next call.
    ///
    /// # Errors
    /// [`Unresolved::Invalid`]: the collection has no such object.
    pub(super) fn object(&mut self, address: u64, index: u32) -> Result<&[u8], Unresolved> {
        let collection = self.collection(address)?;
        let range = collection.object(index, None).map_err(Unresolved::Invalid)?;
        Ok(collection.bytes(range))
    }

    fn collection(&mut self, address: u64) -> Result<&Collection, Unresolved> {
        // Drops the old collection first: a thread must hold nothing while waiting for memory.
        let known = self.collection.take().filter(|(at, _)| *at == address);
        let collection = match known {
            Some((_, collection)) => collection,
            None => Collection::get(&self.heap.file, address, &self.heap.interrupt)?,
        };
        Ok(&self.collection.insert((address, collection)).1)
    }
}
