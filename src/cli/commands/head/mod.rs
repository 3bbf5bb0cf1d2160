//! `hepfs head SOURCE:TABLE`: the first rows of a table, to look at.

mod grid;
mod records;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use clap::Args;

use crate::activity::words::{bytes, count, counted};
use crate::cli::Error;
use crate::cli::options::{ColourOption, NanOption, ReadingOptions, ShownTimes};
use crate::cli::place::{Place, short_name};
use crate::cli::progress::{Out, Watched};
use crate::cli::rows::OutputOptions;
use crate::cli::signals::INTERRUPTED;
use crate::cli::tables::table_of;
use crate::cli::terminal::{Ink, Terminal, width};
use crate::session::Settings;
use crate::source::Interrupt;
use crate::store::{self, Rows};
use crate::table::{Column, Table, arrow_name};
use crate::views::page::{instant, is_number};
use crate::views::printable;
use crate::views::text::{TextFormat, TextLayout};

/// Most bytes of arrays to make at a time.
const PIECE: u64 = 16 << 20;

/// Bytes above which a value is shown by its size.
const LARGE: u64 = 4 * PIECE;

/// Most columns that a value takes, wherever it is written to.
const LONGEST: usize = 1000;

/// The text of a missing value.
const NULL: &str = "NULL";

/// Show the first rows of a table, as wide as the terminal
///
/// Columns for which there is no room are left out in their middle. Where standard output is no terminal, lines are as
/// long as `COLUMNS` says, else of any length. NULL is a missing value; a text that reads NULL is quoted. `hepfs query
/// TABLE 'limit 10'` writes the same rows as CSV; with `--format` as JSON, Parquet or Arrow.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hepfs head run.h5:run_042\n  \
    hepfs head run.h5:run_042 --columns ts,energy --rows 20\n  hepfs head run.h5:run_042 --rows 1 --vertical")]
pub(in crate::cli) struct Arguments {
    /// An HDF5 file or folder, and the path of a table in it as a mount would show it
    #[arg(value_name = "SOURCE[:PATH]")]
    place: OsString,

    /// Number of rows at most
    #[arg(long, value_name = "ROWS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(..=10_000))]
    rows: u64,

    /// Only these columns, in this order; names may have commas in them [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    columns: Vec<String>,

    /// A block of lines for each row, a line for each column
    #[arg(long)]
    vertical: bool,

    #[command(flatten)]
    colours: ColourOption,

    #[command(flatten)]
    reading: ReadingOptions,

    #[command(flatten)]
    shown_times: ShownTimes,

    #[command(flatten)]
    nan: NanOption,
}

pub(in crate::cli) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let watched = Watched::new(short_name(&arguments.place), "reading")?;
    let interrupt = &watched.interrupt;
    let outcome = show(arguments, &watched);
    if interrupt.is_raised() {
        say!("hepfs: interrupted");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    outcome
}

fn show(arguments: &Arguments, watched: &Watched) -> Result<ExitCode, Error> {
    let (times, nan) = (arguments.shown_times.are_instants(), arguments.nan.policy());
    let session = arguments.reading.session(Settings { times, nan, ..Settings::default() })?;
    let place = Place::open(&arguments.place, session, &watched.interrupt)?;
    let table = table_of(&place, true, watched)?;
    let wanted = OutputOptions { columns: arguments.columns.clone(), format: None }.of_table(&table, &[]);
    wanted.check(&table)?;
    let columns: Vec<&Column> = wanted.chosen(&table).into_iter().filter(|column| column.in_table).collect();
    let terminal = Terminal::of_output(arguments.colours.when);
    let rows = if columns.is_empty() { 0 } else { arguments.rows.min(table.rows) };
    let sample = Sample { columns: &columns, rows, terminal: &terminal, watched };
    let (text, shown) = if arguments.vertical { records::text(&sample, table.rows)? } else { grid::text(&sample)? };
    let footer = footer(&table, &sample, shown.len());
    let mut out = Out::new();
    let footer = terminal.line(&[(Ink::Faint, footer.into())]);
    writeln!(out, "{text}{footer}").map_err(Error::io("standard output"))?;
    let unreadable: Vec<&Cells> = shown.iter().filter(|cells| cells.failure.is_some()).collect();
    for cells in &unreadable {
        let reason = cells.failure.as_deref().unwrap_or_default();
        say!("hepfs: {}", printable(&format!("column {:?} cannot be read: {reason}", cells.name)));
    }
    Ok(if unreadable.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The last line: rows and columns of the table, and the shown ones if these are fewer.
fn footer(table: &Table, sample: &Sample<'_>, columns: usize) -> String {
    let columns = (sample.columns.len() as u64, columns as u64, "column");
    [(table.rows, sample.rows, "row"), columns]
        .map(|(all, shown, name)| match counted(all, name) {
            all_of_them if shown < all => format!("{all_of_them} ({} shown)", count(shown)),
            all_of_them => all_of_them,
        })
        .join(", ")
}

/// The first rows of some columns.
struct Sample<'a> {
    columns: &'a [&'a Column],
    rows: u64,
    terminal: &'a Terminal,
    watched: &'a Watched,
}

