//! Filter 32008: Bitshuffle, alone or over LZ4 or Zstandard.
//!
//! Elements are cut into blocks, each a multiple of eight elements; up to seven that remain are stored unchanged.
//! Without a compressor the blocks follow each other; with one, they have the framing of [`Framed`].

use super::Error;
use super::compressors::framing::Framed;
use super::space::{Space, lend};
use super::{bits, lz4, target, zstd};

/// Bytes of a block by default. Part of the format: never to be changed.
const TARGET: usize = 8192;

/// Fewest elements of a block of the default size.
const FEWEST: usize = 128;

/// The parameters of a dataset's filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parameters {
    /// Bytes of an element.
    size: usize,
    /// Elements of a block, 0 for the default.
    block: usize,
    /// 0 none, 2 LZ4, 3 Zstandard.
    compressor: u32,
}

thread_local! {
    static BLOCK: Space = const { Space::new(Vec::new()) };
}

impl Parameters {
    /// The parameters follow two version numbers.
    pub(super) fn new(parameters: &[u32]) -> Self {
        let [size, block, compressor] = [2, 3, 4].map(|at| parameters.get(at).copied().unwrap_or_default());
        Self { size: size as usize, block: block as usize, compressor }
    }

    /// Whether the filter keeps the size of the data.
    pub(super) fn keeps_size(self) -> bool {
        !matches!(self.compressor, 2 | 3)
    }

    /// Bytes of a block of this many elements.
    fn block_bytes(self, elements: usize) -> Result<usize, Error> {
        let elements = if elements == 0 { (TARGET / self.size / 8 * 8).max(FEWEST) } else { elements };
        let bytes = elements.checked_mul(self.size).filter(|_| elements.is_multiple_of(8));
        bytes.ok_or_else(|| format!("blocks of {elements} elements, which is no multiple of 8").into())
    }
}

/// Undoes the filter from `data` into `out`; returns the bytes written.
pub(super) fn decode(data: &[u8], out: &mut [u8], parameters: Parameters) -> Result<usize, Error> {
    if parameters.size == 0 {
        return Err("elements of 0 bytes".into());
    }
    if parameters.keeps_size() { plain(data, out, parameters) } else { compressed(data, out, parameters) }
}

fn plain(data: &[u8], out: &mut [u8], parameters: Parameters) -> Result<usize, Error> {
    let room = out.len();
    let out = out.get_mut(..data.len()).ok_or_else(|| format!("{} bytes, {room} expected", data.len()))?;
    let block = parameters.block_bytes(parameters.block)?;
    let (whole, rest) = out.split_at_mut(shuffled(data.len(), parameters.size)?);
    let (blocks, tail) = data.split_at(whole.len());
    for (input, piece) in blocks.chunks(block).zip(whole.chunks_mut(block)) {
        bits::decode(input, piece, parameters.size)?;
    }
    rest.copy_from_slice(tail);
    Ok(data.len())
}

fn compressed(data: &[u8], out: &mut [u8], parameters: Parameters) -> Result<usize, Error> {
    let mut framed = Framed::read(data)?;
    let out = target(out, framed.size)?;
    let block = parameters.block_bytes(framed.block / parameters.size)?;
    let length = out.len();
    let (whole, leftover) = out.split_at_mut(shuffled(length, parameters.size)?);
    lend(&BLOCK, block.min(whole.len()), |shuffled| {
        for piece in whole.chunks_mut(block) {
            let input = framed.take()?;
            let shuffled = &mut shuffled[..piece.len()];
            match parameters.compressor {
                2 => lz4::decode_block(input, shuffled)?,
                _ => zstd::decode_block(input, shuffled)?,
            }
            bits::decode(shuffled, piece, parameters.size)?;
        }
        Ok::<_, Error>(())
    })?;
    let tail = framed.rest().get(..leftover.len()).ok_or("the last elements are cut off")?;
    leftover.copy_from_slice(tail);
    Ok(length)
}

/// Number of bytes, of `length`, that lie in blocks: those of whole groups of eight elements.
fn shuffled(length: usize, size: usize) -> Result<usize, Error> {
    if !length.is_multiple_of(size) {
        return Err(format!("{length} bytes are no multiple of an element's {size}").into());
    }
    Ok(length / size / 8 * 8 * size)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parameters(size: usize, block: usize, compressor: u32) -> Parameters {
        Parameters::new(&[0, 4, size as u32, block as u32, compressor])
    }

    /// The filter as its specification describes it.
    fn encode(data: &[u8], parameters: Parameters) -> Vec<u8> {
        let block = parameters.block_bytes(parameters.block).unwrap();
        let whole = shuffled(data.len(), parameters.size).unwrap();
        let mut stored = Vec::new();
        if !parameters.keeps_size() {
            stored.extend((data.len() as u64).to_be_bytes());
            stored.extend((block as u32).to_be_bytes());
        }
        for piece in data[..whole].chunks(block) {
            let piece = bits::tests::encode(piece, parameters.size);
            let packed = match parameters.compressor {
                2 => lz4_flex::block::compress(&piece),
                3 => {
                    let mut packed = vec![0; zstd_safe::compress_bound(piece.len())];
                    let n = zstd_safe::compress(&mut packed[..], &piece, 1).unwrap();
                    packed.truncate(n);
                    packed
                }
                _ => {
                    stored.extend(piece);
                    continue;
                }
            };
            stored.extend((packed.len() as u32).to_be_bytes());
            stored.extend(packed);
        }
        stored.extend(&data[whole..]);
        stored
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(
            data in prop::collection::vec(0u8..4, 0..3000),
            size in 1usize..12,
            block in 0usize..6,
            compressor in prop::sample::select(vec![0, 2, 3]),
        ) {
            let parameters = parameters(size, block * 8, compressor);
            let data = &data[..data.len() / size * size];
            let stored = encode(data, parameters);
            let mut out = vec![0; data.len()];
            prop_assert_eq!(decode(&stored, &mut out, parameters), Ok(data.len()));
            prop_assert_eq!(&out, &data);
            if !data.is_empty() {
                prop_assert!(decode(&stored, &mut out[1..], parameters).is_err());
                if compressor != 0 {
                    prop_assert!(decode(&stored[..stored.len() - 1], &mut out, parameters).is_err());
                }
            }
        }

        #[test]
        fn no_bytes_make_it_panic(
            data in prop::collection::vec(any::<u8>(), 0..300),
            sizes in (0u64..300, 0u32..300),
            size in 0usize..20,
            block in 0usize..40,
            compressor in 0u32..5,
        ) {
            let _ = decode(&data, &mut [0; 256], parameters(size, block, compressor));
            let stored = [&sizes.0.to_be_bytes()[..], &sizes.1.to_be_bytes(), &data].concat();
            let _ = decode(&stored, &mut [0; 256], parameters(size, block, compressor));
        }
    }

    #[test]
    fn parameters_of_any_kind_are_answered() {
        for parameters in [[u32::MAX; 5], [1, 2, 3, u32::MAX, 0], [0, 0, u32::MAX, 8, 0], [0; 5]] {
            assert!(decode(&[0; 40], &mut [0; 40], Parameters::new(&parameters)).is_err());
        }
        assert!(decode(&[0; 40], &mut [0; 40], Parameters::new(&[])).is_err());
    }
}
