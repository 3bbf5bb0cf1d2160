//! Where everything lies in the file: arithmetic over the number of rows and what is known of each leaf column.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::thrift::LARGEST;
use super::thrift::page::Header;
use crate::store::{Blocked, Cuts, RowRange};

/// Rows of a row group at least: readers fetch whole column chunks, so this is the grain of most reads.
const LEAST_ROWS: u64 = 131_072;

/// Bytes of whole rows of a row group at most, where columns are fields of one dataset: an engine asks for one column
/// chunk after the other, and what was decoded for the first must still be there for the last.
const STRIDDEN_BYTES: u64 = 32 << 20;

/// Rows of a row group for each label or number of a dictionary, at least: each row group has its own.
pub(super) const ROWS_PER_LABEL: u64 = 8;

/// Rows of a row group at most, for the sake of its dictionaries.
const MOST_LABELLED: u64 = 1 << 19;

/// Rows of a row group at most: a page of 8-byte values has 128 MiB then, far below what a page header can say.
const MOST_ROWS: u64 = 16 << 20;

/// Column chunks of all row groups at most, unless row groups have [`MOST_ROWS`]: each costs some 200 bytes of footer.
const MOST_CHUNKS: u64 = 50_000;

/// The same of fields of one dataset: a longer footer is read once, a row group that is not kept once for each field.
const MOST_STRIDDEN_CHUNKS: u64 = 8 * MOST_CHUNKS;

/// Row groups of rows that are [cut](Cuts), whatever bytes they have, at most. DuckDB reads 1 MB for each list column
/// of each row group, however short this is.
const MOST_SHORT: u64 = 256;

/// Bytes of whole rows, about, up to which runs of rows share a row group where there would be more.
const SHARED_BYTES: u64 = 1 << 20;

/// Column chunks of all row groups at most where rows are cut: beyond, runs of rows share longer ones.
const MOST_CUT_CHUNKS: u64 = 2 * MOST_CHUNKS;

/// Bytes of a page at most, where it is rendered whole; a single value may be longer.
pub(super) const PAGE_BYTES: u64 = 1 << 20;

/// Bytes of a page of cells at most: those of [`MOST_ROWS`] 8-byte values.
const CELLS_BYTES: u64 = 8 * MOST_ROWS;

/// A page of cells with at least this many bytes begins on a boundary of [`ALIGNMENT`]: the gap is at most 6 % then.
const WORTH_ALIGNING: u64 = 64 << 10;

/// A page of memory.
const ALIGNMENT: u64 = 4096;

/// The bytes before everything else: `PAR1`.
const MAGIC: u64 = 4;

/// What the rows of a file take.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RowSizes {
    /// Leaf columns.
    pub leaves: usize,
    /// Bytes of a row, about.
    pub width: u64,
    /// The longest [stride](crate::store::Rows::stride).
    pub stride: u64,
    /// Labels of the longest dictionary.
    pub labels: u64,
}

/// Row groups: of equal length but for the last, and for those before a cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Groups {
    blocked: Blocked,
    /// Where row groups end, however many rows they have.
    pub cuts: Option<Cuts>,
    /// Numbers of rows of groups that are shorter than others, each once.
    short: Arc<[u64]>,
}

impl Groups {
    /// Groups of `per_group` rows, a power of two.
    pub fn new(rows: u64, per_group: u64, cuts: Option<Cuts>) -> Self {
        let blocked = Blocked::new(rows, per_group, cuts.as_ref());
        let first = if blocked.is_cut() { 0 } else { blocked.count().saturating_sub(1) };
        let lengths = (first..blocked.count()).map(|group| blocked.rows_of(group)).map(|rows| rows.end - rows.start);
        let short: BTreeSet<u64> = lengths.filter(|rows| *rows < per_group).collect();
        Self { blocked, cuts, short: short.into_iter().collect() }
    }

