//! `hepfs import IN… OUT.h5[:/table]`: tables of other formats as a table in an HDF5 file.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;

use crate::cli::Error;
use crate::cli::inputs::{InputFormat, Inputs, SortBy, Typed};
use crate::cli::produce::{Indexes, Job, Mode, Production, Running, Target};
use crate::dialects::table_writer::Options;

/// The table, where none is named.
const TABLE: &str = "/table";

/// Write tables of other formats into an HDF5 file
///
/// Parquet, Arrow IPC, CSV and NDJSON become one table of HEP001 (H5Col), a column each. OUT is made where there is no
/// such file; in one that is there everything else stays. The file is there, or has the table, once all is written: a
/// run that is ended leaves what was. What is chosen for each column, `--dry-run` tells.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hepfs import run.parquet run.h5\n  \
    hepfs import part-*.csv run.h5:/run_042 --units energy=MeV\n  \
    hepfs import run.parquet run.h5 --sort-by label,ts:desc --index ts:minmax,sorted\n  \
    zcat log.ndjson.gz | hepfs import - --format ndjson log.h5 --compression deflate:6")]
pub(in crate::cli) struct Arguments {
    /// IN: files of Parquet, Arrow IPC, CSV or NDJSON with the same columns, or `-` for standard input. OUT[:PATH], the
    /// last: an HDF5 file, and the path of the table in it [default: /table]
    // Two arguments, of which one takes several values, must not have options between them.
    #[arg(value_name = "IN... OUT[:PATH]", required = true)]
    paths: Vec<OsString>,

    /// What the inputs are [default: as their first bytes or suffixes say]
    #[arg(long, value_enum)]
    format: Option<InputFormat>,

    /// The separator of the fields of CSV: one character, or `tab` [default: `,`, of IN.tsv `tab`]
    #[arg(long, value_name = "CHAR", value_parser = crate::cli::options::separator)]
    csv_separator: Option<char>,

    /// Read a column as values of this type: int8 to uint64, float16 to float64, bool, text, date, timestamp[UNIT],
    /// timestamp[UNIT,ZONE], time[UNIT], decimal(DIGITS,SCALE), where units are s, ms, us and ns. CSV and NDJSON are
    /// parsed so, of other inputs each value must fit; only floating-point numbers are rounded
    #[arg(long, value_name = "COLUMN=TYPE", value_parser = Typed::parse)]
    r#type: Vec<Typed>,

    /// What to do with a table that is there: leave it and refuse; append the rows to it, which columns of these names
    /// and types must be there for; or put the new one in its place, in one step
    #[arg(long, value_enum, default_value_t = Mode::Create)]
    mode: Mode,

    /// Write rows in the order of these columns, the first one first. Missing values come last, NaN is greater than all
    /// numbers, text goes by its bytes; equal rows stay in their order. `--mode append` sorts the rows that it adds
    #[arg(long, value_name = "COLUMN[:desc],...", value_delimiter = ',')]
    sort_by: Vec<String>,

    /// Build search indexes of a column once the table is written: minmax, sorted, bitmap, bloom, as `hepfs index
    /// build` does. `keep` builds those anew that the table has before rows are appended to it, or it is replaced
    #[arg(long, value_name = "COLUMN:KIND,...|keep", value_parser = Indexes::parse)]
    index: Vec<Indexes>,

    #[command(flatten)]
    running: Running,

    #[command(flatten)]
    options: Options,
}

pub(in crate::cli) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let Some((output, inputs)) = arguments.paths.split_last().filter(|(_, inputs)| !inputs.is_empty()) else {
        return Err(Error::Usage("name what to import, and the HDF5 file to write to".into()));
    };
    let inputs = Inputs::open(inputs, arguments.format, arguments.csv_separator, &arguments.r#type)?;
    let (file, path) = Target::split(output);
    let path = path.unwrap_or_else(|| TABLE.to_owned());
    let sort_by = SortBy::new(&arguments.sort_by, &inputs.fields).map_err(Error::Usage)?;
    let job = Job {
        options: &arguments.options,
        mode: arguments.mode,
        running: &arguments.running,
        sort_by: (!arguments.sort_by.is_empty()).then_some(&sort_by),
        indexes: &arguments.index,
    };
    let write = |production: &Production, target: &Target<'_>| production.write(&job, &inputs, target, &path);
    Production::new()?.run(&job, &file, |production, target| write(production, target).map(|()| ExitCode::SUCCESS))
}
