//! The nursery: a process with libhdf5 initialised and no file open. Each worker is a fork of it, since starting the
//! program and libhdf5 takes five times as long.
//!
//! The forks are children of the daemon: it waits for them, and they end with it. A worker affects neither the nursery
//! nor another worker.

use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::h5::WORKER;
use crate::h5::protocol::descriptors;

/// Longest wait for a fork, the start of the nursery included.
const READY: Duration = Duration::from_secs(30);

/// Settings that libhdf5 reads at its initialisation: workers with the same settings share a nursery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LibrarySettings {
    /// The program to start.
    pub program: PathBuf,
    /// Whether libhdf5 may load filter plugins.
    pub has_plugins: bool,
    /// Folder for relative names of external raw storage.
    pub folder: Option<PathBuf>,
}

/// A running nursery: see the module. Dropping it ends the process; its workers live on.
#[derive(Debug)]
pub(super) struct Nursery {
    pub kind: LibrarySettings,
    process: Child,
    socket: UnixStream,
}

impl Nursery {
    /// Starts the nursery. The calling thread must outlive all workers.
    pub fn start(kind: LibrarySettings) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(READY))?;
        let mut command = Command::new(&kind.program);
        command.arg0("hepfs").arg(WORKER).arg(std::process::id().to_string());
        command.env_clear().env("HDF5_USE_FILE_LOCKING", "FALSE");
        if !kind.has_plugins {
            // libhdf5 reads this value as "load no plugin".
            command.env("HDF5_PLUGIN_PRELOAD", "::");
        }
        if let Some(folder) = &kind.folder {
            // libhdf5 accepts no other prefix for objects opened by address.
            command.env("HDF5_EXTFILE_PREFIX", folder);
        }
        #[cfg(debug_assertions)]
        for name in [crate::h5::REHEARSED_DEATH, crate::h5::REHEARSED_FULL] {
            if let Some(last) = std::env::var_os(name) {
                command.env(name, last);
            }
        }
        // A worker writes only the message of a panic or of a failed start there.
        let stderr = if tracing::enabled!(tracing::Level::DEBUG) { Stdio::inherit() } else { Stdio::null() };
        // A process group of its own: so Ctrl-C in a terminal reaches the daemon alone, which then ends its workers.
        command.process_group(0).stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(stderr);
        Ok(Self { process: command.spawn()?, socket: ours, kind })
    }

    /// Forks a worker whose standard input is `socket`.
    pub fn worker(&mut self, socket: &OwnedFd) -> io::Result<Process> {
        descriptors::send(&self.socket, &[socket.as_raw_fd()])?;
        let mut id = [0; 4];
        self.socket.read_exact(&mut id)?;
        match i32::from_le_bytes(id) {
            id if id > 0 => Ok(Process { id, status: None }),
            error => Err(io::Error::from_raw_os_error(-error)),
        }
    }
}

impl Drop for Nursery {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A child process that `std::process` did not start.
#[derive(Debug)]
pub(super) struct Process {
    id: libc::pid_t,
    /// The exit status, once the process was waited for: from then on another one may get this id.
    status: Option<ExitStatus>,
}

impl Process {
    /// The process id.
    pub fn id(&self) -> u32 {
        self.id.unsigned_abs()
    }

    /// The processor time used so far; `None` once the process has ended.
    pub fn processor_time(&self) -> Option<Duration> {
        if self.status.is_some() {
            return None;
        }
        let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
        // SAFETY: places for the answers.
        let is_known = unsafe {
            libc::clock_getcpuclockid(self.id, &mut clock) == 0 && libc::clock_gettime(clock, &mut time) == 0
        };
        is_known.then(|| Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32))
    }

    /// The exit status, if the process has ended.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.wait_with(libc::WNOHANG)
    }

    /// Kills the process and waits for it. It holds nothing that a signal could damage: it only reads.
    pub fn end(&mut self) {
        if self.status.is_none() {
            // SAFETY: plain numbers; a child keeps its id until it is waited for.
            unsafe { libc::kill(self.id, libc::SIGKILL) };
        }
        let _ = self.wait_with(0);
    }

    fn wait_with(&mut self, options: libc::c_int) -> io::Result<Option<ExitStatus>> {
        while self.status.is_none() {
            let mut status = 0;
            // SAFETY: a place for the status.
            match unsafe { libc::waitpid(self.id, &mut status, options) } {
                0 => break,
                id if id > 0 => self.status = Some(ExitStatus::from_raw(status)),
                _ => match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::Interrupted => {}
                    error => return Err(error),
                },
            }
        }
        Ok(self.status)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}
