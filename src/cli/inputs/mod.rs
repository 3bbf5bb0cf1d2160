//! Reads tables to write elsewhere: files of Parquet, Arrow IPC, CSV and NDJSON, several as one table.
//!
//! A library of arrow-rs reads each format, in batches of about [`BATCH`] bytes. Every input can be read more than
//! once: standard input and gzip-compressed inputs are copied to an unnamed file.

mod arrow;
mod parquet;
mod sorted;
mod table;
mod text;
mod typed;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef};
use clap::ValueEnum;
use crossbeam_channel::Receiver;
use flate2::bufread::MultiGzDecoder;
use parking_lot::Mutex;

pub(super) use self::sorted::{SortBy, Sorted};
pub(super) use self::typed::Typed;

use super::Error;
use super::options::SEPARATOR;
use super::rows::separator_of;
use crate::activity::{Unit, Work};
use crate::producer::table::Profile;
use crate::source::{Identity, Interrupt, is_address};
use crate::store::cores;
use crate::table::Table;

/// Approximate bytes of a batch.
const BATCH: u64 = 4 << 20;

/// Most rows of a batch.
const MOST_ROWS: u64 = 65_536;

/// Bytes to read ahead.
const AHEAD: usize = 1 << 20;

/// Batches queued for each thread.
const WAITING: usize = 2;

/// Format of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum InputFormat {
    /// A Parquet file
    Parquet,
    /// An Arrow IPC file or stream
    Arrow,
    /// Text with a header line
    Csv,
    /// A JSON object per line
    Ndjson,
}

/// Batches of some columns, from the first row on.
type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// An open input file.
trait Input: Send + Sync {
    /// The fields of this file.
    fn schema(&self) -> &SchemaRef;

    /// Number of rows, if the file states it.
    fn rows(&self) -> Option<u64> {
        None
    }

    /// Number of rows that were counted, for progress, if the file does not state them.
    fn counted(&self) -> Option<u64> {
        self.rows()
    }

    /// Whether a column is read without the others.
    fn is_columnar(&self) -> bool {
        false
    }

    /// Adds the file's own statement of the least and greatest values of a column; returns whether there is one.
    fn believe(&self, column: usize, profile: &mut Profile) -> bool {
        let _ = (column, profile);
        false
    }

    /// Batches of these columns, in their order.
    fn scan(&self, columns: &[usize]) -> Result<Batches, ArrowError>;
}

/// Several inputs as one table.
pub(super) struct Inputs {
    files: Vec<(String, Box<dyn Input>)>,
    /// The inputs that are named files, which may change meanwhile.
    sources: Vec<Source>,
    /// The fields of the table.
    pub fields: Fields,
    /// Names of the columns that label rows, outermost level first.
    pub labels: Vec<String>,
}

/// The bytes of an input, from the beginning.
#[derive(Clone)]
struct Source {
    file: Arc<File>,
    path: Option<PathBuf>,
    /// Identity of the file when it was opened.
    identity: Identity,
}

/// A reader whose bytes are listed as work.
struct Counting<R> {
    reader: R,
    work: Work,
}

impl<R> Counting<R> {
    /// Counts bytes of this number in all; 0: not known.
    fn new(reader: R, title: &str, doing: &'static str, bytes: u64) -> Self {
        let work = Work::begin(title, doing, Unit::Bytes);
        work.expect(bytes);
        Self { reader, work }
    }
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
        let count = self.reader.read(room)?;
        self.work.add(count as u64);
        Ok(count)
    }
}

impl Source {
    fn new(file: File, path: Option<PathBuf>) -> std::io::Result<Self> {
        let identity = Identity::of_file(&file)?;
        Ok(Self { file: Arc::new(file), path, identity })
    }

    /// Whether the file is unchanged since it was opened.
    fn is_unchanged(&self) -> bool {
        self.path.is_none() || Identity::of_file(&self.file).is_ok_and(|now| now.same_content_as(&self.identity))
    }

