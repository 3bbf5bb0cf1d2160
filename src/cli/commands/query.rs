//! `hepfs query SOURCE:table EXPRESSION`: prints the rows of a table that satisfy an expression, without a mount.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;

use crate::activity::Unit;
use crate::cli::Error;
use crate::cli::options::{ReadingOptions, Showing};
use crate::cli::place::{Place, short_name};
use crate::cli::progress::Watched;
use crate::cli::rows::{self, Keeping, Output, OutputFormat, OutputOptions, OutputTarget, Share};
use crate::cli::signals::INTERRUPTED;
use crate::cli::tables::table_of;
use crate::query::{self, BoundPredicate, Explained, Predicate, Query, Selection, SortError, Steps, expression};
use crate::source::is_address;
use crate::store;
use crate::table::Table;
use crate::views::printable;

/// Number of rows to search first if only a few results are wanted; each further search takes eight times as many.
const FIRST_ROWS: u64 = 1 << 18;

/// Write the rows of a table that satisfy an expression, without mounting
///
/// Conditions are = != < <= > >=, between, in, like '%abc_', is null and is nan, joined by and, or, not, parentheses; a
/// column of booleans may stand alone. Texts, dates and lengths of time ('10 min') are quoted; names of columns that
/// are no words stand in backquotes, and fields of compounds behind a point: position.x. A missing value satisfies `is
/// null` alone, as in SQL, but `is nan` too if it is stored as NaN. Labels and names of enumerations are text; ordered
/// categories have their order. `order by COLUMN [desc], ...` and `limit N` may follow, or stand alone.
///
/// Stretches of 65,536 rows are skipped if their known minimum and maximum rule them out: `hepfs prepare --stats`
/// learns these, and so does a query that reads a column in full. Search indexes of the file help as well, once `hepfs
/// index verify` has found them right. `-v` says what helped. Ctrl-C ends the command with exit code 130.
#[derive(Debug, Args)]
#[command(override_usage = "hepfs query [OPTIONS] <SOURCE[:PATH]> <EXPRESSION>\n       \
    hepfs query [OPTIONS] --table <TABLE> <SOURCE>... <EXPRESSION>")]
#[command(after_help = "Examples:\n  hepfs query run.h5:run_042 'energy > 5 and label = \"electron\"'\n  \
    hepfs query run.h5:run_042 \"ts >= '2026-01-01' and hit order by energy desc limit 10\"\n  \
    hepfs query --table run_042 day*.h5 \"energy > 5 and file != 'day_7.h5'\"\n  \
    hepfs query run.h5:run_042 'position.x between 100 and 200' --columns ts,energy -o part.parquet")]
pub(in crate::cli) struct Arguments {
    /// An HDF5 file or folder, and the path of a table in it as a mount would show it
    #[arg(value_name = "SOURCE[:PATH]")]
    place: OsString,

    /// Conditions on rows, their order, and how many
    #[arg(value_name = "EXPRESSION")]
    expression: OsString,

    /// More files with --table; else too much, to be told what to do about it.
    #[arg(hide = true)]
    more: Vec<OsString>,

    /// Query the tables at this path of all SOURCEs, files or folders, as one table; its column `file` names the file
    /// of a row
    #[arg(long, value_name = "TABLE")]
    table: Option<String>,

    #[command(flatten)]
    writing: OutputOptions,

    /// Write to this file, which appears once it is whole and replaces one of its name
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Number of rows at most
    #[arg(long, value_name = "ROWS")]
    limit: Option<u64>,

    #[command(flatten)]
    reading: ReadingOptions,

    #[command(flatten)]
    showing: Showing,
}

pub(in crate::cli) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let given = [&arguments.place, &arguments.expression].into_iter().chain(&arguments.more);
    let mut sources: Vec<&OsStr> = given.map(OsString::as_os_str).collect();
    let expression = sources.pop().unwrap_or_default();
    if arguments.table.is_none() && sources.len() > 1 {
        let one = "a query takes one SOURCE and one EXPRESSION in quotes; of several files:";
        let example = "hepfs query --table run_042 *.h5 'energy > 5'";
        return Err(Error::Usage(format!("{one} {example}")));
    }
    if arguments.table.is_some() && (is_address(Path::new(expression)) || Path::new(expression).is_file()) {
        let reason = "a file in place of the EXPRESSION, which comes last, such as 'limit 10'";
        return Err(Error::Usage(format!("{}: {reason}", expression.display())));
    }
    let expression = expression.to_str().ok_or_else(|| Error::Usage("EXPRESSION: not UTF-8".into()))?;
    RowsRequest {
        sources: &sources,
        table: arguments.table.as_deref(),
        expression: Some(expression),
        limit: arguments.limit,
        keeping: None,
        output: arguments.output.as_deref(),
        partition_by: &[],
        writing: &arguments.writing,
        reading: &arguments.reading,
        showing: &arguments.showing,
    }
    .write()
}

