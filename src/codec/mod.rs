//! Undoes and applies filters without libhdf5.
//!
//! Every codec is a pure function from a slice to a slice. A [`Pipeline`] knows the output size of each stage before it
//! runs: the chunk's size is known, shuffle keeps it and fletcher32 adds four bytes. Only below a second compressor is
//! a size unknown, and there it is bounded. So a decompression bomb hits the end of a buffer, never an allocation.
//!
//! A [`Packer`] applies filters to chunks that are to be written. Beside the filters, [`pickle`] reads Python pickles,
//! [`waveform`] decodes encoded rows of samples, [`trevni`] reads the headers and blocks of a format of column files,
//! and [`structure`] reads parts of the HDF5 file format itself.

mod bits;
mod bitshuffle;
mod blosc;
mod blosc2;
mod compressors;
mod encode;
mod error;
mod fletcher32;
mod packed;
pub mod pickle;
mod prefix;
mod shuffle;
mod space;
pub mod structure;
pub mod trevni;
pub mod waveform;

pub use encode::{Compression, Packer};
pub use error::Error;

use compressors::{bzip2, deflate, lz4, lzf, zstd};
use packed::{nbit, scaleoffset, szip};

use crate::catalogue::Filter;

/// Most bytes that a compressor may have stored beyond twice its input. No filter grows data further, and without a
/// bound a stored size would be trusted on the file's word alone.
const SLACK: usize = 64 << 10;

/// Filters undone here, with their numbers.
pub const FILTERS: [(i32, &str); 13] = [
    (1, "deflate"),
    (2, "shuffle"),
    (3, "fletcher32"),
    (4, "szip"),
    (5, "nbit"),
    (6, "scaleoffset"),
    (307, "bzip2"),
    (32000, "lzf"),
    (32001, "blosc"),
    (32004, "lz4"),
    (32008, "bitshuffle"),
    (32015, "zstd"),
    (32026, "blosc2"),
];

/// The libraries that undo filters, with their versions.
pub fn libraries() -> [(&'static str, String); 5] {
    let lz4 = ::lz4::version();
    // build.rs takes these versions from Cargo.lock: the libraries do not tell them.
    let locked = |version: Option<&str>| version.unwrap_or("of an unknown version").to_owned();
    [
        ("zstd", zstd_safe::version_string().to_owned()),
        ("LZ4", format!("{}.{}.{}", lz4 / 10_000, lz4 / 100 % 100, lz4 % 100)),
        ("libdeflate", locked(option_env!("HEPFS_LIBDEFLATE_SYS"))),
        ("zlib-rs", locked(option_env!("HEPFS_ZLIB_RS"))),
        ("libbz2-rs", locked(option_env!("HEPFS_LIBBZ2_RS_SYS"))),
    ]
}

/// A filter that hepfs undoes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Codec {
    Deflate,
    /// The number is the bytes of an element.
    Shuffle(usize),
    Fletcher32,
    /// The numbers are the parameters in the file, as in the variants below.
    Szip(Box<[u32]>),
    Nbit(Box<[u32]>),
    ScaleOffset(Box<[u32]>),
    Lzf,
    Lz4,
    Zstd,
    Bzip2,
    Bitshuffle(bitshuffle::Parameters),
    Blosc,
    Blosc2,
}

/// A filter without a codec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Registered number.
    pub id: i32,
    /// The name in the file, else the registered one.
    pub name: String,
}

/// Names the first filter that makes elements unreadable: one that neither hepfs nor libhdf5 can undo, or, with
/// `by_library`, one that libhdf5 cannot.
pub fn unavailable(filters: &[Filter], by_library: bool) -> Option<String> {
    let filter = filters.iter().find(|filter| !filter.available && (by_library || Codec::new(filter).is_err()))?;
    let name = if filter.name.is_empty() { String::new() } else { format!(" ({})", filter.name) };
    Some(format!(
        "filter {}{name} is not known{}; where its HDF5 plugin is installed, name that folder with --plugins",
        filter.id,
        if by_library { " to libhdf5" } else { "" },
    ))
}

