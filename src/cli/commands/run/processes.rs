//! Signals that reach this process, and the processes below it.

use std::collections::HashMap;
use std::fs;
use std::io::Error;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, getppid, kill_process, set_child_subreaper,
    set_parent_process_death_signal, wait, waitpid,
};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Cause;

/// Signals that are handed on to the command. Those that stop a process are not among them: the terminal sends them
/// to the command as well.
const HANDED_ON: [i32; 8] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGCONT,
];

/// Tells the keeper that a signal came from the terminal, which has sent it to the command itself. Nobody else sends it.
pub(super) const AT_THE_TERMINAL: Signal = Signal::URG;

/// Time for processes to end by themselves after SIGTERM.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// Time between two looks at processes that were told to end.
const LOOK: Duration = Duration::from_millis(20);

/// A signal that this process got.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caught {
    /// Its number.
    pub signal: Signal,
    /// Whether the kernel sent it, as it does on Ctrl-C.
    pub is_of_kernel: bool,
}

/// Sends all signals that this process gets from now on to a channel, but none that it was told to ignore (`nohup`):
/// the command is to ignore these as well.
///
/// # Errors
/// If the system cannot catch them.
pub(super) fn catch<T: Send + 'static>(
    events: Sender<T>,
    event: impl Fn(Caught) -> T + Send + 'static,
) -> Result<(), Error> {
    let ignored = ignored();
    let handed_on = HANDED_ON.into_iter().filter(|signal| ignored & 1 << (signal - 1) == 0);
    let mut signals = SignalsInfo::<WithOrigin>::new(handed_on.chain([AT_THE_TERMINAL.as_raw(), libc::SIGCHLD]))?;
    let wait = move || {
        for origin in signals.forever() {
            let Some(signal) = Signal::from_named_raw(origin.signal) else { continue };
            let is_of_kernel = matches!(origin.cause, Cause::Kernel);
            if events.send(event(Caught { signal, is_of_kernel })).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("hepfs-signals".to_owned()).spawn(wait).map(drop)
}

/// The set of signals that this process ignores (proc_pid_status(5)).
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Makes this process the parent of all that its descendants leave behind.
pub(super) fn adopt_orphans() {
    // Linux 3.4 has it; without it, orphans are not waited for.
    let _ = set_child_subreaper(Some(getpid()));
}

/// Makes this process get `signal` when its parent ends.
///
/// # Errors
/// If the parent, process `expected`, has ended already.
pub(super) fn end_with_parent(expected: Pid, signal: Signal) -> Result<(), Errno> {
    set_parent_process_death_signal(Some(signal))?;
    if is_child_of(expected) { Ok(()) } else { Err(Errno::SRCH) }
}

/// Whether the parent of this process is process `expected`.
pub(super) fn is_child_of(expected: Pid) -> bool {
    getppid() == Some(expected)
}

/// Collects a child that has ended or stopped. `None`: no child has.
pub(super) fn reap() -> Option<(Pid, WaitStatus)> {
    wait(WaitOptions::NOHANG | WaitOptions::UNTRACED).ok().flatten()
}

/// Waits for a child that is about to end.
pub(super) fn wait_for(child: Pid) -> Option<WaitStatus> {
    waitpid(Some(child), WaitOptions::empty()).ok().flatten().map(|(_, status)| status)
}

/// The exit code by the convention of shells: that of the process, or 128 and the number of the signal that ended it.
/// `None`: it has not ended.
pub(super) fn exit_code(status: WaitStatus) -> Option<u8> {
    let code = status.exit_status().or_else(|| Some(128 + status.terminating_signal()?))?;
    u8::try_from(code).ok()
}

/// All processes below this one, except `spared` and those below it: children before their children.
pub(super) fn descendants(spared: Option<Pid>) -> Vec<Pid> {
    let mut children: HashMap<Pid, Vec<Pid>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        let stat = number.and_then(|_| fs::read_to_string(entry.path().join("stat")).ok());
        // The fields behind the name, which may contain anything: state, parent (proc_pid_stat(5)).
        let fields =
            stat.as_deref().and_then(|stat| stat.rsplit_once(')')).map(|(_, fields)| fields.split_whitespace());
        let parent = fields.and_then(|mut fields| fields.nth(1)?.parse().ok()).and_then(Pid::from_raw);
        if let (Some(number), Some(parent)) = (number, parent) {
            children.entry(parent).or_default().push(number);
        }
    }
    let mut found = vec![getpid()];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        found.extend(children.remove(&parent).into_iter().flatten().filter(|child| Some(*child) != spared));
        at += 1;
    }
    found.split_off(1)
}

/// Ends all processes below this one but `spared`: with SIGTERM, and after `patience` with SIGKILL. Collects them.
pub(super) fn end_all(spared: Option<Pid>, patience: Duration) {
    let deadline = Instant::now() + patience;
    let mut signal = if patience.is_zero() { Signal::KILL } else { Signal::TERM };
    let mut told = false;
    loop {
        while reap().is_some() {}
        let left = descendants(spared);
        if left.is_empty() {
            return;
        }
        if signal != Signal::KILL && Instant::now() >= deadline {
            (signal, told) = (Signal::KILL, false);
        }
        // SIGKILL again and again: a process may have started another in the meantime.
        if !told || signal == Signal::KILL {
            for process in &left {
                let _ = kill_process(*process, signal);
                // A stopped process acts on a signal when it goes on.
                let _ = kill_process(*process, Signal::CONT);
            }
            told = true;
        }
        std::thread::sleep(LOOK);
    }
}
