//! Applies filters to chunks that are to be written: the inverse of the decoders of this layer.

use super::Error;
use serde::{Deserialize, Serialize};
use zstd_safe::CCtx;

/// How the bytes of a chunk are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Compression {
    /// No compression.
    None,
    /// Filter 1, at a level from 1 to 9.
    Deflate(u8),
    /// Filter 32015, at a level from 1 to 19.
    Zstandard(u8),
    /// Filter 32004, in one block.
    Lz4,
}

/// Compresses chunks one after another. It keeps its compressor and buffers.
pub struct Packer {
    compression: Compression,
    zstandard: Option<CCtx<'static>>,
    deflate: Option<libdeflater::Compressor>,
    planes: Vec<u8>,
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packer").field("compression", &self.compression).finish_non_exhaustive()
    }
}

impl Packer {
    /// A packer with this compression.
    pub fn new(compression: Compression) -> Self {
        Self { compression, zstandard: None, deflate: None, planes: Vec::new() }
    }

    /// The stored bytes of a chunk whose elements have `size` bytes. With `shuffles`, bytes are shuffled (filter 2)
    /// before compression.
    ///
    /// # Errors
    /// The compressor failed.
    pub fn pack(&mut self, data: &[u8], size: usize, shuffles: bool) -> Result<Vec<u8>, Error> {
        let mut planes = std::mem::take(&mut self.planes);
        let shuffled = if shuffles {
            shuffle(data, size, &mut planes);
            &planes
        } else {
            data
        };
        let packed = self.compress(shuffled);
        self.planes = planes;
        packed
    }

    fn compress(&mut self, data: &[u8]) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        match self.compression {
            Compression::None => out.extend_from_slice(data),
            Compression::Deflate(level) => {
                let compressor = self.deflate.get_or_insert_with(|| libdeflater::Compressor::new(level_of(level)));
                out.resize(compressor.zlib_compress_bound(data.len()), 0);
                let length = compressor.zlib_compress(data, &mut out).map_err(|error| error.to_string())?;
                out.truncate(length);
            }
            Compression::Zstandard(level) => {
                if self.zstandard.is_none() {
                    self.zstandard = Some(CCtx::try_create().ok_or("no memory for a compressor")?);
                }
                let Some(context) = &mut self.zstandard else { return Ok(out) };
                out.resize(zstd_safe::compress_bound(data.len()), 0);
                let packed = context.compress(&mut out[..], data, i32::from(level));
                let length = packed.map_err(|code| zstd_safe::get_error_name(code).to_owned())?;
                out.truncate(length);
            }
            Compression::Lz4 => {
                let block = u32::try_from(data.len()).map_err(|_| "a chunk of 4 GiB or more".to_owned())?;
                out.extend_from_slice(&u64::from(block).to_be_bytes());
                out.extend_from_slice(&block.to_be_bytes());
                if block > 0 {
                    let packed = lz4::block::compress(data, None, false).map_err(|error| error.to_string())?;
                    // A block whose stored length equals its own is stored uncompressed.
                    let stored = if packed.len() < data.len() { packed.as_slice() } else { data };
                    out.extend_from_slice(&(stored.len() as u32).to_be_bytes());
                    out.extend_from_slice(stored);
                }
            }
        }
        Ok(out)
    }
}

fn level_of(level: u8) -> libdeflater::CompressionLvl {
    libdeflater::CompressionLvl::new(i32::from(level)).unwrap_or_default()
}

/// Shuffles the bytes of elements of `size` bytes.
fn shuffle(data: &[u8], size: usize, out: &mut Vec<u8>) {
    out.resize(data.len(), 0);
    match size {
        0 | 1 => out.copy_from_slice(data),
        2 => planes::<2>(data, out),
        4 => planes::<4>(data, out),
        8 => planes::<8>(data, out),
        16 => planes::<16>(data, out),
        _ => {
            let elements = data.len() / size;
            let (whole, tail) = data.split_at(elements * size);
            let (sorted, rest) = out.split_at_mut(elements * size);
            rest.copy_from_slice(tail);
            for (at, plane) in sorted.chunks_exact_mut(elements.max(1)).enumerate() {
                let bytes = whole.iter().skip(at).step_by(size);
                plane.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
            }
        }
    }
}

/// Elements to shuffle at once, while they stay in the processor's cache.
const BLOCK: usize = 256;

fn planes<const N: usize>(data: &[u8], out: &mut [u8]) {
    let (elements, tail) = data.as_chunks::<N>();
    let (sorted, rest) = out.split_at_mut(elements.len() * N);
    rest.copy_from_slice(tail);
    for (block, elements_of) in elements.chunks(BLOCK).enumerate() {
        let mut planes = sorted.chunks_exact_mut(elements.len());
        for byte in 0..N {
            let Some(plane) = planes.next() else { return };
            let start = block * BLOCK;
            let plane = &mut plane[start..start + elements_of.len()];
            plane.iter_mut().zip(elements_of).for_each(|(to, element)| *to = element[byte]);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Pipeline;
    use super::*;
    use crate::catalogue::Filter;

    fn filter(id: i32, parameters: Vec<u32>) -> Filter {
        Filter { id, optional: false, parameters, name: String::new(), available: true }
    }

    proptest! {
        /// What is packed is unpacked by the codecs of readers, which are held against libhdf5 elsewhere.
        #[test]
        fn readers_get_back_what_was_packed(
            data in prop::collection::vec(0u8..7, 0..5000),
            size in prop::sample::select(vec![1usize, 2, 3, 4, 8, 12, 16, 40]),
            shuffles in any::<bool>(),
        ) {
            let data = &data[..data.len() / size * size];
            let packings = [
                (Compression::None, None),
                (Compression::Deflate(6), Some(filter(1, vec![6]))),
                (Compression::Zstandard(3), Some(filter(32015, vec![3]))),
                (Compression::Lz4, Some(filter(32004, vec![]))),
            ];
            for (compression, packing) in packings {
                if data.is_empty() {
                    continue;
                }
                let packed = Packer::new(compression).pack(data, size, shuffles).unwrap();
                let first = shuffles.then(|| filter(2, vec![size as u32]));
                let filters: Vec<Filter> = first.into_iter().chain(packing).collect();
                let pipeline = Pipeline::new(&filters).unwrap();
                let mut out = vec![0; data.len()];
                let scratch = pipeline.scratch(0, data.len());
                let [mut first, mut second] = [scratch.first, scratch.second].map(|bytes| vec![0; bytes]);
                pipeline.decode(0, &packed, &mut out, data.len(), [&mut first, &mut second]).unwrap();
                prop_assert_eq!(&out[..], data, "{:?}", compression);
            }
        }
    }
}
