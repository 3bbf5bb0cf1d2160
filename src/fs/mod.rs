//! The tree of names, the inodes and the FUSE adapter.
//!
//! | module | contents |
//! | --- | --- |
//! | `node` | the interface of a directory, a file or a link |
//! | `service` | the meaning of a request, without the kernel's protocol; inode numbers |
//! | `pool` | the threads that answer, and the watch over waiting requesters |
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

pub use crate::session::{Children, DirEntry, DirectoryNames, EntryKind, Watcher};
pub use adapter::Invalidator;
pub use error::Error;
pub use node::{Attributes, Node, NodeRef, Xattrs};
