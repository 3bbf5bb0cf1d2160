//! What the rest of the program may ask of libhdf5.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::catalogue::{ChunkMap, Elements, FileInfo, Group, Object, ObjectId};
use crate::source::{Interrupt, Source};

/// Why a request to the worker failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// libhdf5 refused, with its own words (innermost message of its error stack first).
    #[error("{0}")]
    Hdf5(String),
    /// The file is no HDF5 file, or a kind that is not supported.
    #[error("{0}")]
    NotHdf5(String),
    /// The worker died while executing this request.
    #[error("the HDF5 library crashed while {0}")]
    Died(String),
    /// The worker did not answer in time.
    #[error("the HDF5 library did not finish {what} within {seconds} s")]
    Deadline {
        /// What was asked.
        what: String,
        /// The deadline.
        seconds: u64,
    },
    /// The request killed or hung a worker twice before and is not tried again.
    #[error("refused: {0} crashed or hung the HDF5 library before")]
    Poisoned(String),
    /// The answer would be larger than a request may be.
    #[error("{what} needs {bytes} bytes, more than the {limit} a request may take")]
    TooLarge {
        /// What was asked.
        what: String,
        /// Bytes needed.
        bytes: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The worker could not be started or spoken to.
    #[error("cannot run the HDF5 worker: {0}")]
    Worker(String),
    /// Nobody waits for the answer any more.
    #[error("interrupted")]
    Interrupted,
}

/// Settings of the workers.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program to start; it must answer to the hidden argument `hdf5-worker`. The running program by default.
    pub program: PathBuf,
    /// Folder of HDF5 filter plugins, none by default.
    pub plugins: Option<PathBuf>,
    /// Follow external links, storage and virtual sources to files below the source's own folder.
    pub follow_external: bool,
    /// How long a request may take; 10 s.
    pub deadline: Duration,
    /// Address space of a worker in bytes (`RLIMIT_AS`).
    pub memory: u64,
    /// Workers alive at once over all clients; 8.
    pub workers: usize,
    /// An idle worker is ended after this time; 30 s.
    pub idle: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            program: std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe")),
            plugins: None,
            follow_external: false,
            deadline: Duration::from_secs(10),
            memory: 4 << 30,
            workers: 8,
            idle: Duration::from_secs(30),
        }
    }
}

/// A box of elements to read: `start` and `count` for each dimension (both empty for a scalar).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// First element.
    pub start: Vec<u64>,
    /// Elements.
    pub count: Vec<u64>,
}

/// Speaks to the worker of one source. Cheap to share; all methods may be called from any thread.
#[derive(Debug)]
pub struct Client {}

impl Client {
    /// A client for `source`; no worker is started before the first request.
    pub fn new(source: Arc<Source>, options: Options) -> Self {
        let _ = (source, options);
        Self {}
    }

    /// Facts about the file.
    ///
    /// # Errors
    /// [`Error::NotHdf5`] where it is none; see [`Error`] for the rest.
    pub fn file(&self, interrupt: &Interrupt) -> Result<FileInfo, Error> {
        let _ = interrupt;
        Err(Error::Worker("not built yet".into()))
    }

    /// A group with its links and a description of every object behind them (asked for in pages).
    ///
    /// # Errors
    /// See [`Error`]. A link or object that cannot be read is described as such and fails nothing else.
    pub fn group(&self, id: ObjectId, interrupt: &Interrupt) -> Result<Group, Error> {
        let _ = (id, interrupt);
        Err(Error::Worker("not built yet".into()))
    }

    /// One object.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn object(&self, id: ObjectId, interrupt: &Interrupt) -> Result<Object, Error> {
        let _ = (id, interrupt);
        Err(Error::Worker("not built yet".into()))
    }

    /// The chunks of a chunked dataset (asked for in pages).
    ///
    /// # Errors
    /// See [`Error`]; [`Error::TooLarge`] past `limit` chunks.
    pub fn chunks(&self, id: ObjectId, limit: u64, interrupt: &Interrupt) -> Result<ChunkMap, Error> {
        let _ = (id, limit, interrupt);
        Err(Error::Worker("not built yet".into()))
    }

    /// Elements of any dataset through `H5Dread`, in the file's own type, in row-major order.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::TooLarge`] where the answer would pass the bound of a request.
    pub fn read(&self, id: ObjectId, region: &Region, interrupt: &Interrupt) -> Result<Elements, Error> {
        let _ = (id, region, interrupt);
        Err(Error::Worker("not built yet".into()))
    }

    /// Elements of a dataset of references, as text: the path of the object in its file and, for a region, the
    /// selection behind it; `None` for a null or dangling reference.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn references(
        &self,
        id: ObjectId,
        start: u64,
        count: u64,
        interrupt: &Interrupt,
    ) -> Result<Vec<Option<String>>, Error> {
        let _ = (id, start, count, interrupt);
        Err(Error::Worker("not built yet".into()))
    }
}
