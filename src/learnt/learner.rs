//! Learns the statistics of a column from arrays decoded for other purposes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock, Weak};

use arrow_array::Array;
use arrow_schema::DataType;
use parking_lot::Mutex;

use super::ranges::DisjointRanges;
use crate::catalogue::ColumnId;
use crate::source::Interrupt;
use crate::store::statistics::{self, BlockSummaries, GRAIN, ScalarKind, Statistics, Summary, format};
use crate::store::{Blocked, Cuts, Error, Nan, Opening, Rows};

/// Most disjoint stretches of rows to record. Random reads of single rows teach little and would fill memory.
const MOST_RANGES: usize = 4096;

/// Most blocks of a column with statistics: their bytes take 64 MiB and more.
const MOST_BLOCKS: u64 = 1 << 22;

/// Rows whose summaries are requested before adding them.
const ASKED_AT_ONCE: u64 = 1024 * GRAIN;

/// Learns the statistics of one column, block by block, from every decoded array of it. Each row counts once, however
/// often and in whatever order rows are read.
///
/// # Published statistics
/// The bytes under a name never change while its mtime stands. A file that publishes statistics uses
/// [`Learner::shown`]: the first call decides once for a column of a source in a store (that is, a mount), and facts
/// learnt later appear in the next mount. Code that merely skips work by statistics uses [`Learner::known`].
#[derive(Debug)]
pub struct Learner {
    path: String,
    reading: ColumnReading,
    /// Its blocks, if the column is cut; few columns are, and a table may have very many.
    cut: Option<Box<Blocked>>,
    kind: ScalarKind,
    /// The opening that keeps it. Weak, since an opening lists its learners.
    opening: Weak<Opening>,
    complete: OnceLock<Arc<Statistics>>,
    shown: OnceLock<Option<Arc<Statistics>>>,
    /// Whether the cache folder was consulted.
    asked: OnceLock<()>,
    /// Whether the cache folder has the statistics.
    kept: OnceLock<bool>,
    /// Allocated when something is learnt: a table may have very many columns.
    state: Mutex<Option<Box<State>>>,
}

/// The form in which a column is read: two dialects may show one column with different types or nulls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ColumnReading {
    column: ColumnId,
    rows: u64,
    data_type: DataType,
    nullable: bool,
    /// The meaning of NaN, for floats.
    nan: Nan,
    /// Digest of the cuts; 0: not cut.
    cuts: u64,
}

impl ColumnReading {
    pub fn new(column: ColumnId, rows: &dyn Rows) -> Self {
        Self {
            column,
            rows: rows.len(),
            data_type: rows.data_type().clone(),
            nullable: rows.nullable(),
            nan: if rows.data_type().is_floating() { rows.hints().nan } else { Nan::Value },
            cuts: rows.cuts().map_or(0, Cuts::digest),
        }
    }
}

#[derive(Debug)]
struct State {
    /// Rows whose values are in `blocks` or `partial`.
    seen: DisjointRanges,
    /// Blocks of which only some rows are known.
    partial: BTreeMap<u64, Summary>,
    blocks: BlockSummaries,
}

impl Learner {
    /// A learner for the rows of a column, displayed as `path`; `None` for types without an order, and for columns that
    /// are too long.
    pub fn new(opening: &Weak<Opening>, path: &str, column: ColumnId, rows: &dyn Rows) -> Option<Self> {
        let reading = ColumnReading::new(column, rows);
        let kind = ScalarKind::of(&reading.data_type)?;
        let blocked = Blocked::new(reading.rows, GRAIN, rows.cuts());
        if blocked.count() > MOST_BLOCKS {
            return None;
        }
        let complete = OnceLock::new();
        if reading.rows == 0 {
            complete.set(Arc::new(Statistics::new(BlockSummaries::new(kind, blocked.clone())))).ok();
        }
        Some(Self {
            path: path.to_owned(),
            reading,
            cut: rows.cuts().map(|_| Box::new(blocked)),
            kind,
            opening: opening.clone(),
            complete,
            shown: OnceLock::new(),
            asked: OnceLock::new(),
            kept: OnceLock::new(),
            state: Mutex::default(),
        })
    }

    /// Key of the statistics in the cache folder. The path is not part of it.
    fn what(&self) -> String {
        let ColumnReading { column, rows, data_type, nullable, nan, cuts } = &self.reading;
        let nulls = match (nan, nullable) {
            (Nan::Missing { .. }, _) => " or missing as NaN",
            (Nan::Value, true) => " or missing",
            (Nan::Value, false) => "",
        };
        let cuts = if *cuts == 0 { String::new() } else { format!(" cut {cuts:016x}") };
        format!("{column:?} {rows} {data_type}{nulls}{cuts} statistics {}", format::VERSION)
    }

