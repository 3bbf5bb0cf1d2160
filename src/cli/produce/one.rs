//! Writes one table: finds an existing one, examines columns, plans, and sends pieces to the writer.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::Mutex;

use super::{BuiltIndexes, Job, Mode, Production, TargetFile};
use crate::activity::Unit;
use crate::cli::Error;
use crate::cli::indexing::{IndexBuilder, LockedTable};
use crate::cli::inputs::{Failed, Inputs, Sorted};
use crate::cli::place::Place;
use crate::cli::progress::Watched;
use crate::cli::tables::table_of;
use crate::h5::{self, Exclusive};
use crate::producer;
use crate::producer::indexes::{self, IndexKind};
use crate::producer::table::{ColumnEncoder, Encoded, EncodedPiece, Failure, PlannedTable, Profile, TableWriter};
use crate::session::{Session, Settings};
use crate::store::{self, Store, cores};
use crate::table as known;
use crate::views::printable;

/// Pieces queued for the writer, per core.
const WAITING: usize = 2;

/// Values that take as long to write as two take to be looked at, and as a row takes to be sorted: for the time left.
const WRITTEN_OF_TWO_EXAMINED: u64 = 8;
const VALUES_OF_SORTED_ROW: u64 = 9;

/// The end of a table waits for the last chunks and the disk: as long as one of this many values takes to write.
const WRITTEN_OF_ONE_AT_END: u64 = 14;

/// An existing table, and its file.
type There = (Arc<store::File>, Arc<known::Table>);

/// Why a table was not written.
enum Stopped {
    /// A value of this column contradicts the chosen storage.
    Surprise(usize, &'static str),
    Error(Error),
}

/// One table to write.
pub(super) struct One<'a> {
    pub production: &'a Production,
    pub job: &'a Job<'a>,
    pub inputs: &'a Inputs,
    /// HDF5 path of the table.
    pub path: &'a str,
    /// The rows in sorted order, once they are needed.
    pub sorted: OnceLock<Sorted>,
}

