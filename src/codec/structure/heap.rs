//! The layout of a global heap collection (file format III.E).
//!
//! ```text
//! "GCOL" | version 1 | 0 0 0 | size of the collection        header, padded to 8 bytes
//! index u16 | references u16 | 0 0 0 0 | size | data …       object header padded to 8 bytes, data likewise
//! …
//! index 0 | …                                                free space to the end
//! ```

use super::little_endian;
use crate::codec::Error;

/// Alignment of everything in a collection.
const ALIGNMENT: usize = 8;

/// Location of an object's data in the collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapObject {
    /// Its number in the collection.
    pub index: u16,
    /// First byte of its data in the collection.
    pub start: usize,
    /// Bytes of its data.
    pub length: usize,
}

/// The objects of a collection, by index. For each object only the offset of its header is kept: the header lies beside
/// the data, which are read next.
#[derive(Debug)]
pub struct HeapObjects {
    sizes: HeapWidths,
    /// The offset of each object's header, in units of [`ALIGNMENT`].
    places: Vec<u32>,
}

impl HeapObjects {
    /// Object `index` of `collection`, which must be the bytes that this index was made from.
    #[inline]
    pub fn find(&self, collection: &[u8], index: u16) -> Option<HeapObject> {
        // In most collections, indices run from 1 without a gap.
        let likely = self.places.get(usize::from(index).wrapping_sub(1));
        let likely = likely.and_then(|place| self.sizes.object(collection, position(*place)));
        likely.filter(|object| object.index == index).or_else(|| self.search(collection, index))
    }

    #[cold]
    fn search(&self, collection: &[u8], index: u16) -> Option<HeapObject> {
        let found = self.places.binary_search_by_key(&Some(index), |place| {
            self.sizes.object(collection, position(*place)).map(|object| object.index)
        });
        self.sizes.object(collection, position(*self.places.get(found.ok()?)?))
    }

    /// Bytes of memory in use.
    pub fn size(&self) -> usize {
        self.places.capacity() * size_of::<u32>()
    }
}

fn position(place: u32) -> usize {
    (place as usize).saturating_mul(ALIGNMENT)
}

/// Widths of the fields in a collection.
#[derive(Clone, Copy, Debug)]
pub struct HeapWidths {
    /// Bytes of a length.
    length: usize,
    /// Bytes of the collection's header.
    header: usize,
    /// Bytes of an object's header.
    object: usize,
}

impl HeapWidths {
    /// Widths for a file whose lengths take this many bytes.
    pub fn new(length_size: u8) -> Self {
        let length = usize::from(length_size);
        let padded = (8 + length).next_multiple_of(ALIGNMENT);
        Self { length, header: padded, object: padded }
    }

    /// The collection's size according to its header.
    pub fn collection(&self, head: &[u8]) -> Result<u64, Error> {
        let signature = head.get(..4).unwrap_or_default();
        if signature != b"GCOL" {
            return Err(format!("begins with {signature:02x?}, not with GCOL").into());
        }
        match head.get(4) {
            Some(1) => {}
            version => return Err(format!("version {version:?}, 1 expected").into()),
        }
        let size = little_endian(head.get(8..8 + self.length).ok_or("is cut short")?);
        if size < self.header as u64 {
            return Err(format!("{size} bytes long, less than its header").into());
        }
        Ok(size)
    }

    /// The objects of a collection. Every step advances at least by an object's header.
    pub fn objects(self, collection: &[u8]) -> Result<HeapObjects, Error> {
        // With this capacity, the vector is copied at most twice as it grows; it is shrunk at the end.
        let mut places = Vec::with_capacity(collection.len() / (2 * self.object));
        let (mut at, mut last, mut sorted) = (self.header, 0, true);
        while let Some(header) = collection.get(at..at + self.object) {
            let (index, length) = self.parse(header);
            if index == 0 {
                // This is free space, which comes last. If it does not, its size includes its header.
                let whole = usize::try_from(length).ok().filter(|length| length % ALIGNMENT == 0);
                let whole = whole.filter(|length| (self.object..=collection.len()).contains(length));
                let Some(length) = whole else { break };
                at += length;
                continue;
            }
            let start = at + self.object;
            let length = usize::try_from(length).ok().filter(|length| *length <= collection.len() - start);
            let length = length.ok_or_else(|| format!("object {index} is longer than the collection"))?;
            let place = u32::try_from(at / ALIGNMENT);
            places.push(place.map_err(|_| format!("object {index} begins behind 2^32 × {ALIGNMENT} bytes"))?);
            sorted &= last < index;
            last = index;
            at = start + length.next_multiple_of(ALIGNMENT);
        }
        if !sorted {
            let index = |place: &u32| self.object(collection, position(*place)).map(|object| object.index);
            places.sort_by_cached_key(index);
            // Of several objects with one index, libhdf5 takes the last.
            places.reverse();
            places.dedup_by_key(|place| index(place));
            places.reverse();
        }
        places.shrink_to_fit();
        Ok(HeapObjects { sizes: self, places })
    }

