//! Writes rows of a command to standard output, or to a file or folder that appears once it is complete.

use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::{Args, ValueEnum};
use flate2::write::GzEncoder;
use parquet::basic::{Compression, ZstdLevel};

use super::Error;
use super::partial::Partial;
use super::place::Place;
use super::progress::{Out, Watched};
use crate::session::is_known;
use crate::source::{Interrupt, is_address};
use crate::store::Answer;
use crate::table::{Column, Table, did_you_mean, listed};
use crate::views::ipc::{IpcColumn, IpcView};
use crate::views::parquet::{CompressError, ParquetColumn, ParquetView, Partitioning, compress, partition};
use crate::views::text::{self, TextColumn, TextView};
use crate::views::{Effort, Misfit, Size, View};

/// Bytes of one write.
const PIECE: usize = 1 << 20;

/// Most bytes of a Parquet row group as in a mount; further rows go to another one.
const ROW_GROUP: u64 = 64 << 20;

/// Approximate bytes of rows to buffer for partitions before they are written.
const PARTITIONS: u64 = 256 << 20;

/// Options for columns and format of written rows.
#[derive(Clone, Debug, Args)]
pub(super) struct OutputOptions {
    /// Only these columns, in this order; names may have commas in them [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub columns: Vec<String>,

    /// Format of the rows [default: by the suffix of FILE: .csv, .tsv, .ndjson, .parquet, .pq, .arrow, .ipc, and text
    /// with .gz behind it; else csv]
    #[arg(long, value_enum)]
    pub format: Option<OutputFormat>,
}

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    /// Text with a header line
    Csv,
    /// A JSON object per line
    Ndjson,
    /// A Parquet file
    Parquet,
    /// An Arrow IPC file
    Arrow,
}

/// Settings for exported Parquet files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keeping {
    /// Compression of the columns.
    pub compression: Compression,
    /// Memory limit of the whole command, if given.
    pub memory: Option<u64>,
}

impl Keeping {
    /// Most bytes of a row group as in a mount, and of buffered rows of partitions.
    fn room(&self) -> [u64; 2] {
        [(ROW_GROUP, 16), (PARTITIONS, 4)]
            .map(|(most, part)| self.memory.map_or(most, |memory| most.min(memory / part)))
    }
}

/// Parses the compression of Parquet columns.
pub(super) fn compression(text: &str) -> Result<Compression, String> {
    let level = match text.split_once(':') {
        None if text == "zstd" => "3",
        Some(("zstd", level)) => level,
        None if text == "snappy" => return Ok(Compression::SNAPPY),
        None if text == "none" => return Ok(Compression::UNCOMPRESSED),
        _ => return Err("it is zstd, zstd:LEVEL, snappy or none".to_owned()),
    };
    let level = level.parse().ok().and_then(|level| ZstdLevel::try_new(level).ok());
    level.map(Compression::ZSTD).ok_or_else(|| "a level is a number from 1 to 22".to_owned())
}

impl OutputOptions {
    /// The requested format, or that of the name of `output`.
    ///
    /// # Errors
    /// If neither is known, or binary output would go to a terminal.
    pub fn format(&self, output: Option<&Path>) -> Result<OutputFormat, Error> {
        let format = match output.filter(|_| self.format.is_none()) {
            Some(output) => OutputFormat::of(output)?,
            None => self.format.unwrap_or(OutputFormat::Csv),
        };
        let is_binary = matches!(format, OutputFormat::Parquet | OutputFormat::Arrow);
        if let Some(output) = output.filter(|output| is_binary && is_gzip(output)) {
            let reason = "Parquet and Arrow files are never compressed as a whole: leave .gz out";
            return Err(refused(output, reason));
        }
        if is_binary && output.is_none() && io::stdout().is_terminal() {
            return Err(Error::Usage("this format is not for a terminal: send it to a file with `-o`".into()));
        }
        Ok(format)
    }

