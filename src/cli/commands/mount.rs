//! `hepfs mount SOURCE… MOUNTPOINT`.
//!
//! Without `--foreground`, the program restarts itself as a background process, and waits until that has mounted or
//! reports why it cannot; then `mount` returns, as the system's own does.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::cli::limits::allow_open_files;
use crate::cli::options::{FileOptions, ParquetOptions, ReadingOptions, Showing};
use crate::cli::{Error, logging, place};
use crate::formats::shell_word;
use crate::fs::mount::{ListedXattrs, Mount, MountError, MountOptions, StopSignals};
use crate::fs::tree;
use crate::fs::watch::Watch;
use crate::session::{Session, Settings, Watcher};
use crate::source::Interrupt;
use crate::views::printable;

/// The message of the background process once the mount answers.
const READY: &str = "ready";

/// Prefix of a line that is a warning: no other line begins with a control character.
const WARNING: char = '\t';

/// Show HDF5 files as directories
///
/// One file shows its root group in MOUNTPOINT; several files, or a folder, show one directory each. Nothing is
/// converted or copied, and nothing is ever written to the files.
#[derive(Debug, Args)]
#[command(allow_missing_positional = true, override_usage = "hepfs mount [OPTIONS] <SOURCE>... <MOUNTPOINT>")]
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

    /// An existing directory
    #[arg(required = true, value_name = "MOUNTPOINT")]
    mountpoint: PathBuf,

    /// Stay in the foreground; Ctrl-C unmounts
    #[arg(short, long)]
    foreground: bool,

    /// Let other users read too, as far as the files' modes permit (an ordinary user needs `user_allow_other` in
    /// /etc/fuse.conf)
    #[arg(long)]
    allow_other: bool,

    /// Bypass the page cache: faster for programs that stream large blocks once, slower for small reads
    #[arg(long)]
    direct_io: bool,

    /// Extended attributes to list; the others can still be read by name
    #[arg(long, value_name = "WHICH", default_value = "short")]
    xattrs: ListedXattrs,

    /// Log file of the background process [default: ~/.local/state/hepfs/hepfs.log]
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,

    #[command(flatten)]
    reading: ReadingOptions,

    #[command(flatten)]
    showing: Showing,

    #[command(flatten)]
    files: FileOptions,

    #[command(flatten)]
    parquet: ParquetOptions,

    /// Started by ourselves: tell standard output when the mount answers.
    #[arg(long, hide = true)]
    background: bool,
}

pub(in crate::cli) fn run(arguments: &Arguments, verbose: u8) -> Result<ExitCode, Error> {
    if arguments.sources.is_empty() {
        let given = printable(&arguments.mountpoint.display().to_string());
        return Err(Error::Usage(format!("mount {given}: two things are needed, SOURCE and MOUNTPOINT (a directory)")));
    }
    for text in arguments.sources.iter().filter(|source| !source.exists()) {
        if let (source, path) = place::split(text.as_os_str())
            && !path.is_empty()
        {
            let (text, whole) = (text.display(), source.display());
            return Err(Error::Usage(format!(
                "{text}: a mount shows whole files: mount {whole}, and look into {path}"
            )));
        }
    }
    if arguments.background {
        return run_in_background(arguments, verbose);
    }
    if arguments.foreground {
        let warnings = logging::to_terminal(verbose);
        let served = Served::start(arguments, None)?;
        // With `-v` the log contains them.
        warnings.take().iter().filter(|_| verbose == 0).for_each(|warning| warn(warning));
        say!(
            "hepfs: mounted on {}; Ctrl-C or `hepfs umount {0}` ends it",
            printable(&arguments.mountpoint.display().to_string())
        );
        return served.serve();
    }
    // The background process returns a reason, but no exit code, so check the options here.
    arguments.showing.settings()?;
    start_background(arguments, verbose)
}

/// A mount, with everything that it needs.
pub(in crate::cli) struct Served {
    mount: Mount,
    session: Arc<Session>,
    stop: StopSignals,
    _watch: Option<Arc<Watch>>,
}

impl Served {
    /// Mounts and watches the sources; `asker` watches the process that waits for that.
    fn start(arguments: &Arguments, asker: Option<Asker>) -> Result<Self, Error> {
        let parquet_statistics = arguments.parquet.are_shown();
        let formats = arguments.files.formats();
        let settings = Settings { parquet_statistics, formats, ..arguments.showing.settings()? };
        let session = arguments.reading.session(settings)?;
        session.store.kept().try_out();
        allow_open_files();
        let sources = absolute(&arguments.sources)?;
        let root = tree::root(&session, &sources, &Interrupt::new()).map_err(place::missing)?;
        // Up to here a signal ends the process as usual, and so does the exit of the waiting process. From here on
        // there may be a mount to take down.
        let stop = StopSignals::catch()?;
        drop(asker);
        let name = sources.iter().map(|source| source.as_os_str().as_bytes()).collect::<Vec<_>>();
        let total_bytes =
            sources.iter().filter_map(|source| std::fs::metadata(source).ok()).map(|metadata| metadata.len()).sum();
        let options = MountOptions {
            allow_other: arguments.allow_other,
            direct_io: arguments.direct_io,
            xattrs: arguments.xattrs,
            source_name: bstr::join(" ", name).into(),
            sources: sources.clone(),
            total_bytes,
            ..Default::default()
        };
        let mountpoint = &arguments.mountpoint;
        let mount = Mount::new(root, mountpoint, &options).map_err(|error| refused(error, &sources))?;
        let watch = watch(&mount, &sources, &session);
        tracing::info!("mounted {} on {}", options.source_name, mountpoint.display());
        Ok(Self { mount, session, stop, _watch: watch })
    }