    /// The object with its header at `at`.
    #[inline]
    fn object(&self, collection: &[u8], at: usize) -> Option<HeapObject> {
        let start = at.checked_add(self.object)?;
        let (index, length) = self.parse(collection.get(at..start)?);
        Some(HeapObject { index, start, length: usize::try_from(length).ok()? })
    }

    /// Index and length from an object's header.
    #[inline]
    fn parse(&self, header: &[u8]) -> (u16, u64) {
        // Nearly all files have lengths of 8 bytes.
        if let (8, Some(header)) = (self.length, header.first_chunk()) {
            let bits = u128::from_le_bytes(*header);
            return (bits as u16, (bits >> 64) as u64);
        }
        let index = header.first_chunk().map_or(0, |index| u16::from_le_bytes(*index));
        (index, little_endian(header.get(8..8 + self.length).unwrap_or_default()))
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
        let sizes = HeapWidths::new(8);
        let bytes = sample();
        assert_eq!(sizes.collection(&bytes), Ok(96));
        let objects = sizes.objects(&bytes).unwrap();
        assert_eq!(objects.find(&bytes, 1), Some(HeapObject { index: 1, start: 32, length: 5 }));
        assert_eq!(objects.find(&bytes, 2), Some(HeapObject { index: 2, start: 56, length: 8 }));
        assert_eq!(objects.find(&bytes, 0), None);
        assert_eq!(objects.find(&bytes, 3), None);
    }

    #[test]
    fn objects_are_found_in_any_order_and_with_gaps() {
        let mut bytes = sample();
        (bytes[16], bytes[40]) = (7, 3);
        let objects = HeapWidths::new(8).objects(&bytes).unwrap();
        assert_eq!(objects.find(&bytes, 7), Some(HeapObject { index: 7, start: 32, length: 5 }));
        assert_eq!(objects.find(&bytes, 3), Some(HeapObject { index: 3, start: 56, length: 8 }));
        assert_eq!(objects.find(&bytes, 1), None);
    }

    #[test]
    fn objects_behind_free_space_are_found() {
        let mut bytes = sample();
        bytes[16] = 0;
        bytes[24] = 24;
        let objects = HeapWidths::new(8).objects(&bytes).unwrap();
        assert_eq!(objects.find(&bytes, 2), Some(HeapObject { index: 2, start: 56, length: 8 }));
        assert_eq!(objects.find(&bytes, 1), None);
    }

    #[test]
    fn of_objects_with_one_index_the_last_is_found() {
        let mut bytes = sample();
        bytes[40] = 1;
        let objects = HeapWidths::new(8).objects(&bytes).unwrap();
        assert_eq!(objects.find(&bytes, 1), Some(HeapObject { index: 1, start: 56, length: 8 }));
        assert_eq!(objects.find(&bytes, 2), None);
    }

    #[test]
    fn an_object_longer_than_its_collection_is_an_error() {
        let mut bytes = sample();
        bytes[24..32].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(
            HeapWidths::new(8).objects(&bytes).unwrap_err().to_string(),
            "object 1 is longer than the collection"
        );
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..300), width in 0u8..9) {
            let sizes = HeapWidths::new(width);
            let _ = sizes.collection(&bytes);
            if let Ok(objects) = sizes.objects(&bytes) {
                for index in 0..40 {
                    if let Some(object) = objects.find(&bytes, index) {
                        prop_assert!(object.index == index && object.start + object.length <= bytes.len());
                    }
                }
            }
            if bytes.len() >= 5 {
                bytes[..5].copy_from_slice(b"GCOL\x01");
            }
            let _ = sizes.collection(&bytes);
        }
    }
}
