//! Mounts in a user and a mount namespace of this process alone, for which no right is needed.
//!
//! In a user namespace that it made, a process has all capabilities, but over nothing outside of it. Since Linux 4.18
//! that suffices to mount FUSE. No process outside sees the mount, and the kernel removes it with the last process
//! inside.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use bstr::BStr;
use rustix::fs::{FlockOperation, flock, major, minor};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{getegid, geteuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, remove_capability_from_bounding_set, set_capabilities, unshare_unsafe,
};

use super::attach::mount_directly;
use super::checks::{FUSE, check_device, check_mountpoint, check_sources};
use super::locks::{Lock, known_lock, lock_of};
use super::{MountError, READ_AHEAD, set_read_ahead};
use crate::source::mounts;

/// Where a process finds its own descriptors, by number.
const DESCRIPTORS: &str = "/dev/fd/";

/// Device number of `/dev/fuse` (the kernel's `admin-guide/devices.txt`).
const FUSE_DEVICE: (u32, u32) = (10, 229);

/// Whether this mount point is a descriptor of `/dev/fuse` that another process mounted.
pub fn is_descriptor(mountpoint: &Path) -> bool {
    mountpoint.as_os_str().as_bytes().starts_with(DESCRIPTORS.as_bytes())
}

/// Takes over the descriptor `/dev/fd/N` of this process. Call it once for each N: the caller is its owner.
///
/// # Errors
/// If it is not open, or not one of `/dev/fuse`.
pub fn descriptor(path: &Path) -> Result<OwnedFd, MountError> {
    open_descriptor(path).map_err(MountError::at(path))
}

fn open_descriptor(path: &Path) -> io::Result<OwnedFd> {
    let number = path.as_os_str().to_str().and_then(|path| path.strip_prefix(DESCRIPTORS)?.parse().ok());
    let number: i32 = number.ok_or_else(|| io::Error::other("the number of a descriptor is missing"))?;
    let metadata = fs::metadata(path)?;
    let device = (major(metadata.rdev()), minor(metadata.rdev()));
    if !metadata.file_type().is_char_device() || device != FUSE_DEVICE {
        return Err(io::Error::other(format!("not a descriptor of {FUSE}")));
    }
    // SAFETY: It is open, as `metadata` has shown. It was there when the process started, and nothing else here uses a
    // descriptor of /dev/fuse by its number.
    let device = unsafe { OwnedFd::from_raw_fd(number) };
    // A worker that held it would keep the mount alive without its daemon.
    fcntl_setfd(&device, FdFlags::CLOEXEC)?;
    Ok(device)
}

/// The folder for mount points of this user: one for all processes, since none sees the mounts of another.
///
/// `$XDG_RUNTIME_DIR` is removed when the user logs out, and running commands would lose their mounts with it.
///
/// # Errors
/// If it cannot be made, or belongs to another user.
pub fn folder() -> Result<PathBuf, MountError> {
    let user = geteuid();
    let path = std::env::temp_dir().join(format!("hepfs-run-{user}"));
    let path = std::path::absolute(&path).unwrap_or(path);
    let refused = MountError::at(&path);
    match fs::DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(refused(error)),
        _ => {}
    }
    let metadata = fs::symlink_metadata(&path).map_err(refused)?;
    if !metadata.is_dir() || metadata.uid() != user.as_raw() || metadata.mode() & 0o77 != 0 {
        let what = "not a folder of this user alone; --at DIR names another mount point";
        return Err(refused(io::Error::other(what)));
    }
    Ok(path)
}

/// A mount that only this process and its children see. Its requests wait for a server.
pub struct PrivateMount {
    /// The descriptor for [`super::Mount::adopt`].
    pub device: OwnedFd,
    /// Where it is mounted.
    pub mountpoint: PathBuf,
    /// Holds a lock on [`folder`], so that systemd-tmpfiles(8) does not remove it: the kernel would take the mount
    /// away.
    pub folder: Option<File>,
}

