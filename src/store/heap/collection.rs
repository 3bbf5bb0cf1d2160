//! A global heap collection (file format III.E), read and parsed without libhdf5.
//!
//! ```text
//! "GCOL" | version 1 | 0 0 0 | size of the collection        header, padded to 8 bytes
//! index u16 | references u16 | 0 0 0 0 | size | data …       object header padded to 8 bytes, data likewise
//! …
//! index 0 | …                                                free space to the end
//! ```

use std::ops::Range;
use std::sync::Arc;

use super::super::budget::{Buffer, Reservation};
use super::super::{Error, File};
use super::{Unresolved, little_endian};
use crate::source::Interrupt;

/// The smallest collection libhdf5 makes, so what is read at first: most need no second read.
const FIRST_READ: u64 = 4096;

/// A parsed collection.
#[derive(Debug)]
pub struct Collection {
    buffer: Buffer,
    objects: Vec<Object>,
    _objects_held: Reservation,
}

/// Where an object's data lie in the collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Object {
    index: u16,
    start: usize,
    length: usize,
}

impl Collection {
    /// The collection at `address` (as stored in data: without the user block), from the cache or the file.
    pub(super) fn get(file: &Arc<File>, address: u64, interrupt: &Interrupt) -> Result<Arc<Self>, Unresolved> {
        let key = (file.serial(), address);
        file.store().collections().get_or_make(&key, interrupt, || {
            Self::read(file, address, interrupt).or_else(|error| {
                // Nonsense in a file that was rewritten meanwhile is not the file's fault.
                file.check()?;
                Err(error)
            })
        })
    }

    /// One without objects.
    #[cfg(test)]
    pub(super) fn empty(budget: &super::super::budget::Budget) -> Self {
        let (_, [buffer]) = budget.try_lease([64]).unwrap();
        Self { buffer, objects: Vec::new(), _objects_held: budget.charge(0) }
    }

    fn read(file: &File, address: u64, interrupt: &Interrupt) -> Result<Self, Unresolved> {
        let invalid = |reason: String| Unresolved::Invalid(format!("global heap collection at {address}: {reason}"));
        let size = file.size()?;
        let start = address
            .checked_add(file.info().user_block)
            .filter(|start| *start < size)
            .ok_or_else(|| invalid("lies beyond the end of the file".into()))?;
        let mut head = [0; FIRST_READ as usize];
        let head = &mut head[..FIRST_READ.min(size - start) as usize];
        file.read_at(start, head)?;
        let sizes = Sizes::new(file.info().length_size);
        let length = sizes.collection(head).map_err(invalid)?;
        if length > size - start {
            return Err(invalid(format!("{length} bytes long, beyond the end of the file")));
        }
        let limit = file.store().max_chunk();
        if length > limit {
            let what = format!("a global heap collection at {address}");
            let (path, option) = (file.source().path().display().to_string(), "--max-chunk");
            return Err(Error::TooLarge { path, what, bytes: length, limit, option }.into());
        }
        let length = usize::try_from(length).map_err(|error| invalid(error.to_string()))?;
        let (lease, [mut buffer]) = file.store().budget().lease([length], interrupt).map_err(Error::from)?;
        let known = head.len().min(length);
        buffer[..known].copy_from_slice(&head[..known]);
        if known < length {
            file.read_at(start + known as u64, &mut buffer[known..])?;
        }
        let mut objects = sizes.objects(&buffer).map_err(invalid)?;
        if !objects.is_sorted_by_key(|object| object.index) {
            objects.sort_by_key(|object| object.index);
        }
        objects.shrink_to_fit();
        file.check()?;
        let held = file.store().budget().charge((objects.capacity() * size_of::<Object>()) as u64);
        drop(lease);
        file.store().stats().collections.add(1);
        Ok(Self { buffer, objects, _objects_held: held })
    }

