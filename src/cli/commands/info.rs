//! `hepfs info SOURCE[:path]`.

mod array;
mod html;
mod lines;
mod plots;
mod tree;

use std::collections::HashMap;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use self::lines::Lines;
use self::tree::{Seen, Tree};
use crate::cli::Error;
use crate::cli::options::{ColourOption, NanOption, ShownTimes};
use crate::cli::place::{NamedPlaces, Place, RequestedPlace};
use crate::cli::progress::{Out, Watched};
use crate::cli::signals::INTERRUPTED;
use crate::cli::tables::{self, about, walk};
use crate::cli::terminal::{Ink, Terminal};
use crate::session::{self, DirectoryDescription, Settings};
use crate::table::Table;
use crate::views::metadata::{self, DirectoryDocument, DirectoryKind, ShownMember};
use crate::views::{printable, printable_json};

/// Most links of a group whose listing describes its members: very many, since this command needs the descriptions.
const MOST_DESCRIBED: usize = 1 << 20;

/// Most groups to name as nearly tables.
const MOST_NEARLY: usize = 20;

/// Show the tables and arrays of a file as a tree, and the rules that it breaks
///
/// Tables have rows, columns, types, units and descriptions; arrays have type, shape, chunks and filters. Bytes are
/// those in the file and those of the decoded elements, without texts of variable length. For an array, under the name
/// that `info` of its group prints: type, shape, storage, attributes. Paths of groups and tables are those of a mount,
/// as in all commands; names are those in the file. On a terminal, lines of a tree end where it does.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hepfs info run.h5\n  hepfs info run.h5:run_042 --all\n  \
    hepfs info run.h5 --depth 1\n  hepfs info run.h5:run_042 --plots\n  hepfs info run.h5:run_042/energy\n  \
    hepfs info --json run.h5 | jq .members")]
pub(in crate::cli) struct Arguments {
    /// Print the metadata.json of that directory as a line of JSON, with the key `source`; of a folder that of each
    /// file's root group, of an array its entry there
    #[arg(long, conflicts_with_all = ["depth", "all"])]
    json: bool,

    #[command(flatten)]
    page: html::PageOptions,

    /// Draw the columns of tables: how values are spread, and how their medians run over the rows, from known
    /// statistics and a sample. Figures with `≈` are of the sample
    #[arg(long, conflicts_with_all = ["json", "html", "depth"])]
    plots: bool,

    /// Levels to show below the top, of which the columns of a table are one [default: all]
    #[arg(long, value_name = "LEVELS", conflicts_with = "html")]
    depth: Option<usize>,

    /// Show all members, columns and attributes. Without it, a line says how many more there are
    #[arg(long, conflicts_with = "html")]
    all: bool,

    #[command(flatten)]
    colours: ColourOption,

    #[command(flatten)]
    named: NamedPlaces,

    #[command(flatten)]
    shown_times: ShownTimes,

    #[command(flatten)]
    nan: NanOption,
}

pub(in crate::cli) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let (times, nan) = (arguments.shown_times.are_instants(), arguments.nan.policy());
    let settings = Settings { times, nan, most_described: MOST_DESCRIBED, ..Settings::default() };
    let terminal = Terminal::of_output(arguments.colours.when);
    arguments.named.each(&settings, ("looking", 1), |asked, watched| {
        let interrupt = &watched.interrupt;
        if arguments.page.html {
            return html::write(&asked.find(interrupt)?, &arguments.page, interrupt).map(|()| 0);
        }
        let mut out = BufWriter::new(Out::new());
        let outcome = match arguments.plots {
            true => asked
                .find(interrupt)
                .and_then(|place| plots::write(&place, arguments.all, &terminal, watched, &mut out)),
            false => describe(arguments, asked, watched, &terminal, &mut out),
        };
        let flushed = out.flush().map_err(Error::io("standard output"));
        if interrupt.is_raised() {
            say!("hepfs: interrupted");
            return Ok(INTERRUPTED);
        }
        outcome.and_then(|code| flushed.map(|()| code))
    })
}