    /// Checks the requested columns. If all are wanted, prints to standard error which ones cannot be written.
    ///
    /// # Errors
    /// If a requested column does not exist, or is no part of the table's rows.
    pub fn check(&self, table: &Table) -> Result<(), Error> {
        if self.columns.is_empty() {
            for column in table.columns.iter().filter(|column| !column.in_table && !column.is_within_another) {
                say_left_out(column, &column.why_apart(table.rows));
            }
            return Ok(());
        }
        are_columns(table, "--columns", &self.columns)
    }

    /// The same options with the whole names of columns, which may contain commas, and with columns added if not all
    /// are wanted.
    pub fn of_table(&self, table: &Table, others: &[String]) -> Self {
        let mut columns = listed_columns(table, &self.columns);
        if !columns.is_empty() {
            let more: Vec<String> = others.iter().filter(|name| !columns.contains(name)).cloned().collect();
            columns.extend(more);
        }
        Self { columns, format: self.format }
    }

    /// Selects the columns that [`OutputOptions::check`] found, in the requested order.
    pub fn choose(&self, table: &mut Table) {
        if !self.columns.is_empty() {
            table.columns = self.chosen(table).into_iter().cloned().collect();
        }
    }

    /// The columns that [`OutputOptions::choose`] selects.
    pub fn chosen<'a>(&self, table: &'a Table) -> Vec<&'a Column> {
        if self.columns.is_empty() {
            return table.columns.iter().collect();
        }
        self.columns.iter().filter_map(|name| table.columns.iter().find(|column| column.name == *name)).collect()
    }
}

/// Splits a list of columns, whose names may contain commas.
pub(super) fn listed_columns(table: &Table, names: &[String]) -> Vec<String> {
    listed(names, table.columns.iter().map(|column| column.name.to_string()))
}

/// Checks that each name given by an option is a column of the table.
///
/// # Errors
/// Names the one that is not, with a suggestion.
pub(super) fn are_columns(table: &Table, option: &str, names: &[String]) -> Result<(), Error> {
    for name in names {
        match table.columns.iter().find(|column| column.name == *name) {
            Some(column) if column.in_table => {}
            Some(column) => {
                return Err(Error::Usage(format!("{option}: column {name:?}: {}", column.why_apart(table.rows))));
            }
            None => {
                let known = table.columns.iter().filter(|column| column.in_table);
                let known: Vec<_> = known.map(|column| column.name.to_string()).collect();
                let meant = did_you_mean(name, &known);
                let known = known.join(", ");
                return Err(Error::Usage(format!("{option}: there is no column {name:?}{meant}; columns: {known}")));
            }
        }
    }
    Ok(())
}

impl OutputFormat {
    /// The suffix of files in this format, without its dot.
    pub fn suffix(self) -> &'static str {
        match self {
            OutputFormat::Csv => "csv",
            OutputFormat::Ndjson => "ndjson",
            OutputFormat::Parquet => "parquet",
            OutputFormat::Arrow => "arrow",
        }
    }

    /// The format of a file name, which may also end with `.gz`.
    ///
    /// # Errors
    /// If the name has no known suffix.
    pub fn of(output: &Path) -> Result<Self, Error> {
        Ok(match text_suffix(output).as_deref() {
            Some("csv" | "tsv") => OutputFormat::Csv,
            Some("ndjson" | "jsonl" | "json") => OutputFormat::Ndjson,
            Some("parquet" | "pq") => OutputFormat::Parquet,
            Some("arrow" | "feather" | "ipc") => OutputFormat::Arrow,
            _ => {
                let formats = "its name ends with none of .csv, .tsv, .ndjson, .parquet and .arrow; give --format";
                return Err(refused(output, formats));
            }
        })
    }
}

fn suffix(path: &Path) -> Option<String> {
    path.extension().map(|suffix| suffix.to_string_lossy().to_ascii_lowercase())
}

/// Whether the name of a file says that it is gzip-compressed.
fn is_gzip(path: &Path) -> bool {
    suffix(path).is_some_and(|suffix| suffix == "gz")
}

/// The suffix of a file name in lower case, apart from `.gz`.
fn text_suffix(path: &Path) -> Option<String> {
    if is_gzip(path) { suffix(&path.with_extension("")) } else { suffix(path) }
}

/// The separator of CSV, if the file name implies one.
pub(super) fn separator_of(path: &Path) -> Option<char> {
    text_suffix(path).filter(|suffix| suffix == "tsv").map(|_| '\t')
}