    /// Groups for a file of these leaf columns. Runs of rows between `cuts` have groups of their own, or, where these
    /// would be too many, share them as a whole.
    pub fn choose(rows: u64, sizes: &RowSizes, cuts: Option<&Cuts>) -> Self {
        let RowSizes { leaves, width, stride, labels } = *sizes;
        let fitting = (STRIDDEN_BYTES / stride.max(1)).max(1);
        // More labels are texts, as a rule: a dictionary would be longer than they are.
        let for_labels = if labels > MOST_LABELLED / ROWS_PER_LABEL { 0 } else { labels * ROWS_PER_LABEL };
        let mut per_group = for_labels.next_power_of_two().max(LEAST_ROWS).min(1 << fitting.ilog2());
        let most = if stride > 0 { MOST_STRIDDEN_CHUNKS } else { MOST_CHUNKS };
        while per_group < MOST_ROWS && rows.div_ceil(per_group).saturating_mul(leaves as u64) > most {
            per_group *= 2;
        }
        let mut groups = Self::new(rows, per_group, cuts.cloned());
        let are_many = |groups: &Self| groups.count().saturating_mul(leaves as u64) > MOST_CUT_CHUNKS;
        if let Some(cuts) = cuts.filter(|_| groups.count() > MOST_SHORT || are_many(&groups)) {
            let mut shared = (SHARED_BYTES / width.max(1)).clamp(1, per_group);
            groups = Self::new(rows, per_group, cuts.joined(shared));
            while shared < per_group && are_many(&groups) {
                shared = (2 * shared).min(per_group);
                groups = Self::new(rows, per_group, cuts.joined(shared));
            }
        }
        groups
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.blocked.rows()
    }

    /// Rows of a group at most.
    pub fn per_group(&self) -> u64 {
        self.blocked.per_block()
    }

    /// Rows of a group as a rule.
    pub fn typical(&self) -> u64 {
        match self.blocked.is_cut() {
            true => self.rows() / self.count().max(1),
            false => self.per_group(),
        }
    }

    /// Number of groups.
    pub fn count(&self) -> u64 {
        self.blocked.count()
    }

    /// Rows of one group.
    pub fn rows_of(&self, group: u64) -> RowRange {
        self.blocked.rows_of(group)
    }
}

/// What the layout knows of a leaf column.
#[derive(Clone, Debug)]
pub(super) struct LeafSize {
    /// Bytes of its dictionary page with the header, at the start of each chunk; 0 where it has none.
    pub dictionary: u64,
    /// Its data pages.
    pub pages: Pages,
}

/// The data pages of a leaf column.
#[derive(Clone, Debug)]
pub(super) enum Pages {
    /// Every page has its slot.
    Slots(Slots),
    /// They were measured.
    Measured(Arc<Measured>),
}

impl Pages {
    /// Bytes of the longest, its header among them.
    pub fn longest(&self) -> u64 {
        match self {
            Pages::Slots(slots) => slots.bytes,
            Pages::Measured(measured) => measured.longest,
        }
    }

    /// What their headers are like.
    pub fn header(&self) -> Header {
        match self {
            Pages::Slots(slots) => slots.header,
            Pages::Measured(measured) => measured.header(),
        }
    }
}

/// Pages of equal length; the last one of a group may be shorter.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    /// Rows of a page: a power of two, at most those of a group.
    pub rows: u64,
    /// Bytes of a page with header and padding.
    pub bytes: u64,
    /// What headers are like.
    pub header: Header,
    /// Values for each row.
    pub entries: u64,
    /// Bytes of a page before the first row's place, without its header; `None` where rows have none.
    lead: Option<u64>,
    /// Shorter pages.
    short: Box<[ShortPage]>,
}

/// The page that ends a short row group.
#[derive(Clone, Copy, Debug)]
struct ShortPage {
    rows: u64,
    /// As of [`Slots`].
    bytes: u64,
    lead: Option<u64>,
}

/// The bodies of a leaf's pages, by their number of rows.
pub(super) trait Bodies {
    /// Bytes at most, which grow with the rows; `None` where that is not known.
    fn most(&self, rows: u64) -> Option<u64>;
    /// Headers: without padding where there are always that many.
    fn header(&self) -> Header;
    /// Values for each row.
    fn entries(&self) -> u64;
    /// Bytes before the first row's place; `None` where rows have none.
    fn lead(&self, rows: u64) -> Option<u64>;
}

