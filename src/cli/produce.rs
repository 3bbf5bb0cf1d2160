//! From inputs to a table in an HDF5 file: looks at columns, plans, encodes on all cores, and has the pieces written.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use clap::{Args, ValueEnum};
use parking_lot::Mutex;

use super::Error;
use super::indexing::{Builder, Opened};
use super::inputs::{Failed, Inputs, SortBy, Sorted};
use super::options::size;
use super::place::Place;
use super::progress::Watched;
use super::signals::INTERRUPTED;
use super::tables::table_of;
use crate::dialects::IndexOptions;
use crate::dialects::index_writer::{self, Kind};
use crate::dialects::table_writer::{self, Encoded, Encoder, Failure, Options, Piece, Profile, Table, Writer};
use crate::fs::tree::{Context, ViewOptions, printable};
use crate::h5::{self, Exclusive};
use crate::source::Interrupt;
use crate::store::{self, Store};
use crate::table as known;

/// Pieces queued for the writer, for each core.
const WAITING: usize = 2;

/// Bytes of memory that a run has at least.
const LEAST_MEMORY: u64 = 64 << 20;

/// What to do with a table that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Mode {
    /// Refuse to write
    Create,
    /// Append the rows to it
    Append,
    /// Put the new table in its place
    Replace,
}

/// How a run that writes tables goes.
#[derive(Clone, Debug, Args)]
pub(super) struct Running {
    /// Tell how each column would be stored, and write nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Memory for rows that are read, sorted, encoded and indexed, and for labels, at least 64M
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = memory)]
    pub memory: u64,
}

/// How tables are written.
pub(super) struct Job<'a> {
    pub options: &'a Options,
    pub mode: Mode,
    pub running: &'a Running,
    /// The order of rows, where it is not that of the inputs.
    pub sort_by: Option<&'a SortBy>,
    pub indexes: &'a [Indexes],
}

/// Search indexes that are built once a table is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Indexes {
    /// Those that the table had
    Kept,
    /// Of a column
    Of(String, Vec<Kind>),
}

impl Indexes {
    /// Parses `COLUMN:KIND,…` or `keep`.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "keep" {
            return Ok(Self::Kept);
        }
        let (column, kinds) = text.rsplit_once(':').ok_or("it is COLUMN:KIND,... or `keep`")?;
        let known = || Kind::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let names = || known().map(|kind| kind.get_name().to_owned()).collect::<Vec<_>>().join(", ");
        let kind = |text: &str| Kind::from_str(text, false).map_err(|_| format!("{text:?} is none of {}", names()));
        Ok(Self::Of(column.to_owned(), kinds.split(',').map(kind).collect::<Result<_, _>>()?))
    }
}

/// Parses how much memory may be used.
fn memory(text: &str) -> Result<u64, String> {
    size(text).and_then(|bytes| if bytes < LEAST_MEMORY { Err("64M is the least".to_owned()) } else { Ok(bytes) })
}

/// The file that is written to.
pub(super) struct Target<'a> {
    /// As the user names it.
    file: &'a Path,
    /// Where it is written.
    path: &'a Path,
}

impl Target<'_> {
    /// Splits `OUT[:PATH]` at the last colon; the path is one of HDF5.
    pub fn split(output: &OsStr) -> (PathBuf, Option<String>) {
        let bytes = output.as_bytes();
        let colon = bytes.iter().rposition(|byte| *byte == b':').filter(|_| !Path::new(output).exists());
        let Some(at) = colon else { return (output.into(), None) };
        let path = String::from_utf8_lossy(&bytes[at + 1..]);
        (OsStr::from_bytes(&bytes[..at]).into(), Some(format!("/{}", path.trim_matches('/'))))
    }
}

/// A run that writes tables: its progress, and what ends it.
pub(super) struct Production {
    /// Rows of columns looked at or written.
    done: Arc<AtomicU64>,
    watched: Watched,
    pub interrupt: Interrupt,
}

/// A table that is there, and its file.
type There = (Arc<store::File>, Arc<known::Table>);

