//! The journal of a commit: the old bytes of the file, beside the file, until every change is on the disk.
//!
//! ```text
//! "hepfsJ1\n"  changes (8)  then for each: place (8), length (8), bytes before, bytes after  xxh3 of all that (8)
//! ```
//!
//! Numbers are little-endian. If a journal ends too early or has a wrong checksum, it was incomplete and the commit had
//! not begun, so the file is unchanged.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

const MAGIC: &[u8; 8] = b"hepfsJ1\n";

/// Longest journal: changes are limited by the memory of the worker, so a longer file is not ours.
const LONGEST: u64 = 1 << 30;

/// The bytes that one write changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::h5) struct JournalChange {
    /// First byte in the file.
    pub at: u64,
    /// The old bytes.
    pub before: Vec<u8>,
    /// The new bytes, of the same length.
    pub after: Vec<u8>,
}

impl JournalChange {
    /// One past the last byte.
    pub fn end(&self) -> u64 {
        self.at + self.before.len() as u64
    }

    /// Copies the new bytes over bytes of the file that begin at `start`.
    pub fn apply(&self, start: u64, bytes: &mut [u8]) {
        let end = start + bytes.len() as u64;
        let (from, to) = (self.at.max(start), self.end().min(end));
        if from >= to {
            return;
        }
        let (into, after) = ((from - start) as usize..(to - start) as usize, (from - self.at) as usize);
        if let (Some(into), Some(after)) = (bytes.get_mut(into), self.after.get(after..)) {
            into.iter_mut().zip(after).for_each(|(to, from)| *to = *from);
        }
    }
}

/// Path of the journal of a file.
pub(in crate::h5) fn path_of(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".hepfs-journal");
    file.with_file_name(name)
}

/// Encodes changes as a journal, in the order of their writes.
pub(in crate::h5) fn encode(changes: &[JournalChange]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend((changes.len() as u64).to_le_bytes());
    for change in changes {
        bytes.extend(change.at.to_le_bytes());
        bytes.extend((change.before.len() as u64).to_le_bytes());
        bytes.extend(&change.before);
        bytes.extend(&change.after);
    }
    bytes.extend(xxh3_64(&bytes).to_le_bytes());
    bytes
}

/// Decodes the changes of a journal; `None`: the journal is incomplete.
fn decode(bytes: &[u8]) -> Option<Vec<JournalChange>> {
    let (body, sum) = bytes.split_last_chunk::<8>()?;
    if xxh3_64(body) != u64::from_le_bytes(*sum) {
        return None;
    }
    let mut rest = body.strip_prefix(MAGIC)?;
    let mut take = |length: u64| {
        let (taken, behind) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        rest = behind;
        Some(taken)
    };
    let count = number(take(8)?)?;
    let mut changes = Vec::new();
    for _ in 0..count {
        let (at, length) = (number(take(8)?)?, number(take(8)?)?);
        let (before, after) = (take(length)?.to_vec(), take(length)?.to_vec());
        changes.push(JournalChange { at, before, after });
    }
    rest.is_empty().then_some(changes)
}

fn number(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// The outcome for a file that may have a journal beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::h5) enum JournalRecovery {
    /// No journal, or an empty one.
    Nothing,
    /// The commit had not begun, or the file already had its old bytes.
    Unchanged,
    /// The old bytes were put back.
    PutBack,
}

/// The reason why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub(in crate::h5) enum Unusable {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("another program has changed byte {0} of the file since")]
    Changed(u64),
}

/// Puts a file back to its state before an unfinished commit. The file must be locked, and open for writing.
pub(in crate::h5) fn recover(file: &File, journal: &Path) -> Result<JournalRecovery, Unusable> {
    let found = match OpenOptions::new().read(true).custom_flags_nofollow().open(journal) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(JournalRecovery::Nothing),
        Err(error) => return Err(error.into()),
    };
    let metadata = found.metadata()?;
    if !metadata.is_file() || metadata.len() > LONGEST {
        return Err(io::Error::other("is not a journal of hepfs").into());
    }
    let mut bytes = vec![0; usize::try_from(metadata.len()).map_err(io::Error::other)?];
    found.read_exact_at(&mut bytes, 0)?;
    let result = match decode(&bytes) {
        Some(changes) => put_back(file, &changes)?,
        None if bytes.is_empty() => JournalRecovery::Nothing,
        None => JournalRecovery::Unchanged,
    };
    std::fs::remove_file(journal)?;
    Ok(result)
}

fn put_back(file: &File, changes: &[JournalChange]) -> Result<JournalRecovery, Unusable> {
    let mut differs = false;
    for change in changes {
        let mut now = vec![0; change.before.len()];
        file.read_exact_at(&mut now, change.at)?;
        differs |= now != change.before;
        if now == change.before || now == change.after {
            continue;
        }
        // Two changes may cover one byte, and after a power failure the disk may have either.
        for (place, byte) in (change.at..).zip(&now) {
            let is_ours = changes.iter().any(|change| {
                let at = place.checked_sub(change.at).and_then(|at| usize::try_from(at).ok());
                at.is_some_and(|at| change.before.get(at) == Some(byte) || change.after.get(at) == Some(byte))
            });
            if !is_ours {
                return Err(Unusable::Changed(place));
            }
        }
    }
    for change in changes.iter().rev() {
        file.write_all_at(&change.before, change.at)?;
    }
    file.sync_data()?;
    Ok(if differs { JournalRecovery::PutBack } else { JournalRecovery::Unchanged })
}

/// Opens without following a symbolic link: another user may have put one there.
trait NoFollow {
    fn custom_flags_nofollow(&mut self) -> &mut Self;
}

impl NoFollow for OpenOptions {
    fn custom_flags_nofollow(&mut self) -> &mut Self {
        std::os::unix::fs::OpenOptionsExt::custom_flags(self, libc::O_NOFOLLOW | libc::O_NONBLOCK)
    }
}

/// Creates an empty journal.
pub(in crate::h5) fn create(journal: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).custom_flags_nofollow().open(journal)
}
