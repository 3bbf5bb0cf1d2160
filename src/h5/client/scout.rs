//! Fetches the structures that a request will lead libhdf5 to, side by side, from a source that does not come whole.
//!
//! libhdf5 reads a structure, then the next that this one leads to: over a network each would wait for an answer. The
//! scout goes the same way before it, in rounds: all structures of a round are fetched together. Afterwards libhdf5
//! finds them in memory. What the scout overlooks is read late, and nothing else.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use crate::catalogue::FileInfo;
use crate::codec::structure::Widths;
use crate::codec::structure::header::ReadAt;
use crate::codec::structure::leads::Structure;
use crate::h5::protocol::Request;
use crate::source::{Error, Interrupt, Source};

/// Bytes to look at together.
const BLOCK: u64 = 4096;

/// Most blocks to fetch for one request: 16 MiB.
const MOST_BLOCKS: usize = 4096;

/// Most structures to look at for one request, and most bytes of them: a hostile file may lead to the same ones often.
const MOST_PLACES: usize = 1 << 16;
const MOST_BYTES: usize = 256 << 20;

/// Most rounds for one request.
const MOST_ROUNDS: u32 = 32;

/// Levels of links to follow from a group: those that are listed have their objects described, and a group among those
/// is next.
const LEVELS: u8 = 2;

/// Groups to go through together when the first of a group is asked for: a walk begins there.
const BEGIN_TOGETHER: usize = 4;

/// Most groups to go through together.
const MOST_TOGETHER: usize = 64;

/// Most groups above each other whose groups are remembered.
const MOST_DEEP: usize = 16;

/// Groups that one who walks through a file is likely to ask for next.
#[derive(Debug, Default)]
pub(super) struct LikelyGroups(Vec<Family>);

/// The groups in a group.
#[derive(Debug)]
struct Family {
    /// Their addresses, in the order of their names.
    groups: Vec<u64>,
    /// The one behind the last that was asked for.
    next: usize,
    /// End of those that were gone through.
    known: usize,
    /// How many were gone through together.
    together: usize,
}

impl LikelyGroups {
    /// The groups to go through when this one is asked for: it alone, or also those behind it, the more the longer they
    /// have been asked for one by one.
    fn with(&mut self, group: u64) -> Vec<u64> {
        while let Some(family) = self.0.last_mut() {
            let is_next = family.groups.get(family.next) == Some(&group);
            let found = if is_next { Some(family.next) } else { family.groups.iter().position(|one| *one == group) };
            let Some(at) = found else {
                self.0.pop();
                continue;
            };
            family.next = at + 1;
            if is_next && at < family.known {
                break;
            }
            family.together = if is_next { (2 * family.together).min(MOST_TOGETHER) } else { 1 };
            family.known = family.groups.len().min(at + family.together);
            return family.groups[at..family.known].to_vec();
        }
        vec![group]
    }

    /// Remembers the groups in a group.
    fn add(&mut self, groups: Vec<u64>) {
        if groups.len() > 1 && self.0.len() < MOST_DEEP {
            self.0.push(Family { groups, next: 0, known: 0, together: BEGIN_TOGETHER / 2 });
        }
    }
}

/// Fetches where a request leads to, as far as `info`, which is known once the file is open, allows.
///
/// # Errors
/// If the source cannot be read, or the request is interrupted.
pub(super) fn scout(
    source: &Source,
    info: Option<&FileInfo>,
    siblings: &mut LikelyGroups,
    request: &Request,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    if source.comes_whole() {
        return Ok(());
    }
    let group = |at| Structure::Object { at, levels: LEVELS };
    let places: Vec<_> = match request {
        Request::Open => Vec::new(),
        Request::Group { id, start: 0, .. } if id.file == 0 => {
            siblings.with(id.address).into_iter().map(group).collect()
        }
        Request::Chunks { id, start: 0, .. } if id.file == 0 => vec![Structure::Dataset(id.address)],
        _ => return Ok(()),
    };
    let mut scout = Scout {
        source,
        before: info.map_or(0, |info| info.user_block),
        interrupt,
        held: BTreeMap::new(),
        missing: RefCell::default(),
        left: Cell::new(MOST_BYTES),
    };
    let (places, widths) = match info {
        Some(info) => (places, Widths { address: info.address_size.into(), length: info.length_size.into() }),
        None => match scout.until_known(|read| Structure::root(LEVELS, read))? {
            Some((root, widths)) => (vec![root], widths),
            None => return Ok(()),
        },
    };
    scout.walk(&places, widths)?;
    if let Some(first @ Structure::Object { .. }) = places.first() {
        siblings.add(scout.groups(*first, widths));
    }
    Ok(())
}

struct Scout<'a> {
    source: &'a Source,
    /// Bytes before address 0.
    before: u64,
    interrupt: &'a Interrupt,
    /// Blocks by their numbers.
    held: BTreeMap<u64, Vec<u8>>,
    /// Numbers of the blocks that were asked for and are not held.
    missing: RefCell<BTreeSet<u64>>,
    /// Bytes that may still be looked at.
    left: Cell<usize>,
}

