//! Identities of files: any two states of a file differ in theirs.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

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
    /// Takes the identity from `stat`'s answer.
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            mtime: (metadata.mtime(), metadata.mtime_nsec()),
            ctime: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether a change after `now` is sure to move `ctime`: file systems count time in steps of some milliseconds,
    /// some of a second or two.
    pub fn is_settled_at(&self, now: SystemTime) -> bool {
        let (seconds, nanoseconds) = self.ctime;
        let step = if nanoseconds == 0 { Duration::from_secs(3) } else { Duration::from_millis(50) };
        let since_epoch = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        let changed = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
        i128::try_from(since_epoch).is_ok_and(|now| now >= changed + step.as_nanos().cast_signed())
    }

    /// Whether the two are equal in everything but `ctime`, which a rename or a change of mode moves as well.
    pub fn same_content_as(&self, other: &Self) -> bool {
        Self { ctime: other.ctime, ..*self } == *other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_settled_some_time_after_its_change() {
        let changed =
            |nanoseconds| Identity { device: 1, inode: 2, size: 3, mtime: (0, 0), ctime: (1_700_000_000, nanoseconds) };
        let at = |milliseconds| SystemTime::UNIX_EPOCH + Duration::from_millis(milliseconds);
        assert!(!changed(999_000_000).is_settled_at(at(1_700_000_001_048)));
        assert!(changed(999_000_000).is_settled_at(at(1_700_000_001_049)));
        // Perhaps a file system that counts in seconds.
        assert!(!changed(0).is_settled_at(at(1_700_000_002_999)));
        assert!(changed(0).is_settled_at(at(1_700_000_003_000)));
        // A clock that was wrong, on one side or the other.
        assert!(!changed(1).is_settled_at(at(0)));
        assert!(Identity { ctime: (-1, 1), ..changed(0) }.is_settled_at(at(0)));
    }
}
