//! `hepfs export SOURCE:table -o FILE`: exports a table to a file.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use parquet::basic::Compression;

use super::query::RowsRequest;
use crate::activity::Unit;
use crate::cli::Error;
use crate::cli::options::{ReadingOptions, Showing};
use crate::cli::place::{Place, short_name};
use crate::cli::progress::{Out, Watched};
use crate::cli::rows::{self, Keeping, Output, OutputFormat, OutputOptions, OutputTarget, Share, compression};
use crate::cli::signals::INTERRUPTED;
use crate::cli::sizes::size;
use crate::cli::tables::{self, InFile};
use crate::query;
use crate::source::is_address;
use crate::table::Table;
use crate::views::printable;

/// Least memory of the command: fields of one dataset are decoded once only if the rows of two row groups fit in the
/// share for decoded data.
const LEAST_MEMORY: u64 = 256 << 20;

/// Share of the memory for decoded data, in eighths.
const CACHE_EIGHTHS: u64 = 3;

/// Write a table, or some of its rows, to a file to keep
///
/// The file has the columns, types, units and descriptions that a mount shows. Parquet is compressed, with dictionaries
/// and statistics of each page; row groups are encoded on all cores. The expression is that of `hepfs query`.
/// `--partition-by` writes a file for each value of some columns, in directories as Hive, pyarrow, DuckDB and Spark
/// name them.
#[derive(Debug, Args)]
#[command(override_usage = "hepfs export [OPTIONS] -o <FILE> <SOURCE[:PATH]> [EXPRESSION]\n       \
    hepfs export [OPTIONS] -o <FILE> --table <TABLE> <SOURCE>... [EXPRESSION]")]
#[command(after_help = "Examples:\n  hepfs export run.h5:run_042 -o run.parquet\n  \
    hepfs export frame.h5 'energy > 5 order by ts' --columns ts,energy -o part.csv\n  \
    hepfs export cells.h5ad:obs --compression zstd:9 -o obs.parquet\n  \
    hepfs export run.h5:run_042 --partition-by label -o parts\n  \
    hepfs export --table run_042 day*.h5 -o all.parquet\n  \
    hepfs export run.h5 -o tables/\n  \
    hepfs export run.h5:run_042 --format ndjson -o - | jq .energy")]
pub(in crate::cli) struct Arguments {
    /// A file of tables or a folder, and the path of a table in it as a mount would show it
    #[arg(value_name = "SOURCE[:PATH]")]
    place: OsString,

    /// Conditions on rows, their order, and how many [default: all]
    #[arg(value_name = "EXPRESSION")]
    expression: Option<OsString>,

    /// More files with --table.
    #[arg(hide = true)]
    more: Vec<OsString>,

    /// Export the tables at this path of all SOURCEs, files or folders, as one table; its column `file` names the file
    /// of a row. EXPRESSION comes last
    #[arg(long, value_name = "TABLE")]
    table: Option<String>,

    /// Write to this file, which appears once it is whole and replaces one of its name; or to standard output (`-`,
    /// with --format). A folder, or a name that ends with `/`, takes every table, a file each
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Number of rows at most; for a folder, of each table
    #[arg(long, value_name = "ROWS")]
    limit: Option<u64>,

    /// Compression of Parquet: zstd, zstd:LEVEL (1 to 22), snappy or none
    #[arg(long, value_name = "CODEC", default_value = "zstd:3", value_parser = compression)]
    compression: Compression,

    /// Write a Parquet file for each value of these columns, FILE/COLUMN=VALUE/part-0.parquet; FILE is a folder that is
    /// empty, or not there yet
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    partition_by: Vec<String>,

    /// Memory of the whole command, at least 256M [default: --cache-size, and about 256M]
    #[arg(long, value_name = "SIZE", value_parser = memory, conflicts_with = "cache_size")]
    memory: Option<u64>,

    #[command(flatten)]
    writing: OutputOptions,

    #[command(flatten)]
    reading: ReadingOptions,

    #[command(flatten)]
    showing: Showing,
}

/// Parses the memory limit of the command.
fn memory(text: &str) -> Result<u64, String> {
    size(text).and_then(|bytes| if bytes < LEAST_MEMORY { Err("256M is the least".to_owned()) } else { Ok(bytes) })
}

pub(in crate::cli) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let mut reading = arguments.reading.clone();
    reading.cache_size = reading.cache_size.or(arguments.memory.map(|memory| memory / 8 * CACHE_EIGHTHS));
    let given = std::iter::once(&arguments.place).chain(&arguments.expression).chain(&arguments.more);
    let mut sources: Vec<&OsStr> = given.map(OsString::as_os_str).collect();
    let is_source =
        |last: &OsStr| arguments.table.is_some() && (is_address(Path::new(last)) || Path::new(last).exists());
    let expression = if sources.len() > 1 { sources.pop_if(|last| !is_source(last)) } else { None };
    let is_file = expression.is_some_and(|text| is_address(Path::new(text)) || Path::new(text).is_file());
    if arguments.table.is_none() && (sources.len() > 1 || is_file) {
        let one = "an export takes one SOURCE and one EXPRESSION in quotes; of several files:";
        return Err(Error::Usage(format!("{one} hepfs export --table run_042 *.h5 -o all.parquet")));
    }
    let expression = expression.map(|text| text.to_str().ok_or_else(|| Error::Usage("EXPRESSION: not UTF-8".into())));
    let expression = expression.transpose()?;
    let keeping = Keeping { compression: arguments.compression, memory: arguments.memory };
    let is_folder = arguments.output.is_dir() || arguments.output.as_os_str().as_bytes().ends_with(b"/");
    if is_folder && arguments.partition_by.is_empty() && arguments.table.is_none() {
        return each_table(arguments, expression, keeping, &reading);
    }
    RowsRequest {
        sources: &sources,
        table: arguments.table.as_deref(),
        expression,
        limit: arguments.limit,
        keeping: Some(keeping),
        output: Some(arguments.output.as_path()).filter(|output| output.as_os_str() != "-"),
        partition_by: &arguments.partition_by,
        writing: &arguments.writing,
        reading: &reading,
        showing: &arguments.showing,
    }
    .write()
}

