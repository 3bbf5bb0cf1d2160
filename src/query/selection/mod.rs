//! Finds the rows that satisfy a predicate, block by block of 65,536 rows.
//!
//! A [pass](crate::store::pass) counts the matching rows of each block on all cores. It runs once for all waiters and
//! stops when none is left. The counts stay, four bytes a block, and are kept in the user's cache folder: they say
//! where the n-th row lies. The rows of a block of which some match are kept as bits under the memory budget. Bits that
//! were evicted are found again on demand.

mod evaluation;
mod matches;
mod picked;
mod prune;
mod rows;
mod table;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arrow_buffer::{BooleanBuffer, Buffer};

use super::bind::Bound;
use super::known::answer::UsedIndex;
use crate::indexes::Trust;
use crate::source::Interrupt;
use crate::store::pass::{self, Keeper, Pass, Progress};
use crate::store::statistics::GRAIN;
use crate::store::{Cache, Error, RowRange, Rows, Store};
use crate::table::IndexForm;
use evaluation::Evaluation;
use matches::Matches;

pub use rows::SelectedRows;
pub(super) use rows::joined;
pub use table::{filtered, selectable};

/// Blocks of the longest table that is looked through: 2^42 rows.
const MOST_BLOCKS: u64 = 1 << 26;

/// Blocks that a step of the pass takes at most, where chunks are longer than one.
const MOST_PER_STEP: u64 = 256;

/// Steps that each core is to have at least, so that none has nothing to do at the end.
const STEPS_OF_A_CORE: u64 = 64;

/// Moves when the same predicate finds other rows in the same file.
const VERSION: u32 = 2;

/// The rows of a table that satisfy a predicate, found on demand.
pub struct Selection {
    evaluation: Arc<Evaluation>,
    counts: Arc<Pass<u32>>,
    selected: OnceLock<Arc<Selected>>,
    /// How long finding them took, for the first who asked.
    took: OnceLock<Duration>,
}

/// Work done for a selection so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explained {
    /// Rows of the table.
    pub rows: u64,
    /// Rows that match; `None` before all are found.
    pub matched: Option<u64>,
    /// Blocks of 65,536 rows.
    pub blocks: u64,
    /// Blocks of which statistics or search indexes say that no row matches.
    pub blocks_without: u64,
    /// Blocks of which they say that every row matches.
    pub blocks_within: u64,
    /// Blocks of which search indexes say which rows match, each time that they did.
    pub blocks_answered: u64,
    /// Search indexes that said anything.
    pub indexes: Vec<UsedIndex>,
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
    /// A selection among `rows` rows; `path` is the table's, for errors, and `keeper` says where what it finds is kept.
    /// Reads nothing.
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
        let chunk = natural.div_ceil(GRAIN).clamp(1, MOST_PER_STEP);
        // Whole chunks, and in a long table several: what search indexes tell of a block takes less than taking a step.
        let share = blocks / (STEPS_OF_A_CORE * pass::threads() as u64);
        // A chunk of a bitmap tells of more: it is decoded by one step, where that leaves enough of them.
        let of_bitmap = bound.rows_of_bitmaps() / GRAIN;
        let chunk =
            if of_bitmap / 2 <= share && of_bitmap.is_multiple_of(chunk) { of_bitmap.max(chunk) } else { chunk };
        let per_step = share.next_multiple_of(chunk).clamp(chunk, MOST_PER_STEP.max(chunk));
        // A selection that trusts unverified indexes shares no counts with others.
        let keeper = keeper.filter(|_| bound.trust != Trust::Trust);
        let evaluation = Arc::new(Evaluation::new(path, rows, bound, store));
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

    /// Search indexes that cannot be used until they are verified.
    pub fn unverified(&self) -> Vec<Arc<IndexForm>> {
        self.evaluation.unverified()
    }

    /// How far finding them is.
    pub fn progress(&self) -> Progress {
        self.counts.progress()
    }

    /// Work done for it so far; `None` before any.
    pub fn explained(&self) -> Option<Explained> {
        let progress = self.counts.progress();
        let evaluation = &self.evaluation;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let matched = self.counts.known().map(|counts| counts.iter().map(|count| u64::from(*count)).sum());
        let is_begun = progress.done > 0
            || get(&evaluation.done.decoded) + get(&evaluation.done.answered) > 0
            || progress.all == 0;
        is_begun.then(|| Explained {
            rows: evaluation.rows,
            matched,
            blocks: progress.all,
            blocks_without: get(&evaluation.done.without),
            blocks_within: get(&evaluation.done.within),
            blocks_answered: get(&evaluation.done.answered),
            indexes: evaluation.used(),
            blocks_decoded: get(&evaluation.done.decoded),
            bytes_decoded: get(&evaluation.done.bytes),
            took: self.took.get().copied(),
            kept: progress.kept == Some(true),
        })
    }

    fn place(&self, counts: &[u32]) -> Arc<Selected> {
        let selected = self.selected.get_or_init(|| {
            let mut starts = Vec::with_capacity(counts.len() + 1);
            starts.push(0);
            let mut sum = 0;
            starts.extend(counts.iter().map(|count| {
                sum += u64::from(*count);
                sum
            }));
            let whole = Cache::new(self.evaluation.store().budget());
            Arc::new(Selected { evaluation: self.evaluation.clone(), starts, whole })
        });
        selected.clone()
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
    /// Whole rows that were read for several columns.
    whole: Cache<picked::Key, Option<picked::Picked>>,
}

/// Rows of the table that follow each other, some of which were found.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    /// The first of them.
    pub first: u64,
    /// How many.
    pub length: u64,
    /// Which of them; `None` is all.
    pub bits: Option<BooleanBuffer>,
    /// The matches of their block, and which of these they are; `None`: all of them.
    found: Option<(Arc<Matches>, Range<usize>)>,
}

impl Selected {
    /// How many.
    pub fn len(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Whether no row matches.
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
                    Piece { first: rows.start + skip, length: take, bits: None, found: None }
                } else {
                    let matches = self.evaluation.matches(block as u64, interrupt)?;
                    if matches.bits.count_set_bits() as u64 != end - start {
                        return Err(Error::unsupported(
                            &self.evaluation.path,
                            format!("rows {rows:?} are not those that were counted"),
                        ));
                    }
                    cut(rows.start, matches, skip, take)
                };
                match pieces.last_mut() {
                    Some(last)
                        if last.found.is_none() && piece.found.is_none() && last.first + last.length == piece.first =>
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

    /// The values as stored of the rows of a piece that were found, in the column that `rows` are, where they were
    /// kept.
    pub(super) fn values(&self, piece: &Piece, rows: &dyn Rows) -> Option<Buffer> {
        let (matches, places) = piece.found.as_ref()?;
        self.evaluation.values(matches, rows, places.clone())
    }
}

/// From the set bit after `skip` others, `take` set bits. There are as many.
fn cut(start: u64, matches: Arc<Matches>, skip: u64, take: u64) -> Piece {
    let mut set = matches.bits.set_indices().skip(skip as usize);
    let first = set.next().unwrap_or(0);
    let last = if take > 1 { set.nth(take as usize - 2).unwrap_or(first) } else { first };
    let length = last + 1 - first;
    let all = length as u64 == take;
    let bits = (!all).then(|| matches.bits.slice(first, length));
    let places = skip as usize..(skip + take) as usize;
    Piece { first: start + first as u64, length: length as u64, bits, found: Some((matches, places)) }
}
