//! Unmounts by umount(2), or by the helper for ordinary users.

use std::path::Path;
use std::process::{Command, Stdio};

use bstr::ByteSlice;
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};

use super::MountError;
use super::checks::helper;

/// Unmounts: root by umount(2), an ordinary user by the helper.
pub fn detach(path: &Path, lazy: bool) -> Result<(), MountError> {
    let flags = if lazy { UnmountFlags::DETACH } else { UnmountFlags::empty() };
    match unmount(path, flags | UnmountFlags::NOFOLLOW) {
        Ok(()) => Ok(()),
        Err(Errno::BUSY) => Err(MountError::Busy(path.to_owned())),
        Err(Errno::INVAL) => Err(MountError::NotMounted(path.to_owned())),
        Err(Errno::PERM) => detach_by_helper(path, lazy),
        Err(error) => Err(MountError::UnmountRefused { path: path.to_owned(), reason: error.to_string() }),
    }
}

fn detach_by_helper(path: &Path, lazy: bool) -> Result<(), MountError> {
    let refused = |reason: String| MountError::UnmountRefused { path: path.to_owned(), reason };
    let mut command = Command::new(helper().ok_or(MountError::NoHelper)?);
    command.arg("-u").args(lazy.then_some("-z")).arg("--").arg(path).env("LC_ALL", "C").stdin(Stdio::null());
    let output = command.output().map_err(|error| refused(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = output.stderr.trim_ascii();
    if said.to_ascii_lowercase().contains_str("busy") {
        return Err(MountError::Busy(path.to_owned()));
    }
    let reason = if said.is_empty() { output.status.to_string() } else { said.to_str_lossy().into_owned() };
    Err(refused(reason))
}
