//! `hepfs query SOURCE:table EXPRESSION`: the rows of a table that satisfy an expression, without a mount.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, ValueEnum};

use crate::cli::Error;
use crate::cli::options::{Reading, Showing};
use crate::cli::place::Place;
use crate::cli::progress::Watched;
use crate::cli::signals::INTERRUPTED;
use crate::cli::tables::table_of;
use crate::fs::tree::{is_known, printable};
use crate::query::{self, Bound, Explained, Selection, SortError, expression};
use crate::source::Interrupt;
use crate::table::{Column, Table, did_you_mean};
use crate::views::View;
use crate::views::ipc::{IpcColumn, IpcView};
use crate::views::parquet::{ParquetColumn, ParquetView};
use crate::views::text::{self, TextColumn, TextView};

/// Bytes written at once.
const PIECE: usize = 1 << 20;

/// Rows of a table that are looked through first for a few; then eight times as many.
const FIRST_ROWS: u64 = 1 << 18;

/// Write the rows of a table that satisfy an expression, without mounting
///
/// Conditions are = != < <= > >=, between, in, like 'abc%' and is null, joined by and, or, not and parentheses; a
/// column of booleans may stand alone. Texts and dates stand in quotes; names of columns that are no words stand in
/// backquotes, and fields of compounds behind a point: position.x. A missing value satisfies `is null` alone, as in
/// SQL; labels and names of enumerations are texts. `order by COLUMN [desc], ...` and `limit N` may follow, or stand
/// alone.
///
/// Stretches of 65,536 rows in which no row can match are skipped where the least and largest values are known: `hepfs
/// prepare --stats` learns them, and so does a query that reads a column in full. Search indexes of the file help as
/// well, once `hepfs index verify` has found them right. `-v` says what helped. The exit code is 130 where Ctrl-C ended
/// it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hepfs query run.h5:run_042 'energy > 5 and label = \"electron\"'\n  \
    hepfs query run.h5:run_042 \"ts >= '2026-01-01' and hit order by energy desc limit 10\"\n  \
    hepfs query run.h5:run_042 'position.x between 100 and 200' --columns ts,energy -o part.parquet")]
pub(in crate::cli) struct Arguments {
    /// An HDF5 file or a folder, and the path of a table in it as a mount would show it
    #[arg(value_name = "SOURCE[:PATH]")]
    place: OsString,

    /// What rows must satisfy, their order, how many
    #[arg(value_name = "EXPRESSION")]
    expression: String,

    /// Too much, to be told what to do about it.
    #[arg(hide = true)]
    more: Vec<OsString>,

    /// Only these columns, in this order [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    columns: Vec<String>,

    /// How rows are written [default: as the suffix of FILE says; else csv]
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// Write to this file, which is there once it is whole; one of this name is replaced
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    reading: Reading,

    #[command(flatten)]
    showing: Showing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text with a line of names
    Csv,
    /// A JSON object a line
    Ndjson,
    /// A Parquet file
    Parquet,
    /// An Arrow IPC file
    Arrow,
}

impl Arguments {
    fn format(&self) -> Result<Format, Error> {
        let Some(output) = self.output.as_ref().filter(|_| self.format.is_none()) else {
            return Ok(self.format.unwrap_or(Format::Csv));
        };
        let suffix = output.extension().map(|suffix| suffix.to_string_lossy().to_ascii_lowercase());
        Ok(match suffix.as_deref() {
            Some("csv") => Format::Csv,
            Some("ndjson" | "jsonl" | "json") => Format::Ndjson,
            Some("parquet") => Format::Parquet,
            Some("arrow" | "feather") => Format::Arrow,
            _ => {
                let formats = "its name ends neither with .csv, .ndjson, .parquet nor .arrow; say --format";
                return Err(Error::Usage(format!("-o {}: {formats}", output.display())));
            }
        })
    }
}

