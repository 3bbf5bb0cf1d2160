//! Asks the processes of this user (root: of all users) for their reports, all at once.

use std::io::{ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::answering::is_own;
use super::folders::{self, SocketFolder};
use super::{Report, report};

/// Longest wait for all answers together. A process that takes longer is stopped, or hangs.
pub const LONGEST: Duration = Duration::from_secs(1);

/// Most bytes of one answer.
const MOST_BYTES: usize = 1 << 20;

/// Most bytes of a text in an answer: those of a path.
const MOST_TEXT: usize = 4096;

/// Most sockets of one folder that are asked.
const MOST_SOCKETS: usize = 1024;

/// A process that has a socket.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Its user.
    pub uid: u32,
    /// Its process ID.
    pub pid: u32,
    /// Device number of its mount, as in `/proc/self/mountinfo`; `None`: no mount, or not known.
    pub device: Option<String>,
    /// Its answer; `None`: there was none in time.
    pub report: Option<Report>,
}

/// All processes of this user, or of all users if this is root, but not this one.
#[derive(Clone, Debug, Default)]
pub struct Others {
    /// Those that were asked.
    pub asked: Vec<Asked>,
    /// How many were too many to be asked.
    pub left_out: usize,
}

/// The processes of this user that answered, this one first.
pub fn of_user() -> Vec<Report> {
    let own = report();
    let uid = own.uid;
    let others = others().asked.into_iter().filter(|other| other.uid == uid);
    [own].into_iter().chain(others.filter_map(|other| other.report)).collect()
}

/// The process of a user that serves the mount of a device, as its socket says, whether it answers or not.
pub fn process_of(device: &str, user: u32) -> Option<u32> {
    folders::all().iter().filter(|folder| folder.owner == user).find_map(|folder| {
        folder.names().unwrap_or_default().iter().find_map(|name| {
            let (pid, _) = parse(name).filter(|(_, its)| its.as_deref() == Some(device))?;
            // One that was killed may have left its socket.
            (!matches!(call(folder, name), Call::Nothing)).then_some(pid)
        })
    })
}

/// Asks all others, and removes the sockets of processes that are gone.
pub fn others() -> Others {
    let deadline = Instant::now() + LONGEST;
    let folders = folders::all();
    let mut others = Others::default();
    let mut waiting = Vec::new();
    for folder in &folders {
        let names = folder.names().unwrap_or_default();
        let known = names.iter().filter_map(|name| Some((name, parse(name)?))).filter(|(name, _)| !is_own(name));
        for (at, (name, (pid, device))) in known.enumerate() {
            if at >= MOST_SOCKETS {
                others.left_out += 1;
                continue;
            }
            let silent = Asked { uid: folder.owner, pid, device, report: None };
            match call(folder, name) {
                Call::Connected(stream) => waiting.push((stream, Vec::new(), silent)),
                Call::Busy => others.asked.push(silent),
                Call::Nothing => {}
            }
        }
    }
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: 0, tv_nsec: left.min(Duration::from_millis(999)).subsec_nanos().into() };
        let mut polled: Vec<_> = waiting.iter().map(|(stream, ..)| PollFd::new(stream, PollFlags::IN)).collect();
        if polled.is_empty() || left.is_zero() {
            break;
        }
        match poll(&mut polled, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => break,
        }
        let ready: Vec<bool> = polled.iter().map(|polled| !polled.revents().is_empty()).collect();
        let mut ready = ready.into_iter();
        waiting.retain_mut(|(stream, answer, asked)| {
            let goes_on = !ready.next().unwrap_or_default() || read(stream, answer);
            if !goes_on {
                others.asked.push(answered(asked, answer));
            }
            goes_on
        });
    }
    others.asked.extend(waiting.into_iter().map(|(_, _, asked)| asked));
    others
}

/// Reads what there is; whether more may follow.
fn read(stream: &mut UnixStream, answer: &mut Vec<u8>) -> bool {
    let mut buffer = [0; 16 << 10];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return false,
            Ok(length) => answer.extend_from_slice(buffer.get(..length).unwrap_or_default()),
            Err(error) => return matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
        if answer.len() > MOST_BYTES {
            return false;
        }
    }
}

/// The process with its answer. Only its user and process ID are certain: these are not taken from the answer.
fn answered(asked: &Asked, answer: &[u8]) -> Asked {
    let mut report: Option<Report> = serde_json::from_slice(answer)
        .inspect_err(|error| tracing::debug!("the answer of process {}: {error}", asked.pid))
        .ok();
    if let Some(report) = &mut report {
        (report.uid, report.pid) = (asked.uid, asked.pid);
        report.device = asked.device.clone();
        report.texts().for_each(shorten);
    }
    Asked { report, ..asked.clone() }
}

/// Cuts a text of another process to a length that a line can have.
fn shorten(text: &mut String) {
    text.truncate(text.floor_char_boundary(MOST_TEXT));
}

/// The process ID and the device in the name of a socket.
fn parse(name: &str) -> Option<(u32, Option<String>)> {
    let mut parts = name.split('-');
    let (pid, device, _) = (parts.next()?.parse().ok()?, parts.next()?, parts.next()?);
    Some((pid, Some(device.to_owned()).filter(|device| !device.is_empty())))
}

/// The outcome of a call.
enum Call {
    /// It is answered, or will be.
    Connected(UnixStream),
    /// Others wait there already, or this process has no descriptor left.
    Busy,
    /// It is gone, or not to be trusted.
    Nothing,
}

/// Connects to a socket without waiting.
fn call(folder: &SocketFolder, name: &str) -> Call {
    let path = folder.at(name);
    // Root must not be led to another socket.
    let is_theirs = path
        .symlink_metadata()
        .is_ok_and(|metadata| metadata.file_type().is_socket() && metadata.uid() == folder.owner);
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let made = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
    let (true, Ok(address)) = (is_theirs, SocketAddrUnix::new(&path)) else { return Call::Nothing };
    let Ok(socket) = made else { return Call::Busy };
    match connect(&socket, &address) {
        Ok(()) => {}
        Err(Errno::AGAIN) => return Call::Busy,
        Err(Errno::CONNREFUSED) => {
            // Its process is gone. No other one ever has this name.
            if let Err(error) = std::fs::remove_file(&path) {
                tracing::debug!("{}: {error}", path.display());
            }
            return Call::Nothing;
        }
        Err(error) => {
            tracing::debug!("{}/{name}: {error}", folder.path.display());
            return Call::Nothing;
        }
    }
    match socket_peercred(&socket) {
        Ok(peer) if peer.uid.as_raw() == folder.owner => Call::Connected(socket.into()),
        _ => Call::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_process_and_device() {
        assert_eq!(parse("4711-0:52-18f"), Some((4711, Some("0:52".to_owned()))));
        assert_eq!(parse("4711--18f"), Some((4711, None)));
        for other in ["", ".4711--18f", "4711", "x-0:52-18f", "-0:52-18f"] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
