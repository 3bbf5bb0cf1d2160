//! Datasets: fill value, filters, layout and chunks (file format IV.A.2.f, i and l, III.A.1).

use std::sync::Arc;

use bstr::ByteSlice;

use super::datatype::{self, is_converted};
use super::group::{MOST_LEVELS, NODE_HEAD};
use super::header::{Header, message};
use super::image::Image;
use super::value::Extent;
use super::{Ranks, UNDEFINED, WIDTH};
use crate::catalogue::{
    Attribute, Chunk, ChunkMap, ChunkMapBuilder, Dataset, DatasetDescription, Datatype, Elements, Filter, Layout,
    ObjectId, product,
};
use crate::codec::structure::Rest;

/// Most chunks of a dataset.
const MOST_CHUNKS: usize = 1024;

/// Longest pipeline (`H5Z_MAX_NFILTERS`), and most parameters of a filter that libhdf5 reports.
const MOST_FILTERS: u8 = 32;
const MOST_PARAMETERS: u64 = 256;

/// The filters built into libhdf5, with the names that it gives them if the file has none.
const BUILT_IN: [(u64, &str); 5] = [(1, "deflate"), (2, "shuffle"), (3, "fletcher32"), (5, "nbit"), (6, "scaleoffset")];

/// The first number of filters that are not HDF5's own (`H5Z_FILTER_RESERVED`).
const FOREIGN: u64 = 256;

/// Describes a dataset, with its chunks if it has any.
pub(super) fn read(
    image: &mut Image<'_>,
    ranks: Ranks,
    id: ObjectId,
    header: &Header,
    attributes: Vec<Attribute>,
) -> Option<(Dataset, Option<ChunkMap>)> {
    let datatype = datatype::read(header.body(message::DATATYPE)?)?;
    let extent = Extent::read(header.body(message::DATASPACE)?)?;
    let fill = fill(header.body(message::FILL)?, &datatype)?;
    let filters = header.body(message::FILTERS).map_or(Some(Vec::new()), filters)?;
    let bytes = extent.bytes(datatype.size)?;
    let mut rest = Rest(header.body(message::LAYOUT)?);
    let (version @ 3..=4, class) = (rest.byte()?, rest.byte()?) else { return None };
    let (layout, chunks) = match class {
        0 if filters.is_empty() => {
            let size = rest.number(2).filter(|size| *size == bytes)?;
            rest.skip(size as usize)?;
            (Layout::Compact, None)
        }
        1 if filters.is_empty() => {
            let [address, _size] = *rest.numbers(WIDTH, 2)? else { return None };
            let fits = || bytes > 0 && address.checked_add(bytes).is_some_and(|end| end <= image.end());
            let address = (address != UNDEFINED).then_some(address);
            (address.is_none() || fits()).then_some((Layout::Contiguous { address }, None))?
        }
        2 if version == 3 => {
            let rank = usize::from(rest.byte()?);
            let index = rest.number(WIDTH)?;
            let dims = rest.numbers(4, rank).filter(|dims| !dims.contains(&0))?;
            let (element, chunk) = dims.split_last()?;
            let fits = chunk.len() == extent.shape.len() && !chunk.is_empty() && *element == datatype.size;
            let size = product(&dims).filter(|size| fits && *size <= u32::MAX.into())?;
            let counts = chunk.iter().zip(&extent.shape).map(|(chunk, extent)| extent.div_ceil(*chunk)).collect();
            let (size, chunk) = (filters.is_empty().then_some(size), chunk.to_vec());
            let mut tree = ChunkTree { image, most: ranks.chunk.checked_mul(2)?, dims, counts, size, chunks: vec![] };
            if index != UNDEFINED {
                tree.node(index, None)?;
            }
            (Layout::Chunked { chunk, partial_unfiltered: false }, Some(tree.map()?))
        }
        _ => return None,
    };
    let description = DatasetDescription {
        datatype,
        shape: extent.shape,
        max_shape: extent.max_shape,
        null: extent.null,
        fill,
        filters,
        attributes: attributes.into(),
    };
    Some((Dataset { id, layout, description: Arc::new(description) }, chunks))
}

/// Reads a fill value.
fn fill(body: &[u8], datatype: &Datatype) -> Option<crate::catalogue::Fill> {
    use crate::catalogue::Fill;
    let mut rest = Rest(body);
    let (is_undefined, size) = match rest.byte()? {
        1 | 2 => {
            let [_allocation @ 0..=3, _writing @ 0..=2, defined @ 0..=1] = *rest.take(3)? else { return None };
            (defined == 0, if defined == 1 { rest.number(4)? } else { 0 })
        }
        3 => {
            let flags = rest.byte().filter(|flags| flags & 0xc0 == 0)?;
            match flags >> 4 {
                0 => (false, 0),
                1 => (true, 0),
                2 => (false, rest.number(4).filter(|size| *size > 0)?),
                _ => return None,
            }
        }
        _ => return None,
    };
    if is_undefined || size == 0 {
        return Some(if is_undefined { Fill::Undefined } else { Fill::Default });
    }
    let value = rest.take(usize::try_from(size).ok()?)?;
    (size == datatype.size && !is_converted(datatype))
        .then(|| Fill::Explicit(Elements { bytes: value.to_vec(), heap: Vec::new() }))
}