    /// The form of the values that it learns.
    pub(super) fn reading(&self) -> &ColumnReading {
        &self.reading
    }

    fn blocked(&self) -> Blocked {
        self.cut.as_deref().cloned().unwrap_or_else(|| Blocked::new(self.rows(), GRAIN, None))
    }

    fn new_state(&self) -> Box<State> {
        let blocks = BlockSummaries::new(self.kind, self.blocked());
        Box::new(State { seen: DisjointRanges::default(), partial: BTreeMap::new(), blocks })
    }

    /// HDF5 path of the column.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Rows of the column.
    pub fn rows(&self) -> u64 {
        self.reading.rows
    }

    /// Whether it has no more rows than a block, as very many columns of a file may have.
    pub(super) fn is_small(&self) -> bool {
        self.reading.rows <= GRAIN
    }

    /// Whether some file publishes its statistics.
    pub(super) fn is_shown(&self) -> bool {
        self.shown.get().is_some_and(Option::is_some)
    }

    /// The kind of the column's values.
    pub fn kind(&self) -> ScalarKind {
        self.kind
    }

    /// Number of complete blocks, and of all blocks.
    pub fn progress(&self) -> (u64, u64) {
        let all = self.blocked().count();
        let learnt = self.state.lock().as_ref().map_or(0, |state| state.blocks.known());
        if self.known().is_some() { (all, all) } else { (learnt, all) }
    }

    /// The statistics, once every block is known: learnt, or found in the cache folder, which the first call consults.
    pub fn known(&self) -> Option<Arc<Statistics>> {
        if let Some(known) = self.complete.get() {
            return Some(known.clone());
        }
        self.asked.get_or_init(|| self.load());
        self.complete.get().cloned()
    }

    /// Whether the statistics, once known, are in the cache folder.
    pub fn is_kept(&self) -> bool {
        self.reading.rows == 0 || self.kept.get().is_some_and(|kept| *kept)
    }

    /// The statistics that files publish: those known at the first call. See the type's documentation.
    pub fn shown(&self) -> Option<Arc<Statistics>> {
        let shown = self.shown.get_or_init(|| {
            let known = self.known();
            let Some(opening) = self.opening.upgrade() else { return known };
            let shows = opening.shows(&self.what(), known.is_some());
            known.filter(|_| shows)
        });
        shown.clone()
    }

    /// Learns from an array of the column's rows from `start` on. Costs next to nothing if they are known.
    pub fn observe(&self, start: u64, array: &dyn Array) {
        self.add(start, array.len(), false, &|part| of_part(array, part));
    }

    /// As [`Learner::observe`], for a pass over all rows.
    pub(super) fn observe_all(&self, start: u64, array: &dyn Array) {
        self.add(start, array.len(), true, &|part| of_part(array, part));
    }

    /// Learns `length` rows from `start` on, as [`Learner::observe`]. `summary` summarises parts of them, counted from
    /// the first row; it is called only for unknown parts.
    pub(super) fn observe_by(&self, start: u64, length: usize, summary: &dyn Fn(Range<usize>) -> Option<Summary>) {
        self.add(start, length, false, summary);
    }

    /// Whether these rows are completely known.
    pub(super) fn has_seen(&self, rows: &Range<u64>) -> bool {
        let state = self.state.lock();
        self.complete.get().is_some() || state.as_ref().is_some_and(|state| state.seen.missing(rows).is_empty())
    }

    /// Learns the [summaries](crate::store::Summaries::summary) that `rows`, for which it was made, provide without
    /// reading values.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; rows that fail are skipped.
    pub fn ask(&self, rows: &dyn Rows, interrupt: &Interrupt) -> Result<(), Error> {
        let told = |rows_of: Range<u64>| rows.known()?.summary(rows_of, interrupt).ok().flatten();
        if self.known().is_some() || rows.len() != self.rows() || told(0..1).is_none() {
            return Ok(interrupt.check()?);
        }
        for start in (0..self.rows()).step_by(ASKED_AT_ONCE as usize) {
            interrupt.check()?;
            let end = self.rows().min(start.saturating_add(ASKED_AT_ONCE));
            self.add(start, (end - start) as usize, true, &|part: Range<usize>| {
                told(start + part.start as u64..start + part.end as u64)
            });
        }
        Ok(())
    }