impl Scout<'_> {
    /// Bytes at an address: fewer at the end of the source. `None`: they are not all held.
    fn read(&self, at: u64, length: usize) -> Option<Vec<u8>> {
        let size = self.source.identity().size;
        let begin = at.checked_add(self.before).filter(|begin| *begin <= size)?;
        let end = begin.checked_add(length as u64)?.min(size);
        self.left.set(self.left.get().checked_sub(length)?);
        let blocks = begin / BLOCK..end.div_ceil(BLOCK);
        let missing: Vec<u64> = blocks.clone().filter(|number| !self.held.contains_key(number)).collect();
        if !missing.is_empty() {
            self.missing.borrow_mut().extend(missing);
            return None;
        }
        let bytes: Vec<u8> = self.held.range(blocks.clone()).flat_map(|(_, block)| block).copied().collect();
        let before = blocks.start * BLOCK;
        Some(bytes.get((begin - before) as usize..(end - before) as usize)?.to_vec())
    }

    /// Fetches all missing blocks; `false`: none is missing, or too many are.
    fn fetch(&mut self) -> Result<bool, Error> {
        let (source, missing) = (self.source, self.missing.take());
        if missing.is_empty() || self.held.len() + missing.len() > MOST_BLOCKS {
            return Ok(false);
        }
        let size = source.identity().size;
        let ranges = missing.iter().map(|number| number * BLOCK..(number + 1).saturating_mul(BLOCK).min(size));
        source.plan(ranges.clone());
        for range in ranges {
            let mut block = vec![0; (range.end - range.start) as usize];
            source.read_at(range.start, &mut block, self.interrupt)?;
            self.held.insert(range.start / BLOCK, block);
        }
        Ok(true)
    }

    /// Reads until all that is asked for is held.
    fn until_known<T>(&mut self, read: impl Fn(&ReadAt<'_>) -> Option<T>) -> Result<Option<T>, Error> {
        loop {
            let found = read(&|at, length| self.read(at, length));
            if found.is_some() || !self.fetch()? {
                return Ok(found);
            }
        }
    }

    /// Follows structures, and all that they lead to.
    fn walk(&mut self, begin: &[Structure], widths: Widths) -> Result<(), Error> {
        let (mut here, mut known) = (begin.to_vec(), HashSet::<Structure>::from_iter(begin.iter().copied()));
        for _ in 0..MOST_ROUNDS {
            // Structures whose bytes are still to come, or that make no sense: those are looked at again in vain.
            let mut late = Vec::new();
            while let Some(place) = here.pop() {
                if known.len() > MOST_PLACES || self.missing.borrow().len() > MOST_BLOCKS {
                    return Ok(());
                }
                match place.follow(widths, &|at, length| self.read(at, length)) {
                    Some(found) => here.extend(found.into_iter().filter(|place| known.insert(*place))),
                    None => late.push(place),
                }
            }
            if !self.fetch()? {
                break;
            }
            here = late;
        }
        Ok(())
    }

    /// The groups in a group, as far as they are held.
    fn groups(&self, group: Structure, widths: Widths) -> Vec<u64> {
        let read = |at, length| self.read(at, length);
        let (mut here, mut groups) = (VecDeque::from([group]), Vec::new());
        while let Some(place) = here.pop_front().filter(|_| groups.len() < MOST_PLACES) {
            let found = place.follow(widths, &read).unwrap_or_default();
            let leads_on = |place: &Structure| match place {
                Structure::GroupTree { .. } | Structure::Object { .. } => true,
                Structure::FractalHeap { levels, .. } => *levels == LEVELS,
                _ => false,
            };
            match place {
                Structure::Object { at, .. } if place != group => {
                    groups.extend(found.iter().any(leads_on).then_some(at))
                }
                // Members are looked at as groups, to find out whether they are.
                _ => here.extend(found.into_iter().map(|place| match place {
                    Structure::Object { at, .. } => Structure::Object { at, levels: LEVELS },
                    other => other,
                })),
            }
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_group_after_group_gets_ever_more_together() {
        let mut siblings = LikelyGroups::default();
        assert_eq!(siblings.with(5), [5]);
        siblings.add((0..100).collect());
        let asked: Vec<_> = (0..100).map(|group| siblings.with(group)).filter(|groups| groups.len() > 1).collect();
        assert_eq!(asked.iter().map(Vec::len).collect::<Vec<_>>(), [4, 8, 16, 32, 40]);
        assert_eq!(asked.concat(), (0..100).collect::<Vec<_>>());
        // One by itself, and what follows it.
        let mut siblings = LikelyGroups::default();
        siblings.add((0..100).collect());
        assert_eq!([siblings.with(50), siblings.with(51), siblings.with(52)], [vec![50], vec![51, 52], vec![52]]);
    }

    #[test]
    fn groups_of_a_group_are_asked_for_between_its_siblings() {
        let mut siblings = LikelyGroups::default();
        siblings.add(vec![1, 2, 3, 4]);
        assert_eq!(siblings.with(1), [1, 2, 3, 4]);
        siblings.add(vec![11, 12, 13]);
        assert_eq!(siblings.with(11), [11, 12, 13]);
        assert_eq!(siblings.with(2), [2]);
        // What is in no family ends all.
        assert_eq!(siblings.with(99), [99]);
        assert_eq!(siblings.with(3), [3]);
    }
}
