//! What a chunk index lists, set right: an index that is damaged must not make rows look as if they were never written.
//!
//! libhdf5 goes through an index as it lies there and believes it. A position that is listed with two places has
//! neither; a position that an index in order leaves out, where something else stands instead, is lost and not
//! unwritten.

use std::collections::BTreeSet;

use crate::catalogue::Chunk;

/// Positions marked as unknown at most; an index with more of them says nothing.
const MOST_UNKNOWN: usize = 65_536;

/// What was listed, in the order of the index.
#[derive(Debug)]
pub(super) struct Listed {
    /// Chunks; those outside the extent have no index.
    pub entries: Vec<(Option<u64>, Chunk)>,
    /// Positions of the grid.
    pub positions: u64,
    /// The index is a tree: its entries lie in the order of their positions.
    pub in_order: bool,
    /// A writer may have the file open, and list chunks behind the extent that was read before.
    pub grows: bool,
    /// It was left before its end, since it lists more chunks than there can be.
    pub is_endless: bool,
}

impl Listed {
    /// The chunks by ascending position, those marked of which nothing is known.
    pub fn settle(self) -> Result<Vec<Chunk>, String> {
        let mut unknown = BTreeSet::new();
        let rises = |pair: &[(Option<u64>, Chunk)]| matches!(pair, [(Some(a), _), (Some(b), _)] if a < b);
        let is_sound = self.entries.windows(2).all(rises) && self.entries.first().is_none_or(|(at, _)| at.is_some());
        let mut chunks: Vec<Chunk> =
            self.entries.iter().filter_map(|(index, chunk)| index.map(|index| Chunk { index, ..*chunk })).collect();
        if is_sound && !self.is_endless {
            return Ok(chunks);
        }
        chunks.sort_by_key(|chunk| chunk.index);
        for pair in chunks.windows(2) {
            if let [a, b] = pair
                && a.index == b.index
                && a != b
            {
                mark(&mut unknown, a.index)?;
            }
        }
        chunks.dedup_by_key(|chunk| chunk.index);
        let is_listed = |index: u64| chunks.binary_search_by_key(&index, |chunk| chunk.index).is_ok();
        if self.in_order {
            for (misplaced, gap) in self.outliers() {
                if let Some(index) = misplaced {
                    mark(&mut unknown, index)?;
                }
                for index in gap.filter(|index| !is_listed(*index)) {
                    mark(&mut unknown, index)?;
                }
            }
            for index in self.gaps().flatten().filter(|index| !is_listed(*index)) {
                mark(&mut unknown, index)?;
            }
        }
        if self.is_endless {
            for index in (0..self.positions).filter(|index| !is_listed(*index)) {
                mark(&mut unknown, index)?;
            }
        }
        chunks.retain(|chunk| !unknown.contains(&chunk.index));
        chunks.extend(unknown.into_iter().map(Chunk::unknown));
        chunks.sort_by_key(|chunk| chunk.index);
        Ok(chunks)
    }

    /// Positions that should be listed where those before them are once more.
    fn gaps(&self) -> impl Iterator<Item = std::ops::Range<u64>> {
        let places = self.entries.iter().filter_map(|(index, _)| *index).chain([self.positions]);
        let (mut next, mut goes_back) = (0, false);
        places.filter_map(move |index| {
            if index < next {
                goes_back = true;
                return None;
            }
            let gap = goes_back.then_some(next..index);
            (next, goes_back) = (index.saturating_add(1), false);
            gap
        })
    }

    /// Entries that are not between their neighbours, though these are in order: their positions, and the positions
    /// that belong there.
    fn outliers(&self) -> impl Iterator<Item = (Option<u64>, std::ops::Range<u64>)> {
        let place = |at: usize| self.entries.get(at).map(|(index, _)| *index);
        (0..self.entries.len()).filter_map(move |at| {
            let own = place(at)?;
            // One more than the position before it.
            let from = match at.checked_sub(1) {
                None => 0,
                Some(before) => place(before)??.checked_add(1)?,
            };
            let to = match place(at + 1) {
                None => self.positions,
                Some(behind) => behind?,
            };
            let is_between = own.is_some_and(|own| from <= own && own < to);
            let is_beyond = own.is_none() && self.grows;
            (!is_between && !is_beyond && from <= to).then_some((own, from..to))
        })
    }
}

