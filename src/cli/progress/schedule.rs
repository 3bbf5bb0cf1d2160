//! When a log gets a line about work that goes on.

use std::time::Duration;

/// Seconds after which a log gets its first lines.
const FIRST: [u64; 5] = [10, 30, 60, 120, 300];

/// The times of lines, counted from the beginning of the work.
pub(super) struct Schedule {
    first: &'static [u64],
    /// Seconds between lines after the first ones.
    each: u64,
    /// Seconds at which the next line is due.
    next: u64,
}

impl Schedule {
    /// Lines after 10 s, 30 s, 1, 2 and 5 minutes, then every 5 minutes.
    pub fn of_log() -> Self {
        Self { first: &FIRST, each: 300, next: FIRST[0] }
    }

    /// A line each second.
    pub fn each_second() -> Self {
        Self { first: &[], each: 1, next: 1 }
    }

    /// Whether a line is due, once for each time that has passed; several that have passed count as one.
    pub fn is_due(&mut self, passed: Duration) -> bool {
        let passed = passed.as_secs();
        if passed < self.next {
            return false;
        }
        let next = self.first.iter().copied().find(|first| *first > passed);
        self.next = next.unwrap_or_else(|| (passed / self.each + 1) * self.each);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(mut schedule: Schedule, seconds: impl Iterator<Item = u64>) -> Vec<u64> {
        seconds.filter(|second| schedule.is_due(Duration::from_secs(*second))).collect()
    }

    #[test]
    fn a_log_gets_a_line_within_10_s_and_fewer_later() {
        assert_eq!(lines(Schedule::of_log(), 0..1_300), [10, 30, 60, 120, 300, 600, 900, 1_200]);
        assert_eq!(lines(Schedule::each_second(), 0..4), [1, 2, 3]);
    }

    #[test]
    fn lines_that_were_missed_are_not_made_up_for() {
        assert_eq!(
            lines(Schedule::of_log(), [9, 70, 71, 119, 130, 1_000, 1_001, 1_200].into_iter()),
            [70, 130, 1_000, 1_200]
        );
    }
}
