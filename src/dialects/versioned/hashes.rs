//! Checks the chunks of `raw_data` against the hashes stored beside them, by which the library finds chunks that it
//! already has. A hash is the SHA-256 of a chunk, clipped to the extent of its dataset, and of its shape in Python's
//! notation.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use sha2::{Digest, Sha256};

use super::history::{LARGEST_INDEX, NEWEST_DATA, VersionsGroup, member};
use super::{STORE, finding, rules};
use crate::activity::{Unit, Work};
use crate::catalogue::{self, Class, Layout, Object, Target, join, product};
use crate::dialects::attributes::integer;
use crate::source::Interrupt;
use crate::store::{Error, File, Rows, StoredDataset, StoredStrings};
use crate::table::{Finding, UNREADABLE};

/// Bytes of a hash in a record.
const HASH: u64 = 32;
/// Bytes of the first row and the end row of a chunk in a record.
const ROWS: u64 = 16;

/// Most bytes in a record.
const LARGEST_RECORD: u64 = 256;

/// Number of records, or of texts, to read at once.
const BATCH: u64 = 1 << 14;

/// Number of bytes to read at once.
const READ: u64 = 1 << 20;

/// Most elements of a dataset to hash in vain while trying how its chunks were clipped: no record states the extents
/// after the first axis.
const MOST_TRIED: u64 = 1 << 28;

/// Most chunks that may fail before the check stops: a file may claim any number of them.
const MOST_BROKEN: u64 = 1 << 12;

/// Most groups to list.
const MOST_GROUPS: usize = 1 << 20;
/// Deepest nesting of groups to list.
const DEEPEST: usize = 64;

/// Checks all datasets of a versioned file. Makes findings on those whose chunks do not match their hashes, or that
/// cannot be read.
pub(super) fn verify(file: &Arc<File>, interrupt: &Interrupt) -> Vec<Finding> {
    let mut found = Vec::new();
    let Some(kept) = VersionsGroup::in_file(file, interrupt).filter(|kept| kept.data_version() == NEWEST_DATA) else {
        return found;
    };
    let root = file.group(file.info().root, interrupt);
    let Some((store, _)) = root.as_ref().ok().and_then(|root| member(root, STORE)) else { return found };
    let mut met = HashSet::from([store, kept.id]);
    let mut below = vec![(store, format!("/{STORE}"), 0)];
    while let Some((id, path, depth)) = below.pop() {
        let Ok(group) = file.group(id, interrupt) else { continue };
        let members = ["raw_data", "hash_table"].map(|name| group.link(name.as_bytes())?.target.dataset());
        if let [Some(raw), Some(hashes)] = members {
            let path = join(&path, b"raw_data");
            let open =
                |dataset: &Arc<catalogue::Dataset>| StoredDataset::new(file.clone(), path.clone(), dataset.clone());
            let verified = open(raw).and_then(|raw| match Chunks::new(raw, interrupt) {
                Some(mut chunks) => chunks.verify(&open(hashes)?, integer(&hashes.attributes, LARGEST_INDEX)),
                None => Ok(None),
            });
            match verified {
                Ok(broken) => found.extend(broken.map(|broken| finding(path.clone(), &rules::HASH, broken))),
                Err(_) if interrupt.is_raised() => return found,
                Err(error) => found.push(finding(path, &UNREADABLE, error.to_string())),
            }
        }
        for link in group.links.iter().rev().filter(|link| depth > 0 || link.name != "__tmp__") {
            if let Target::Hard(Object::Group { id, .. }) = &link.target
                && depth < DEEPEST
                && met.len() < MOST_GROUPS
                && met.insert(*id)
            {
                below.push((*id, join(&path, &link.name), depth + 1));
            }
        }
    }
    found
}

/// The distinct chunks of a dataset, which follow one another along its first axis.
struct Chunks<'a> {
    raw: Arc<StoredDataset>,
    /// Reads texts, which are hashed one by one, each with its length. `None`: the elements are not texts.
    texts: Option<StoredStrings>,
    extents: Vec<u64>,
    /// Extents after the first axis to which chunks were found to be clipped, the latest last.
    clipped: Vec<Vec<u64>>,
    tried: u64,
    interrupt: &'a Interrupt,
}

