//! Mounts, unmounts, and stops on a signal.

mod attach;
mod checks;
mod detach;
mod error;
mod locks;
pub mod namespace;
mod preconditions;

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, bounded, select};
use signal_hook::iterator::{Handle, Signals};

use super::adapter::{Invalidator, Server};
use super::node::NodeRef;
pub use super::options::MountOptions;
pub use super::service::ListedXattrs;
use crate::activity::Requests;
use crate::source::mounts::{self, MountEntry};
pub use attach::{Attached, attach};
pub use checks::helper;
use checks::{check_address_space, refusal};
use detach::detach;
pub use error::MountError;
pub use locks::Lock;
pub use preconditions::preconditions;

/// The helper that mounts and unmounts for ordinary users.
const HELPER: &str = "fusermount3";

/// Longest time for a session to end after its mount point is gone. An open file keeps it alive until the daemon ends.
const GRACE: Duration = Duration::from_secs(2);

/// How a mount ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MountEnd {
    /// Somebody else unmounted it (`umount`, `fusermount3 -u`).
    Outside,
    /// We unmounted it, and the session is over.
    Unmounted,
    /// The mount point is gone, but a file of the mount is still open, and becomes unreadable when this process ends.
    Detached,
}

/// A mounted file system. Dropping it unmounts.
pub struct Mount {
    server: Server,
    mountpoint: PathBuf,
    device: Option<(u32, u32)>,
    /// Whether another process mounted, and unmounts.
    is_adopted: bool,
    over: bool,
}

/// Bytes that the kernel reads ahead. With its own 128 KiB a sequential reader waits for most requests. Longer
/// read-ahead hurts: a program may announce hundreds of ranges at once (`POSIX_FADV_WILLNEED`, as Arrow does before it
/// reads Parquet). The kernel then reads this much of each range at once, and all chunks under it are decoded long
/// before their use.
const READ_AHEAD: u32 = 256 << 10;

impl Mount {
    /// Mounts the tree under `root` and starts to answer requests.
    ///
    /// # Errors
    /// See [`MountError`].
    pub fn new(root: NodeRef, mountpoint: &Path, options: &MountOptions) -> Result<Self, MountError> {
        Self::serve(root, attach(mountpoint, options)?, options)
    }

    /// Answers the requests of a mount made by [`attach`], and unmounts it in the end.
    ///
    /// # Errors
    /// If the kernel ends the session.
    pub fn serve(root: NodeRef, attached: Attached, options: &MountOptions) -> Result<Self, MountError> {
        let Attached { device, mountpoint } = attached;
        let server = Server::start(root, device, options).map_err(|error| {
            let _ = detach(&mountpoint, true);
            refusal(&mountpoint, error)
        })?;
        // The list of mounts has the device number; `stat` would send a request to ourselves.
        let device = mounts::mount_at(&mountpoint).ok().flatten().map(|mount| mount.device);
        if let Some(device) = device {
            set_read_ahead(device, server.max_read().min(READ_AHEAD));
        }
        Ok(Self { server, mountpoint, device, is_adopted: false, over: false })
    }

    /// Answers the requests of a mount that another process made with this descriptor of `/dev/fuse`; `name` is its
    /// name in messages. The process that mounted also unmounts.
    ///
    /// # Errors
    /// If nothing is mounted with it, or the kernel ends the session.
    pub fn adopt(root: NodeRef, device: OwnedFd, name: &Path, options: &MountOptions) -> Result<Self, MountError> {
        check_address_space()?;
        let server = Server::start(root, device, options).map_err(|error| match error.raw_os_error() {
            Some(libc::EPERM) => refusal(name, io::Error::other("nothing is mounted with this descriptor")),
            _ => refusal(name, error),
        })?;
        Ok(Self { server, mountpoint: name.to_owned(), device: None, is_adopted: true, over: false })
    }

    /// Path of the mount point, without symbolic links.
    pub fn mountpoint(&self) -> &Path {
        &self.mountpoint
    }

    /// Major and minor device number of the mount.
    pub fn device(&self) -> Option<(u32, u32)> {
        self.device
    }

    /// The requests so far.
    pub fn requests(&self) -> &Arc<Requests> {
        self.server.requests()
    }

    /// The handle that makes the kernel drop its caches after a change of a source.
    pub fn invalidator(&self) -> Invalidator {
        self.server.invalidator()
    }

    /// Drops the kernel's pages, attributes and names of every node that is no longer current.
    pub fn invalidate(&self) {
        self.invalidator().stale();
    }

    /// Waits until the mount is unmounted.
    pub fn wait(mut self) -> MountEnd {
        self.server.ended().recv().ok();
        self.over = true;
        MountEnd::Outside
    }

    /// Waits for a signal and then unmounts, or until another process unmounts it. It calls `ending` once it knows.
    ///
    /// # Errors
    /// If it cannot be unmounted.
    pub fn serve_until(mut self, stop: &StopSignals, ending: impl FnOnce()) -> Result<MountEnd, MountError> {
        select! {
            recv(self.server.ended()) -> _ => {
                ending();
                self.over = true;
                Ok(MountEnd::Outside)
            }
            recv(stop.received) -> signal => {
                if let Ok(signal) = signal {
                    tracing::info!("signal {signal}: unmounting {}", self.mountpoint.display());
                }
                ending();
                self.unmount()
            }
        }
    }

