//! Finds the rows that satisfy a predicate, block by block of 65,536 rows.
//!
//! A [pass](crate::store::pass) counts the rows of each block, on all cores, once however many wait for it, and stops when
//! nobody does; the counts stay, four bytes a block, and are kept in the user's cache folder. They say where the n-th row
//! lies. Which rows of a block they are, for blocks of which some match and some do not, is kept as bits under the memory
//! budget; where the budget needs them back, they are found again when somebody asks.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::BooleanBuffer;
use parking_lot::Mutex;

use super::bind::{Bound, Leaf, Source, Test, Tree};
use super::prune::{Pruner, Verdict};
use super::ranges::{Ranges, of_labels};
use crate::source::Interrupt;
use crate::store::pass::{Keeper, Measure, Pass, Progress};
use crate::store::statistics::GRAIN;
use crate::store::{Cache, Error, Reservation, RowRange, Store};

/// Blocks of the longest table that is looked through: 2^42 rows.
const MOST_BLOCKS: u64 = 1 << 26;

/// Blocks that a step of the pass takes at most, where chunks are longer than one.
const MOST_PER_STEP: u64 = 256;

/// Moves when the same predicate finds other rows in the same file.
const VERSION: u32 = 1;

/// The rows of a table that satisfy a predicate, found when somebody asks.
pub struct Selection {
    evaluation: Arc<Evaluation>,
    counts: Arc<Pass<u32>>,
    selected: OnceLock<Arc<Selected>>,
    /// How long finding them took, for the first who asked.
    took: OnceLock<Duration>,
}

/// What was done for a selection so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Explained {
    /// Rows of the table.
    pub rows: u64,
    /// Rows that match; `None` before all are found.
    pub matched: Option<u64>,
    /// Blocks of 65,536 rows.
    pub blocks: u64,
    /// Blocks of which statistics say that no row matches.
    pub blocks_without: u64,
    /// Blocks of which statistics say that every row matches.
    pub blocks_within: u64,
    /// Blocks of which values were decoded, each time that they were.
    pub blocks_decoded: u64,
    /// Bytes of the values decoded.
    pub bytes_decoded: u64,
    /// How long it took to find the rows.
    pub took: Option<Duration>,
    /// Whether the counts were found in the cache folder or are there now.
    pub kept: bool,
}

impl Selection {
    /// A selection among `rows` rows; `path` is the table's, for errors, and `keeper` says where what it finds is kept. Reads
    /// nothing.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for more than 2^42 rows.
    pub fn new(path: &str, rows: u64, bound: Bound, store: &Arc<Store>, keeper: Option<Keeper>) -> Result<Self, Error> {
        let blocks = rows.div_ceil(GRAIN);
        if blocks > MOST_BLOCKS {
            return Err(Error::TooLarge {
                path: path.to_owned(),
                what: format!("a selection among {rows} rows"),
                bytes: blocks,
                limit: MOST_BLOCKS,
                option: "blocks of 65,536 rows",
            });
        }
        let natural = bound.columns.iter().filter_map(|column| column.rows.natural_rows()).max().unwrap_or(0);
        let per_step = natural.div_ceil(GRAIN).clamp(1, MOST_PER_STEP);
        let evaluation = Arc::new(Evaluation {
            path: path.to_owned(),
            rows,
            bound,
            bits: Cache::new(store.budget()),
            store: store.clone(),
            without: AtomicU64::new(0),
            within: AtomicU64::new(0),
            decoded: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        });
        let keeper = keeper.map(|keeper| Keeper { what: format!("{} selection {VERSION}", keeper.what), ..keeper });
        // Both fit: a step is less than the blocks, which were bounded above.
        let counts = Pass::new(blocks as usize, per_step as usize, Arc::clone(&evaluation) as _, keeper);
        Ok(Self { evaluation, counts, selected: OnceLock::new(), took: OnceLock::new() })
    }