/// Why a table was not written.
enum Stopped {
    /// A value of this column contradicts what was chosen.
    Surprise(usize, &'static str),
    Error(Error),
}

impl Production {
    pub fn new() -> Result<Self, Error> {
        let (interrupt, done) = (Interrupt::new(), Arc::new(AtomicU64::new(0)));
        let shown = done.clone();
        let watched = Watched::new(interrupt.clone(), 0, move || shown.load(Ordering::Relaxed))?;
        Ok(Self { done, watched, interrupt })
    }

    /// Has `write` write tables to a file: one that is there, or a new one, which has its name once all is written.
    pub fn run(
        &self,
        job: &Job<'_>,
        file: &Path,
        write: impl FnOnce(&Self, &Target<'_>) -> Result<ExitCode, Error>,
    ) -> Result<ExitCode, Error> {
        let outcome = if job.running.dry_run || file.exists() {
            write(self, &Target { file, path: file })
        } else {
            let partial = Partial::new(file)?;
            write(self, &Target { file, path: &partial.path }).and_then(|code| match self.interrupt.is_raised() {
                true => Err(Error::Usage("interrupted".into())),
                false => partial.keep(file).map(|()| code),
            })
        };
        match outcome {
            Err(_) if self.interrupt.is_raised() => {
                eprintln!("hepfs: interrupted; what is not listed above was not written");
                Ok(ExitCode::from(INTERRUPTED))
            }
            outcome => outcome,
        }
    }

    /// Writes inputs as the table at an HDF5 path.
    ///
    /// # Errors
    /// Where it cannot be; nothing is written then.
    pub fn write(&self, job: &Job<'_>, inputs: &Inputs, target: &Target<'_>, path: &str) -> Result<(), Error> {
        let begun = Instant::now();
        let missing = |column: &&String| inputs.fields.find(column).is_none();
        let columns = job.indexes.iter().filter_map(|indexes| match indexes {
            Indexes::Of(column, _) => Some(column),
            Indexes::Kept => None,
        });
        if let Some(column) = columns.into_iter().find(missing) {
            return Err(Error::Usage(format!("--index {column}: there is no such column")));
        }
        let one = One { production: self, job, inputs, path, sorted: OnceLock::new() };
        one.run(target, begun)
    }
}

/// One table that is written.
struct One<'a> {
    production: &'a Production,
    job: &'a Job<'a>,
    inputs: &'a Inputs,
    /// HDF5 path of the table.
    path: &'a str,
    /// The rows in another order, once they are needed.
    sorted: OnceLock<Sorted>,
}

impl One<'_> {
    fn run(&self, target: &Target<'_>, begun: Instant) -> Result<(), Error> {
        // What is there stays as it is from here on.
        let exists = target.path.exists();
        let exclusive = if self.job.running.dry_run && !exists { None } else { Some(lock(target.path)?) };
        let is_new = target.path != target.file;
        let there = if exists && !is_new { self.there(target)? } else { None };
        let place = self.place(target);
        let (wanted, renewed) = self.indexes(&place, there.is_some())?;
        let rows = match (there, &exclusive) {
            (Some(there), Some(exclusive)) if self.job.mode == Mode::Append => {
                self.append(target, exclusive, there, renewed)?
            }
            (there, exclusive) => self.create(target, exclusive.as_ref(), there.is_some())?,
        };
        let Some(rows) = rows else { return Ok(()) };
        let (seconds, shown) = (begun.elapsed().as_secs_f64(), target.file.display());
        let line = format!("{shown}:{}  {rows} rows  {seconds:.3} s", self.path);
        let Some(exclusive) = exclusive.filter(|_| !wanted.is_empty()) else {
            return self.production.watched.write(&line);
        };
        if !is_new {
            self.production.watched.write(&line)?;
        }
        let mut said = Vec::new();
        let built = self.build(&place, &exclusive, &wanted, &mut |line| match is_new {
            // Nothing is there before all is.
            true => {
                said.push(line);
                Ok(())
            }
            false => self.production.watched.write(&line),
        });
        match built {
            Ok(()) => said.insert(0, line),
            Err(error) if is_new || self.production.interrupt.is_raised() => return Err(error),
            Err(error) => {
                return Err(Error::Usage(format!("{error}; the table is written, without this index")));
            }
        }
        said.iter().filter(|_| is_new).try_for_each(|line| self.production.watched.write(line))
    }

