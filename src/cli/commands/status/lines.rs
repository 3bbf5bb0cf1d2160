//! Brings answers and the kernel's list of mounts together: a line for each mount and each command.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use bstr::ByteSlice;
use rustix::process::geteuid;
use serde::Serialize;

use crate::activity::{self, Asked, Report};
use crate::source::holders::{HeldMounts, Holder, processes};
use crate::source::mounts::{self, HEPFS, MountEntry};
use crate::views::printable;

/// How long a mount without a process that answers is let alone.
const SETTLING: Duration = Duration::from_millis(200);

/// Whether the process of a line answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum DaemonState {
    /// It has answered.
    Answers,
    /// It lives, and has not answered within a second.
    Silent,
    /// It is gone, and left its mount behind.
    Gone,
}

/// A mount, or a command.
#[derive(Clone, Debug)]
pub(super) struct StatusLine {
    pub state: DaemonState,
    /// Its mount point; `None`: a command, or not known.
    pub mountpoint: Option<PathBuf>,
    pub uid: u32,
    pub pid: Option<u32>,
    /// Major and minor device number of the mount.
    pub device: Option<(u32, u32)>,
    /// The mount namespace, where it is another one than that of this process.
    pub namespace: Option<u64>,
    /// Whether it is mounted nowhere any more, and only held by those that use it.
    pub is_detached: bool,
    /// Sources, in a few words.
    pub source: String,
    pub report: Option<Report>,
    /// Who holds the mount; `None`: not looked for.
    pub holders: Option<Vec<Holder>>,
}

/// The state of all.
#[derive(Clone, Debug)]
pub(super) struct Looked {
    pub lines: Vec<StatusLine>,
    /// Processes that were too many to be asked.
    pub left_out: usize,
    pub own_user: u32,
}

impl Looked {
    /// Asks all processes, and reads the list of mounts.
    ///
    /// # Errors
    /// If `/proc` is not mounted.
    pub fn now() -> io::Result<Self> {
        let own_user = geteuid().as_raw();
        let others = activity::others();
        // Read last: what has answered and unmounted since is not listed as gone.
        let mut mounts: Vec<MountEntry> =
            mounts::mounts()?.into_iter().filter(|mount| mount.fs_type == HEPFS).collect();
        let own_namespace = fs::metadata("/proc/self/ns/mnt").map_or(0, |metadata| metadata.ino());
        let mut lines: Vec<StatusLine> =
            others.asked.into_iter().map(|asked| of_asked(asked, &mounts, own_namespace)).collect();
        mounts.retain(|mount| {
            let is_seen =
                |line: &StatusLine| line.device == Some(mount.device) && mount.user.is_none_or(|user| user == line.uid);
            (own_user == 0 || mount.user.is_none_or(|user| user == own_user)) && !lines.iter().any(is_seen)
        });
        if !mounts.is_empty() {
            // One may be just about to begin, or to end.
            std::thread::sleep(SETTLING);
            let (now, processes) = (mounts::mounts()?, processes());
            mounts.retain(|mount| now.contains(mount));
            lines.extend(mounts.into_iter().map(|mount| without_answer(mount, &processes)));
        }
        lines.sort_by(|a, b| a.key().cmp(&b.key()));
        Ok(Self { lines, left_out: others.left_out, own_user })
    }
}

impl StatusLine {
    /// Own mounts by path, then jobs, then commands.
    fn key(&self) -> (u32, bool, bool, &Option<PathBuf>, Option<u32>) {
        (self.uid, !self.is_mount(), self.job().is_some(), &self.mountpoint, self.pid)
    }

    /// Whether this is a mount, not a command.
    pub fn is_mount(&self) -> bool {
        self.mountpoint.is_some() || self.device.is_some()
    }

    /// The `hepfs run` that the mount belongs to.
    pub fn job(&self) -> Option<u32> {
        self.report.as_ref()?.job
    }

    /// The mount point, or what stands for one.
    pub fn name(&self) -> String {
        let path = self.mountpoint.as_ref().map(|path| printable(&path.display().to_string()));
        match (path, self.job(), &self.report) {
            (_, Some(job), _) => format!("(job {job}, run)"),
            (Some(path), ..) if self.is_detached => format!("{path} (unmounted)"),
            (Some(path), ..) => match self.namespace {
                Some(namespace) => format!("{path} (namespace {namespace})"),
                None => path,
            },
            (None, _, Some(report)) => format!("(process {}, {})", report.pid, printable(&report.command)),
            (None, ..) => format!("(process {})", self.pid.unwrap_or_default()),
        }
    }

