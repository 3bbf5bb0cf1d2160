//! `hepfs status [MOUNTPOINT]`: mounts and long commands, what they cost, and what they do.
//!
//! Nothing is asked of a mount itself. Processes answer on sockets, all asked at once; the kernel's list of mounts has
//! those whose process is gone.

mod json;
mod lines;
mod metrics;
mod table;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::Args;

use self::lines::{Looked, StatusLine};
use crate::cli::Error;
use crate::cli::limits::allow_open_files;
use crate::cli::signals::{self, INTERRUPTED};
use crate::source::mounts::{self, HEPFS};
use crate::views::printable;

/// Time between two looks with `--watch`.
const ROUND: Duration = Duration::from_secs(2);

/// Time between two looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

/// Clears a terminal, and goes to its first line (ECMA-48: ED, CUP).
const CLEAR: &str = "\x1b[2J\x1b[H";

/// List mounts and long commands: their memory, what they served, and what they do now
///
/// Lists those of this user, of `hepfs run` and in other mount namespaces too; for root, those of all users. A process
/// that does not answer within a second is listed so. MEMORY is that of caches, out of --cache-size; SERVED is what the
/// kernel was sent, without what it had in its own cache. `-v` adds requests by kind with the median and the 99th
/// percentile of the time until an answer, hits of the cache, bytes decoded and read, passes, the last errors, and the
/// processes that hold files.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hepfs status\n  hepfs status -v mnt\n  \
    hepfs status --json | jq -r '.mounts[] | select(.state != \"answers\") | .mountpoint'\n  \
    hepfs status --metrics > /var/lib/node_exporter/hepfs.prom")]
pub(in crate::cli) struct Arguments {
    /// A directory that a hepfs is mounted on [default: all]; the exit code is 1 if none is
    #[arg(value_name = "MOUNTPOINT")]
    mountpoint: Option<PathBuf>,

    /// Write one JSON document (docs/status.schema.json)
    #[arg(long, conflicts_with = "metrics")]
    json: bool,

    /// Write metrics in the text format of Prometheus, for the text file collector of node_exporter
    #[arg(long)]
    metrics: bool,

    /// Write it anew every two seconds, until Ctrl-C
    #[arg(long)]
    watch: bool,
}

pub(in crate::cli) fn run(arguments: &Arguments, verbose: u8) -> Result<ExitCode, Error> {
    allow_open_files();
    if !arguments.watch {
        write(&arguments.text(verbose > 0)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let interrupted = signals::caught()?;
    let clear = if std::io::stdout().is_terminal() { CLEAR } else { "" };
    while !interrupted.load(Ordering::Relaxed) {
        let next = Instant::now() + ROUND;
        write(&format!("{clear}{}", arguments.text(verbose > 0)?))?;
        while Instant::now() < next && !interrupted.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK);
        }
    }
    Ok(ExitCode::from(INTERRUPTED))
}

impl Arguments {
    /// Renders the state as of now.
    fn text(&self, verbose: bool) -> Result<String, Error> {
        let mut looked = Looked::now().map_err(Error::io("/proc/self/mountinfo"))?;
        if let Some(path) = &self.mountpoint {
            looked.lines = self.chosen(path, looked.lines)?;
        }
        if looked.left_out > 0 {
            say!("hepfs: {} processes are left out: more than 1024 of one user", looked.left_out);
        }
        if verbose {
            looked.lines.iter_mut().for_each(StatusLine::find_holders);
        }
        Ok(match (self.json, self.metrics) {
            (true, _) => json::text(&looked),
            (_, true) => metrics::text(&looked),
            _ => table::text(&looked, verbose),
        })
    }

    /// The lines of one mount point.
    fn chosen(&self, path: &Path, lines: Vec<StatusLine>) -> Result<Vec<StatusLine>, Error> {
        let given = printable(&path.display().to_string());
        let resolved = mounts::resolve(path).map_err(Error::io(given.clone()))?;
        let there = mounts::mount_at(&resolved).map_err(Error::io("/proc/self/mountinfo"))?;
        // By the kernel's list: a report may say anything.
        let device = there.as_ref().filter(|mount| mount.fs_type == HEPFS).map(|mount| mount.device);
        let is_chosen = |line: &StatusLine| {
            device.is_some() && line.device == device && line.mountpoint.as_ref() == Some(&resolved)
        };
        let chosen: Vec<StatusLine> = lines.into_iter().filter(is_chosen).collect();
        match there {
            _ if !chosen.is_empty() => Ok(chosen),
            Some(other) if other.fs_type == HEPFS => Err(Error::Usage(format!(
                "{given}: a mount of user {}, who alone sees more, with root",
                other.user.unwrap_or_default()
            ))),
            Some(other) => {
                Err(Error::Usage(format!("{given}: the file system mounted here is {}, not hepfs", other.fs_type)))
            }
            None => Err(Error::Usage(format!("{given}: nothing is mounted here"))),
        }
    }
}

fn write(text: &str) -> Result<(), Error> {
    let mut output = std::io::stdout().lock();
    output.write_all(text.as_bytes()).and_then(|()| output.flush()).map_err(Error::io("standard output"))
}