    /// Serves until a signal or an unmount ends it.
    pub fn serve(self) -> Result<ExitCode, Error> {
        let ended = self.mount.serve_until(&self.stop)?;
        self.session.verifier.stop();
        // The process may end while openings are still held.
        self.session.save();
        tracing::info!("unmounted: {ended:?}");
        Ok(ExitCode::SUCCESS)
    }
}

/// Watches the process that started this one in the background and waits for its mount. If it ends before the mount
/// answers, this process exits. Dropping this ends the watch.
struct Asker(Arc<Mutex<bool>>);

impl Asker {
    fn watch() -> Self {
        let is_over = Arc::new(Mutex::new(false));
        let seen = is_over.clone();
        let wait = move || {
            let stdout = std::io::stdout();
            // No events are requested: `POLLERR` means that the reader has closed the pipe.
            let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
            while poll(&mut polled, None).is_err_and(|error| error == Errno::INTR) {}
            let is_over = seen.lock();
            if !*is_over && polled[0].revents().contains(PollFlags::ERR) {
                tracing::info!("the process that waits for this mount has ended");
                // The workers end with this process.
                std::process::exit(1);
            }
        };
        // Without a thread, the exit is noticed when the mount answers.
        let _ = std::thread::Builder::new().name("hepfs-asker".to_owned()).spawn(wait);
        Self(is_over)
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        *self.0.lock() = true;
    }
}

/// Adds a hint to the error: if the system cannot mount at all, the commands that need no mount.
fn refused(error: MountError, sources: &[PathBuf]) -> Error {
    match sources {
        [source, ..] if error.is_of_system() => {
            let source = shell_word(&source.to_string_lossy());
            Error::Background(format!("{error}. `hepfs info {source}` needs no mount; nor do query, export and cat"))
        }
        _ => error.into(),
    }
}

/// Makes source paths absolute: the background process runs in another folder, and a watch needs the file's folder.
fn absolute(sources: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    sources.iter().map(|source| std::path::absolute(source).map_err(Error::io(source.display().to_string()))).collect()
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
    for source in sources {
        let added = if source.is_dir() { watch.add_folder(source) } else { watch.add_file(source) };
        if let Err(error) = added {
            tracing::warn!("{} is not watched: {error}", source.display());
        }
    }
    let watch = Arc::new(watch);
    session.watch_with(&watch);
    Some(watch)
}

/// Starts the background process, and waits for its message.
fn start_background(arguments: &Arguments, verbose: u8) -> Result<ExitCode, Error> {
    let program = std::env::current_exe().map_err(Error::io("finding this program"))?;
    let mut child = Command::new(program);
    child.args(background_arguments(arguments, verbose)?);
    child.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = child.spawn().map_err(Error::io("starting the background process"))?;
    // Reads line by line and stops at the last one, since the process keeps the pipe open as long as it lives.
    let mut lines = child.stdout.take().into_iter().flat_map(|pipe| BufReader::new(pipe).lines());
    let said = loop {
        let line = lines.next().transpose().map_err(Error::io("waiting for the background process"))?;
        match line.as_deref().map(|line| line.strip_prefix(WARNING)) {
            Some(Some(warning)) => warn(warning),
            _ => break line.unwrap_or_default(),
        }
    };
    match said.as_str() {
        READY => Ok(ExitCode::SUCCESS),
        "" => {
            let status = child.wait().map_err(Error::io("waiting for the background process"))?;
            Err(Error::Background(format!("the background process ended before it had mounted ({status})")))
        }
        reason => {
            // The process has sent its reason, and ends.
            let _ = child.wait();
            Err(Error::Background(reason.to_owned()))
        }
    }
}

fn warn(warning: &str) {
    say!("hepfs: warning: {}", printable(warning));
}

fn background_arguments(arguments: &Arguments, verbose: u8) -> Result<Vec<OsString>, Error> {
    let mut list: Vec<OsString> = vec!["mount".into(), "--background".into()];
    list.extend((0..verbose).map(|_| "-v".into()));
    if arguments.allow_other {
        list.push("--allow-other".into());
    }
    if arguments.direct_io {
        list.push("--direct-io".into());
    }
    if let Some(which) = arguments.xattrs.to_possible_value() {
        list.push(format!("--xattrs={}", which.get_name()).into());
    }
    if let Some(file) = &arguments.log_file {
        list.push("--log-file".into());
        list.push(std::path::absolute(file).map_err(Error::io(file.display().to_string()))?.into());
    }
    if !arguments.parquet.are_shown() {
        list.push("--parquet-stats=off".into());
    }
    list.extend(arguments.reading.arguments());
    list.extend(arguments.showing.arguments());
    list.extend(arguments.files.arguments());
    list.push("--".into());
    list.extend(absolute(&arguments.sources)?.into_iter().map(Into::into));
    list.extend(absolute(std::slice::from_ref(&arguments.mountpoint))?.into_iter().map(Into::into));
    Ok(list)
}

fn run_in_background(arguments: &Arguments, verbose: u8) -> Result<ExitCode, Error> {
    // A new session, so that the process survives the end of the terminal's session.
    let _ = rustix::process::setsid();
    let log = arguments.log_file.clone().or_else(logging::default_file);
    let warnings = logging::to_file(log.as_deref(), verbose);
    let started = Served::start(arguments, Some(Asker::watch()));
    let word = match &started {
        Ok(_) => READY.to_owned(),
        // A single line, even if a name contains line breaks.
        Err(error) => printable(&error.to_string()),
    };
    for warning in warnings.take().iter().filter(|_| started.is_ok()) {
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
