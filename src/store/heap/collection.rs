//! A global heap collection, read and parsed without libhdf5.

use std::ops::Range;
use std::sync::Arc;

use super::Unresolved;
use crate::codec;
use crate::codec::structure::heap::{HeapObjects, HeapWidths};
use crate::source::Interrupt;
use crate::store::{Buffer, Error, File, Reservation};

/// Bytes of the smallest collection that libhdf5 makes, hence of the first read: most need no second one.
pub(super) const FIRST_READ: u64 = 4096;

/// A parsed collection.
#[derive(Debug)]
pub struct Collection {
    buffer: Buffer,
    objects: HeapObjects,
    _objects_held: Reservation,
    number: u64,
}

impl Collection {
    /// The collection at `address` (as stored in data: without the user block), from the cache or the file.
    pub(super) fn get(file: &Arc<File>, address: u64, interrupt: &Interrupt) -> Result<Arc<Self>, Unresolved> {
        let key = (file.serial(), address);
        file.store().collections().get_or_make(&key, interrupt, |number| {
            Self::read(file, address, number, interrupt).or_else(|error| {
                // Malformed bytes in a file that was rewritten meanwhile are not the file's fault.
                file.check()?;
                Err(error)
            })
        })
    }

    /// A collection without objects.
    #[cfg(test)]
    pub(super) fn empty(budget: &crate::store::Budget, number: u64) -> Self {
        let (_, [buffer]) = budget.try_lease([64]).unwrap();
        Self { buffer, objects: HeapWidths::new(8).objects(&[]).unwrap(), _objects_held: budget.charge(0), number }
    }

    fn read(file: &File, address: u64, number: u64, interrupt: &Interrupt) -> Result<Self, Unresolved> {
        let invalid =
            |reason: codec::Error| Unresolved::Invalid(format!("global heap collection at {address}: {reason}"));
        let size = file.size()?;
        let start = address
            .checked_add(file.info().user_block)
            .filter(|start| *start < size)
            .ok_or_else(|| invalid("lies beyond the end of the file".into()))?;
        let mut head = [0; FIRST_READ as usize];
        let head = &mut head[..FIRST_READ.min(size - start) as usize];
        file.read_at(start, head, interrupt)?;
        let sizes = HeapWidths::new(file.info().length_size);
        let length = sizes.collection(head).map_err(invalid)?;
        if length > size - start {
            return Err(invalid(format!("{length} bytes long, beyond the end of the file").into()));
        }
        let limit = file.store().max_chunk();
        if length > limit {
            let what = format!("a global heap collection at {address}");
            let (path, option) = (file.source().path().display().to_string(), "--max-chunk");
            return Err(Error::TooLarge { path, what, bytes: length, limit, option }.into());
        }
        let length = usize::try_from(length).map_err(|error| invalid(error.to_string().into()))?;
        let (lease, [mut buffer]) = file.store().budget().lease([length], interrupt)?;
        let known = head.len().min(length);
        buffer[..known].copy_from_slice(&head[..known]);
        if known < length {
            file.read_at(start + known as u64, &mut buffer[known..], interrupt)?;
        }
        let objects = sizes.objects(&buffer).map_err(invalid)?;
        file.check()?;
        let held = file.store().budget().charge(objects.size() as u64);
        drop(lease);
        file.store().counters().collections.add(1);
        Ok(Self { buffer, objects, _objects_held: held, number })
    }

    /// Number of collections read before this one.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The first `bytes` bytes of object `index`; `None`: it does not exist, or has fewer.
    #[inline]
    pub(super) fn find(&self, index: u32, bytes: u64) -> Option<Range<usize>> {
        let object = self.objects.find(&self.buffer, u16::try_from(index).ok()?)?;
        let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= object.length)?;
        Some(object.start..object.start + bytes)
    }

    /// The place of object `index`, or the reason on failure; `None` for `bytes` means the whole object.
    pub(super) fn object(&self, index: u32, bytes: Option<u64>) -> Result<Range<usize>, String> {
        let object = u16::try_from(index).ok().and_then(|index| self.objects.find(&self.buffer, index));
        let object = object.ok_or_else(|| format!("object {index} is not in its heap collection"))?;
        let bytes = bytes.unwrap_or(object.length as u64);
        match usize::try_from(bytes) {
            Ok(bytes) if bytes <= object.length => Ok(object.start..object.start + bytes),
            _ => Err(format!("{bytes} bytes of heap object {index}, which has {}", object.length)),
        }
    }

    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.buffer.get(range).unwrap_or_default()
    }

    /// All bytes of the collection.
    #[inline]
    pub(super) fn whole(&self) -> &[u8] {
        &self.buffer
    }
}
