//! `hepfs run SOURCE… -- COMMAND…`.
//!
//! Four processes, each this program until it becomes something else:
//!
//! - The *front* is the process that the user started. It hands signals on to the keeper and ends with its exit code.
//! - The *keeper* starts the server, enters the namespaces, mounts, starts the command, and waits for all that the
//!   command leaves behind. It has a process group of its own, so no signal of a terminal ends it.
//! - The *server* is the background process of `hepfs mount`, outside of the namespaces. The keeper sends it the
//!   descriptor of its mount.
//! - The *command* begins as this program, which asks the kernel to be killed when the keeper ends.
//!
//! Front and keeper adopt orphans. If one of the two is killed, the other ends all processes below it.

mod keeper;
mod processes;

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::Args;
use crossbeam_channel::unbounded;
use rustix::process::{Pid, Signal, getpid, kill_process};

pub(in crate::cli) use self::keeper::report;
use self::processes::Caught;
pub(in crate::cli) use self::processes::server_of;
use super::mount::{Serving, check_sources};
use crate::cli::{Error, itself};
use crate::source::is_address;

/// Exit code if hepfs itself fails, as that of `env` and `timeout`.
pub(in crate::cli) const FAILED: u8 = 125;
/// Longest time between two looks at the keeper.
const LOOK: Duration = Duration::from_secs(1);

/// Exit code if the command is not a program that may be run.
const NOT_A_PROGRAM: u8 = 126;
/// Exit code if there is no such command.
const NO_COMMAND: u8 = 127;

/// Run a command that sees HDF5 files as directories
///
/// Mounts in a namespace of the command's own: no right is needed, no other process sees the mount, and it ends with
/// the command and with all processes that the command leaves behind. Where the kernel refuses namespaces,
/// `fusermount3` mounts. Signals, exit code, terminal and folder are those of the command; 125: hepfs failed; 126, 127:
/// the command cannot be run, or found.
#[derive(Debug, Args)]
#[command(
    override_usage = "hepfs run [OPTIONS] <SOURCE>... -- <COMMAND>...\n       hepfs run [OPTIONS] <SOURCE>...\n       \
        hepfs run --check"
)]
#[command(after_help = "Examples:\n  \
    hepfs run run.h5 -- duckdb -c \"from '{mount}/run_042/table.parquet' limit 5\"\n  \
    hepfs run runs/ -- sh -c 'wc -l \"$HEPFS_MOUNT\"/*/run_042/table.csv'\n  \
    srun hepfs run run.h5 -- python3 analyse.py {mount}\n  \
    hepfs run run.h5           a shell; its end unmounts")]
pub(in crate::cli) struct Arguments {
    /// HDF5 files, or folders of them
    #[arg(value_name = "SOURCE", required_unless_present_any = ["check", "launch", "try_out"])]
    sources: Vec<PathBuf>,

    /// The command and its arguments; `{mount}` in them is the mount point, and so is $HEPFS_MOUNT [default: $SHELL]
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,

    /// Directory to mount on [default: a fresh one]
    #[arg(long, value_name = "DIR")]
    at: Option<PathBuf>,

    /// How long to wait for processes that the command leaves behind, before they are ended: 10, 10s, 5m, 2h [default:
    /// until they end]
    #[arg(long, value_name = "TIME", value_parser = time)]
    kill_after: Option<Duration>,

    /// Print whether this system lets hepfs mount for this user, test by test; 0 if so, else 1
    #[arg(long)]
    check: bool,

    #[command(flatten)]
    serving: Serving,

    /// Started by ourselves: be the keeper of this process, the front.
    #[arg(long, hide = true)]
    keep: Option<i32>,

    /// Started by ourselves: become the command, below this process, the keeper.
    #[arg(long, hide = true)]
    launch: Option<i32>,

    /// Started by ourselves: mount, and end.
    #[arg(long, hide = true)]
    try_out: bool,
}

/// Reads a time in seconds, or with a unit, as timeout(1) does.
fn time(text: &str) -> Result<Duration, &'static str> {
    let (number, factor) = match text.char_indices().next_back() {
        Some((at, 's')) => (&text[..at], 1.0),
        Some((at, 'm')) => (&text[..at], 60.0),
        Some((at, 'h')) => (&text[..at], 3600.0),
        Some((at, 'd')) => (&text[..at], 86_400.0),
        _ => (text, 1.0),
    };
    let seconds = number.parse::<f64>().ok().map(|number| number * factor);
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or("a number, alone or with s, m, h or d")
}

pub(in crate::cli) fn run(arguments: &Arguments, verbose: u8) -> Result<ExitCode, Error> {
    if arguments.check {
        let (lines, is_possible) = report()?;
        std::io::stdout().write_all(lines.as_bytes()).map_err(Error::io("standard output"))?;
        return Ok(ExitCode::from(u8::from(!is_possible)));
    }
    if arguments.try_out {
        return keeper::try_out();
    }
    if let Some(keeper) = arguments.launch.and_then(Pid::from_raw) {
        return Ok(launch(keeper, &arguments.command));
    }
    if let Some(front) = arguments.keep.and_then(Pid::from_raw) {
        return keeper::CommandKeeper::start(arguments, front, verbose)?.keep();
    }
    check_command(arguments)?;
    check_sources(&arguments.sources)?;
    arguments.serving.showing.settings()?;
    front(arguments, verbose)
}

