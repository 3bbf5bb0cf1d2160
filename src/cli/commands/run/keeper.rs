//! The keeper: mounts, starts the server and the command, and waits until nothing of the command is left.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use bstr::ByteSlice;
use crossbeam_channel::{Receiver, Sender, unbounded};
use rustix::process::{Pid, Signal, WaitStatus, kill_process};

use super::Arguments;
use super::processes::{self, AT_THE_TERMINAL, Caught, PATIENCE};
use crate::cli::commands::mount::{
    MountPlace, StartMessage, background, not_mounted, opening, refused, source_name, warn,
};
use crate::cli::objects::signed;
use crate::cli::signals::INTERRUPTED;
use crate::cli::{Error, itself};
use crate::fs::mount::namespace::{self, mount_privately};
use crate::fs::mount::{Lock, MountError, helper, preconditions, unmount};
use crate::source::mounts;
use crate::views::printable;

/// The variable in which the command finds the mount point.
const VARIABLE: &str = "HEPFS_MOUNT";
/// The mount point in arguments of the command.
const PLACEHOLDER: &[u8] = b"{mount}";

/// Exit code of `--try-out` if namespaces are refused, so that `fusermount3` may mount.
const LOCKED: u8 = 3;

/// Longest time between two looks at the front, whose end is also told by a signal.
const LOOK: Duration = Duration::from_secs(1);
/// Time after the command's end before the user is told of processes that it left behind.
const SILENCE: Duration = Duration::from_secs(3);

/// Something that happened to the keeper.
enum Event {
    Signal(Caught),
    Said(StartMessage),
}

/// The keeper of one command.
pub(super) struct CommandKeeper<'a> {
    arguments: &'a Arguments,
    front: Pid,
    events: Receiver<Event>,
    mountpoint: PathBuf,
    _folder: Option<File>,
    server: Pid,
    /// Why it mounts through `fusermount3`.
    lock: Option<Lock>,
    /// How the server ended.
    server_end: Option<WaitStatus>,
    /// The signal of the terminal that ended the command.
    interrupted: Option<i32>,
    phase: Phase,
}

/// How far the command has come.
enum Phase {
    /// The server opens the sources.
    Opening,
    /// The command runs.
    Running(Pid),
    /// The command has ended with this code, at this time; others may still run.
    Ended { code: u8, since: Instant, is_told: bool },
}

impl<'a> CommandKeeper<'a> {
    /// Starts the server and mounts. `front` is the process that started this one.
    ///
    /// The server stays outside of the namespaces: below a mount on its own folders, it would wait for itself.
    pub fn start(arguments: &'a Arguments, front: Pid, verbose: u8) -> Result<Self, Error> {
        processes::end_with_parent(front, Signal::TERM).map_err(|error| Error::io("the front")(error.into()))?;
        processes::adopt_orphans();
        let (sources, at) = (&arguments.sources, arguments.at.as_deref());
        let (serving, name) = (&arguments.serving, source_name(sources));
        let (ours, theirs) = UnixStream::pair().map_err(Error::io("a socket"))?;
        let mut server = background(serving, sources, Path::new("/dev/fuse"), theirs, true, verbose)?;
        let mut server = server.spawn().map_err(Error::io("starting the server"))?;
        let mut folder = None;
        let (mountpoint, place, lock) = match mount_privately(at, sources, name.as_bstr(), serving.allow_other) {
            Ok(mount) => {
                tracing::info!("mounted on {} in a namespace", mount.mountpoint.display());
                folder = mount.folder;
                (mount.mountpoint, MountPlace::Descriptor(mount.device), None)
            }
            Err(MountError::Locked(lock)) => {
                tracing::info!("no namespace to mount in: {lock}; fusermount3 mounts");
                let mountpoint = shared_mountpoint(at, front)?;
                (mountpoint.clone(), MountPlace::Directory(mountpoint), Some(lock))
            }
            Err(error) => return Err(refused(error, sources, true)),
        };
        place.tell(ours);
        let (sender, events) = unbounded();
        // Threads start after the namespaces: the kernel gives these to processes of a single thread.
        processes::catch(sender.clone(), Event::Signal).map_err(Error::io("catching signals"))?;
        if let Some(pipe) = server.stdout.take() {
            listen(BufReader::new(pipe), sender)?;
        }
        let server = Pid::from_child(&server);
        let (server_end, interrupted, phase) = (None, None, Phase::Opening);
        Ok(Self { arguments, front, events, mountpoint, _folder: folder, server, lock, server_end, interrupted, phase })
    }

