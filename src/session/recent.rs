//! An LRU of files that keeps them when nobody uses them.

use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;
use parking_lot::Mutex;

use super::file::ShownFile;
use super::last_used;

/// Most unused files of an opening to keep, once among the opened and once among the seen: computing their exact sizes
/// may have taken a pass.
const MOST_UNUSED: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// How a file is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// A program looked at its size or attributes.
    Seen,
    /// A program opened it. Files that were only seen do not evict it.
    Opened,
}

/// The files of an opening used last.
pub(crate) struct Recent {
    seen: Mutex<Files>,
    opened: Mutex<Files>,
}

/// Files by address, which is unique as long as the file is held.
type Files = LruCache<usize, Arc<ShownFile>>;

impl Default for Recent {
    fn default() -> Self {
        Self { seen: Mutex::new(last_used(MOST_UNUSED)), opened: Mutex::new(last_used(MOST_UNUSED)) }
    }
}

impl Recent {
    /// Marks a file as used last.
    pub fn touch(&self, file: &Arc<ShownFile>, used: Use) {
        let files = if used == Use::Opened { &self.opened } else { &self.seen };
        let old = files.lock().push(Arc::as_ptr(file).addr(), file.clone());
        // The evicted file is dropped outside the lock.
        drop(old);
    }
}
