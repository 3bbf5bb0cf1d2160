//! `hepfs convert IN.h5[:TABLE] OUT.h5[:PATH]`: tables of any dialect as tables of one.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use arrow_schema::Field;
use clap::Args;

use crate::cli::Error;
use crate::cli::inputs::Inputs;
use crate::cli::options::Reading;
use crate::cli::place::Place;
use crate::cli::produce::{Job, Mode, Production, Running, Target};
use crate::cli::tables::find;
use crate::dialects::table_writer::{self, Options, Refused};
use crate::fs::tree::{ViewOptions, printable};
use crate::table::Table;

/// The part of `--memory` that is for what is decoded, in eighths.
const CACHE_EIGHTHS: u64 = 3;

/// Write tables of an HDF5 file, of whatever kind, as tables of HEP001
///
/// Each table of IN, or the one that PATH names, goes to OUT at its own path: values, types, units and descriptions as
/// a mount shows them. Columns that HEP001 has no type for are left out and named. OUT has its name once all is
/// written.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hepfs convert frame.h5 frame-h5col.h5\n  \
    hepfs convert cells.h5ad:obs obs.h5:/obs --compression deflate:6")]
pub(in crate::cli) struct Arguments {
    /// An HDF5 file, and the path of a table or a group in it as a mount would show it
    #[arg(value_name = "IN[:PATH]")]
    place: OsString,

    /// An HDF5 file that is made or added to, and the path of the table in it, where there is one only
    #[arg(value_name = "OUT[:PATH]")]
    output: OsString,

    /// What to do with a table that is there: leave it and refuse, or write the new one in its place, in one step
    #[arg(long, value_enum, default_value_t = Mode::Create)]
    mode: Mode,

    #[command(flatten)]
    running: Running,

    #[command(flatten)]
    options: Options,

    #[command(flatten)]
    reading: Reading,
}

/// Where a table at a path goes that has no other place, beside those at `others`. Nothing may lie below a table, and
/// the root group has no name.
fn own_path(path: &str, others: &[(String, Arc<Table>)]) -> String {
    let is_below = |(other, _): &(String, _)| path.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'));
    match path {
        "/" => {
            let is_free = |name: &String| {
                let taken = |other: &str| {
                    other.strip_prefix(name.as_str()).is_some_and(|rest| matches!(rest.as_bytes(), [] | [b'/', ..]))
                };
                !others.iter().any(|(other, _)| taken(other))
            };
            let more = (1..=others.len()).map(|number| format!("/table.{number}"));
            std::iter::once("/table".to_owned()).chain(more).find(is_free).unwrap_or_else(|| "/table".to_owned())
        }
        path if others.iter().any(is_below) => format!("/{}", path.trim_start_matches('/').replace('/', ".")),
        path => path.to_owned(),
    }
}

pub(in crate::cli) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let production = Production::new()?;
    let interrupt = &production.interrupt;
    let mut reading = arguments.reading.clone();
    reading.cache_size = reading.cache_size.or(Some(arguments.running.memory / 8 * CACHE_EIGHTHS));
    let place = Place::open(&arguments.place, reading.context(ViewOptions::default())?, interrupt)?;
    place.node.children(interrupt).map_err(|error| place.failed(error))?;
    // The table alone that was asked for; the root is the file.
    let asked = place.node.table().filter(|_| !place.is_whole()).map(|table| (String::new(), table));
    let files = if asked.is_some() { Vec::new() } else { find(&place, false, interrupt)? };
    let found = asked.iter().chain(files.iter().flat_map(|file| &file.tables));
    // What only adds names shows columns of which there are other tables, or none.
    let found = found.filter(|(_, table)| !table.repeats);
    let tables: Vec<(String, Arc<Table>)> =
        found.map(|(below, table)| (place.path_in_file(below, &table.path), table.clone())).collect();
    let (file, path) = Target::split(&arguments.output);
    let is_own =
        |source: &Path| source.canonicalize().is_ok_and(|own| file.canonicalize().is_ok_and(|file| file == own));
    if place.node.source().is_some_and(is_own) {
        return Err(Error::Usage(format!("{}: a file cannot be read while it is written to", file.display())));
    }
    if tables.is_empty() {
        return Err(Error::Usage(format!("{}: there is no table in it, as `hepfs info` shows", place.name)));
    }
    if path.is_some() && tables.len() > 1 {
        let reason = "several tables go to their own paths: name the file alone, or one table";
        return Err(Error::Usage(format!("{}: {reason}", arguments.output.display())));
    }
    let job = Job {
        options: &arguments.options,
        mode: arguments.mode,
        running: &arguments.running,
        sort_by: None,
        indexes: &[],
    };
    production.run(&job, &file, |production, target| {
        let mut written = 0;
        for (own, table) in &tables {
            match one(
                production,
                &job,
                target,
                table,
                &place.name,
                path.clone().unwrap_or_else(|| own_path(own, &tables)),
            ) {
                Ok(()) => written += 1,
                Err(error) if tables.len() == 1 || production.interrupt.is_raised() => return Err(error),
                // One table keeps none of the others back.
                Err(error) => error.say(),
            }
        }
        match tables.len() - written {
            0 => Ok(ExitCode::SUCCESS),
            failed if written > 0 => {
                eprintln!("hepfs: {failed} of {} tables could not be written", tables.len());
                Ok(ExitCode::FAILURE)
            }
            _ => Err(Error::Usage(format!("{}: none of its tables could be written", place.name))),
        }
    })
}

/// Writes a table, without the columns that cannot be stored.
fn one(
    production: &Production,
    job: &Job<'_>,
    target: &Target<'_>,
    table: &Table,
    name: &str,
    path: String,
) -> Result<(), Error> {
    let mut refused: HashMap<String, String> = HashMap::new();
    loop {
        let by_values = |field: &Field| refused.get(field.name()).cloned();
        let why_not = |field: &Field| by_values(field).or_else(|| table_writer::why_not(field, job.options));
        let (inputs, left_out) = Inputs::of_table(name, table, why_not, &production.interrupt);
        let outcome = match inputs.fields.is_empty() && !table.columns.is_empty() {
            true => Err(Error::Usage(format!("{}: none of its columns can be stored", table.path))),
            false => production.write(job, &inputs, target, &path),
        };
        match outcome {
            // What was known when values had been looked at.
            Err(Error::Columns(more)) if more.iter().all(|more| more.column.is_some()) => {
                refused.extend(more.into_iter().filter_map(|Refused { column, reason }| Some((column?, reason))));
            }
            outcome => {
                for (column, reason) in left_out {
                    let (path, reason) = (printable(&table.path), printable(&reason));
                    eprintln!("hepfs: {path}: column {column:?} is left out: {reason}");
                }
                return outcome;
            }
        }
    }
}
