//! `hepfs convert IN.h5[:TABLE] OUT.h5[:PATH]`: writes tables of any dialect as tables of HEP001.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use arrow_schema::{Field, Fields};
use clap::Args;

use crate::cli::Error;
use crate::cli::inputs::Inputs;
use crate::cli::options::{NanOption, ReadingOptions};
use crate::cli::place::Place;
use crate::cli::produce::{Job, Mode, Production, Running, TargetFile};
use crate::cli::tables::find;
use crate::producer::table::{Options, Refused, why_not_stored};
use crate::session::Settings;
use crate::store::Nan;
use crate::table::{Column, Table};
use crate::views::printable;

/// Share of `--memory` for decoded data, in eighths.
const CACHE_EIGHTHS: u64 = 3;

/// Write tables of an HDF5 file, of any format, as tables of HEP001
///
/// Each table of IN, or the one at PATH, goes to OUT at its own path: values, types, row labels, units and descriptions
/// as a mount shows them. Columns without a type in HEP001 are left out and named. OUT appears once all is written.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hepfs convert frame.h5 frame-h5col.h5\n  \
    hepfs convert cells.h5ad:obs obs.h5:/obs --compression deflate:6")]
pub(in crate::cli) struct Arguments {
    /// An HDF5 file, and the path of a table or a group in it as a mount would show it
    #[arg(value_name = "IN[:PATH]")]
    place: OsString,

    /// An HDF5 file to create or add to, and the path of the table in it, if there is only one
    #[arg(value_name = "OUT[:PATH]")]
    output: OsString,

    /// What to do if the table exists
    #[arg(long, value_enum, default_value_t = Mode::Create)]
    mode: Mode,

    #[command(flatten)]
    running: Running,

    #[command(flatten)]
    options: Options,

    #[command(flatten)]
    reading: ReadingOptions,

    #[command(flatten)]
    nan: NanOption,
}

/// The target paths of tables: their own paths, adjusted where a table would lie below another, where the root group
/// has no name, and where tables of several files share a path.
fn places<'a>(paths: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let mut taken: BTreeSet<String> = paths.clone().map(str::to_owned).collect();
    let (mut kept, mut numbers) = (HashSet::new(), HashMap::new());
    let place = |path: &str| {
        let is_below = path.match_indices('/').skip(1).any(|(at, _)| taken.contains(&path[..at]));
        let name = match path {
            "/" => "/table".to_owned(),
            _ if is_below => format!("/{}", path.trim_start_matches('/').replace('/', ".")),
            _ if kept.insert(path.to_owned()) => return path.to_owned(),
            _ => path.to_owned(),
        };
        let is_free = |name: &String| {
            let below = format!("{name}/");
            !taken.contains(name) && taken.range(below.clone()..).next().is_none_or(|next| !next.starts_with(&below))
        };
        let mut free = name.clone();
        // Numbers tried before are taken.
        let next = numbers.entry(name.clone()).or_insert(1_u64);
        while !is_free(&free) {
            free = format!("{name}.{next}");
            *next += 1;
        }
        taken.insert(free.clone());
        free
    };
    paths.map(place).collect()
}

