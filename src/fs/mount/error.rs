//! Errors of mounting and unmounting; their text says how to mend each.

use std::io;
use std::path::{Path, PathBuf};

use super::HELPER;
use super::locks::Lock;

/// An error of mounting or unmounting.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// The mount point does not exist.
    #[error("{path}: No such file or directory; `mkdir {path}` makes it", path = .0.display())]
    NoMountpoint(PathBuf),
    /// The mount point is unusable, for example because the user may not enter it.
    #[error("{path}: {error}", path = .path.display())]
    Mountpoint {
        /// The mount point.
        path: PathBuf,
        /// The error from the system.
        error: io::Error,
    },
    /// The mount point is not a directory.
    #[error("{path}: not a directory; a mount point must be one", path = .0.display())]
    NotADirectory(PathBuf),
    /// A hepfs is already mounted there.
    #[error("{path}: a hepfs file system is mounted here already; `hepfs umount {path}` ends it", path = .0.display())]
    AlreadyMounted(PathBuf),
    /// A hepfs was mounted there, and its daemon is gone.
    #[error(
        "{path}: left over from a hepfs that was killed; as root or the user who mounted it, `hepfs umount {path}` \
         (or `fusermount3 -u {path}`) clears it",
        path = .0.display()
    )]
    Stale(PathBuf),
    /// The mount would hide a source.
    #[error(
        "{mountpoint}: {source_path} lies in it and would be hidden; choose another mount point",
        mountpoint = .mountpoint.display(), source_path = .source_path.display()
    )]
    HidesSource {
        /// The mount point.
        mountpoint: PathBuf,
        /// The source within the mount point.
        source_path: PathBuf,
    },
    /// The address space has no room for the threads of a mount.
    #[error("an address space of {limit} bytes (`ulimit -v`) is too small: a mount takes {least} here")]
    AddressSpace {
        /// The limit of the process.
        limit: u64,
        /// The least that a mount needs.
        least: u64,
    },
    /// This system has no FUSE.
    #[error(
        "/dev/fuse does not exist: the kernel module `fuse` is not loaded (`modprobe fuse`), or a container hides it"
    )]
    NoDevice,
    /// The user may not use FUSE.
    #[error("/dev/fuse may not be opened ({0}): the system's administrator decides who may mount")]
    DeviceRefused(io::Error),
    /// The helper for ordinary users is missing.
    #[error("{HELPER} is not installed: an ordinary user needs it to mount and unmount (package `fuse3`)")]
    NoHelper,
    /// The kernel refuses namespaces; nothing has changed.
    #[error("no namespace to mount in: {0}")]
    Locked(Lock),
    /// The kernel refuses to set up the new namespaces that this process is in.
    #[error("no namespace to mount in: {0}")]
    Namespace(Lock),
    /// This user may not use `--allow-other`.
    #[error(
        "--allow-other is refused: an ordinary user may use it only where /etc/fuse.conf has the line \
         `user_allow_other`"
    )]
    AllowOtherRefused,
    /// mount(2) or the helper refused to mount.
    #[error("cannot mount on {path}: {reason}", path = .path.display())]
    Refused {
        /// The mount point.
        path: PathBuf,
        /// The reason that it gave.
        reason: String,
    },
    /// No file system is mounted there.
    #[error("{path}: nothing is mounted here", path = .0.display())]
    NotMounted(PathBuf),
    /// Another file system is mounted there.
    #[error("{path}: the file system mounted here is {fs_type}, not hepfs", path = .path.display())]
    NotOurs {
        /// The mount point.
        path: PathBuf,
        /// Type of the file system that is mounted there.
        fs_type: String,
    },
    /// The mount is in use.
    #[error(
        "{path}: in use (an open file, or a shell whose folder is in it); `hepfs umount --lazy {path}` detaches it now",
        path = .0.display()
    )]
    Busy(PathBuf),
    /// umount(2) or the helper refused to unmount.
    #[error("cannot unmount {path}: {reason}", path = .path.display())]
    UnmountRefused {
        /// The mount point.
        path: PathBuf,
        /// The reason that it gave.
        reason: String,
    },
    /// The process cannot catch signals, or cannot read `/proc`.
    #[error("{0}")]
    System(io::Error),
}

impl MountError {
    /// Makes an error of the system one of this mount point.
    pub(super) fn at(path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        move |error| Self::Mountpoint { path: path.to_owned(), error }
    }

    /// Whether the system keeps this user from mounting, either anywhere or on this mount point.
    pub fn is_of_system(&self) -> bool {
        matches!(
            self,
            Self::NoDevice
                | Self::DeviceRefused(_)
                | Self::NoHelper
                | Self::Refused { .. }
                | Self::Locked(_)
                | Self::Namespace(_)
        )
    }
}