    /// The rows found: waits until they are.
    ///
    /// # Errors
    /// Those of [`Rows::array`](crate::store::Rows::array); [`Error::Interrupted`] soon after `interrupt` is raised.
    pub fn selected(&self, interrupt: &Interrupt) -> Result<Arc<Selected>, Error> {
        if let Some(selected) = self.selected.get() {
            return Ok(selected.clone());
        }
        let begun = Instant::now();
        let counts = self.counts.all(interrupt)?;
        self.took.get_or_init(|| begun.elapsed());
        Ok(self.place(counts))
    }

    /// The rows found, if they are; does nothing else for it.
    pub fn known(&self) -> Option<Arc<Selected>> {
        match self.selected.get() {
            Some(selected) => Some(selected.clone()),
            None => Some(self.place(self.counts.known()?)),
        }
    }

    /// The rows found, if they are, or if the cache folder knows how many there are.
    pub fn found(&self) -> Option<Arc<Selected>> {
        self.counts.found()?;
        self.known()
    }

    /// How far finding them is.
    pub fn progress(&self) -> Progress {
        self.counts.progress()
    }

    /// What was done for it so far; `None` where nothing was.
    pub fn explained(&self) -> Option<Explained> {
        let progress = self.counts.progress();
        let evaluation = &self.evaluation;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let matched = self.counts.known().map(|counts| counts.iter().map(|count| u64::from(*count)).sum());
        let is_begun = progress.done > 0 || get(&evaluation.decoded) > 0 || progress.all == 0;
        is_begun.then(|| Explained {
            rows: evaluation.rows,
            matched,
            blocks: progress.all,
            blocks_without: get(&evaluation.without),
            blocks_within: get(&evaluation.within),
            blocks_decoded: get(&evaluation.decoded),
            bytes_decoded: get(&evaluation.bytes),
            took: self.took.get().copied(),
            kept: progress.kept == Some(true),
        })
    }

    fn place(&self, counts: &[u32]) -> Arc<Selected> {
        let place = || {
            let mut starts = Vec::with_capacity(counts.len() + 1);
            starts.push(0);
            let mut sum = 0;
            starts.extend(counts.iter().map(|count| {
                sum += u64::from(*count);
                sum
            }));
            Arc::new(Selected { evaluation: self.evaluation.clone(), starts })
        };
        self.selected.get_or_init(place).clone()
    }
}

impl std::fmt::Debug for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Selection").field("evaluation", &self.evaluation).finish_non_exhaustive()
    }
}

/// Rows that were found.
#[derive(Debug)]
pub struct Selected {
    evaluation: Arc<Evaluation>,
    /// Rows found before each block, and in all.
    starts: Vec<u64>,
}

/// Rows of the table that follow each other, some of which were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The first of them.
    pub first: u64,
    /// How many.
    pub length: u64,
    /// Which of them; `None` is all.
    pub bits: Option<BooleanBuffer>,
}

impl Selected {
    /// How many.
    pub fn len(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Path of the table.
    pub(super) fn path(&self) -> &str {
        &self.evaluation.path
    }

    /// Where the rows found at these places lie in the table. Pieces begin and end with a row that was found.
    pub(super) fn pieces(&self, range: &RowRange, interrupt: &Interrupt) -> Result<Vec<Piece>, Error> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut block = self.starts.partition_point(|start| *start <= range.start).saturating_sub(1);
        while let (Some(&start), Some(&end)) = (self.starts.get(block), self.starts.get(block + 1))
            && start < range.end
        {
            let skip = range.start.saturating_sub(start);
            let take = end.min(range.end).saturating_sub(start + skip);
            if take > 0 {
                let rows = self.evaluation.rows_of(block as u64);
                let piece = if end - start == rows.end - rows.start {
                    Piece { first: rows.start + skip, length: take, bits: None }
                } else {
                    let bits = self.evaluation.bits(block as u64, interrupt)?;
                    if bits.count_set_bits() as u64 != end - start {
                        return Err(Error::Unsupported {
                            path: self.evaluation.path.clone(),
                            reason: format!("rows {rows:?} are not those that were counted"),
                        });
                    }
                    cut(rows.start, &bits, skip, take)
                };
                match pieces.last_mut() {
                    Some(last)
                        if last.bits.is_none() && piece.bits.is_none() && last.first + last.length == piece.first =>
                    {
                        last.length += piece.length;
                    }
                    _ => pieces.push(piece),
                }
            }
            block += 1;
        }
        Ok(pieces)
    }
}

