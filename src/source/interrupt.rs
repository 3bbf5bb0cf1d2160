//! A flag that stops long work whose result is no longer wanted, and how far the reader behind it reads on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag to stop work, shared between a waiting request and the work done for it. Clones share one flag.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    raised: Arc<AtomicBool>,
    /// How much the reader will still want behind the request, as a share of it; see [`Interrupt::followed_by`].
    /// `None`: unknown.
    followed_by: Option<(u64, u64)>,
}

/// The work was stopped: its result is no longer wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

impl Interrupt {
    /// A flag that is not raised.
    pub fn new() -> Self {
        Self::default()
    }

    /// Raises the flag: work that looks at it stops soon.
    pub fn raise(&self) {
        self.raised.store(true, Ordering::Relaxed);
    }

    /// Whether the flag is raised.
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }

    /// Returns an error once the flag is raised. Long work calls this between blocks.
    ///
    /// # Errors
    /// [`Interrupted`] when the flag is raised.
    pub fn check(&self) -> Result<(), Interrupted> {
        if self.is_raised() { Err(Interrupted) } else { Ok(()) }
    }

    /// The same flag, for a request of `length` rows or bytes whose reader stops `rest` of them behind it, as at the
    /// end of a column chunk. The two are a share, so they hold for rows made of others and for each part of the
    /// request: a part is taken to have less behind it than it has, never more.
    #[must_use]
    pub fn followed_by(&self, rest: u64, length: u64) -> Self {
        Self { raised: self.raised.clone(), followed_by: Some((rest, length.max(1))) }
    }

    /// Where the reader of a request stops that takes `length` up to `end`; `u64::MAX`: unknown.
    pub fn end_of_reader(&self, end: u64, length: u64) -> u64 {
        let Some((rest, of)) = self.followed_by else { return u64::MAX };
        let behind = (u128::from(rest) * u128::from(length)).div_ceil(u128::from(of));
        end.saturating_add(u64::try_from(behind).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_request_never_has_more_behind_it_than_the_request() {
        let interrupt = Interrupt::new();
        assert_eq!(interrupt.end_of_reader(70, 60), u64::MAX);
        // Rows 10..70, whose reader goes on up to row 100.
        let bounded = interrupt.followed_by(30, 60);
        assert_eq!(bounded.end_of_reader(70, 60), 100);
        // Bytes of the same rows, and parts of them.
        assert_eq!(bounded.end_of_reader(560, 480), 800);
        assert_eq!((bounded.end_of_reader(20, 10), bounded.end_of_reader(70, 10)), (25, 75));
        assert_eq!(
            (interrupt.followed_by(0, 0).end_of_reader(9, 9), bounded.end_of_reader(u64::MAX, 9)),
            (9, u64::MAX)
        );
        bounded.raise();
        assert!(interrupt.is_raised());
    }
}