    /// As [`Source::reader`]; what it reads is listed as work.
    fn counting(&self, doing: &'static str) -> std::io::Result<BufReader<Counting<File>>> {
        let title = self.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        let file = self.reader()?;
        let bytes = file.metadata()?.len();
        Ok(BufReader::with_capacity(AHEAD, Counting::new(file, &title, doing, bytes)))
    }

    /// Opens another reader of these bytes, from the first one on.
    fn reader(&self) -> std::io::Result<File> {
        match &self.path {
            // The opened file, whatever has its name now.
            Some(_) => File::open(format!("/proc/self/fd/{}", self.file.as_raw_fd())),
            // Readers of one descriptor share its position, so only one may read at a time.
            None => {
                let mut file = self.file.try_clone()?;
                file.rewind()?;
                Ok(file)
            }
        }
    }
}

impl Inputs {
    /// Opens the inputs, with some columns read as other types; the fields of all must agree.
    ///
    /// # Errors
    /// If an input cannot be read, or differs from the first.
    pub fn open(
        names: &[OsString],
        format: Option<InputFormat>,
        separator: Option<char>,
        types: &[Typed],
    ) -> Result<Self, Error> {
        let mut files: Vec<(String, Box<dyn Input>)> = Vec::new();
        let mut sources = Vec::new();
        for name in names {
            let shown = name.to_string_lossy().into_owned();
            let source = source(name)?;
            let format = match format {
                Some(format) => format,
                None => guess(&source, uncompressed(Path::new(name)))
                    .map_err(Error::io(shown.clone()))?
                    .ok_or_else(|| Error::Usage(format!("{shown}: unknown format: give --format")))?,
            };
            sources.push(source.clone());
            let opened: Result<Box<dyn Input>, ArrowError> = match format {
                InputFormat::Parquet => parquet::ParquetInput::open(source).map(|input| Box::new(input) as _),
                InputFormat::Arrow => arrow::Ipc::open(source).map(|input| Box::new(input) as _),
                InputFormat::Csv => {
                    let separator = separator.or_else(|| separator_of(Path::new(name))).unwrap_or(SEPARATOR);
                    text::Text::csv(source, separator, types).map(|input| Box::new(input) as _)
                }
                InputFormat::Ndjson => text::Text::ndjson(source, types).map(|input| Box::new(input) as _),
            };
            let opened = opened.map_err(|error| error.to_string()).and_then(|input| typed::Cast::of(input, types));
            let opened = opened.map_err(|error| Error::Usage(format!("{shown}: {error}")))?;
            if let Some((first, known)) = files.first() {
                let difference = difference(known.schema(), opened.schema());
                if !difference.is_empty() {
                    let what = format!("{shown}: its columns are not those of {first}");
                    return Err(Error::Tables { what, lines: difference });
                }
            }
            files.push((shown, opened));
        }
        let Some((_, first)) = files.first() else { return Err(Error::Usage("no input".into())) };
        let fields = first.schema().fields().iter().enumerate().map(|(at, field)| {
            let is_nullable = files.iter().any(|(_, file)| file.schema().field(at).is_nullable());
            field.as_ref().clone().with_nullable(is_nullable)
        });
        let fields = fields.collect();
        let labels = index_of_pandas(first.schema());
        Ok(Self { files, sources, fields, labels })
    }

    /// Checks that the files are unchanged since they were opened.
    ///
    /// # Errors
    /// Names the first that changed.
    pub fn unchanged(&self) -> Result<(), Error> {
        match self.sources.iter().position(|source| !source.is_unchanged()) {
            Some(at) => {
                let name = self.files.get(at).map_or("", |(name, _)| name.as_str());
                Err(Error::Usage(format!("{name}: it changed during the import: import it again")))
            }
            None => Ok(()),
        }
    }

    /// Makes an input of a table of an HDF5 file. Also returns the columns left out, with the reasons that `why_not`
    /// gives.
    pub fn of_table(
        name: &str,
        table: &Table,
        why_not: impl Fn(&Field) -> Option<String>,
        interrupt: &Interrupt,
    ) -> (Self, Vec<(String, String)>) {
        let (shown, left_out) = table::ShownTable::new(table, why_not, interrupt);
        let fields = shown.schema().fields().clone();
        let labels = table.columns.iter().filter(|column| column.is_label).map(|column| column.name.to_string());
        let labels = labels.filter(|label| fields.find(label).is_some()).collect();
        (Self { files: vec![(name.to_owned(), Box::new(shown))], sources: Vec::new(), fields, labels }, left_out)
    }

