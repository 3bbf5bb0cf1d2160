//! A text file over columns: `energy.csv`, `energy.txt`, `table.ndjson`, `head.csv`.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use lru::LruCache;
use parking_lot::Mutex;

use super::block::{TextFormat, TextLayout};
use super::content::{Allowance, TextColumn, TextContent};
use super::csv::CsvOptions;
use super::grid::RowBlocks;
use super::index::{self, Index};
use super::streams::BlockReaders;
use crate::learnt::pass::{self, Keeper, Measure, PassProgress};
use crate::source::Interrupt;
use crate::store::{Answer, Error, RowRange, try_memory};
use crate::views::rendered::{BlockCache, BlockKey, RenderedBlock, next_view};
use crate::views::wanted::WantedBytes;
use crate::views::{Effort, Size, UNKNOWN_SIZE, View};

/// Version of the way in which values are written and measured; results kept by another version are ignored.
const VERSION: u32 = 1;

/// A block longer than this is split before it is rendered: the estimated width of its rows was wrong, or there are
/// more rows than blocks of the usual length can count.
const LONGEST_BLOCK: u64 = 4 << 20;

/// Spare bytes of a buffer, so that fixed-width stores need no second allocation.
const MARGIN: usize = 32 << 10;

/// About how many bytes a part of a split block has.
const PART_BYTES: u64 = 1 << 20;

/// Most parts of a split block (a part may be split again).
const MOST_PARTS: u64 = 1024;

/// Number of split blocks to remember (LRU).
const DIVIDED: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// Work that fits in about 5 ms, with small chunks.
const QUICK: Allowance = Allowance { cells: 100_000, bytes: 2 << 20, chunks: 64 };

/// Work allowed for the first rows of a table: people look at that file, with programs that copy as many bytes as
/// `stat` reports. Some tens of milliseconds, once.
const QUICK_HEAD: Allowance = Allowance { cells: 1 << 20, bytes: 16 << 20, chunks: 4096 };

/// A text file over columns of equal length.
pub struct TextView {
    shared: Arc<Shared>,
}

/// The state that work on other threads shares with a view.
struct Shared {
    header: Vec<u8>,
    body: Arc<Body>,
    index: Index,
    allowance: Allowance,
    /// Whether the texts turned out longer than a lookup may read.
    is_long: AtomicBool,
    /// Most bytes of a row, known once labels were considered.
    most_of_row: OnceLock<Option<u64>>,
    divided: Mutex<LruCache<(u64, u64), Arc<Divided>>>,
    streams: Mutex<BlockReaders>,
}

/// Rows of the file, and their blocks.
struct Body {
    id: u64,
    content: TextContent,
    grid: RowBlocks,
    cache: Arc<BlockCache>,
}

/// A block split into parts.
struct Divided {
    grid: RowBlocks,
    /// Offset of each part within the block, and the end of the last.
    offsets: Vec<u64>,
}

/// Rows that are rendered together.
#[derive(Clone, Debug)]
struct Unit {
    rows: RowRange,
    /// First byte of the unit, counted from the end of the header.
    start: u64,
    length: u64,
}

impl Measure<u64> for Body {
    fn measure(&self, blocks: Range<usize>, interrupt: &Interrupt) -> Result<Vec<u64>, Error> {
        match self.fixed_row() {
            Some(width) => Ok(blocks
                .map(|block| self.grid.rows_of(block))
                .map(|rows| (rows.end - rows.start).saturating_mul(width))
                .collect()),
            None => match self.kept_lengths(blocks.clone(), interrupt)? {
                Some(lengths) => Ok(lengths),
                None => self.content.lengths(&self.grid, blocks, interrupt),
            },
        }
    }
}

/// Returns the keeper for the lengths of a file's blocks: they depend on the cut into blocks, on all options for
/// values, and on the version of the renderer.
fn keeper_of(keeper: Keeper, format: TextFormat, csv: &CsvOptions, content: &TextContent, grid: &RowBlocks) -> Keeper {
    let (rows, per_block) = (content.rows, grid.per_block());
    let options = match format {
        TextFormat::Csv if !csv.is_usual() => format!(" {:?} {:?}", char::from(csv.separator()), csv.null()),
        _ => String::new(),
    };
    keeper.with(format_args!("text-{format:?} {VERSION} rows {rows} by {per_block}{options}"))
}

