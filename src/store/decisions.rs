//! Records for which columns a mount shows statistics.

use std::collections::HashMap;

use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_128;

use crate::source::Identity;

/// Decisions so far; they outlive the opening of a source, which may be dropped and reopened. 17 bytes each.
#[derive(Debug, Default)]
pub(super) struct Decisions(Mutex<HashMap<u128, bool>>);

impl Decisions {
    /// The decision on `what` in this source: `now`, if this is the first call.
    pub fn take(&self, identity: &Identity, what: &str, now: bool) -> bool {
        let key = xxh3_128(format!("{identity:?} {what}").as_bytes());
        *self.0.lock().entry(key).or_insert(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::SourceState;

    #[test]
    fn the_first_decision_stands() {
        let decisions = Decisions::default();
        let file = |ctime| SourceState::File { device: 1, inode: 2, mtime: (4, 5), ctime };
        let one = Identity { size: 3, state: file((6, 7)) };
        let other = Identity { size: 3, state: file((6, 8)) };
        assert!(!decisions.take(&one, "/t/x", false));
        assert!(decisions.take(&one, "/t/y", true));
        assert!(decisions.take(&other, "/t/x", true));
        assert!(!decisions.take(&one, "/t/x", true));
        assert!(decisions.take(&one, "/t/y", false));
    }
}