    /// Unmounts. It detaches a mount in use and answers waiting requests with "interrupted", so this takes a few
    /// seconds at most.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn unmount(mut self) -> Result<MountEnd, MountError> {
        self.take_down()
    }

    fn take_down(&mut self) -> Result<MountEnd, MountError> {
        if self.over || self.server.ended().try_recv().is_ok() {
            self.over = true;
            return Ok(MountEnd::Outside);
        }
        self.over = true;
        if self.is_adopted {
            // Not ours to unmount; the session ends with this process.
            self.server.cancel_all();
            return Ok(MountEnd::Detached);
        }
        let ours = |mount: &MountEntry| mount.mountpoint == self.mountpoint && Some(mount.device) == self.device;
        match mounts::mount_at(&self.mountpoint).map_err(MountError::System)? {
            Some(mount) if ours(&mount) => match detach(&self.mountpoint, false) {
                Err(MountError::Busy(_)) => {
                    tracing::warn!("{} is in use; detaching it", self.mountpoint.display());
                    detach(&self.mountpoint, true)?;
                }
                outcome => outcome?,
            },
            // Another file system is mounted over ours, and is not ours to remove.
            Some(other) if mounts::mounts().map_err(MountError::System)?.iter().any(ours) => {
                self.server.cancel_all();
                return Err(MountError::NotOurs { path: self.mountpoint.clone(), fs_type: other.fs_type });
            }
            _ => {}
        }
        let deadline = Instant::now() + GRACE;
        while Instant::now() < deadline {
            // Repeated: a request may just have arrived.
            self.server.cancel_all();
            if self.server.ended().recv_timeout(Duration::from_millis(50)).is_ok() {
                return Ok(MountEnd::Unmounted);
            }
        }
        Ok(MountEnd::Detached)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if !self.over
            && let Err(error) = self.take_down()
        {
            tracing::error!("{error}");
        }
    }
}

/// Sets the bytes that the kernel reads ahead on a mount, as far as this process may: root.
fn set_read_ahead((major, minor): (u32, u32), bytes: u32) {
    let setting = format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb");
    if let Err(error) = fs::write(&setting, (bytes >> 10).to_string()) {
        tracing::debug!("{setting}: {error}; read-ahead stays at the kernel's default");
    }
}

/// Catches SIGINT, SIGTERM and SIGHUP as long as it lives. Create it before the mount: a signal in between would leave
/// a stale mount.
pub struct StopSignals {
    handle: Handle,
    received: Receiver<i32>,
}

impl StopSignals {
    /// Catches the signals.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn catch() -> Result<Self, MountError> {
        let mut signals = Signals::new([libc::SIGINT, libc::SIGTERM, libc::SIGHUP]).map_err(MountError::System)?;
        let handle = signals.handle();
        let (sender, received) = bounded(1);
        let thread = std::thread::Builder::new().name("hepfs-signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                // One message stands for any number of signals.
                sender.try_send(signal).ok();
            }
        });
        thread.map_err(MountError::System)?;
        Ok(Self { handle, received })
    }
}

impl Drop for StopSignals {
    fn drop(&mut self) {
        self.handle.close();
    }
}

/// Longest wait for a file that is about to close: the threads of a program close their files a moment after the last
/// read.
const LONGEST_CLOSING: Duration = Duration::from_millis(500);

/// Unmounts the hepfs at `path`, also one whose daemon died; `lazy` detaches a mount in use.
///
/// # Errors
/// See [`MountError`].
pub fn unmount(path: &Path, lazy: bool) -> Result<(), MountError> {
    let path = mounts::resolve(path).map_err(MountError::at(path))?;
    match mounts::mount_at(&path).map_err(MountError::System)? {
        None => Err(MountError::NotMounted(path)),
        Some(mount) if mount.fs_type != mounts::HEPFS => Err(MountError::NotOurs { path, fs_type: mount.fs_type }),
        Some(_) => {
            let end = Instant::now() + LONGEST_CLOSING;
            loop {
                match detach(&path, lazy) {
                    Err(MountError::Busy(_)) if Instant::now() < end => std::thread::sleep(Duration::from_millis(10)),
                    outcome => return outcome,
                }
            }
        }
    }
}

/// Mount points of hepfs in this namespace.
///
/// # Errors
/// If `/proc` is not mounted.
pub fn mountpoints() -> Result<Vec<PathBuf>, MountError> {
    mounts::mountpoints().map_err(MountError::System)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unmounting_says_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(unmount(folder.path(), false), Err(MountError::NotMounted(_))));
        let proc = unmount(Path::new("/proc"), false);
        assert!(matches!(&proc, Err(MountError::NotOurs { fs_type, .. }) if fs_type == "proc"), "{proc:?}");
    }
}
