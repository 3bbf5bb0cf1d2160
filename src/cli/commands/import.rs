//! `hepfs import IN… OUT.h5[:/table]`: tables of other formats as a table in an HDF5 file.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;

use crate::cli::Error;
use crate::cli::inputs::{InputFormat, Inputs, SortBy, Typed};
use crate::cli::produce::{BuiltIndexes, Job, Mode, Production, Running, TargetFile};
use crate::producer::table::Options;

/// Default path of the table.
const TABLE: &str = "/table";

/// Write tables of other formats into an HDF5 file
///
/// Parquet, Arrow IPC, CSV and NDJSON become one table of HEP001 (H5Col). OUT is created if it does not exist;
/// everything else in it stays. The file, or the table in it, appears once all is written: a run that is ended changes
/// nothing. `--dry-run` shows how each column would be stored.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hepfs import run.parquet run.h5\n  \
    hepfs import part-*.csv run.h5:/run_042 --units energy=MeV\n  \
    hepfs import run.parquet run.h5 --sort-by label,ts:desc --index ts:minmax,sorted\n  \
    zcat log.ndjson.gz | hepfs import - --format ndjson log.h5 --compression deflate:6")]
pub(in crate::cli) struct Arguments {
    /// IN: files of Parquet, Arrow IPC, CSV or NDJSON with the same columns, or `-` for standard input. OUT[:PATH], the
    /// last: an HDF5 file, and the path of the table in it [default: /table]
    // clap allows no options between two positional arguments if one of them takes several values.
    #[arg(value_name = "IN... OUT[:PATH]", required = true)]
    paths: Vec<OsString>,

    /// Format of the inputs [default: by their first bytes or suffixes]
    #[arg(long, value_enum)]
    format: Option<InputFormat>,

    /// Field separator of CSV: one character, or `tab` [default: `,`; `tab` for IN.tsv]
    #[arg(long, value_name = "CHAR", value_parser = crate::cli::options::separator)]
    csv_separator: Option<char>,

    /// Read a column as values of this type: int8 to uint64, float16 to float64, bool, text, date, timestamp[UNIT],
    /// timestamp[UNIT,ZONE], time[UNIT], decimal(DIGITS,SCALE), with the units s, ms, us and ns. CSV and NDJSON are
    /// parsed as this type; each value of other inputs must fit it, and only floating-point numbers are rounded
    #[arg(long, value_name = "COLUMN=TYPE", value_parser = Typed::parse)]
    r#type: Vec<Typed>,

    /// What to do if the table exists
    #[arg(long, value_enum, default_value_t = Mode::Create)]
    mode: Mode,

    /// Sort rows by these columns, the first one first. Missing values come last, NaN is greater than all numbers, text
    /// is compared by its bytes, and equal rows keep their order. `--mode append` sorts the rows that it adds
    #[arg(long, value_name = "COLUMN[:desc],...", value_delimiter = ',')]
    sort_by: Vec<String>,

    /// Build search indexes of a column once the table is written: minmax, sorted, bitmap, bloom, as `hepfs index
    /// build` does. `keep` rebuilds those that the table had before the rows were appended, or the table replaced
    #[arg(long, value_name = "COLUMN:KIND,...|keep", value_parser = BuiltIndexes::parse)]
    index: Vec<BuiltIndexes>,

    #[command(flatten)]
    running: Running,

    #[command(flatten)]
    options: Options,
}

pub(in crate::cli) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let Some((output, inputs)) = arguments.paths.split_last().filter(|(_, inputs)| !inputs.is_empty()) else {
        return Err(Error::Usage("name what to import, and the HDF5 file to write to".into()));
    };
    let production = Production::new(output, "reading")?;
    let inputs = Inputs::open(inputs, arguments.format, arguments.csv_separator, &arguments.r#type)?;
    let (file, path) = TargetFile::split(output);
    let path = path.unwrap_or_else(|| TABLE.to_owned());
    let sort_by = SortBy::new(&arguments.sort_by, &inputs.fields).map_err(Error::Usage)?;
    let job = Job {
        options: &arguments.options,
        mode: arguments.mode,
        running: &arguments.running,
        sort_by: (!arguments.sort_by.is_empty()).then_some(&sort_by),
        indexes: &arguments.index,
    };
    let write = |production: &Production, target: &TargetFile<'_>| production.write(&job, &inputs, target, &path);
    production.run(&job, &file, |production, target| write(production, target).map(|()| ExitCode::SUCCESS))
}
