//! `hepfs umount MOUNTPOINT…`.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::activity;
use crate::cli::Error;
use crate::cli::limits::allow_open_files;
use crate::fs::mount::{MountError, unmount};
use crate::source::holders::{HeldMounts, Holder};
use crate::source::mounts;
use crate::views::printable;

/// The most processes that a message names.
const MOST_NAMED: usize = 5;

/// How long to wait for a daemon to end, before its holders are looked for.
const ENDING: Duration = Duration::from_millis(500);

/// How long it may take to end if nothing holds the mount: it writes what it has learnt.
const LONGEST_ENDING: Duration = Duration::from_secs(5);

/// End a mount
///
/// Also clears the mount of a hepfs that was killed ("Transport endpoint is not connected"). Says who holds a mount
/// that is in use, and when its process lives on: another mount namespace has the mount as well, or after --lazy a file
/// is open. Processes of other users are seen by root alone.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// Directories that a hepfs is mounted on
    #[arg(required = true, value_name = "MOUNTPOINT")]
    mountpoints: Vec<PathBuf>,

    /// Detach now, even if files are open; the mount ends when they are closed
    #[arg(short, long)]
    lazy: bool,

    /// Wait until the process of the mount has ended
    #[arg(short, long)]
    wait: bool,
}

pub(in crate::cli) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    allow_open_files();
    let ended = arguments.mountpoints.iter().map(|mountpoint| end(mountpoint, arguments));
    let failures: Vec<Error> = ended.filter_map(Result::err).collect();
    failures.iter().for_each(Error::say);
    Ok(ExitCode::from(u8::from(!failures.is_empty())))
}

/// Ends a mount, and says what keeps its daemon.
fn end(mountpoint: &Path, arguments: &Arguments) -> Result<(), Error> {
    let entry = mounts::resolve(mountpoint).ok().and_then(|path| mounts::mount_at(&path).ok()?);
    let daemon = entry.as_ref().and_then(|entry| Daemon::of(&entry.device(), entry.user?));
    // Open files are told by the numbers of mounts, which a detached mount is listed with no more.
    let mut held = entry.map(|entry| HeldMounts::new(entry.device));
    match unmount(mountpoint, arguments.lazy) {
        Ok(()) => {}
        Err(error @ MountError::Busy(_)) => {
            let holders = held.as_mut().map(HeldMounts::holders).unwrap_or_default();
            return Err(Error::Background(match named(&holders) {
                Some(names) => format!("{error}. In use by {names}"),
                None => error.to_string(),
            }));
        }
        Err(error) => return Err(error.into()),
    }
    let (Some(daemon), Some(held)) = (daemon, &mut held) else { return Ok(()) };
    if daemon.has_ended(Some(ENDING)) {
        return Ok(());
    }
    let holders = held.holders();
    if holders.is_empty() && daemon.has_ended(Some(LONGEST_ENDING)) {
        return Ok(());
    }
    let (pid, path) = (daemon.pid, printable(&mountpoint.display().to_string()));
    let kept = match named(&holders) {
        Some(names) => format!("{path} is unmounted here, but its process ({pid}) goes on for {names}"),
        None => format!("{path} is unmounted, but its process ({pid}) has not ended; nothing is seen that holds it"),
    };
    if arguments.wait {
        say!("hepfs: {kept}; waiting for it to end");
        daemon.has_ended(None);
    } else {
        say!("hepfs: {kept}");
    }
    Ok(())
}

/// The names of the processes that hold a mount; `None`: no such process is seen.
fn named(holders: &[Holder]) -> Option<String> {
    let named = holders.iter().take(MOST_NAMED).map(|holder| printable(&holder.to_string()));
    let more = holders.len().saturating_sub(MOST_NAMED);
    let more = (more > 0).then(|| format!("{more} more"));
    (!holders.is_empty()).then(|| named.chain(more).collect::<Vec<_>>().join(", "))
}

/// The process that serves a mount.
struct Daemon {
    pid: u32,
    process: OwnedFd,
}

impl Daemon {
    /// Finds it by the name of its socket, so it need not answer.
    fn of(device: &str, user: u32) -> Option<Self> {
        let pid = activity::process_of(device, user)?;
        let process = pidfd_open(Pid::from_raw(pid.cast_signed())?, PidfdFlags::empty()).ok()?;
        Some(Self { pid, process })
    }

    /// Waits for its end; without a limit, for ever.
    fn has_ended(&self, limit: Option<Duration>) -> bool {
        let deadline = limit.map(|limit| Instant::now() + limit);
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            let mut polled = [PollFd::new(&self.process, PollFlags::IN)];
            match poll(&mut polled, left.as_ref()) {
                Err(Errno::INTR) => {}
                outcome => return outcome.is_ok_and(|ready| ready > 0),
            }
        }
    }
}