/// The filters of a dataset, ready to be undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipeline {
    codecs: Vec<Codec>,
}

/// The outcome of decoding the beginning of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// The requested bytes are in the buffer.
    Done,
    /// More stored bytes are needed, if there are any.
    MoreInput,
    /// The chunk is damaged, or must be decoded as a whole.
    Unavailable,
}

/// Scratch space for decoding a chunk, in two buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scratch {
    /// Bytes of the first buffer.
    pub first: usize,
    /// Bytes of the second.
    pub second: usize,
}

impl Pipeline {
    /// Prepares the filters of a dataset, given in the order applied on writing.
    ///
    /// # Errors
    /// [`Missing`] names the first filter without a codec.
    pub fn new(filters: &[Filter]) -> Result<Self, Missing> {
        let codecs = filters.iter().map(Codec::new).collect::<Result<_, _>>()?;
        Ok(Self { codecs })
    }

    /// Whether a chunk with this filter mask is stored without any filter.
    pub fn is_identity(&self, mask: u32) -> bool {
        self.active(mask).next().is_none()
    }

    /// Whether filters can have turned a chunk of `size` bytes into `stored` bytes.
    pub fn is_plausible(size: usize, stored: u64) -> bool {
        stored <= (size as u64).saturating_mul(2).saturating_add(SLACK as u64)
    }

    /// Scratch space for a chunk of `size` bytes.
    pub fn scratch(&self, mask: u32, size: usize) -> Scratch {
        let direct = self.direct(mask);
        // A checksum is checked without moving data, and the last filter writes into the chunk itself.
        let moving = (0..self.codecs.len())
            .filter(|i| !masked(mask, *i) && self.codecs[*i] != Codec::Fletcher32 && direct != Some(*i));
        let outputs = moving.map(|i| self.before(i, mask, Size::Exactly(size)).most());
        let (count, most) = outputs.fold((0, 0), |(count, most), bytes| (count + 1, most.max(bytes)));
        Scratch { first: most, second: if count > 1 { most } else { 0 } }
    }

    /// The filter undone last, if it writes into the chunk itself. A checksum writes nothing, so the data before it
    /// need a buffer.
    fn direct(&self, mask: u32) -> Option<usize> {
        let first = (0..self.codecs.len()).find(|i| !masked(mask, *i))?;
        (self.codecs[first] != Codec::Fletcher32).then_some(first)
    }

    /// The codecs applied to a chunk with this mask, in the order of writing.
    fn active(&self, mask: u32) -> impl DoubleEndedIterator<Item = &Codec> {
        self.codecs.iter().enumerate().filter(move |(i, _)| !masked(mask, *i)).map(|(_, codec)| codec)
    }

    /// The size of a chunk's data before filter `stage` is applied on writing.
    fn before(&self, stage: usize, mask: u32, chunk: Size) -> Size {
        let mut bytes = chunk;
        for (i, codec) in self.codecs.iter().enumerate().take(stage) {
            if masked(mask, i) {
                continue;
            }
            bytes = match codec {
                Codec::Shuffle(_) => bytes,
                Codec::Bitshuffle(parameters) if parameters.keeps_size() => bytes,
                Codec::Fletcher32 => bytes.plus(4),
                _ => Size::AtMost(bytes.most().saturating_mul(2).saturating_add(SLACK)),
            };
        }
        bytes
    }

