//! Trevni, a format of column files: the header and the blocks, from slices over hostile bytes.
//!
//! ```text
//! file    "Trv" 2 | rows u64 | columns u32 | metadata | metadata of each column | start u64 of each | columns
//! column  blocks u32 | a descriptor for each | (stored bytes, checksum) for each
//! block   rows of the table in it; entries, each one value, or in an array a length and as many values
//! ```
//!
//! [`TrevniHeader`] and [`BlockDescriptor`] locate blocks, [`TrevniPacking`] decompresses them and checks their
//! checksum, [`decode`] makes values of their bytes. Integers are little-endian; most are varints.

mod header;
mod packing;
mod reader;
mod values;

#[cfg(test)]
mod tests;

pub use header::{BlockDescriptor, Metadata, TrevniColumn, TrevniHeader};
pub use packing::{Checked, Checksum, TrevniCodec, TrevniPacking};
pub use reader::{Stop, TrevniReader};
pub use values::{BlockContent, TrevniType, TrevniValues, decode, weight};

/// The first bytes of a file, before its version.
pub const MAGIC: [u8; 3] = *b"Trv";

/// Most values of one row: the range of an Arrow list's index.
pub const MOST_OF_ROW: u64 = (1 << 31) - 1;

/// Most values of a column.
pub const MOST_OF_COLUMN: u64 = 1 << 40;
