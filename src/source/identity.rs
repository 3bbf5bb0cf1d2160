//! Identities of sources: any two states of a source differ in theirs.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Size and state of a source: two sources or two states of one source differ in at least one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// Length in bytes.
    pub size: u64,
    /// Everything else that tells it from others.
    pub state: SourceState,
}

/// The state of a source, without its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SourceState {
    /// A local file, as `stat` describes it.
    File {
        /// Device number (`st_dev`).
        device: u64,
        /// Inode number (`st_ino`).
        inode: u64,
        /// Last change of content: seconds and nanoseconds since the epoch.
        mtime: (i64, i64),
        /// Last change of content or attributes: seconds and nanoseconds since the epoch.
        ctime: (i64, i64),
    },
    /// A version of an object in a store: 128 bits of a hash of its place and version.
    Object(u128),
}

/// How a store names the content of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectVersion {
    /// The number of a version, in a bucket with versions.
    Version(String),
    /// A strong entity tag (RFC 9110 §8.8.3).
    Tag(String),
}

impl Identity {
    /// Takes the identity from `stat`'s answer.
    pub(super) fn of(metadata: &Metadata) -> Self {
        let state = SourceState::File {
            device: metadata.dev(),
            inode: metadata.ino(),
            mtime: (metadata.mtime(), metadata.mtime_nsec()),
            ctime: (metadata.ctime(), metadata.ctime_nsec()),
        };
        Self { size: metadata.size(), state }
    }

    /// The identity of an open file.
    ///
    /// # Errors
    /// Those of `fstat(2)`.
    pub fn of_file(file: &File) -> io::Result<Self> {
        Ok(Self::of(&file.metadata()?))
    }

    /// The identity of an object of `size` bytes. The hash is cryptographic: a hostile store must not be able to give
    /// its object the identity of another one, under which facts are kept.
    pub fn of_object(endpoint: &str, bucket: &str, key: &str, version: &ObjectVersion, size: u64) -> Self {
        let (kind, version) = match version {
            ObjectVersion::Version(version) => ("version", version),
            ObjectVersion::Tag(tag) => ("tag", tag),
        };
        let mut hash = Sha256::new();
        for part in [endpoint, bucket, key, kind, version] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let mut first = [0; 16];
        first.copy_from_slice(&hash.finalize()[..16]);
        Self { size, state: SourceState::Object(u128::from_le_bytes(first)) }
    }

    /// A digest of it, short and not cryptographic.
    pub fn digest(&self) -> u64 {
        let numbers = match self.state {
            SourceState::File { device, inode, mtime, ctime } => {
                let [mtime_s, mtime_ns, ctime_s, ctime_ns] =
                    [mtime.0, mtime.1, ctime.0, ctime.1].map(i64::cast_unsigned);
                [self.size, device, inode, mtime_s, mtime_ns, ctime_s, ctime_ns]
            }
            SourceState::Object(hash) => [self.size, hash as u64, (hash >> 64) as u64, 0, 0, 0, 0],
        };
        let mut bytes = [0; 56];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        xxhash_rust::xxh3::xxh3_64(&bytes)
    }

    /// Whether a change after `now` is sure to change the identity. An object's version does; of a file, `ctime` must
    /// move: file systems count time in steps of some milliseconds, some of a second or two.
    pub fn is_settled_at(&self, now: SystemTime) -> bool {
        let SourceState::File { ctime: (seconds, nanoseconds), .. } = self.state else { return true };
        let step = if nanoseconds == 0 { Duration::from_secs(3) } else { Duration::from_millis(50) };
        let since_epoch = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        let changed = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
        i128::try_from(since_epoch).is_ok_and(|now| now >= changed + step.as_nanos().cast_signed())
    }

    /// Whether the two are equal in everything but a file's `ctime`, which a rename or a change of mode moves as well.
    pub fn same_content_as(&self, other: &Self) -> bool {
        self.without_ctime() == other.without_ctime()
    }

    fn without_ctime(mut self) -> Self {
        if let SourceState::File { ctime, .. } = &mut self.state {
            *ctime = (0, 0);
        }
        self
    }

    /// Whether this may be an earlier state of the same file, to which bytes were appended since.
    pub fn may_grow_into(&self, later: &Self) -> bool {
        self.is_same_file_as(later) && later.size >= self.size
    }

    /// Whether both are states of one file.
    pub(super) fn is_same_file_as(&self, other: &Self) -> bool {
        self.inode().is_some_and(|own| Some(own) == other.inode())
    }

    /// Device and inode of a file.
    fn inode(&self) -> Option<(u64, u64)> {
        match self.state {
            SourceState::File { device, inode, .. } => Some((device, inode)),
            SourceState::Object(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_settled_some_time_after_its_change() {
        let changed_at =
            |ctime| Identity { size: 3, state: SourceState::File { device: 1, inode: 2, mtime: (0, 0), ctime } };
        let changed = |nanoseconds| changed_at((1_700_000_000, nanoseconds));
        let at = |milliseconds| SystemTime::UNIX_EPOCH + Duration::from_millis(milliseconds);
        assert!(!changed(999_000_000).is_settled_at(at(1_700_000_001_048)));
        assert!(changed(999_000_000).is_settled_at(at(1_700_000_001_049)));
        // Perhaps a file system that counts in seconds.
        assert!(!changed(0).is_settled_at(at(1_700_000_002_999)));
        assert!(changed(0).is_settled_at(at(1_700_000_003_000)));
        // A clock that was wrong, on one side or the other.
        assert!(!changed(1).is_settled_at(at(0)));
        assert!(changed_at((-1, 1)).is_settled_at(at(0)));
    }

    /// Expected: `hashlib.sha256` of Python over the parts, each behind its length.
    #[test]
    fn the_identity_of_an_object_is_its_place_and_version() {
        let tag = |tag: &str| ObjectVersion::Tag(tag.into());
        let object = Identity::of_object("https://s3.example", "bucket", "runs/1.h5", &tag("abc"), 7);
        assert_eq!(object, Identity { size: 7, state: SourceState::Object(0x81da5a27ed69b78b7fb53f5c9cc4a03d) });
        assert!(object.is_settled_at(SystemTime::UNIX_EPOCH) && object.same_content_as(&object));
        assert!(!object.may_grow_into(&object));
        let others = [
            Identity::of_object("https://s3.example", "bucket", "runs/1.h5", &tag("abc"), 8),
            Identity::of_object("https://s3.example", "bucket", "runs/1.h5", &tag("abd"), 7),
            Identity::of_object("https://s3.example", "bucket", "runs/1.h5", &ObjectVersion::Version("abc".into()), 7),
            Identity::of_object("https://s3.example", "bucket", "runs/2.h5", &tag("abc"), 7),
            // Another division of the same characters.
            Identity::of_object("https://s3.example", "bucketr", "uns/1.h5", &tag("abc"), 7),
            Identity::of_object("https://s4.example", "bucket", "runs/1.h5", &tag("abc"), 7),
        ];
        assert!(others.iter().all(|other| *other != object && !object.same_content_as(other)));
    }
}
