//! What tells one state of a file from another.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use serde::{Deserialize, Serialize};

/// Device, inode, size and both times of a file: two files or two states of one file differ in at least one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// Device number (`st_dev`).
    pub device: u64,
    /// Inode number (`st_ino`).
    pub inode: u64,
    /// Length in bytes.
    pub size: u64,
    /// Last change of content: seconds and nanoseconds since the epoch.
    pub mtime: (i64, i64),
    /// Last change of content or attributes: seconds and nanoseconds since the epoch.
    pub ctime: (i64, i64),
}

impl Identity {
    /// Reads the identity out of `stat`'s answer.
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            mtime: (metadata.mtime(), metadata.mtime_nsec()),
            ctime: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Equal in everything but `ctime`, which a rename or a change of mode moves as well.
    pub fn same_content_as(&self, other: &Self) -> bool {
        Self { ctime: other.ctime, ..*self } == *other
    }
}