    /// Undoes the filters of a chunk from `stored` to `out`. If the caller needs fewer bytes than the chunk has, only
    /// the first `needed` are valid: a writer may have left out the rest, which is then zero. `first` and `second` are
    /// scratch space as [`Pipeline::scratch`] demands.
    ///
    /// # Errors
    /// The filter that failed, and why.
    pub fn decode(
        &self,
        mask: u32,
        stored: &[u8],
        out: &mut [u8],
        needed: usize,
        [first, second]: [&mut [u8]; 2],
    ) -> Result<(), Error> {
        let size = if needed < out.len() { Size::AtMost(out.len()) } else { Size::Exactly(out.len()) };
        let direct = self.direct(mask);
        // The data are in `stored` at first, then in `current`; `spare` takes the next stage's output.
        let (mut current, mut spare) = (first, second);
        let mut moved = false;
        let mut length = stored.len();
        for (i, codec) in self.codecs.iter().enumerate().rev() {
            if masked(mask, i) {
                continue;
            }
            // Two bindings: where the data are in `stored`, `current` is free to be written.
            let (data, target) = if moved { (&*current, &mut *spare) } else { (stored, &mut *current) };
            let data = data.get(..length).unwrap_or_default();
            if *codec == Codec::Fletcher32 {
                length = fletcher32::verify(data).map_err(|error| error.of(codec.name()))?.len();
                continue;
            }
            let expected = self.before(i, mask, size);
            if direct == Some(i) {
                let n = codec.decode(data, out, expected)?;
                return end(out, n, needed).map_err(|error| error.of(codec.name()));
            }
            let target = target.get_mut(..expected.most()).ok_or("filters need more scratch space than was given")?;
            length = codec.decode(data, target, expected)?;
            if moved {
                std::mem::swap(&mut current, &mut spare);
            }
            moved = true;
        }
        let data = if moved { current.get(..length) } else { stored.get(..length) }.unwrap_or_default();
        let Some(decoded) = out.get_mut(..data.len()) else {
            return Err(format!("{} bytes after the filters, {} expected", data.len(), out.len()).into());
        };
        decoded.copy_from_slice(data);
        end(out, data.len(), needed)
    }
}

/// Clears the bytes after the `n` that the filters produced; fails if fewer than `needed`.
fn end(out: &mut [u8], n: usize, needed: usize) -> Result<(), Error> {
    if n < needed.min(out.len()) {
        return Err(format!("gave {n} bytes, {needed} expected").into());
    }
    out[n..].fill(0);
    Ok(())
}

impl Codec {
    fn new(filter: &Filter) -> Result<Self, Missing> {
        let parameters = &filter.parameters;
        Ok(match filter.id {
            1 => Codec::Deflate,
            2 => Codec::Shuffle(parameters.first().map_or(0, |size| *size as usize)),
            3 => Codec::Fletcher32,
            4 => Codec::Szip(parameters.as_slice().into()),
            // The first parameter of this filter is their number. A list too long for the catalogue is left to libhdf5.
            5 if parameters.first() == Some(&(parameters.len() as u32)) => Codec::Nbit(parameters.as_slice().into()),
            6 => Codec::ScaleOffset(parameters.as_slice().into()),
            307 => Codec::Bzip2,
            32000 => Codec::Lzf,
            32001 => Codec::Blosc,
            32004 => Codec::Lz4,
            32008 => Codec::Bitshuffle(bitshuffle::Parameters::new(&filter.parameters)),
            32015 => Codec::Zstd,
            32026 => Codec::Blosc2,
            id => {
                let name = if filter.name.is_empty() { registered(id).to_owned() } else { filter.name.clone() };
                return Err(Missing { id, name });
            }
        })
    }

