//! Locates the bytes of a dataset in its chunks, by arithmetic.
//!
//! All elements in row-major order form one long line of bytes, and a read requests a stretch of it. A stretch of an
//! n-dimensional array is a few boxes (part of a row, rows, part of a row, …); a box intersects chunks, and the
//! intersection with a chunk consists of runs of adjacent bytes.
//!
//! The innermost dimension counts bytes here, not elements, so a stretch may begin and end within an element.

use crate::catalogue::product;

/// A box of chunk coordinates or of bytes: `start` and `count` per dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store) struct Area {
    pub start: Vec<u64>,
    pub count: Vec<u64>,
}

/// The division of a dataset into chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store) struct ChunkGrid {
    /// Extents, the last one in bytes. There is at least one dimension; inner dimensions that no chunk boundary cuts
    /// are merged.
    shape: Vec<u64>,
    /// Extents of a chunk, in the same form as `shape`.
    chunk: Vec<u64>,
    /// Number of chunks along each dimension.
    chunks: Vec<u64>,
    /// Bytes of a chunk.
    bytes: u64,
    /// Extents of the dataset and of a chunk, in elements.
    elements: (Vec<u64>, Vec<u64>),
}

/// Adjacent bytes in the intersection of a stretch and a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct ChunkRun {
    /// First byte in the chunk.
    pub chunk: u64,
    /// First byte in the stretch.
    pub out: u64,
    /// Number of bytes.
    pub length: u64,
}

/// A position within a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct Within {
    /// The chunk's position in the grid.
    pub index: u64,
    /// First byte within the chunk.
    pub start: u64,
    /// Whether the dataset has no further bytes in this chunk.
    pub ends: bool,
}

/// Why a chunk shape does not fit a dataset.
#[derive(Debug, thiserror::Error)]
pub(in crate::store) enum GridError {
    #[error("chunks of {chunk} dimensions in a dataset of {shape}")]
    Rank { chunk: usize, shape: usize },
    #[error("a chunk has an extent of 0")]
    NoExtent,
    #[error("the size of a chunk passes 2^64")]
    ChunkSize,
    #[error("more than 2^64 chunks")]
    Chunks,
    #[error("more than 2^64 bytes")]
    Bytes,
}

impl ChunkGrid {
    /// The grid of a dataset of `shape` elements of `size` bytes.
    pub fn new(shape: &[u64], chunk: &[u64], size: u64) -> Result<Self, GridError> {
        if shape.len() != chunk.len() {
            return Err(GridError::Rank { chunk: chunk.len(), shape: shape.len() });
        }
        if chunk.contains(&0) {
            return Err(GridError::NoExtent);
        }
        let elements = (shape.to_vec(), chunk.to_vec());
        let (mut shape, mut chunk) = (shape.to_vec(), chunk.to_vec());
        // A scalar is one element.
        if shape.is_empty() {
            (shape, chunk) = (vec![1], vec![1]);
        }
        // An inner dimension that no chunk boundary crosses is merged into the next outer one.
        while let ([.., outer, inner], [.., chunk_outer, chunk_inner]) = (&mut shape[..], &mut chunk[..]) {
            if inner != chunk_inner {
                break;
            }
            *outer = outer.checked_mul(*inner).ok_or(GridError::ChunkSize)?;
            *chunk_outer = chunk_outer.checked_mul(*inner).ok_or(GridError::ChunkSize)?;
            shape.pop();
            chunk.pop();
        }
        if let (Some(last), Some(chunk_last)) = (shape.last_mut(), chunk.last_mut()) {
            *last = last.checked_mul(size).ok_or(GridError::ChunkSize)?;
            *chunk_last = chunk_last.checked_mul(size).ok_or(GridError::ChunkSize)?;
        }
        let bytes = product(&chunk).ok_or(GridError::ChunkSize)?;
        let chunks: Vec<u64> =
            shape.iter().zip(&chunk).map(|(extent, chunk)| extent.div_ceil((*chunk).max(1))).collect();
        product(&chunks).ok_or(GridError::Chunks)?;
        product(&shape).ok_or(GridError::Bytes)?;
        Ok(Self { shape, chunk, chunks, bytes, elements })
    }

