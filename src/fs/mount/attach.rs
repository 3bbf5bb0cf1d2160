//! Mounts by mount(2), or by the helper for ordinary users.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bstr::{BString, ByteSlice};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use rustix::process::{getegid, geteuid};

use super::MountError;
use super::checks::{
    FUSE, check_address_space, check_device, check_mountpoint, check_sources, helper, is_empty, refusal,
};
use super::detach::detach;
use crate::fs::options::{MountOptions, SUBTYPE, shown_source};
use crate::h5::protocol::descriptors;
use crate::source::mounts;

/// The variable in which the helper finds the number of the socket that it sends a descriptor to.
const SOCKET: &str = "_FUSE_COMMFD";

/// A mount whose requests wait for a server, in this process or another.
pub struct Attached {
    /// The descriptor of `/dev/fuse` that requests are read from.
    pub device: OwnedFd,
    /// Where it is mounted, without symbolic links.
    pub mountpoint: PathBuf,
}

/// Mounts, after checks. Unmounts a hepfs of this user that was killed, with a warning.
///
/// An automounter lets only its own process group look at a mount point that it waits for: call this in the group of
/// the user's command.
///
/// # Errors
/// See [`MountError`].
pub fn attach(mountpoint: &Path, options: &MountOptions) -> Result<Attached, MountError> {
    let mountpoint = cleared(mountpoint)?;
    check_sources(&mountpoint, &options.sources)?;
    check_address_space()?;
    check_device()?;
    let is_empty = is_empty(&mountpoint)?;
    let device = match mount_directly(&mountpoint, &options.source_name, options.allow_other) {
        Err(Errno::PERM) => mount_by_helper(&helper().ok_or(MountError::NoHelper)?, &mountpoint, options),
        mounted => mounted.map_err(io::Error::from),
    };
    let device = device.map_err(|error| refusal(&mountpoint, error))?;
    if !is_empty {
        tracing::warn!("{} is not empty; the mount hides its contents", mountpoint.display());
    }
    Ok(Attached { device, mountpoint })
}

/// Checks a mount point, as often as a hepfs of this user that was killed is mounted there.
fn cleared(path: &Path) -> Result<PathBuf, MountError> {
    loop {
        let stale = match check_mountpoint(path) {
            Err(MountError::Stale(stale)) => stale,
            checked => return checked,
        };
        let user = Some(geteuid().as_raw());
        if mounts::mount_at(&stale).map_err(MountError::System)?.is_none_or(|mount| mount.user != user) {
            return Err(MountError::Stale(stale));
        }
        detach(&stale, true)?;
        tracing::warn!("{}: unmounted a hepfs that was killed", stale.display());
    }
}

/// Opens `/dev/fuse` and mounts by mount(2).
pub(super) fn mount_directly(mountpoint: &Path, source_name: &[u8], allow_other: bool) -> Result<OwnedFd, Errno> {
    let device = open(FUSE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let (number, user, group) = (device.as_raw_fd(), geteuid(), getegid());
    let shared = shared(allow_other);
    let options = format!("fd={number},rootmode=40000,user_id={user},group_id={group},subtype={SUBTYPE}{shared}");
    let options = CString::new(options).map_err(|_| Errno::INVAL)?;
    let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
    mount(shown_source(source_name).as_bytes(), mountpoint, "fuse", flags, options.as_c_str())?;
    Ok(device)
}

/// The options of a mount for other users.
fn shared(allow_other: bool) -> &'static str {
    if allow_other { ",allow_other,default_permissions" } else { "" }
}

/// Has the helper mount: it sends a descriptor of `/dev/fuse` to its standard input, a socket.
fn mount_by_helper(helper: &Path, mountpoint: &Path, options: &MountOptions) -> io::Result<OwnedFd> {
    let (ours, theirs) = UnixStream::pair()?;
    // The helper takes a backslash for an escape.
    let name = shown_source(&options.source_name).replace("\\", "\\\\").replace(",", "\\,");
    let shared = shared(options.allow_other);
    let text: BString =
        [b"fsname=", &*name, b",subtype=", SUBTYPE.as_bytes(), b",ro,nosuid,nodev", shared.as_bytes()].concat().into();
    let mut command = Command::new(helper);
    command.arg("-o").arg(OsStr::from_bytes(&text)).arg("--").arg(mountpoint);
    command.env(SOCKET, "0").env("LC_ALL", "C").stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
    let output = command.output()?;
    // Closes this end, so that nothing waits for a helper that sent nothing.
    drop(command);
    match descriptors::receive(&ours)?.pop() {
        Some(device) if output.status.success() => Ok(device),
        _ if output.stderr.trim_ascii().is_empty() => Err(io::Error::other(output.status.to_string())),
        _ => Err(io::Error::other(output.stderr.to_str_lossy())),
    }
}
