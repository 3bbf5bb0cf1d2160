//! `hepfs export SOURCE:table -o FILE`: a table as a file to keep.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use parquet::basic::Compression;

use super::query::Asked;
use crate::cli::Error;
use crate::cli::options::{Reading, Showing, size};
use crate::cli::rows::{Keeping, Writing, compression};

/// Bytes of memory that the command works in at least: fields of one dataset are decoded once only if the rows of two
/// row groups fit into the part of it that is for what is decoded.
const LEAST_MEMORY: u64 = 256 << 20;

/// That part, in eighths.
const CACHE_EIGHTHS: u64 = 3;

/// Write a table, or some of its rows, to a file to keep
///
/// The file has the columns, types, units and descriptions that a mount shows. Parquet is compressed, with dictionaries
/// and statistics of each page; row groups are encoded on all cores. The expression is that of `hepfs query`. With
/// `--partition-by` there is a file for each value of some columns, in directories as Hive, pyarrow, DuckDB and Spark
/// name them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hepfs export run.h5:run_042 -o run.parquet\n  \
    hepfs export frame.h5 'energy > 5 order by ts' --columns ts,energy -o part.csv\n  \
    hepfs export cells.h5ad:obs --compression zstd:9 -o obs.parquet\n  \
    hepfs export run.h5:run_042 --partition-by label -o parts\n  \
    hepfs export run.h5:run_042 --format ndjson -o - | jq .energy")]
pub(in crate::cli) struct Arguments {
    /// A file of tables or a folder, and the path of a table in it as a mount would show it
    #[arg(value_name = "SOURCE[:PATH]")]
    place: OsString,

    /// What rows must satisfy, their order, how many [default: all]
    #[arg(value_name = "EXPRESSION")]
    expression: Option<String>,

    /// Write to this file, which is there once it is whole, and replaces one of this name; or to standard output (`-`,
    /// with --format)
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// As many rows at most
    #[arg(long, value_name = "ROWS")]
    limit: Option<u64>,

    /// How columns of Parquet are compressed: zstd, zstd:LEVEL (1 to 22), snappy or none
    #[arg(long, value_name = "CODEC", default_value = "zstd:3", value_parser = compression)]
    compression: Compression,

    /// Write a file of Parquet for each value of these columns, to FILE/COLUMN=VALUE/part-0.parquet; FILE is a folder
    /// that is empty, or not there yet
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    partition_by: Vec<String>,

    /// Memory of the whole command, at least 256M [default: --cache-size, and about 256M]
    #[arg(long, value_name = "SIZE", value_parser = memory, conflicts_with = "cache_size")]
    memory: Option<u64>,

    #[command(flatten)]
    writing: Writing,

    #[command(flatten)]
    reading: Reading,

    #[command(flatten)]
    showing: Showing,
}

/// Parses how much memory the command may take.
fn memory(text: &str) -> Result<u64, String> {
    size(text).and_then(|bytes| if bytes < LEAST_MEMORY { Err("256M is the least".to_owned()) } else { Ok(bytes) })
}

pub(in crate::cli) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let mut reading = arguments.reading.clone();
    reading.cache_size = reading.cache_size.or(arguments.memory.map(|memory| memory / 8 * CACHE_EIGHTHS));
    Asked {
        place: &arguments.place,
        expression: arguments.expression.as_deref(),
        limit: arguments.limit,
        keeping: Some(Keeping { compression: arguments.compression, memory: arguments.memory }),
        output: Some(arguments.output.as_path()).filter(|output| output.as_os_str() != "-"),
        partition_by: &arguments.partition_by,
        writing: &arguments.writing,
        reading: &reading,
        showing: &arguments.showing,
    }
    .write()
}
