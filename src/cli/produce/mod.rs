//! Produces a table in an HDF5 file from inputs: examines columns, plans, encodes on all cores, and writes the pieces.

mod one;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Instant;

use clap::{Args, ValueEnum};

use self::one::One;
use super::Error;
use super::inputs::{Inputs, SortBy};
use super::place::short_name;
use super::progress::Watched;
use super::rows::{OutputFormat, no_place};
use super::signals::INTERRUPTED;
use super::sizes::size;
use crate::activity::Unit;
use crate::h5::{self, Exclusive};
use crate::producer;
use crate::producer::indexes::IndexKind;
use crate::producer::table::Options;
use crate::source::is_address;
use crate::views::printable;

/// Least memory of a run, in bytes.
const LEAST_MEMORY: u64 = 64 << 20;

/// How to treat an existing table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Mode {
    /// Refuse
    Create,
    /// Append the rows; the table must have columns of these names and types
    Append,
    /// Replace the table in one step
    Replace,
}

/// Options of a run that writes tables.
#[derive(Clone, Debug, Args)]
pub(super) struct Running {
    /// Show how each column would be stored, and write nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Memory for reading, sorting, encoding and indexing rows, and for labels, at least 64M
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = memory)]
    pub memory: u64,
}

/// The settings of a run.
pub(super) struct Job<'a> {
    pub options: &'a Options,
    pub mode: Mode,
    pub running: &'a Running,
    /// The order of rows, if it differs from that of the inputs.
    pub sort_by: Option<&'a SortBy>,
    pub indexes: &'a [BuiltIndexes],
}

/// Search indexes to build after a table is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BuiltIndexes {
    /// Those that the table had before.
    Kept,
    /// Those of these kinds for this column.
    Of(String, Vec<IndexKind>),
}

impl BuiltIndexes {
    /// Parses `COLUMN:KIND,…` or `keep`.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "keep" {
            return Ok(Self::Kept);
        }
        let (column, kinds) = text.rsplit_once(':').ok_or("it is COLUMN:KIND,... or `keep`")?;
        let known = || IndexKind::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let names = || known().map(|kind| kind.get_name().to_owned()).collect::<Vec<_>>().join(", ");
        let kind =
            |text: &str| IndexKind::from_str(text, false).map_err(|_| format!("{text:?} is none of {}", names()));
        Ok(Self::Of(column.to_owned(), kinds.split(',').map(kind).collect::<Result<_, _>>()?))
    }
}

/// Parses the memory limit.
fn memory(text: &str) -> Result<u64, String> {
    size(text).and_then(|bytes| if bytes < LEAST_MEMORY { Err("64M is the least".to_owned()) } else { Ok(bytes) })
}

/// The file to write.
pub(super) struct TargetFile<'a> {
    /// Path of the file as given.
    file: &'a Path,
    /// Path to write to: a hidden name, if the file is new.
    path: &'a Path,
}

impl TargetFile<'_> {
    /// Splits `OUT[:PATH]` at the last colon, unless a file has the whole name. PATH is an HDF5 path.
    pub fn split(output: &OsStr) -> (PathBuf, Option<String>) {
        let bytes = output.as_bytes();
        let is_whole = Path::new(output).exists() || is_address(Path::new(output));
        let colon = bytes.iter().rposition(|byte| *byte == b':').filter(|_| !is_whole);
        let Some(at) = colon else { return (output.into(), None) };
        let path = String::from_utf8_lossy(&bytes[at + 1..]);
        (OsStr::from_bytes(&bytes[..at]).into(), Some(format!("/{}", path.trim_matches('/'))))
    }

    /// Rewrites an error that mentions the hidden name of a new file to give its final name instead.
    fn told(&self, error: Error) -> Error {
        let [hidden, name] = [self.path, self.file].map(|path| path.file_name().unwrap_or_default().to_string_lossy());
        let said = error.to_string();
        if hidden == name || !said.contains(&*hidden) {
            return error;
        }
        Error::Usage(said.replace(&*hidden, &name))
    }
}

/// A run that writes tables, with its progress and its interrupt.
pub(super) struct Production {
    pub watched: Watched,
    /// The file written, in the line of progress.
    title: String,
}

