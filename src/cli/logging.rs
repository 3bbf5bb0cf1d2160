//! Where log lines go: the terminal in the foreground, a file in the background.

use std::fs::OpenOptions;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tracing_subscriber::EnvFilter;

use super::Error;

/// What is logged. A `quiet` command says what fails itself.
fn filter(verbose: u8, quiet: bool) -> EnvFilter {
    // HEPFS_LOG takes what RUST_LOG takes elsewhere.
    // Its session warns that it cannot unmount whenever the mount was ended from outside or by ourselves, as always.
    let level = match verbose {
        0 if quiet => "error,fuser::session=off",
        0 => "warn,fuser::session=error",
        1 => "hepfs=info,warn,fuser::session=error",
        _ => "hepfs=debug,info",
    };
    EnvFilter::try_from_env("HEPFS_LOG").unwrap_or_else(|_| EnvFilter::new(level))
}

/// Logs to standard error; errors alone unless more is asked for.
pub(super) fn to_terminal(verbose: u8) {
    // Fails only where something logs already.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter(verbose, true))
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .try_init();
}

/// Appends to a file, made if need be.
pub(super) fn to_file(path: &Path, verbose: u8) -> Result<(), Error> {
    let what = || format!("log file {}", path.display());
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(Error::io(what()))?;
    }
    let file = OpenOptions::new().create(true).append(true).open(path).map_err(Error::io(what()))?;
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter(verbose, false))
        .with_ansi(false)
        .with_writer(Mutex::new(file))
        .try_init();
    Ok(())
}

/// `$XDG_STATE_HOME/hepfs/hepfs.log`, else below `~/.local/state`; `None` where there is no home.
pub(super) fn default_file() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let state = state.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state")))?;
    Some(state.join("hepfs/hepfs.log"))
}