/// Writes a table; this is a share of the command's work. Returns the number of rows, and the bytes of a kept file.
type Write<'a> = dyn Fn(&Table, Share) -> Result<Written, Error> + 'a;

/// Number of rows written, and the bytes of the file or folder, if one is kept.
type Written = (u64, Option<u64>);

/// A request for rows.
pub(super) struct RowsRequest<'a> {
    pub sources: &'a [&'a OsStr],
    /// The path of a table in all sources; `None`: the single source contains it.
    pub table: Option<&'a str>,
    /// Conditions, order and limit; `None`: all rows.
    pub expression: Option<&'a str>,
    /// Most rows; if the expression has a limit as well, the smaller one counts.
    pub limit: Option<u64>,
    /// Encoding of exported Parquet files; `None`: the same file as in a mount.
    pub keeping: Option<Keeping>,
    /// The file or folder to write; `None`: standard output.
    pub output: Option<&'a Path>,
    /// Columns to partition by: the folder gets one file for each of their values.
    pub partition_by: &'a [String],
    pub writing: &'a OutputOptions,
    pub reading: &'a ReadingOptions,
    pub showing: &'a Showing,
}

impl RowsRequest<'_> {
    /// Finds the rows and writes them.
    ///
    /// # Errors
    /// If the table, a column or the file to write does not exist, or rows cannot be read.
    pub fn write(&self) -> Result<ExitCode, Error> {
        let begun = Instant::now();
        let other = self
            .output
            .and_then(|output| OutputFormat::of(output).ok())
            .filter(|format| *format != OutputFormat::Parquet);
        let format = match (self.partition_by, self.output.zip(other)) {
            ([], _) => self.writing.format(self.output)?,
            (_, Some((output, _))) => {
                let reason = "--partition-by writes Parquet files to a folder, and this is the name of another file";
                return Err(Error::Usage(format!("-o {}: {reason}", output.display())));
            }
            _ if self.writing.format.is_none_or(|format| format == OutputFormat::Parquet) => OutputFormat::Parquet,
            _ => return Err(Error::Usage("--partition-by: partitions are Parquet files".into())),
        };
        let source = || self.sources.first().map(|source| short_name(source)).unwrap_or_default();
        let title = self.output.and_then(Path::file_name).map_or_else(source, |name| name.display().to_string());
        let watched = Watched::new(title, if self.keeping.is_some() { "exporting" } else { "writing" })?;
        let interrupt = &watched.interrupt;
        let separator = self.showing.csv_separator.or_else(|| rows::separator_of(self.output?));
        let showing = Showing { csv_separator: separator, ..self.showing.clone() };
        let session = self.reading.session(showing.settings()?)?;
        let place = match (self.table, self.sources) {
            (Some(table), sources) => Place::of_many(sources, table, session, interrupt)?,
            (None, [source]) => Place::open(source, session, interrupt)?,
            (None, _) => return Err(Error::Usage("several SOURCEs: give --table".into())),
        };
        let table = table_of(&place, true, &watched)?;
        let explained = |error: query::Error| Error::Usage(explained(self.text(), &error));
        let none = Query { predicate: Predicate::All(Vec::new()), order: Vec::new(), limit: None };
        let asked = self.expression.map(expression::query).transpose().map_err(explained)?;
        let mut query = asked.unwrap_or(none);
        query.limit = query.limit.into_iter().chain(self.limit).min();
        let partition_by = rows::listed_columns(&table, self.partition_by);
        let writing = self.writing.of_table(&table, &partition_by);
        writing.check(&table)?;
        rows::are_columns(&table, "--partition-by", &partition_by)?;
        let target = match (self.output, partition_by.as_slice()) {
            (Some(path), []) => OutputTarget::File(Output::new(path)?),
            (Some(path), by) => OutputTarget::Folder(Output::folder(path)?, by.to_vec()),
            (None, []) => OutputTarget::Standard,
            (None, _) => return Err(Error::Usage("--partition-by: name a folder for the files with `-o`".into())),
        };
        let write = |table: &Table, share: Share| {
            watched.expect(share.before.saturating_add(table.rows.saturating_mul(share.row)));
            let bytes = rows::write(table, (format, self.keeping), &target, &place, (&watched, share))?;
            Ok((table.rows, bytes))
        };
        let outcome = if query.predicate == Predicate::All(Vec::new()) && query.order.is_empty() {
            // All rows, or the first ones: no search is needed.
            let mut all = query::selectable(&table, self.text());
            writing.choose(&mut all);
            if let Some(most) = query.limit {
                query::first(&mut all, most);
            }
            watched.step(Unit::Rows, 0);
            write(&all, Share { before: 0, row: 1 })
        } else {
            RowsRequest { writing: &writing, ..*self }.select(&table, &query, &place, &watched, &write)
        };
        if interrupt.is_raised() {
            say!("hepfs: interrupted");
            return Ok(ExitCode::from(INTERRUPTED));
        }
        let (rows, bytes) = outcome?;
        if let Some(hint) = self.showing.nan.hint(&table) {
            say!("hepfs: note: {hint}");
        }
        if let (Some(output), Some(bytes), Some(_)) = (self.output, bytes, self.keeping) {
            let seconds = begun.elapsed().as_secs_f64();
            let line = format!("{}  {rows} rows  {bytes} bytes  {seconds:.3} s", output.display());
            watched.write(&printable(&line))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn text(&self) -> &str {
        self.expression.unwrap_or_default()
    }

    /// Searches the requested rows and writes them.
    fn select(
        &self,
        table: &Table,
        query: &Query,
        place: &Place,
        watched: &Watched,
        write: &Write,
    ) -> Result<Written, Error> {
        let interrupt = &watched.interrupt;
        let explained = |error: query::Error| Error::Usage(explained(self.text(), &error));
        let failed = |error: store::Error| place.failed(error.into());
        let store = &place.session.store;
        // Without an order, the first matching rows are found without searching those behind them.
        let most = query.limit.filter(|_| query.order.is_empty());
        let mut rows = most.map_or(table.rows, |_| table.rows.min(FIRST_ROWS));
        loop {
            let bound = BoundPredicate::trusting(table, &query.predicate, place.session.trust).map_err(explained)?;
            let selection = Selection::new(&table.path, rows, bound, store, None);
            let selection = Arc::new(selection.map_err(failed)?);
            // Each value counts that is read for conditions, and what follows for the rows that match. How many these
            // are follows from the matches so far.
            let search = rows.saturating_mul(selection.columns());
            let chosen = self.writing.chosen(table);
            let width = chosen.len().max(1) as u64;
            let steps = Arc::new(Steps::new(table.rows, query.order.len(), query.limit, &chosen));
            let ordered = (!query.order.is_empty()).then(|| steps.clone());
            let (its, limit) = (selection.clone(), most.unwrap_or(u64::MAX));
            watched.step(if ordered.is_some() { Unit::Steps } else { Unit::Values }, search);
            let row = if ordered.is_some() { steps.of_writing(1) } else { width };
            watched.follow(move || {
                let found = its.so_far();
                let written = found.expected.min(limit).saturating_mul(width);
                let later = ordered.as_ref().map_or(written, |steps| steps.of(found.expected));
                (found.rows.saturating_mul(its.columns()), Some(search.saturating_add(later)))
            });
            let found = selection.selected(interrupt).map_err(failed).and_then(|selected| {
                if most.is_some_and(|most| selected.len() < most) && rows < table.rows {
                    return Ok(None);
                }
                let mut filtered = query::filtered(table, &selected, self.text());
                let mut before = search;
                if query.order.is_empty() {
                    self.writing.choose(&mut filtered);
                    if let Some(most) = most {
                        query::first(&mut filtered, most);
                    }
                    watched.turn();
                } else {
                    let sorted = steps.clone();
                    watched.follow(move || (search.saturating_add(sorted.done()), None));
                    watched.expect(search.saturating_add(steps.of(filtered.rows)));
                    watched.turn();
                    let places = query::places(&filtered, &query.order, query.limit, store, (&steps, interrupt));
                    let places = places.map_err(|error| match error {
                        SortError::Rows(error) => failed(error),
                        SortError::Query(error) => explained(error),
                    })?;
                    self.writing.choose(&mut filtered);
                    filtered = query::held(filtered, &places, store, (&steps, interrupt)).map_err(failed)?;
                    before = before.saturating_add(steps.done());
                }
                write(&filtered, Share { before, row }).map(Some)
            });
            let Some(written) = found.transpose() else {
                rows = table.rows.min(rows.saturating_mul(8));
                continue;
            };
            if let Some(found) = selection.explained() {
                explain(&found);
            }
            return written;
        }
    }
}

/// Describes an error in the expression, and its position.
fn explained(expression: &str, error: &query::Error) -> String {
    let (before, rest) = expression.split_at_checked(error.position()).unwrap_or((expression, ""));
    let place = if rest.is_empty() { "at the end".to_owned() } else { format!("at {rest:?}") };
    format!("expression, character {} ({place}): {error}", before.chars().count() + 1)
}

/// Logs with `-v` how the rows were found.
fn explain(explained: &Explained) {
    tracing::info!(
        "{} blocks of 65,536 rows: {} without a match, {} that match entirely, {} decided by search indexes \
         (counted each time), {} decoded ({} bytes)",
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
