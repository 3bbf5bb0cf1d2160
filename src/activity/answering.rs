//! Answers on a Unix socket with the report of this process, in JSON. A connection is the question. The end of the
//! stream ends the answer.
//!
//! One thread answers, and no request of a mount waits for it. Without a folder for the socket, the process goes on,
//! and `hepfs status` does not see it. Every minute the thread looks whether the socket is still there, since a user's
//! folder goes at logout, and makes another one if need be.

use std::io::{self, ErrorKind, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::{Condvar, Mutex};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;

use super::folders::{SocketFolder, in_first};
use super::report;

/// Time between two looks at the socket's name.
const LOOK: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };

/// Longest time to send an answer.
const LONGEST: Duration = Duration::from_secs(1);

/// Pause after a failed `accept`, as with no descriptor left.
const PAUSE: Duration = Duration::from_millis(100);

/// Stack of the thread: it renders a report.
const STACK: usize = 512 << 10;

/// Names of sockets of this process, which does not ask itself.
static OWN: OnceLock<String> = OnceLock::new();

/// The socket; its name goes when this is dropped.
#[derive(Debug)]
pub struct Answering(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_over: bool,
    bound: Option<Bound>,
}

/// A name that the socket has.
#[derive(Debug)]
struct Bound {
    folder: SocketFolder,
    name: String,
}

/// Answers until the returned value is dropped, once `after` has passed. `device` is that of a mount, by which others
/// find its process even if it hangs.
pub fn serve(device: Option<&str>, after: Duration) -> Answering {
    let shared = Arc::new(Shared::default());
    let nanoseconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    // Never used twice, so that no other process removes it for an older one.
    let name = format!("{}-{}-{nanoseconds:x}", std::process::id(), device.unwrap_or_default());
    OWN.set(name.clone()).ok();
    let its = shared.clone();
    let thread = std::thread::Builder::new().name("hepfs-status".to_owned()).stack_size(STACK);
    if let Err(error) = thread.spawn(move || its.serve(&name, after)) {
        tracing::debug!("hepfs status does not see this process: {error}");
    }
    Answering(shared)
}

/// Whether a socket is this process's own.
pub(super) fn is_own(name: &str) -> bool {
    OWN.get().is_some_and(|own| own == name)
}

impl Drop for Answering {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.is_over = true;
        state.bound = None;
        self.0.changed.notify_all();
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = std::fs::remove_file(self.folder.at(&self.name));
    }
}

impl Bound {
    /// Whether the path of the socket still leads to it.
    fn is_there(&self) -> bool {
        SocketFolder::own(self.folder.path.clone()).is_ok_and(|folder| folder.identity == self.folder.identity)
            && self.folder.at(&self.name).symlink_metadata().is_ok()
    }
}

impl Shared {
    fn serve(&self, name: &str, after: Duration) {
        self.wait(after);
        loop {
            let listener = {
                let mut state = self.state.lock();
                if state.is_over {
                    return;
                }
                state.bound = None;
                match in_first(|place| bind(place, name)) {
                    Ok((bound, listener)) => {
                        state.bound = Some(bound);
                        Some(listener)
                    }
                    Err(error) => {
                        tracing::debug!("hepfs status does not see this process: {error}");
                        None
                    }
                }
            };
            match listener {
                Some(listener) => self.answer_all(&listener),
                None => self.wait(Duration::from_secs(LOOK.tv_sec.unsigned_abs())),
            }
        }
    }

    /// Waits, unless it is over before.
    fn wait(&self, time: Duration) {
        let mut state = self.state.lock();
        self.changed.wait_while_for(&mut state, |state| !state.is_over, time);
    }

    /// Answers until the socket has lost its name.
    fn answer_all(&self, listener: &UnixListener) {
        loop {
            let mut polled = [PollFd::new(listener, PollFlags::IN)];
            match poll(&mut polled, Some(&LOOK)) {
                Ok(0) if !self.state.lock().bound.as_ref().is_some_and(Bound::is_there) => return,
                Ok(0) | Err(Errno::INTR) => continue,
                Ok(_) => {}
                Err(_) => return,
            }
            match listener.accept() {
                Ok((stream, _)) => {
                    if let Err(error) = answer(&stream) {
                        tracing::debug!("an answer to hepfs status: {error}");
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }
}

/// Makes a socket of this name in a folder.
fn bind(place: PathBuf, name: &str) -> io::Result<(Bound, UnixListener)> {
    let folder = SocketFolder::own(place)?;
    // Under its name it listens already: one that refuses is taken for left over.
    let hidden = folder.at(&format!(".{name}"));
    let listener = UnixListener::bind(&hidden)?;
    listener.set_nonblocking(true)?;
    std::fs::rename(&hidden, folder.at(name))?;
    Ok((Bound { folder, name: name.to_owned() }, listener))
}

/// Answers one that has connected.
fn answer(stream: &UnixStream) -> io::Result<()> {
    let user = socket_peercred(stream)?.uid;
    if user != geteuid() && !user.is_root() {
        return Err(io::Error::other(format!("user {user} may not ask")));
    }
    let deadline = Instant::now() + LONGEST;
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(LONGEST))?;
    let answer = serde_json::to_vec(&report())?;
    let mut rest = answer.as_slice();
    while !rest.is_empty() && Instant::now() < deadline {
        let (mut writer, sent) = (stream, rest);
        match writer.write(sent)? {
            0 => break,
            sent => rest = rest.get(sent..).unwrap_or_default(),
        }
    }
    Ok(())
}