impl Body {
    /// Returns the bytes of a row, if all rows have equally many.
    fn fixed_row(&self) -> Option<u64> {
        let width = self.content.width;
        width.most.filter(|&most| most == width.least)
    }

    fn key(&self, rows: &RowRange) -> BlockKey {
        (self.id, rows.start, rows.end - rows.start)
    }

    /// Returns the bytes of blocks that are measured by rendering them. `None`: other blocks. Rendered bytes stay in
    /// the cache unless they would evict another block: a request for the exact size is usually followed by a read.
    fn kept_lengths(&self, blocks: Range<usize>, interrupt: &Interrupt) -> Result<Option<Vec<u64>>, Error> {
        let mut lengths = Vec::with_capacity(blocks.len());
        for rows in blocks.map(|block| self.grid.rows_of(block)) {
            let expected = lengths.last().map_or(0, |length: &u64| (*length).min(LONGEST_BLOCK) as usize);
            let mut text = self.cache.has_room(expected).then(|| Vec::with_capacity(expected + expected / 32));
            let length = self.content.terminated_length(rows.clone(), interrupt, |piece| match &mut text {
                Some(kept) if kept.len() + piece.len() <= LONGEST_BLOCK as usize => kept.extend_from_slice(piece),
                _ => text = None,
            });
            let Some(length) = length? else { return Ok(None) };
            if let Some(mut text) = text {
                text.shrink_to(text.len() + text.len() / 8);
                self.cache.offer(self.key(&rows), &Arc::new(text));
            }
            lengths.push(length);
        }
        Ok(Some(lengths))
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.cache.forget(self.id);
    }
}

impl TextView {
    /// Returns a file of `format` over `columns`, which have equal lengths (the shortest counts), cut to the first
    /// `limit` rows if there is a limit. `cache` keeps rendered blocks, `keeper` the offsets of blocks. Reads nothing.
    pub fn new(
        columns: Vec<TextColumn>,
        format: TextFormat,
        csv: &Arc<CsvOptions>,
        limit: Option<u64>,
        cache: Arc<BlockCache>,
        keeper: Option<Keeper>,
    ) -> Self {
        let header = TextLayout::header(format, csv, columns.iter().flat_map(TextColumn::names));
        let content = TextContent::new(columns, format, csv, limit);
        let grid = RowBlocks::choose(content.rows, content.estimate, content.natural);
        let (blocks, per_step) = (grid.blocks(), content.blocks_per_step(&grid));
        let keeper = keeper.map(|keeper| keeper_of(keeper, format, csv, &content, &grid));
        let body = Arc::new(Body { id: next_view(), content, grid, cache });
        let shared = Shared {
            header,
            index: Index::new(blocks, per_step, Arc::clone(&body) as Arc<dyn Measure<u64>>, keeper),
            allowance: if limit.is_some() { QUICK_HEAD } else { QUICK },
            is_long: AtomicBool::new(false),
            most_of_row: OnceLock::new(),
            body,
            divided: Mutex::new(LruCache::new(DIVIDED)),
            streams: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the number of threads that wait for the pass that finds the size.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.shared.index.waiting()
    }

    /// Returns the number of rows shown.
    pub fn rows(&self) -> u64 {
        self.shared.body.content.rows
    }
}

impl std::fmt::Debug for TextView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextView").field("content", &self.shared.body.content).finish_non_exhaustive()
    }
}

impl View for TextView {
    fn size(&self, effort: Effort, interrupt: &Interrupt) -> Result<Size, Error> {
        let shared = &self.shared;
        let header = shared.header.len() as u64;
        if let Some(known) = shared.known_size() {
            return Ok(Size::Exact(header.saturating_add(known)));
        }
        let known = match effort {
            Effort::Known | Effort::Free => None,
            Effort::Quick => match shared.index.found() {
                None if shared.is_quick() => {
                    if let Some(lengths) = shared.quick_lengths(interrupt)? {
                        shared.index.record(0, lengths);
                    }
                    shared.index.total()
                }
                found => found,
            },
            Effort::Exact | Effort::Prepared => Some(shared.index.measured(interrupt)?),
        };
        Ok(match known {
            Some(bytes) => Size::Exact(header.saturating_add(bytes)),
            None => Size::AtMost(shared.largest_size(effort, interrupt)?),
        })
    }

