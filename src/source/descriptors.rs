//! Counts the open sources: the descriptors of a process are limited.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Resource, getrlimit};

/// A quarter of the descriptors that the process may have: a source whose worker runs takes two more, and pipes,
/// sockets and folders need some as well.
static MOST: LazyLock<u64> = LazyLock::new(|| getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / 4);

static OPEN: AtomicU64 = AtomicU64::new(0);

/// Counts the descriptor of a source until it is dropped.
#[derive(Debug)]
pub(super) struct OpenDescriptor(());

impl OpenDescriptor {
    pub fn new() -> Self {
        OPEN.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for OpenDescriptor {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The number of sources to keep open at most, as far as they can be closed.
pub fn most_open() -> u64 {
    *MOST
}

/// Whether more sources are open than [`most_open`].
pub fn are_too_many_open() -> bool {
    OPEN.load(Ordering::Relaxed) > most_open()
}
