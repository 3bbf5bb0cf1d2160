//! Sends log lines to standard error if the command runs in the foreground, to a file if it runs in the background. The
//! journal gets them with priorities, and without times, which it has itself.

use std::fs::OpenOptions;
use std::io::IsTerminal;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::{Writer, format};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, registry};

use super::progress::AboveLine;

/// The log filter. A `quiet` command prints its failures itself.
fn filter(verbose: u8, quiet: bool) -> Targets {
    let asked = std::env::var("HEPFS_LOG").ok().and_then(|filters| filters.parse().ok());
    asked.unwrap_or_else(|| default_filter(verbose, quiet))
}

/// The log filter if `HEPFS_LOG` gives none. If something else ended the mount, as is always the case here, the session
/// of `fuser` warns that it cannot unmount: only `-vv` shows this warning.
fn default_filter(verbose: u8, quiet: bool) -> Targets {
    let all = Targets::new();
    match verbose {
        0 if quiet => all.with_default(Level::ERROR).with_target("fuser::session", LevelFilter::OFF),
        0 => all.with_default(Level::WARN).with_target("fuser::session", Level::ERROR),
        1 => {
            all.with_default(Level::WARN).with_target("hepfs", Level::INFO).with_target("fuser::session", Level::ERROR)
        }
        _ => all.with_default(Level::INFO).with_target("hepfs", Level::DEBUG),
    }
}

/// Logs to standard error; if `quiet`, only errors, unless `verbose` asks for more.
pub(super) fn to_stderr(verbose: u8, quiet: bool) -> Warnings {
    let filter = filter(verbose, quiet);
    let lines = fmt::layer().with_ansi(std::io::stderr().is_terminal()).with_writer(|| AboveLine);
    if is_journal() {
        start(lines.event_format(JournalLines).with_filter(filter))
    } else {
        start(lines.with_filter(filter))
    }
}

/// Whether standard error is the journal. The variable names the socket (systemd.exec(5)); it is passed on to processes
/// with another standard error.
pub(super) fn is_journal() -> bool {
    let Ok(named) = std::env::var("JOURNAL_STREAM") else { return false };
    rustix::fs::fstat(std::io::stderr()).is_ok_and(|own| named == format!("{}:{}", own.st_dev, own.st_ino))
}

/// The prefix that tells the journal the priority of a line (sd-daemon(3)); empty elsewhere.
pub(super) fn priority(level: Level) -> &'static str {
    if is_journal() { prefix(level) } else { "" }
}

fn prefix(level: Level) -> &'static str {
    match level {
        Level::ERROR => "<3>",
        Level::WARN => "<4>",
        Level::INFO => "<6>",
        _ => "<7>",
    }
}

/// The form of lines in the journal.
struct JournalLines;

impl<S: Subscriber + for<'a> LookupSpan<'a>, N: for<'a> FormatFields<'a> + 'static> FormatEvent<S, N> for JournalLines {
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> std::fmt::Result {
        let mut text = String::new();
        let plain = format().without_time().with_level(false).with_ansi(false);
        plain.format_event(context, Writer::new(&mut text), event)?;
        let prefix = prefix(*event.metadata().level());
        text.lines().try_for_each(|line| writeln!(writer, "{prefix}{line}"))
    }
}

/// Appends log lines to a file. If need be, creates it, readable by the user alone. If that fails, the first warning
/// says so, and nothing else is logged.
pub(super) fn to_file(path: Option<&Path>, verbose: u8) -> Warnings {
    let open = |path: &Path| {
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        OpenOptions::new().create(true).append(true).mode(0o600).open(path)
    };
    let (file, failure) = path.map(open).transpose().map_or_else(|error| (None, Some(error)), |file| (file, None));
    let lines = |file| fmt::layer().with_ansi(false).with_writer(Arc::new(file));
    let warnings = start(file.map(|file| lines(file).with_filter(filter(verbose, false))));
    if let (Some(path), Some(error)) = (path, failure) {
        tracing::warn!("log file {}: {error}; this mount goes on without a log", path.display());
    }
    warnings
}

fn start(lines: impl Layer<Registry> + Send + Sync) -> Warnings {
    let warnings = Warnings(Arc::new(Mutex::new(Some(Vec::new()))));
    // Fails only if a logger is already set.
    let _ = registry().with(lines).with(warnings.clone().with_filter(default_filter(0, false))).try_init();
    warnings
}

/// Distinct warnings, until someone takes them.
#[derive(Clone)]
pub(super) struct Warnings(Arc<Mutex<Option<Vec<String>>>>);

impl Warnings {
    /// Takes the warnings collected so far. From then on, none are collected.
    pub fn take(&self) -> Vec<String> {
        self.0.lock().take().unwrap_or_default()
    }
}

impl<S: Subscriber> Layer<S> for Warnings {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut gathered = self.0.lock();
        let Some(gathered) = &mut *gathered else { return };
        let mut message = Message::default();
        event.record(&mut message);
        if !gathered.contains(&message.0) {
            gathered.push(message.0);
        }
    }
}

/// The message of an event, without its fields.
#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

/// `$XDG_STATE_HOME/hepfs/hepfs.log`, or else below `~/.local/state`; `None`: there is no home folder.
pub(super) fn default_file() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let state = state.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state")))?;
    Some(state.join("hepfs/hepfs.log"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documented_filters_are_understood() {
        let one: Targets = "hepfs=debug".parse().unwrap();
        assert!(one.would_enable("hepfs::fs::pool", &Level::DEBUG));
        assert!(!one.would_enable("fuser", &Level::ERROR));
        let several: Targets = "info,hepfs::store=trace,fuser=off".parse().unwrap();
        assert!(several.would_enable("hepfs::store::heap", &Level::TRACE));
        assert!(several.would_enable("hepfs::fs", &Level::INFO));
        assert!(!several.would_enable("fuser::session", &Level::ERROR));
    }

    #[test]
    fn lines_in_the_journal_have_priorities_and_no_times() {
        let written = Arc::new(Mutex::new(Vec::new()));
        let sink = written.clone();
        let lines = fmt::layer().event_format(JournalLines).with_writer(move || Sink(sink.clone()));
        tracing::subscriber::with_default(registry().with(lines), || {
            tracing::warn!("two\nlines of {}", 5);
            tracing::debug!(target: "hepfs::x", "seen");
        });
        let written = String::from_utf8(written.lock().clone()).unwrap();
        assert_eq!(written, "<4>hepfs::cli::logging::tests: two\n<4>lines of 5\n<7>hepfs::x: seen\n");
    }

    /// What is written, in memory.
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_end_of_a_session_is_no_warning() {
        for (verbose, quiet) in [(0, true), (0, false), (1, false)] {
            assert!(!default_filter(verbose, quiet).would_enable("fuser::session", &Level::WARN));
            assert!(default_filter(verbose, quiet).would_enable("fuser", &Level::ERROR));
        }
        assert!(default_filter(2, false).would_enable("hepfs::fs", &Level::DEBUG));
    }
}
