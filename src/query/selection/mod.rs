//! Finds the rows that satisfy a predicate, block by block of 65,536 rows.
//!
//! A [pass](crate::learnt::pass) counts the matching rows of each block on all cores. It runs once for all waiting
//! readers and stops when the last one leaves. The counts, four bytes a block, stay in memory and in the user's cache
//! folder: they locate the n-th row. If only some rows of a block match, these are kept as bits under the memory
//! budget. Evicted bits are found again on demand.

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

use super::bind::BoundPredicate;
use super::known::answer::UsedIndex;
use crate::indexes::Trust;
use crate::learnt::pass::{self, Keeper, Pass, PassProgress};
use crate::source::Interrupt;
use crate::store::statistics::GRAIN;
use crate::store::{Cache, Error, RowRange, Rows, Store};
use crate::table::IndexForm;
use evaluation::Evaluation;
use matches::Matches;

pub use rows::SelectedRows;
pub(super) use rows::joined;
pub use table::{filtered, selectable};

/// Blocks of the longest table that can be searched: 2^42 rows.
const MOST_BLOCKS: u64 = 1 << 26;

/// Most blocks in a step of the pass, unless a chunk is longer.
const MOST_PER_STEP: u64 = 256;

/// Fewest steps for each core, so that no core is idle at the end.
const STEPS_OF_A_CORE: u64 = 64;

/// Version of the counts, to be increased when a predicate finds other rows in an unchanged file.
const VERSION: u32 = 2;

/// The rows of a table that satisfy a predicate, found on demand.
pub struct Selection {
    evaluation: Arc<Evaluation>,
    counts: Arc<Pass<u32>>,
    selected: OnceLock<Arc<Selected>>,
    /// The time that finding the rows took for the first caller.
    took: OnceLock<Duration>,
}

/// Work done for a selection so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explained {
    /// Number of rows of the table.
    pub rows: u64,
    /// Number of matching rows. `None`: not all found yet.
    pub matched: Option<u64>,
    /// Number of blocks of 65,536 rows in the table.
    pub blocks: u64,
    /// Blocks without a matching row, according to statistics or search indexes.
    pub blocks_without: u64,
    /// Blocks of matching rows only, according to statistics or search indexes.
    pub blocks_within: u64,
    /// Blocks for which search indexes found the matching rows, counted each time.
    pub blocks_answered: u64,
    /// Search indexes that decided a block.
    pub indexes: Vec<UsedIndex>,
    /// Blocks whose values were decoded, counted each time.
    pub blocks_decoded: u64,
    /// Bytes of the values decoded.
    pub bytes_decoded: u64,
    /// The time that finding the rows took.
    pub took: Option<Duration>,
    /// Whether the counts came from the cache folder or are stored there now.
    pub kept: bool,
}

/// How far a search is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SoFar {
    /// Number of rows searched.
    pub rows: u64,
    /// Estimated number of rows that match.
    pub expected: u64,
}

impl Selection {
    /// Returns a selection among `rows` rows. `path` is the table's, for errors; `keeper` keeps the results. Reads
    /// nothing.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for more than 2^42 rows.
    pub fn new(
        path: &str,
        rows: u64,
        bound: BoundPredicate,
        store: &Arc<Store>,
        keeper: Option<Keeper>,
    ) -> Result<Self, Error> {
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
        // Whole chunks, and in a long table several: a search index decides a block faster than a step begins.
        let share = blocks / (STEPS_OF_A_CORE * pass::threads() as u64);
        // A chunk of a bitmap covers more blocks than one of rows: one step decodes it, if enough steps remain.
        let of_bitmap = bound.rows_of_bitmaps() / GRAIN;
        let chunk =
            if of_bitmap / 2 <= share && of_bitmap.is_multiple_of(chunk) { of_bitmap.max(chunk) } else { chunk };
        let per_step = share.next_multiple_of(chunk).clamp(chunk, MOST_PER_STEP.max(chunk));
        // A selection that trusts unverified indexes does not share its counts.
        let keeper = keeper.filter(|_| bound.trust != Trust::Trust);
        let evaluation = Arc::new(Evaluation::new(path, rows, bound, store));
        let keeper = keeper.map(|keeper| keeper.with(format_args!("selection {VERSION}")));
        // Both fit: a step has fewer blocks than the table, whose blocks were bounded above.
        let counts = Pass::new(blocks as usize, per_step as usize, Arc::clone(&evaluation) as _, keeper);
        Ok(Self { evaluation, counts, selected: OnceLock::new(), took: OnceLock::new() })
    }