/// Describes a place. Returns the exit code.
fn describe(
    arguments: &Arguments,
    asked: &RequestedPlace<'_>,
    watched: &Watched,
    terminal: &Terminal,
    out: &mut dyn Write,
) -> Result<u8, Error> {
    let interrupt = &watched.interrupt;
    let place = match asked.find(interrupt) {
        Ok(place) if place.is_directory() => place,
        Err(error @ Error::Open(_)) => return Err(error),
        other => match array::find(asked, interrupt) {
            Some((directory, one)) => return of_member(&directory, &one, arguments.json, out).map(|()| 0),
            None => other?,
        },
    };
    let is_whole = arguments.all;
    if let Some(table) = tables::dataset(&place, interrupt)? {
        if arguments.json {
            return of_dataset(&place, &table, out).map(|()| 0);
        }
        let prefix = if place.is_one_of_several { place.prefix(None) } else { String::new() };
        return Lines { out, terminal, is_whole, prefix: &prefix, is_cut: false }.table(&table).map(|()| 0);
    }
    let (mut code, mut has_any, mut is_cut) = (0, false, false);
    walk(&place, watched, &mut |met| {
        let prefix = place.prefix(met.source);
        let (spot, described) = match &met.listed {
            Ok((spot, _)) => (spot, spot.described(interrupt)),
            Err(reason) => {
                code = 1;
                let line = format!("{prefix}{}", about(met.path, reason));
                if arguments.json {
                    say!("hepfs: {line}");
                } else {
                    writeln!(out, "{line}").map_err(Error::io("standard output"))?;
                }
                return Ok(false);
            }
        };
        // Folders and `where/` have no description.
        let directory = match described {
            Ok(directory) => directory,
            Err(session::Error::NotFound) => return Ok(true),
            Err(error) => return Err(place.failed(error)),
        };
        has_any = true;
        let source = met.source.unwrap_or(place.source());
        if arguments.json {
            let line = directory.line(interrupt).map_err(|error| place.failed(error))?;
            writeln!(out, "{}", with_source(source, &line)).map_err(Error::io("standard output"))?;
            return Ok(false);
        }
        // On a terminal, the name of a file is a heading.
        let prefix = if terminal.is_terminal && !prefix.is_empty() {
            let heading = terminal.line(&[(Ink::Name, prefix.trim_end_matches(": ").into())]);
            writeln!(out, "{heading}").map_err(Error::io("standard output"))?;
            ""
        } else {
            &prefix
        };
        let (mut nearly, mut hint) = (Nearly::default(), None);
        let mut tree = Tree {
            lines: Lines { out, terminal, is_whole, prefix, is_cut: false },
            depth: arguments.depth.unwrap_or(usize::MAX),
            interrupt,
            visit: &mut |path, directory| {
                watched.add(1);
                nearly.see(prefix, path, directory);
                hint = hint.take().or_else(|| directory.table().and_then(|table| arguments.nan.hint(table)));
            },
            seen: Seen::default(),
        };
        let path = place.path_in_file(met.path);
        tree.draw(spot, &directory, &path)?;
        if interrupt.is_raised() {
            return Ok(false);
        }
        tree.lines.findings(&place.session.unfinished(), "")?;
        if path == "/" {
            tree.sum_up(place.session.opener.stat(source).map_or(0, |found| found.identity.size))?;
        }
        is_cut |= tree.lines.is_cut;
        code = code.max(u8::from(tree.seen.has_failed));
        let hint = hint.map(|hint| format!("{prefix}note: {hint}"));
        let mut notes = nearly.take().chain(hint);
        notes.try_for_each(|line| writeln!(out, "{line}")).map_err(Error::io("standard output"))?;
        Ok(false)
    })?;
    if is_cut && !terminal.is_terminal {
        say!("hepfs: {}: not everything is shown; --all shows it", printable(&place.name));
    }
    if !has_any && code == 0 && !place.is_whole() {
        let owner = place.name_above(|spot| spot.described(interrupt).is_ok());
        let reason = match place.is_folder() {
            true => "there is no HDF5 file in this folder".to_owned(),
            false => format!("not a table, a group or a file, but a part of {owner}: name that instead"),
        };
        return Err(Error::Usage(format!("{}: {reason}", place.name)));
    }
    Ok(code)
}

/// Writes the description of an array, a column or a link.
fn of_member(directory: &Place, one: &Value, is_json: bool, out: &mut dyn Write) -> Result<(), Error> {
    let source = directory.spot.source();
    let source = source.as_deref();
    let lines = match (is_json, source) {
        (true, Some(source)) => vec![with_source(source, &printable_json(&one.to_string()))],
        _ => array::described(one, &printable(&directory.path_in_file(&text(&one["name"])))),
    };
    let prefix = if is_json { String::new() } else { directory.prefix(source) };
    lines.iter().try_for_each(|line| writeln!(out, "{prefix}{line}")).map_err(Error::io("standard output"))
}

/// Writes the description of a dataset as JSON.
fn of_dataset(place: &Place, table: &Table, out: &mut dyn Write) -> Result<(), Error> {
    let directory = DirectoryDocument {
        path: &table.path,
        called: DirectoryKind::Table,
        attributes: &[],
        members: &[],
        values: &HashMap::new(),
        nearly: None,
        findings: &table.findings,
    };
    let views = table.columns.iter().map(|column| ShownMember::new(&column.name, "column"));
    let line = metadata::table(table, views, &directory, metadata::Lines::One);
    let line = with_source(Path::new(&place.name), &String::from_utf8_lossy(&line));
    writeln!(out, "{line}").map_err(Error::io("standard output"))
}

/// Groups of a file that are nearly tables, for a file without tables.
#[derive(Default)]
struct Nearly {
    has_table: bool,
    lines: Vec<String>,
    more: usize,
}

impl Nearly {
    /// Records a directory.
    fn see(&mut self, prefix: &str, path: &str, directory: &DirectoryDescription) {
        self.has_table |= directory.table().is_some();
        let Some(reason) = directory.nearly() else { return };
        if self.lines.len() < MOST_NEARLY {
            self.lines.push(format!("{prefix}nearly a table: {}", printable(&format!("{path}: {reason}"))));
        } else {
            self.more += 1;
        }
    }

    /// The lines about groups that are nearly tables, unless the file has a table.
    fn take(self) -> impl Iterator<Item = String> {
        let Self { has_table, mut lines, more } = self;
        lines.extend((more > 0).then(|| format!("… and {more} more that nearly are tables")));
        lines.into_iter().filter(move |_| !has_table)
    }
}

/// A JSON object, with the path of its source added.
fn with_source(source: &Path, object: &str) -> String {
    let source = printable_json(&json!(source.display().to_string()).to_string());
    format!("{{\"source\":{source},{}", object.trim_start_matches('{'))
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => printable(text),
        Value::Null => String::new(),
        other => printable(&other.to_string()),
    }
}