    fn progress(&self) -> Option<PassProgress> {
        let shared = &self.shared;
        let arithmetic = shared.body.content.rows == 0 || shared.body.fixed_row().is_some();
        (!arithmetic).then(|| shared.index.progress())
    }

    fn gather(&self, offset: u64, length: usize, answer: &mut Answer, interrupt: &Interrupt) -> Result<(), Error> {
        let shared = &self.shared;
        let header = shared.header.len() as u64;
        let mut wanted = WantedBytes::new(offset, length, answer);
        wanted.take(0, &shared.header);
        while let Some(at) = wanted.next().and_then(|at| at.checked_sub(header)) {
            let Some(unit) = shared.unit_at(at, interrupt)? else { break };
            let block = shared.block(&unit, interrupt)?;
            if wanted.take(header.saturating_add(unit.start), &block) == 0 {
                break;
            }
            shared.read_ahead(&unit);
        }
        Ok(())
    }
}

impl Shared {
    /// Returns the bytes after the header, if they are known or arithmetic.
    fn known_size(&self) -> Option<u64> {
        let body = &self.body;
        if body.content.rows == 0 {
            return Some(0);
        }
        if let Some(width) = body.fixed_row() {
            return body.content.rows.checked_mul(width);
        }
        self.index.total()
    }

    /// Returns an upper bound of the size; reads no values and few labels.
    fn largest_size(&self, effort: Effort, interrupt: &Interrupt) -> Result<u64, Error> {
        let content = &self.body.content;
        if effort == Effort::Quick && self.most_of_row.get().is_none() {
            let most = match content.most_of_row(&self.allowance, interrupt) {
                Err(error @ Error::Interrupted(_)) => return Err(error),
                // A reader of the labels will see the error.
                other => other.unwrap_or(content.width.most),
            };
            self.most_of_row.get_or_init(|| most);
        }
        let most = self.most_of_row.get().copied().unwrap_or(content.width.most);
        let all = most.and_then(|most| most.checked_mul(content.rows)?.checked_add(self.header.len() as u64));
        Ok(all.unwrap_or(UNKNOWN_SIZE).min(UNKNOWN_SIZE))
    }

    fn is_quick(&self) -> bool {
        !self.is_long.load(Ordering::Relaxed) && self.body.content.is_quick(&self.allowance)
    }

    /// Returns the lengths of all blocks. `None`: the texts are longer than a lookup may read.
    fn quick_lengths(&self, interrupt: &Interrupt) -> Result<Option<Vec<u64>>, Error> {
        if !self.body.content.fits(self.allowance.bytes, interrupt)? {
            self.is_long.store(true, Ordering::Relaxed);
            return Ok(None);
        }
        self.body.measure(0..self.body.grid.blocks(), interrupt).map(Some)
    }

    /// Returns the rows to render for byte `offset`, counted from the end of the header. `None`: `offset` lies past the
    /// end.
    fn unit_at(&self, offset: u64, interrupt: &Interrupt) -> Result<Option<Unit>, Error> {
        let located = match self.index.locate(offset) {
            Some(located) => Some(located),
            None if self.grow(offset, interrupt)? => self.index.locate(offset),
            None => self.index.ensure(offset, interrupt)?,
        };
        let Some(located) = located else { return Ok(None) };
        let rows = self.body.grid.rows_of(located.block);
        let mut unit = Unit { rows, start: located.start, length: located.length };
        while unit.length > LONGEST_BLOCK && unit.rows.end - unit.rows.start > 1 {
            let divided = self.divide(&unit, interrupt)?;
            let Some(part) = index::locate(&divided.offsets, offset - unit.start) else { return Ok(None) };
            unit = Unit { rows: divided.grid.rows_of(part.block), start: unit.start + part.start, length: part.length };
        }
        Ok(Some(unit))
    }

