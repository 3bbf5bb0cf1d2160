//! Decodes the beginning of a chunk without the rest.
//!
//! Streams of deflate, Zstandard and LZ4 decode in order, so the first bytes do not need the last ones. Shuffle needs
//! all byte planes, and a checksum needs the whole chunk, so chunks with these filters have no decodable beginning. (A
//! decoder that stops early never reaches the checksum at the end of a zlib stream or a Zstandard frame.)

use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress, inflate_flags};
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

use super::{Codec, Pipeline, Prefix, lz4};

/// Window of a Zstandard decoder as a power of two: 8 MiB, enough for all levels below 20.
const WINDOW: u32 = 23;

impl Pipeline {
    /// Whether chunks with this mask have a beginning that can be decoded alone.
    pub fn has_prefix(&self, mask: u32) -> bool {
        self.stream(mask).is_some()
    }

    /// Fills `out` with the first bytes of a chunk, from its first stored bytes.
    pub fn decode_prefix(&self, mask: u32, stored: &[u8], out: &mut [u8]) -> Prefix {
        match self.stream(mask) {
            Some(Codec::Deflate) => inflate(stored, out),
            Some(Codec::Zstd) => zstd(stored, out),
            Some(Codec::Lz4) => lz4::prefix(stored, out),
            _ => Prefix::Unavailable,
        }
    }

    /// The only codec of chunks with this mask, if it decodes in order.
    fn stream(&self, mask: u32) -> Option<&Codec> {
        let mut active = self.active(mask);
        let only = active.next().filter(|codec| matches!(codec, Codec::Deflate | Codec::Zstd | Codec::Lz4))?;
        active.next().is_none().then_some(only)
    }
}

/// Inflates a beginning, which libdeflate cannot do.
fn inflate(stored: &[u8], out: &mut [u8]) -> Prefix {
    let flags = inflate_flags::TINFL_FLAG_PARSE_ZLIB_HEADER
        | inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF
        | inflate_flags::TINFL_FLAG_HAS_MORE_INPUT;
    let (status, _, given) = decompress(&mut DecompressorOxide::new(), stored, out, 0, flags);
    match status {
        _ if given == out.len() => Prefix::Done,
        TINFLStatus::NeedsMoreInput => Prefix::MoreInput,
        _ => Prefix::Unavailable,
    }
}

fn zstd(stored: &[u8], out: &mut [u8]) -> Prefix {
    let Some(mut context) = DCtx::try_create() else { return Prefix::Unavailable };
    if context.set_parameter(DParameter::WindowLogMax(WINDOW)).is_err() {
        return Prefix::Unavailable;
    }
    let (mut input, mut output) = (InBuffer::around(stored), OutBuffer::around(out));
    loop {
        let before = (input.pos(), output.pos());
        if context.decompress_stream(&mut output, &mut input).is_err() {
            return Prefix::Unavailable;
        }
        if output.pos() == output.capacity() {
            return Prefix::Done;
        }
        if (input.pos(), output.pos()) == before {
            return Prefix::MoreInput;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{encode, filter};
    use super::*;

    fn pipeline(ids: &[(i32, u32)]) -> Pipeline {
        Pipeline::new(&ids.iter().map(|(id, parameter)| filter(*id, &[*parameter])).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn only_streams_alone_have_a_beginning() {
        for id in [1, 32004, 32015] {
            assert!(pipeline(&[(id, 1)]).has_prefix(0), "{id}");
            assert!(!pipeline(&[(id, 1)]).has_prefix(1), "{id}: left out");
            assert!(!pipeline(&[(2, 4), (id, 1)]).has_prefix(0), "{id} over shuffle");
            assert!(pipeline(&[(2, 4), (id, 1)]).has_prefix(1), "{id}: shuffle left out");
            assert!(!pipeline(&[(id, 1), (3, 0)]).has_prefix(0), "{id} with a checksum");
        }
        assert!(!pipeline(&[(32000, 0)]).has_prefix(0) && !pipeline(&[]).has_prefix(0));
    }

    proptest! {
        #[test]
        fn any_part_of_a_stream_gives_its_beginning_or_asks_for_more(
            data in prop::collection::vec(0u8..9, 1..3000),
            id in prop::sample::select(vec![1, 32004, 32015]),
            wanted in 1usize..3000,
            part in 0usize..3000,
        ) {
            let pipeline = pipeline(&[(id, 1)]);
            let stored = encode(id, data.clone());
            let wanted = wanted.min(data.len());
            let mut out = vec![0; wanted];
            let part = &stored[..part.min(stored.len())];
            match pipeline.decode_prefix(0, part, &mut out) {
                Prefix::Done => prop_assert_eq!(&out, &data[..wanted]),
                other => {
                    prop_assert!(part.len() < stored.len());
                    prop_assert_eq!(other, Prefix::MoreInput);
                }
            }
            prop_assert_ne!(pipeline.decode_prefix(0, &stored, &mut vec![0; data.len() + 1]), Prefix::Done);
        }

        #[test]
        fn no_bytes_make_it_panic(
            data in prop::collection::vec(any::<u8>(), 0..200),
            id in prop::sample::select(vec![1, 32004, 32015]),
            flip in (0usize..500, any::<u8>()),
            room in 0usize..300,
        ) {
            let pipeline = pipeline(&[(id, 1)]);
            let _ = pipeline.decode_prefix(0, &data, &mut vec![0; room]);
            let mut stored = encode(id, data);
            let at = flip.0 % stored.len();
            stored[at] = flip.1;
            let _ = pipeline.decode_prefix(0, &stored, &mut vec![0; room]);
        }
    }
}
