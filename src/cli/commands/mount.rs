//! `hepfs mount SOURCE… MOUNTPOINT`.
//!
//! Without `--foreground`, the program restarts itself as a background process. This opens the sources; then the first
//! process mounts, hands the mount over, and waits until it answers. So mount(2) is called in the process group of the
//! user's command, the only one that an automounter lets look at the mount point, while the sources are opened in
//! another, for which it mounts what they lie on.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bstr::BString;
use clap::{Args, ValueEnum};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, kill_process};
use tracing::Level;

use super::run::server_of;
use crate::activity::Answering;
use crate::cli::limits::allow_open_files;
use crate::cli::notify::{Notifier, OwnMount};
use crate::cli::options::{FileOptions, ParquetOptions, ReadingOptions, Showing};
use crate::cli::progress::Watched;
use crate::cli::reporting::{self, OfMount};
use crate::cli::signals::{self, INTERRUPTED};
use crate::cli::{Error, itself, logging, notify, place};
use crate::formats::shell_word;
use crate::fs::mount::namespace::{descriptor, is_descriptor};
use crate::fs::mount::{Attached, ListedXattrs, Mount, MountError, MountOptions, StopSignals, attach};
use crate::fs::tree;
use crate::fs::watch::Watch;
use crate::h5::protocol::descriptors;
use crate::session::{Session, Settings, Watcher};
use crate::source::{self, Interrupt, is_address};
use crate::views::printable;

/// The message of the background process once the sources are open.
const OPEN: &str = "open";

/// The message of the background process once the mount answers.
const READY: &str = "ready";

/// Prefix of a line that is a warning: no other line begins with a control character.
const WARNING: char = '\t';

