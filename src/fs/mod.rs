//! The tree of names, the inodes and the FUSE adapter.

mod error;
pub mod names;
mod node;
pub mod tree;

pub use error::Error;
pub use node::{Attributes, Children, DirEntry, Kind, Node, NodeRef};
