//! Pages that have slots: of so many rows and so many bytes, whatever is in them.

use std::collections::BTreeSet;

use super::Groups;
use super::groups::MOST_ROWS;
use crate::views::parquet::thrift::page::Header;

/// Bytes of a page at most, where it is rendered whole; a single value may be longer.
pub(in crate::views::parquet) const PAGE_BYTES: u64 = 1 << 20;

/// Bytes of a page of cells at most: those of [`MOST_ROWS`] 8-byte values.
const CELLS_BYTES: u64 = 8 * MOST_ROWS;

/// A page of cells with at least this many bytes begins on a boundary of [`ALIGNMENT`]: the gap is at most 6 % then.
const WORTH_ALIGNING: u64 = 64 << 10;

/// Pages of equal length; the last one of a group may be shorter.
#[derive(Clone, Debug)]
pub(in crate::views::parquet) struct Slots {
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
pub(in crate::views::parquet) trait Bodies {
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
    pub fn page(&self, rows: u64) -> Option<u64> {
        if rows == 0 { Some(0) } else { Some(self.of(rows)?.bytes) }
    }

    /// Bytes of the data pages of a chunk of this many rows.
    pub fn chunk(&self, rows: u64) -> Option<u64> {
        (rows / self.rows).checked_mul(self.bytes)?.checked_add(self.page(rows % self.rows)?)
    }

    /// Bytes of the page before the first row's place, which begins on a boundary in a chunk of `rows` rows.
    pub fn aligned(&self, rows: u64) -> Option<u64> {
        let page = self.of(rows.min(self.rows))?;
        if page.bytes >= WORTH_ALIGNING { page.lead?.checked_add(self.header.bytes()) } else { None }
    }
}