pub(in crate::cli) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let production = Production::new(&arguments.output, "looking")?;
    let interrupt = &production.watched.interrupt;
    let mut reading = arguments.reading.clone();
    reading.cache_size = reading.cache_size.or(Some(arguments.running.memory / 8 * CACHE_EIGHTHS));
    let place = Place::open(
        &arguments.place,
        reading.session(Settings { nan: arguments.nan.policy(), ..Settings::default() })?,
        interrupt,
    )?;
    place.spot.children(interrupt).map_err(|error| place.failed(error))?;
    // A single table, if one was named; an empty path stands for the whole file.
    let asked = place.spot.table().filter(|_| !place.is_whole()).map(|table| (String::new(), table));
    let files = if asked.is_some() { Vec::new() } else { find(&place, false, &production.watched)? };
    let found = asked.iter().chain(files.iter().flat_map(|file| &file.tables));
    // Tables that repeat the rows of others are skipped.
    let found = found.filter(|(_, table)| !table.repeats);
    // The path that a mount shows, which is not the table's own for tables of a file's current version. A path with
    // escapes exists only in a mount; then the table's own path is used.
    let path_of = |below: &str, table: &Table| {
        Some(place.path_in_file(below)).filter(|path| !path.contains('%')).unwrap_or_else(|| table.path.clone())
    };
    let tables: Vec<(String, Arc<Table>)> =
        found.map(|(below, table)| (path_of(below, table), table.clone())).collect();
    let (file, path) = TargetFile::split(&arguments.output);
    let is_own =
        |source: &Path| source.canonicalize().is_ok_and(|own| file.canonicalize().is_ok_and(|file| file == own));
    if place.spot.source().as_deref().is_some_and(is_own) {
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
    let places = match path {
        Some(path) => vec![path],
        None => places(tables.iter().map(|(own, _)| own.as_str())),
    };
    production.run(&job, &file, |production, target| {
        let mut written = 0;
        for ((_, table), path) in tables.iter().zip(&places) {
            if arguments.running.dry_run {
                let (name, file) = (&table.path, file.display());
                production.tell(&format!("{name}  →  {file}:{path}"))?;
            }
            match one(production, &job, target, table, &place.name, path) {
                Ok(()) => written += 1,
                Err(error)
                    if tables.len() == 1 || error.is_broken_pipe() || production.watched.interrupt.is_raised() =>
                {
                    return Err(error);
                }
                // If one table fails, the others are still written.
                Err(error) => error.say(),
            }
        }
        match tables.len() - written {
            0 => Ok(ExitCode::SUCCESS),
            failed if written > 0 => {
                say!("hepfs: {failed} of {} tables could not be written", tables.len());
                Ok(ExitCode::FAILURE)
            }
            _ => Err(Error::Usage(format!("{}: none of its tables could be written", place.name))),
        }
    })
}

/// Adds NaN as the fill value of columns whose only nulls are NaN, so that their stored values stay the same.
fn with_nan_fills(options: &Options, table: &Table, fields: &Fields) -> Options {
    let is_nan = |column: &&Column| {
        let rows = column.rows.as_ref().ok().filter(|rows| column.in_table && rows.data_type().is_floating());
        rows.is_some_and(|rows| rows.hints().nan == Nan::Missing { alone: true })
    };
    let names = table.columns.iter().filter(is_nan).map(|column| column.name.to_string());
    let fills = names.filter(|name| fields.find(name).is_some()).map(|name| format!("{name}=NaN"));
    // The user's options come last, and win.
    Options { fill: fills.chain(options.fill.iter().cloned()).collect(), ..options.clone() }
}

/// Writes a table, without the columns that cannot be stored.
fn one(
    production: &Production,
    job: &Job<'_>,
    target: &TargetFile<'_>,
    table: &Table,
    name: &str,
    path: &str,
) -> Result<(), Error> {
    let mut refused: HashMap<String, String> = HashMap::new();
    loop {
        let by_values = |field: &Field| refused.get(field.name()).cloned();
        let why_not = |field: &Field| by_values(field).or_else(|| why_not_stored(field, job.options));
        let (inputs, left_out) = Inputs::of_table(name, table, why_not, &production.watched.interrupt);
        let outcome = match inputs.fields.is_empty() && !table.columns.is_empty() {
            true => Err(Error::Usage(format!("{}: none of its columns can be stored", table.path))),
            false => {
                let options = with_nan_fills(job.options, table, &inputs.fields);
                production.write(&Job { options: &options, ..*job }, &inputs, target, path)
            }
        };
        match outcome {
            // Reasons found only while reading the values.
            Err(Error::Columns(more)) if more.iter().all(|more| more.column.is_some()) => {
                refused.extend(more.into_iter().filter_map(|Refused { column, reason }| Some((column?, reason))));
            }
            outcome => {
                for (column, reason) in left_out {
                    let (path, reason) = (printable(&table.path), printable(&reason));
                    say!("hepfs: {path}: column {column:?} is left out: {reason}");
                }
                return outcome;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::places;

    #[test]
    fn nothing_lies_below_a_table_and_no_path_is_taken_twice() {
        let places = |paths: &[&str]| places(paths.iter().copied());
        assert_eq!(places(&["/", "/a", "/a/b", "/c/d"]), ["/table", "/a", "/a.b", "/c/d"]);
        assert_eq!(places(&["/sub", "/sub/deep", "/sub.deep"]), ["/sub", "/sub.deep.1", "/sub.deep"]);
        assert_eq!(places(&["/", "/table/x", "/table.1"]), ["/table.2", "/table/x", "/table.1"]);
        assert_eq!(places(&["/t", "/t", "/u", "/t"]), ["/t", "/t.1", "/u", "/t.2"]);
    }
}
