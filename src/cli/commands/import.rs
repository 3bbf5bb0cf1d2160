//! `hepfs import IN… OUT.h5[:/table]`: tables of other formats as a table in an HDF5 file.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;

use crate::cli::Error;
use crate::cli::inputs::{InputFormat, Inputs};
use crate::cli::produce::{Job, Mode, Production, Target};
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

    /// What separates the fields of CSV
    #[arg(long, value_name = "CHAR", default_value = ",", value_parser = crate::cli::options::separator)]
    csv_separator: char,

    /// What to do with a table that is there: leave it and refuse; append the rows to it, which columns of these names
    /// and types must be there for; or put the new one in its place, in one step
    #[arg(long, value_enum, default_value_t = Mode::Create)]
    mode: Mode,

    /// Tell how each column would be stored, and write nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    options: Options,
}

pub(in crate::cli) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let Some((output, inputs)) = arguments.paths.split_last().filter(|(_, inputs)| !inputs.is_empty()) else {
        return Err(Error::Usage("name what to import, and the HDF5 file to write to".into()));
    };
    let inputs = Inputs::open(inputs, arguments.format, arguments.csv_separator)?;
    let (file, path) = Target::split(output);
    let path = path.unwrap_or_else(|| TABLE.to_owned());
    let job = Job { options: &arguments.options, mode: arguments.mode, dry_run: arguments.dry_run };
    let write = |production: &Production, target: &Target<'_>| production.write(&job, &inputs, target, &path);
    Production::new()?.run(&job, &file, |production, target| write(production, target).map(|()| ExitCode::SUCCESS))
}