/// Writes every table at and below a place to a file of its own in a folder, and prints what it wrote.
///
/// # Errors
/// If there is no table, or the folder cannot be made.
fn each_table(
    arguments: &Arguments,
    expression: Option<&str>,
    keeping: Keeping,
    reading: &ReadingOptions,
) -> Result<ExitCode, Error> {
    let shown = arguments.output.display();
    if expression.is_some() || !arguments.writing.columns.is_empty() {
        let reason = "a folder takes every table whole: name a file for an EXPRESSION or --columns";
        return Err(Error::Usage(format!("-o {shown}: {reason}")));
    }
    let watched = Watched::new(short_name(&arguments.place), "exporting")?;
    let interrupt = &watched.interrupt;
    let place = Place::open(&arguments.place, reading.session(arguments.showing.settings()?)?, interrupt)?;
    let files = match tables::dataset(&place, interrupt)? {
        Some(table) => vec![tables::in_dataset(&place, table, interrupt)?],
        None => tables::find(&place, false, &watched)?,
    };
    let found = files.iter().flat_map(|file| file.tables.iter().map(move |(path, table)| (file, path, table)));
    let found: Vec<_> = found.filter(|(_, _, table)| !table.repeats).collect();
    if found.is_empty() {
        return Err(Error::Usage(format!("{}: there is no table in it, as `hepfs info` shows", place.name)));
    }
    let format = arguments.writing.format.unwrap_or(OutputFormat::Parquet);
    let columns = |table: &Table| table.columns.len() as u64;
    let values = |table: &Table| table.rows.min(arguments.limit.unwrap_or(u64::MAX)).saturating_mul(columns(table));
    watched.step(Unit::Values, found.iter().map(|(.., table)| values(table)).fold(0, u64::saturating_add));
    let mut before = 0_u64;
    let (mut lines, mut failed) = (Vec::new(), tables::report_failures(&files));
    Output::folder(&arguments.output)?
        .fill(|folder| {
            for (file, path, table) in &found {
                let name = format!("{}.{}", name_of(&place, file, path), format.suffix());
                let (target, shown) = (folder.join(&name), arguments.output.join(&name));
                let above = target.parent().unwrap_or(folder);
                fs::create_dir_all(above).map_err(Error::io(format!("-o {}", shown.display())))?;
                let mut all = query::selectable(table, "");
                arguments.writing.check(table)?;
                if let Some(most) = arguments.limit {
                    query::first(&mut all, most);
                }
                let line = format!("{}  {} rows", shown.display(), all.rows);
                let (begun, mut target) = (Instant::now(), Output::new(&target)?);
                target.shown = shown;
                let target = OutputTarget::File(target);
                watched.name(&name, "exporting");
                let share = Share { before, row: columns(table) };
                before = before.saturating_add(values(table));
                match rows::write(&all, (format, Some(keeping)), &target, &place, (&watched, share)) {
                    Ok(bytes) => {
                        let (bytes, seconds) = (bytes.unwrap_or(0), begun.elapsed().as_secs_f64());
                        lines.push(format!("{line}  {bytes} bytes  {seconds:.3} s"));
                    }
                    Err(error) if interrupt.is_raised() => return Err(error),
                    // A table that the format cannot represent does not stop the others.
                    Err(error) => {
                        error.say();
                        failed = true;
                    }
                }
            }
            Ok(())
        })
        .or_else(|error| if interrupt.is_raised() { Ok(None) } else { Err(error) })?;
    if interrupt.is_raised() {
        say!("hepfs: interrupted");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let mut out = Out::new();
    lines.iter().try_for_each(|line| writeln!(out, "{}", printable(line))).map_err(Error::io("standard output"))?;
    Ok(ExitCode::from(u8::from(failed)))
}

/// The path of a table's file in the folder, without suffix: the table's path in a mount, preceded by that of its HDF5
/// file if the place is a folder.
fn name_of(place: &Place, file: &InFile, path: &str) -> String {
    let is_of_folder = place.spot.source().is_none() && place.is_folder();
    let source = file.source.strip_prefix(place.source()).ok().filter(|_| is_of_folder);
    let below = source.map(|source| source.display().to_string()).unwrap_or_default();
    let path = if below.is_empty() { path.to_owned() } else { tables::below(&below, path) };
    let path = path.trim_matches('/').to_owned();
    match path.is_empty() {
        true => place.last_name().unwrap_or_else(|| "table".to_owned()),
        false => path,
    }
}
