//! Fetches the structures that a request will lead libhdf5 to, side by side, if the source lies on a network.
//!
//! libhdf5 reads a structure, then the next that this one leads to: over a network each would wait for an answer. The
//! scout goes the same way before it, in rounds: all structures of a round are fetched together. Afterwards libhdf5
//! finds them in memory. What the scout overlooks is read late, and nothing else.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::catalogue::FileInfo;
use crate::codec::structure::Widths;
use crate::codec::structure::header::ReadAt;
use crate::codec::structure::leads::Place;
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

/// Fetches where a request leads to, as far as `info`, which is known once the file is open, allows.
///
/// # Errors
/// If the source cannot be read, or the request is interrupted.
pub(super) fn scout(
    source: &Source,
    info: Option<&FileInfo>,
    request: &Request,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    let place = match request {
        _ if !source.is_remote() => return Ok(()),
        Request::Open => None,
        Request::Group { id, start: 0, .. } if id.file == 0 => Some(Place::Object { at: id.address, levels: LEVELS }),
        Request::Chunks { id, start: 0, .. } if id.file == 0 => Some(Place::Dataset(id.address)),
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
    let begin = match (place, info) {
        (Some(place), Some(info)) => {
            Some((place, Widths { address: info.address_size.into(), length: info.length_size.into() }))
        }
        (None, _) => scout.until_known(|read| Place::root(LEVELS, read))?,
        _ => None,
    };
    begin.map_or(Ok(()), |(place, widths)| scout.walk(place, widths))
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

    /// Follows a structure, and all that it leads to.
    fn walk(&mut self, begin: Place, widths: Widths) -> Result<(), Error> {
        let (mut here, mut known) = (vec![begin], HashSet::from([begin]));
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
}
