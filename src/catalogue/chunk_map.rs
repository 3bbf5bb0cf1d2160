//! Locates the chunks of a dataset.
//!
//! A dataset may have millions of chunks, and their entries stay in memory while it is read, so they are packed.
//! Neighbouring chunks make a [`Run`]: it states the least position, address, size and mask, and for each chunk the
//! differences, in as many bytes as the largest takes. Consecutive positions take no bytes, nor do equal sizes and
//! masks. Most chunks take 3 to 8 bytes.

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Number of chunks in a run: few enough that their differences are small, many enough that the run itself adds little
/// to each.
const RUN: usize = 512;

/// Most bytes of memory that a chunk takes in a [`ChunkMap`], if the file is shorter than 2^48 bytes, chunks are
/// shorter than 2^32 bytes, and positions in a run differ by less than 2^32 and masks by less than 2^16. The run itself
/// adds a tenth of a byte for each chunk, more in a map of very few chunks.
pub const PACKED_CHUNK: u64 = 16;

/// A chunk as stored (`H5Dchunk_iter`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// Position in the grid of chunks, row-major.
    pub index: u64,
    /// First byte in the file, the user block included.
    pub address: u64,
    /// Stored length in bytes.
    pub size: u64,
    /// Bit i set: filter i of the pipeline was not applied to this chunk.
    pub mask: u32,
}

impl Chunk {
    /// A written chunk at an unknown place, because the chunk index is damaged.
    pub fn unknown(index: u64) -> Self {
        Self { index, address: u64::MAX, size: 0, mask: 0 }
    }

    /// Whether only the position is known.
    pub fn is_unknown(&self) -> bool {
        self.address == u64::MAX
    }
}

/// The written chunks of a dataset, in ascending order of their positions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChunkMap {
    runs: Vec<Run>,
    /// The differences of all runs, chunk after chunk.
    packed: Vec<u8>,
    len: usize,
}

/// Up to [`RUN`] consecutive chunks of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    /// The least value of each field among the chunks.
    least: Chunk,
    /// Bytes that each difference of index, address, size and mask takes. If indexes take none, they count up by one.
    widths: [u8; 4],
    count: u16,
    /// Offset of the differences of the run in `packed`.
    start: usize,
}

/// Builds a [`ChunkMap`] from chunks in ascending order.
#[derive(Debug, Default)]
pub struct ChunkMapBuilder {
    map: ChunkMap,
    /// Chunks of the pending run.
    run: Vec<Chunk>,
    /// Index of the last chunk.
    last: Option<u64>,
}

/// A chunk came after one with a greater index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("chunk {index} is listed after chunk {last}")]
pub struct OutOfOrder {
    index: u64,
    last: u64,
}