impl Slots {
    /// Slots for such pages. `None` where even one row's takes more than [`PAGE_BYTES`] and might take much less, or
    /// where nothing is known. Exact bodies need no padding.
    pub fn new(groups: &Groups, bodies: &impl Bodies) -> Option<Self> {
        let header = bodies.header();
        let exact = !header.is_padded();
        let limit = if bodies.lead(1).is_some() { CELLS_BYTES } else { PAGE_BYTES };
        let mut rows = groups.per_group();
        let fits = |rows| bodies.most(rows).is_some_and(|body| body <= limit);
        while rows > 1 && !fits(rows) {
            rows /= 2;
        }
        // One exact value may be longer than a page should be, as long as its header can say so.
        if !fits(rows) && (!exact || bodies.most(rows)? > i32::MAX as u64) {
            return None;
        }
        let page = |rows| {
            let bytes = bodies.most(rows)?.checked_add(header.bytes())?;
            Some(ShortPage { rows, bytes, lead: bodies.lead(rows) })
        };
        let rests: BTreeSet<u64> = groups.short.iter().map(|group| group % rows).filter(|rest| *rest > 0).collect();
        let short = rests.into_iter().map(page).collect::<Option<_>>()?;
        let ShortPage { bytes, lead, .. } = page(rows)?;
        Some(Self { rows, bytes, header, entries: bodies.entries(), lead, short })
    }

    /// A page of this many rows; `None` where no row group ends with such.
    fn of(&self, rows: u64) -> Option<ShortPage> {
        if rows == self.rows {
            return Some(ShortPage { rows, bytes: self.bytes, lead: self.lead });
        }
        self.short.iter().find(|page| page.rows == rows).copied()
    }

    /// Bytes of a page of this many rows.
    fn page(&self, rows: u64) -> Option<u64> {
        if rows == 0 { Some(0) } else { Some(self.of(rows)?.bytes) }
    }

    fn chunk(&self, rows: u64) -> Option<u64> {
        (rows / self.rows).checked_mul(self.bytes)?.checked_add(self.page(rows % self.rows)?)
    }

    /// Bytes of the page before the first row's place, which begins on a boundary in a chunk of `rows` rows.
    fn aligned(&self, rows: u64) -> Option<u64> {
        let page = self.of(rows.min(self.rows))?;
        if page.bytes >= WORTH_ALIGNING { page.lead?.checked_add(self.header.bytes()) } else { None }
    }
}

/// A page that was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Page {
    /// Rows.
    pub rows: u32,
    /// Bytes of the body.
    pub bytes: u32,
    /// Values, nulls and empty lists among them.
    pub entries: u32,
}

/// The pages of a leaf column as they were measured. Pages that are alike are kept as one run, and so are row groups.
#[derive(Debug, Default)]
pub(super) struct Measured {
    padded: bool,
    runs: Vec<PageRun>,
    kinds: Vec<GroupPages>,
    /// The kind of each group.
    groups: Vec<u32>,
    /// Bytes of the longest page with its header.
    longest: u64,
}

/// Pages of a group that follow each other and are alike.
#[derive(Clone, Copy, Debug)]
struct PageRun {
    /// Number of the first among the pages of the group.
    number: u64,
    /// Its first row within the group.
    row: u32,
    /// Its first byte within the chunk's data pages.
    at: u64,
    /// Rows of each.
    rows: u32,
    /// Bytes of each, with its header.
    bytes: u64,
}

/// All pages of a group.
#[derive(Clone, Debug, Default)]
struct GroupPages {
    runs: Range<usize>,
    pages: u64,
    bytes: u64,
    entries: u64,
    /// The only kind of page, where there is one.
    only: Option<Page>,
}