    fn name(&self) -> &'static str {
        match self {
            Codec::Deflate => "deflate",
            Codec::Shuffle(_) => "shuffle",
            Codec::Fletcher32 => "fletcher32",
            Codec::Szip(_) => "szip",
            Codec::Nbit(_) => "nbit",
            Codec::ScaleOffset(_) => "scaleoffset",
            Codec::Lzf => "lzf",
            Codec::Lz4 => "lz4",
            Codec::Zstd => "zstd",
            Codec::Bzip2 => "bzip2",
            Codec::Bitshuffle(_) => "bitshuffle",
            Codec::Blosc => "blosc",
            Codec::Blosc2 => "blosc2",
        }
    }

    /// Undoes one filter; returns the number of bytes written to `out`.
    fn decode(&self, data: &[u8], out: &mut [u8], expected: Size) -> Result<usize, Error> {
        let n = match self {
            Codec::Deflate => deflate::decode(data, out),
            Codec::Shuffle(size) => shuffle::decode(data, out, *size),
            Codec::Fletcher32 => Err("not a moving stage".into()),
            Codec::Szip(parameters) => szip::decode(data, out, parameters),
            Codec::Nbit(parameters) => nbit::decode(data, out, parameters),
            Codec::ScaleOffset(parameters) => scaleoffset::decode(data, out, parameters),
            Codec::Lzf => lzf::decode(data, out),
            Codec::Lz4 => lz4::decode(data, out),
            Codec::Zstd => zstd::decode(data, out),
            Codec::Bzip2 => bzip2::decode(data, out),
            Codec::Bitshuffle(parameters) => bitshuffle::decode(data, out, *parameters),
            Codec::Blosc => blosc::decode(data, out),
            Codec::Blosc2 => blosc2::decode(data, out),
        }
        .map_err(|error| error.of(self.name()))?;
        match expected {
            Size::Exactly(size) if size != n => {
                Err(Error::from(format!("gave {n} bytes, {size} expected")).of(self.name()))
            }
            _ => Ok(n),
        }
    }
}

/// The size of the data after a stage, or its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    Exactly(usize),
    AtMost(usize),
}

impl Size {
    fn most(self) -> usize {
        match self {
            Size::Exactly(n) | Size::AtMost(n) => n,
        }
    }

    fn plus(self, more: usize) -> Self {
        match self {
            Size::Exactly(n) => Size::Exactly(n.saturating_add(more)),
            Size::AtMost(n) => Size::AtMost(n.saturating_add(more)),
        }
    }
}

/// Whether filter `i` was skipped on writing. Masks have 32 bits; libhdf5 allows 32 filters.
fn masked(mask: u32, i: usize) -> bool {
    i < 32 && mask >> i & 1 == 1
}

/// The part of `out` that takes as many bytes as a header says. Fails if `out` is shorter.
fn target(out: &mut [u8], size: u64) -> Result<&mut [u8], Error> {
    let room = out.len();
    let part = usize::try_from(size).ok().and_then(|size| out.get_mut(..size));
    part.ok_or_else(|| format!("the header says {size} bytes, more than the {room} expected").into())
}

/// Fails if a block of a chunk had another number of bytes than expected.
fn filled(n: usize, expected: usize) -> Result<(), Error> {
    if n == expected { Ok(()) } else { Err(format!("a block gave {n} bytes, {expected} expected").into()) }
}

