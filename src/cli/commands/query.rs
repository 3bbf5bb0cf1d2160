//! `hepfs query SOURCE:table EXPRESSION`: the rows of a table that satisfy an expression, without a mount.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, ValueEnum};

use crate::cli::Error;
use crate::cli::options::{Reading, Showing};
use crate::cli::place::Place;
use crate::cli::progress::Watched;
use crate::cli::signals::INTERRUPTED;
use crate::fs::tree::printable;
use crate::query::{self, Bound, Explained, Selection, expression};
use crate::source::Interrupt;
use crate::table::{Column, Table};
use crate::views::View;
use crate::views::ipc::{IpcColumn, IpcView};
use crate::views::parquet::{ParquetColumn, ParquetView};
use crate::views::text::{self, TextColumn, TextView};

/// Bytes written at once.
const PIECE: usize = 1 << 20;

/// Write the rows of a table that satisfy an expression, without mounting
///
/// Conditions are = != < <= > >=, between, in, like 'abc%' and is null, joined by and, or, not and parentheses. Texts
/// stand in quotes; names of columns that are no words stand in backquotes. A missing value satisfies `is null` alone,
/// as in SQL; labels and names of enumerations are texts.
///
/// Stretches of 65,536 rows in which no row can match are skipped where the least and largest values are known: `hepfs
/// prepare --stats` learns them, and so does a query that reads a column in full. Search indexes of the file help as
/// well, once `hepfs index verify` has found them right. `-v` says what helped. The exit code is 130 where Ctrl-C ended
/// it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hepfs query run.h5:run_042 'energy > 5 and label = \"electron\"'\n  \
    hepfs query run.h5:run_042 'ts between 100 and 200' --columns ts,energy --format parquet > part.parquet")]
pub(in crate::cli) struct Arguments {
    /// An HDF5 file or a folder, and the path of a table in it as a mount would show it
    #[arg(value_name = "SOURCE[:PATH]")]
    place: String,

    /// What rows must satisfy
    #[arg(value_name = "EXPRESSION")]
    expression: String,

    /// Only these columns, in this order [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    columns: Vec<String>,

    /// How rows are written
    #[arg(long, value_enum, default_value_t = Format::Csv)]
    format: Format,

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

pub(in crate::cli) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let is_binary = matches!(arguments.format, Format::Parquet | Format::Arrow);
    if is_binary && std::io::stdout().is_terminal() {
        return Err(Error::Usage("this format is none for a terminal: send it to a file with `>`".into()));
    }
    let interrupt = Interrupt::new();
    let context = arguments.reading.context(arguments.showing.views()?)?;
    let place = Place::open(&arguments.place, context, &interrupt)?;
    let table = place.table(&interrupt)?;
    let explained = |error: query::Error| Error::Usage(explained(&arguments.expression, &error));
    let predicate = expression::parse(&arguments.expression).map_err(explained)?;
    let bound = Bound::trusting(&table, &predicate, place.context.trust).map_err(explained)?;
    let failed = |error: crate::store::Error| place.failed(error.into());
    let selection = Selection::new(&table.path, table.rows, bound, &place.context.store, None).map_err(failed)?;
    let wanted = wanted(&table, &arguments.columns)?;

    let selection = Arc::new(selection);
    let of_bar = selection.clone();
    let watched = Watched::new(interrupt.clone(), selection.progress().all, move || of_bar.progress().done)?;
    let outcome = selection.selected(&interrupt).map_err(failed).and_then(|selected| {
        let mut filtered = query::filtered(&table, &selected, &arguments.expression);
        if let Some(wanted) = wanted {
            let columns = wanted.iter().filter_map(|name| filtered.columns.iter().find(|column| column.name == *name));
            filtered.columns = columns.cloned().collect();
        }
        let view = view(&filtered, arguments.format, &place)?;
        // A bar beside the text of rows would be in the way.
        watched.finish();
        write(view.as_ref(), &interrupt, &place)
    });
    drop(watched);
    if let Some(explained) = selection.explained() {
        explain(&explained);
    }
    if interrupt.is_raised() {
        eprintln!("hepfs: interrupted");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    outcome.map(|()| ExitCode::SUCCESS)
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
                let known = known.join(", ");
                return Err(Error::Usage(format!("--columns: there is no column {name:?}; columns: {known}")));
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
        let column = |column: &Column| Ok(TextColumn::new(column.name.clone(), column.rows.clone()?));
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

fn write(view: &dyn View, interrupt: &Interrupt, place: &Place) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    let mut offset = 0;
    let mut piece = Vec::with_capacity(PIECE);
    loop {
        piece.clear();
        view.read(offset, PIECE, &mut piece, interrupt).map_err(|error| place.failed(error.into()))?;
        if piece.is_empty() {
            return out.flush().map_err(Error::io("standard output"));
        }
        out.write_all(&piece).map_err(Error::io("standard output"))?;
        offset += piece.len() as u64;
    }
}
