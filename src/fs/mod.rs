//! The tree of names, the inodes and the FUSE adapter.

mod error;
mod node;

pub use error::Error;
pub use node::{Attributes, Children, DirEntry, Kind, Node, NodeRef};
