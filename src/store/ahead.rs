//! Plans the reads of a dataset whose source lies on a network.
//!
//! A decoder reads chunk after chunk, and would wait for the network each time. So the first read of a reader plans
//! those of a few chunks behind it. While the reader follows them, the plan grows up to the bytes that a fast network
//! has on its way; a reader that stops, or reads elsewhere, has cost no more than it had read.

use std::ops::Range;

use parking_lot::Mutex;

/// Bytes to plan for a new reader.
const FIRST: u64 = 256 << 10;

/// Most bytes to plan ahead of a reader: as a network of 1 GB/s delivers in some milliseconds.
const MOST: u64 = 8 << 20;

/// Most units to plan at once, however small they are.
const MOST_UNITS: u64 = 4096;

/// Most readers of a dataset at once.
const READERS: usize = 8;

/// The readers of a dataset, and how far their reads are planned. Positions count units that are read as a whole, such
/// as chunks.
#[derive(Debug, Default)]
pub(super) struct PlannedReads(Mutex<Vec<Window>>);

#[derive(Clone, Copy, Debug)]
struct Window {
    /// First unit that the reader may still want.
    first: u64,
    /// End of the planned units.
    end: u64,
    /// Bytes planned ahead.
    bytes: u64,
}

impl PlannedReads {
    /// Notes that a unit of `size` stored bytes is read now. Returns the units to plan: itself and its followers for a
    /// new reader, more of them for one that follows the plan, or none.
    pub fn note(&self, unit: u64, size: u64) -> Range<u64> {
        let units = |bytes: u64| (bytes / size.max(1)).clamp(1, MOST_UNITS);
        let mut windows = self.0.lock();
        let known = windows.iter().position(|window| (window.first..=window.end).contains(&unit));
        let mut window =
            known.map_or(Window { first: unit, end: unit, bytes: FIRST / 2 }, |known| windows.remove(known));
        let begun = window.end;
        if unit.saturating_add(units(window.bytes).div_ceil(2)) >= window.end {
            window.bytes = window.bytes.saturating_mul(2).min(MOST);
            window.end = unit.saturating_add(units(window.bytes)).max(window.end);
        }
        // Threads decode a few chunks out of order.
        window.first = window.first.max(unit.saturating_sub(units(window.bytes)));
        windows.insert(0, window);
        windows.truncate(READERS);
        begun..window.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_goes_on_gets_each_unit_once_and_ever_more() {
        let (planned, size) = (PlannedReads::default(), 64 << 10);
        let plans: Vec<_> = (0..300).map(|unit| planned.note(unit, size)).filter(|units| !units.is_empty()).collect();
        assert_eq!(plans[..4], [0..4, 4..10, 10..22, 22..46]);
        assert!(plans.windows(2).all(|two| two[0].end == two[1].start));
        // 8 MiB ahead, and no more.
        assert_eq!(plans.iter().map(|units| units.end - units.start).max(), Some(96));
        let end = plans.last().map(|units| units.end);
        assert!(end.is_some_and(|end| (300 + 64..=300 + 128).contains(&end)), "{end:?}");
    }

    #[test]
    fn a_reader_that_hops_about_gets_a_first_plan_each_time() {
        let planned = PlannedReads::default();
        for unit in [0, 1_000, 50_000, 7] {
            assert_eq!(planned.note(unit, 100 << 10), unit..unit + 2);
        }
        // A unit larger than the plan is planned by itself.
        assert_eq!(PlannedReads::default().note(3, 1 << 40), 3..4);
        assert_eq!(PlannedReads::default().note(u64::MAX, 0), u64::MAX..u64::MAX);
    }

    #[test]
    fn readers_in_turn_and_threads_out_of_order_keep_their_plans() {
        let planned = PlannedReads::default();
        let size = 128 << 10;
        assert_eq!(planned.note(0, size), 0..2);
        assert_eq!(planned.note(900, size), 900..902);
        assert_eq!(planned.note(1, size), 2..5);
        assert_eq!(planned.note(0, size), 5..5);
        assert_eq!(planned.note(901, size), 902..905);
    }
}
