//! Every change that a writing worker makes to a file goes through here.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

/// Writes bytes at an offset.
pub(in crate::h5::worker) fn write_all_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    rehearsal::room()?;
    file.write_all_at(bytes, at)?;
    rehearsal::step();
    Ok(())
}

/// Sets the length of the file.
pub(in crate::h5::worker) fn set_len(file: &File, length: u64) -> io::Result<()> {
    file.set_len(length)?;
    rehearsal::step();
    Ok(())
}

/// Length of a file. (`stat` may take a path, which the sandbox forbids.)
pub(in crate::h5::worker) fn length(mut file: &File) -> io::Result<u64> {
    file.seek(SeekFrom::End(0))
}

/// Waits until the written bytes are on the disk.
pub(in crate::h5::worker) fn sync(file: &File) -> io::Result<()> {
    file.sync_data()
}

/// Death at a chosen write, and a disk that is full from a chosen write on, to test the state that they leave. An
/// optimised program has none of this.
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

    /// Fails after as many writes as the environment variable says.
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

    /// Ends the process after as many changes as the environment variable says.
    #[cfg(debug_assertions)]
    pub fn step() {
        static LEFT: LazyLock<AtomicU64> = LazyLock::new(|| count(crate::h5::REHEARSED_DEATH));
        if LEFT.fetch_sub(1, Ordering::Relaxed) == 1 {
            // SAFETY: no arguments that matter; nothing else runs any more.
            unsafe { libc::_exit(9) };
        }
    }

    #[cfg(not(debug_assertions))]
    pub fn step() {}
}