impl ChunkMap {
    /// The chunk at this position of the grid. `None`: never written.
    pub fn get(&self, index: u64) -> Option<Chunk> {
        let behind = self.runs.partition_point(|run| run.least.index <= index);
        let run = self.runs.get(behind.checked_sub(1)?)?;
        let wanted = index - run.least.index;
        if run.widths[0] == 0 {
            return self.chunk(run, usize::try_from(wanted).ok()?);
        }
        let (mut low, mut high) = (0, usize::from(run.count));
        while low < high {
            let middle = low.midpoint(high);
            let chunk = self.chunk(run, middle)?;
            match chunk.index.cmp(&index) {
                std::cmp::Ordering::Equal => return Some(chunk),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// The position of the first chunk at or after `index`.
    pub fn next(&self, index: u64) -> Option<u64> {
        let behind = self.runs.partition_point(|run| run.least.index <= index);
        let within = behind.checked_sub(1).and_then(|run| self.runs.get(run)).and_then(|run| {
            let (mut low, mut high) = (0, usize::from(run.count));
            while low < high {
                let middle = low.midpoint(high);
                if self.chunk(run, middle)?.index < index { low = middle + 1 } else { high = middle }
            }
            Some(self.chunk(run, low)?.index)
        });
        within.or_else(|| Some(self.runs.get(behind)?.least.index))
    }

    /// Unpacks chunk `at` of a run.
    fn chunk(&self, run: &Run, at: usize) -> Option<Chunk> {
        if at >= usize::from(run.count) {
            return None;
        }
        let widths = run.widths.map(usize::from);
        let stride = widths.iter().sum::<usize>();
        let start = run.start + at * stride;
        let mut rest = self.packed.get(start..start + stride)?;
        let [index, address, size, mask] = widths.map(|width| {
            let (field, behind) = rest.split_at(width.min(rest.len()));
            rest = behind;
            field.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
        });
        let least = &run.least;
        Some(Chunk {
            index: least.index + if run.widths[0] == 0 { at as u64 } else { index },
            address: least.address + address,
            size: least.size + size,
            // The difference of two masks is never wider than a mask.
            mask: least.mask + mask as u32,
        })
    }

    /// All chunks by ascending index.
    pub fn iter(&self) -> impl Iterator<Item = Chunk> {
        self.runs.iter().flat_map(|run| (0..usize::from(run.count)).filter_map(|at| self.chunk(run, at)))
    }

    /// Number of chunks written.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no chunk was written.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory in use.
    pub fn memory(&self) -> usize {
        self.packed.capacity() + self.runs.capacity() * size_of::<Run>()
    }
}

impl ChunkMapBuilder {
    /// Adds a chunk; of two with the same index, the first one stays.
    ///
    /// # Errors
    /// [`OutOfOrder`] if its index is less than that of the last chunk.
    pub fn push(&mut self, chunk: Chunk) -> Result<(), OutOfOrder> {
        match self.last {
            Some(last) if chunk.index < last => return Err(OutOfOrder { index: chunk.index, last }),
            Some(last) if chunk.index == last => return Ok(()),
            _ => self.last = Some(chunk.index),
        }
        self.run.push(chunk);
        if self.run.len() == RUN {
            self.pack();
        }
        Ok(())
    }

    /// The finished map.
    pub fn finish(mut self) -> ChunkMap {
        self.pack();
        self.map.runs.shrink_to_fit();
        self.map.packed.shrink_to_fit();
        self.map
    }

    /// Packs the chunks of the pending run.
    fn pack(&mut self) {
        let Some((first, rest)) = self.run.split_first() else { return };
        let (least, most) = rest.iter().fold((*first, *first), |(least, most), chunk| {
            (each(&least, chunk, u64::min, u32::min), each(&most, chunk, u64::max, u32::max))
        });
        let mut widths = fields(&most, &least).map(width);
        if most.index - least.index == rest.len() as u64 {
            widths[0] = 0;
        }
        self.map.runs.push(Run { least, widths, count: self.run.len() as u16, start: self.map.packed.len() });
        for chunk in &self.run {
            for (difference, width) in fields(chunk, &least).iter().zip(widths) {
                self.map.packed.extend_from_slice(&difference.to_le_bytes()[..usize::from(width)]);
            }
        }
        self.map.len += self.run.len();
        self.run.clear();
    }
}

/// Combines each field of two chunks: those of 64 bits by `wide`, the mask by `narrow`.
fn each(a: &Chunk, b: &Chunk, wide: fn(u64, u64) -> u64, narrow: fn(u32, u32) -> u32) -> Chunk {
    Chunk {
        index: wide(a.index, b.index),
        address: wide(a.address, b.address),
        size: wide(a.size, b.size),
        mask: narrow(a.mask, b.mask),
    }
}

/// The differences of a chunk's fields from the least ones.
fn fields(chunk: &Chunk, least: &Chunk) -> [u64; 4] {
    [
        chunk.index - least.index,
        chunk.address - least.address,
        chunk.size - least.size,
        u64::from(chunk.mask - least.mask),
    ]
}

/// Bytes that a number takes.
fn width(number: u64) -> u8 {
    (u64::BITS - number.leading_zeros()).div_ceil(8) as u8
}

/// Serialized as a list of chunks, so that no input can make a map that contradicts itself.
impl Serialize for ChunkMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.len))?;
        for chunk in self.iter() {
            list.serialize_element(&chunk)?;
        }
        list.end()
    }
}

