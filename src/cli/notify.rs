//! Tells the service manager that started this process how its mount is: sd_notify(3), sd_watchdog_enabled(3).

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::PathBuf;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::activity;
use crate::source::mounts;

/// The variable that names the manager's socket. Processes that this one starts must not have it.
pub(super) const SOCKET: &str = "NOTIFY_SOCKET";

/// Interval between questions to the mount, and thus between updates of the status.
const INTERVAL: Duration = Duration::from_secs(30);

/// Questions in the time after which the manager takes a service for dead.
const QUESTIONS: u32 = 3;

/// Interval between questions until the first answer.
const FIRST_INTERVAL: Duration = Duration::from_millis(100);

/// The file of a mount that is read to see whether the mount answers: made anew at each open, in little time.
const QUESTION: &str = ".hepfs/stats";

/// A mount that can be asked.
pub(super) struct OwnMount {
    /// Where it is mounted.
    pub mountpoint: PathBuf,
    /// Major and minor device number; `None`: not known.
    pub device: Option<(u32, u32)>,
}

/// A thread that tells the manager of a mount: that it is ready, what it does, and again and again that it answers.
pub(super) struct Notifier {
    manager: Arc<Manager>,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// The service manager.
struct Manager {
    socket: UnixDatagram,
    /// Time without a sign of life after which it takes a service for dead; `None`: it asks for none.
    watchdog: Option<Duration>,
}

impl Notifier {
    /// Starts to tell the manager; `None`: no manager waits for that.
    ///
    /// # Errors
    /// If there is a manager, but no socket to it, or no thread.
    pub fn start(asked: OwnMount) -> io::Result<Option<Self>> {
        let Some(address) = env::var_os(SOCKET) else { return Ok(None) };
        let manager = Arc::new(Manager::new(&address)?);
        let is_over = Arc::new(AtomicBool::new(false));
        let (its_manager, its_end) = (manager.clone(), is_over.clone());
        let thread = thread::Builder::new().name("hepfs-notify".to_owned());
        let thread = thread.spawn(move || its_manager.tell_of(&asked, &its_end))?;
        Ok(Some(Self { manager, is_over, thread }))
    }

    /// Tells the manager that the mount is about to end. The thread asks the mount nothing more; one that waits for an
    /// answer ends with the mount.
    pub fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.manager.tell("STOPPING=1\nSTATUS=unmounting");
    }
}

impl Manager {
    fn new(address: &OsString) -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        match address.as_bytes().strip_prefix(b"@") {
            Some(name) => socket.connect_addr(&SocketAddr::from_abstract_name(name)?)?,
            None => socket.connect(address)?,
        }
        // A manager that reads nothing must not stop this process.
        socket.set_nonblocking(true)?;
        Ok(Self { socket, watchdog: watchdog() })
    }

    /// Asks the mount, and tells of it, until the end.
    fn tell_of(&self, asked: &OwnMount, is_over: &AtomicBool) {
        activity::count_not_this_thread();
        let mut is_ready = false;
        let mut last = String::new();
        let interval = self.watchdog.map_or(INTERVAL, |longest| INTERVAL.min(longest / QUESTIONS));
        while !is_over.load(Ordering::Relaxed) {
            match asked.answers() {
                Ok(()) if !is_over.load(Ordering::Relaxed) => {
                    let status = activity::report().line();
                    let mut state = Vec::new();
                    state.extend((!is_ready).then_some("READY=1"));
                    state.extend(self.watchdog.is_some().then_some("WATCHDOG=1"));
                    let line = format!("STATUS={status}");
                    state.extend((status != last).then_some(line.as_str()));
                    if !state.is_empty() {
                        self.tell(&state.join("\n"));
                    }
                    (is_ready, last) = (true, status);
                }
                Ok(()) => {}
                Err(error) => tracing::warn!("this mount does not answer: {error}"),
            }
            thread::park_timeout(if is_ready { interval } else { FIRST_INTERVAL });
        }
    }

    /// Sends a message. A manager that is gone hears nothing, and the mount goes on.
    fn tell(&self, state: &str) {
        if let Err(error) = self.socket.send(state.as_bytes()) {
            tracing::debug!("telling the service manager: {error}");
        }
    }
}

/// The time after which the manager takes this process for dead.
fn watchdog() -> Option<Duration> {
    let own = |id: String| id == process::id().to_string();
    if !env::var("WATCHDOG_PID").map_or(true, own) {
        return None;
    }
    let microseconds = env::var("WATCHDOG_USEC").ok()?.parse().ok().filter(|time| *time > 0)?;
    Some(Duration::from_micros(microseconds))
}

impl OwnMount {
    /// Waits for an answer of the mount, through the kernel: for ever, if it hangs. A mount that has no path here any
    /// more (detached, or below another one) cannot be asked, and counts as one that answers.
    fn answers(&self) -> io::Result<()> {
        let here = mounts::mount_at(&self.mountpoint)?;
        if here.is_none_or(|here| Some(here.device) != self.device) {
            return Ok(());
        }
        std::fs::read(self.mountpoint.join(QUESTION)).map(drop)
    }
}