    /// Lets a reader go through a file without a pass if it did not ask for the size: rendering a block determines its
    /// length. Returns whether the block with `offset` is known now.
    fn grow(&self, offset: u64, interrupt: &Interrupt) -> Result<bool, Error> {
        let Some((block, start)) = self.index.frontier() else { return Ok(false) };
        if start != offset {
            return Ok(false);
        }
        let rows = self.body.grid.rows_of(block);
        let count = rows.end - rows.start;
        if count == 0 || self.body.content.estimate.saturating_mul(count) > LONGEST_BLOCK {
            return Ok(false);
        }
        let mut text = Vec::new();
        if !self.body.content.render(rows.clone(), LONGEST_BLOCK as usize, &mut text, interrupt)? {
            return Ok(false);
        }
        self.index.record(block, vec![text.len() as u64]);
        self.body.cache.insert(self.body.key(&rows), &Arc::new(text));
        Ok(true)
    }

    fn divide(&self, unit: &Unit, interrupt: &Interrupt) -> Result<Arc<Divided>, Error> {
        let key = (unit.rows.start, unit.rows.end);
        if let Some(divided) = self.divided.lock().get(&key) {
            return Ok(Arc::clone(divided));
        }
        let parts = (unit.length / PART_BYTES).clamp(2, MOST_PARTS);
        let grid = RowBlocks::divide(unit.rows.clone(), parts);
        let lengths = self.body.content.lengths(&grid, 0..grid.blocks(), interrupt)?;
        let mut offsets = vec![0];
        offsets.extend(lengths.iter().scan(0_u64, |end, &length| {
            *end = end.saturating_add(length);
            Some(*end)
        }));
        let divided = Arc::new(Divided { grid, offsets });
        self.divided.lock().put(key, Arc::clone(&divided));
        Ok(divided)
    }

    fn block(&self, unit: &Unit, interrupt: &Interrupt) -> Result<RenderedBlock, Error> {
        let limit = self.body.cache.longest_block();
        if unit.length > limit {
            return Err(Error::TooLarge {
                path: "text".into(),
                what: format!("the text of row {}", unit.rows.start),
                bytes: unit.length,
                limit,
                option: "--cache-size",
            });
        }
        self.body.cache.get_or_render(self.body.key(&unit.rows), interrupt, |mut text| {
            try_memory(unit.length)?;
            text.reserve(usize::try_from(unit.length.min(LONGEST_BLOCK)).unwrap_or(0) + MARGIN);
            self.body.content.render(unit.rows.clone(), usize::MAX, &mut text, interrupt)?;
            if text.len() as u64 != unit.length {
                let reason = format!(
                    "rows {}..{} took {} bytes before and {} now",
                    unit.rows.start,
                    unit.rows.end,
                    unit.length,
                    text.len()
                );
                return Err(Error::unsupported("text", reason));
            }
            Ok(text)
        })
    }

    /// Renders the next blocks of a sequential reader on other cores.
    fn read_ahead(self: &Arc<Self>, unit: &Unit) {
        let Some(ahead) = self.streams.lock().touch(unit.start, unit.length, false) else { return };
        // One block per core suffices, since the reader itself computes nothing.
        let count = ahead.blocks.min(pass::threads());
        let mut next = unit.start + unit.length;
        for _ in 0..count {
            let Some(located) = self.index.locate(next) else { return };
            let rows = self.body.grid.rows_of(located.block);
            if located.start != next || located.length > LONGEST_BLOCK {
                return;
            }
            let unit = Unit { rows, start: located.start, length: located.length };
            next += located.length;
            if self.body.cache.expects(&self.body.key(&unit.rows)) {
                continue;
            }
            let shared = Arc::downgrade(self);
            pass::spawn(move || {
                if let Some(shared) = shared.upgrade()
                    && !shared.body.cache.expects(&shared.body.key(&unit.rows))
                {
                    // A reader of the block will see the error itself.
                    drop(shared.block(&unit, &Interrupt::new()));
                }
            });
        }
    }
}