/// Show HDF5 files as directories
///
/// One file shows its root group in MOUNTPOINT; several files, or a folder, show one directory each. Nothing is
/// converted or copied, and nothing is ever written to the files.
#[derive(Debug, Args)]
#[command(
    allow_missing_positional = true,
    override_usage = "hepfs mount [OPTIONS] <SOURCE>... <MOUNTPOINT>\n       hepfs mount [OPTIONS] --config <NAME|FILE>"
)]
#[command(after_help = "What appears:\n  \
    mnt/\n  \
    ├── images.npy                 an array; also .raw .parquet .csv ...\n  \
    ├── run_042/                   a table\n  \
    │   ├── table.parquet          also .arrow .csv .ndjson; head.csv\n  \
    │   ├── metadata.json          types, units, missing values, findings\n  \
    │   ├── columns/energy.txt     a column; also .csv .npy .parquet .raw ...\n  \
    │   └── where/                 rows that satisfy conditions, by name:\n  \
    │       ├── values.txt         what can be asked\n  \
    │       └── energy:gt:5/label:eq:muon/table.csv\n  \
    ├── .datasets/run_042/         of several files: one table of all\n  \
    └── .hepfs/errors              why a read failed; also findings, stats\n\n\
    Examples:\n  \
    hepfs mount run.h5 mnt && head mnt/*/columns/*.csv; hepfs umount mnt\n  \
    hepfs mount runs/ mnt && ls mnt/.datasets")]
pub(in crate::cli) struct Arguments {
    /// HDF5 files, or folders of them
    #[arg(value_name = "SOURCE")]
    sources: Vec<PathBuf>,

    /// An existing directory; or /dev/fd/N, a descriptor of /dev/fuse that another program mounted
    #[arg(required = true, value_name = "MOUNTPOINT")]
    mountpoint: PathBuf,

    /// Conf file with lines `source=PATH`, `mountpoint=PATH` and `OPTION=VALUE`: a path with a `/`, or the name of
    /// ~/.config/hepfs/NAME.conf or /etc/hepfs/NAME.conf. Options of the command line count more
    #[arg(id = "config", long, value_name = "NAME|FILE")]
    _config: Option<OsString>,

    /// Stay in the foreground; Ctrl-C unmounts
    #[arg(short, long)]
    foreground: bool,

    #[command(flatten)]
    serving: Serving,

    /// Started by ourselves: tell standard output when the mount answers, and learn of it from standard input.
    #[arg(long, hide = true)]
    background: bool,

    /// Started by ourselves: end with the process that reads standard output.
    #[arg(long, hide = true)]
    bound: bool,
}

/// How the sources are served: the options that `mount` and `run` share.
#[derive(Debug, Args)]
pub(in crate::cli) struct Serving {
    /// Let other users read too, as far as the files' modes permit (an ordinary user needs `user_allow_other` in
    /// /etc/fuse.conf)
    #[arg(long)]
    pub allow_other: bool,

    /// Bypass the page cache: faster for programs that stream large blocks once, slower for small reads
    #[arg(long)]
    direct_io: bool,

    /// Extended attributes to list; the others can still be read by name
    #[arg(long, value_name = "WHICH", default_value = "short")]
    xattrs: ListedXattrs,

    /// Log file of the background process [default: the journal, where a service manager has standard error there; else
    /// ~/.local/state/hepfs/hepfs.log]
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,

    #[command(flatten)]
    reading: ReadingOptions,

    #[command(flatten)]
    pub showing: Showing,

    #[command(flatten)]
    files: FileOptions,

    #[command(flatten)]
    parquet: ParquetOptions,
}

pub(in crate::cli) fn run(arguments: &Arguments, verbose: u8) -> Result<ExitCode, Error> {
    if arguments.sources.is_empty() {
        let given = printable(&arguments.mountpoint.display().to_string());
        return Err(Error::Usage(format!("mount {given}: two things are needed, SOURCE and MOUNTPOINT (a directory)")));
    }
    check_sources(&arguments.sources)?;
    if arguments.background {
        return run_in_background(arguments, verbose);
    }
    if arguments.foreground {
        let is_journal = logging::is_journal();
        let warnings = logging::to_stderr(verbose, !is_journal);
        let opening = opening(&arguments.sources)?;
        let served = Served::start(arguments, None)?;
        drop(opening);
        // With `-v` the log contains them, and in the journal always.
        warnings.take().iter().filter(|_| verbose == 0 && !is_journal).for_each(|warning| warn(warning));
        say!(
            "hepfs: mounted on {}; Ctrl-C or `hepfs umount {0}` ends it",
            printable(&arguments.mountpoint.display().to_string())
        );
        return served.serve();
    }
    // The background process returns a reason, but no exit code, so check the options here.
    arguments.serving.showing.settings()?;
    start_background(arguments, verbose)
}

/// Refuses the name of a table within a file.
pub(in crate::cli) fn check_sources(sources: &[PathBuf]) -> Result<(), Error> {
    for text in sources.iter().filter(|source| is_address(source) || !source.exists()) {
        if let (source, path) = place::split(text.as_os_str())
            && !path.is_empty()
        {
            let (text, whole) = (text.display(), source.display());
            return Err(Error::Usage(format!(
                "{text}: a mount shows whole files: mount {whole}, and look into {path}"
            )));
        }
    }
    Ok(())
}

/// A mount, with everything that it needs.
pub(in crate::cli) struct Served {
    mount: Mount,
    session: Arc<Session>,
    stop: StopSignals,
    _watch: Option<Arc<Watch>>,
    _asker: Option<Asker>,
    _answering: Answering,
}

impl Served {
    /// Mounts and watches the sources; `asker` watches the process that waits for that.
    fn start(arguments: &Arguments, asker: Option<Asker>) -> Result<Self, Error> {
        let serving = &arguments.serving;
        let parquet_statistics = serving.parquet.are_shown();
        let formats = serving.files.formats();
        let is_shared = serving.allow_other;
        let settings = Settings { parquet_statistics, formats, is_shared, ..serving.showing.settings()? };
        let session = serving.reading.session(settings)?;
        session.store.kept().try_out();
        allow_open_files();
        let sources = absolute(&arguments.sources)?;
        let root = tree::root(&session, &sources, &Interrupt::new()).map_err(place::missing)?;
        // Up to here a signal ends the process as usual, and so does the exit of the waiting process. From here on
        // there may be a mount to take down.
        let stop = StopSignals::catch()?;
        let (place, asker) = match asker {
            Some(asker) => {
                let told = writeln!(std::io::stdout(), "{OPEN}").and_then(|()| MountPlace::told());
                let place = told.map_err(Error::io("waiting for a mount"))?;
                (place, arguments.bound.then(|| asker.bind()))
            }
            None => (MountPlace::named(&arguments.mountpoint)?, None),
        };
        let mut options = mount_options(serving, &sources);
        let objects = sources.iter().filter(|source| is_address(source) && !session.opener.is_folder(source));
        let objects: Vec<_> = objects.filter_map(|source| session.opener.stat(source).ok()).collect();
        options.total_bytes += objects.iter().map(|found| found.identity.size).sum::<u64>();
        let mountpoint = &arguments.mountpoint;
        session.mounted_at(place.path().unwrap_or(mountpoint));
        let mount = match place {
            MountPlace::Descriptor(device) => Mount::adopt(root, device, mountpoint, &options),
            MountPlace::Directory(path) => Mount::new(root, &path, &options),
            MountPlace::Attached(attached) => Mount::serve(root, attached, &options),
        };
        let mount = mount.map_err(|error| refused(error, &sources, arguments.bound))?;
        let watch = watch(&mount, &sources, &session);
        tracing::info!("mounted {} on {}", options.source_name, mount.mountpoint().display());
        let answering = reporting::of_mount(&OfMount {
            requests: mount.requests(),
            device: mount.device(),
            mountpoint: mount.mountpoint(),
            sources: &sources,
            job: if arguments.bound { server_of() } else { None },
        });
        Ok(Self { mount, session, stop, _watch: watch, _asker: asker, _answering: answering })
    }

    /// Serves until a signal or an unmount ends it.
    pub fn serve(self) -> Result<ExitCode, Error> {
        let asked = OwnMount { mountpoint: self.mount.mountpoint().to_owned(), device: self.mount.device() };
        let notifier = Notifier::start(asked).unwrap_or_else(|error| {
            tracing::warn!("the service manager hears nothing of this mount: {error}");
            None
        });
        let ended = self.mount.serve_until(&self.stop, || notifier.iter().for_each(Notifier::stop))?;
        self.session.verifier.stop();
        // The process may end while openings are still held.
        self.session.save();
        tracing::info!("unmounted: {ended:?}");
        Ok(ExitCode::SUCCESS)
    }
}

/// The options of a mount of these sources.
fn mount_options(serving: &Serving, sources: &[PathBuf]) -> MountOptions {
    let (objects, files): (Vec<&PathBuf>, Vec<&PathBuf>) = sources.iter().partition(|source| is_address(source));
    let known = files.into_iter().filter_map(|source| std::fs::metadata(source).ok());
    let defaults = MountOptions::default();
    // Nothing reports that an object has changed: the kernel has to ask.
    let asks = if objects.is_empty() { defaults.ttl } else { serving.reading.objects.revalidate() };
    MountOptions {
        ttl: defaults.ttl.min(asks),
        allow_other: serving.allow_other,
        direct_io: serving.direct_io,
        xattrs: serving.xattrs,
        source_name: source_name(sources),
        sources: sources.to_owned(),
        total_bytes: known.map(|metadata| metadata.len()).sum(),
        ..defaults
    }
}

/// Where requests come from.
pub(in crate::cli) enum MountPlace {
    /// A directory to mount on.
    Directory(PathBuf),
    /// A mount that the server ends.
    Attached(Attached),
    /// A descriptor of `/dev/fuse`, of a mount that another process ends.
    Descriptor(OwnedFd),
}

impl MountPlace {
    /// The place with this name: a directory, or `/dev/fd/N`.
    fn named(path: &Path) -> Result<Self, Error> {
        Ok(if is_descriptor(path) { Self::Descriptor(descriptor(path)?) } else { Self::Directory(path.to_owned()) })
    }

    /// The mount point; `None`: it is that of the command line.
    fn path(&self) -> Option<&Path> {
        match self {
            Self::Directory(path) => Some(path),
            Self::Attached(attached) => Some(&attached.mountpoint),
            Self::Descriptor(_) => None,
        }
    }

    /// Waits for the process that started this one to send the place to standard input, a socket.
    fn told() -> std::io::Result<Self> {
        let mut socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
        let device = descriptors::receive(&socket)?.pop();
        let mut path = Vec::new();
        socket.read_to_end(&mut path)?;
        let mountpoint = PathBuf::from(OsString::from_vec(path));
        Ok(match device {
            None => Self::Directory(mountpoint),
            Some(device) if mountpoint.as_os_str().is_empty() => Self::Descriptor(device),
            Some(device) => Self::Attached(Attached { device, mountpoint }),
        })
    }

    /// Sends the place to a process that waits for it. Nothing is sent to one that has ended.
    pub fn tell(self, mut socket: UnixStream) {
        let (device, mountpoint) = match &self {
            Self::Directory(mountpoint) => (None, mountpoint.as_path()),
            Self::Attached(attached) => (Some(&attached.device), attached.mountpoint.as_path()),
            Self::Descriptor(device) => (Some(device), Path::new("")),
        };
        let device: Vec<_> = device.map(AsRawFd::as_raw_fd).into_iter().collect();
        let _ = descriptors::send(&socket, &device).and_then(|()| socket.write_all(mountpoint.as_os_str().as_bytes()));
    }
}

/// Watches the process that started this one in the background, and waits for its mount. If it ends before the mount
/// answers, this process exits. Dropping this ends the watch.
struct Asker(Arc<Mutex<Watching>>);

/// How this process takes the end of the other one.
#[derive(Clone, Copy)]
enum Watching {
    /// Nothing is mounted yet: exit.
    Opening,
    /// The mount belongs to the other process: unmount.
    Bound,
    /// The mount stays.
    Over,
}

impl Asker {
    fn watch() -> Self {
        let phase = Arc::new(Mutex::new(Watching::Opening));
        let seen = phase.clone();
        let thread = std::thread::Builder::new().name("hepfs-asker".to_owned()).spawn(move || {
            let stdout = std::io::stdout();
            // No events are requested: `POLLERR` means that the reader has closed the pipe.
            let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
            while poll(&mut polled, None).is_err_and(|error| error == Errno::INTR) {}
            let phase = seen.lock();
            if matches!(*phase, Watching::Over) || !polled[0].revents().contains(PollFlags::ERR) {
                return;
            }
            tracing::info!("the process that asked for this mount has ended");
            if matches!(*phase, Watching::Opening) {
                // The workers end with this process.
                std::process::exit(1);
            }
            // Ends the mount as any such signal does.
            let _ = kill_process(getpid(), Signal::TERM);
        });
        // Without a thread, the exit is noticed when the mount answers.
        drop(thread);
        Self(phase)
    }

    /// Goes on watching a process that the mount belongs to.
    fn bind(self) -> Self {
        *self.0.lock() = Watching::Bound;
        self
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        *self.0.lock() = Watching::Over;
    }
}

/// The name of the sources in the list of mounts.
pub(in crate::cli) fn source_name(sources: &[PathBuf]) -> BString {
    bstr::join(" ", sources.iter().map(|source| source.as_os_str().as_bytes())).into()
}

/// Adds a hint to the error: if the system cannot mount at all, the commands that need no mount, and `hepfs run`,
/// unless `is_run`.
pub(in crate::cli) fn refused(error: MountError, sources: &[PathBuf], is_run: bool) -> Error {
    match sources {
        [source, ..] if error.is_of_system() => {
            let source = shell_word(&source.to_string_lossy());
            let run = if matches!(error, MountError::NoHelper) && !is_run { "; `hepfs run` needs none" } else { "" };
            Error::Background(format!(
                "{error}{run}. `hepfs info {source}` needs no mount; nor do query, export and cat"
            ))
        }
        _ => error.into(),
    }
}

/// Makes source paths absolute: the background process runs in another folder, and a watch needs the file's folder.
pub(in crate::cli) fn absolute(sources: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    sources.iter().map(|source| source::absolute(source).map_err(Error::io(source.display().to_string()))).collect()
}

/// Invalidates the kernel's caches when a source changes. Without inotify, a change is noticed when a file is opened,
/// or when the caches expire.
fn watch(mount: &Mount, sources: &[PathBuf], session: &Session) -> Option<Arc<Watch>> {
    let invalidator = mount.invalidator();
    let watch = Watch::new(move |path| {
        tracing::info!("{} changed", path.display());
        invalidator.stale();
    });
    let watch = watch.inspect_err(|error| tracing::warn!("sources are not watched: {error}")).ok()?;
    for source in sources.iter().filter(|source| !is_address(source)) {
        let added = if source.is_dir() { watch.add_folder(source) } else { watch.add_file(source) };
        if let Err(error) = added {
            tracing::warn!("{} is not watched: {error}", source.display());
        }
    }
    let watch = Arc::new(watch);
    session.watch_with(&watch);
    Some(watch)
}

/// A line that the background process writes before its mount answers, or instead of that.
pub(in crate::cli) enum StartMessage {
    /// The sources are open.
    Open,
    /// The mount answers.
    Ready,
    /// A warning for the user.
    Warning(String),
    /// Why there is no mount; empty if the process ended without a word.
    Refused(String),
}

impl StartMessage {
    /// Reads one line.
    pub fn of(line: &str) -> Self {
        match line.strip_prefix(WARNING) {
            Some(warning) => Self::Warning(warning.to_owned()),
            None if line == OPEN => Self::Open,
            None if line == READY => Self::Ready,
            None => Self::Refused(line.to_owned()),
        }
    }
}

/// Shows that sources are being opened, until it is dropped.
///
/// # Errors
/// As [`Watched::without_signals`].
pub(in crate::cli) fn opening(sources: &[PathBuf]) -> Result<Watched, Error> {
    Watched::without_signals(source_name(sources).to_string(), "opening")
}

/// Starts the background process, mounts for it, and waits for its message.
fn start_background(arguments: &Arguments, verbose: u8) -> Result<ExitCode, Error> {
    let (serving, mountpoint) = (&arguments.serving, &arguments.mountpoint);
    let sources = absolute(&arguments.sources)?;
    // Taken first, since the background process would inherit it.
    let given = is_descriptor(mountpoint).then(|| descriptor(mountpoint)).transpose()?;
    let (ours, theirs) = UnixStream::pair().map_err(Error::io("a socket"))?;
    let mut untold = Some((given, ours));
    let mut child = background(serving, &sources, mountpoint, theirs, false, verbose)?
        .spawn()
        .map_err(Error::io("starting the background process"))?;
    let mut shown = Some(opening(&arguments.sources)?);
    let mut interrupted = None;
    // Reads line by line and stops at the last one, since the process keeps the pipe open as long as it lives.
    let mut lines = child.stdout.take().into_iter().flat_map(|pipe| BufReader::new(pipe).lines());
    loop {
        let line = lines.next().transpose().map_err(Error::io("waiting for the background process"))?;
        match StartMessage::of(line.as_deref().unwrap_or_default()) {
            StartMessage::Open => {
                let Some((given, socket)) = untold.take() else { continue };
                drop(shown.take());
                // A signal now would leave a mount without a server.
                interrupted = Some(signals::caught()?);
                let place = match given {
                    Some(device) => MountPlace::Descriptor(device),
                    // After an error, the end of the socket ends the other process.
                    None => MountPlace::Attached(mount(serving, mountpoint, &sources, verbose)?),
                };
                place.tell(socket);
            }
            StartMessage::Ready if interrupted.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) => {
                let _ = kill_process(Pid::from_child(&child), Signal::TERM);
                child.wait().map_err(Error::io("waiting for the background process"))?;
                return Ok(ExitCode::from(INTERRUPTED));
            }
            StartMessage::Ready => return Ok(ExitCode::SUCCESS),
            StartMessage::Warning(warning) => warn(&warning),
            StartMessage::Refused(reason) => {
                // The process has sent its reason, and ends.
                let status = child.wait().map_err(Error::io("waiting for the background process"))?;
                return Err(not_mounted(reason, Some(status)));
            }
        }
    }
}

/// Mounts for the background process.
fn mount(serving: &Serving, mountpoint: &Path, sources: &[PathBuf], verbose: u8) -> Result<Attached, Error> {
    let warnings = logging::to_stderr(verbose, true);
    let attached = attach(mountpoint, &mount_options(serving, sources));
    // With `-v` the log contains them.
    warnings.take().iter().filter(|_| verbose == 0).for_each(|warning| warn(warning));
    attached.map_err(|error| refused(error, sources, false))
}

/// The error for a background process that ended before it had mounted.
pub(in crate::cli) fn not_mounted(reason: String, status: Option<ExitStatus>) -> Error {
    let ended = "the background process ended before it had mounted";
    Error::Background(match (reason.as_str(), status) {
        ("", Some(status)) => format!("{ended} ({status})"),
        ("", None) => ended.to_owned(),
        _ => reason,
    })
}

pub(in crate::cli) fn warn(warning: &str) {
    say!("{}hepfs: warning: {}", logging::priority(Level::WARN), printable(warning));
}

/// The background process: this program, which writes lines for [`StartMessage`] to its standard output, and waits for
/// its [`MountPlace`] at the other end of the socket. A bound one ends with the reader of its lines.
pub(in crate::cli) fn background(
    serving: &Serving,
    sources: &[PathBuf],
    mountpoint: &Path,
    place: UnixStream,
    is_bound: bool,
    verbose: u8,
) -> Result<Command, Error> {
    let mut command = itself()?;
    command.args(["mount", "--background"]).args((0..verbose).map(|_| "-v")).args(serving.arguments()?);
    command.args(is_bound.then_some("--bound")).arg("--").args(absolute(sources)?);
    command.args(absolute(&[mountpoint.to_owned()])?);
    let errors = if serving.logs_to_journal() { Stdio::inherit() } else { Stdio::null() };
    // A service manager waits for the process that it started, not for this one.
    command.stdin(OwnedFd::from(place)).stdout(Stdio::piped()).stderr(errors).env_remove(notify::SOCKET);
    Ok(command)
}

impl Serving {
    /// Whether a background process logs to the journal, where this one's messages go.
    fn logs_to_journal(&self) -> bool {
        self.log_file.is_none() && logging::is_journal()
    }

    /// These options as arguments for a process that this one starts.
    pub fn arguments(&self) -> Result<Vec<OsString>, Error> {
        let mut list: Vec<OsString> = Vec::new();
        if self.allow_other {
            list.push("--allow-other".into());
        }
        if self.direct_io {
            list.push("--direct-io".into());
        }
        if let Some(which) = self.xattrs.to_possible_value() {
            list.push(format!("--xattrs={}", which.get_name()).into());
        }
        if let Some(file) = &self.log_file {
            list.push("--log-file".into());
            list.push(std::path::absolute(file).map_err(Error::io(file.display().to_string()))?.into());
        }
        if !self.parquet.are_shown() {
            list.push("--parquet-stats=off".into());
        }
        list.extend(self.reading.arguments());
        list.extend(self.showing.arguments());
        list.extend(self.files.arguments());
        Ok(list)
    }
}

fn run_in_background(arguments: &Arguments, verbose: u8) -> Result<ExitCode, Error> {
    // A new session, so that the process survives the end of the terminal's session.
    let _ = rustix::process::setsid();
    let log = arguments.serving.log_file.clone().or_else(logging::default_file);
    let is_journal = arguments.serving.logs_to_journal();
    let warnings =
        if is_journal { logging::to_stderr(verbose, false) } else { logging::to_file(log.as_deref(), verbose) };
    let started = Served::start(arguments, Some(Asker::watch()));
    let word = match &started {
        Ok(_) => READY.to_owned(),
        // A single line, even if a name contains line breaks.
        Err(error) => printable(&error.to_string()),
    };
    for warning in warnings.take().iter().filter(|_| started.is_ok() && !is_journal) {
        let _ = writeln!(std::io::stdout(), "{WARNING}{}", printable(warning));
    }
    let heard = writeln!(std::io::stdout(), "{word}");
    let served = started?;
    if let Err(error) = heard {
        // A user who interrupted the start sees no mount and expects none later: dropping it unmounts.
        return Err(Error::io("telling who started this process")(error));
    }
    let _ = std::env::set_current_dir("/");
    served.serve()
}
