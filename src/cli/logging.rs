//! Where log lines go: the terminal in the foreground, a file in the background.

use std::fs::OpenOptions;
use std::io::IsTerminal;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{fmt, registry};

use super::Error;

/// What is logged. A `quiet` command says what fails itself.
fn filter(verbose: u8, quiet: bool) -> Targets {
    let asked = std::env::var("HEPFS_LOG").ok().and_then(|filters| filters.parse().ok());
    asked.unwrap_or_else(|| default_filter(verbose, quiet))
}

/// What is logged where `HEPFS_LOG` says nothing. The session of `fuser` warns that it cannot unmount whenever the
/// mount was ended by something else, as it always is.
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

/// Logs to standard error; errors alone unless more is asked for.
pub(super) fn to_terminal(verbose: u8) {
    // Fails only where something logs already.
    let lines = fmt::layer().with_ansi(std::io::stderr().is_terminal()).with_writer(std::io::stderr);
    let _ = registry().with(lines).with(filter(verbose, true)).try_init();
}

/// Appends to a file, made if need be. What it tells of files is for the user alone.
pub(super) fn to_file(path: &Path, verbose: u8) -> Result<(), Error> {
    let what = || format!("log file {}", path.display());
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(Error::io(what()))?;
    }
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path).map_err(Error::io(what()))?;
    let lines = fmt::layer().with_ansi(false).with_writer(Mutex::new(file));
    let _ = registry().with(lines).with(filter(verbose, false)).try_init();
    Ok(())
}

/// `$XDG_STATE_HOME/hepfs/hepfs.log`, else below `~/.local/state`; `None` where there is no home.
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
        assert!(several.would_enable("hepfs::store::pass", &Level::TRACE));
        assert!(several.would_enable("hepfs::fs", &Level::INFO));
        assert!(!several.would_enable("fuser::session", &Level::ERROR));
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