    /// A grid for a dataset without chunks: pieces of about `bytes` bytes, with whole inner dimensions as far as they
    /// fit.
    pub fn pieces(shape: &[u64], size: u64, bytes: u64) -> Result<Self, GridError> {
        let mut room = (bytes / size.max(1)).max(1);
        let mut chunk = vec![1; shape.len()];
        for (extent, chunk) in shape.iter().zip(&mut chunk).rev() {
            *chunk = (*extent).min(room).max(1);
            room = if *chunk == *extent { room / *chunk } else { 1 };
        }
        Self::new(shape, &chunk, size)
    }

    /// Bytes of a chunk.
    pub fn chunk_bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether consecutive chunks are contiguous in the dataset.
    pub fn is_line(&self) -> bool {
        self.shape.len() == 1
    }

    /// Bytes of a chunk, if each chunk is one run of the dataset.
    pub fn run_bytes(&self) -> Option<u64> {
        let [outer @ .., run] = &self.chunk[..] else { return None };
        outer.iter().all(|extent| *extent == 1).then_some(*run)
    }

    /// The chunk that contains the `length` bytes from `offset` on, in a grid whose chunks are runs of the dataset: a
    /// single line, or parts of rows. `None`: another grid, or no chunk contains all of them.
    pub fn within_chunk(&self, offset: u64, length: u64) -> Option<Within> {
        let (chunk, row) = (self.run_bytes()?, *self.shape.last().filter(|row| **row > 0)?);
        let (start, at) = (offset % row, offset % row % chunk);
        let left = (row - start).min(chunk - at);
        (length <= left).then(|| Within { index: self.chunk_at(offset), start: at, ends: length == left })
    }

    /// Extent of a chunk along the first dimension, in elements.
    pub fn first_extent(&self) -> Option<u64> {
        self.elements.1.first().copied()
    }

    /// Number of chunks in the grid.
    pub fn chunks(&self) -> u64 {
        product(&self.chunks).unwrap_or(u64::MAX)
    }

    /// Whether a chunk exceeds the dataset's extent in some dimension.
    pub fn overhangs(&self, index: u64) -> bool {
        self.bytes_inside(index) < self.bytes
    }

    /// Bytes of a chunk up to its last one within the extent.
    pub fn bytes_inside(&self, index: u64) -> u64 {
        let mut last = 0;
        for ((at, chunk), extent) in self.coordinates(index).iter().zip(&self.chunk).zip(&self.shape) {
            let inside = extent.saturating_sub(at.saturating_mul(*chunk)).min(*chunk);
            if inside == 0 {
                return 0;
            }
            last = last * chunk + inside - 1;
        }
        last + 1
    }

    /// The elements of a chunk within the extent, and the shape of a whole chunk.
    pub fn region(&self, index: u64) -> (Area, &[u64]) {
        let (shape, chunk) = &self.elements;
        let mut rest = index;
        let mut start = vec![0; shape.len()];
        let mut count = vec![0; shape.len()];
        for d in (0..shape.len()).rev() {
            let chunks = shape[d].div_ceil(chunk[d]).max(1);
            start[d] = (rest % chunks).saturating_mul(chunk[d]).min(shape[d]);
            count[d] = chunk[d].min(shape[d] - start[d]);
            rest /= chunks;
        }
        (Area { start, count }, chunk)
    }

    fn coordinates(&self, index: u64) -> Vec<u64> {
        let mut rest = index;
        let mut coordinates = vec![0; self.chunks.len()];
        for (coordinate, chunks) in coordinates.iter_mut().zip(&self.chunks).rev() {
            let chunks = (*chunks).max(1);
            *coordinate = rest % chunks;
            rest /= chunks;
        }
        coordinates
    }

