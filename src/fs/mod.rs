//! The tree of names, the inodes and the FUSE adapter.
//!
//! | module | what it is |
//! | --- | --- |
//! | `node` | what a directory, a file or a link must answer |
//! | `service` | what a request means, without the kernel's protocol; the numbers the kernel knows nodes by |
//! | `pool` | the threads that answer, and the watch over those who wait |
//! | `adapter` | the translation from and to the kernel's protocol; the only user of `fuser` |
//! | [`mount`] | mounting, unmounting, stopping on a signal |
//! | [`watch`] | notices when a source changes |

mod adapter;
mod error;
pub mod mount;
mod node;
mod options;
mod pool;
mod service;
pub mod tree;
pub mod watch;

pub use crate::session::{Children, DirEntry, Kind, Names, Watcher};
pub use adapter::Invalidator;
pub use error::Error;
pub use node::{Attributes, Node, NodeRef, Xattrs};