/// Mounts in namespaces of this process. Then drops all capabilities that a user namespace gave.
///
/// A process that may mount anyway, as root, keeps its user namespace and its capabilities. This process must have a
/// single thread. `at` is the mount point; without it, one is made in a file system in memory over [`folder`].
///
/// # Errors
/// [`MountError::Locked`] if the kernel refuses namespaces and this process is as it was; others, if it is not.
pub fn mount_privately(
    at: Option<&Path>,
    sources: &[PathBuf],
    source_name: &BStr,
    allow_other: bool,
) -> Result<PrivateMount, MountError> {
    check_device()?;
    let is_user_namespace = enter()?;
    let (mountpoint, folder) = match at {
        Some(at) => (check_mountpoint(at)?, None),
        None => {
            let folder = folder()?;
            let locked = File::open(&folder).ok().filter(|file| flock(file, FlockOperation::LockShared).is_ok());
            (fresh_mountpoint(&folder)?, locked)
        }
    };
    check_sources(&mountpoint, sources)?;
    // In here: the kernel wants a descriptor of the same user namespace.
    let device = mount_directly(&mountpoint, source_name, allow_other).map_err(|error| {
        let error = io::Error::from(error);
        let reason = if is_user_namespace { lock_of(error).to_string() } else { error.to_string() };
        MountError::Refused { path: mountpoint.clone(), reason }
    })?;
    if let Ok(Some(entry)) = mounts::mount_at(&mountpoint) {
        set_read_ahead(entry.device, READ_AHEAD);
    }
    if is_user_namespace {
        drop_capabilities().map_err(|error| MountError::System(error.into()))?;
    }
    Ok(PrivateMount { device, mountpoint, folder })
}

/// Enters new namespaces; returns whether one of them is a user namespace.
fn enter() -> Result<bool, MountError> {
    let (user, group) = (geteuid(), getegid());
    if mounts::mount_at(Path::new("/")).map_err(MountError::System)?.is_none() {
        return Err(MountError::Locked(Lock::ChangedRoot));
    }
    let is_user_namespace = match unshare(UnshareFlags::NEWNS) {
        Ok(()) => false,
        Err(_) => {
            known_lock().map_or(Ok(()), |lock| Err(MountError::Locked(lock)))?;
            unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)
                .map_err(|error| MountError::Locked(lock_of(error.into())))?;
            // The kernel requires this before a process without rights maps a group (user_namespaces(7)).
            fs::write("/proc/self/setgroups", "deny")
                .and_then(|()| fs::write("/proc/self/uid_map", format!("{user} {user} 1")))
                .and_then(|()| fs::write("/proc/self/gid_map", format!("{group} {group} 1")))
                .map_err(|error| MountError::Namespace(lock_of(error)))?;
            true
        }
    };
    // What others mount later still arrives here, and what is mounted here stays here.
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)
        .map_err(|error| MountError::Namespace(lock_of(error.into())))?;
    Ok(is_user_namespace)
}

fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    // SAFETY: Only `FILES` is unsafe, and no caller passes it.
    unsafe { unshare_unsafe(flags) }
}

/// Makes a mount point in a file system in memory over `folder`. Nested in such a file system, it makes another.
fn fresh_mountpoint(folder: &Path) -> Result<PathBuf, MountError> {
    let refused = MountError::at(folder);
    if mounts::mount_at(folder).map_err(MountError::System)?.is_none_or(|entry| entry.fs_type != "tmpfs") {
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount("hepfs", folder, "tmpfs", flags, c"size=1m,mode=700").map_err(|error| refused(error.into()))?;
    }
    let mut number = 1;
    loop {
        let path = folder.join(if number == 1 { "mnt".to_owned() } else { format!("mnt-{number}") });
        match fs::create_dir(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            made => return made.map(|()| path).map_err(refused),
        }
    }
}

/// Drops all capabilities for good: without the bounding set, user 0 of a namespace would get them back from execve(2).
fn drop_capabilities() -> Result<(), Errno> {
    for capability in (0..u64::BITS).map(|number| CapabilitySet::from_bits_retain(1 << number)) {
        match remove_capability_from_bounding_set(capability) {
            // A capability that this kernel does not know.
            Err(Errno::INVAL) => break,
            outcome => outcome?,
        }
    }
    let nothing = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: nothing, permitted: nothing, inheritable: nothing })
}