impl<'de> Deserialize<'de> for ChunkMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Chunks;
        impl<'de> Visitor<'de> for Chunks {
            type Value = ChunkMap;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("chunks by ascending index")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<ChunkMap, A::Error> {
                let mut map = ChunkMapBuilder::default();
                while let Some(chunk) = list.next_element()? {
                    map.push(chunk).map_err(A::Error::custom)?;
                }
                Ok(map.finish())
            }
        }
        deserializer.deserialize_seq(Chunks)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn packed(chunks: impl IntoIterator<Item = Chunk>) -> ChunkMap {
        let mut map = ChunkMapBuilder::default();
        chunks.into_iter().for_each(|chunk| map.push(chunk).unwrap());
        map.finish()
    }

    /// Numbers of every width: most files are small, a hostile one says anything.
    fn number() -> impl Strategy<Value = u64> {
        (any::<u64>(), 0..64u32).prop_map(|(number, shift)| number >> shift)
    }

    prop_compose! {
        fn plain()(
            start in number(),
            steps in prop::collection::vec(
                (prop_oneof![4 => Just(1), 1 => number()], number(), number(), any::<u32>()),
                0..1500,
            ),
            plain in (any::<bool>(), any::<bool>()),
        ) -> Vec<Chunk> {
            let mut next = Some(start);
            let place = |(step, address, size, mask): (u64, u64, u64, u32)| {
                let index = next?;
                next = index.checked_add(step.max(1));
                let (size, mask) = (if plain.0 { 4096 } else { size }, if plain.1 { 0 } else { mask });
                Some(Chunk { index, address, size, mask })
            };
            steps.into_iter().map_while(place).collect()
        }
    }

    proptest! {
        #[test]
        fn a_packed_map_is_the_plain_one(chunks in plain(), others in prop::collection::vec(number(), 20)) {
            let map = packed(chunks.iter().copied());
            let by_index: BTreeMap<u64, Chunk> = chunks.iter().map(|chunk| (chunk.index, *chunk)).collect();
            let around = |index: u64| [index.wrapping_sub(1), index, index.wrapping_add(1)];
            let near = chunks.iter().flat_map(|chunk| around(chunk.index));
            for index in near.chain(others) {
                prop_assert_eq!(map.get(index), by_index.get(&index).copied());
            }
            prop_assert_eq!(map.iter().collect::<Vec<_>>(), chunks.clone());
            prop_assert_eq!((map.len(), map.is_empty()), (chunks.len(), chunks.is_empty()));
            let bytes = postcard::to_stdvec(&map).unwrap();
            prop_assert_eq!(&bytes, &postcard::to_stdvec(&chunks).unwrap());
            prop_assert_eq!(postcard::from_bytes::<ChunkMap>(&bytes).unwrap(), map);
        }

        /// The widest that a map within the bounds of [`PACKED_CHUNK`] can be.
        #[test]
        fn a_chunk_takes_no_more_than_it_may(
            fields in prop::collection::vec((2..1u64 << 22, 0..1u64 << 48, 0..1u64 << 32, 0..1u32 << 16), 512..2000),
        ) {
            let mut index = 0;
            let map = packed(fields.into_iter().map(|(step, address, size, mask)| {
                index += step;
                Chunk { index, address, size, mask }
            }));
            let runs = map.runs.len() * size_of::<Run>();
            prop_assert!((map.memory() - runs) as u64 <= PACKED_CHUNK * map.len() as u64);
            prop_assert!(size_of::<Run>() <= RUN / 8);
        }
    }

    #[test]
    fn chunks_that_follow_each_other_take_few_bytes() {
        // 10^6 chunks of about 4 KiB, one behind the other.
        let chunk = |index| Chunk { index, address: 4096 * index + index % 7, size: 4000 + index % 90, mask: 0 };
        let map = packed((0..1_000_000).map(chunk));
        assert!(map.memory() <= 5 * map.len(), "{}", map.memory());
        assert_eq!(map.get(777_777), Some(chunk(777_777)));
        assert_eq!(map.get(1_000_000), None);
    }

    #[test]
    fn of_two_chunks_at_one_index_the_first_stays() {
        let chunk = |index, address| Chunk { index, address, ..Chunk::default() };
        let map = packed([chunk(1, 10), chunk(1, 20), chunk(2, 30)]);
        assert_eq!(map.iter().collect::<Vec<_>>(), [chunk(1, 10), chunk(2, 30)]);
        let mut map = ChunkMapBuilder::default();
        map.push(chunk(2, 10)).unwrap();
        assert_eq!(map.push(chunk(1, 10)), Err(OutOfOrder { index: 1, last: 2 }));
        let bytes = postcard::to_stdvec(&[chunk(2, 10), chunk(1, 10)].as_slice()).unwrap();
        assert!(postcard::from_bytes::<ChunkMap>(&bytes).is_err());
    }
}