pub(in crate::cli) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    if !arguments.more.is_empty() {
        let one = "a query takes one SOURCE and one EXPRESSION in quotes; of several files in turn:";
        let example = "for file in *.h5; do hepfs query \"$file\" 'energy > 5'; done";
        return Err(Error::Usage(format!("{one} {example}")));
    }
    let format = arguments.format()?;
    let is_binary = matches!(format, Format::Parquet | Format::Arrow);
    if is_binary && arguments.output.is_none() && std::io::stdout().is_terminal() {
        return Err(Error::Usage("this format is none for a terminal: send it to a file with `-o`".into()));
    }
    let interrupt = Interrupt::new();
    let context = arguments.reading.context(arguments.showing.views()?)?;
    let place = Place::open(&arguments.place, context, &interrupt)?;
    let table = table_of(&place, true, &interrupt)?;
    let explained = |error: query::Error| Error::Usage(explained(&arguments.expression, &error));
    let query = expression::query(&arguments.expression).map_err(explained)?;
    let wanted = wanted(&table, &arguments.columns)?;
    let output = arguments.output.as_deref().map(Output::new).transpose()?;

    // Without an order, the first rows that match are found without a look at those behind them.
    let most = query.limit.filter(|_| query.order.is_empty());
    let mut rows = most.map_or(table.rows, |_| table.rows.min(FIRST_ROWS));
    let outcome = loop {
        let bound = Bound::trusting(&table, &query.predicate, place.context.trust).map_err(explained)?;
        let (outcome, found) = look(&table, rows, bound, &place, &interrupt, |selection, finished| {
            let selected = selection.selected(&interrupt).map_err(|error| place.failed(error.into()))?;
            if most.is_some_and(|most| selected.len() < most) && rows < table.rows {
                return Ok(false);
            }
            let mut filtered = query::filtered(&table, &selected, &arguments.expression);
            let places = if query.order.is_empty() {
                None
            } else {
                let store = &place.context.store;
                let places = query::places(&filtered, &query.order, query.limit, store, &interrupt);
                Some(places.map_err(|error| match error {
                    SortError::Rows(error) => place.failed(error.into()),
                    SortError::Query(error) => explained(error),
                })?)
            };
            if let Some(wanted) = wanted {
                let columns = wanted.iter().filter_map(|name| filtered.columns.iter().find(|c| c.name == *name));
                filtered.columns = columns.cloned().collect();
            }
            if let Some(places) = places {
                let held = query::held(filtered, &places, &place.context.store, &interrupt);
                filtered = held.map_err(|error| place.failed(error.into()))?;
            } else if let Some(most) = most {
                query::first(&mut filtered, most);
            }
            let view = view(&filtered, format, &place)?;
            // A bar beside the text of rows would be in the way.
            finished();
            match &output {
                Some(output) => output.write(|out| write(view.as_ref(), out, &interrupt, &place))?,
                None => {
                    let mut out = std::io::stdout().lock();
                    write(view.as_ref(), &mut out, &interrupt, &place)?;
                }
            }
            Ok(true)
        })?;
        match outcome {
            Ok(false) => rows = table.rows.min(rows.saturating_mul(8)),
            outcome => {
                if let Some(found) = found {
                    explain(&found);
                }
                break outcome;
            }
        }
    };
    if interrupt.is_raised() {
        eprintln!("hepfs: interrupted");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    outcome.map(|_| ExitCode::SUCCESS)
}

/// Does something with the rows among the first `rows` that are selected; also tells what was done to find them.
fn look<T>(
    table: &Table,
    rows: u64,
    bound: Bound,
    place: &Place,
    interrupt: &Interrupt,
    act: impl FnOnce(&Selection, &dyn Fn()) -> Result<T, Error>,
) -> Result<(Result<T, Error>, Option<Explained>), Error> {
    let selection = Selection::new(&table.path, rows, bound, &place.context.store, None);
    let selection = Arc::new(selection.map_err(|error| place.failed(error.into()))?);
    let of_bar = selection.clone();
    let watched = Watched::new(interrupt.clone(), selection.progress().all, move || of_bar.progress().done)?;
    let outcome = act(&selection, &|| watched.finish());
    drop(watched);
    Ok((outcome, selection.explained()))
}

/// A file that is written whole or not at all.
struct Output {
    path: PathBuf,
    /// Beside it; `None` where it is no regular file, as `/dev/null`.
    partial: Option<PathBuf>,
}

impl Output {
    /// What is of a format that is known is never written to: it may be the source.
    fn new(path: &Path) -> Result<Self, Error> {
        let refuse = |reason: &str| Error::Usage(format!("-o {}: {reason}", path.display()));
        // A link stays, and what it leads to is replaced.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let known = std::fs::metadata(&path).ok();
        if known.as_ref().is_some_and(|known| known.is_dir()) {
            return Err(refuse("that is a folder"));
        }
        if is_known(&path) {
            return Err(refuse("that is an HDF5 file, or of another format that is known"));
        }
        let name = path.file_name().ok_or_else(|| refuse("that is no file"))?;
        let partial = format!(".{}.hepfs-{}", name.to_string_lossy(), std::process::id());
        let partial = known.is_none_or(|known| known.is_file()).then(|| path.with_file_name(partial));
        Ok(Self { path, partial })
    }

    fn write(&self, write: impl FnOnce(&mut dyn Write) -> Result<(), Error>) -> Result<(), Error> {
        let failed = |path: &Path| Error::io(format!("-o {}", path.display()));
        let Some(partial) = &self.partial else {
            let mut file = OpenOptions::new().write(true).open(&self.path).map_err(failed(&self.path))?;
            return write(&mut file);
        };
        let mut file = OpenOptions::new().write(true).create_new(true).open(partial).map_err(failed(partial))?;
        let written = write(&mut file).and_then(|()| std::fs::rename(partial, &self.path).map_err(failed(&self.path)));
        if written.is_err() {
            // What failed first is what is said.
            std::fs::remove_file(partial).ok();
        }
        written
    }
}