impl Production {
    /// Begins to write to the file `title`; `doing` is the verb until the first step.
    ///
    /// # Errors
    /// As [`Watched::new`].
    pub fn new(title: &OsStr, doing: &'static str) -> Result<Self, Error> {
        let title = short_name(title);
        Ok(Self { watched: Watched::new(title.clone(), doing)?, title })
    }

    /// Begins a step of `all` units; 0: not known.
    fn step(&self, doing: &'static str, unit: Unit, all: u64) {
        self.watched.name(&self.title, doing);
        self.watched.step(unit, all);
    }

    /// Calls `write` for an existing file, or for a new one, which gets its name once all is written.
    pub fn run(
        &self,
        job: &Job<'_>,
        file: &Path,
        write: impl FnOnce(&Self, &TargetFile<'_>) -> Result<ExitCode, Error>,
    ) -> Result<ExitCode, Error> {
        h5::check_is_local(file).map_err(producer::Error::from)?;
        let outcome = if job.running.dry_run || file.exists() {
            write(self, &TargetFile { file, path: file })
        } else {
            let partial = Partial::new(file)?;
            write(self, &TargetFile { file, path: &partial.path }).and_then(|code| {
                match self.watched.interrupt.is_raised() {
                    true => Err(Error::Usage("interrupted".into())),
                    false => partial.keep(file).map(|()| code),
                }
            })
        };
        match outcome {
            Err(_) if self.watched.interrupt.is_raised() => {
                say!("hepfs: interrupted; only the tables listed above were written");
                Ok(ExitCode::from(INTERRUPTED))
            }
            outcome => outcome,
        }
    }

    /// Removes the progress bar, and writes a line to standard output.
    ///
    /// # Errors
    /// If the output is closed.
    pub fn tell(&self, line: &str) -> Result<(), Error> {
        self.watched.hide();
        writeln!(std::io::stdout(), "{}", printable(line)).map_err(Error::io("standard output"))
    }

    /// Writes inputs as the table at an HDF5 path.
    ///
    /// # Errors
    /// If that is impossible; nothing is written then.
    pub fn write(&self, job: &Job<'_>, inputs: &Inputs, target: &TargetFile<'_>, path: &str) -> Result<(), Error> {
        let begun = Instant::now();
        let columns = job.indexes.iter().filter_map(|indexes| match indexes {
            BuiltIndexes::Of(column, _) => Some(column),
            BuiltIndexes::Kept => None,
        });
        if let Some(column) = columns.into_iter().find(|column| inputs.fields.find(column).is_none()) {
            return Err(Error::Usage(format!("--index {column}: there is no such column")));
        }
        let one = One { production: self, job, inputs, path, sorted: OnceLock::new() };
        one.run(target, begun).map_err(|error| target.told(error))
    }
}

/// A new HDF5 file beside its target, until it is complete.
struct Partial {
    path: PathBuf,
}

impl Partial {
    /// Creates an empty file. Removes the leftover of an earlier run, unless that run is still active.
    fn new(file: &Path) -> Result<Self, Error> {
        let shown = || file.display().to_string();
        let refuse = |reason: &str| Error::Usage(format!("{}: {reason}", shown()));
        let name = file.file_name().ok_or_else(|| refuse("not a file"))?;
        if OutputFormat::of(file).is_ok() {
            return Err(refuse("the output is an HDF5 file, but this name is of another format; see `hepfs export`"));
        }
        if let Some(reason) = no_place(file) {
            return Err(refuse(&reason));
        }
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(".hepfs-import");
        let path = file.with_file_name(hidden);
        if path.exists() {
            // An active run holds its lock.
            drop(Exclusive::open(&path).map_err(producer::Error::from)?);
            std::fs::remove_file(&path).map_err(Error::io(path.display().to_string()))?;
        }
        let empty = h5::create::file(&path, |_| Ok::<(), h5::create::Error>(()));
        empty.map_err(|error| Error::Sample { path: path.clone(), reason: error.to_string() })?;
        Ok(Self { path })
    }

    /// Renames the file to its final name; never replaces one that exists by then.
    fn keep(self, file: &Path) -> Result<(), Error> {
        let failed = || Error::io(file.display().to_string());
        let flags = rustix::fs::RenameFlags::NOREPLACE;
        let here = rustix::fs::CWD;
        rustix::fs::renameat_with(here, &self.path, here, file, flags).map_err(|error| failed()(error.into()))?;
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // Already gone if the file was kept.
        std::fs::remove_file(&self.path).ok();
    }
}
