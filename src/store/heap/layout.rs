//! How a global heap collection is laid out (file format III.E).
//!
//! ```text
//! "GCOL" | version 1 | 0 0 0 | size of the collection        header, padded to 8 bytes
//! index u16 | references u16 | 0 0 0 0 | size | data …       object header padded to 8 bytes, data likewise
//! …
//! index 0 | …                                                free space to the end
//! ```

/// Where an object's data lie in the collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    pub index: u16,
    pub start: usize,
    pub length: usize,
}

/// Widths in a collection.
pub struct Sizes {
    /// Of a length.
    length: usize,
    /// Of the collection's header.
    header: usize,
    /// Of an object's header.
    object: usize,
}

impl Sizes {
    /// In a file whose lengths have so many bytes.
    pub fn new(length_size: u8) -> Self {
        let length = usize::from(length_size);
        let padded = |n: usize| n.next_multiple_of(8);
        Self { length, header: padded(8 + length), object: padded(8 + length) }
    }

    /// The size a collection says it has.
    pub fn collection(&self, head: &[u8]) -> Result<u64, String> {
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
    pub fn objects(&self, collection: &[u8]) -> Result<Vec<Object>, String> {
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

/// An unsigned number of up to 8 bytes; wider ones do not occur.
#[inline]
pub fn little_endian(bytes: &[u8]) -> u64 {
    // Nearly all files have numbers of 8 bytes.
    if let Ok(bytes) = bytes.try_into() {
        return u64::from_le_bytes(bytes);
    }
    bytes.iter().take(8).rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
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