    /// The table's place, as other commands name it.
    fn place(&self, target: &Target<'_>) -> OsString {
        let mut name = OsString::from(target.path);
        name.push(":");
        name.push(self.path);
        name
    }

    /// What the file is read with; nothing of it is kept.
    fn context(&self) -> Arc<Context> {
        let cache_size = self.job.running.memory / 4;
        let store = Store::new(store::Options { kept_folder: None, cache_size, ..store::Options::default() });
        Context::with_views(store, h5::Options::default(), ViewOptions::default())
    }

    /// The search indexes to build, and how many of them the table has that is there.
    fn indexes(&self, place: &OsStr, is_there: bool) -> Result<(Vec<(String, Kind)>, usize), Error> {
        let interrupt = &self.production.interrupt;
        let mut wanted: Vec<(String, Kind)> = Vec::new();
        for indexes in self.job.indexes {
            if let Indexes::Of(column, kinds) = indexes {
                wanted.extend(kinds.iter().map(|kind| (column.clone(), *kind)));
            }
        }
        let mut renewed = 0;
        if is_there && !self.job.indexes.is_empty() {
            let opened = Opened::new(place, self.context(), interrupt)?;
            if self.job.indexes.contains(&Indexes::Kept) {
                let known = opened.indexed(interrupt)?.into_iter();
                wanted.extend(known.filter(|(column, _)| self.inputs.fields.find(column).is_some()));
            }
            for (column, kind) in wanted.iter().collect::<BTreeSet<_>>() {
                renewed += opened.listed(Some(column), &[*kind], interrupt)?.len();
            }
        }
        // Each is built once, also where it was named twice.
        wanted.sort();
        wanted.dedup();
        Ok((wanted, renewed))
    }

    /// Builds search indexes of the table that was written; says of each what there is to say.
    fn build(
        &self,
        place: &OsStr,
        exclusive: &Exclusive,
        wanted: &[(String, Kind)],
        say: &mut dyn FnMut(String) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let builder = Builder {
            place,
            context: &|| Ok(self.context()),
            locked: exclusive,
            options: &IndexOptions::of_table(self.job.options),
            memory: self.job.running.memory,
            interrupt: &self.production.interrupt,
        };
        let each = || wanted.iter().map(|(column, kind)| (column.as_str(), *kind));
        let rows = builder.rows(each())?;
        self.production.done.store(0, Ordering::Relaxed);
        self.production.watched.say("building search indexes");
        self.production.watched.expect(rows);
        for (column, kind) in each() {
            say(builder.build(column, kind, &self.production.done)?)?;
        }
        Ok(())
    }

    /// Sorts the rows, if they are to be.
    fn sort(&self, target: &Target<'_>) -> Result<(), Error> {
        let Some(by) = self.job.sort_by.filter(|_| self.sorted.get().is_none()) else { return Ok(()) };
        self.begin("sorting", 1);
        let folder = target.file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let (done, interrupt) = (&self.production.done, &self.production.interrupt);
        let sorted =
            by.sort(self.inputs, self.job.running.memory / 2, folder, done, interrupt).map_err(Error::Usage)?;
        self.sorted.get_or_init(|| sorted);
        Ok(())
    }

