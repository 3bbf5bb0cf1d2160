//! Every change of a file that a writing worker makes goes through here.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

/// Writes bytes at a place.
pub(in crate::h5::worker) fn write_all_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    rehearsal::room()?;
    file.write_all_at(bytes, at)?;
    rehearsal::step();
    Ok(())
}

/// Makes the file as long as that.
pub(in crate::h5::worker) fn set_len(file: &File, length: u64) -> io::Result<()> {
    file.set_len(length)?;
    rehearsal::step();
    Ok(())
}

/// Length of a file. (`stat` may take a path, which the sandbox forbids.)
pub(in crate::h5::worker) fn length(mut file: &File) -> io::Result<u64> {
    file.seek(SeekFrom::End(0))
}

/// Waits until what was written is on the disk.
pub(in crate::h5::worker) fn sync(file: &File) -> io::Result<()> {
    file.sync_data()
}

/// Dying at a chosen write, and a disk that is full from one on, for tests of what that leaves behind. There is none of
/// it in an optimised program.
mod rehearsal {
    use std::io;
    #[cfg(debug_assertions)]
    use std::sync::LazyLock;
    #[cfg(debug_assertions)]
    use std::sync::atomic::{AtomicU64, Ordering};

    #[cfg(debug_assertions)]
    fn count(name: &str) -> AtomicU64 {
        let given = std::env::var(name).ok().and_then(|given| given.parse().ok());
        AtomicU64::new(given.unwrap_or(u64::MAX))
    }

    /// Fails when as many writes were made as the environment says.
    #[cfg(debug_assertions)]
    pub fn room() -> io::Result<()> {
        static LEFT: LazyLock<AtomicU64> = LazyLock::new(|| count(crate::h5::REHEARSED_FULL));
        let left = LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        left.map(drop).map_err(|_| io::Error::from_raw_os_error(libc::ENOSPC))
    }

    #[cfg(not(debug_assertions))]
    pub fn room() -> io::Result<()> {
        Ok(())
    }

    /// Ends the process when as many changes were made as the environment says.
    #[cfg(debug_assertions)]
    pub fn step() {
        static LEFT: LazyLock<AtomicU64> = LazyLock::new(|| count(crate::h5::REHEARSED_DEATH));
        if LEFT.fetch_sub(1, Ordering::Relaxed) == 1 {
            // SAFETY: no arguments that matter; nothing runs any more.
            unsafe { libc::_exit(9) };
        }
    }

    #[cfg(not(debug_assertions))]
    pub fn step() {}
}