/// The destination of rows.
pub(super) enum OutputTarget {
    /// Standard output.
    Standard,
    /// A file.
    File(Output),
    /// Files in a folder, one for each value of these columns.
    Folder(Output, Vec<String>),
}

/// A file or folder that is written completely or not at all.
pub(super) struct Output {
    path: PathBuf,
    /// Path of the file in messages.
    pub shown: PathBuf,
    /// The place for writing it; `None`: not a regular file, such as `/dev/null`.
    partial: Option<Partial>,
}

impl Output {
    /// A file to write. Refuses to replace a file of a known format, which might be the source.
    ///
    /// # Errors
    /// If there can be no such file.
    pub fn new(path: &Path) -> Result<Self, Error> {
        let shown = path.to_owned();
        // A link stays, and its target is replaced.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let known = fs::metadata(&path).ok();
        if known.as_ref().is_some_and(|known| known.is_dir()) {
            return Err(refused(&shown, "that is a folder"));
        }
        if is_known(&path) {
            return Err(refused(&shown, "that is an HDF5 file, or one of another known format"));
        }
        if let Some(reason) = no_place(&path) {
            return Err(refused(&shown, &reason));
        }
        let partial = Partial::beside(&path).ok_or_else(|| refused(&shown, "not a file"))?;
        Ok(Self { path, shown, partial: known.is_none_or(|known| known.is_file()).then_some(partial) })
    }

    /// A folder to write; an existing one must be empty.
    ///
    /// # Errors
    /// If there can be no such folder.
    pub fn folder(path: &Path) -> Result<Self, Error> {
        let shown = path.to_owned();
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        match fs::read_dir(&path).map(|mut entries| entries.next()) {
            Ok(None) => {}
            Ok(Some(_)) => return Err(refused(&shown, "files go to a folder that is empty, or not there yet")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(refused(&shown, &error.to_string())),
        }
        if let Some(reason) = no_place(&path) {
            return Err(refused(&shown, &reason));
        }
        let partial = Partial::beside(&path).ok_or_else(|| refused(&shown, "not a folder"))?;
        Ok(Self { path, shown, partial: Some(partial) })
    }

    /// Creates the folder; `fill` writes the files into the folder passed to it. Returns their total bytes.
    ///
    /// # Errors
    /// Those of `fill`, or if the folder cannot be created.
    pub fn fill(&self, fill: impl FnOnce(&Path) -> Result<(), Error>) -> Result<Option<u64>, Error> {
        let Some(place) = &self.partial else { return fill(&self.path).map(|()| None) };
        let (_locked, partial) = (place.folder().map_err(self.failed())?, place.path());
        let filled = fill(partial).map_err(|error| self.cut_short(error, bytes_below(partial)));
        let bytes = bytes_below(partial);
        let filled = filled.and_then(|()| fs::rename(partial, &self.path).map_err(self.failed()));
        if filled.is_err() {
            // The first error counts, so this one is ignored.
            fs::remove_dir_all(partial).ok();
        }
        filled.map(|()| Some(bytes))
    }

    /// Writes the file with `write`. Returns its length in bytes; `None`: not a regular file.
    ///
    /// # Errors
    /// Those of `write`, or if the file cannot be written.
    pub fn write(
        &self,
        write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), Error>,
    ) -> Result<Option<u64>, Error> {
        let Some(place) = &self.partial else {
            let mut file = OpenOptions::new().write(true).open(&self.path).map_err(self.failed())?;
            return self.encode(&mut file, write).map_err(|error| self.cut_short(error, 0)).map(|()| None);
        };
        let partial = place.path();
        let mut file = place.file().map_err(self.failed())?;
        let written = self.encode(&mut file, write);
        let bytes = file.metadata().map_or(0, |metadata| metadata.len());
        let written = written.map_err(|error| self.cut_short(error, bytes));
        let written = written.and_then(|()| fs::rename(partial, &self.path).map_err(self.failed()));
        if written.is_err() {
            // The first error counts, so this one is ignored.
            fs::remove_file(partial).ok();
        }
        written.map(|()| Some(bytes))
    }

