//! Plans a sample: stretches of rows, evenly spread, and as many as may be decoded.

use std::collections::HashMap;
use std::ops::Range;

use super::{STRETCH, STRETCHES};
use crate::catalogue::{ColumnId, ObjectId};
use crate::store::Rows;
use crate::store::decode::fixed_width;

/// Fewest stretches of full length. A column that may decode only fewer gets shorter ones.
const FEW: u64 = 16;

/// Fewest stretches of a picture.
pub const FEWEST: u64 = 4;

/// Rows of the shortest stretch.
const SHORTEST: u64 = 16;

/// The facts of a column's storage that tell the cost of reading some rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Grain {
    rows: u64,
    /// Rows of a chunk.
    chunk: Option<u64>,
    /// Bytes of a row, or a guess.
    width: u64,
    /// The dataset, if other columns lie in the same chunks.
    shared: Option<ObjectId>,
}

impl Grain {
    /// The grain of a column's rows.
    pub fn of(rows: &dyn Rows, id: &ColumnId) -> Self {
        let own = rows.stored_width().unwrap_or_else(|| fixed_width(rows.data_type()));
        Self {
            rows: rows.len(),
            chunk: rows.natural_rows().map(|chunk| chunk.clamp(1, rows.len().max(1))),
            width: rows.stride().unwrap_or(own).max(1),
            shared: rows.stride().map(|_| id.object),
        }
    }

    /// Bytes that reading these stretches decodes, or reads where nothing is to be decoded.
    fn cost(&self, stretches: &[Range<u64>]) -> u64 {
        let rows = match self.chunk {
            Some(chunk) => {
                // Stretches are in order, so equal chunks follow each other.
                let (mut chunks, mut end) = (0_u64, 0);
                for stretch in stretches.iter().filter(|stretch| !stretch.is_empty()) {
                    let first = (stretch.start / chunk).max(end);
                    let last = (stretch.end - 1) / chunk + 1;
                    chunks += last.saturating_sub(first);
                    end = last;
                }
                chunks.saturating_mul(chunk)
            }
            None => stretches.iter().map(|stretch| stretch.end - stretch.start).sum(),
        };
        rows.saturating_mul(self.width)
    }

    /// The most stretches that decode no more than `share` bytes: fewer ones first, then shorter ones. Empty: not even
    /// [`FEWEST`] do.
    fn stretches(&self, share: u64) -> Vec<Range<u64>> {
        let most = STRETCHES as u64;
        let full = (FEW..=most).rev().map(|count| (count, STRETCH));
        let halvings = (STRETCH / SHORTEST).ilog2();
        let few = (FEWEST..=FEW).rev().flat_map(|count| (0..=halvings).map(move |times| (count, STRETCH >> times)));
        let mut tried = full.chain(few).map(|(count, length)| spread(self.rows, self.chunk, count, length));
        tried.find(|stretches| self.cost(stretches) <= share).unwrap_or_default()
    }

    /// Bytes that reading the first and the last rows decodes.
    fn edges(&self) -> u64 {
        self.cost(&super::edges::ranges(self.rows))
    }
}

/// Columns that are decoded together, and the rows to read of them.
#[derive(Clone, Debug)]
pub struct Group {
    /// Numbers of these columns.
    pub members: Vec<usize>,
    /// Stretches of the sample. Empty: there is no picture.
    pub stretches: Vec<Range<u64>>,
    /// Whether the first and the last rows are read.
    pub has_edges: bool,
    /// Bytes that the values of a stretch of one column may take in memory.
    pub most: u64,
}

/// Plans the reads of columns, each with a picture or without: all of them together decode no more than
/// `most` bytes. The more costly columns share the bytes that a cheap one leaves.
pub fn plan(wishes: &[(Grain, bool)], most: u64) -> Vec<Group> {
    // Columns of one dataset are decoded together.
    let mut groups: Vec<(&Grain, bool, Vec<usize>)> = Vec::new();
    let mut shared: HashMap<&Grain, usize> = HashMap::new();
    for (at, (grain, pictured)) in wishes.iter().enumerate() {
        let next = groups.len();
        let known = grain.shared.map(|_| *shared.entry(grain).or_insert(next)).filter(|known| *known < next);
        match known.and_then(|known| groups.get_mut(known)) {
            Some((_, is_pictured, members)) => {
                *is_pictured |= pictured;
                members.push(at);
            }
            None => groups.push((grain, *pictured, vec![at])),
        }
    }
    groups.sort_by_cached_key(|(grain, pictured, _)| match pictured {
        true => grain.cost(&spread(grain.rows, grain.chunk, STRETCHES as u64, STRETCH)),
        false => grain.edges(),
    });
    let (mut left, count) = (most, groups.len());
    let planned = groups.into_iter().enumerate().map(|(done, (grain, pictured, members))| {
        let share = left / (count - done) as u64;
        let stretches = if pictured { grain.stretches(share) } else { Vec::new() };
        let spent = if stretches.is_empty() { grain.edges() } else { grain.cost(&stretches) };
        let has_edges = spent <= share;
        left -= if has_edges { spent } else { 0 };
        let values = stretches.iter().map(|stretch| stretch.end - stretch.start).max().unwrap_or(0);
        let most = (share / (stretches.len() * members.len()).max(1) as u64).max(values.saturating_mul(grain.width));
        Group { members, stretches, has_edges, most }
    });
    planned.collect()
}