    /// Position in the grid of the chunk that contains a byte.
    pub fn chunk_at(&self, byte: u64) -> u64 {
        let mut rest = byte;
        let mut index = 0u64;
        let mut stride = 1u64;
        for d in (0..self.shape.len()).rev() {
            let extent = self.shape[d].max(1);
            let at = if d == 0 { rest } else { rest % extent };
            index = index.saturating_add((at / self.chunk[d].max(1)).saturating_mul(stride));
            stride = stride.saturating_mul(self.chunks[d].max(1));
            rest /= extent;
        }
        index
    }

    /// Calls `visit` for every chunk that bytes `offset..offset + length` touch, with the runs in their intersection.
    /// The stretch must lie within the dataset.
    pub fn visit<E>(
        &self,
        offset: u64,
        length: u64,
        mut visit: impl FnMut(u64, &mut dyn Iterator<Item = ChunkRun>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut out = 0;
        for area in boxes(&self.shape, offset, length) {
            self.visit_box(&area, out, &mut visit)?;
            out += area.count.iter().product::<u64>();
        }
        Ok(())
    }

    fn visit_box<E>(
        &self,
        area: &Area,
        out: u64,
        visit: &mut impl FnMut(u64, &mut dyn Iterator<Item = ChunkRun>) -> Result<(), E>,
    ) -> Result<(), E> {
        let rank = self.shape.len();
        let first: Vec<u64> = (0..rank).map(|d| area.start[d] / self.chunk[d]).collect();
        let count: Vec<u64> =
            (0..rank).map(|d| (area.start[d] + area.count[d] - 1) / self.chunk[d] - first[d] + 1).collect();
        let box_strides = strides(&area.count);
        let chunk_strides = strides(&self.chunk);
        let grid_strides = strides(&self.chunks);
        let mut step = vec![0; rank];
        loop {
            let coordinates: Vec<u64> = (0..rank).map(|d| first[d] + step[d]).collect();
            let index = dot(&coordinates, &grid_strides);
            // The intersection of the box and this chunk.
            let low: Vec<u64> = (0..rank).map(|d| area.start[d].max(coordinates[d] * self.chunk[d])).collect();
            let shared: Vec<u64> = (0..rank)
                .map(|d| {
                    let chunk_end = (coordinates[d] * self.chunk[d]).saturating_add(self.chunk[d]);
                    (area.start[d] + area.count[d]).min(chunk_end) - low[d]
                })
                .collect();
            let in_chunk: u64 = (0..rank).map(|d| (low[d] - coordinates[d] * self.chunk[d]) * chunk_strides[d]).sum();
            let in_box: u64 = (0..rank).map(|d| (low[d] - area.start[d]) * box_strides[d]).sum();
            let length = shared[rank - 1];
            let mut row = Some(vec![0; rank - 1]);
            let mut runs = std::iter::from_fn(|| {
                let at = row.as_mut()?;
                let run = ChunkRun {
                    chunk: in_chunk + dot(at, &chunk_strides),
                    out: out + in_box + dot(at, &box_strides),
                    length,
                };
                if !advance(at, &shared[..rank - 1]) {
                    row = None;
                }
                Some(run)
            });
            visit(index, &mut runs)?;
            if !advance(&mut step, &count) {
                return Ok(());
            }
        }
    }
}

/// Cuts bytes `offset..offset + length` of a row-major array into consecutive boxes.
pub(super) fn boxes(shape: &[u64], offset: u64, length: u64) -> Vec<Area> {
    let mut boxes = Vec::new();
    let (mut at, mut left) = (offset, length);
    while left > 0 {
        // The coordinates of `at`, and the outermost dimension with a whole slab that begins at `at` and fits.
        let mut start = vec![0; shape.len()];
        let mut rest = at;
        for (start, extent) in start.iter_mut().zip(shape).rev() {
            *start = rest % (*extent).max(1);
            rest /= (*extent).max(1);
        }
        let mut count = vec![1; shape.len()];
        let mut slab = 1u64;
        for d in (0..shape.len()).rev() {
            // Slabs of `slab` bytes up to the end of this dimension.
            let n = (shape[d] - start[d]).min(left / slab);
            count[d] = n.max(1);
            if n < shape[d] || d == 0 {
                break;
            }
            match slab.checked_mul(shape[d]) {
                Some(next) if next <= left => slab = next,
                _ => break,
            }
        }
        let bytes: u64 = count.iter().product();
        boxes.push(Area { start, count });
        at += bytes;
        left -= bytes;
    }
    boxes
}

/// Distance in bytes between neighbours along each dimension.
fn strides(extents: &[u64]) -> Vec<u64> {
    let mut strides = vec![1u64; extents.len()];
    for d in (0..extents.len().saturating_sub(1)).rev() {
        strides[d] = strides[d + 1].saturating_mul(extents[d + 1]);
    }
    strides
}

fn dot(a: &[u64], b: &[u64]) -> u64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Increments `at` within `count`, the last position fastest; `false` after the last.
fn advance(at: &mut [u64], count: &[u64]) -> bool {
    for (at, count) in at.iter_mut().zip(count).rev() {
        *at += 1;
        if *at < *count {
            return true;
        }
        *at = 0;
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn gathered(shape: &[u64], chunk: &[u64], size: u64, offset: u64, length: u64) -> Vec<u8> {
        let grid = ChunkGrid::new(shape, chunk, size).unwrap();
        let mut out = vec![0; length as usize];
        grid.visit(offset, length, |index, runs| -> Result<(), ()> {
            let bytes = reference_chunk(shape, chunk, size, index);
            for run in runs {
                let (from, to, n) = (run.chunk as usize, run.out as usize, run.length as usize);
                out[to..to + n].copy_from_slice(&bytes[from..from + n]);
            }
            Ok(())
        })
        .unwrap();
        out
    }

    /// Byte `i` of the whole array.
    fn value(i: u64) -> u8 {
        (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
    }

    /// The bytes of a chunk, element by element; 0xee beyond the extent.
    fn reference_chunk(shape: &[u64], chunk: &[u64], size: u64, index: u64) -> Vec<u8> {
        let grid: Vec<u64> = shape.iter().zip(chunk).map(|(s, c)| s.div_ceil(*c)).collect();
        let mut corner = vec![0; shape.len()];
        let mut rest = index;
        for d in (0..shape.len()).rev() {
            corner[d] = rest % grid[d] * chunk[d];
            rest /= grid[d];
        }
        let mut bytes = Vec::new();
        for element in 0..chunk.iter().product::<u64>() {
            let (mut rest, mut linear, mut stride, mut inside) = (element, 0, 1, true);
            for d in (0..shape.len()).rev() {
                let x = corner[d] + rest % chunk[d];
                rest /= chunk[d];
                inside &= x < shape[d];
                linear += x * stride;
                stride *= shape[d];
            }
            bytes.extend((0..size).map(|byte| if inside { value(linear * size + byte) } else { 0xee }));
        }
        bytes
    }

    proptest! {
        #[test]
        fn any_stretch_of_any_array_is_gathered(
            dims in prop::collection::vec((1u64..7, 1u64..9), 0..4),
            size in 1u64..5,
            part in (0u64..1000, 0u64..1000),
        ) {
            let (shape, chunk): (Vec<u64>, Vec<u64>) = dims.into_iter().unzip();
            let total = shape.iter().product::<u64>() * size;
            let offset = part.0 % total;
            let length = part.1 % (total - offset + 1);
            let expected: Vec<u8> = (offset..offset + length).map(value).collect();
            prop_assert_eq!(gathered(&shape, &chunk, size, offset, length), expected.clone());
            let pieces = ChunkGrid::pieces(&shape, size, 16).unwrap();
            prop_assert_eq!(gathered(&shape, &pieces.elements.1, size, offset, length), expected);
        }

        #[test]
        fn the_first_chunk_visited_holds_the_first_byte(
            dims in prop::collection::vec((1u64..7, 1u64..9), 1..4),
            size in 1u64..5,
            at in 0u64..1000,
        ) {
            let (shape, chunk): (Vec<u64>, Vec<u64>) = dims.into_iter().unzip();
            let grid = ChunkGrid::new(&shape, &chunk, size).unwrap();
            let at = at % (shape.iter().product::<u64>() * size);
            let mut first = None;
            grid.visit(at, 1, |index, _| { first = Some(index); Ok::<_, ()>(()) }).unwrap();
            prop_assert_eq!(first, Some(grid.chunk_at(at)));
        }

        #[test]
        fn bytes_inside_a_chunk_end_with_its_last_run(
            dims in prop::collection::vec((1u64..7, 1u64..9), 0..4),
            size in 1u64..5,
        ) {
            let (shape, chunk): (Vec<u64>, Vec<u64>) = dims.into_iter().unzip();
            let grid = ChunkGrid::new(&shape, &chunk, size).unwrap();
            let mut ends = vec![0; grid.chunks() as usize];
            grid.visit(0, shape.iter().product::<u64>() * size, |index, runs| {
                let end = &mut ends[index as usize];
                *end = runs.map(|run| run.chunk + run.length).fold(*end, u64::max);
                Ok::<_, ()>(())
            }).unwrap();
            for (index, end) in ends.into_iter().enumerate() {
                prop_assert_eq!(end, grid.bytes_inside(index as u64));
            }
        }
    }

    proptest! {
        #[test]
        fn bytes_within_a_chunk_are_one_run_of_it(
            dims in prop::collection::vec((1u64..7, 1u64..9), 0..4),
            in_rows in any::<bool>(),
            size in 1u64..5,
            part in (0u64..1000, 0u64..12),
        ) {
            let (shape, mut chunk): (Vec<u64>, Vec<u64>) = dims.into_iter().unzip();
            if in_rows && let [outer @ .., _] = &mut chunk[..] {
                outer.fill(1);
            }
            let total = shape.iter().product::<u64>() * size;
            let offset = part.0 % total;
            let length = (part.1 % (total - offset)).max(1);
            let grid = ChunkGrid::new(&shape, &chunk, size).unwrap();
            let mut met = Vec::new();
            grid.visit(offset, length, |index, runs| {
                met.extend(runs.map(|run| (index, run.chunk)));
                Ok::<_, ()>(())
            })
                .unwrap();
            match grid.within_chunk(offset, length) {
                Some(Within { index, start, ends }) => {
                    prop_assert_eq!(&met[..], [(index, start)]);
                    let goes_on = offset + length < total && grid.within_chunk(offset, length + 1).is_some();
                    prop_assert_eq!(ends, !goes_on);
                }
                None => prop_assert!(met.len() > 1 || grid.run_bytes().is_none()),
            }
        }
    }

    #[test]
    fn a_range_over_rows_is_three_boxes() {
        let boxes = boxes(&[4, 10], 7, 20);
        let of = |start: [u64; 2], count: [u64; 2]| Area { start: start.into(), count: count.into() };
        assert_eq!(boxes, [of([0, 7], [1, 3]), of([1, 0], [1, 10]), of([2, 0], [1, 7])]);
    }

    #[test]
    fn sizes_that_overflow_are_refused() {
        assert!(ChunkGrid::new(&[1 << 62], &[1 << 62], 8).is_err());
        assert!(ChunkGrid::new(&[1 << 40, 1 << 40], &[1, 1], 1).is_err());
        assert!(ChunkGrid::new(&[1], &[0], 1).is_err());
        assert!(ChunkGrid::new(&[1, 2], &[1], 1).is_err());
    }

    #[test]
    fn the_region_of_an_edge_chunk_is_clipped() {
        let grid = ChunkGrid::new(&[10, 7], &[4, 4], 8).unwrap();
        assert_eq!(grid.chunks(), 6);
        let (area, chunk) = grid.region(5);
        assert_eq!((area.start, area.count, chunk), (vec![8, 4], vec![2, 3], &[4, 4][..]));
        assert!(grid.overhangs(5) && grid.overhangs(1) && grid.overhangs(4) && !grid.overhangs(2));
        // Rows of four elements of 8 bytes: the last inside is the third of the second row.
        assert_eq!((grid.bytes_inside(5), grid.bytes_inside(4), grid.bytes_inside(2)), (56, 64, 128));
    }
}