    /// Its activity now.
    pub fn now(&self) -> String {
        match (&self.report, self.pid, &self.mountpoint) {
            (Some(report), ..) => printable(&report.now()),
            (None, Some(pid), _) => format!("does not answer (process {pid}{})", state_of(pid)),
            (None, None, Some(path)) => match path.to_str().filter(|path| printable(path) == **path) {
                Some(path) => format!("hepfs umount {} clears it", crate::formats::shell_word(path)),
                // Its name cannot be pasted as it is shown.
                None => "hepfs umount clears it".to_owned(),
            },
            (None, None, None) => String::new(),
        }
    }

    /// Looks who holds the mount.
    pub fn find_holders(&mut self) {
        self.holders = self.device.map(|device| HeldMounts::new(device).holders());
    }
}

/// The line of a process that was asked.
fn of_asked(asked: Asked, mounts: &[MountEntry], own_namespace: u64) -> StatusLine {
    let Asked { uid, pid, device, report } = asked;
    let device = device.as_deref().and_then(device_number);
    let is_its = |mount: &&MountEntry| Some(mount.device) == device && mount.user.is_none_or(|user| user == uid);
    let here = mounts.iter().find(is_its).cloned();
    let is_here = here.is_some();
    // Elsewhere, if its process is in another namespace.
    let there = || mounts::mounts_of(pid).ok()?.into_iter().find(|mount| is_its(&mount));
    let (told, namespace) = match &report {
        Some(report) => (report.mountpoint.as_ref().map(PathBuf::from), report.namespace),
        None => (None, fs::metadata(format!("/proc/{pid}/ns/mnt")).ok().map(|metadata| metadata.ino())),
    };
    let entry = here.or_else(|| device.and_then(|_| there()));
    let namespace = namespace.filter(|namespace| !is_here && *namespace != own_namespace);
    let source = match (&report, &entry) {
        (Some(report), _) => report.source(),
        (None, Some(entry)) => last_name(entry),
        (None, None) => String::new(),
    };
    StatusLine {
        state: if report.is_some() { DaemonState::Answers } else { DaemonState::Silent },
        is_detached: entry.is_none() && namespace.is_none() && told.is_some(),
        mountpoint: entry.map(|entry| entry.mountpoint).or(told),
        uid,
        pid: Some(pid),
        device,
        namespace,
        source,
        report,
        holders: None,
    }
}

/// The line of a mount without a socket of its process.
fn without_answer(mount: MountEntry, processes: &[u32]) -> StatusLine {
    let pid = processes.iter().copied().find(|process| is_daemon_of(*process, &mount));
    StatusLine {
        state: if pid.is_some() { DaemonState::Silent } else { DaemonState::Gone },
        uid: mount.user.unwrap_or_default(),
        pid,
        device: Some(mount.device),
        namespace: None,
        is_detached: false,
        source: if pid.is_some() { last_name(&mount) } else { "(daemon gone)".to_owned() },
        mountpoint: Some(mount.mountpoint),
        report: None,
        holders: None,
    }
}

/// The name of a mount's source, without its folder.
fn last_name(mount: &MountEntry) -> String {
    let source = mount.source.to_string();
    source.rsplit('/').next().unwrap_or_default().to_owned()
}

/// Whether a process says in its arguments that it mounts a hepfs there: one without a socket, for want of a folder.
fn is_daemon_of(process: u32, mount: &MountEntry) -> bool {
    let user = fs::metadata(format!("/proc/{process}")).ok().map(|metadata| metadata.uid());
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let mut arguments = line.split(|byte| *byte == 0);
    let is_hepfs = arguments.next().is_some_and(|program| program.contains_str("hepfs"));
    let is_mount = arguments.clone().any(|argument| argument == b"mount");
    let folder = fs::read_link(format!("/proc/{process}/cwd")).unwrap_or_default();
    let is_users = mount.user.is_none() || mount.user == user;
    is_hepfs
        && is_mount
        && is_users
        && arguments.any(|argument| folder.join(OsStr::from_bytes(argument)) == mount.mountpoint)
}

/// `MAJOR:MINOR`, as in the list of mounts.
fn device_number(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Why a process may not answer (proc_pid_stat(5)).
fn state_of(process: u32) -> &'static str {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    match stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()) {
        Some('T' | 't') => ", stopped",
        Some('D') => ", waiting for a disk",
        _ => "",
    }
}