/// Where in the expression something makes no sense, and what.
fn explained(expression: &str, error: &query::Error) -> String {
    let (before, rest) = expression.split_at_checked(error.position()).unwrap_or((expression, ""));
    let place = if rest.is_empty() { "at the end".to_owned() } else { format!("at {rest:?}") };
    format!("expression, character {} ({place}): {error}", before.chars().count() + 1)
}

/// Says with `-v` what was done to find the rows.
fn explain(explained: &Explained) {
    tracing::info!(
        "{} blocks of 65,536 rows: {} without a match, {} that match whole, {} told by search indexes, \
         {} decoded ({} bytes)",
        explained.blocks,
        explained.blocks_without,
        explained.blocks_within,
        explained.blocks_answered,
        explained.blocks_decoded,
        explained.bytes_decoded,
    );
    for index in &explained.indexes {
        tracing::info!(
            "{} {} of {}: {} blocks",
            index.kind,
            printable(&index.path),
            printable(&index.column),
            index.blocks
        );
    }
}

/// The columns to write; `None` is all that have the table's rows. The others are named on standard error.
fn wanted<'a>(table: &Table, names: &'a [String]) -> Result<Option<&'a [String]>, Error> {
    if names.is_empty() {
        for column in table.columns.iter().filter(|column| !column.in_table) {
            say_left_out(column, &apart(table, column));
        }
        return Ok(None);
    }
    for name in names {
        match table.columns.iter().find(|column| column.name == *name) {
            Some(column) if column.in_table => {}
            Some(column) => return Err(Error::Usage(format!("--columns: column {name:?}: {}", apart(table, column)))),
            None => {
                let known = table.columns.iter().filter(|column| column.in_table);
                let known: Vec<_> = known.map(|column| column.name.to_string()).collect();
                let meant = did_you_mean(name, &known);
                let known = known.join(", ");
                return Err(Error::Usage(format!("--columns: there is no column {name:?}{meant}; columns: {known}")));
            }
        }
    }
    Ok(Some(names))
}

/// Why a column does not stand in the table.
fn apart(table: &Table, column: &Column) -> String {
    match &column.rows {
        Ok(rows) => format!("it has {} rows, the table {}", rows.len(), table.rows),
        Err(reason) => reason.clone(),
    }
}

fn say_left_out(column: &Column, reason: &str) {
    eprintln!("hepfs: column {:?} is left out: {reason}", column.name);
}

/// The file that a mount would show of the table. A column that has no place in it is left out, and said to be.
fn view(table: &Table, format: Format, place: &Place) -> Result<Box<dyn View>, Error> {
    let refused = |reason: String| Error::Usage(format!("{}: {reason}", place.name));
    let context = &place.context;
    let text = |format| {
        let column = |column: &Column| Ok(TextColumn::new(column.name.clone(), column.shown()?));
        TextView::new(written(table, column), format, &context.csv, None, context.blocks.clone(), None)
    };
    Ok(match format {
        Format::Csv => Box::new(text(text::Format::Csv)),
        Format::Ndjson => Box::new(text(text::Format::Ndjson)),
        Format::Parquet => {
            let columns = written(table, ParquetColumn::new);
            ParquetView::check(&columns).map_err(refused)?;
            Box::new(ParquetView::new(columns, context.blocks.clone()))
        }
        Format::Arrow => {
            let columns = written(table, IpcColumn::new);
            crate::views::ipc::check(&columns).map_err(refused)?;
            Box::new(IpcView::new(columns, context.blocks.clone(), None))
        }
    })
}

/// The columns that can be written; the others are named on standard error.
fn written<T>(table: &Table, make: impl Fn(&Column) -> Result<T, String>) -> Vec<T> {
    let made = |column: &Column| make(column).map_err(|reason| say_left_out(column, &reason)).ok();
    table.columns.iter().filter_map(made).collect()
}

fn write(view: &dyn View, out: &mut dyn Write, interrupt: &Interrupt, place: &Place) -> Result<(), Error> {
    let mut offset = 0;
    let mut piece = Vec::with_capacity(PIECE);
    loop {
        piece.clear();
        view.read(offset, PIECE, &mut piece, interrupt).map_err(|error| place.failed(error.into()))?;
        if piece.is_empty() {
            return out.flush().map_err(Error::io("output"));
        }
        out.write_all(&piece).map_err(Error::io("output"))?;
        offset += piece.len() as u64;
    }
}
