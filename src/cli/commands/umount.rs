//! `hepfs umount MOUNTPOINT…`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::cli::Error;
use crate::fs::mount::unmount;

/// End a mount
///
/// Also clears the mount of a hepfs that was killed ("Transport endpoint is not connected").
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// Directories that a hepfs is mounted on
    #[arg(required = true, value_name = "MOUNTPOINT")]
    mountpoints: Vec<PathBuf>,

    /// Detach now, even if files are open; the mount ends when they are closed
    #[arg(short, long)]
    lazy: bool,
}

pub(in crate::cli) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let ended = arguments.mountpoints.iter().map(|mountpoint| unmount(mountpoint, arguments.lazy));
    let failures: Vec<Error> = ended.filter_map(Result::err).map(Error::from).collect();
    failures.iter().for_each(Error::say);
    Ok(ExitCode::from(u8::from(!failures.is_empty())))
}
