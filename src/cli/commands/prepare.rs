//! `hepfs prepare SOURCE[:path]`: does the slow work of a first open ahead, and caches the results.

use std::collections::HashMap;
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bstr::{BStr, BString, ByteSlice};
use clap::Args;

use crate::activity::Unit;
use crate::activity::words;
use crate::cli::Error;
use crate::cli::options::{FileOptions, Showing};
use crate::cli::partial::Partial;
use crate::cli::place::{NamedPlaces, Place, RequestedPlace};
use crate::cli::progress::{self, Watched};
use crate::cli::rows::no_place;
use crate::cli::signals::INTERRUPTED;
use crate::cli::tables::{self, Met, below};
use crate::learnt::Learner;
use crate::session::{EntryKind, FileSpot, OpenError, Settings, Spot, is_known};
use crate::source::Interrupt;
use crate::store::{LearntWriter, Rows, Store, WrittenEntries};
use crate::table::{Column, Table};
use crate::views::printable;
use crate::views::{Effort, Size};

/// How often to check whether results are written.
const LOOK: Duration = Duration::from_millis(2);

/// How long writing results may take.
const LONGEST_WRITE: Duration = Duration::from_secs(30);

/// Steps of a block, for the time left: numbers with a fraction take twice the time of others, as text.
const STEPS: u64 = 10;
const STEPS_OF_FRACTIONS: u64 = 20;