/// From the set bit after `skip` others, `take` set bits. There are as many.
fn cut(start: u64, bits: &BooleanBuffer, skip: u64, take: u64) -> Piece {
    let mut set = bits.set_indices().skip(skip as usize);
    let first = set.next().unwrap_or(0);
    let last = if take > 1 { set.nth(take as usize - 2).unwrap_or(first) } else { first };
    let length = last + 1 - first;
    let all = length as u64 == take;
    Piece { first: start + first as u64, length: length as u64, bits: (!all).then(|| bits.slice(first, length)) }
}

/// Which rows of a block match, where some do and some do not.
#[derive(Debug)]
struct Bits {
    bits: BooleanBuffer,
    _held: Reservation,
}

#[derive(Debug)]
struct Evaluation {
    path: String,
    rows: u64,
    bound: Bound,
    bits: Cache<u64, Bits>,
    store: Arc<Store>,
    without: AtomicU64,
    within: AtomicU64,
    decoded: AtomicU64,
    bytes: AtomicU64,
}

impl Measure<u32> for Evaluation {
    fn measure(&self, blocks: Range<usize>, interrupt: &Interrupt) -> Result<Vec<u32>, Error> {
        let pruner = Pruner::new(&self.bound);
        let count = |block: usize| {
            let block = block as u64;
            let rows = self.rows_of(block);
            let length = rows.end - rows.start;
            // A block has 65,536 rows at most.
            Ok(match pruner.verdict(&self.bound.tree, &rows) {
                Verdict::Nothing => {
                    self.without.fetch_add(1, Ordering::Relaxed);
                    0
                }
                Verdict::Everything => {
                    self.within.fetch_add(1, Ordering::Relaxed);
                    length as u32
                }
                Verdict::Unknown => {
                    let bits = self.look(&rows, &pruner, interrupt)?;
                    let count = bits.count_set_bits() as u32;
                    if count > 0 && u64::from(count) < length {
                        self.hold(block, bits);
                    }
                    count
                }
            })
        };
        blocks.map(count).collect()
    }
}

impl Evaluation {
    fn rows_of(&self, block: u64) -> Range<u64> {
        let start = block.saturating_mul(GRAIN).min(self.rows);
        start..start.saturating_add(GRAIN).min(self.rows)
    }

    /// Which rows of a block match.
    fn bits(&self, block: u64, interrupt: &Interrupt) -> Result<BooleanBuffer, Error> {
        if let Some(known) = self.bits.get(&block) {
            return Ok(known.bits.clone());
        }
        let bits = self.look(&self.rows_of(block), &Pruner::new(&self.bound), interrupt)?;
        self.hold(block, bits.clone());
        Ok(bits)
    }

    /// Keeps the bits of a block if there is room for them.
    fn hold(&self, block: u64, bits: BooleanBuffer) {
        let bytes = bits.inner().len() + size_of::<(u64, Bits)>();
        if let Some(held) = self.store.budget().try_reserve(bytes as u64) {
            self.bits.insert(block, Arc::new(Bits { bits, _held: held }));
        }
    }

    /// Which of these rows match, by their values.
    fn look(&self, rows: &Range<u64>, pruner: &Pruner, interrupt: &Interrupt) -> Result<BooleanBuffer, Error> {
        interrupt.check()?;
        let look = Look { evaluation: self, pruner, interrupt, arrays: Mutex::default() };
        match look.tree(&self.bound.tree, rows) {
            // More than the store hands out at once: in halves.
            Err(Error::TooLarge { .. }) if rows.end - rows.start > 1 => {
                let middle = rows.start + (rows.end - rows.start) / 2;
                let first = self.look(&(rows.start..middle), pruner, interrupt)?;
                let second = self.look(&(middle..rows.end), pruner, interrupt)?;
                Ok(first.iter().chain(second.iter()).collect())
            }
            Ok(bits) => {
                self.decoded.fetch_add(1, Ordering::Relaxed);
                Ok(bits)
            }
            Err(error) => Err(error),
        }
    }
}