impl<'a> Chunks<'a> {
    /// Prepares to check a dataset. `None`: it is not chunked, or its elements have another form in NumPy's memory than
    /// in the file.
    fn new(raw: StoredDataset, interrupt: &'a Interrupt) -> Option<Self> {
        let description = raw.description().clone();
        let Layout::Chunked { chunk, .. } = &description.layout else { return None };
        let is_text = match description.datatype.class {
            Class::VariableString { .. } => true,
            Class::Integer { .. } | Class::Float { .. } | Class::Enum { .. } | Class::FixedString { .. } => false,
            _ => return None,
        };
        let (raw, extents) = (Arc::new(raw), chunk.clone());
        // NumPy pads wider numbers, so the hashed bytes may not be the stored ones.
        let is_hashed = is_text
            || description.datatype.size <= 8
            || matches!(description.datatype.class, Class::FixedString { .. });
        if !is_hashed || extents.get(1..) != description.shape.get(1..) || product(&extents)? == 0 {
            return None;
        }
        let texts = is_text.then(|| StoredStrings::new(raw.clone(), raw.len()));
        let clipped = vec![extents.get(1..)?.to_vec()];
        Some(Self { raw, texts, extents, clipped, tried: 0, interrupt })
    }

    /// Checks the chunks against a table of hashes. Returns the mismatches in words. `None`: all match, or the
    /// table has another form.
    fn verify(&mut self, hashes: &StoredDataset, largest: Option<i128>) -> Result<Option<String>, Error> {
        let Some(places) = places(hashes) else { return Ok(None) };
        let all = hashes.len().min(largest.and_then(|largest| u64::try_from(largest).ok()).unwrap_or(0));
        let work = Work::begin(self.raw.path().trim_matches('/'), "comparing hashes", Unit::Blocks);
        work.expect(all);
        let size = hashes.element_size();
        let (mut others, mut outside, mut first) = (0, 0, None);
        for start in (0..all).step_by(BATCH as usize) {
            let end = all.min(start + BATCH);
            work.reach(start);
            let mut records = vec![0; ((end - start) * size) as usize];
            hashes.read_bytes(start * size, &mut records, self.interrupt)?;
            for record in records.chunks_exact(size as usize) {
                let [hash, from, to] = places.clone().map(|place| record.get(place).unwrap_or_default());
                let [from, to] = [from, to].map(|bytes| bytes.try_into().map_or(u64::MAX, u64::from_le_bytes));
                if !self.has(&(from..to))? {
                    outside += 1;
                } else if self.is_other(&(from..to), hash)? {
                    others += 1;
                    first.get_or_insert(from / self.extents[0]);
                }
                if others + outside == MOST_BROKEN {
                    return Ok(Some(format!("{MOST_BROKEN} hashes or more match no stored chunk")));
                }
            }
        }
        Ok(match (first, outside) {
            (Some(first), _) => {
                Some(format!("{others} of {all} chunks do not match their hashes, the first is chunk {first}"))
            }
            (None, 1..) => Some(format!("{outside} of {all} hashes have no chunk")),
            (None, _) => None,
        })
    }

    /// Whether these rows make up a chunk that has been written.
    fn has(&self, rows: &Range<u64>) -> Result<bool, Error> {
        let all = self.raw.description().shape.first().copied().unwrap_or(0);
        let extent = self.extents[0];
        let is_chunk = !rows.is_empty() && rows.end <= all && rows.end - rows.start <= extent;
        if !is_chunk || !rows.start.is_multiple_of(extent) {
            return Ok(false);
        }
        let first = rows.start * self.stride(0);
        Ok(self.raw.unwritten_until(first, self.interrupt)? == first)
    }