impl One<'_> {
    pub fn run(&self, target: &TargetFile<'_>, begun: Instant) -> Result<(), Error> {
        // From here on no other process changes the file.
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
            // Lines are printed once everything is written.
            true => {
                said.push(line);
                Ok(())
            }
            false => self.production.watched.write(&line),
        });
        match built {
            Ok(()) => said.insert(0, line),
            Err(error) if is_new || self.production.watched.interrupt.is_raised() => return Err(error),
            Err(error) => {
                return Err(Error::Usage(format!("{error}; the table is written, but without this index")));
            }
        }
        said.iter().filter(|_| is_new).try_for_each(|line| self.production.watched.write(line))
    }

    /// The table's place, in the notation of other commands.
    fn place(&self, target: &TargetFile<'_>) -> OsString {
        let mut name = OsString::from(target.path);
        name.push(":");
        name.push(self.path);
        name
    }

    /// The session for reading the file; it caches nothing on disk.
    fn session(&self) -> Arc<Session> {
        let cache_size = self.job.running.memory / 4;
        let store = Store::new(store::Options { kept_folder: None, cache_size, ..store::Options::default() });
        Session::with_settings(store, h5::Options::default(), Settings::default())
    }

    /// The search indexes to build, and how many of them the existing table has.
    fn indexes(&self, place: &OsStr, is_there: bool) -> Result<(Vec<(String, IndexKind)>, usize), Error> {
        let interrupt = &self.production.watched.interrupt;
        let mut wanted: Vec<(String, IndexKind)> = Vec::new();
        for indexes in self.job.indexes {
            if let BuiltIndexes::Of(column, kinds) = indexes {
                wanted.extend(kinds.iter().map(|kind| (column.clone(), *kind)));
            }
        }
        let mut renewed = 0;
        if is_there && !self.job.indexes.is_empty() {
            let opened = LockedTable::new(place, self.session(), &self.production.watched)?;
            if self.job.indexes.contains(&BuiltIndexes::Kept) {
                let known = opened.indexed(interrupt)?.into_iter();
                wanted.extend(known.filter(|(column, _)| self.inputs.fields.find(column).is_some()));
            }
            for (column, kind) in wanted.iter().collect::<BTreeSet<_>>() {
                renewed += opened.listed(Some(column), &[*kind], interrupt)?.len();
            }
        }
        // Each index is built once, even if it was named twice.
        wanted.sort();
        wanted.dedup();
        Ok((wanted, renewed))
    }

    /// Builds search indexes of the written table; prints a line for each.
    fn build(
        &self,
        place: &OsStr,
        exclusive: &Exclusive,
        wanted: &[(String, IndexKind)],
        say: &mut dyn FnMut(String) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let builder = IndexBuilder {
            place,
            session: &|| Ok(self.session()),
            locked: exclusive,
            options: &indexes::Options { references: self.job.options.references, ..Default::default() },
            memory: self.job.running.memory,
            watched: &self.production.watched,
        };
        let each = || wanted.iter().map(|(column, kind)| (column.as_str(), *kind));
        let rows = builder.rows(each())?;
        self.production.step("indexing", Unit::Rows, rows);
        for (column, kind) in each() {
            say(builder.build(column, kind)?)?;
        }
        Ok(())
    }

    fn is_to_sort(&self) -> bool {
        self.job.sort_by.is_some() && self.sorted.get().is_none()
    }

    /// Number of rows of all inputs, as far as it is known.
    fn rows(&self) -> u64 {
        self.inputs.expected().unwrap_or(0)
    }

    /// Number of values still to write, and to sort, which counts as writing more.
    fn written_later(&self) -> u64 {
        let sorting = if self.is_to_sort() { VALUES_OF_SORTED_ROW } else { 0 };
        self.rows().saturating_mul(sorting).saturating_add(self.written())
    }

    /// Number of values to write.
    fn values(&self) -> u64 {
        self.rows().saturating_mul(self.inputs.fields.len() as u64)
    }

    /// Number of values to write, with the end of the table, which counts as writing more.
    fn written(&self) -> u64 {
        self.values().saturating_add(self.values() / WRITTEN_OF_ONE_AT_END)
    }

    /// Sorts the rows, if requested.
    fn sort(&self, target: &TargetFile<'_>) -> Result<(), Error> {
        let Some(by) = self.job.sort_by.filter(|_| self.is_to_sort()) else { return Ok(()) };
        self.production.step("sorting", Unit::Rows, self.rows());
        self.production.watched.expect_later(self.written() / VALUES_OF_SORTED_ROW);
        let folder = target.file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let Watched { done, interrupt, .. } = &self.production.watched;
        let sorted =
            by.sort(self.inputs, self.job.running.memory / 2, folder, done, interrupt).map_err(Error::Usage)?;
        self.sorted.get_or_init(|| sorted);
        Ok(())
    }

    /// Finds the table at the path, for a mode that appends to it or replaces it.
    ///
    /// # Errors
    /// If the mode forbids changing it, or the object is not a table of the kind to be written.
    fn there(&self, target: &TargetFile<'_>) -> Result<Option<There>, Error> {
        let interrupt = &self.production.watched.interrupt;
        let session = self.session();
        let root = Place::open(target.file.as_os_str(), session.clone(), interrupt)?;
        root.spot.children(interrupt).map_err(|error| root.failed(error))?;
        let several = |_| Error::Usage(format!("{}: not one HDF5 file", root.name));
        let [file] = <[_; 1]>::try_from(session.files()).map_err(several)?;
        if !producer::is_there(&file, self.path, interrupt)? {
            return Ok(None);
        }
        let name = self.place(target);
        let refused = |reason: &str| Error::Usage(format!("{}: {reason}", printable(&name.to_string_lossy())));
        let found =
            Place::open(&name, session, interrupt).and_then(|place| table_of(&place, false, &self.production.watched));
        let Some(known) = found.ok().filter(|known| producer::is_own(known)) else {
            return Err(refused("something else is there, and stays: name another path"));
        };
        if self.job.mode == Mode::Create {
            let reason =
                "a table is there: --mode append adds rows to it, --mode replace puts the new one in its place";
            return Err(refused(reason));
        }
        Ok(Some((file, known)))
    }

    /// Writes a new table, which `replaces` the existing one at its path; `None` for a dry run.
    fn create(
        &self,
        target: &TargetFile<'_>,
        exclusive: Option<&Exclusive>,
        replaces: bool,
    ) -> Result<Option<u64>, Error> {
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
            // Columns are written one after the other if possible; otherwise chunks of all of them fill up at the same
            // time.
            let is_one = self.inputs.is_columnar() && self.job.sort_by.is_none();
            let room = (!is_one).then_some(self.job.running.memory / 4);
            let labels = &self.inputs.labels;
            let table = PlannedTable::plan(fields, labels, &profiles, rows, room, self.job.options, self.path);
            let table = table.map_err(Error::Columns)?;
            let Some(exclusive) = exclusive.filter(|_| !self.job.running.dry_run) else {
                return self.tell(&table, rows).map(|()| None);
            };
            self.sort(target)?;
            match self.write_into(&table, exclusive, replaces) {
                Ok(rows) => {
                    let told = table.told().filter_map(|column| Some((column.name, column.note?)));
                    self.production.watched.hide();
                    told.for_each(|(name, note)| say!("hepfs: column {name:?}: {}", printable(note)));
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

    /// Appends rows to an existing table; `None` for a dry run.
    fn append(
        &self,
        target: &TargetFile<'_>,
        exclusive: &Exclusive,
        (file, known): There,
        renewed: usize,
    ) -> Result<Option<u64>, Error> {
        let interrupt = &self.production.watched.interrupt;
        let fields = &self.inputs.fields;
        let table = PlannedTable::extend(&file, &known, fields, self.job.options, interrupt).map_err(|lines| {
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
        self.production.watched.hide();
        let stale = table.stale_indexes().saturating_sub(renewed);
        if stale > 0 {
            say!(
                "hepfs: {stale} search indexes of the table are stale now, and ignored: `hepfs index build` and \
                 `--index keep` make them anew"
            );
        }
        Ok(Some(rows))
    }

    /// Examines all values of these columns.
    fn look(&self, columns: &[usize], profiles: &mut [Profile]) -> Result<(), Error> {
        if columns.is_empty() {
            return Ok(());
        }
        self.begin("looking at the values", columns.len());
        let fields = &self.inputs.fields;
        if !self.job.running.dry_run {
            self.production.watched.expect_later(self.written_later().saturating_mul(2) / WRITTEN_OF_TWO_EXAMINED);
        }
        let fresh = fields.iter().map(|field| {
            let fresh = Profile::unknown(field.data_type());
            Mutex::new(if self.job.options.wants_labels() { fresh.gathering() } else { fresh })
        });
        let fresh: Vec<_> = fresh.collect();
        let looked = self.inputs.each(
            columns,
            None,
            &self.production.watched.done,
            &self.production.watched.interrupt,
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

    /// Begins a step that handles all rows of some columns.
    fn begin(&self, doing: &'static str, columns: usize) {
        let values = self.rows().saturating_mul(columns as u64);
        self.production.step(doing, Unit::Values, values);
    }

    fn check(&self) -> Result<(), Error> {
        if self.production.watched.interrupt.is_raised() { Err(Error::Usage("interrupted".into())) } else { Ok(()) }
    }

    fn failed(&self, failed: Failed<Failure>) -> Error {
        // Other faults of a file that changed follow from the change.
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

    fn tell(&self, table: &PlannedTable, rows: Option<u64>) -> Result<(), Error> {
        let line = |line: String| self.production.tell(&line);
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

    /// Writes the table into an existing file; returns its number of rows.
    fn write_into(&self, table: &PlannedTable, exclusive: &Exclusive, replaces: bool) -> Result<u64, Stopped> {
        let refused = |error: h5::WriteError| Stopped::Error(producer::Error::from(error).into());
        let mut writing =
            exclusive.writer(&h5::Options::default(), &self.production.watched.interrupt).map_err(refused)?;
        let failed = |error: producer::Error| Stopped::Error(error.into());
        let mut writer = TableWriter::begin(table, &mut writing, &self.production.watched.interrupt).map_err(failed)?;
        let encoders: Vec<_> =
            table.encoders(self.job.running.memory / 4).into_iter().map(|encoder| Mutex::new(Some(encoder))).collect();
        let encoded: Vec<_> = encoders.iter().map(|_| Mutex::new(Encoded::default())).collect();
        self.begin("writing", encoders.len());
        self.production.watched.expect_later(self.values() / WRITTEN_OF_ONE_AT_END);
        let fitting = self.job.running.memory / 8 / table.longest_chunk().max(1);
        let (sender, receiver) = crossbeam_channel::bounded((fitting as usize).clamp(1, WAITING * cores()));
        let outcome = std::thread::scope(|scope| {
            let encoding = scope.spawn(|| {
                self.encode(&encoders, &encoded, sender)?;
                self.production.step("completing the table", Unit::Values, 0);
                Ok(())
            });
            let written = receiver
                .iter()
                .try_for_each(|piece| writer.put(&piece, &mut writing, &self.production.watched.interrupt));
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
        writer.finish(&encoded, replaces, &mut writing, &self.production.watched.interrupt).map_err(failed)?;
        Ok(rows)
    }

    /// Encodes all columns, and sends pieces to `sender`.
    fn encode(
        &self,
        encoders: &[Mutex<Option<ColumnEncoder>>],
        encoded: &[Mutex<Encoded>],
        sender: crossbeam_channel::Sender<EncodedPiece>,
    ) -> Result<(), Failed<Failure>> {
        // Slow columns first, so that no core is left alone with one.
        let mut all: Vec<usize> = (0..encoders.len()).collect();
        // Those that take long come first.
        all.sort_by_key(|column| self.inputs.fields[*column].data_type().primitive_width().is_some());
        let take = |piece: EncodedPiece| sender.send(piece).map_err(|_| Failure::Stopped);
        self.inputs.each(
            &all,
            self.sorted.get(),
            &self.production.watched.done,
            &self.production.watched.interrupt,
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
    let exclusive = Exclusive::open(file).map_err(producer::Error::from)?;
    if exclusive.was_put_back() {
        say!("hepfs: an earlier run ended in the middle of a change: the file is back in its state before that run");
    }
    Ok(exclusive)
}
