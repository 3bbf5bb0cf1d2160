//! The client of the HDF5 worker process, and the worker: all use of libhdf5 is in here.
//!
//! libhdf5 crashes or hangs on some damaged files, and because of one lock inside it a single hang stops the whole
//! program. So it runs in processes of its own, started from our own binary. Each runs in a sandbox without access to
//! the file system, and reads through the one descriptor that the daemon opened, or asks the daemon for the bytes of an
//! object. A death or a hang fails the current request and nothing else.
//!
//! Each room imports from those above it in this list:
//!
//! | room | task |
//! | --- | --- |
//! | `element` | types and values of new elements |
//! | `steps` | the steps of a writing worker |
//! | `protocol` | the messages over the socket |
//! | `error`, `options` | errors of requests; settings |
//! | `library` | libhdf5's functions, identifiers, errors and strings |
//! | `objects` | creates objects |
//! | `create` | creates files |
//! | `client` | starts workers and sends them requests |
//! | `writing` | makes a worker write into a file, all or nothing |
//! | `worker` | the other side of the socket |

mod client;
pub mod create;
pub mod element;
mod error;
mod library;
mod objects;
mod options;
pub(crate) mod protocol;
pub mod steps;
mod worker;
mod writing;

pub use client::Client;
pub use error::Error;
pub use options::{Options, READ_LIMIT, Region};
#[cfg(feature = "fuzzing")]
pub use worker::ListedChunks;
pub use worker::{serve_if_worker, serves};
pub use writing::{ElementPayload, Exclusive, WRITE_LIMIT, WriteError, WritingClient, check_is_local, journal_of};

/// The hidden argument that makes the program a nursery; the process id of the daemon follows.
const WORKER: &str = "hdf5-worker";

/// The version of libhdf5: `2.2.0`.
pub fn library_version() -> String {
    let hdf5_metno_sys::Version { major, minor, micro } = hdf5_metno_sys::HDF5_VERSION;
    format!("{major}.{minor}.{micro}")
}

/// The environment variable that makes a writing worker die at a chosen write, for tests.
#[cfg(debug_assertions)]
const REHEARSED_DEATH: &str = "HEPFS_REHEARSED_DEATH";

/// The environment variable with the number of writes after which a writing worker finds the disk full, in a program
/// with debug assertions; for tests.
#[cfg(debug_assertions)]
const REHEARSED_FULL: &str = "HEPFS_REHEARSED_FULL";
