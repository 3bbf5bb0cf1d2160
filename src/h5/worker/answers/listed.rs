//! Corrects the listing of a chunk index: a damaged index must not make rows look as if they were never written.
//!
//! libhdf5 walks an index and believes it. A position listed with two addresses has neither; an address listed for two
//! positions belongs to neither. If an index in order has another entry in place of a position, that position is lost,
//! not unwritten.

use std::collections::BTreeSet;

use crate::catalogue::Chunk;

/// Most positions marked as unknown; an index with more of them is worthless.
const MOST_UNKNOWN: usize = 65_536;

/// The chunks that libhdf5 lists, in the order of the index.
#[derive(Debug)]
pub struct ListedChunks {
    /// Chunks; those outside the extent have no position.
    pub entries: Vec<(Option<u64>, Chunk)>,
    /// Number of positions in the grid.
    pub positions: u64,
    /// Whether the index is a tree: its entries are in the order of their positions.
    pub in_order: bool,
    /// Whether a writer may have the file open, and list chunks beyond the extent read before.
    pub grows: bool,
    /// Whether the walk stopped before the end: the index lists more chunks than can exist.
    pub is_endless: bool,
    /// Whether libhdf5 failed on the way and listed nothing after the last entry.
    pub ends_early: bool,
    /// Whether the length of a node is stored in its parent: if two parents point to one node, libhdf5 lists memory
    /// beyond the node's end.
    pub beyond_nodes: bool,
}