    /// Whether each column is read without the others.
    pub fn is_columnar(&self) -> bool {
        self.files.iter().all(|(_, file)| file.is_columnar())
    }

    /// Number of rows, if all files state theirs.
    pub fn rows(&self) -> Option<u64> {
        self.files.iter().map(|(_, file)| file.rows()).sum()
    }

    /// Number of rows to expect, as far as they were stated or counted.
    pub fn expected(&self) -> Option<u64> {
        self.files.iter().map(|(_, file)| file.counted()).sum()
    }

    /// The files' own statements about the values of a column; `None`: some file states nothing.
    pub fn believed(&self, column: usize) -> Option<Profile> {
        let mut profile = Profile::unknown(self.fields.get(column)?.data_type());
        self.files.iter().all(|(_, file)| file.believe(column, &mut profile)).then_some(profile)
    }

    /// Calls `act` with each array of each of these columns, in the order of rows, or in that of `sorted`, on all
    /// cores; the arrays of a column come one after the other. `done` counts rows of all columns.
    ///
    /// # Errors
    /// If an input cannot be read, and the first error of `act`, with its column.
    pub fn each<E: Send>(
        &self,
        columns: &[usize],
        sorted: Option<&Sorted>,
        done: &AtomicU64,
        interrupt: &Interrupt,
        act: impl Fn(usize, &ArrayRef) -> Result<(), E> + Sync,
        end: impl Fn(usize) -> Result<(), E> + Sync,
    ) -> Result<(), Failed<E>> {
        let pass = Pass { act, end, done, interrupt, failed: Mutex::new(None) };
        let threads = cores().min(columns.len().max(1));
        if sorted.is_none() && self.is_columnar() {
            let next = AtomicU64::new(0);
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| pass.run(|| self.each_column(columns, &next, &pass)));
                }
            });
        } else {
            std::thread::scope(|scope| {
                let mut senders = Vec::new();
                for thread in 0..threads {
                    let (sender, receiver) = crossbeam_channel::bounded::<Arc<RecordBatch>>(WAITING);
                    senders.push(sender);
                    // Each thread has its own columns, so that their arrays come in order.
                    let columns = columns.iter().copied().enumerate().skip(thread).step_by(threads);
                    let pass = &pass;
                    scope.spawn(move || pass.run(|| pass.take(columns, receiver)));
                }
                pass.run(|| {
                    let batches: Box<dyn Iterator<Item = _>> = match sorted {
                        Some(sorted) => sorted.batches(self, columns),
                        None => Box::new(self.batches(columns)),
                    };
                    for batch in batches {
                        let batch = Arc::new(batch.map_err(Failed::Input)?);
                        // A closed queue means that its thread has failed.
                        if pass.is_over() || senders.iter().any(|sender| sender.send(batch.clone()).is_err()) {
                            break;
                        }
                    }
                    Ok(())
                });
                drop(senders);
            });
        }
        pass.failed.into_inner().map_or(Ok(()), Err)
    }

    /// Reads whole columns, each the next one that no other thread has begun.
    fn each_column<E, A, Z>(
        &self,
        columns: &[usize],
        next: &AtomicU64,
        pass: &Pass<'_, E, A, Z>,
    ) -> Result<(), Failed<E>>
    where
        A: Fn(usize, &ArrayRef) -> Result<(), E>,
        Z: Fn(usize) -> Result<(), E>,
    {
        while let Some(column) = columns.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
            for batch in self.batches(std::slice::from_ref(column)) {
                if pass.is_over() {
                    return Ok(());
                }
                pass.array(*column, batch.map_err(Failed::Input)?.column(0))?;
            }
            pass.end(*column)?;
        }
        Ok(())
    }

    fn batches(&self, columns: &[usize]) -> impl Iterator<Item = Result<RecordBatch, String>> {
        self.files.iter().flat_map(move |(name, file)| {
            let (batches, error) = match file.scan(columns) {
                Ok(batches) => (Some(batches), None),
                Err(error) => (None, Some(Err(error))),
            };
            let batches = batches.into_iter().flatten().chain(error);
            batches.map(move |batch| batch.map_err(|error| format!("{name}: {error}")))
        })
    }
}