    /// Finds the table at the path, for a mode that appends to it or replaces it.
    ///
    /// # Errors
    /// Where the mode leaves it as it is, or the object is no table of the kind that is written.
    fn there(&self, target: &Target<'_>) -> Result<Option<There>, Error> {
        let interrupt = &self.production.interrupt;
        let context = self.context();
        let root = Place::open(target.file.as_os_str(), context.clone(), interrupt)?;
        root.node.children(interrupt).map_err(|error| root.failed(error))?;
        let several = |_| Error::Usage(format!("{}: not one HDF5 file", root.name));
        let [file] = <[_; 1]>::try_from(context.files()).map_err(several)?;
        if !table_writer::is_there(&file, self.path, interrupt)? {
            return Ok(None);
        }
        let name = self.place(target);
        let refused = |reason: &str| Error::Usage(format!("{}: {reason}", printable(&name.to_string_lossy())));
        let found = Place::open(&name, context, interrupt).and_then(|place| table_of(&place, false, interrupt));
        let Some(known) = found.ok().filter(|known| table_writer::is_own(known)) else {
            return Err(refused("something else is there, which stays: name another path"));
        };
        if self.job.mode == Mode::Create {
            let reason =
                "a table is there: --mode append adds rows to it, --mode replace puts the new one in its place";
            return Err(refused(reason));
        }
        Ok(Some((file, known)))
    }

    /// Writes a new table, which `replaces` the one at its path; `None` for a dry run.
    fn create(&self, target: &Target<'_>, exclusive: Option<&Exclusive>, replaces: bool) -> Result<Option<u64>, Error> {
        let fields = &self.inputs.fields;
        let mut profiles = Vec::with_capacity(fields.len());
        let mut unseen = Vec::new();
        for (at, field) in fields.iter().enumerate() {
            let needs = Profile::is_needed(field.data_type(), field.is_nullable());
            let profile = self.inputs.believed(at).or_else(|| (!needs).then(|| Profile::unknown(field.data_type())));
            if profile.is_none() {
                unseen.push(at);
            }
            profiles.push(profile.unwrap_or_else(|| Profile::unknown(field.data_type())));
        }
        self.look(&unseen, &mut profiles)?;
        let mut seen: Vec<bool> = (0..fields.len()).map(|at| unseen.contains(&at)).collect();
        loop {
            let rows = self.inputs.rows().or_else(|| profiles.iter().find(|p| p.is_known).map(|p| p.rows));
            // A column after the other is written where that can be; else chunks of all of them are filled at once.
            let is_one = self.inputs.is_columnar() && self.job.sort_by.is_none();
            let room = (!is_one).then_some(self.job.running.memory / 4);
            let table = Table::plan(fields, &profiles, rows, room, self.job.options, self.path);
            let table = table.map_err(Error::Columns)?;
            let Some(exclusive) = exclusive.filter(|_| !self.job.running.dry_run) else {
                return self.tell(&table, rows).map(|()| None);
            };
            self.sort(target)?;
            match self.write_into(&table, exclusive, replaces) {
                Ok(rows) => {
                    let told = table.told().filter_map(|column| Some((column.name, column.note?)));
                    self.production.watched.finish();
                    told.for_each(|(name, note)| eprintln!("hepfs: column {name:?}: {}", printable(note)));
                    return Ok(Some(rows));
                }
                Err(Stopped::Surprise(column, _)) if !std::mem::replace(&mut seen[column], true) => {
                    self.look(&[column], &mut profiles)?;
                }
                Err(Stopped::Surprise(column, what)) => {
                    let name = fields[column].name();
                    let shown = target.file.display();
                    return Err(Error::Usage(format!("{shown}: column {name:?}: {what}: use --fill")));
                }
                Err(Stopped::Error(error)) => return Err(error),
            }
        }
    }

    /// Appends rows to the table that is there; `None` for a dry run.
    fn append(
        &self,
        target: &Target<'_>,
        exclusive: &Exclusive,
        (file, known): There,
        renewed: usize,
    ) -> Result<Option<u64>, Error> {
        let interrupt = &self.production.interrupt;
        let fields = &self.inputs.fields;
        let table = Table::extend(&file, &known, fields, self.job.options, interrupt).map_err(|lines| {
            let what = format!("{}:{}: the rows do not fit the table", target.file.display(), self.path);
            Error::Tables { what, lines }
        })?;
        drop((known, file));
        if self.job.running.dry_run {
            return self.tell(&table, self.inputs.rows()).map(|()| None);
        }
        self.sort(target)?;
        let rows = self.write_into(&table, exclusive, false).map_err(|stopped| match stopped {
            Stopped::Error(error) => error,
            Stopped::Surprise(column, what) => {
                let name = fields[column].name();
                let help = "write all rows anew with --mode replace";
                Error::Usage(format!("{}: column {name:?}: {what}: {help}", target.file.display()))
            }
        })?;
        self.production.watched.finish();
        let stale = table.stale_indexes().saturating_sub(renewed);
        if stale > 0 {
            eprintln!(
                "hepfs: {stale} search indexes of the table are stale now, and ignored: `hepfs index build` and \
                 `--index keep` make them anew"
            );
        }
        Ok(Some(rows))
    }

