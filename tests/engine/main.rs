//! The library below its views, without a mount: the HDF5 worker, the store, the tree of nodes, the sample.

mod dialects;
mod h5_pool;
mod h5_worker;
mod library;
mod loom;
#[cfg(feature = "remote")]
mod over_http;
#[cfg(feature = "remote")]
#[path = "../support/range_server.rs"]
mod range_server;
mod remote;
mod sample;
#[path = "../support/shelf.rs"]
mod shelf;
mod simple;
mod store;
mod tree;

use std::path::{Path, PathBuf};

/// A committed test file.
fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}
