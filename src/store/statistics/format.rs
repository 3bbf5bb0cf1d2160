//! Serialises statistics for the cache folder.
//!
//! ```text
//! "hepfs statistics" (16) | version (1) | kind (1) | which counts follow (1) | 0 (5) | rows of the column (8)
//! missing rows of each block (4 each), where any block has some
//! NaN of each block (4 each), where any block has some
//! numbers: least of each block (8 each), greatest of each block (8 each)
//! text: for each block the length of its least (1; 255: none), its bytes, the same of its greatest
//! XXH3 of all before (8)
//! ```
//!
//! All numbers are little-endian. Damaged or truncated bytes, and those of another version, are rejected.

use xxhash_rust::xxh3::xxh3_64;

use super::blocks::{BlockSummaries, from_bits, to_bits};
use super::scalar::{LONGEST_TEXT, Scalar, ScalarKind, Summary};
use crate::store::Blocked;

/// Version of the bytes described above, and of their meaning: which values are null, how values are shown.
pub(crate) const VERSION: u8 = 1;

const MAGIC: &[u8; 16] = b"hepfs statistics";

/// Length that stands for "no text".
const NO_TEXT: u8 = u8::MAX;

const HAS_NULLS: u8 = 1;
const HAS_NANS: u8 = 2;

fn code(kind: ScalarKind) -> u8 {
    match kind {
        ScalarKind::Bool => 0,
        ScalarKind::Int => 1,
        ScalarKind::UInt => 2,
        ScalarKind::Float => 3,
        ScalarKind::Text => 4,
    }
}

/// Serialises complete statistics.
pub(crate) fn encode(blocks: &BlockSummaries) -> Vec<u8> {
    let all: Vec<Summary> = (0..blocks.blocked().count()).filter_map(|block| blocks.get(block)).collect();
    let has_nulls = all.iter().any(|block| block.nulls > 0);
    let has_nans = all.iter().any(|block| block.nans > 0);
    let flags = if has_nulls { HAS_NULLS } else { 0 } | if has_nans { HAS_NANS } else { 0 };

    let mut out = MAGIC.to_vec();
    out.extend([VERSION, code(blocks.kind()), flags, 0, 0, 0, 0, 0]);
    out.extend(blocks.blocked().rows().to_le_bytes());
    // A block has at most 65,536 rows.
    if has_nulls {
        all.iter().for_each(|block| out.extend((block.nulls as u32).to_le_bytes()));
    }
    if has_nans {
        all.iter().for_each(|block| out.extend((block.nans as u32).to_le_bytes()));
    }
    if blocks.kind() == ScalarKind::Text {
        for bound in all.iter().flat_map(|block| [&block.min, &block.max]) {
            match bound {
                Some(Scalar::Text(text)) if text.len() <= LONGEST_TEXT => {
                    out.push(text.len() as u8);
                    out.extend(text);
                }
                _ => out.push(NO_TEXT),
            }
        }
    } else {
        for bound in all.iter().map(|block| &block.min).chain(all.iter().map(|block| &block.max)) {
            out.extend(bound.as_ref().and_then(to_bits).unwrap_or(0).to_le_bytes());
        }
    }
    out.extend(xxh3_64(&out).to_le_bytes());
    out
}

/// Consumes bytes from the front.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.first_chunk().copied()
    }

    fn counts(&mut self, blocks: usize) -> Option<Vec<u32>> {
        let bytes = self.take(blocks.checked_mul(4)?)?;
        Some(bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect())
    }

    fn bits(&mut self, blocks: usize) -> Option<Vec<u64>> {
        let bytes = self.take(blocks.checked_mul(8)?)?;
        Some(bytes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect())
    }

    fn text(&mut self) -> Option<Option<Scalar>> {
        let [length] = self.array()?;
        match usize::from(length) {
            length if length <= LONGEST_TEXT => Some(Some(Scalar::Text(self.take(length)?.to_vec()))),
            _ => (length == NO_TEXT).then_some(None),
        }
    }
}

/// The statistics of a column of this kind with these blocks; `None`: the bytes are damaged, or of something else.
pub(crate) fn decode(bytes: &[u8], kind: ScalarKind, blocked: &Blocked) -> Option<BlockSummaries> {
    let (content, hash) = bytes.split_last_chunk::<8>()?;
    if xxh3_64(content) != u64::from_le_bytes(*hash) {
        return None;
    }
    let mut reader = Reader(content);
    if reader.take(MAGIC.len())? != MAGIC {
        return None;
    }
    let [version, kind_code, flags, ..] = reader.array::<8>()?;
    let stated = u64::from_le_bytes(reader.array()?);
    let known_flags = if kind == ScalarKind::Float { HAS_NULLS | HAS_NANS } else { HAS_NULLS };
    if version != VERSION || kind_code != code(kind) || stated != blocked.rows() || flags & !known_flags != 0 {
        return None;
    }
    let count = usize::try_from(blocked.count()).ok()?;
    let nulls = if flags & HAS_NULLS != 0 { Some(reader.counts(count)?) } else { None };
    let nans = if flags & HAS_NANS != 0 { Some(reader.counts(count)?) } else { None };
    let bits = if kind == ScalarKind::Text { None } else { Some((reader.bits(count)?, reader.bits(count)?)) };

    let mut blocks = BlockSummaries::new(kind, blocked.clone());
    for block in 0..count {
        let range = blocked.rows_of(block as u64);
        let (min, max) = match &bits {
            Some((min, max)) => (from_bits(kind, *min.get(block)?), from_bits(kind, *max.get(block)?)),
            None => (reader.text()?, reader.text()?),
        };
        let counts = [&nulls, &nans].map(|counts| counts.as_ref().and_then(|counts| counts.get(block)));
        let [nulls, nans] = counts.map(|count| count.map_or(0, |count| u64::from(*count)));
        let summary = Summary { rows: range.end - range.start, nulls, nans, min, max };
        let wrong_order = matches!((&summary.min, &summary.max), (Some(a), Some(b)) if a.order(b).is_gt());
        let nan = [&summary.min, &summary.max].into_iter().any(|b| matches!(b, Some(Scalar::Float(b)) if b.is_nan()));
        if nulls + nans > summary.rows || summary.values() > 0 && (wrong_order || nan) {
            return None;
        }
        blocks.set(block as u64, summary);
    }
    reader.0.is_empty().then_some(blocks)
}