    /// Looks at all values of these columns.
    fn look(&self, columns: &[usize], profiles: &mut [Profile]) -> Result<(), Error> {
        if columns.is_empty() {
            return Ok(());
        }
        self.begin("looking at the values", columns.len());
        let fields = &self.inputs.fields;
        let fresh = fields.iter().map(|field| {
            let fresh = Profile::unknown(field.data_type());
            Mutex::new(if self.job.options.wants_labels() { fresh.gathering() } else { fresh })
        });
        let fresh: Vec<_> = fresh.collect();
        let looked = self.inputs.each(
            columns,
            None,
            &self.production.done,
            &self.production.interrupt,
            |column, array| fresh[column].lock().see(array),
            |column| {
                fresh[column].lock().finish();
                Ok(())
            },
        );
        looked.map_err(|failed| self.failed(failed))?;
        self.check()?;
        self.inputs.unchanged()?;
        for column in columns {
            profiles[*column] = std::mem::take(&mut *fresh[*column].lock());
        }
        Ok(())
    }

    fn begin(&self, what: &str, columns: usize) {
        self.production.done.store(0, Ordering::Relaxed);
        self.production.watched.say(what);
        self.production.watched.expect(self.inputs.rows().unwrap_or(0).saturating_mul(columns as u64));
    }

    fn check(&self) -> Result<(), Error> {
        if self.production.interrupt.is_raised() { Err(Error::Usage("interrupted".into())) } else { Ok(()) }
    }

    fn failed(&self, failed: Failed<Failure>) -> Error {
        // What is wrong with a file that changes follows from that.
        if let Err(changed) = self.inputs.unchanged() {
            return changed;
        }
        match failed {
            Failed::Input(reason) => Error::Usage(reason),
            Failed::Column(column, failure) => {
                Error::Usage(format!("column {:?}: {failure}", self.inputs.fields[column].name()))
            }
        }
    }

    fn tell(&self, table: &Table, rows: Option<u64>) -> Result<(), Error> {
        self.production.watched.finish();
        let mut out = std::io::stdout().lock();
        let mut line = |line: String| writeln!(out, "{}", printable(&line)).map_err(Error::io("standard output"));
        let width = table.told().map(|column| column.name.chars().count()).max().unwrap_or(0);
        for (column, field) in table.told().zip(&self.inputs.fields) {
            line(format!("{:width$}  {}  →  {}", column.name, field.data_type(), column.stored))?;
            column.note.map_or(Ok(()), |note| line(format!("{:width$}  {note}", "")))?;
        }
        let bytes: u64 = table.told().map(|column| column.row_bytes).sum();
        match rows {
            Some(rows) => {
                let size = rows.saturating_mul(bytes);
                line(format!("{rows} rows, {size} bytes before compression, without the items of lists"))
            }
            None => line(format!("{bytes} bytes a row before compression, without the items of lists")),
        }
    }