/// Spreads `count` stretches of `length` rows evenly over `rows` rows, the first and the last rows among them; moves
/// those that would take part of one more chunk. All rows, in as many parts, where there are no more.
pub fn spread(rows: u64, chunk: Option<u64>, count: u64, length: u64) -> Vec<Range<u64>> {
    let count = count.min(rows);
    if rows <= count.saturating_mul(length) {
        return (0..count).map(|at| part(rows, at, count)..part(rows, at + 1, count)).collect();
    }
    let last = rows - length;
    // Where stretches lie close together, nearly all chunks are read anyway.
    let chunk = chunk.filter(|_| rows / 2 >= count * length);
    let starts = (0..count).map(|at| match (part(last, at, count - 1), chunk) {
        (start, Some(chunk)) if at + 1 < count => within_chunk(start, length, chunk),
        (start, _) => start,
    });
    starts.map(|start| start..start + length).collect()
}

/// Divides `of` into parts: returns the end of the first `at` of `parts` parts.
fn part(of: u64, at: u64, parts: u64) -> u64 {
    // In 128 bits no product overflows, and each quotient is at most `of`.
    (u128::from(of) * u128::from(at) / u128::from(parts)) as u64
}

/// Moves the start of a stretch so that it takes no part of one more chunk.
fn within_chunk(start: u64, length: u64, chunk: u64) -> u64 {
    if chunk < length {
        return start - start % chunk;
    }
    let bound = (start + length - 1) / chunk * chunk;
    match bound.saturating_sub(start) {
        0 => start,
        before if before > length / 2 => bound - length,
        _ => bound,
    }
}

#[cfg(test)]
mod tests {
    use super::super::MOST_DECODED;
    use super::*;

    fn grain(rows: u64, chunk: Option<u64>, width: u64, shared: Option<u64>) -> Grain {
        let shared = shared.map(|address| ObjectId { file: 0, address });
        Grain { rows, chunk, width, shared }
    }

    #[test]
    fn stretches_are_spread_over_all_rows() {
        let all = spread(2_000_000, None, 64, 1024);
        assert_eq!((all.len(), all[0].clone(), all[63].clone()), (64, 0..1024, 1_998_976..2_000_000));
        assert!(all.windows(2).all(|pair| pair[0].end < pair[1].start));
        // As numpy.linspace(0, 2_000_000 - 1024, 64) rounds down.
        assert_eq!((all[1].start, all[31].start), (31_729, 983_623));
        // A small table is cut into as many parts.
        let few = spread(130, None, 64, 1024);
        assert_eq!((few.len(), few[0].clone(), few[63].clone()), (64, 0..2, 127..130));
        assert_eq!(few.iter().map(|part| part.end - part.start).sum::<u64>(), 130);
        assert_eq!(spread(3, None, 64, 1024), [0..1, 1..2, 2..3]);
        assert_eq!(spread(0, None, 64, 1024), []);
        let whole = spread(u64::MAX, Some(1 << 40), 64, 1024);
        assert_eq!((whole[0].start, whole[63].end), (0, u64::MAX));
    }

    #[test]
    fn no_stretch_but_the_last_crosses_a_chunk() {
        for (rows, chunk) in [(2_000_000, 10_000), (1 << 40, 65_536), (5_000_000, 1_024), (10_000_000, 2_500)] {
            let all = spread(rows, Some(chunk), 64, 1024);
            assert!(all.windows(2).all(|pair| pair[0].end <= pair[1].start), "{rows} {chunk}");
            assert!(all[..63].iter().all(|one| one.start / chunk == (one.end - 1) / chunk), "{rows} {chunk}");
            assert_eq!((all[0].start, all[63].end), (0, rows));
        }
        // Stretches longer than a chunk begin with one.
        assert!(spread(1_000_000, Some(100), 64, 1024).iter().take(63).all(|one| one.start % 100 == 0));
    }

    #[test]
    fn a_page_decodes_no_more_than_it_may() {
        // 20 columns of 10^9 rows in chunks of 240 KB, beside a cheap one and a dear one.
        let mut wishes = vec![(grain(1_000_000_000, Some(30_000), 8, None), true); 20];
        wishes.push((grain(1_000, None, 8, None), true));
        wishes.push((grain(1_000_000_000, Some(1 << 20), 8, None), true));
        let groups = plan(&wishes, MOST_DECODED);
        let cost: u64 = groups.iter().map(|group| wishes[group.members[0]].0.cost(&group.stretches)).sum();
        assert!(cost <= MOST_DECODED, "{cost}");
        assert!(cost > MOST_DECODED * 3 / 4, "{cost}");
        // The cheap one comes first.
        assert_eq!((groups[0].members.as_slice(), groups[0].stretches.len()), ([20].as_slice(), 64));
        assert!((10..=16).contains(&groups[1].stretches.len()), "{}", groups[1].stretches.len());
        // Not even its first and last chunk.
        let last = groups.last().unwrap();
        assert!(last.members == [21] && last.stretches.is_empty() && !last.has_edges);
    }

    #[test]
    fn columns_of_one_dataset_are_decoded_once() {
        let wishes = vec![(grain(10_000_000, Some(10_000), 100, Some(7)), true); 50];
        let groups = plan(&wishes, MOST_DECODED);
        // 64 chunks of 1 MB are 64 MB.
        assert_eq!((groups.len(), groups[0].members.len(), groups[0].stretches.len()), (1, 50, 64));
    }

    #[test]
    fn few_stretches_get_shorter() {
        // Rows of 64 KB: 64 stretches would be 4 GB.
        let groups = plan(&[(grain(1_000_000, None, 64 << 10, None), true)], MOST_DECODED);
        assert_eq!((groups[0].stretches.len(), groups[0].stretches[0].clone()), (16, 0..64));
        let groups = plan(&[(grain(1_000_000, None, 64 << 20, None), true)], MOST_DECODED);
        assert!(groups[0].stretches.is_empty());
    }
}
