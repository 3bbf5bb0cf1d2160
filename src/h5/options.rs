//! Settings of the workers, and what may be asked of them at once.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Settings of the workers.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program to start, by default the running one, even where another has taken its name since.
    /// It must call [`serve_if_worker`](super::serve_if_worker) first.
    pub program: PathBuf,
    /// Folder of HDF5 filter plugins, none by default.
    pub plugins: Option<PathBuf>,
    /// Follow external links, storage and virtual sources to files below the source's own folder.
    pub follow_external: bool,
    /// How long a request may take; 10 s.
    pub deadline: Duration,
    /// How long a worker lists links for one answer, so that the deadline is for what hangs and not for what is large;
    /// 2 s.
    pub page_time: Duration,
    /// Address space of a worker in bytes (`RLIMIT_AS`).
    pub memory: u64,
    /// Names of attributes that are described of every object, however many it has.
    pub attributes: Arc<[String]>,
    /// Workers alive at once over all clients; 8.
    pub workers: usize,
    /// An idle worker is ended after this time; 30 s.
    pub idle: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            program: PathBuf::from("/proc/self/exe"),
            plugins: None,
            follow_external: false,
            deadline: Duration::from_secs(10),
            page_time: Duration::from_secs(2),
            memory: 4 << 30,
            attributes: Arc::default(),
            workers: 8,
            idle: Duration::from_secs(30),
        }
    }
}

/// Bytes of elements that one [`Client::read`](super::Client::read) may ask for.
pub const READ_LIMIT: u64 = super::protocol::MAX_ELEMENTS;

/// A box of elements to read: `start` and `count` for each dimension (both empty for a scalar).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// First element.
    pub start: Vec<u64>,
    /// Elements.
    pub count: Vec<u64>,
}