    /// Keeps the command until it and all that it left behind have ended; returns its exit code. If Ctrl-C ended the
    /// command, it ends this process as well: a shell looks at that before it goes on with a script.
    pub fn keep(mut self) -> Result<ExitCode, Error> {
        let outcome = self.attend();
        processes::end_all(Some(self.server), Duration::ZERO);
        // The server saves what it has learnt, and unmounts where that is its task.
        let _ = kill_process(self.server, Signal::TERM);
        processes::end_all(None, PATIENCE);
        if self.lock.is_some() {
            // The front does the same, unless it was killed.
            clear(&self.mountpoint, self.arguments.at.is_none());
        }
        // It may still be stopped, as the command was.
        let _ = kill_process(self.front, Signal::CONT);
        if let (Ok(_), Some(signal)) = (&outcome, self.interrupted) {
            processes::end_by(signal);
        }
        outcome.map(ExitCode::from)
    }

    /// Handles events until the command's code is known and nothing is left to wait for.
    fn attend(&mut self) -> Result<u8, Error> {
        let mut shown = Some(opening(&self.arguments.sources)?);
        loop {
            let event = self.events.recv_timeout(self.patience());
            if !processes::is_child_of(self.front) {
                return Ok(super::FAILED);
            }
            match event {
                // The server was told at once where to mount.
                Ok(Event::Said(StartMessage::Open)) => {}
                Ok(Event::Said(StartMessage::Warning(warning))) => warn(&warning),
                Ok(Event::Said(StartMessage::Ready)) => {
                    drop(shown.take());
                    self.phase = Phase::Running(self.start_command()?);
                }
                Ok(Event::Said(StartMessage::Refused(reason))) => return Err(self.refused(reason)),
                Ok(Event::Signal(caught)) if caught.signal == Signal::CHILD => self.reap()?,
                Ok(Event::Signal(caught)) => {
                    if let Some(code) = self.pass_on(caught) {
                        return Ok(code);
                    }
                }
                // The caller may have blocked SIGCHLD, so this looks now and then.
                Err(_) => self.reap()?,
            }
            if let Phase::Ended { code, .. } = self.phase
                && !self.waits()
            {
                return Ok(code);
            }
        }
    }

    /// Time until something is to be done even if nothing happens.
    fn patience(&self) -> Duration {
        let Phase::Ended { since, is_told, .. } = self.phase else { return LOOK };
        let told = (!is_told).then_some(SILENCE);
        let next = self.arguments.kill_after.into_iter().chain(told).map(|time| time.saturating_sub(since.elapsed()));
        next.chain([LOOK]).min().unwrap_or(LOOK)
    }

    /// Whether processes that the command left behind still run, and may; says so after a while.
    fn waits(&mut self) -> bool {
        let left = processes::descendants(Some(self.server));
        let Phase::Ended { since, is_told, .. } = &mut self.phase else { return true };
        if left.is_empty() {
            return false;
        }
        if self.arguments.kill_after.is_some_and(|time| since.elapsed() >= time) {
            processes::end_all(Some(self.server), PATIENCE);
            return false;
        }
        if !*is_told && since.elapsed() >= SILENCE {
            *is_told = true;
            say!(
                "hepfs: run: the command has ended; waiting for {} that it left behind (Ctrl-C ends them)",
                named(&left)
            );
        }
        true
    }