/// One look at the values of some rows.
struct Look<'a> {
    evaluation: &'a Evaluation,
    pruner: &'a Pruner,
    interrupt: &'a Interrupt,
    /// Columns decoded so far, by position.
    arrays: Mutex<HashMap<usize, ArrayRef>>,
}

impl Look<'_> {
    fn tree(&self, tree: &Tree, rows: &Range<u64>) -> Result<BooleanBuffer, Error> {
        // A block has 65,536 rows at most.
        let length = (rows.end - rows.start) as usize;
        match self.pruner.verdict(tree, rows) {
            Verdict::Nothing => return Ok(BooleanBuffer::new_unset(length)),
            Verdict::Everything => return Ok(BooleanBuffer::new_set(length)),
            Verdict::Unknown => {}
        }
        match tree {
            Tree::Leaf(leaf) => self.leaf(leaf, rows),
            Tree::All(parts) => {
                let mut all = BooleanBuffer::new_set(length);
                for part in parts {
                    all = &all & &self.tree(part, rows)?;
                    if all.count_set_bits() == 0 {
                        break;
                    }
                }
                Ok(all)
            }
            Tree::Any(parts) => {
                let mut any = BooleanBuffer::new_unset(length);
                for part in parts {
                    any = &any | &self.tree(part, rows)?;
                    if any.count_set_bits() == length {
                        break;
                    }
                }
                Ok(any)
            }
        }
    }

    fn leaf(&self, leaf: &Leaf, rows: &Range<u64>) -> Result<BooleanBuffer, Error> {
        let array = self.array(leaf.column, rows)?;
        let valid = array.nulls().map(|nulls| nulls.inner().clone());
        let (ranges, negated) = match &leaf.test {
            Test::Null => return Ok(valid.map_or_else(|| BooleanBuffer::new_unset(array.len()), |valid| !&valid)),
            Test::Valid => return Ok(valid.unwrap_or_else(|| BooleanBuffer::new_set(array.len()))),
            Test::Compare { ranges, negated } => (ranges, *negated),
        };
        let matching = match array.as_any_dictionary_opt() {
            Some(dictionary) => {
                labels(leaf, ranges, dictionary.values()).and_then(|matching| of_labels(array.as_ref(), &matching))
            }
            None => ranges.matching(array.as_ref()),
        };
        // The kind of the column was asked when the predicate was bound.
        let Some(matching) = matching else {
            return Err(Error::Unsupported {
                path: self.evaluation.path.clone(),
                reason: format!("values of type {} came unexpectedly", array.data_type()),
            });
        };
        let matching = if negated { !&matching } else { matching };
        Ok(match valid {
            Some(valid) => &matching & &valid,
            None => matching,
        })
    }

    fn array(&self, column: usize, rows: &Range<u64>) -> Result<ArrayRef, Error> {
        if let Some(known) = self.arrays.lock().get(&column) {
            return Ok(known.clone());
        }
        let missing = || Error::Unsupported {
            path: self.evaluation.path.clone(),
            reason: format!("rows {rows:?} of a column came short"),
        };
        let Source { rows: values, .. } = self.evaluation.bound.columns.get(column).ok_or_else(missing)?;
        let array = values.array(rows.clone(), self.interrupt)?;
        if array.len() as u64 != rows.end - rows.start {
            return Err(missing());
        }
        let bytes = match values.stored_width() {
            Some(width) => width.saturating_mul(array.len() as u64),
            None => array.get_buffer_memory_size() as u64,
        };
        self.evaluation.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.arrays.lock().insert(column, array.clone());
        Ok(array)
    }
}

/// Which labels lie in the ranges. One that is missing is no value.
fn labels(leaf: &Leaf, ranges: &Ranges, labels: &ArrayRef) -> Option<BooleanBuffer> {
    let mut known = leaf.labels.lock();
    if let Some((_, matching)) = known.as_ref().filter(|(known, _)| Arc::ptr_eq(known, labels)) {
        return Some(matching.clone());
    }
    let mut matching = ranges.matching(labels.as_ref())?;
    if let Some(nulls) = labels.nulls() {
        matching = &matching & nulls.inner();
    }
    *known = Some((labels.clone(), matching.clone()));
    Some(matching)
}