fn mark(unknown: &mut BTreeSet<u64>, index: u64) -> Result<(), String> {
    unknown.insert(index);
    if unknown.len() > MOST_UNKNOWN {
        return Err(format!("the chunk index is damaged: more than {MOST_UNKNOWN} positions are unknown"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Positions as a tree of 10 chunks lists them; `None` outside the extent. Each has another address.
    fn settled(positions: &[Option<u64>], in_order: bool, grows: bool, is_endless: bool) -> Vec<(u64, bool)> {
        let chunk = |address| Chunk { index: 0, address, size: 1, mask: 0 };
        let entries = positions.iter().copied().zip((1..).map(chunk)).collect();
        let listed = Listed { entries, positions: 10, in_order, grows, is_endless };
        listed.settle().unwrap().iter().map(|chunk| (chunk.index, chunk.is_unknown())).collect()
    }

    fn tree(positions: &[u64]) -> Vec<(u64, bool)> {
        settled(&positions.iter().copied().map(Some).collect::<Vec<_>>(), true, false, false)
    }

    fn with_unknown(positions: &[u64], unknown: &[u64]) -> Vec<(u64, bool)> {
        let known = positions.iter().map(|at| (*at, false));
        let mut all: Vec<_> = known.chain(unknown.iter().map(|at| (*at, true))).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn what_is_in_order_stays() {
        assert_eq!(tree(&[0, 1, 5, 9]), with_unknown(&[0, 1, 5, 9], &[]));
        assert_eq!(tree(&[]), []);
        let other = settled(&[Some(4), Some(0), Some(2)], false, false, false);
        assert_eq!(other, with_unknown(&[0, 2, 4], &[]));
    }

    #[test]
    fn a_position_listed_twice_is_unknown_and_so_is_the_one_it_stands_for() {
        assert_eq!(tree(&[0, 1, 2, 2, 4, 5]), with_unknown(&[0, 1, 4, 5], &[2, 3]));
        assert_eq!(tree(&[0, 1, 2, 7, 4, 5, 6, 7, 8]), with_unknown(&[0, 1, 2, 4, 5, 6, 8], &[3, 7]));
        assert_eq!(tree(&[1, 1]), with_unknown(&[], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]));
    }

    /// A node of the tree that leads twice to the same leaf, of which one should be another.
    #[test]
    fn what_a_second_look_at_the_same_leaf_leaves_out_is_unknown() {
        let chunk = |index: u64| (Some(index), Chunk { index: 0, address: index + 1, size: 1, mask: 0 });
        let entries = [0, 1, 2, 0, 1, 2, 7, 8].map(chunk).to_vec();
        let listed = Listed { entries, positions: 10, in_order: true, grows: false, is_endless: false };
        let settled: Vec<_> = listed.settle().unwrap().iter().map(|chunk| (chunk.index, chunk.is_unknown())).collect();
        assert_eq!(settled, with_unknown(&[0, 1, 2, 7, 8], &[3, 4, 5, 6]));
    }

    #[test]
    fn an_entry_out_of_its_place_is_unknown() {
        assert_eq!(tree(&[0, 1, 2, 9, 4, 5]), with_unknown(&[0, 1, 2, 4, 5], &[3, 9]));
        let outside = [Some(0), Some(1), None, Some(3)];
        assert_eq!(settled(&outside, true, false, false), with_unknown(&[0, 1, 3], &[2]));
        assert_eq!(settled(&outside, true, true, false), with_unknown(&[0, 1, 3], &[]));
    }

    #[test]
    fn an_index_without_end_leaves_what_it_lists_alike() {
        let chunk = |index: u64| (Some(index), Chunk { index: 0, address: index + 1, size: 1, mask: 0 });
        let entries = (0..3).cycle().take(21).map(chunk).collect();
        let listed = Listed { entries, positions: 5, in_order: true, grows: false, is_endless: true };
        let settled: Vec<_> = listed.settle().unwrap().iter().map(|chunk| (chunk.index, chunk.is_unknown())).collect();
        assert_eq!(settled, with_unknown(&[0, 1, 2], &[3, 4]));
    }

    #[test]
    fn an_index_of_nothing_known_is_refused() {
        let chunk = Chunk { index: 0, address: 1, size: 1, mask: 0 };
        let entries = vec![(Some(5), chunk), (Some(2), chunk)];
        let listed = Listed { entries, positions: u64::MAX, in_order: true, grows: false, is_endless: false };
        assert!(listed.settle().is_err());
    }
}
