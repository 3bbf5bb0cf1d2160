//! Describes this process to `hepfs status`.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use clap::ArgMatches;
use parking_lot::Mutex;

use super::place;
use crate::activity::{self, Answering, Report, Requests};
use crate::session::Session;
use crate::source::is_address;
use crate::source::mounts::{self, HEPFS};

/// Commands that may take long.
const LONG: [&str; 12] =
    ["info", "ls", "cat", "prepare", "query", "export", "import", "convert", "index", "check", "demo", "serve"];

/// Arguments that name sources.
const SOURCES: [&str; 4] = ["place", "places", "paths", "sources"];

/// A command that ends sooner is not seen.
const SHORT: Duration = Duration::from_secs(1);

/// The last session.
static SESSION: Mutex<Weak<Session>> = Mutex::new(Weak::new());

/// Has the reports of this process tell of a session.
pub(super) fn told(session: Arc<Session>) -> Arc<Session> {
    *SESSION.lock() = Arc::downgrade(&session);
    session
}

fn tell_of_session(report: &mut Report) {
    if let Some(session) = SESSION.lock().upgrade() {
        session.tell(report);
    }
}

/// Answers `hepfs status` while a command runs; `None`: it is never long, or answers by itself.
pub(super) fn of_command(matches: &ArgMatches) -> Option<Answering> {
    let (mut command, mut matches) = matches.subcommand().filter(|(name, _)| LONG.contains(name))?;
    let mut name = command.to_owned();
    while let Some((below, its_matches)) = matches.subcommand() {
        (command, matches) = (below, its_matches);
        name = format!("{name} {command}");
    }
    let given = SOURCES.iter().filter_map(|id| matches.try_get_raw(id).ok().flatten()).flatten();
    let given: Vec<OsString> = given.map(ToOwned::to_owned).collect();
    activity::describe(move |report| {
        report.command.clone_from(&name);
        report.sources = given.iter().map(|text| named(place::split(text).0)).collect();
        tell_of_session(report);
    });
    Some(activity::serve(None, SHORT))
}

/// A mount, for its reports.
pub(super) struct OfMount<'a> {
    /// Its requests.
    pub requests: &'a Arc<Requests>,
    /// Its device number; `None`: another process mounted.
    pub device: Option<(u32, u32)>,
    /// Its mount point; not used without a device.
    pub mountpoint: &'a Path,
    /// Its sources.
    pub sources: &'a [PathBuf],
    /// The `hepfs run` that it belongs to, and the keeper, which may have mounted.
    pub job: Option<(u32, u32)>,
}

/// Answers `hepfs status` while a mount is served.
pub(super) fn of_mount(mount: &OfMount) -> Answering {
    let &OfMount { requests, device, mountpoint, sources, job } = mount;
    let its = job.and_then(|(_, keeper)| mounts::mounts_of(keeper).ok());
    // The keeper has just mounted, and its command has not yet begun.
    let its = its.and_then(|all| all.into_iter().rev().find(|mount| mount.fs_type == HEPFS));
    let (device, mountpoint) = match (device, its) {
        (None, Some(its)) => (Some(its.device()), its.mountpoint),
        (device, _) => (device.map(|(major, minor)| format!("{major}:{minor}")), mountpoint.to_owned()),
    };
    let namespace = job.and_then(|(_, keeper)| std::fs::metadata(format!("/proc/{keeper}/ns/mnt")).ok());
    let namespace = namespace.map(|metadata| metadata.ino());
    let sources: Vec<String> = sources.iter().cloned().map(named).collect();
    let (requests, its_device) = (requests.clone(), device.clone());
    activity::describe(move |report| {
        report.command = if job.is_some() { "run" } else { "mount" }.to_owned();
        report.job = job.map(|(front, _)| front);
        report.mountpoint = Some(mountpoint.to_string_lossy().into_owned());
        report.device.clone_from(&its_device);
        report.namespace = namespace.or(report.namespace);
        report.sources.clone_from(&sources);
        report.bytes_served = requests.bytes();
        report.seconds_idle = requests.seconds_idle();
        report.requests = requests.report();
        tell_of_session(report);
    });
    activity::serve(device.as_deref(), Duration::ZERO)
}

/// The name of a source, with a `/` behind that of a folder.
fn named(source: PathBuf) -> String {
    let name = source.to_string_lossy().into_owned();
    if !is_address(&source) && source.is_dir() && !name.ends_with('/') { name + "/" } else { name }
}