/// A column of the sample, as text that can be shown.
struct Cells {
    name: String,
    data_type: String,
    units: String,
    /// Whether values end at one column of the terminal, as numbers do.
    is_right: bool,
    /// The values; `None`: missing.
    values: Vec<Option<String>>,
    /// Why there are no values: they cannot be read.
    failure: Option<String>,
}

impl Sample<'_> {
    /// Reads a column.
    ///
    /// # Errors
    /// If the request was interrupted.
    fn read(&self, column: &Column) -> Result<Cells, Error> {
        let interrupt = &self.watched.interrupt;
        let mut cells = Cells {
            name: self.terminal.shown(&column.name.to_string()),
            data_type: String::new(),
            units: String::new(),
            is_right: false,
            values: Vec::new(),
            failure: None,
        };
        let rows = match column.shown() {
            Ok(rows) => rows,
            Err(reason) => {
                cells.failure = Some(reason.to_string());
                return Ok(cells);
            }
        };
        cells.data_type = self.terminal.shown(&arrow_name(rows.data_type()));
        cells.units = self.terminal.shown(column.shown_units().unwrap_or_default());
        cells.is_right = is_number(rows.data_type());
        match self.values(rows.as_ref(), interrupt) {
            Ok(values) => cells.values = values,
            Err(_) if interrupt.is_raised() => return Err(Error::Usage("interrupted".into())),
            Err(error) => cells.failure = Some(error.to_string()),
        }
        self.watched.add(1);
        Ok(cells)
    }

    fn values(&self, rows: &dyn Rows, interrupt: &Interrupt) -> Result<Vec<Option<String>>, store::Error> {
        let (mut values, mut start) = (Vec::new(), 0);
        while start < self.rows {
            let fitting = rows.fitting(start..self.rows, PIECE, interrupt)?;
            let end = fitting.end.max(start + 1);
            // A value of this size takes long to decode, and no person reads it.
            if fitting.bytes > LARGE {
                values.extend((start..end).map(|_| Some(format!("({})", bytes(fitting.bytes)))));
            } else {
                self.append(&rows.array(start..end, interrupt)?, &mut values)?;
            }
            start = end;
        }
        Ok(values)
    }

    /// Appends the text of each value. A text that reads as a missing one, or as nothing, is quoted.
    fn append(&self, array: &ArrayRef, values: &mut Vec<Option<String>>) -> Result<(), store::Error> {
        let name = bstr::BString::default();
        let layout = TextLayout::new(TextFormat::Verbatim, [&name]);
        let nulls = array.logical_nulls();
        let mut text = Vec::new();
        for row in 0..array.len() {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                values.push(None);
                continue;
            }
            text.clear();
            let rendered = layout.render(&[array.slice(row, 1)], &mut text);
            rendered.map_err(|error| store::Error::unsupported(String::new(), error))?;
            // A list may be longer than any line.
            let beginning = String::from_utf8_lossy(&text[..text.len().min(4 * LONGEST)]);
            let value = match array.data_type() {
                DataType::Timestamp(..) => instant(&beginning),
                _ => self.terminal.shown(&beginning),
            };
            let is_clear = !value.trim_matches(' ').is_empty() && value.trim_matches(' ').len() == value.len();
            let value = if is_clear && value != NULL { value } else { format!("\"{value}\"") };
            values.push(Some(self.terminal.clipped(&value, LONGEST).into_owned()));
        }
        Ok(())
    }
}

impl Cells {
    /// Columns of the heading.
    fn heading(&self) -> usize {
        [&self.name, &self.data_type, &self.units].map(|text| width(text)).into_iter().max().unwrap_or(0)
    }

    /// Columns of the longest value.
    fn values_width(&self) -> usize {
        self.values.iter().map(|value| width(value.as_deref().unwrap_or(NULL))).max().unwrap_or(0)
    }

    /// Columns of the longest text.
    fn width(&self) -> usize {
        self.values_width().max(self.heading())
    }
}