/// Names of registered filters, for files that store no names.
fn registered(id: i32) -> &'static str {
    match id {
        5 => "nbit",
        32013 => "zfp",
        32017 => "sz",
        32018 => "fcidecomp",
        32024 => "sz3",
        32028 => "sperr",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn filters_are_listed() {
        for (id, name) in FILTERS {
            // The first parameter of `nbit` is their number.
            assert_eq!(Codec::new(&filter(id, &[1])).map(|codec| codec.name()), Ok(name), "{id}");
        }
    }

    const OWN: [i32; 12] = [1, 2, 3, 4, 6, 307, 32000, 32001, 32004, 32008, 32015, 32026];

    pub(super) fn filter(id: i32, parameters: &[u32]) -> Filter {
        Filter { id, optional: false, parameters: parameters.into(), name: String::new(), available: false }
    }

    fn decode(filters: &[Filter], mask: u32, stored: &[u8], size: usize) -> Result<Vec<u8>, Error> {
        let pipeline = Pipeline::new(filters).unwrap();
        let Scratch { first, second } = pipeline.scratch(mask, size);
        let mut out = vec![0; size];
        pipeline.decode(mask, stored, &mut out, size, [&mut vec![0; first], &mut vec![0; second]])?;
        Ok(out)
    }

    /// One filter applied on writing, by the codec's own library.
    pub(super) fn encode(id: i32, data: Vec<u8>) -> Vec<u8> {
        match id {
            1 => {
                let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::fastest());
                let mut out = vec![0; compressor.zlib_compress_bound(data.len())];
                let n = compressor.zlib_compress(&data, &mut out).unwrap();
                out.truncate(n);
                out
            }
            2 => {
                let elements = data.len() / 4;
                let place =
                    |at: usize| if at < elements * 4 { data[at % elements * 4 + at / elements] } else { data[at] };
                (0..data.len()).map(place).collect()
            }
            // The sum of no words, then of the words: as the definition says, modulo 65535 with 65535 for 0.
            3 => {
                let (mut low, mut high) = (0u64, 0u64);
                for word in data.chunks(2) {
                    low += u64::from(word[0]) << 8 | u64::from(*word.get(1).unwrap_or(&0));
                    high += low;
                }
                let modulo = |sum: u64| if sum == 0 { 0 } else { ((sum - 1) % 65535 + 1) as u32 };
                [data, (modulo(high) << 16 | modulo(low)).to_le_bytes().to_vec()].concat()
            }
            32004 => super::lz4::tests::encode(&data, 300),
            32015 => {
                let mut out = vec![0; zstd_safe::compress_bound(data.len())];
                let n = zstd_safe::compress(&mut out[..], &data, 1).unwrap();
                out.truncate(n);
                out
            }
            _ => unreachable!(),
        }
    }

    proptest! {
        #[test]
        fn any_pipeline_with_any_mask_is_undone(
            data in prop::collection::vec(0u8..9, 1..600),
            ids in prop::collection::vec(prop::sample::select(vec![1, 2, 3, 32015]), 0..6),
            mask in 0u32..64,
        ) {
            let filters: Vec<_> = ids.iter().map(|id| filter(*id, &[4])).collect();
            let mut stored = data.clone();
            for (i, id) in ids.iter().enumerate() {
                if !masked(mask, i) {
                    stored = encode(*id, stored);
                }
            }
            prop_assert_eq!(decode(&filters, mask, &stored, data.len()), Ok(data));
        }

        #[test]
        fn no_bytes_make_a_pipeline_panic(
            stored in prop::collection::vec(any::<u8>(), 0..300),
            ids in prop::collection::vec(prop::sample::select(OWN.to_vec()), 0..5),
            size in 0usize..400,
            parameter in 0u32..20,
        ) {
            let filters: Vec<_> = ids.iter().map(|id| filter(*id, &[parameter; 5])).collect();
            let _ = decode(&filters, 0, &stored, size);
        }
    }

    /// As [`decode`], in buffers that hold `old` bytes.
    fn decode_over(old: u8, filters: &[Filter], stored: &[u8], size: usize, needed: usize) -> Result<Vec<u8>, Error> {
        let pipeline = Pipeline::new(filters).unwrap();
        let Scratch { first, second } = pipeline.scratch(0, size);
        let mut out = vec![old; size];
        pipeline.decode(0, stored, &mut out, needed, [&mut vec![old; first], &mut vec![!old; second]])?;
        Ok(out)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Buffers are used again: bytes of another chunk, maybe of another file, must not come out of a damaged one.
        #[test]
        fn what_was_in_the_buffers_never_comes_out(
            data in prop::collection::vec(0u8..9, 1..400),
            ids in prop::collection::vec(prop::sample::select(vec![1, 2, 3, 32004, 32015]), 1..4),
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            size in prop::sample::select(vec![0usize, 1, 8]),
            needed in any::<prop::sample::Index>(),
        ) {
            let filters: Vec<_> = ids.iter().map(|id| filter(*id, &[4])).collect();
            let mut stored = ids.iter().fold(data.clone(), |stored, id| encode(*id, stored));
            for (place, byte) in damage {
                let at = place.index(stored.len());
                stored[at] = byte;
            }
            let size = data.len() + size;
            for needed in [size, needed.index(size)] {
                let [zeros, others] = [0, 0xa5].map(|old| decode_over(old, &filters, &stored, size, needed));
                prop_assert_eq!(zeros, others);
            }
        }

        #[test]
        fn what_was_in_the_buffers_never_comes_out_of_any_bytes(
            stored in prop::collection::vec(any::<u8>(), 0..200),
            header in prop::sample::select(vec![
                vec![],
                // Of LZ4 and Bitshuffle; of Blosc, blocks of 64 bytes, split, shuffled and as bits; of Blosc2.
                vec![0, 0, 0, 0, 0, 0, 0, 128, 0, 0, 0, 64],
                vec![2, 1, 0x21, 4, 128, 0, 0, 0, 64, 0, 0, 0, 96, 0, 0, 0, 24, 0, 0, 0, 60, 0, 0, 0],
                vec![2, 1, 0x14, 4, 128, 0, 0, 0, 64, 0, 0, 0, 96, 0, 0, 0, 24, 0, 0, 0, 60, 0, 0, 0],
            ]),
            id in prop::sample::select(OWN.to_vec()),
            parameters in prop::collection::vec(0u32..9, 0..9),
        ) {
            let filters = [filter(id, &parameters)];
            let stored = [header, stored].concat();
            let [zeros, others] = [0, 0xa5].map(|old| decode_over(old, &filters, &stored, 128, 128));
            prop_assert_eq!(zeros, others);
        }
    }

    #[test]
    fn a_bomb_meets_the_end_of_the_chunk() {
        let bomb = encode(1, vec![0; 1 << 20]);
        assert_eq!(
            decode(&[filter(1, &[])], 0, &bomb, 4096).unwrap_err().to_string(),
            "deflate: the stream gives more than 4096 bytes"
        );
        let bomb = encode(32015, vec![0; 1 << 20]);
        assert!(decode(&[filter(32015, &[])], 0, &bomb, 4096).unwrap_err().to_string().starts_with("zstd: "));
    }

    #[test]
    fn a_stream_too_short_for_the_chunk_is_an_error() {
        let stored = encode(1, vec![7; 100]);
        assert_eq!(
            decode(&[filter(1, &[])], 0, &stored, 101).unwrap_err().to_string(),
            "deflate: gave 100 bytes, 101 expected"
        );
    }

    /// Of a chunk at the edge, a writer may have stored what lies inside the extent alone.
    #[test]
    fn what_is_not_needed_may_be_missing() {
        let data: Vec<u8> = (0..100).collect();
        for ids in [&[1][..], &[32015], &[2, 1], &[2, 1, 3], &[3, 1], &[3]] {
            let filters: Vec<_> = ids.iter().map(|id| filter(*id, &[4])).collect();
            let stored = ids.iter().fold(data.clone(), |stored, id| encode(*id, stored));
            let whole = [&data[..], &[0; 28]].concat();
            for needed in [0, 96, 100] {
                assert_eq!(decode_over(7, &filters, &stored, 128, needed), Ok(whole.clone()), "{ids:?}");
            }
            let error = decode_over(7, &filters, &stored, 128, 101).unwrap_err().to_string();
            assert!(error.ends_with("gave 100 bytes, 101 expected"), "{ids:?}: {error}");
            assert!(decode_over(7, &filters, &stored, 96, 90).is_err(), "{ids:?}: more than a chunk");
        }
    }

    #[test]
    fn a_filter_without_a_codec_is_named() {
        let missing = Missing { id: 32013, name: "zfp".into() };
        assert_eq!(Pipeline::new(&[filter(1, &[]), filter(32013, &[])]), Err(missing));
    }
}