impl ListedChunks {
    /// The chunks by ascending position, with unknown ones marked.
    ///
    /// # Errors
    /// If too many positions are unknown.
    pub fn settle(mut self) -> Result<Vec<Chunk>, String> {
        let mut unknown = BTreeSet::new();
        let doubled = self.doubled();
        let position = |at: usize| self.entries.get(at).and_then(|(index, _)| *index);
        let pairs = doubled.iter().map(|(earlier, later)| [position(*earlier), position(*later)]);
        let contested: Vec<Option<u64>> = pairs.filter(|[a, b]| a != b).flatten().collect();
        if self.beyond_nodes
            && let Some([(_, at), _]) = doubled.array_windows().find(|[(a, b), (c, d)]| (a + 1, b + 1) == (*c, *d))
        {
            self.entries.truncate(*at);
            self.ends_early = true;
        }
        let is_sound = self.entries.windows(2).all(|pair| matches!(pair, [(Some(a), _), (Some(b), _)] if a < b))
            && self.entries.first().is_none_or(|(at, _)| at.is_some());
        let mut chunks: Vec<Chunk> =
            self.entries.iter().filter_map(|(index, chunk)| index.map(|index| Chunk { index, ..*chunk })).collect();
        if is_sound && contested.is_empty() && !self.is_endless && !self.ends_early {
            return Ok(chunks);
        }
        let last = chunks.last().map_or(0, |chunk| chunk.index.saturating_add(1));
        for index in contested.into_iter().flatten() {
            mark(&mut unknown, index)?;
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
        if self.is_endless || self.ends_early {
            let from = if is_sound && !self.is_endless { last } else { 0 };
            for index in (from..self.positions).filter(|index| !is_listed(*index)) {
                mark(&mut unknown, index)?;
            }
        }
        chunks.retain(|chunk| !unknown.contains(&chunk.index));
        chunks.extend(unknown.into_iter().map(Chunk::unknown));
        chunks.sort_by_key(|chunk| chunk.index);
        Ok(chunks)
    }

    /// Pairs of entries that share an address, or overlap if both have one length (filters give each chunk its own, and
    /// the length may be the damage), by ascending later entry.
    fn doubled(&self) -> Vec<(usize, usize)> {
        let mut pairs = self.entries.windows(2).map(|pair| (&pair[0].1, &pair[1].1));
        if pairs.all(|(a, b)| a.size > 0 && a.address.saturating_add(a.size) <= b.address) {
            return Vec::new();
        }
        let listed = self.entries.iter().enumerate();
        let mut places: Vec<_> = listed.map(|(at, (_, chunk))| (chunk.address, at, chunk.size)).collect();
        places.sort_unstable();
        let mut doubled: Vec<_> = places
            .array_windows()
            .filter_map(|[a, b]| {
                let apart = b.0 - a.0;
                (apart == 0 || a.2 == b.2 && apart < a.2).then_some((a.1.min(b.1), a.1.max(b.1)))
            })
            .collect();
        doubled.sort_unstable_by_key(|(_, later)| *later);
        doubled
    }

    /// Missing positions after a step back in the listing.
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

    /// Entries out of order between neighbours that are in order: their positions, and the positions that belong there.
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

    const NOTHING: ListedChunks = ListedChunks {
        entries: Vec::new(),
        positions: 0,
        in_order: false,
        grows: false,
        is_endless: false,
        ends_early: false,
        beyond_nodes: false,
    };

    /// The chunks after correction, of a tree over 10 positions that lists these; `None` outside the extent. Each has
    /// another address.
    fn settled(positions: &[Option<u64>], in_order: bool, grows: bool, is_endless: bool) -> Vec<(u64, bool)> {
        let chunk = |address| Chunk { index: 0, address, size: 1, mask: 0 };
        let entries = positions.iter().copied().zip((1..).map(chunk)).collect();
        let listed = ListedChunks { entries, positions: 10, in_order, grows, is_endless, ..NOTHING };
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

    /// A node of the tree that points twice to the same leaf, one of which should be another.
    #[test]
    fn what_a_second_look_at_the_same_leaf_leaves_out_is_unknown() {
        let chunk = |index: u64| (Some(index), Chunk { index: 0, address: index + 1, size: 1, mask: 0 });
        let entries = [0, 1, 2, 0, 1, 2, 7, 8].map(chunk).to_vec();
        let listed =
            ListedChunks { entries, positions: 10, in_order: true, grows: false, is_endless: false, ..NOTHING };
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
        let listed = ListedChunks { entries, positions: 5, in_order: true, grows: false, is_endless: true, ..NOTHING };
        let settled: Vec<_> = listed.settle().unwrap().iter().map(|chunk| (chunk.index, chunk.is_unknown())).collect();
        assert_eq!(settled, with_unknown(&[0, 1, 2], &[3, 4]));
    }

    /// Addresses of chunks of 10 bytes, at the positions of an array.
    fn array(addresses: &[u64], ends_early: bool, beyond_nodes: bool) -> Vec<(u64, bool)> {
        let chunk =
            |(index, address): (u64, &u64)| (Some(index), Chunk { index: 0, address: *address, size: 10, mask: 0 });
        let entries = (0..).zip(addresses).map(chunk).collect();
        let settled = ListedChunks { entries, positions: 8, ends_early, beyond_nodes, ..NOTHING }.settle().unwrap();
        settled.iter().map(|chunk| (chunk.index, chunk.is_unknown())).collect()
    }

    #[test]
    fn a_place_listed_for_two_positions_belongs_to_neither() {
        assert_eq!(array(&[30, 10, 20, 0], false, true), with_unknown(&[0, 1, 2, 3], &[]));
        assert_eq!(array(&[30, 10, 20, 10, 50], false, true), with_unknown(&[0, 2, 4], &[1, 3]));
        assert_eq!(array(&[30, 10, 20, 15], false, true), with_unknown(&[0], &[1, 2, 3]));
        // Two parents point to a node: nothing after it is believed.
        assert_eq!(array(&[10, 20, 30, 10, 20, 70, 80], false, true), with_unknown(&[2], &[0, 1, 3, 4, 5, 6, 7]));
    }

    #[test]
    fn what_lies_behind_a_failure_is_unknown() {
        assert_eq!(array(&[10, 20, 30], true, false), with_unknown(&[0, 1, 2], &[3, 4, 5, 6, 7]));
        assert_eq!(array(&[10, 20, 30], false, false), with_unknown(&[0, 1, 2], &[]));
    }

    #[test]
    fn an_index_of_nothing_known_is_refused() {
        let chunk = Chunk { index: 0, address: 1, size: 1, mask: 0 };
        let entries = vec![(Some(5), chunk), (Some(2), chunk)];
        let listed =
            ListedChunks { entries, positions: u64::MAX, in_order: true, grows: false, is_endless: false, ..NOTHING };
        assert!(listed.settle().is_err());
    }
}