/// Refuses a command without the `--` before it, which would be taken for sources.
fn check_command(arguments: &Arguments) -> Result<(), Error> {
    let [_, others @ ..] = arguments.sources.as_slice() else { return Ok(()) };
    match others.iter().find(|source| !is_address(source) && !source.exists()) {
        Some(missing) if arguments.command.is_empty() => Err(Error::Usage(format!(
            "{}: No such file or directory; if this is the command, write `--` before it",
            missing.display()
        ))),
        _ => Ok(()),
    }
}

/// The front: starts the keeper, hands signals on to it, and ends with its exit code.
fn front(arguments: &Arguments, verbose: u8) -> Result<ExitCode, Error> {
    if !processes::proc_is_ours() {
        let what = "/proc has the processes of another PID namespace: mount it anew (`unshare --mount-proc`)";
        return Err(Error::Background(what.to_owned()));
    }
    let place = keeper::place_to_clear(arguments.at.as_deref());
    let (sender, signals) = unbounded();
    processes::catch(sender, |caught| caught).map_err(Error::io("catching signals"))?;
    processes::adopt_orphans();
    let mut keeper = itself()?;
    keeper.arg("run").args((0..verbose).map(|_| "-v")).arg("--keep").arg(std::process::id().to_string());
    if let Some(at) = &arguments.at {
        let mut option = OsString::from("--at=");
        option.push(at);
        keeper.arg(option);
    }
    if let Some(time) = arguments.kill_after {
        keeper.arg("--kill-after").arg(time.as_secs_f64().to_string());
    }
    keeper.args(arguments.serving.arguments()?).args(&arguments.sources).arg("--").args(&arguments.command);
    if processes::group_of(getpid()).is_some() {
        keeper.process_group(0);
    }
    let keeper = keeper.spawn().map_err(Error::io("starting the keeper"))?;
    processes::close_standard_streams();
    let keeper = Pid::from_child(&keeper);
    let mut told = None;
    let status = 'keeper: loop {
        // The caller may have blocked SIGCHLD, so this looks now and then.
        if let Ok(caught) = signals.recv_timeout(LOOK) {
            told = hand_on(caught, keeper).or(told);
        }
        while let Some((process, status)) = processes::reap() {
            if process == keeper && processes::exit_code(status).is_some() {
                break 'keeper status;
            }
        }
    };
    // After a keeper that was killed. In any other case, nothing is left.
    processes::end_all(None, Duration::ZERO);
    if let Some(place) = place {
        keeper::clear(&place, arguments.at.is_none());
    }
    match status.terminating_signal().and_then(Signal::from_named_raw) {
        // Ctrl-C ended the command, or a keeper that had not yet started it.
        Some(Signal::INT | processes::AT_THE_TERMINAL) => processes::end_by(libc::SIGINT),
        Some(Signal::QUIT) => processes::end_by(libc::SIGQUIT),
        Some(signal) if told != Some(signal) => {
            say!("hepfs: run: the keeper was ended by signal {}, and so is the command", signal.as_raw());
        }
        _ => {}
    }
    Ok(ExitCode::from(processes::exit_code(status).unwrap_or(FAILED)))
}

/// Hands a signal on to the keeper; returns it as the keeper gets it.
fn hand_on(caught: Caught, keeper: Pid) -> Option<Signal> {
    let signal = match caught.signal {
        Signal::CHILD => return None,
        // The terminal has sent it to the command as well.
        Signal::INT | Signal::QUIT if caught.is_of_kernel => processes::AT_THE_TERMINAL,
        signal => signal,
    };
    // Without a keeper, SIGCHLD follows.
    let _ = kill_process(keeper, signal);
    Some(signal)
}

/// Becomes the command.
fn launch(keeper: Pid, command: &[OsString]) -> ExitCode {
    let Some((program, arguments)) = command.split_first() else { return ExitCode::from(FAILED) };
    if processes::end_with_parent(keeper, Signal::KILL).is_err() {
        return ExitCode::from(FAILED);
    }
    let error = Command::new(program).args(arguments).exec();
    say!("hepfs: run: {}: {error}", crate::views::printable(&program.to_string_lossy()));
    ExitCode::from(if error.kind() == std::io::ErrorKind::NotFound { NO_COMMAND } else { NOT_A_PROGRAM })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_timeout() {
        assert_eq!(time("10"), Ok(Duration::from_secs(10)));
        assert_eq!(time("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(time("2h"), Ok(Duration::from_secs(7200)));
        for bad in ["", "s", "10x", "-1", "1e400d", "nan"] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }
}
