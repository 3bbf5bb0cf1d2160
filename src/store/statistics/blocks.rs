//! Summaries of the known blocks of a column, packed: 24 bytes per block of numbers.

use super::scalar::{LONGEST_TEXT, Scalar, ScalarKind, Summary};
use crate::store::Blocked;
use std::collections::BTreeMap;

/// Rows of a block, unless a [cut](crate::store::Cuts) ends it. Constant, so that results of one run fit the next;
/// merging blocks makes a coarser grain.
pub const GRAIN: u64 = 65_536;

/// Blocks of a page; the last page of a column is shorter. Memory grows with the rows read, not with the file's claim.
const PAGE: usize = 256;

/// The summaries of some blocks.
#[derive(Debug)]
pub(crate) struct BlockSummaries {
    kind: ScalarKind,
    /// The blocks of the column.
    blocked: Blocked,
    pages: BTreeMap<u64, Page>,
    known: u64,
}

type Text = Box<[u8]>;

#[derive(Debug)]
struct Page {
    known: Box<[bool]>,
    /// Nulls and NaN of each block; `None`: the page has neither.
    counts: Option<Box<[[u32; 2]]>>,
    bounds: Bounds,
}

/// Least and greatest value of each block.
#[derive(Debug)]
enum Bounds {
    /// As bits; meaningless if the block has no value.
    Bits(Box<[[u64; 2]]>),
    Texts(Box<[[Option<Text>; 2]]>),
}

impl Page {
    fn new(kind: ScalarKind, length: usize) -> Self {
        let bounds = match kind {
            ScalarKind::Text => Bounds::Texts(vec![[None, None]; length].into()),
            _ => Bounds::Bits(vec![[0; 2]; length].into()),
        };
        Self { known: vec![false; length].into(), counts: None, bounds }
    }
}

/// A number as 64 bits; `None` for text.
pub(super) fn to_bits(scalar: &Scalar) -> Option<u64> {
    Some(match scalar {
        Scalar::Bool(value) => u64::from(*value),
        Scalar::Int(value) => value.cast_unsigned(),
        Scalar::UInt(value) => *value,
        Scalar::Float(value) => value.to_bits(),
        Scalar::Text(_) => return None,
    })
}

/// The inverse of [`to_bits`].
pub(super) fn from_bits(kind: ScalarKind, bits: u64) -> Option<Scalar> {
    Some(match kind {
        ScalarKind::Bool => Scalar::Bool(bits != 0),
        ScalarKind::Int => Scalar::Int(bits.cast_signed()),
        ScalarKind::UInt => Scalar::UInt(bits),
        ScalarKind::Float => Scalar::Float(f64::from_bits(bits)),
        ScalarKind::Text => return None,
    })
}

impl BlockSummaries {
    pub fn new(kind: ScalarKind, blocked: Blocked) -> Self {
        Self { kind, blocked, pages: BTreeMap::new(), known: 0 }
    }

    pub fn kind(&self) -> ScalarKind {
        self.kind
    }

    /// The rows of each block.
    pub fn blocked(&self) -> &Blocked {
        &self.blocked
    }

    /// Number of known blocks.
    pub fn known(&self) -> u64 {
        self.known
    }

    pub fn is_complete(&self) -> bool {
        self.known == self.blocked.count()
    }

    /// Records the summary of a block over all of its rows, with bounds of the column's kind.
    pub fn set(&mut self, block: u64, summary: Summary) {
        let at = (block % PAGE as u64) as usize;
        let left = self.blocked.count().saturating_sub(block - at as u64);
        let length = usize::try_from(left).unwrap_or(PAGE).clamp(at + 1, PAGE);
        let page = self.pages.entry(block / PAGE as u64).or_insert_with(|| Page::new(self.kind, length));
        self.known += u64::from(!page.known[at]);
        page.known[at] = true;
        // At most as many as a block has rows.
        let counts = [summary.nulls as u32, summary.nans as u32];
        if counts != [0, 0] || page.counts.is_some() {
            page.counts.get_or_insert_with(|| vec![[0; 2]; length].into())[at] = counts;
        }
        let bounds = [summary.min, summary.max];
        match &mut page.bounds {
            Bounds::Bits(page) => page[at] = bounds.map(|bound| bound.as_ref().and_then(to_bits).unwrap_or(0)),
            Bounds::Texts(page) => {
                page[at] = bounds.map(|bound| match bound {
                    Some(Scalar::Text(text)) if text.len() <= LONGEST_TEXT => Some(text.into_boxed_slice()),
                    _ => None,
                });
            }
        }
    }

    /// The summary of a block, once known.
    pub fn get(&self, block: u64) -> Option<Summary> {
        let page = self.pages.get(&(block / PAGE as u64))?;
        let at = (block % PAGE as u64) as usize;
        if !*page.known.get(at)? {
            return None;
        }
        let rows = self.blocked.rows_of(block);
        let [nulls, nans] = page.counts.as_ref().map_or([0, 0], |counts| counts[at]).map(u64::from);
        let mut summary = Summary { rows: rows.end - rows.start, nulls, nans, min: None, max: None };
        if summary.values() > 0 {
            [summary.min, summary.max] = match &page.bounds {
                Bounds::Bits(page) => page[at].map(|bits| from_bits(self.kind, bits)),
                Bounds::Texts(page) => page[at].clone().map(|text| text.map(|text| Scalar::Text(text.into_vec()))),
            };
        }
        Some(summary)
    }
}