/// Reads a filter pipeline.
fn filters(body: &[u8]) -> Option<Vec<Filter>> {
    let mut rest = Rest(body);
    let (version @ 1..=2, count @ 1..=MOST_FILTERS) = (rest.byte()?, rest.byte()?) else { return None };
    rest.skip(if version == 1 { 6 } else { 0 })?;
    let mut filters = Vec::new();
    for _ in 0..count {
        let id = rest.number(2)?;
        let length = if version == 1 || id >= FOREIGN { rest.number(2)? } else { 0 };
        let (flags, count) = (rest.number(2)?, rest.number(2)?);
        if flags > 1 || count > MOST_PARAMETERS || version == 1 && length % 8 != 0 {
            return None;
        }
        let known = BUILT_IN.iter().find(|(known, _)| *known == id);
        let name = match (length, known) {
            (0, known) => known?.1,
            (length, _) => {
                let name = rest.take(usize::try_from(length).ok()?)?;
                let name = name.get(..name.find_byte(0).filter(|length| *length < 255)?)?.to_str().ok()?;
                (!name.contains(char::is_control)).then_some(name)?
            }
        };
        let parameters = rest.numbers(4, count as usize)?.into_iter().map(|number| number as u32).collect();
        rest.skip(if version == 1 && count % 2 == 1 { 4 } else { 0 })?;
        filters.push(Filter {
            id: id as i32,
            optional: flags == 1,
            parameters,
            name: name.into(),
            available: known.is_some(),
        });
    }
    Some(filters)
}

/// A walk through the B-tree of a dataset's chunks.
struct ChunkTree<'a, 'b> {
    image: &'a mut Image<'b>,
    /// Most entries of a node.
    most: usize,
    /// Extents of a chunk, then bytes of an element.
    dims: Vec<u64>,
    /// Number of chunks along each dimension.
    counts: Vec<u64>,
    /// Bytes of each chunk, if there are no filters.
    size: Option<u64>,
    chunks: Vec<Chunk>,
}

/// The position of a chunk along each dimension, and 0; or the end of a node.
type Key = Vec<u64>;

impl ChunkTree<'_, '_> {
    /// Adds the chunks below a node, whose level must be this one. Returns its first and last key.
    fn node(&mut self, address: u64, level: Option<u64>) -> Option<[Key; 2]> {
        let of_key = 8 + self.dims.len().checked_mul(8)?;
        let node = self.image.take(address, NODE_HEAD + self.most.checked_mul(of_key + WIDTH)? + of_key)?;
        let mut rest = Rest(node.strip_prefix(b"TREE\x01")?);
        let own = rest.number(1).filter(|own| *own < MOST_LEVELS && level.is_none_or(|level| level == *own))?;
        let count = usize::try_from(rest.number(2)?).ok().filter(|count| (1..=self.most).contains(count))?;
        rest.skip(2 * WIDTH)?;
        let mut entries = Vec::new();
        for _ in 0..count {
            let (size, mask, key) = self.key(&mut rest)?;
            entries.push((size, mask, key, rest.number(WIDTH)?));
        }
        let (_, _, end) = self.key(&mut rest)?;
        for (at, (size, mask, key, address)) in entries.iter().enumerate() {
            let behind = entries.get(at + 1).map_or(&end, |(_, _, key, _)| key);
            if key >= behind {
                return None;
            }
            match own.checked_sub(1) {
                None => self.chunk(key, *size, *mask as u32, *address)?,
                Some(below) => {
                    let [first, end] = self.node(*address, Some(below))?;
                    (*key == first && end <= *behind).then_some(())?;
                }
            }
        }
        Some([entries.swap_remove(0).2, end])
    }

    /// Reads a key: bytes of its chunk, mask, position.
    fn key(&self, rest: &mut Rest<'_>) -> Option<(u64, u64, Key)> {
        let (size, mask) = (rest.number(4)?, rest.number(4)?);
        let offsets = rest.numbers(8, self.dims.len())?;
        let scaled = offsets.iter().zip(&self.dims).map(|(offset, by)| (offset % by == 0).then_some(offset / by));
        Some((size, mask, scaled.collect::<Option<_>>()?))
    }

    fn chunk(&mut self, key: &[u64], size: u64, mask: u32, address: u64) -> Option<()> {
        let (0, places) = key.split_last()? else { return None };
        let index = places.iter().zip(&self.counts).try_fold(0u64, |index, (at, count)| {
            (at < count).then_some(())?;
            index.checked_mul(*count)?.checked_add(*at)
        })?;
        let is_right = self.size.is_none_or(|right| size == right && mask == 0);
        let end = address.checked_add(size).filter(|end| size > 0 && is_right && *end <= self.image.end());
        self.chunks.push(end.map(|_| Chunk { index, address, size, mask })?);
        (self.chunks.len() <= MOST_CHUNKS).then_some(())
    }

    /// The map of all chunks, which have places of their own.
    fn map(&self) -> Option<ChunkMap> {
        let mut places: Vec<_> = self.chunks.iter().map(|chunk| (chunk.address, chunk.address + chunk.size)).collect();
        places.sort_unstable();
        let apart = places.array_windows().all(|[(_, end), (next, _)]| end <= next);
        let in_order = self.chunks.array_windows().all(|[a, b]| a.index < b.index);
        let mut map = ChunkMapBuilder::default();
        (apart && in_order && self.chunks.iter().all(|chunk| map.push(*chunk).is_ok())).then(|| map.finish())
    }
}
