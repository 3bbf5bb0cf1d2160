//! Signals that reach this process, and the processes below it.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Error;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getpid, getppid, kill_process, set_child_subreaper,
    set_parent_process_death_signal, setrlimit, wait, waitpid,
};
use rustix::stdio::{dup2_stdin, dup2_stdout};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Cause;

/// Signals that are handed on to the command. Those that stop a process are not among them: the terminal sends them
/// to the command as well.
const HANDED_ON: [i32; 13] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGXCPU,
    libc::SIGIO,
    libc::SIGPWR,
    libc::SIGCONT,
];

/// Tells the keeper of a signal that the terminal has sent to the command itself. No other program sends it, and a
/// keeper that does not catch it yet ends.
pub(super) const AT_THE_TERMINAL: Signal = Signal::STKFLT;

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
    let thread = std::thread::Builder::new().name("hepfs-signals".to_owned()).spawn(move || {
        for origin in signals.forever() {
            let Some(signal) = Signal::from_named_raw(origin.signal) else { continue };
            let is_of_kernel = matches!(origin.cause, Cause::Kernel);
            if events.send(event(Caught { signal, is_of_kernel })).is_err() {
                return;
            }
        }
    });
    thread.map(drop)
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

/// Collects a child that has ended, stopped or gone on. `None`: no child has.
pub(super) fn reap() -> Option<(Pid, WaitStatus)> {
    wait(WaitOptions::NOHANG | WaitOptions::UNTRACED | WaitOptions::CONTINUED).ok().flatten()
}

/// The process group of a process. `None`: it is outside of this PID namespace.
pub(super) fn group_of(process: Pid) -> Option<i32> {
    stat(process.as_raw_pid()).map(|[_, group, _]| group).filter(|group| *group > 0)
}

/// Whether a shell with job control started this process: its parent, in another process group of the same session. In
/// a group without such a parent, the kernel sends SIGHUP to all when one of them is stopped as another one ends.
pub(super) fn has_job_control(process: Pid) -> bool {
    let Some([parent, group, session]) = stat(process.as_raw_pid()) else { return false };
    stat(parent).is_some_and(|[_, its_group, its_session]| its_group != group && its_session == session)
}

/// The front and the keeper whose server this process is.
pub(in crate::cli) fn server_of() -> Option<(u32, u32)> {
    let keeper = getppid()?.as_raw_pid();
    let [front, ..] = stat(keeper)?;
    Some((front.try_into().ok()?, keeper.try_into().ok()?))
}

/// The parent, process group and session of a process (proc_pid_stat(5)).
fn stat(process: i32) -> Option<[i32; 3]> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before them may contain anything.
    let numbers = stat.rsplit_once(')')?.1.split_whitespace().skip(1).take(3).map(str::parse);
    numbers.collect::<Result<Vec<i32>, _>>().ok()?.try_into().ok()
}

/// Whether `/proc` has the processes of this PID namespace, so that numbers from there are right here.
pub(super) fn proc_is_ours() -> bool {
    fs::read_link("/proc/self").is_ok_and(|own| own.as_os_str().to_str() == Some(&std::process::id().to_string()))
}

/// Closes standard input and output of this process: another process may wait for their end.
pub(super) fn close_standard_streams() {
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        let _ = dup2_stdin(&null);
        let _ = dup2_stdout(&null);
    }
}

/// Ends this process by a signal, for its default action, but without a core file.
pub(super) fn end_by(signal: i32) {
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    // Fails only for signals that do not end a process.
    let _ = signal_hook::low_level::emulate_default_handler(signal);
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
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let parent = number.and_then(stat).and_then(|[parent, ..]| Pid::from_raw(parent));
        if let (Some(number), Some(parent)) = (number.and_then(Pid::from_raw), parent) {
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
        // A process may start another, and end, while the list is read: the kernel knows, and at once.
        if spared.is_none() && wait(WaitOptions::NOHANG).err() == Some(Errno::CHILD) {
            return;
        }
        let left = descendants(spared);
        if spared.is_some() && left.is_empty() {
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
