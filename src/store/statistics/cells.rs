//! Summarises fixed-length strings in stored form: the same result as [`scan::summary`](super::summary) of the texts,
//! without making them.
//!
//! Nearly always the cells sort like their texts; then comparing one or two integers per cell suffices.

use std::ops::Range;

use super::scalar::{Scalar, Summary};
use super::scan::{cut, head, of_eights};
use crate::catalogue::Padding;

/// Bytes processed at a time, once per question, so that they stay in the nearest cache.
const STRETCH: usize = 16 << 10;

/// A column of fixed-length strings.
#[derive(Clone, Copy, Debug)]
pub struct FixedStrings<'a> {
    /// Bytes of each string.
    pub width: usize,
    /// Their padding.
    pub padding: Padding,
    /// The text that counts as missing.
    pub fill: Option<&'a [u8]>,
}

/// The least and the greatest key, and the number of keys of missing texts.
struct Extremes<K> {
    bounds: Option<[K; 2]>,
    nulls: u64,
}

impl FixedStrings<'_> {
    /// Summarises the cells concatenated in `bytes`. `texts` summarises ranges of bytes whose texts sort differently
    /// from their cells; `None` if it returns `None`.
    pub fn summary(&self, bytes: &[u8], texts: impl Fn(Range<usize>) -> Option<Summary>) -> Option<Summary> {
        let stretch = (STRETCH / self.width.max(1)).max(1).checked_mul(self.width).filter(|bytes| *bytes > 0)?;
        // The cell of a missing text.
        let fill = self.fill.map(|fill| {
            let mut cell = fill.to_vec();
            cell.resize(self.width, if self.padding == Padding::SpacePadded { b' ' } else { 0 });
            cell
        });
        let mut stretches = bytes.chunks(stretch).enumerate().map(|(at, cells)| {
            if cells.len().is_multiple_of(self.width) && are_whole(cells, self.width) && self.are_ordered(cells) {
                Some(self.compared(cells, fill.as_deref()))
            } else {
                texts(at * stretch..at * stretch + cells.len())
            }
        });
        stretches.try_fold(Summary::default(), |sum, stretch| Some(sum.merge(stretch?)))
    }

    /// Whether cells sort like their texts, and are equal if these are. With NUL padding, both orders agree.
    fn are_ordered(&self, cells: &[u8]) -> bool {
        match self.padding {
            Padding::NullPadded => true,
            // Each cell has only NULs after its first NUL, if as many texts end as cells do.
            Padding::NullTerminated => {
                let last = cells.iter().skip(self.width - 1).step_by(self.width);
                let next = cells.iter().skip(self.width).step_by(self.width);
                let between = last.zip(next).filter(|(last, next)| **last == 0 && **next != 0).count();
                begun_behind_nul(cells) == between
            }
            // No byte sorts before a space.
            Padding::SpacePadded => cells.iter().fold(u8::MAX, |least, byte| least.min(*byte)) >= b' ',
        }
    }

    fn compared(&self, cells: &[u8], fill: Option<&[u8]>) -> Summary {
        let width = self.width;
        let one = |key: u64| key.to_be_bytes().get(..width).unwrap_or_default().to_vec();
        let of_two = |key: u128| {
            let bytes = key.to_be_bytes();
            let (first, last) = bytes.split_at(8);
            [first, last.get(16 - width..).unwrap_or_default()].concat()
        };
        match width {
            8 if fill.is_none() => {
                // Stretches are not empty.
                let bounds = Some(of_eights(cells.as_chunks().0));
                self.told(cells, Extremes { bounds, nulls: 0 }, one)
            }
            8 => {
                let keys = cells.as_chunks().0.iter().copied().map(u64::from_be_bytes);
                let fill = fill.and_then(<[u8]>::first_chunk).copied().map(u64::from_be_bytes);
                self.told(cells, extremes(keys, fill), one)
            }
            0..8 => {
                let key = |cells: &[u8], start: usize| (head(cells, &(start..start + width)) >> 64) as u64;
                let keys = (0..cells.len()).step_by(width).map(|start| key(cells, start));
                self.told(cells, extremes(keys, fill.map(|fill| key(fill, 0))), one)
            }
            16 => {
                let keys = cells.as_chunks().0.iter().copied().map(u128::from_be_bytes);
                let fill = fill.and_then(<[u8]>::first_chunk).copied().map(u128::from_be_bytes);
                self.told(cells, extremes(keys, fill), of_two)
            }
            9..16 => self.told(cells, extremes(cells.chunks_exact(width).map(two), fill.map(two)), of_two),
            _ => {
                let found = extremes(cells.chunks_exact(width).filter_map(long), fill.and_then(long));
                self.told(cells, found, |(first, rest)| [&first.to_be_bytes(), rest].concat())
            }
        }
    }

    fn told<K: Copy>(&self, cells: &[u8], found: Extremes<K>, cell: impl Fn(K) -> Vec<u8>) -> Summary {
        let texts = found.bounds.map(|keys| keys.map(|key| Scalar::Text(cut(self.padding.strip(&cell(key))).to_vec())));
        let (min, max) = texts.map(Into::into).unzip();
        Summary { rows: (cells.len() / self.width) as u64, nulls: found.nulls, nans: 0, min, max }
    }
}

/// The first and the last eight bytes, which may overlap.
fn two(cell: &[u8]) -> u128 {
    let ends = cell.first_chunk().zip(cell.last_chunk());
    let [first, last] = ends.map_or([0; 2], |(first, last)| [*first, *last].map(u64::from_be_bytes));
    u128::from(first) << 64 | u128::from(last)
}

/// The first eight bytes as a number, and the rest.
fn long(cell: &[u8]) -> Option<(u64, &[u8])> {
    let (first, rest) = cell.split_first_chunk()?;
    Some((u64::from_be_bytes(*first), rest))
}

/// The least and the greatest of keys other than `fill`.
#[inline(always)]
fn extremes<K: Ord + Copy>(keys: impl Iterator<Item = K>, fill: Option<K>) -> Extremes<K> {
    let mut nulls = 0;
    let bounds = match fill {
        None => bounds(keys),
        Some(fill) => bounds(keys.filter(|key| {
            nulls += u64::from(*key == fill);
            *key != fill
        })),
    };
    Extremes { bounds, nulls }
}

#[inline(always)]
fn bounds<K: Ord + Copy>(mut keys: impl Iterator<Item = K>) -> Option<[K; 2]> {
    let first = keys.next()?;
    Some(keys.fold([first; 2], |[least, greatest], key| [least.min(key), greatest.max(key)]))
}

/// Whether each cell by itself is UTF-8: the concatenation is, and no cell begins within a character.
fn are_whole(cells: &[u8], width: usize) -> bool {
    cells.is_ascii()
        || std::str::from_utf8(cells).is_ok() && !cells.iter().step_by(width).any(|byte| byte & 0xc0 == 0x80)
}

/// Number of non-NUL bytes that directly follow a NUL.
fn begun_behind_nul(bytes: &[u8]) -> usize {
    let seconds = bytes.get(1..).unwrap_or_default();
    // At most 255 at a time, so that a byte can count them: compilers then compare many in one register.
    let most = usize::from(u8::MAX);
    let stretches = bytes.chunks(most).zip(seconds.chunks(most));
    let counts = stretches.map(|(firsts, seconds)| {
        let pairs = firsts.iter().zip(seconds);
        usize::from(pairs.fold(0_u8, |count, (first, second)| count + u8::from((*first == 0) & (*second != 0))))
    });
    counts.sum()
}