/// A pass over the inputs, on several threads.
struct Pass<'a, E, A, Z> {
    /// Called with each array of a column.
    act: A,
    /// Called at the end of a column.
    end: Z,
    /// Rows of all columns that were passed to `act`.
    done: &'a AtomicU64,
    interrupt: &'a Interrupt,
    /// The first error.
    failed: Mutex<Option<Failed<E>>>,
}

impl<E, A, Z> Pass<'_, E, A, Z>
where
    A: Fn(usize, &ArrayRef) -> Result<(), E>,
    Z: Fn(usize) -> Result<(), E>,
{
    /// Runs a part of the pass, and keeps its error.
    fn run(&self, work: impl FnOnce() -> Result<(), Failed<E>>) {
        if let Err(error) = guarded(work) {
            self.failed.lock().get_or_insert(error);
        }
    }

    /// Whether the pass was interrupted, or a part of it failed.
    fn is_over(&self) -> bool {
        self.interrupt.is_raised() || self.failed.lock().is_some()
    }

    fn array(&self, column: usize, array: &ArrayRef) -> Result<(), Failed<E>> {
        self.done.fetch_add(array.len() as u64, Ordering::Relaxed);
        (self.act)(column, array).map_err(|error| Failed::Column(column, error))
    }

    fn end(&self, column: usize) -> Result<(), Failed<E>> {
        (self.end)(column).map_err(|error| Failed::Column(column, error))
    }

    /// Takes columns, given by their places in a batch and their numbers, from all batches.
    fn take(
        &self,
        mut columns: impl Iterator<Item = (usize, usize)> + Clone,
        batches: Receiver<Arc<RecordBatch>>,
    ) -> Result<(), Failed<E>> {
        for batch in batches {
            for (at, column) in columns.clone() {
                self.array(column, batch.column(at))?;
            }
        }
        columns.try_for_each(|(_, column)| self.end(column))
    }
}

/// Runs a reader of untrusted files: turns a panic of its library into an error.
fn guarded<E>(work: impl FnOnce() -> Result<(), Failed<E>>) -> Result<(), Failed<E>> {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    caught.unwrap_or_else(|_| Err(Failed::Input("the input is damaged, or the library that reads it is".into())))
}

/// Why a pass failed.
pub(super) enum Failed<E> {
    /// An input cannot be read.
    Input(String),
    /// Processing a column failed.
    Column(usize, E),
}

/// Copies an input of this many bytes, decompressed; 0: not known.
fn keep(name: &OsStr, input: &mut dyn Read, bytes: u64) -> std::io::Result<Source> {
    let input = Counting::new(input, &name.to_string_lossy(), "reading", bytes);
    let (mut kept, mut input) = (tempfile::tempfile()?, BufReader::with_capacity(AHEAD, input));
    let copied = match is_gzip(input.fill_buf()?) {
        true => std::io::copy(&mut MultiGzDecoder::new(input), &mut kept),
        false => std::io::copy(&mut input, &mut kept),
    };
    copied.and_then(|_| Source::new(kept, None))
}

fn source(name: &OsStr) -> Result<Source, Error> {
    if name == "-" {
        return keep(name, &mut std::io::stdin().lock(), 0).map_err(Error::io("keeping standard input"));
    }
    let path = PathBuf::from(name);
    if is_address(&path) {
        return Err(Error::Usage(format!("{}: an import reads local files only", path.display())));
    }
    let shown = path.display().to_string();
    let mut file = File::open(&path).map_err(Error::io(shown.clone()))?;
    let metadata = file.metadata().map_err(Error::io(shown.clone()))?;
    if metadata.is_dir() {
        return Err(Error::Usage(format!("{shown}: a folder: name the files in it")));
    }
    // Pipes and compressed files cannot be read a second time, so they are copied.
    let mut first = [0; GZIP.len()];
    let is_plain = metadata.is_file() && !(file.read_exact_at(&mut first, 0).is_ok() && is_gzip(&first));
    if is_plain { Source::new(file, Some(path)) } else { keep(name, &mut file, metadata.len()) }
        .map_err(Error::io(shown))
}

