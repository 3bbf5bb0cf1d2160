//! Cuts rows into blocks of equal length.

use crate::store::RowRange;

/// About how many bytes a rendered block has: several 128 KiB requests of the kernel, little waste for a read in the
/// middle of a file, and small compared to a processor's caches.
const BLOCK_BYTES: u64 = 1 << 20;

/// Most blocks of an index (16 bytes each: a length and an offset). A longer file has longer blocks.
const MOST_BLOCKS: u64 = 1 << 20;

/// Divides `rows` into blocks of `per_block` rows each; the last may be shorter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RowBlocks {
    rows: RowRange,
    per_block: u64,
}

impl RowBlocks {
    /// Returns blocks of about 1 MiB, if a row takes about `estimate` bytes. They respect chunks of `natural` rows if
    /// some length near the wanted one divides them or is a multiple of them.
    pub fn choose(rows: u64, estimate: u64, natural: Option<u64>) -> Self {
        let wanted = BLOCK_BYTES / estimate.max(1);
        // Rounded down to a power of two.
        let wanted = 1 << wanted.max(1).ilog2();
        let fitted = match natural {
            Some(natural) if natural > 0 && natural <= wanted => wanted / natural * natural,
            Some(natural) if natural > 0 => {
                // The divisor of a chunk's rows that is nearest to the wanted length, within a factor of two.
                let (fewest, most) =
                    (natural.div_ceil(wanted.saturating_mul(2)), natural.div_ceil(wanted).saturating_mul(2));
                let parts = (fewest.max(1)..=most.min(fewest.saturating_add(1 << 12)))
                    .filter(|parts| natural.is_multiple_of(*parts));
                parts.map(|parts| natural / parts).min_by_key(|rows| rows.abs_diff(wanted)).unwrap_or(wanted)
            }
            _ => wanted,
        };
        let mut per_block = fitted.max(1);
        while rows.div_ceil(per_block) > MOST_BLOCKS {
            per_block = per_block.saturating_mul(2);
        }
        Self { rows: 0..rows, per_block }
    }

    /// Divides `rows` into at most `parts` blocks.
    pub fn divide(rows: RowRange, parts: u64) -> Self {
        let per_block = (rows.end - rows.start).div_ceil(parts.max(1)).max(1);
        Self { rows, per_block }
    }

    /// Returns the number of rows of a block.
    pub fn per_block(&self) -> u64 {
        self.per_block
    }

    /// Returns the number of blocks.
    pub fn blocks(&self) -> usize {
        usize::try_from((self.rows.end - self.rows.start).div_ceil(self.per_block)).unwrap_or(usize::MAX)
    }

    /// Returns the rows of one block.
    pub fn rows_of(&self, block: usize) -> RowRange {
        let start = (block as u64).saturating_mul(self.per_block).saturating_add(self.rows.start).min(self.rows.end);
        start..start.saturating_add(self.per_block).min(self.rows.end)
    }

    /// Returns the number of the block that contains a row.
    pub fn block_of(&self, row: u64) -> usize {
        usize::try_from(row.saturating_sub(self.rows.start) / self.per_block).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keeps_to_chunks() {
        // 1 MiB / 12 = 87,381 rows: 65,536.
        assert_eq!(RowBlocks::choose(10_000_000, 12, None).per_block(), 65_536);
        assert_eq!(RowBlocks::choose(10_000_000, 12, Some(131_072)).per_block(), 65_536);
        assert_eq!(RowBlocks::choose(10_000_000, 12, Some(1000)).per_block(), 65_000);
        assert_eq!(RowBlocks::choose(10_000_000, 12, Some(100_000)).per_block(), 50_000);
        // A prime number of rows cannot be divided.
        assert_eq!(RowBlocks::choose(10_000_000, 12, Some(999_983)).per_block(), 65_536);
        assert_eq!(RowBlocks::choose(3, u64::MAX, Some(7)).per_block(), 1);
    }

    proptest! {
        #[test]
        fn covers_every_row_once(rows in 1..u64::MAX / 4, estimate in 1..u64::MAX, natural in proptest::option::of(0..u64::MAX)) {
            let grid = RowBlocks::choose(rows, estimate, natural);
            prop_assert!(grid.blocks() as u64 <= MOST_BLOCKS);
            let last = grid.rows_of(grid.blocks() - 1);
            prop_assert!(!last.is_empty());
            prop_assert_eq!(last.end, rows);
            prop_assert_eq!(grid.rows_of(0).start, 0);
            prop_assert_eq!(grid.block_of(rows - 1), grid.blocks() - 1);
            prop_assert_eq!(grid.block_of(last.start), grid.blocks() - 1);
        }
    }
}
