//! Compressors; each decompresses its own format.

pub(super) mod bzip2;
pub(super) mod deflate;
pub(super) mod framing;
pub(super) mod lz4;
pub(super) mod lzf;
pub(super) mod matches;
pub(super) mod zstd;
