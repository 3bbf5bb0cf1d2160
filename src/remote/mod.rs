//! Objects of stores on a network, as sources.
//!
//! A client (`client`) asks a store for ranges of one version of an object. What reads a source asks for small pieces,
//! one after the other; each would wait for the network. So a fetcher (`fetch`) lies between: it merges, asks ahead,
//! and keeps what was fetched, within the memory budget.

mod client;
pub mod fetch;
mod options;
pub mod runtime;

use std::fmt::Debug;
use std::ops::Range;

use bytes::Bytes;
use futures_util::stream::BoxStream;

use crate::source;

pub use client::{Address, RemoteFailure, RemoteStores};
pub use options::RemoteOptions;

/// One version of an object, asked for by ranges.
pub trait RangeClient: Debug + Send + Sync {
    /// Asks for bytes `range`, which is not empty and ends within the object. The pieces follow each other; without an
    /// error they are exactly these bytes, all of this version. A client that loses an answer on its way asks again for
    /// the rest by itself, so an error is final.
    ///
    /// # Errors
    /// [`source::Error::Changed`] where the store has this version no longer; else why it cannot be read.
    fn get(&self, range: Range<u64>) -> BoxStream<'static, Result<Bytes, source::Error>>;
}
