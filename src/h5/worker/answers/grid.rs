//! Position of a chunk from libhdf5's listing in the grid of a dataset.

use crate::catalogue::product;
use crate::h5::library::{FailureReason, Id, check, ffi};

/// The grid of chunks of a dataset.
#[derive(Debug)]
pub(super) struct ListedGrid {
    /// Extent of a chunk and number of chunks, for each dimension.
    dimensions: Vec<(u64, u64)>,
    /// Whether the index lists the chunks in the order of their positions.
    pub in_order: bool,
    /// See [`ListedChunks::beyond_nodes`](super::listed::ListedChunks::beyond_nodes).
    pub beyond_nodes: bool,
    /// Set if libhdf5 lists the chunks under wrong coordinates.
    swizzled: Option<Swizzled>,
}

/// The numbering of an extensible array whose unlimited dimension is not the first.
///
/// Its chunks are numbered with that dimension as the slowest one, whatever its place in the dataspace (format
/// specification, VII.D). Reads follow this, but `H5Dchunk_iter` (`H5D__earray_idx_iterate_cb`, HDF5 1.10 to 2.2) turns
/// numbers into coordinates as if the dimensions were in order. So we turn its coordinates back into the number, and
/// the number into the right coordinates.
#[derive(Debug)]
struct Swizzled {
    /// The unlimited dimension.
    unlimited: usize,
    /// Largest number of chunks in each other dimension; 1 for the unlimited one.
    most: Vec<u64>,
}

impl ListedGrid {
    /// The grid of an open dataset of this extent, its largest extent, and the extent of its chunks.
    pub fn of(dataset: &Id, shape: &[u64], max_shape: &[Option<u64>], chunk: &[u64]) -> Result<Self, FailureReason> {
        let mut kind = -1;
        // SAFETY: an open dataset; a place for the answer.
        check(unsafe { ffi::H5Dget_chunk_index_type(dataset.raw(), &mut kind) })?;
        let grid = Self::new(shape, max_shape, chunk, kind == ffi::CHUNK_INDEX_EXTENSIBLE_ARRAY)?;
        let in_order = matches!(kind, ffi::CHUNK_INDEX_TREE | ffi::CHUNK_INDEX_TREE_2);
        let beyond_nodes = matches!(kind, ffi::CHUNK_INDEX_EXTENSIBLE_ARRAY | ffi::CHUNK_INDEX_TREE_2);
        Ok(Self { in_order, beyond_nodes, ..grid })
    }

    fn new(shape: &[u64], max_shape: &[Option<u64>], chunk: &[u64], extensible: bool) -> Result<Self, FailureReason> {
        if chunk.contains(&0) {
            return Err(FailureReason::new("a chunk without extent"));
        }
        let dimensions = chunk.iter().zip(shape).map(|(chunk, extent)| (*chunk, extent.div_ceil(*chunk))).collect();
        let unlimited = max_shape.iter().position(Option::is_none).filter(|dimension| extensible && *dimension > 0);
        let swizzled = unlimited.map(|unlimited| {
            let limits = max_shape.iter().zip(chunk);
            let most = limits.map(|(max, chunk)| max.map_or(1, |max| max.div_ceil(*chunk).max(1))).collect();
            Swizzled { unlimited, most }
        });
        Ok(Self { dimensions, in_order: false, beyond_nodes: false, swizzled })
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.dimensions.len()
    }

    /// Number of positions; `u64::MAX` if there are more.
    pub fn positions(&self) -> u64 {
        product(&self.dimensions.iter().map(|(_, count)| *count).collect::<Vec<_>>()).unwrap_or(u64::MAX)
    }

    /// Row-major position in the grid of a chunk that libhdf5 lists with its first element at `offset`; `None` outside
    /// the extent.
    pub fn index(&self, offset: &[u64]) -> Option<u64> {
        let listed = offset.iter().zip(&self.dimensions).map(|(offset, (chunk, _))| offset.checked_div(*chunk));
        let Some(swizzled) = &self.swizzled else { return self.row_major(listed) };
        let listed: Vec<u64> = listed.collect::<Option<_>>()?;
        self.row_major(swizzled.coordinates(&listed)?.into_iter().map(Some))
    }

    /// The first element of the chunk at a row-major position in the grid.
    pub fn offset(&self, index: u64) -> Vec<u64> {
        let (mut offset, mut rest) = (vec![0; self.rank()], index);
        for (first, (chunk, count)) in offset.iter_mut().zip(&self.dimensions).rev() {
            *first = (rest % (*count).max(1)).saturating_mul(*chunk);
            rest /= (*count).max(1);
        }
        offset
    }