    /// Writes the table into a file that is there; answers its rows.
    fn write_into(&self, table: &Table, exclusive: &Exclusive, replaces: bool) -> Result<u64, Stopped> {
        let refused = |error: h5::WriteError| Stopped::Error(index_writer::Error::from(error).into());
        let mut writing = exclusive.writer(&h5::Options::default(), &self.production.interrupt).map_err(refused)?;
        let failed = |error: index_writer::Error| Stopped::Error(error.into());
        let mut writer = Writer::begin(table, &mut writing, &self.production.interrupt).map_err(failed)?;
        let encoders: Vec<_> =
            table.encoders(self.job.running.memory / 4).into_iter().map(|encoder| Mutex::new(Some(encoder))).collect();
        let encoded: Vec<_> = encoders.iter().map(|_| Mutex::new(Encoded::default())).collect();
        self.begin("writing", encoders.len());
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let fitting = self.job.running.memory / 8 / table.longest_chunk().max(1);
        let (sender, receiver) = crossbeam_channel::bounded((fitting as usize).clamp(1, WAITING * cores));
        let outcome = std::thread::scope(|scope| {
            let encoding = scope.spawn(|| self.encode(&encoders, &encoded, sender));
            let written =
                receiver.iter().try_for_each(|piece| writer.put(&piece, &mut writing, &self.production.interrupt));
            // Unblocks the encoder after an error of the writer.
            drop(receiver);
            let encoding = encoding.join();
            written.map_err(failed)?;
            let encoding = encoding.unwrap_or_else(|_| Err(Failed::Input("a thread of the encoder ended".into())));
            encoding.map_err(|why| match why {
                Failed::Column(column, Failure::Surprise(what)) => Stopped::Surprise(column, what),
                why => Stopped::Error(self.failed(why)),
            })
        });
        outcome?;
        self.check().and_then(|()| self.inputs.unchanged()).map_err(Stopped::Error)?;
        let encoded: Vec<Encoded> = encoded.into_iter().map(Mutex::into_inner).collect();
        let rows = encoded.first().map_or(0, |encoded| encoded.rows);
        writer.finish(&encoded, replaces, &mut writing, &self.production.interrupt).map_err(failed)?;
        Ok(rows)
    }

    /// Encodes all columns; pieces go to `sender`.
    fn encode(
        &self,
        encoders: &[Mutex<Option<Encoder>>],
        encoded: &[Mutex<Encoded>],
        sender: crossbeam_channel::Sender<Piece>,
    ) -> Result<(), Failed<Failure>> {
        // What takes longest first, so that no core is left with it alone.
        let mut all: Vec<usize> = (0..encoders.len()).collect();
        let takes_long = |column: &usize| self.inputs.fields[*column].data_type().primitive_width().is_none();
        all.sort_by_key(|column| !takes_long(column));
        let take = |piece: Piece| sender.send(piece).map_err(|_| Failure::Stopped);
        self.inputs.each(
            &all,
            self.sorted.get(),
            &self.production.done,
            &self.production.interrupt,
            |column, array| match encoders[column].lock().as_mut() {
                Some(encoder) => encoder.push(array, &mut { take }),
                None => Ok(()),
            },
            |column| {
                let encoder = encoders[column].lock().take();
                if let Some(encoder) = encoder {
                    *encoded[column].lock() = encoder.finish(&mut { take })?;
                }
                Ok(())
            },
        )
    }
}

fn lock(file: &Path) -> Result<Exclusive, Error> {
    let exclusive = Exclusive::open(file).map_err(index_writer::Error::from)?;
    if exclusive.was_put_back() {
        eprintln!("hepfs: an earlier run was ended while it changed the file: it is as it was before that run");
    }
    Ok(exclusive)
}

/// A new HDF5 file beside its place, until it is whole.
struct Partial {
    path: PathBuf,
}

impl Partial {
    /// Makes an empty one. What an earlier run has left is removed, unless that run is still at it.
    fn new(file: &Path) -> Result<Self, Error> {
        let shown = || file.display().to_string();
        let name = file.file_name().ok_or_else(|| Error::Usage(format!("{}: that is no file", shown())))?;
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(".hepfs-import");
        let path = file.with_file_name(hidden);
        if path.exists() {
            // It is locked as long as it is written to.
            drop(Exclusive::open(&path).map_err(index_writer::Error::from)?);
            std::fs::remove_file(&path).map_err(Error::io(path.display().to_string()))?;
        }
        let empty = h5::create::file(&path, |_| Ok::<(), h5::create::Error>(()));
        empty.map_err(|error| Error::Sample { path: path.clone(), reason: error.to_string() })?;
        Ok(Self { path })
    }

    /// Gives the file its name; one that has it meanwhile is left alone.
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
        // Gone where it was kept.
        std::fs::remove_file(&self.path).ok();
    }
}