    /// Whether this chunk matches its hash in none of the ways in which it may have been clipped.
    fn is_other(&mut self, rows: &Range<u64>, hash: &[u8]) -> Result<bool, Error> {
        for at in (0..self.clipped.len()).rev() {
            if self.hash(rows, &self.clipped[at])? == *hash {
                let found = self.clipped.remove(at);
                self.clipped.push(found);
                return Ok(false);
            }
        }
        let behind = self.extents[1..].to_vec();
        let mut extents = behind.clone();
        while let Some(axis) = extents.iter().rposition(|extent| *extent > 1) {
            extents[axis] -= 1;
            extents[axis + 1..].copy_from_slice(&behind[axis + 1..]);
            // Too much has been tried in vain: it stays unknown.
            if self.tried > MOST_TRIED {
                return Ok(false);
            }
            let count = extents.iter().fold(rows.end - rows.start, |all, extent| all.saturating_mul(*extent));
            self.tried = self.tried.saturating_add(count);
            if !self.clipped.contains(&extents) && self.hash(rows, &extents)? == *hash {
                self.clipped.push(extents);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Hashes the chunk of these rows, clipped to the extents `behind` after the first axis.
    fn hash(&self, rows: &Range<u64>, behind: &[u64]) -> Result<[u8; 32], Error> {
        let mut hash = Sha256::new();
        let mut extents = vec![rows.end - rows.start];
        extents.extend_from_slice(behind);
        self.feed(&mut hash, &extents, 0, rows.start * self.stride(0))?;
        let shape: Vec<String> = extents.iter().map(u64::to_string).collect();
        hash.update(match shape.as_slice() {
            [only] => format!("({only},)"),
            several => format!("({})", several.join(", ")),
        });
        Ok(hash.finalize().into())
    }

    /// Number of elements from one position along an axis to the next.
    fn stride(&self, axis: usize) -> u64 {
        // This is at most the number of elements in a chunk.
        self.extents[axis + 1..].iter().product()
    }

    /// Hashes the elements of a box whose corner is element `first`, from this axis on.
    fn feed(&self, hash: &mut Sha256, extents: &[u64], axis: usize, first: u64) -> Result<(), Error> {
        let (extent, stride) = (extents[axis], self.stride(axis));
        if extents[axis + 1..] == self.extents[axis + 1..] {
            return self.feed_run(hash, first..first + extent * stride);
        }
        (0..extent).try_for_each(|at| self.feed(hash, extents, axis + 1, first + at * stride))
    }

    fn feed_run(&self, hash: &mut Sha256, elements: Range<u64>) -> Result<(), Error> {
        let size = self.raw.element_size();
        // This cannot overflow, since all elements together take less than 2^63 bytes.
        let (mut at, step, end) = match &self.texts {
            Some(_) => (elements.start, BATCH, elements.end),
            None => (elements.start * size, READ, elements.end * size),
        };
        while at < end {
            self.interrupt.check()?;
            let until = end.min(at.saturating_add(step));
            if let Some(texts) = &self.texts {
                for text in texts.array(at..until, self.interrupt)?.as_binary::<i64>().iter().flatten() {
                    hash.update((text.len() as u64).to_le_bytes());
                    hash.update(text);
                }
            } else {
                let mut bytes = vec![0; (until - at) as usize];
                self.raw.read_bytes(at, &mut bytes, self.interrupt)?;
                hash.update(&bytes);
            }
            at = until;
        }
        Ok(())
    }
}

/// Where a record has the hash, the first row of its chunk, and the end row. `None`: the record has other fields.
fn places(hashes: &StoredDataset) -> Option<[Range<usize>; 3]> {
    let datatype = &hashes.description().datatype;
    let Class::Compound { fields } = &datatype.class else { return None };
    let [hash, rows] = [("hash", HASH), ("shape", ROWS)].map(|(name, size)| {
        let field = fields.iter().find(|field| field.name == name && field.datatype.size == size)?;
        usize::try_from(field.offset).ok()
    });
    let (hash, rows) = (hash?, rows?);
    let places = [hash..hash.checked_add(32)?, rows..rows.checked_add(8)?, rows.checked_add(8)?..rows.checked_add(16)?];
    (datatype.size <= LARGEST_RECORD).then_some(places)
}