    fn start_command(&self) -> Result<Pid, Error> {
        // Not by its path, which may lie below the mount.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("hepfs").args(["run", "--launch"]).arg(std::process::id().to_string()).arg("--");
        if self.arguments.command.is_empty() {
            let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
            say!(
                "hepfs: mounted on {}; the end of this shell unmounts",
                printable(&self.mountpoint.display().to_string())
            );
            command.arg(shell);
        } else {
            command.args(self.arguments.command.iter().map(|argument| with_mount(argument, &self.mountpoint)));
        }
        command.env(VARIABLE, &self.mountpoint);
        signed::withhold(&mut command);
        // The group of the front, which signals of the terminal reach; else this process is in it.
        if let Some(group) = processes::group_of(self.front) {
            command.process_group(group);
        }
        let command = command.spawn().map_err(Error::io("starting the command"))?;
        processes::close_standard_streams();
        Ok(Pid::from_child(&command))
    }

    /// The error for a server that mounts nothing.
    fn refused(&self, reason: String) -> Error {
        let status = self.server_end.or_else(|| processes::wait_for(self.server));
        let error = not_mounted(reason, status.map(describe));
        match &self.lock {
            // Both ways to mount are closed.
            Some(lock) => Error::Background(format!("no namespace to mount in: {lock}. And fusermount3: {error}")),
            None => error,
        }
    }

    /// Collects processes that have ended.
    fn reap(&mut self) -> Result<(), Error> {
        while let Some((process, status)) = processes::reap() {
            if process == self.server && processes::exit_code(status).is_some() {
                self.server_end = Some(status);
            }
            match self.phase {
                Phase::Running(command) if process == command => match processes::exit_code(status) {
                    Some(code) => {
                        let signal = status.terminating_signal();
                        self.interrupted = signal.filter(|signal| [libc::SIGINT, libc::SIGQUIT].contains(signal));
                        self.phase = Phase::Ended { code, since: Instant::now(), is_told: false };
                    }
                    // The shell that started us sees a job that stopped, and one that goes on.
                    None if processes::has_job_control(self.front) => {
                        let signal = if status.stopped() { Signal::STOP } else { Signal::CONT };
                        let _ = kill_process(self.front, signal);
                    }
                    None => {}
                },
                _ => {}
            }
        }
        match self.server_end {
            // The command may have unmounted, and goes on.
            Some(end) if !matches!(self.phase, Phase::Opening) && end.exit_status() != Some(0) => {
                processes::end_all(None, PATIENCE);
                Err(Error::Background(format!("the server ended ({}), and so did the command", describe(end))))
            }
            _ => Ok(()),
        }
    }

    /// Hands a signal on to the command. Returns a code if it ends the keeper.
    fn pass_on(&self, caught: Caught) -> Option<u8> {
        match self.phase {
            Phase::Running(_) if caught.signal == AT_THE_TERMINAL => None,
            Phase::Running(command) => {
                let _ = kill_process(command, caught.signal);
                None
            }
            _ if caught.signal == Signal::CONT => None,
            Phase::Opening if caught.signal == AT_THE_TERMINAL => Some(INTERRUPTED),
            Phase::Opening => u8::try_from(128 + caught.signal.as_raw()).ok(),
            Phase::Ended { code, .. } => {
                processes::end_all(Some(self.server), PATIENCE);
                Some(code)
            }
        }
    }
}

/// Sends the lines of the server, up to that which says how its mount went.
fn listen(mut lines: impl BufRead + Send + 'static, events: Sender<Event>) -> Result<(), Error> {
    let thread = std::thread::Builder::new().name("hepfs-server".to_owned()).spawn(move || {
        loop {
            let mut line = String::new();
            let read = lines.read_line(&mut line);
            let said = StartMessage::of(if read.is_ok() { line.trim_end_matches('\n') } else { "" });
            let goes_on = matches!(said, StartMessage::Open | StartMessage::Warning(_));
            if events.send(Event::Said(said)).is_err() || !goes_on {
                break;
            }
        }
        // The server watches this pipe: it stays open as long as this process lives.
        std::mem::forget(lines);
    });
    thread.map(drop).map_err(Error::io("starting a thread"))
}