    /// Where the first `bytes` bytes of object `index` are, or all of them.
    pub(super) fn object(&self, index: u32, bytes: Option<u64>) -> Result<Range<usize>, String> {
        let object = u16::try_from(index).ok().and_then(|index| {
            // Indices mostly run from 1 without a gap.
            match self.objects.get(usize::from(index).wrapping_sub(1)) {
                Some(object) if object.index == index => Some(object),
                _ => self.objects.binary_search_by_key(&index, |object| object.index).ok().map(|i| &self.objects[i]),
            }
        });
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
}

/// Widths in a collection.
struct Sizes {
    /// Of a length.
    length: usize,
    /// Of the collection's header.
    header: usize,
    /// Of an object's header.
    object: usize,
}

impl Sizes {
    fn new(length_size: u8) -> Self {
        let length = usize::from(length_size);
        let padded = |n: usize| n.next_multiple_of(8);
        Self { length, header: padded(8 + length), object: padded(8 + length) }
    }

    /// The size a collection says it has.
    fn collection(&self, head: &[u8]) -> Result<u64, String> {
        let signature = head.get(..4).unwrap_or_default();
        if signature != b"GCOL" {
            return Err(format!("begins with {signature:02x?}, not with GCOL"));
        }
        match head.get(4) {
            Some(1) => {}
            version => return Err(format!("version {version:?}, 1 expected")),
        }
        let size = little_endian(head.get(8..8 + self.length).ok_or("is cut short")?);
        if size < self.header as u64 {
            return Err(format!("{size} bytes long, less than its header"));
        }
        Ok(size)
    }

    /// The objects of a collection. Every step goes forward by an object's header at least.
    fn objects(&self, collection: &[u8]) -> Result<Vec<Object>, String> {
        // Grown from here, it is copied a few times at most; it is shrunk in the end.
        let mut objects = Vec::with_capacity(collection.len() / (4 * self.object));
        let mut at = self.header;
        while let Some(header) = collection.get(at..at + self.object) {
            let index = u16::from_le_bytes([header[0], header[1]]);
            if index == 0 {
                // Free space, which is last.
                break;
            }
            let length = little_endian(&header[8..8 + self.length]);
            let start = at + self.object;
            let length = usize::try_from(length).ok().filter(|length| *length <= collection.len() - start);
            let length = length.ok_or_else(|| format!("object {index} is longer than the collection"))?;
            objects.push(Object { index, start, length });
            at = start + length.next_multiple_of(8);
        }
        Ok(objects)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bytes as the file format (III.E) lays them out: two objects and free space.
    fn sample() -> Vec<u8> {
        let mut bytes = b"GCOL\x01\0\0\0".to_vec();
        bytes.extend(96u64.to_le_bytes());
        bytes.extend([1, 0, 1, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(b"hello\0\0\0");
        bytes.extend([2, 0, 1, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(b"12345678");
        bytes.extend([0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0]);
        bytes.resize(96, 0);
        bytes
    }

    #[test]
    fn objects_are_found_where_the_format_puts_them() {
        let sizes = Sizes::new(8);
        let bytes = sample();
        assert_eq!(sizes.collection(&bytes), Ok(96));
        let objects = sizes.objects(&bytes).unwrap();
        assert_eq!(objects[0], Object { index: 1, start: 32, length: 5 });
        assert_eq!(objects[1], Object { index: 2, start: 56, length: 8 });
        assert_eq!(objects.len(), 2);
    }

    #[test]
    fn an_object_longer_than_its_collection_is_an_error() {
        let mut bytes = sample();
        bytes[24..32].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(Sizes::new(8).objects(&bytes), Err("object 1 is longer than the collection".into()));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..300), width in 0u8..9) {
            let sizes = Sizes::new(width);
            let _ = sizes.collection(&bytes);
            let _ = sizes.objects(&bytes);
            if bytes.len() >= 5 {
                bytes[..5].copy_from_slice(b"GCOL\x01");
            }
            let _ = sizes.collection(&bytes);
        }
    }
}