/// Compute sizes and statistics ahead of a mount, and keep them
///
/// The exact size of a text file takes a pass over its values, for which the first `open` in a mount waits; so do
/// Parquet and Arrow files with lists or texts of variable length. This command makes these passes now, learns the
/// minimum and maximum of every stretch of a column (Parquet files have them, and readers skip what they rule out), and
/// keeps it all in the cache folder (--cache-folder). Later mounts with the same options for CSV, times and missing
/// values find it there until the HDF5 file changes; a mount that runs already does not. Files whose sizes are
/// arithmetic (.npy, .raw of numbers, ...) need nothing.
///
/// Prints a line for each file or column: its size, the time it took, and `kept`, `was kept`, or what went wrong; then
/// the others are prepared all the same, and the exit code is 1. Ctrl-C ends it at once; what was finished stays kept.
/// Without --csv or --stats it prepares everything.
///
/// With --export, all that is kept of these sources goes into one file as well, for mounts on other hosts (`hepfs mount
/// --learnt FILE`): they take no pass then, start no process of the HDF5 library, and show the same bytes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hepfs prepare run.h5                   everything in it\n  \
    hepfs prepare --csv run.h5:run_042     table.csv and columns/*.csv of one table\n  \
    hepfs prepare --stats run.h5           statistics, so that queries skip what they can\n  \
    hepfs prepare run.h5 --export run.learnt; hepfs mount --learnt run.learnt run.h5 mnt    anywhere")]
pub(in crate::cli) struct Arguments {
    /// Only CSV: table.csv, head.csv and columns/*.csv, with --csv-null and --csv-separator
    #[arg(long)]
    csv: bool,

    /// Only the statistics of columns (with --csv: both)
    #[arg(long)]
    stats: bool,

    /// Also write all that is kept of the sources into FILE; of local ones, all bytes are read for a hash
    #[arg(long, value_name = "FILE", conflicts_with = "learnt")]
    export: Option<PathBuf>,

    #[command(flatten)]
    named: NamedPlaces,

    #[command(flatten)]
    showing: Showing,

    #[command(flatten)]
    files: FileOptions,
}

/// A file or column to prepare.
struct Task {
    /// Prefix of lines about it: its path below the given place.
    name: String,
    work: Work,
    /// Steps of a block of it, for the time left.
    steps: u64,
}

#[derive(Clone)]
enum Work {
    /// A file whose size, or counts of nulls, take a pass.
    File(FileSpot),
    /// The statistics of a column.
    Statistics { learner: Arc<Learner>, rows: Arc<dyn Rows>, why_not_kept: Option<&'static str>, were_known: bool },
}

/// The outcome for a file or column.
enum Outcome {
    Kept(String),
    WasKept(String),
    /// It took no pass after all.
    Arithmetic(String),
    Failed(String),
}

pub(in crate::cli) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    if arguments.named.reading.keeps_nothing() {
        return Err(Error::Usage("there is no cache folder: name one with --cache-folder".into()));
    }
    let settings = Settings { formats: arguments.files.formats(), ..arguments.showing.settings()? };
    let mut export = arguments.export.as_deref().map(Export::new).transpose()?;
    let code = arguments
        .named
        .each(&settings, ("preparing", 1), |asked, watched| one(arguments, asked, watched, &mut export))?;
    if let Some(export) = export.filter(|_| code != ExitCode::from(INTERRUPTED)) {
        export.write()?;
    }
    Ok(code)
}

/// The file of `--export`.
struct Export {
    path: PathBuf,
    partial: Partial,
    sources: LearntWriter,
    /// A store with the cache folder of all sources.
    store: Option<Arc<Store>>,
}

impl Export {
    fn new(path: &Path) -> Result<Self, Error> {
        let partial = match (no_place(path), Partial::beside(path).filter(|_| !path.is_dir())) {
            (Some(reason), _) => Err(reason),
            _ if is_known(path) => Err("that is an HDF5 file, or one of another known format".to_owned()),
            (None, partial) => partial.ok_or_else(|| "not a file".to_owned()),
        };
        let partial = partial.map_err(|reason| Error::Usage(format!("--export {}: {reason}", path.display())))?;
        Ok(Self { path: path.to_owned(), partial, sources: LearntWriter::default(), store: None })
    }

    /// Adds the source of a directory or file.
    fn add(&mut self, spot: &Spot, interrupt: &Interrupt) -> Result<(), Error> {
        let Some(opened) = spot.opened() else { return Ok(()) };
        self.store = Some(opened.store().clone());
        match self.sources.add(opened.opening().source(), interrupt) {
            Err(_) if interrupt.is_raised() => Ok(()),
            added => added.map_err(|error| OpenError::from(error).into()),
        }
    }

    /// Writes the file, whole or not at all.
    fn write(&self) -> Result<(), Error> {
        let Some(store) = &self.store else {
            return Err(Error::Usage(format!("--export {}: no source was prepared", self.path.display())));
        };
        let written = self.write_from(store).map_err(|error| {
            // The first error counts, so this one is ignored.
            std::fs::remove_file(self.partial.path()).ok();
            Error::Io { what: format!("--export {}", self.path.display()), error }
        })?;
        let WrittenEntries { entries, sources, bytes } = written;
        let (entries, sources) = (words::counted(entries, "result"), words::counted(sources, "source"));
        say!(
            "hepfs: {}: {entries} about {sources}, {}",
            printable(&self.path.display().to_string()),
            words::bytes(bytes)
        );
        Ok(())
    }

    fn write_from(&self, store: &Store) -> std::io::Result<WrittenEntries> {
        let mut file = self.partial.file()?;
        let written = self.sources.write(store.kept(), &mut file)?;
        // A mount refuses a file that others may write to.
        let mode = file.metadata()?.permissions().mode() & !0o022;
        file.set_permissions(Permissions::from_mode(mode))?;
        std::fs::rename(self.partial.path(), &self.path)?;
        Ok(written)
    }
}

fn one(
    arguments: &Arguments,
    asked: &RequestedPlace,
    watched: &Watched,
    export: &mut Option<Export>,
) -> Result<u8, Error> {
    let start = Instant::now();
    let interrupt = &watched.interrupt;
    let place = asked.find_settled(interrupt)?;
    tables::left_out(&place, interrupt)?;
    let mut collected = Collected::default();
    if place.is_directory() {
        tables::walk(&place, watched, &mut |met| {
            if let (Some(export), Ok((directory, _))) = (export.as_mut(), &met.listed) {
                export.add(directory, interrupt)?;
            }
            collected.directory(&place, met, interrupt)
        })?;
    } else {
        if let Some(export) = export {
            export.add(&place.spot, interrupt)?;
        }
        if arguments.stats && !arguments.csv {
            return Err(Error::Usage(
                "only columns have statistics: name their table, or its directory columns/".into(),
            ));
        }
        let name = place.name.rsplit(['/', ':']).next().filter(|_| !place.is_one_of_several).unwrap_or(&place.name);
        if let Spot::File(file) = &place.spot {
            collected.tasks.push(Task { name: printable(name), work: Work::File(file.clone()), steps: STEPS });
        }
    }
    let Collected { mut tasks, statistics, mut failures, .. } = collected;
    // Files that need no pass are not listed.
    tasks.retain(|task| {
        let wanted = if arguments.csv { task.name.ends_with(".csv") } else { !arguments.stats };
        wanted && !task.is_free(interrupt)
    });
    if arguments.stats || !arguments.csv {
        // Statistics come last, since every other pass over a column also learns them.
        tasks.extend(statistics);
    }
    if !tasks.is_empty() {
        place.say_fetched();
    }
    let works: Vec<(Work, u64)> = tasks.iter().map(|task| (task.work.clone(), task.steps)).collect();
    let steps = |blocks: fn((u64, u64)) -> u64| {
        move |(work, steps): &(Work, u64)| blocks(work.progress()).saturating_mul(*steps)
    };
    watched.step(Unit::Steps, works.iter().map(steps(|(_, all)| all)).fold(0, u64::saturating_add));
    // A pass over one file may do work of another: it learns statistics.
    watched.follow(move || (works.iter().map(steps(|(done, _)| done)).fold(0, u64::saturating_add), None));

    let (mut kept, mut was_kept, mut arithmetic) = (0_u64, 0_u64, 0_u64);
    let width = tasks.iter().map(|task| task.name.chars().count()).max().unwrap_or(0).min(60);
    for task in &tasks {
        if interrupt.is_raised() {
            break;
        }
        watched.name(&task.name, "preparing");
        let begun = Instant::now();
        let outcome = match &task.work {
            Work::File(file) => prepare(file, &place, interrupt),
            Work::Statistics { .. } => learn(&task.work, &place, interrupt),
        };
        let seconds = begun.elapsed().as_secs_f64();
        let Some(outcome) = outcome else { break };
        let said = match outcome {
            Outcome::Kept(what) => {
                kept += 1;
                format!("{what} {seconds:>9.3} s  kept")
            }
            Outcome::WasKept(what) => {
                was_kept += 1;
                format!("{what} {seconds:>9.3} s  was kept")
            }
            Outcome::Arithmetic(what) => {
                arithmetic += 1;
                format!("{what} {seconds:>9.3} s  takes no pass")
            }
            Outcome::Failed(reason) => {
                failures += 1;
                format!("FAILED: {}", printable(&reason))
            }
        };
        watched.write(&format!("{:width$}  {said}", task.name))?;
    }
    if export.is_some() {
        place.session.save();
    }
    let interrupted = interrupt.is_raised();
    let folder = place.session.store.kept().folder().map(|folder| folder.display().to_string()).unwrap_or_default();
    let mut parts = vec![format!("{kept} kept")];
    parts.extend((was_kept > 0).then(|| format!("{was_kept} kept before")));
    parts.extend((arithmetic > 0).then(|| format!("{arithmetic} take no pass")));
    parts.extend((failures > 0).then(|| format!("{failures} failed")));
    let decoded = words::bytes(place.session.store.counters().bytes_decoded.get());
    let what = if tasks.is_empty() && failures == 0 {
        "nothing here takes a pass".to_owned()
    } else {
        format!("{} of {} items: {}", kept + was_kept + arithmetic, tasks.len(), parts.join(", "))
    };
    let seconds = start.elapsed().as_secs_f64();
    let line = format!("{}{what}; in {}; {seconds:.1} s, {decoded} decoded", place.prefix(None), printable(&folder));
    watched.write(&line)?;
    if interrupted {
        say!("hepfs: interrupted; results listed above stay in the cache");
        return Ok(INTERRUPTED);
    }
    Ok(u8::from(failures > 0))
}

/// Everything to prepare below a directory.
#[derive(Default)]
struct Collected {
    /// Files to prepare.
    tasks: Vec<Task>,
    /// The statistics of all columns that can have some.
    statistics: Vec<Task>,
    /// Tables whose columns are already among the tasks.
    tables: Vec<Arc<Table>>,
    /// Number of directories that cannot be listed.
    failures: u64,
}

impl Collected {
    /// Collects the files of a directory. One that cannot be listed is reported and skipped.
    fn directory(&mut self, place: &Place, met: &Met, interrupt: &Interrupt) -> Result<bool, Error> {
        let prefix = place.prefix(met.source);
        let (directory, children) = match met.listed {
            Ok(listed) => listed,
            Err(reason) => return self.failed(&prefix, met.path, reason),
        };
        let table = directory.table();
        if let Some(table) = &table {
            self.table(table, &prefix, met.path, directory.why_not_kept());
        }
        let steps = BlockSteps::new(table.as_deref());
        // The walk reaches the targets of links elsewhere.
        for entry in children.iter().filter(|entry| entry.kind == EntryKind::File) {
            let path = below(met.path, &entry.name.to_str_lossy());
            match directory.lookup(&entry.name, interrupt) {
                Ok(Spot::File(file)) => {
                    let name = printable(&format!("{prefix}{path}"));
                    self.tasks.push(Task { name, work: Work::File(file), steps: steps.of(entry.name.as_bstr()) });
                }
                Ok(_) => {}
                Err(_) if interrupt.is_raised() => return Ok(false),
                Err(error) => _ = self.failed(&prefix, &path, &error.to_string())?,
            }
        }
        Ok(true)
    }

    fn table(&mut self, table: &Arc<Table>, prefix: &str, path: &str, why_not_kept: Option<&'static str>) {
        // A table comes up twice: with its own directory, and with its `columns/`.
        if self.tables.iter().any(|known| Arc::ptr_eq(known, table)) {
            return;
        }
        self.tables.push(table.clone());
        for column in &table.columns {
            if let (Ok(rows), Some(learner)) = (&column.rows, &column.learner) {
                let work = Work::Statistics {
                    were_known: learner.known().is_some(),
                    learner: learner.clone(),
                    rows: rows.clone(),
                    why_not_kept,
                };
                let name = below(path, &format!("{} (statistics)", column.name));
                self.statistics.push(Task { name: printable(&format!("{prefix}{name}")), work, steps: STEPS });
            }
        }
    }

    fn failed(&mut self, prefix: &str, path: &str, reason: &str) -> Result<bool, Error> {
        self.failures += 1;
        let line = tables::about(path, &format!("FAILED: {reason}"));
        let written = progress::above(|| writeln!(std::io::stdout(), "{prefix}{line}"));
        written.map_err(Error::io("standard output")).map(|()| false)
    }
}

/// Steps of a block of each file of a directory.
struct BlockSteps {
    by_column: HashMap<BString, u64>,
    /// Of a file of all columns.
    of_all: u64,
}

impl BlockSteps {
    fn new(table: Option<&Table>) -> Self {
        let steps = |column: &Column| {
            let is_floating = column.rows.as_ref().is_ok_and(|rows| rows.data_type().is_floating());
            if is_floating { STEPS_OF_FRACTIONS } else { STEPS }
        };
        let columns = table.map_or(&[][..], |table| &table.columns);
        let by_column = columns.iter().map(|column| (column.name.clone(), steps(column))).collect();
        let of_all = columns.iter().map(steps).sum::<u64>().checked_div(columns.len() as u64);
        Self { by_column, of_all: of_all.unwrap_or(STEPS) }
    }

    fn of(&self, file: &BStr) -> u64 {
        let column = file.rfind_byte(b'.').and_then(|end| self.by_column.get(&file[..end]));
        column.copied().unwrap_or(self.of_all)
    }
}

impl Task {
    /// Whether the task is a file that needs no pass.
    fn is_free(&self, interrupt: &Interrupt) -> bool {
        let Work::File(file) = &self.work else { return false };
        let is_exact = matches!(file.size(Effort::Free, interrupt), Ok(Size::Exact(_)));
        is_exact && file.progress().is_none_or(|progress| progress.all == 0)
    }
}

impl Work {
    /// Number of known blocks, and of all blocks.
    fn progress(&self) -> (u64, u64) {
        match self {
            Work::File(file) => file.progress().map_or((0, 1), |progress| (progress.done, progress.all)),
            Work::Statistics { learner, .. } => learner.progress(),
        }
    }
}

/// Runs the passes of a file; `None` if it was interrupted.
fn prepare(file: &FileSpot, place: &Place, interrupt: &Interrupt) -> Option<Outcome> {
    if let Some(reason) = file.why_not_kept() {
        return Some(Outcome::Failed(format!("would not be kept: {reason}")));
    }
    let stats = place.session.store.counters();
    let passes = stats.passes.get();
    let bytes = match file.size(Effort::Prepared, interrupt) {
        Ok(size) => size.bytes(),
        Err(_) if interrupt.is_raised() => return None,
        Err(error) => return Some(Outcome::Failed(error.to_string())),
    };
    // A pass ends before its results are written.
    let end = Instant::now() + LONGEST_WRITE;
    let kept = loop {
        match file.progress().map(|progress| progress.kept) {
            Some(None) if interrupt.is_raised() => return None,
            Some(None) if Instant::now() < end => std::thread::sleep(LOOK),
            // Arithmetic after all, once some labels were read.
            None => return Some(Outcome::Arithmetic(format!("{bytes:>16} bytes"))),
            Some(kept) => break kept.unwrap_or(false),
        }
    };
    let what = format!("{bytes:>16} bytes");
    Some(match kept {
        true if stats.passes.get() == passes => Outcome::WasKept(what),
        true => Outcome::Kept(what),
        false => Outcome::Failed(not_kept(file.why_not_kept(), place)),
    })
}

/// Why the results are not cached.
fn not_kept(of_file: Option<&'static str>, place: &Place) -> String {
    let why = of_file.or(place.session.store.kept().trouble());
    format!("not kept: {}", why.unwrap_or("it takes more than --cache-folder-size"))
}

/// Learns the statistics of a column; `None` if it was interrupted.
fn learn(work: &Work, place: &Place, interrupt: &Interrupt) -> Option<Outcome> {
    let Work::Statistics { learner, rows, why_not_kept, were_known } = work else { return None };
    if let Some(reason) = why_not_kept {
        return Some(Outcome::Failed(format!("would not be kept: {reason}")));
    }
    match learner.learn(rows.as_ref(), interrupt, &|_| {}) {
        Ok(_) => {}
        Err(_) if interrupt.is_raised() => return None,
        Err(error) => return Some(Outcome::Failed(error.to_string())),
    }
    let what = format!("{:>16} rows ", learner.rows());
    Some(match learner.is_kept() {
        true if *were_known => Outcome::WasKept(what),
        true => Outcome::Kept(what),
        false => Outcome::Failed(not_kept(*why_not_kept, place)),
    })
}