    fn row_major(&self, coordinates: impl Iterator<Item = Option<u64>>) -> Option<u64> {
        coordinates.zip(&self.dimensions).try_fold(0u64, |index, (at, (_, count))| {
            let at = at.filter(|at| at < count)?;
            index.checked_mul(*count)?.checked_add(at)
        })
    }
}

impl Swizzled {
    /// The right coordinates of a chunk from those that libhdf5 lists; `None`: these make no sense.
    fn coordinates(&self, listed: &[u64]) -> Option<Vec<u64>> {
        // The unlimited dimension takes the rest of the number, so the listed coordinates before it are always 0.
        let (before, after) = listed.split_at_checked(self.unlimited)?;
        if before.iter().any(|at| *at > 0) {
            return None;
        }
        let number = after
            .iter()
            .zip(self.most.get(self.unlimited..)?)
            .try_fold(0u64, |number, (at, most)| number.checked_mul(*most)?.checked_add(*at))?;
        let mut coordinates = vec![0; listed.len()];
        let mut rest = number;
        for (dimension, most) in self.most.iter().enumerate().rev().filter(|(at, _)| *at != self.unlimited) {
            *coordinates.get_mut(dimension)? = rest % most;
            rest /= most;
        }
        *coordinates.get_mut(self.unlimited)? = rest;
        Some(coordinates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(shape: &[u64], chunk: &[u64]) -> ListedGrid {
        let max: Vec<_> = shape.iter().copied().map(Some).collect();
        ListedGrid::new(shape, &max, chunk, false).unwrap()
    }

    /// A dataset of 5 × 7 in chunks of 2 × 3: a grid of 3 × 3, its last row and column overhanging.
    #[test]
    fn chunks_are_numbered_row_major_with_edges() {
        let edges = grid(&[5, 7], &[2, 3]);
        assert_eq!(edges.index(&[0, 0]), Some(0));
        assert_eq!(edges.index(&[2, 3]), Some(4));
        assert_eq!(edges.index(&[4, 6]), Some(8));
        assert_eq!((edges.offset(0), edges.offset(4), edges.offset(8)), (vec![0, 0], vec![2, 3], vec![4, 6]));
        assert_eq!(edges.index(&[6, 0]), None);
        assert_eq!(edges.index(&[u64::MAX, 0]), None);
        assert_eq!(grid(&[u64::MAX, u64::MAX], &[1, 1]).index(&[2, 5]), None);
        assert!(ListedGrid::new(&[4], &[Some(4)], &[0], false).is_err());
    }

    /// 4 × 6 of at most 10 × ∞ in chunks of 2 × 3: five chunks before the second column begins. Offsets as h5py lists
    /// them (`get_chunk_info`), positions by the numbers found at the chunks' addresses.
    #[test]
    fn chunks_of_an_array_that_grows_in_its_second_dimension() {
        let grows = ListedGrid::new(&[4, 6], &[Some(10), None], &[2, 3], true).unwrap();
        assert_eq!([[0, 0], [0, 3], [0, 15], [0, 18]].map(|at| grows.index(&at)), [Some(0), Some(2), Some(1), Some(3)]);
        // Third row of chunks: within the limit, outside the extent.
        assert_eq!(grows.index(&[0, 6]), None);
        assert_eq!(grows.index(&[2, 0]), None);
        // Other indexes list such datasets in order.
        let tree = ListedGrid::new(&[4, 6], &[Some(10), None], &[2, 3], false).unwrap();
        assert_eq!(tree.index(&[0, 3]), Some(1));
    }

    /// 4 × 3 × 6 of at most 6 × ∞ × 7 in chunks of 2 × 1 × 3; listed by h5py as (0, 4, 3), holding the element 45 = (2,
    /// 1, 3).
    #[test]
    fn chunks_of_an_array_that_grows_in_its_middle_dimension() {
        let grows = ListedGrid::new(&[4, 3, 6], &[Some(6), None, Some(7)], &[2, 1, 3], true).unwrap();
        let row_major = |at: [u64; 3]| (at[0] * 3 + at[1]) * 2 + at[2];
        assert_eq!(grows.index(&[0, 4, 3]), Some(row_major([1, 1, 1])));
        assert_eq!(grows.index(&[0, 1, 0]), Some(row_major([1, 0, 0])));
        assert_eq!(grows.index(&[0, 6, 3]), Some(row_major([0, 2, 1])));
        assert_eq!(grows.index(&[0, u64::MAX, 3]), None);
    }
}
