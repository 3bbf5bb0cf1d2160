//! `hepfs export SOURCE:table -o FILE`: a table as a file to keep.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use parquet::basic::Compression;

use super::query::Asked;
use crate::cli::Error;
use crate::cli::options::{Reading, Showing};
use crate::cli::rows::{Writing, compression};

/// Write a table, or some of its rows, to a file to keep
///
/// The file has the columns, types, units and descriptions that a mount shows. Parquet is compressed, with dictionaries
/// and statistics of each page; row groups are encoded on all cores. The expression is that of `hepfs query`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hepfs export run.h5:run_042 -o run.parquet\n  \
    hepfs export frame.h5 'energy > 5 order by ts' --columns ts,energy -o part.csv\n  \
    hepfs export cells.h5ad:obs --compression zstd:9 -o obs.parquet")]
pub(in crate::cli) struct Arguments {
    /// A file of tables or a folder, and the path of a table in it as a mount would show it
    #[arg(value_name = "SOURCE[:PATH]")]
    place: OsString,

    /// What rows must satisfy, their order, how many [default: all]
    #[arg(value_name = "EXPRESSION")]
    expression: Option<String>,

    /// Write to this file, which is there once it is whole; one of this name is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// As many rows at most
    #[arg(long, value_name = "ROWS")]
    limit: Option<u64>,

    /// How columns of Parquet are compressed: zstd, zstd:LEVEL (1 to 22), snappy or none
    #[arg(long, value_name = "CODEC", default_value = "zstd:3", value_parser = compression)]
    compression: Compression,

    #[command(flatten)]
    writing: Writing,

    #[command(flatten)]
    reading: Reading,

    #[command(flatten)]
    showing: Showing,
}

pub(in crate::cli) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    Asked {
        place: &arguments.place,
        expression: arguments.expression.as_deref(),
        limit: arguments.limit,
        compression: Some(arguments.compression),
        output: Some(&arguments.output),
        writing: &arguments.writing,
        reading: &arguments.reading,
        showing: &arguments.showing,
    }
    .write()
}