impl Measured {
    /// Pages, each with how many like it follow each other; `padded` ones may have shorter bodies than was measured.
    /// `None` where they do not cover the rows, group by group.
    pub fn new(groups: &Groups, padded: bool, pages: impl IntoIterator<Item = (Page, u64)>) -> Option<Self> {
        let mut measured = Self { padded, ..Self::default() };
        let header = measured.header().bytes();
        let mut pages = pages.into_iter().filter(|(_, count)| *count > 0);
        let mut next: Option<(Page, u64)> = None;
        for group in 0..groups.count() {
            let range = groups.rows_of(group);
            // At most 2^24.
            let rows = (range.end - range.start) as u32;
            let mut kind = GroupPages { runs: measured.runs.len()..measured.runs.len(), ..GroupPages::default() };
            let mut row = 0;
            while row < rows {
                let (page, left) = match next.take() {
                    Some(next) => next,
                    None => pages.next()?,
                };
                let count = left.min(u64::from((rows - row).checked_div(page.rows)?));
                if count == 0 {
                    return None;
                }
                if count < left {
                    next = Some((page, left - count));
                }
                // Groups are alike where one run of pages passes over them.
                let before = measured.kinds.last().filter(|before| before.only == Some(page) && before.pages == count);
                if row == 0 && before.is_some() && u64::from(page.rows) * count == u64::from(rows) {
                    kind = before.cloned().unwrap_or_default();
                    row = rows;
                    continue;
                }
                let bytes = header + u64::from(page.bytes);
                measured.longest = measured.longest.max(bytes);
                let joins = measured.runs.get(kind.runs.clone()).and_then(<[PageRun]>::last);
                if !joins.is_some_and(|last| last.rows == page.rows && last.bytes == bytes) {
                    measured.runs.push(PageRun { number: kind.pages, row, at: kind.bytes, rows: page.rows, bytes });
                }
                kind.only = if row == 0 || kind.only == Some(page) { Some(page) } else { None };
                kind.runs.end = measured.runs.len();
                kind.pages += count;
                kind.bytes = kind.bytes.checked_add(bytes.checked_mul(count)?)?;
                kind.entries = kind.entries.checked_add(u64::from(page.entries).checked_mul(count)?)?;
                // No more than the rows of the group.
                row += page.rows * count as u32;
            }
            let known = measured.kinds.last().is_some_and(|last| last.runs == kind.runs && !kind.runs.is_empty());
            if !known {
                measured.kinds.push(kind);
            }
            measured.groups.push(u32::try_from(measured.kinds.len() - 1).ok()?);
        }
        (next.is_none() && pages.next().is_none()).then_some(measured)
    }

    fn header(&self) -> Header {
        if self.padded { Header::Padded } else { Header::Exact }
    }

    fn group(&self, group: u64) -> Option<&GroupPages> {
        self.kinds.get(*self.groups.get(usize::try_from(group).ok()?)? as usize)
    }

    /// The run with the page that `is_before` tells the beginnings from of others.
    fn run(&self, group: u64, is_before: impl Fn(&PageRun) -> bool) -> Option<&PageRun> {
        let runs = self.runs.get(self.group(group)?.runs.clone())?;
        runs.get(runs.partition_point(is_before).checked_sub(1)?)
    }

    fn pages(&self, group: u64) -> u64 {
        self.group(group).map_or(0, |group| group.pages)
    }

    fn chunk(&self, group: u64) -> u64 {
        self.group(group).map_or(0, |group| group.bytes)
    }

    fn entries(&self, group: u64) -> u64 {
        self.group(group).map_or(0, |group| group.entries)
    }

    /// The number of the page with byte `at` of the data pages.
    fn number(&self, group: u64, at: u64) -> u64 {
        self.run(group, |run| run.at <= at).map_or(0, |run| run.number + (at - run.at) / run.bytes.max(1))
    }

    /// The first row of a page within the group, its rows, its first byte and its bytes.
    fn page(&self, group: u64, number: u64) -> Option<(u64, u64, u64, u64)> {
        if number >= self.pages(group) {
            return None;
        }
        let run = self.run(group, |run| run.number <= number)?;
        let before = number - run.number;
        let (rows, row) = (u64::from(run.rows), u64::from(run.row));
        Some((row + before * rows, rows, run.at + before * run.bytes, run.bytes))
    }
}

/// A column chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// First byte: of the dictionary page where there is one.
    pub start: u64,
    /// First byte of the data pages.
    pub data: u64,
    /// Bytes of all pages.
    pub bytes: u64,
    /// Values, nulls among them.
    pub entries: u64,
}

/// What a byte of the file belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// `PAR1`.
    Magic,
    /// Nothing, up to this byte.
    Gap(u64),
    /// The dictionary page of a leaf: its first byte, and where data pages begin.
    Dictionary { leaf: usize, start: u64, end: u64 },
    /// A data page.
    Page(PagePlace),
    /// What follows the row groups.
    Footer,
}

/// A data page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PagePlace {
    pub leaf: usize,
    pub rows: RowRange,
    /// First byte of its header.
    pub start: u64,
    /// Bytes with header and padding.
    pub bytes: u64,
}