    /// Returns the rows found, after waiting for the search.
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

    /// Returns the rows found, if the search is complete; never starts it.
    pub fn known(&self) -> Option<Arc<Selected>> {
        match self.selected.get() {
            Some(selected) => Some(selected.clone()),
            None => Some(self.place(self.counts.known()?)),
        }
    }

    /// Returns the rows found, if the search is complete or the cache folder has its counts.
    pub fn found(&self) -> Option<Arc<Selected>> {
        self.counts.found()?;
        self.known()
    }

    /// Returns the search indexes that cannot be used before verification.
    pub fn unverified(&self) -> Vec<Arc<IndexForm>> {
        self.evaluation.unverified()
    }

    /// Returns the number of columns that the conditions read, at least 1.
    pub fn columns(&self) -> u64 {
        self.evaluation.columns().max(1) as u64
    }

    /// Returns how far the search is, and how many rows it will find if those to come match as often.
    pub fn so_far(&self) -> SoFar {
        let all = self.evaluation.rows;
        let rows = self.counts.progress().done.saturating_mul(GRAIN).min(all);
        let (first, found) = self.counts.with_first(|counts| {
            let found: u64 = counts.iter().map(|count| u64::from(*count)).sum();
            ((counts.len() as u64).saturating_mul(GRAIN).min(all), found)
        });
        let expected = found as f64 / first.max(1) as f64 * all as f64;
        SoFar { rows, expected: expected as u64 }
    }

    /// Returns the progress of the search.
    pub fn progress(&self) -> PassProgress {
        self.counts.progress()
    }

    /// Returns the work done so far. `None`: no work yet.
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

/// The rows found by a selection.
#[derive(Debug)]
pub struct Selected {
    evaluation: Arc<Evaluation>,
    /// Number of rows found before each block, and their total.
    starts: Vec<u64>,
    /// Whole rows that were read for several columns.
    whole: Cache<picked::StretchKey, Option<picked::Picked>>,
}

/// Successive rows of the table, some of which were found.
#[derive(Clone, Debug)]
pub(super) struct SelectionPiece {
    /// First row of the piece, as a row of the table.
    pub first: u64,
    /// Number of rows of the piece.
    pub length: u64,
    /// Which rows of the piece were found. `None`: all.
    pub bits: Option<BooleanBuffer>,
    /// The matches of the piece's block, and the positions of its rows among these. `None`: the whole block matches.
    found: Option<(Arc<Matches>, Range<usize>)>,
}

impl Selected {
    /// Returns the number of rows found.
    pub fn len(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Whether no row was found.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the path of the table.
    pub(super) fn path(&self) -> &str {
        &self.evaluation.path
    }

    /// Locates a range of found rows in the table. Pieces begin and end with a found row.
    pub(super) fn pieces(&self, range: &RowRange, interrupt: &Interrupt) -> Result<Vec<SelectionPiece>, Error> {
        let mut pieces: Vec<SelectionPiece> = Vec::new();
        let mut block = self.starts.partition_point(|start| *start <= range.start).saturating_sub(1);
        while let (Some(&start), Some(&end)) = (self.starts.get(block), self.starts.get(block + 1))
            && start < range.end
        {
            let skip = range.start.saturating_sub(start);
            let take = end.min(range.end).saturating_sub(start + skip);
            if take > 0 {
                let rows = self.evaluation.rows_of(block as u64);
                let piece = if end - start == rows.end - rows.start {
                    SelectionPiece { first: rows.start + skip, length: take, bits: None, found: None }
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

    /// Returns the stored values of a piece's found rows in the column `rows`, if they were kept.
    pub(super) fn values(&self, piece: &SelectionPiece, rows: &dyn Rows) -> Option<Buffer> {
        let (matches, places) = piece.found.as_ref()?;
        self.evaluation.values(matches, rows, places.clone())
    }
}

/// Cuts out the piece that begins with the set bit after `skip` others and has `take` set bits, which must exist.
fn cut(start: u64, matches: Arc<Matches>, skip: u64, take: u64) -> SelectionPiece {
    let mut set = matches.bits.set_indices().skip(skip as usize);
    let first = set.next().unwrap_or(0);
    let last = if take > 1 { set.nth(take as usize - 2).unwrap_or(first) } else { first };
    let length = last + 1 - first;
    let all = length as u64 == take;
    let bits = (!all).then(|| matches.bits.slice(first, length));
    let places = skip as usize..(skip + take) as usize;
    SelectionPiece { first: start + first as u64, length: length as u64, bits, found: Some((matches, places)) }
}