/// Replaces `{mount}` in an argument.
fn with_mount(argument: &OsStr, mountpoint: &Path) -> OsString {
    OsString::from_vec(argument.as_bytes().replace(PLACEHOLDER, mountpoint.as_os_str().as_bytes()))
}

/// The mount point that `fusermount3` mounts on, visible to all processes of this user.
fn shared_mountpoint(at: Option<&Path>, front: Pid) -> Result<PathBuf, Error> {
    if let Some(at) = at {
        // The command may change its folder.
        return std::path::absolute(at).map_err(Error::io(at.display().to_string()));
    }
    let path = namespace::folder()?.join(front.as_raw_pid().to_string());
    std::fs::create_dir(&path).map_err(Error::io(path.display().to_string()))?;
    Ok(path)
}

/// The mount point that the front looks at in the end: there `fusermount3` may have mounted. `None`: whatever is
/// mounted there belongs to another process.
pub(super) fn place_to_clear(at: Option<&Path>) -> Option<PathBuf> {
    let path = match at {
        Some(at) => at.canonicalize().ok()?,
        None => namespace::folder().ok()?.join(std::process::id().to_string()),
    };
    mounts::mount_at(&path).ok()?.is_none().then_some(path)
}

/// Removes what a keeper and a server that were killed have left of a mount by `fusermount3`.
pub(super) fn clear(path: &Path, is_ours: bool) {
    // Most often nothing is mounted there.
    let _ = unmount(path, true);
    if is_ours {
        let _ = std::fs::remove_dir(path);
    }
}

/// Names a few processes, for people.
fn named(left: &[Pid]) -> String {
    let first: Vec<String> = left.iter().take(3).map(|process| label(process.as_raw_pid())).collect();
    let more = match left.len() - first.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    first.join(", ") + &more
}

/// The name and number of a process.
fn label(process: i32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    format!("{} ({process})", printable(name.trim_end()))
}

/// How a process ended, in the words of the standard library.
fn describe(status: WaitStatus) -> ExitStatus {
    ExitStatus::from_raw(status.as_raw())
}

/// Writes the lines of `--check`: each precondition of a mount, and an attempt; also whether this user can mount.
pub(in crate::cli) fn report() -> Result<(String, bool), Error> {
    let mut lines = String::new();
    let list = preconditions();
    for condition in &list {
        lines += &line(&condition.name, condition.holds);
    }
    let output =
        itself()?.args(["run", "--try-out"]).stdin(Stdio::null()).output().map_err(Error::io("a mount to try"))?;
    let in_namespace = output.status.success();
    lines += &line("a mount in a namespace", in_namespace);
    // As the keeper does.
    let by_helper = output.status.code() == Some(LOCKED.into()) && helper().is_some();
    lines += match (in_namespace, by_helper) {
        (true, _) => "`hepfs run` mounts in a namespace, without any right.\n",
        (false, true) => "`hepfs run` mounts through fusermount3.\n",
        (false, false) => "`hepfs run` cannot mount here.\n",
    };
    if !in_namespace {
        lines += String::from_utf8_lossy(&output.stderr).trim_start_matches("hepfs: ");
    }
    Ok((lines, in_namespace || by_helper))
}

fn line(name: &str, holds: bool) -> String {
    format!("{:5}{name}\n", if holds { "yes" } else { "no" })
}

/// `--try-out`: mounts in namespaces that end with this process.
pub(super) fn try_out() -> Result<ExitCode, Error> {
    match mount_privately(None, &[], b"hepfs".as_bstr(), false) {
        Ok(_) => Ok(ExitCode::SUCCESS),
        Err(error @ MountError::Locked(_)) => {
            Error::from(error).say();
            Ok(ExitCode::from(LOCKED))
        }
        Err(error) => Err(error.into()),
    }
}