/// The layout of the row groups.
#[derive(Debug)]
pub(super) struct Layout {
    groups: Groups,
    leaves: Vec<LeafSize>,
    starts: Starts,
    end: u64,
}

#[derive(Debug)]
enum Starts {
    /// All groups are alike but the last: where chunks begin in a group, and the bytes from one group to the next.
    Alike { full: Vec<u64>, last: Vec<u64>, first: u64, stride: u64 },
    /// Where each chunk of each group begins.
    Each(Vec<u64>),
}

impl Layout {
    /// `None` where the file would be too large.
    pub fn new(groups: Groups, leaves: Vec<LeafSize>) -> Option<Self> {
        let is_even = |leaf: &LeafSize| matches!(leaf.pages, Pages::Slots(_));
        let alike = groups.cuts.is_none() && leaves.iter().all(is_even);
        let count = groups.count();
        let (starts, end) = if count == 0 || leaves.is_empty() {
            (Starts::Each(Vec::new()), MAGIC)
        } else if alike {
            let most = groups.per_group().min(groups.rows());
            let is_aligned =
                |leaf: &LeafSize| matches!(&leaf.pages, Pages::Slots(slots) if slots.aligned(most).is_some());
            let aligned = leaves.iter().any(is_aligned);
            // Groups begin on a boundary where a chunk of theirs does; the first chunk of the file keeps off the magic.
            let (first, from) = if aligned { (0, MAGIC) } else { (MAGIC, 0) };
            let (full, full_end) = place(&leaves, &groups, 0, from)?;
            let (last, last_end) = place(&leaves, &groups, count - 1, from)?;
            let stride = if aligned { full_end.checked_next_multiple_of(ALIGNMENT)? } else { full_end };
            let end = stride.checked_mul(count - 1)?.checked_add(first)?.checked_add(last_end)?;
            (Starts::Alike { full, last, first, stride }, end)
        } else {
            let mut starts = Vec::new();
            let mut end = MAGIC;
            for group in 0..count {
                let (places, group_end) = place(&leaves, &groups, group, end)?;
                starts.extend(places);
                end = group_end;
            }
            (Starts::Each(starts), end)
        };
        (end <= LARGEST / 2).then_some(Self { groups, leaves, starts, end })
    }

    /// The same with `bytes` of nothing behind the last page; `None` where the file would be too large.
    pub fn with_gap(mut self, bytes: u64) -> Option<Self> {
        self.end = self.end.checked_add(bytes).filter(|end| *end <= LARGEST / 2)?;
        Some(self)
    }

    /// The row groups.
    pub fn groups(&self) -> &Groups {
        &self.groups
    }

    /// The leaf columns.
    pub fn leaves(&self) -> &[LeafSize] {
        &self.leaves
    }

    /// Where the last page ends, and the gap behind it.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Where chunks of a group begin, counted from a byte of the file.
    fn starts(&self, group: u64) -> (&[u64], u64) {
        match &self.starts {
            Starts::Alike { full, last, first, stride } => {
                let starts = if group + 1 == self.groups.count() { last } else { full };
                (starts, first + group * stride)
            }
            Starts::Each(starts) => {
                let at = usize::try_from(group).unwrap_or(usize::MAX).saturating_mul(self.leaves.len());
                (starts.get(at..at.saturating_add(self.leaves.len())).unwrap_or_default(), 0)
            }
        }
    }

    /// A column chunk.
    pub fn chunk(&self, group: u64, leaf: usize) -> Option<Chunk> {
        let (starts, base) = self.starts(group);
        let (start, size) = (base + starts.get(leaf)?, self.leaves.get(leaf)?);
        let rows = self.groups.rows_of(group);
        let entries = match &size.pages {
            Pages::Slots(slots) => (rows.end - rows.start).saturating_mul(slots.entries),
            Pages::Measured(measured) => measured.entries(group),
        };
        Some(Chunk { start, data: start + size.dictionary, bytes: chunk_bytes(size, &self.groups, group)?, entries })
    }

    fn group_at(&self, offset: u64) -> u64 {
        match &self.starts {
            Starts::Alike { first, stride, .. } => {
                (offset.saturating_sub(*first) / stride.max(&1)).min(self.groups.count().saturating_sub(1))
            }
            Starts::Each(starts) => {
                let chunk = starts.partition_point(|&start| start <= offset).saturating_sub(1);
                (chunk / self.leaves.len().max(1)) as u64
            }
        }
    }