    /// Writes into a file, through gzip if its name says so.
    fn encode(
        &self,
        file: &mut File,
        write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if !is_gzip(&self.shown) {
            return write(file);
        }
        let mut encoder = GzEncoder::new(file, flate2::Compression::default());
        write(&mut encoder)?;
        encoder.try_finish().map_err(Error::io("output"))
    }

    fn failed(&self) -> impl FnOnce(io::Error) -> Error {
        Error::io(format!("-o {}", self.shown.display()))
    }

    /// Adds the file's name, and the number of bytes written, to a system error.
    fn cut_short(&self, error: Error, bytes: u64) -> Error {
        match error {
            Error::Io { error, .. } if bytes > 0 => {
                Error::Io { what: format!("-o {}: {bytes} bytes were written", self.shown.display()), error }
            }
            Error::Io { error, .. } => self.failed()(error),
            error => error,
        }
    }
}

/// Total bytes of all files in a folder and its subfolders.
fn bytes_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
        metadata => metadata.map_or(0, |metadata| metadata.len()),
    });
    bytes.sum()
}

/// An output that cannot be written, and why.
fn refused(output: &Path, reason: &str) -> Error {
    Error::Usage(format!("-o {}: {reason}", output.display()))
}

/// The reason why a path cannot be created: it is an address, or its folder does not exist.
pub(super) fn no_place(path: &Path) -> Option<String> {
    if is_address(path) {
        return Some("hepfs writes local files only".into());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir())?;
    Some(format!("there is no folder {}", folder.display()))
}

fn say_left_out(column: &Column, reason: &str) {
    say!("hepfs: column {:?} is left out: {reason}", column.name);
}

/// The part of a command's work that writing a table is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// Units done before.
    pub before: u64,
    /// Units that a row stands for.
    pub row: u64,
}

/// Writes the rows of a table as in a mount; with `keeping`, Parquet is encoded for export. A column that the format
/// cannot represent is left out, with a message. Returns the bytes of a kept file.
///
/// # Errors
/// If rows cannot be read or written.
pub(super) fn write(
    table: &Table,
    (format, keeping): (OutputFormat, Option<Keeping>),
    target: &OutputTarget,
    place: &Place,
    (watched, share): (&Watched, Share),
) -> Result<Option<u64>, Error> {
    let done = Arc::<AtomicU64>::default();
    let written_rows = done.clone();
    watched.follow(move || {
        let values = written_rows.load(Ordering::Relaxed).saturating_mul(share.row);
        (share.before.saturating_add(values), None)
    });
    let writing = Writing { table, place, interrupt: &watched.interrupt, done: &done };
    match target {
        OutputTarget::Standard => {
            let written = writing.write((format, keeping), &mut Out::new());
            written.map(|()| None).map_err(|error| match error {
                Error::Io { error, .. } => Error::io("standard output")(error),
                error => error,
            })
        }
        OutputTarget::File(output) => output.write(|out| writing.write((format, keeping), out)),
        OutputTarget::Folder(output, by) => writing.partitioned(output, by, keeping),
    }
}

/// Writes the rows of a table.
struct Writing<'a> {
    table: &'a Table,
    place: &'a Place,
    interrupt: &'a Interrupt,
    /// Rows written.
    done: &'a AtomicU64,
}

