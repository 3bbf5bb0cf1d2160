//! Elements together with their variable-length parts.

use serde::{Deserialize, Serialize};

/// Bytes of a variable-length descriptor in hepfs: length, position, index.
pub const DESCRIPTOR_SIZE: usize = 16;

/// Elements of a datatype in the file's own layout and byte order, back to back.
///
/// An element holds a 16-byte [`Descriptor`] for each variable-length part (string, sequence), as in files with 8-byte
/// addresses; here its `position` is an offset into `heap` and its `index` is 0. Nested sequences put their own
/// descriptors into `heap` in the same form. In a file with narrower addresses (2 or 4 bytes) the `position` has that
/// width, and a descriptor 10 or 12 bytes: [`Descriptor`] does not support those.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elements {
    /// `count × datatype.size` bytes.
    pub bytes: Vec<u8>,
    /// The bytes that descriptors refer to.
    pub heap: Vec<u8>,
}

/// A variable-length part of an element: 16 bytes little-endian, the form of the file format (III.E "Variable-Length").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Number of base elements; bytes for strings.
    pub length: u32,
    /// Address of the global heap collection in a file; otherwise an offset into [`Elements::heap`].
    pub position: u64,
    /// Object index in the collection; otherwise 0.
    pub index: u32,
}

impl Descriptor {
    /// Reads a descriptor. `None`: fewer than 16 bytes.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            length: u32::from_le_bytes(bytes.get(0..4)?.try_into().ok()?),
            position: u64::from_le_bytes(bytes.get(4..12)?.try_into().ok()?),
            index: u32::from_le_bytes(bytes.get(12..16)?.try_into().ok()?),
        })
    }

    /// The 16 bytes of the descriptor.
    pub fn to_bytes(self) -> [u8; DESCRIPTOR_SIZE] {
        let mut bytes = [0; DESCRIPTOR_SIZE];
        bytes[0..4].copy_from_slice(&self.length.to_le_bytes());
        bytes[4..12].copy_from_slice(&self.position.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.index.to_le_bytes());
        bytes
    }
}
