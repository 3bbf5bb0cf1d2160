//! Files used last: they stay when nobody uses them.

use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;
use parking_lot::Mutex;

use super::file::ShownFile;
use super::last_used;

/// Files of an opening that stay when nobody uses them, of those that were opened and of those that were looked at:
/// they know their exact size, which may have taken a pass.
const MOST_UNUSED: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// Uses of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Its size and attributes.
    Seen,
    /// Its bytes. Those that are looked at do not drive it out.
    Opened,
}

/// The files of an opening that were used last.
pub(crate) struct Recent {
    seen: Mutex<Files>,
    opened: Mutex<Files>,
}

/// Files by their addresses, which are theirs for as long as they are held.
type Files = LruCache<usize, Arc<ShownFile>>;

impl Default for Recent {
    fn default() -> Self {
        let files = || Mutex::new(last_used(MOST_UNUSED));
        Self { seen: files(), opened: files() }
    }
}

impl Recent {
    /// Holds a file until as many others were used since.
    pub fn touch(&self, file: &Arc<ShownFile>, used: Use) {
        let files = if used == Use::Opened { &self.opened } else { &self.seen };
        let old = files.lock().push(Arc::as_ptr(file).addr(), file.clone());
        // What is driven out ends outside the lock.
        drop(old);
    }
}