    fn add(&self, start: u64, length: usize, whole: bool, summary: &dyn Fn(Range<usize>) -> Option<Summary>) {
        let rows = start..start.saturating_add(length as u64);
        if rows.is_empty() || rows.end > self.reading.rows || self.known().is_some() {
            return;
        }
        // Compares values without holding the lock, then checks what another thread added meanwhile.
        loop {
            let missing = {
                let mut state = self.state.lock();
                // Only an incomplete learner has a state.
                if self.complete.get().is_some() {
                    return;
                }
                let state = state.get_or_insert_with(|| self.new_state());
                let full = state.seen.count() >= MOST_RANGES;
                if full && !whole && !state.seen.joins(&rows) { Vec::new() } else { state.seen.missing(&rows) }
            };
            if missing.is_empty() {
                return;
            }
            let mut summaries = Vec::new();
            for piece in missing.iter().flat_map(|rows| self.by_block(rows)) {
                // Positions within the observed rows.
                let part = (piece.start - rows.start) as usize..(piece.end - rows.start) as usize;
                let length = part.len() as u64;
                let Some(summary) = summary(part).filter(|summary| summary.rows == length) else { return };
                summaries.push((piece, summary));
            }
            if let Some(complete) = self.merge(summaries) {
                self.keep(&complete);
                return;
            }
        }
    }

    /// A range, cut at block boundaries.
    pub(super) fn by_block(&self, range: &Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let (range, blocked) = (range.clone(), self.blocked());
        blocked.blocks_of(&range).map(move |block| {
            let block = blocked.rows_of(block);
            range.start.max(block.start)..range.end.min(block.end)
        })
    }

    /// Adds summaries of pieces of blocks; skips pieces with rows added meanwhile. Returns the statistics if these were
    /// the last pieces: they are [known](Learner::known) before another thread can add rows.
    fn merge(&self, summaries: Vec<(Range<u64>, Summary)>) -> Option<Arc<Statistics>> {
        let (mut counted, blocked) = ((0, 0), self.blocked());
        let mut known = self.state.lock();
        if self.complete.get().is_some() {
            return None;
        }
        let state = known.get_or_insert_with(|| self.new_state());
        let before = state.blocks.known();
        for (piece, summary) in summaries {
            if !state.seen.is_free(&piece) {
                continue;
            }
            counted.0 += piece.end - piece.start;
            let block = blocked.block_of(piece.start);
            let of_block = blocked.rows_of(block);
            state.seen.insert(piece);
            let summary = match state.partial.remove(&block) {
                Some(partial) => partial.merge(summary),
                None => summary,
            };
            if summary.rows == of_block.end - of_block.start {
                state.blocks.set(block, summary.without_long_text());
            } else {
                state.partial.insert(block, summary);
            }
        }
        counted.1 = state.blocks.known() - before;
        if let Some(opening) = self.opening.upgrade() {
            let counters = opening.store().counters();
            counters.rows_observed.add(counted.0);
            counters.blocks_learnt.add(counted.1);
        }
        if !state.blocks.is_complete() || counted.1 == 0 {
            return None;
        }
        // Statistics of a file that has changed since are discarded.
        if self.opening.upgrade().is_some_and(|opening| opening.check().is_err()) {
            return None;
        }
        let blocks = std::mem::replace(&mut state.blocks, BlockSummaries::new(self.kind, self.blocked()));
        let complete = self.complete.get_or_init(|| Arc::new(Statistics::new(blocks))).clone();
        *known = None;
        Some(complete)
    }

    fn keep(&self, complete: &Statistics) {
        let Some(opening) = self.opening.upgrade() else { return };
        let kept = opening.may_keep(self.is_small()) && opening.keep(&self.what(), &format::encode(&complete.blocks));
        self.kept.set(kept).ok();
        opening.store().counters().statistics_kept.add(u64::from(kept));
    }

    fn load(&self) {
        let Some(opening) = self.opening.upgrade() else { return };
        let what = self.what();
        let kept = if self.is_small() { opening.kept_of_few(&what) } else { opening.kept(&what) };
        let blocks = kept.and_then(|bytes| format::decode(&bytes, self.kind, &self.blocked()));
        if let Some(blocks) = blocks {
            opening.store().counters().statistics_loaded.add(1);
            self.kept.set(true).ok();
            self.complete.set(Arc::new(Statistics::new(blocks))).ok();
        }
    }
}

/// The summary of a part of an array.
fn of_part(array: &dyn Array, part: Range<usize>) -> Option<Summary> {
    if part.len() == array.len() {
        statistics::summary(array)
    } else {
        statistics::summary(&array.slice(part.start, part.len()))
    }
}