impl Writing<'_> {
    fn write(
        &self,
        (format, keeping): (OutputFormat, Option<Keeping>),
        out: &mut (dyn Write + Send),
    ) -> Result<(), Error> {
        match format {
            OutputFormat::Csv => self.copy(&self.text(text::TextFormat::Csv), out),
            OutputFormat::Ndjson => self.copy(&self.text(text::TextFormat::Ndjson), out),
            OutputFormat::Parquet => {
                let view = self.parquet(ParquetColumn::new)?;
                let Some(keeping) = keeping else { return self.copy(&view, out) };
                let [row_group, _] = keeping.room();
                compress(view, keeping.compression, row_group, out, self.done, self.interrupt)
                    .map_err(|error| self.uncompressed(error))
            }
            OutputFormat::Arrow => {
                let columns = written(self.table, IpcColumn::new);
                crate::views::ipc::check(&columns).map_err(|misfit| self.refused(&misfit))?;
                self.copy(&IpcView::new(columns, self.place.session.blocks.clone(), None), out)
            }
        }
    }

    /// Writes Parquet files into a folder, one for each value of the columns `by`.
    fn partitioned(&self, output: &Output, by: &[String], keeping: Option<Keeping>) -> Result<Option<u64>, Error> {
        let view = self.parquet(|column| {
            // A row label that only names partitions is no column of the files, so it cannot label their rows.
            let is_label = column.is_label && !by.iter().any(|name| column.name == *name);
            ParquetColumn::new(&Column { is_label, ..column.clone() })
        })?;
        let keeping = keeping.unwrap_or(Keeping { compression: Compression::UNCOMPRESSED, memory: None });
        let [_, memory] = keeping.room();
        output.fill(|folder| {
            let how = Partitioning {
                by,
                compression: keeping.compression,
                memory,
                create: &|directory| {
                    let directory = folder.join(directory);
                    fs::create_dir_all(&directory)?;
                    File::create_new(directory.join("part-0.parquet"))
                },
            };
            partition(view, &how, self.done, self.interrupt).map_err(|error| self.uncompressed(error))
        })
    }

    fn text(&self, format: text::TextFormat) -> TextView {
        let columns = written(self.table, |column| Ok(TextColumn::new(column.name.clone(), column.shown()?)));
        let session = &self.place.session;
        TextView::new(columns, format, &session.csv, None, session.blocks.clone(), None)
    }

    fn parquet(&self, make: impl Fn(&Column) -> Result<ParquetColumn, Misfit>) -> Result<ParquetView, Error> {
        let columns = written(self.table, make);
        ParquetView::check(&columns).map_err(|misfit| self.refused(&misfit))?;
        Ok(ParquetView::new(columns, self.place.session.blocks.clone()))
    }

    /// Writes the bytes of a file of a mount.
    fn copy(&self, view: &dyn View, out: &mut dyn Write) -> Result<(), Error> {
        view.size(Effort::Quick, self.interrupt).map_err(|error| self.place.failed(error.into()))?;
        let (mut piece, mut offset) = (Vec::with_capacity(PIECE), 0);
        loop {
            piece.clear();
            let mut answer = Answer::in_memory(piece);
            let gathered = view.gather(offset, PIECE, &mut answer, self.interrupt);
            gathered.map_err(|error| self.place.failed(error.into()))?;
            piece = answer.into_made();
            if piece.is_empty() {
                return out.flush().map_err(Error::io("output"));
            }
            out.write_all(&piece).map_err(Error::io("output"))?;
            offset += piece.len() as u64;
            let rows = self.table.rows as f64 * part(view, offset, self.interrupt);
            self.done.store(rows as u64, Ordering::Relaxed);
        }
    }

    fn uncompressed(&self, error: CompressError) -> Error {
        match error {
            CompressError::Rows(error) => self.place.failed(error.into()),
            CompressError::Output(error) => Error::io("output")(error),
            CompressError::Format(reason) => self.refused(&reason),
        }
    }

    fn refused(&self, reason: &dyn Display) -> Error {
        Error::Usage(format!("{}: {reason}", self.place.name))
    }
}

/// The part of a view's rows that its first `offset` bytes show.
fn part(view: &dyn View, offset: u64, interrupt: &Interrupt) -> f64 {
    let (done, all) = match (view.size(Effort::Known, interrupt), view.progress()) {
        // Blocks of equally many rows, each of which is known once it is written.
        (Ok(Size::AtMost(_)), Some(blocks)) => (blocks.done, blocks.all),
        (size, _) => (offset, size.map_or(0, Size::bytes)),
    };
    done as f64 / all.max(1) as f64
}

/// The columns that can be written; the others are named on standard error.
fn written<T>(table: &Table, make: impl Fn(&Column) -> Result<T, Misfit>) -> Vec<T> {
    let columns = table.columns.iter();
    columns.filter_map(|column| make(column).map_err(|reason| say_left_out(column, &reason.to_string())).ok()).collect()
}
