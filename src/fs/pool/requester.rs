//! Finds out whether a requester still waits for its answer.
//!
//! The kernel reports signals to a FUSE server with FUSE_INTERRUPT, which `fuser` 0.18 does not pass on: a process
//! killed while it waits for us stays in state D until we answer. So we look up the requesters of long waits in
//! `/proc/TID/status`.

use std::fs;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// The thread that sent a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requester(Pid);

/// The state of a requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// It waits, or its state is unknown.
    Yes,
    /// A signal that should end the wait is pending.
    Signalled,
    /// The thread no longer exists.
    Gone,
}

/// Signals that ask a process to stop. They end a wait even if the process catches them: Python's Ctrl-C is a handler.
const ASKED_TO_STOP: u64 = bit(libc::SIGHUP) | bit(libc::SIGINT) | bit(libc::SIGQUIT) | bit(libc::SIGTERM);

/// Signals that do not end a process by default: it ignores them, or they stop and continue it.
const HARMLESS: u64 = bit(libc::SIGCHLD)
    | bit(libc::SIGURG)
    | bit(libc::SIGWINCH)
    | bit(libc::SIGCONT)
    | bit(libc::SIGTSTP)
    | bit(libc::SIGTTIN)
    | bit(libc::SIGTTOU)
    | bit(libc::SIGSTOP);

const fn bit(signal: libc::c_int) -> u64 {
    1 << (signal - 1)
}

impl Requester {
    /// The requester from the number in a FUSE request's header. `None` for 0, which stands for the kernel itself or
    /// for a process of a PID namespace that we cannot see.
    pub fn new(pid: u32) -> Option<Self> {
        i32::try_from(pid).ok().and_then(Pid::from_raw).map(Self)
    }

    /// Whether the requester still waits.
    pub fn waiting(self) -> Waiting {
        match fs::read_to_string(format!("/proc/{}/status", self.0)) {
            Ok(status) => judge(&status),
            // Gone, hidden (`hidepid`), or no /proc at all: only ESRCH proves that it is gone.
            Err(_) if test_kill_process(self.0) == Err(Errno::SRCH) => Waiting::Gone,
            Err(_) => Waiting::Yes,
        }
    }
}

/// Derives the state from the text of `/proc/TID/status`.
fn judge(status: &str) -> Waiting {
    let field = |name: &str| {
        status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim).unwrap_or_default()
    };
    if field("State").starts_with(['Z', 'X', 'x']) {
        return Waiting::Gone;
    }
    let mask = |name: &str| u64::from_str_radix(field(name), 16).unwrap_or(0);
    let pending = mask("SigPnd") | mask("ShdPnd");
    let kill = bit(libc::SIGKILL);
    let heard = pending & !mask("SigBlk") & !mask("SigIgn");
    // A caught signal (a profiler's timer, a child's end) is no reason to break off a read: programs do not expect
    // EINTR from a regular file.
    let deadly = heard & !mask("SigCgt") & !HARMLESS;
    if pending & kill != 0 || deadly != 0 || heard & ASKED_TO_STOP != 0 { Waiting::Signalled } else { Waiting::Yes }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(state: &str, pending: u64, shared: u64, blocked: u64, ignored: u64, caught: u64) -> String {
        format!(
            "Name:\tcat\nState:\t{state}\nPid:\t7\nSigQ:\t0/1\nSigPnd:\t{pending:016x}\nShdPnd:\t{shared:016x}\n\
             SigBlk:\t{blocked:016x}\nSigIgn:\t{ignored:016x}\nSigCgt:\t{caught:016x}\nCapInh:\t0\n"
        )
    }

    // Bits as signal(7) numbers them: SIGINT 2, SIGKILL 9, SIGALRM 14, SIGTERM 15, SIGCHLD 17, SIGWINCH 28.
    const INT: u64 = 0x2;
    const KILL: u64 = 0x100;
    const ALRM: u64 = 0x2000;
    const TERM: u64 = 0x4000;
    const CHLD: u64 = 0x1_0000;

    #[test]
    fn nothing_pending_means_it_waits() {
        assert_eq!(judge(&status("S (sleeping)", 0, 0, 0, 0, 0)), Waiting::Yes);
        assert_eq!(judge(""), Waiting::Yes);
        assert_eq!(judge("SigPnd:\tnonsense\n"), Waiting::Yes);
    }

    #[test]
    fn a_fatal_signal_ends_the_wait() {
        assert_eq!(judge(&status("D (disk sleep)", KILL, 0, 0, 0, 0)), Waiting::Signalled);
        assert_eq!(judge(&status("S (sleeping)", 0, INT, 0, 0, 0)), Waiting::Signalled);
        assert_eq!(judge(&status("S (sleeping)", 0, TERM, 0, 0, 0)), Waiting::Signalled);
        assert_eq!(judge(&status("S (sleeping)", 0, ALRM, 0, 0, 0)), Waiting::Signalled);
    }

    #[test]
    fn ctrl_c_counts_even_when_caught() {
        assert_eq!(judge(&status("S (sleeping)", 0, INT, 0, 0, INT)), Waiting::Signalled);
    }

    #[test]
    fn blocked_ignored_and_everyday_signals_do_not() {
        assert_eq!(judge(&status("S (sleeping)", 0, INT, INT, 0, 0)), Waiting::Yes);
        assert_eq!(judge(&status("S (sleeping)", 0, INT, 0, INT, 0)), Waiting::Yes);
        assert_eq!(judge(&status("S (sleeping)", ALRM, 0, 0, 0, ALRM)), Waiting::Yes);
        assert_eq!(judge(&status("S (sleeping)", 0, CHLD, 0, 0, 0)), Waiting::Yes);
    }

    #[test]
    fn the_dead_do_not_wait() {
        assert_eq!(judge(&status("Z (zombie)", 0, 0, 0, 0, 0)), Waiting::Gone);
        // The highest number that Linux gives out is 2^22.
        assert_eq!(Requester::new((1 << 22) + 1).unwrap().waiting(), Waiting::Gone);
        assert_eq!(Requester::new(std::process::id()).unwrap().waiting(), Waiting::Yes);
        assert_eq!(Requester::new(0), None);
    }
}
