//! How a block is stored: compressed, with a checksum after it.

use crate::codec::Error;
use libdeflater::crc32;

use crate::codec::compressors::{bzip2, deflate};

/// The compression of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrevniCodec {
    /// No compression.
    Null,
    /// RFC 1951, without a header.
    Deflate,
    /// One raw block of Snappy.
    Snappy,
    /// A stream of bzip2.
    Bzip2,
}

/// The checksum after the stored bytes of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// No checksum.
    Null,
    /// CRC-32 of the bytes before compression. Writers disagree about the byte order: either is accepted.
    Crc32,
}

/// How the blocks of a column are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrevniPacking {
    /// The compression.
    pub codec: TrevniCodec,
    /// The checksum after the compressed bytes.
    pub checksum: Checksum,
}

/// The outcome of checking a block's checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// It matches, or the block has no checksum.
    Right,
    /// With codec `null`, Apache's writer stores 0 for any bytes.
    NotComputed,
}

impl TrevniPacking {
    /// The storage with these names, as files have them; an absent one means `null`.
    ///
    /// # Errors
    /// An unknown name.
    pub fn of(codec: Option<&[u8]>, checksum: Option<&[u8]>) -> Result<Self, Error> {
        let codec = match codec.unwrap_or(b"null") {
            b"null" => TrevniCodec::Null,
            b"deflate" => TrevniCodec::Deflate,
            b"snappy" => TrevniCodec::Snappy,
            b"bzip2" => TrevniCodec::Bzip2,
            other => return Err(format!("the codec {:?} is not known", String::from_utf8_lossy(other)).into()),
        };
        let checksum = match checksum.unwrap_or(b"null") {
            b"null" => Checksum::Null,
            b"crc32" | b"crc-32" => Checksum::Crc32,
            other => return Err(format!("the checksum {:?} is not known", String::from_utf8_lossy(other)).into()),
        };
        Ok(Self { codec, checksum })
    }

    /// Bytes of the checksum after each block.
    pub fn checksum_size(&self) -> u64 {
        match self.checksum {
            Checksum::Null => 0,
            Checksum::Crc32 => 4,
        }
    }

    /// Decompresses a block: `stored` must fill `out` exactly.
    ///
    /// # Errors
    /// Bytes that do not decode, or decode to more or fewer.
    pub fn unpack(&self, stored: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let size = out.len();
        let given = match self.codec {
            TrevniCodec::Null => {
                out.iter_mut().zip(stored).for_each(|(to, from)| *to = *from);
                stored.len()
            }
            TrevniCodec::Deflate => deflate::decode_raw(stored, out)?,
            TrevniCodec::Snappy => {
                let length = snap::raw::decompress_len(stored).map_err(|error| error.to_string())?;
                if length != size {
                    return Err(format!("the stream gives {length} bytes, the descriptor says {size}").into());
                }
                snap::raw::Decoder::new().decompress(stored, out).map_err(|error| error.to_string())?
            }
            TrevniCodec::Bzip2 => bzip2::decode(stored, out)?,
        };
        if given == size { Ok(()) } else { Err(format!("it gives {given} bytes, the descriptor says {size}").into()) }
    }

    /// Compares the checksum, the four bytes after a block, with the block's content.
    ///
    /// # Errors
    /// The checksum does not match.
    pub fn check(&self, bytes: &[u8], checksum: &[u8]) -> Result<Checked, Error> {
        if self.checksum == Checksum::Null {
            return Ok(Checked::Right);
        }
        let stored: [u8; 4] = checksum.try_into().map_err(|_| "the checksum is cut short".to_owned())?;
        let sum = crc32(bytes);
        if stored == sum.to_be_bytes() || stored == sum.to_le_bytes() {
            Ok(Checked::Right)
        } else if stored == [0; 4] && self.codec == TrevniCodec::Null {
            Ok(Checked::NotComputed)
        } else {
            let stored = u32::from_be_bytes(stored);
            Err(format!("the checksum is {stored:08x}, that of its bytes {sum:08x}").into())
        }
    }
}
