//! Settings of the workers, and the limits of a request.

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
    /// Whether to follow external links, storage and virtual sources to files below the source's own folder.
    pub follow_external: bool,
    /// Longest time of a request; by default 10 s.
    pub deadline: Duration,
    /// Longest time that a worker lists links for one answer, so that the deadline catches hangs and not large groups;
    /// by default 2 s.
    pub page_time: Duration,
    /// Address space of a worker in bytes (`RLIMIT_AS`).
    pub memory: u64,
    /// Names of attributes that the worker reads of every object, however many attributes the object has.
    pub attributes: Arc<[String]>,
    /// Most workers alive at once over all clients; by default 8.
    pub workers: usize,
    /// Time after which an idle worker ends; by default 30 s.
    pub idle: Duration,
    /// Whether the client lists [simple files](crate::codec::structure::simple) itself, without a worker; by default it
    /// does.
    pub lists_simple: bool,
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
            lists_simple: true,
        }
    }
}

/// Most bytes of elements of one [`Client::read`](super::Client::read).
pub const READ_LIMIT: u64 = super::protocol::MAX_ELEMENTS;

/// A box of elements to read: `start` and `count` for each dimension (both empty for a scalar).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// First element in each dimension.
    pub start: Vec<u64>,
    /// Number of elements in each dimension.
    pub count: Vec<u64>,
}
