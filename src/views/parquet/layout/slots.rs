//! Pages in fixed slots: a fixed number of rows and bytes per page, whatever their content.

use std::collections::BTreeSet;

use super::Groups;
use super::groups::MOST_ROWS;
use crate::views::parquet::thrift::page::PageHeaderForm;

/// Most bytes of a page that is rendered as a whole; a single value may be longer.
pub(in crate::views::parquet) const PAGE_BYTES: u64 = 1 << 20;

/// Most bytes of a page of cells: [`MOST_ROWS`] 8-byte values.
const CELLS_BYTES: u64 = 8 * MOST_ROWS;

/// A page of cells of at least this many bytes is aligned to [`ALIGNMENT`]: the gap is then at most 6 %.
const WORTH_ALIGNING: u64 = 64 << 10;

/// Pages of equal size; the last one of a row group may be shorter.
#[derive(Clone, Debug)]
pub(in crate::views::parquet) struct Slots {
    /// Rows of a page: a power of two, at most the rows of a row group.
    pub rows: u64,
    /// Bytes of a page, header and padding included.
    pub bytes: u64,
    /// The form of the pages' headers.
    pub header: PageHeaderForm,
    /// Number of values of each row.
    pub entries: u64,
    /// Bytes of a page before the place of its first row, without the header. `None`: rows have no fixed places.
    lead: Option<u64>,
    /// The shorter pages with which row groups can end.
    short: Box<[ShortPage]>,
}

/// The last page of a short row group.
#[derive(Clone, Copy, Debug)]
struct ShortPage {
    rows: u64,
    /// Bytes of the page, as in [`Slots`]; `lead` likewise.
    bytes: u64,
    lead: Option<u64>,
}

/// Sizes of the bodies of a leaf's pages, by number of rows.
pub(in crate::views::parquet) trait Bodies {
    /// Returns the most bytes of a body, monotone in the rows. `None`: not known.
    fn most(&self, rows: u64) -> Option<u64>;
    /// Returns the form of the header: without padding if a body always has [`Bodies::most`] bytes.
    fn header(&self) -> PageHeaderForm;
    /// Returns the number of values of each row.
    fn entries(&self) -> u64;
    /// Returns the bytes before the place of the first row. `None`: rows have no fixed places.
    fn lead(&self, rows: u64) -> Option<u64>;
}

impl Slots {
    /// Returns slots for such pages. `None`: even one row may exceed [`PAGE_BYTES`] but usually takes much less, or the
    /// sizes are unknown. Exact bodies need no padding.
    pub fn new(groups: &Groups, bodies: &impl Bodies) -> Option<Self> {
        let header = bodies.header();
        let exact = !header.is_padded();
        let limit = if bodies.lead(1).is_some() { CELLS_BYTES } else { PAGE_BYTES };
        let mut rows = groups.per_group();
        let fits = |rows| bodies.most(rows).is_some_and(|body| body <= limit);
        while rows > 1 && !fits(rows) {
            rows /= 2;
        }
        // A single exact value may exceed the usual page size, up to the limit of the header.
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

    /// Returns the page of this many rows. `None`: no row group ends with such a page.
    fn of(&self, rows: u64) -> Option<ShortPage> {
        if rows == self.rows {
            return Some(ShortPage { rows, bytes: self.bytes, lead: self.lead });
        }
        self.short.iter().find(|page| page.rows == rows).copied()
    }

    /// Returns the bytes of a page of this many rows.
    pub fn page(&self, rows: u64) -> Option<u64> {
        if rows == 0 { Some(0) } else { Some(self.of(rows)?.bytes) }
    }

    /// Returns the bytes of the data pages of a chunk of this many rows.
    pub fn chunk(&self, rows: u64) -> Option<u64> {
        (rows / self.rows).checked_mul(self.bytes)?.checked_add(self.page(rows % self.rows)?)
    }

    /// Returns the bytes of a page before its first row, if rows begin at an alignment boundary in a chunk of `rows`
    /// rows.
    pub fn aligned(&self, rows: u64) -> Option<u64> {
        let page = self.of(rows.min(self.rows))?;
        if page.bytes >= WORTH_ALIGNING { page.lead?.checked_add(self.header.bytes()) } else { None }
    }
}
