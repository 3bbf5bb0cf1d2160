//! Checks before a mount, each with an error of its own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crossbeam_channel::bounded;
use rustix::process::{Resource, getrlimit};

use super::{HELPER, MountError};
use crate::fs::adapter::session_threads;
use crate::source::mounts;

/// The device that requests of the kernel are read from.
pub const FUSE: &str = "/dev/fuse";

/// Least address space of a mount, without its session threads.
const ADDRESS_SPACE: u64 = 512 << 20;

/// Address space of a session thread: a stack, and a buffer of 16 MiB whose failed allocation ends the process.
const THREAD: u64 = 32 << 20;

/// How long a mount may take to answer. The daemon of one that does not hangs.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether an error says that the daemon of a mount is gone, or is about to go.
fn is_dead(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOTCONN | libc::ECONNABORTED))
}

/// Whether the daemon of a mount is gone. One that hangs is not.
fn is_stale(path: &Path) -> bool {
    let (sender, answer) = bounded(1);
    let path = path.to_owned();
    let thread = std::thread::Builder::new().name("hepfs-stale".to_owned());
    // The kernel answers `stat` of a dead mount from memory for a while, but never an open. Without a thread, nothing
    // is known.
    let _ = thread.spawn(move || sender.send(fs::read_dir(path).is_err_and(|error| is_dead(&error))));
    answer.recv_timeout(PATIENCE).unwrap_or(false)
}

/// Checks that a directory can be mounted on, and resolves its symbolic links.
pub fn check_mountpoint(path: &Path) -> Result<PathBuf, MountError> {
    let refuse = MountError::at(path);
    let resolved = mounts::resolve(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => MountError::NoMountpoint(path.to_owned()),
        _ => refuse(error),
    })?;
    let here = mounts::mount_at(&resolved).map_err(MountError::System)?.map(|mount| mount.fs_type);
    if here.as_deref() == Some(mounts::HEPFS) {
        return Err(if is_stale(&resolved) {
            MountError::Stale(resolved)
        } else {
            MountError::AlreadyMounted(resolved)
        });
    }
    let metadata = fs::metadata(&resolved).map_err(|error| match here {
        Some(fs_type) if is_dead(&error) => MountError::NotOurs { path: resolved.clone(), fs_type },
        _ => refuse(error),
    })?;
    if !metadata.is_dir() {
        return Err(MountError::NotADirectory(resolved));
    }
    Ok(resolved)
}

/// Whether a mount point has nothing that a mount would hide.
pub fn is_empty(path: &Path) -> Result<bool, MountError> {
    Ok(fs::read_dir(path).map_err(MountError::at(path))?.next().is_none())
}

/// Checks that the mount hides no source.
pub fn check_sources(mountpoint: &Path, sources: &[PathBuf]) -> Result<(), MountError> {
    for source in sources {
        let resolved = source.canonicalize().unwrap_or_else(|_| source.clone());
        if resolved.starts_with(mountpoint) {
            let mountpoint = mountpoint.to_owned();
            return Err(MountError::HidesSource { mountpoint, source_path: resolved });
        }
    }
    Ok(())
}

/// Checks that this user may open `/dev/fuse`: the error of the mount itself would be a bare "permission denied".
pub fn check_device() -> Result<(), MountError> {
    match fs::OpenOptions::new().read(true).write(true).open(FUSE) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ENODEV) => {
            Err(MountError::NoDevice)
        }
        Err(error) => Err(MountError::DeviceRefused(error)),
    }
}

/// The helper for ordinary users, if it is installed.
pub fn helper() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = [PathBuf::from("/bin"), PathBuf::from("/sbin")];
    std::env::split_paths(&path).chain(usual).map(|folder| folder.join(HELPER)).find(|file| file.exists())
}

/// Turns an answer of mount(2), or of the helper, into the error that explains it.
pub fn refusal(mountpoint: &Path, error: io::Error) -> MountError {
    let said = error.to_string();
    if said.contains("user_allow_other") {
        return MountError::AllowOtherRefused;
    }
    let reason = said.trim().trim_start_matches(HELPER).trim_start_matches([':', ' ']).to_owned();
    MountError::Refused { path: mountpoint.to_owned(), reason }
}

/// Refuses an address space too small for the threads or their buffers: a failed allocation ends the process and leaves
/// a dead mount behind.
pub fn check_address_space() -> Result<(), MountError> {
    let least = ADDRESS_SPACE + THREAD * session_threads() as u64;
    match getrlimit(Resource::As).current {
        Some(limit) if limit < least => Err(MountError::AddressSpace { limit, least }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_over_a_source_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        let source = real.join("run.h5");
        fs::write(&source, b"").unwrap();
        let refused = check_sources(&real, std::slice::from_ref(&source));
        assert!(matches!(refused, Err(MountError::HidesSource { .. })), "{refused:?}");
        assert!(check_sources(&real, std::slice::from_ref(&real)).is_err());
        assert!(check_sources(&real.join("mnt"), &[source]).is_ok());
    }

    #[test]
    fn a_mount_point_must_be_a_directory() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(matches!(check_mountpoint(file.path()), Err(MountError::NotADirectory(_))));
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(check_mountpoint(&folder.path().join("none")), Err(MountError::NoMountpoint(_))));
    }

    #[test]
    fn the_helper_is_quoted_without_its_name() {
        let error =
            refusal(Path::new("/m"), io::Error::other("fusermount3: user has no write access to mountpoint /m\n"));
        assert_eq!(error.to_string(), "cannot mount on /m: user has no write access to mountpoint /m");
    }
}