/// The first bytes of gzip (RFC 1952 §2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

fn is_gzip(beginning: &[u8]) -> bool {
    beginning.starts_with(&GZIP)
}

/// The name without the suffix `.gz`.
fn uncompressed(name: &Path) -> &Path {
    let is_gzip = name.extension().is_some_and(|suffix| suffix.eq_ignore_ascii_case("gz"));
    name.file_stem().filter(|_| is_gzip).map_or(name, Path::new)
}

/// Guesses the format from the first bytes, or else from the name.
fn guess(source: &Source, name: &Path) -> std::io::Result<Option<InputFormat>> {
    let mut begin = [0; 8];
    let mut reader = source.reader()?;
    let mut length = 0;
    while let Some(room) = begin.get_mut(length..).filter(|room| !room.is_empty()) {
        match reader.read(room)? {
            0 => break,
            count => length += count,
        }
    }
    let suffix = name.extension().map(|suffix| suffix.to_string_lossy().to_ascii_lowercase());
    Ok(match (begin.as_slice(), suffix.as_deref()) {
        ([b'P', b'A', b'R', b'1', ..], _) => Some(InputFormat::Parquet),
        ([b'A', b'R', b'R', b'O', b'W', b'1', ..], _) => Some(InputFormat::Arrow),
        ([0xff, 0xff, 0xff, 0xff, ..], _) => Some(InputFormat::Arrow),
        (_, Some("csv" | "tsv" | "txt")) => Some(InputFormat::Csv),
        (_, Some("ndjson" | "jsonl" | "json")) => Some(InputFormat::Ndjson),
        (_, Some("arrow" | "feather" | "arrows" | "ipc")) => Some(InputFormat::Arrow),
        (_, Some("parquet" | "pq")) => Some(InputFormat::Parquet),
        ([b'{', ..], _) => Some(InputFormat::Ndjson),
        _ => None,
    })
}

/// The columns that pandas' metadata name as the index of a frame.
fn index_of_pandas(schema: &Schema) -> Vec<String> {
    let told = schema.metadata().get("pandas").and_then(|text| serde_json::from_str(text).ok());
    let told: serde_json::Value = told.unwrap_or_default();
    let names = told["index_columns"].as_array().into_iter().flatten().filter_map(serde_json::Value::as_str);
    names.filter(|name| schema.fields().find(name).is_some()).map(str::to_owned).collect()
}

/// The differences between the fields of two schemas, one per line.
pub(super) fn difference(known: &Schema, found: &Schema) -> Vec<String> {
    let mut lines = Vec::new();
    let count = known.fields().len().max(found.fields().len());
    for at in 0..count {
        match (known.fields().get(at), found.fields().get(at)) {
            (Some(a), Some(b)) if a.name() == b.name() && is_same(a.data_type(), b.data_type()) => {}
            (Some(a), Some(b)) => lines.push(format!("{}, not {}", in_words(b), in_words(a))),
            (Some(a), None) => lines.push(format!("{} is missing", in_words(a))),
            (None, Some(b)) => lines.push(format!("{} is one more", in_words(b))),
            (None, None) => {}
        }
    }
    lines
}

fn in_words(field: &Field) -> String {
    format!("{:?} {}", field.name(), field.data_type())
}

fn is_same(a: &DataType, b: &DataType) -> bool {
    a.equals_datatype(b)
}

/// Number of rows in a batch, from the mean size of a row.
fn batch_rows(bytes: u64, rows: u64) -> usize {
    let each = (bytes / rows.max(1)).max(1);
    (BATCH / each).clamp(64, MOST_ROWS) as usize
}