    /// What a byte belongs to.
    pub fn locate(&self, offset: u64) -> Place {
        if offset < MAGIC {
            return Place::Magic;
        }
        if offset >= self.end {
            return Place::Footer;
        }
        let group = self.group_at(offset);
        let (starts, base) = self.starts(group);
        let relative = offset.saturating_sub(base);
        // Where the next chunk begins, that of the next group too.
        let next = |leaf: usize| match starts.get(leaf) {
            Some(start) => base + start,
            None => self.chunk(group + 1, 0).map_or(self.end, |chunk| chunk.start),
        };
        let Some(leaf) = starts.partition_point(|&start| start <= relative).checked_sub(1) else {
            return Place::Gap(next(0));
        };
        let Some((chunk, size)) = self.chunk(group, leaf).zip(self.leaves.get(leaf)) else {
            return Place::Gap(self.end);
        };
        if offset >= chunk.start + chunk.bytes {
            return Place::Gap(next(leaf + 1));
        }
        let Some(at) = offset.checked_sub(chunk.data) else {
            return Place::Dictionary { leaf, start: chunk.start, end: chunk.data };
        };
        let number = match &size.pages {
            Pages::Slots(slots) => at / slots.bytes,
            Pages::Measured(measured) => measured.number(group, at),
        };
        self.page(group, leaf, number).map_or(Place::Gap(self.end), Place::Page)
    }

    /// Data pages of a column chunk.
    pub fn pages(&self, group: u64, leaf: usize) -> u64 {
        let rows = self.groups.rows_of(group);
        match self.leaves.get(leaf).map(|leaf| &leaf.pages) {
            Some(Pages::Slots(slots)) => (rows.end - rows.start).div_ceil(slots.rows),
            Some(Pages::Measured(measured)) => measured.pages(group),
            None => 0,
        }
    }

    /// A data page of a column chunk, by its number among them.
    pub fn page(&self, group: u64, leaf: usize, number: u64) -> Option<PagePlace> {
        let (chunk, size) = self.chunk(group, leaf).zip(self.leaves.get(leaf))?;
        let rows = self.groups.rows_of(group);
        match &size.pages {
            Pages::Slots(slots) => {
                let first =
                    rows.start.checked_add(number.checked_mul(slots.rows)?).filter(|&first| first < rows.end)?;
                let end = first.saturating_add(slots.rows).min(rows.end);
                let bytes = slots.page(end - first)?;
                Some(PagePlace { leaf, rows: first..end, start: chunk.data + number * slots.bytes, bytes })
            }
            Pages::Measured(measured) => {
                let (first, count, start, bytes) = measured.page(group, number)?;
                let first = rows.start + first;
                Some(PagePlace { leaf, rows: first..first + count, start: chunk.data + start, bytes })
            }
        }
    }
}

/// Bytes of a chunk.
fn chunk_bytes(leaf: &LeafSize, groups: &Groups, group: u64) -> Option<u64> {
    let rows = groups.rows_of(group);
    let data = match &leaf.pages {
        Pages::Slots(slots) => slots.chunk(rows.end - rows.start)?,
        Pages::Measured(measured) => measured.chunk(group),
    };
    data.checked_add(leaf.dictionary)
}

/// Where the chunks of a group begin from byte `at` on, and where the last one ends.
fn place(leaves: &[LeafSize], groups: &Groups, group: u64, mut at: u64) -> Option<(Vec<u64>, u64)> {
    let mut starts = Vec::with_capacity(leaves.len());
    let rows = groups.rows_of(group);
    for leaf in leaves {
        let bytes = chunk_bytes(leaf, groups, group)?;
        if let Pages::Slots(slots) = &leaf.pages
            && let Some(lead) = slots.aligned(rows.end - rows.start)
        {
            let before = leaf.dictionary + lead;
            at = at.checked_add(before)?.checked_next_multiple_of(ALIGNMENT)? - before;
        }
        starts.push(at);
        at = at.checked_add(bytes)?;
        if at > LARGEST {
            return None;
        }
    }
    Some((starts, at))
}

#[cfg(test)]
mod tests;
