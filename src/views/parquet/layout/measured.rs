//! Measured pages, which may have any length.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::Groups;
use crate::views::parquet::thrift::page::PageHeaderForm;

/// A measured page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::views::parquet) struct Page {
    /// Number of rows of the page.
    pub rows: u32,
    /// Bytes of the body.
    pub bytes: u32,
    /// Number of entries: values, nulls and empty lists.
    pub entries: u32,
}

/// The measured pages of a leaf column. Equal pages are stored as one run, and so are equal row groups.
#[derive(Debug, Default)]
pub(in crate::views::parquet) struct MeasuredPages {
    padded: bool,
    pub(super) runs: Vec<PageRun>,
    pub(super) kinds: Vec<GroupPages>,
    /// For each row group, the position of its kind in `kinds`.
    groups: Vec<u32>,
    /// Bytes of the longest page, header included.
    pub(super) longest: u64,
}

/// Consecutive equal pages of a row group.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageRun {
    /// Number of the run's first page within the row group.
    number: u64,
    /// First row of that page within the row group.
    row: u32,
    /// First byte of that page within the chunk's data pages.
    at: u64,
    /// Number of rows of each page.
    rows: u32,
    /// Bytes of each page, header included.
    bytes: u64,
}

/// All pages of a row group.
#[derive(Clone, Debug, Default)]
pub(super) struct GroupPages {
    runs: Range<usize>,
    pages: u64,
    bytes: u64,
    entries: u64,
    /// The only kind of page, if all are equal.
    only: Option<Page>,
}

impl MeasuredPages {
    /// Collects pages, each with the number of times that it repeats; the bodies of `padded` ones may turn out shorter.
    /// `None`: they do not cover the rows, group by group.
    pub fn new(groups: &Groups, padded: bool, pages: impl IntoIterator<Item = (Page, u64)>) -> Option<Self> {
        let mut measured = Self { padded, ..Self::default() };
        let header = measured.header().bytes();
        let mut pages = pages.into_iter().filter(|(_, count)| *count > 0);
        let mut next: Option<(Page, u64)> = None;
        for group in 0..groups.count() {
            let range = groups.rows_of(group);
            // A row group has at most 2^24 rows.
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
                // Row groups within one run of equal pages are equal.
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
                // No more than the rows of the row group.
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

    /// Returns the form of the pages' headers.
    pub fn header(&self) -> PageHeaderForm {
        if self.padded { PageHeaderForm::Padded } else { PageHeaderForm::Exact }
    }

    fn group(&self, group: u64) -> Option<&GroupPages> {
        self.kinds.get(*self.groups.get(usize::try_from(group).ok()?)? as usize)
    }

    /// Returns the last run of a row group for which `is_before` is true.
    fn run(&self, group: u64, is_before: impl Fn(&PageRun) -> bool) -> Option<&PageRun> {
        let runs = self.runs.get(self.group(group)?.runs.clone())?;
        runs.get(runs.partition_point(is_before).checked_sub(1)?)
    }

    /// Returns the number of data pages of a row group.
    pub fn pages(&self, group: u64) -> u64 {
        self.group(group).map_or(0, |group| group.pages)
    }

    /// Returns the bytes of the data pages of a row group.
    pub fn chunk(&self, group: u64) -> u64 {
        self.group(group).map_or(0, |group| group.bytes)
    }

    /// Returns the number of values of a row group, nulls included.
    pub fn entries(&self, group: u64) -> u64 {
        self.group(group).map_or(0, |group| group.entries)
    }

    /// Returns the number of the page that contains byte `at` of a row group's data pages.
    pub fn number(&self, group: u64, at: u64) -> u64 {
        self.run(group, |run| run.at <= at).map_or(0, |run| run.number + (at - run.at) / run.bytes.max(1))
    }

    /// Returns a page's first row within the row group, its number of rows, its first byte and its number of bytes.
    pub fn page(&self, group: u64, number: u64) -> Option<(u64, u64, u64, u64)> {
        if number >= self.pages(group) {
            return None;
        }
        let run = self.run(group, |run| run.number <= number)?;
        let before = number - run.number;
        let (rows, row) = (u64::from(run.rows), u64::from(run.row));
        Some((row + before * rows, rows, run.at + before * run.bytes, run.bytes))
    }
}
