//! `hepfs info SOURCE[:path]`.

mod array;
mod html;

use std::collections::{HashMap, HashSet};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};

use crate::cli::Error;
use crate::cli::options::{NanOption, ShownTimes};
use crate::cli::place::{NamedPlaces, Place};
use crate::cli::progress::Out;
use crate::cli::tables::{self, about, walk};
use crate::session::{self, DirectoryDescription, Settings};
use crate::store::Rows;
use crate::table::{Column, Finding, Table, Unreadable, arrow_name};
use crate::views::metadata::{self, DirectoryDocument, DirectoryKind, Lines, ShownMember};
use crate::views::{printable, printable_json};

/// Most links of a group whose listing describes its members: very many, since this command needs the descriptions.
const MOST_DESCRIBED: usize = 1 << 20;

/// Most groups to name as nearly tables.
const MOST_NEARLY: usize = 20;

/// Describe the tables and arrays of a file, and the rules that it breaks
///
/// For an array, under the name that `info` of its group prints: type, shape, storage, attributes. Paths of groups and
/// tables are those of a mount, as in all commands; names are those in the file.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// Print the metadata.json of that directory as a line of JSON, with the key `source`; of a folder that of each
    /// file's root group, of an array its entry there
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    page: html::PageOptions,

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
    arguments.named.each(&settings, ("looking", 1), |asked, watched| {
        let interrupt = &watched.interrupt;
        if arguments.page.html {
            return html::write(&asked.find(interrupt)?, &arguments.page, interrupt).map(|()| 0);
        }
        let mut out = BufWriter::new(Out::new());
        let place = match asked.find(interrupt) {
            Ok(place) if place.is_directory() => place,
            Err(error @ Error::Open(_)) => return Err(error),
            other => match array::find(asked, interrupt) {
                Some((directory, one)) => {
                    let source = directory.spot.source();
                    let source = source.as_deref();
                    let lines = match (arguments.json, source) {
                        (true, Some(source)) => vec![with_source(source, &printable_json(&one.to_string()))],
                        _ => array::described(&one, &printable(&directory.path_in_file(&text(&one["name"])))),
                    };
                    let prefix = if arguments.json { String::new() } else { directory.prefix(source) };
                    let mut lines = lines.iter();
                    lines.try_for_each(|line| writeln!(out, "{prefix}{line}")).map_err(Error::io("standard output"))?;
                    return out.flush().map_err(Error::io("standard output")).map(|()| 0);
                }
                None => other?,
            },
        };
        if let Some(table) = tables::dataset(&place, interrupt)? {
            return of_dataset(&place, &table, arguments.json).map(|()| 0);
        }
        let (mut failed, mut nearly, mut has_any) = (0, Nearly::default(), false);
        let mut of_nan: Option<String> = None;
        walk(&place, watched, &mut |met| {
            let prefix = place.prefix(met.source);
            if met.path.is_empty() {
                nearly.take().try_for_each(|line| writeln!(out, "{line}")).map_err(Error::io("standard output"))?;
            }
            let said = match &met.listed {
                Ok((directory, _)) => directory.described(interrupt).and_then(|directory| match arguments.json {
                    true => directory.line(interrupt).map(Said::Line),
                    false => Ok(Said::Model(directory.members(interrupt)?, directory)),
                }),
                Err(reason) => {
                    failed = 1;
                    let line = format!("{prefix}{}", about(met.path, reason));
                    if arguments.json {
                        say!("hepfs: {line}");
                    } else {
                        writeln!(out, "{line}").map_err(Error::io("standard output"))?;
                    }
                    return Ok(false);
                }
            };
            has_any |= !matches!(said, Err(session::Error::NotFound));
            if let (None, false, Ok((directory, _))) = (&of_nan, arguments.json, &met.listed) {
                let hint = directory.table().and_then(|table| arguments.nan.hint(&table));
                of_nan = hint.map(|hint| format!("{prefix}note: {hint}"));
            }
            // Set at the top directory of a file: the place itself, or the root of each file in a folder.
            let source = met.source.filter(|_| met.path.is_empty());
            let lines = match (said, source) {
                (Ok(Said::Line(line)), Some(source)) => vec![with_source(source, &line)],
                (Err(error), Some(_)) if arguments.json && has_any => return Err(place.failed(error)),
                (Ok(Said::Model(members, directory)), _) => {
                    let path = printable(&place.path_in_file(met.path));
                    nearly.see(&prefix, &path, &directory);
                    described(&directory, &members, &path)
                }
                // Folders and `where/` have no description.
                _ => Vec::new(),
            };
            let unfinished = if source.is_some() && !arguments.json { place.session.unfinished() } else { Vec::new() };
            let prefix = if arguments.json { String::new() } else { prefix };
            let mut lines = lines.into_iter().chain(unfinished.iter().map(finding));
            lines.try_for_each(|line| writeln!(out, "{prefix}{line}")).map_err(Error::io("standard output"))?;
            Ok(!(arguments.json && source.is_some()))
        })?;
        let said = nearly.take().chain(of_nan);
        said.into_iter().try_for_each(|line| writeln!(out, "{line}")).map_err(Error::io("standard output"))?;
        out.flush().map_err(Error::io("standard output"))?;
        if !has_any && failed == 0 && !place.is_whole() {
            let owner = place.name_above(|spot| spot.described(interrupt).is_ok());
            let reason = match place.is_folder() {
                true => "there is no HDF5 file in this folder".to_owned(),
                false => format!("not a table, a group or a file, but a part of {owner}: name that instead"),
            };
            return Err(Error::Usage(format!("{}: {reason}", place.name)));
        }
        Ok(failed)
    })
}

/// Writes the description of a dataset.
fn of_dataset(place: &Place, table: &Table, json: bool) -> Result<(), Error> {
    let lines = if json {
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
        let line = metadata::table(table, views, &directory, Lines::One);
        vec![with_source(Path::new(&place.name), &String::from_utf8_lossy(&line))]
    } else {
        let left_out = table.left_out.iter().map(|(file, reason)| printable(&format!("  {file}: left out: {reason}")));
        let lines = of_table(table, &[], &table.path).into_iter();
        lines.chain(table.findings.iter().map(finding)).chain(left_out).collect()
    };
    let prefix = if place.is_one_of_several && !json { place.prefix(None) } else { String::new() };
    let mut out = Out::new();
    lines.iter().try_for_each(|line| writeln!(out, "{prefix}{line}")).map_err(Error::io("standard output"))
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
            let reason = printable(reason);
            self.lines.push(format!("{prefix}nearly a table: {path}: {reason}"));
        } else {
            self.more += 1;
        }
    }

    /// Takes the lines about groups that are nearly tables, unless the file has a table; resets the record for the next
    /// file.
    fn take(&mut self) -> impl Iterator<Item = String> + use<> {
        let Self { has_table, mut lines, more } = std::mem::take(self);
        lines.extend((more > 0).then(|| format!("… and {more} more that nearly are tables")));
        lines.into_iter().filter(move |_| !has_table)
    }
}

/// The description of a directory: a line of JSON, or its members and the directory itself.
enum Said {
    Line(String),
    Model(Vec<ShownMember>, DirectoryDescription),
}

/// A JSON object, with the path of its source added.
fn with_source(source: &Path, object: &str) -> String {
    let source = printable_json(&json!(source.display().to_string()).to_string());
    format!("{{\"source\":{source},{}", object.trim_start_matches('{'))
}

/// The lines about the directory at `path`.
fn described(directory: &DirectoryDescription, members: &[ShownMember], path: &str) -> Vec<String> {
    let mut lines = match directory.table() {
        Some(table) => of_table(table, members, path),
        None if directory.is_made_up() => Vec::new(),
        None => of_group(members, path),
    };
    lines.extend(directory.findings().iter().map(finding));
    lines
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => printable(text),
        Value::Null => String::new(),
        other => printable(&other.to_string()),
    }
}

fn of_table(table: &Table, members: &[ShownMember], path: &str) -> Vec<String> {
    let by = if table.recognised_by == "shape" { "by " } else { "" };
    let revision = printable(&table.revision);
    let mut lines = vec![format!(
        "table {path}: {} rows, {} columns ({by}{}{}{revision})",
        table.rows,
        table.columns.len(),
        table.dialect,
        if revision.is_empty() { "" } else { ", " },
    )];
    let columns = table.columns.iter().map(|column| {
        let shown = column.shown();
        let data_type = shown.as_ref().map(|rows| arrow_name(rows.data_type())).unwrap_or_default();
        (printable(&column.name.to_string()), printable(&data_type), notes(table, column, &shown))
    });
    let columns: Vec<(String, String, String)> = columns.collect();
    let width =
        |length: &dyn Fn(&(String, String, String)) -> usize| columns.iter().map(length).max().unwrap_or(0).min(40);
    let name_width = width(&|(name, ..)| name.chars().count());
    let type_width = width(&|(_, data_type, _)| data_type.chars().count());
    for (name, data_type, notes) in &columns {
        let line = format!("  {name:name_width$}  {data_type:type_width$}  {notes}");
        lines.push(line.trim_end().to_owned());
    }
    let names: HashSet<&str> = columns.iter().map(|(name, ..)| name.as_str()).collect();
    // In a table whose group has other members, these themselves say why they are not columns.
    let says_why = table.only_adds || !table.left_out.is_empty();
    let of_members = members.iter().filter_map(|member| Some((&member.name, member.left_out.as_ref()?)));
    let left_out = of_members.chain(table.left_out.iter().map(|(name, reason)| (name, reason)));
    let left_out =
        left_out.filter(|_| says_why).map(|(name, reason)| (printable(&name.to_string()), printable(reason)));
    let reasons: HashMap<String, String> = left_out.collect();
    let others = members.iter().map(|member| (printable(&member.name.to_string()), member));
    lines.extend(others.filter(|(name, _)| !names.contains(name.as_str())).map(
        |(name, member)| match reasons.get(&name) {
            Some(reason) => format!("{} no column: {reason}", one_member(member)),
            None => one_member(member),
        },
    ));
    lines
}

/// The remarks that follow the name and type of a column.
fn notes(table: &Table, column: &Column, shown: &Result<Arc<dyn Rows>, Unreadable>) -> String {
    let mut notes = Vec::new();
    if column.is_label {
        notes.push("row label".to_owned());
    }
    if let Ok(own) = shown.as_ref().map(|rows| rows.len())
        && !column.in_table
    {
        let rows = Some(own).filter(|own| *own != table.rows).map(|own| format!("{own} rows: "));
        notes.push(rows.unwrap_or_default() + "not in table.*");
    }
    notes.extend(column.meaning.units.as_ref().map(|units| format!("[{}]", printable(units))));
    notes.extend(shown.as_ref().err().map(|reason| format!("unreadable: {}", printable(reason))));
    notes.push(column.meaning.description.as_ref().map(|text| printable(text)).unwrap_or_default());
    notes.join(" ")
}

fn of_group(members: &[ShownMember], path: &str) -> Vec<String> {
    let members = members.iter().filter(|member| member.kind != "group" && member.kind != "table");
    [format!("group {path}")].into_iter().chain(members.map(one_member)).collect()
}

fn one_member(member: &ShownMember) -> String {
    // The type determines which files a dataset has, so a missing one is reported only if there are no others.
    let hidden = member.not_shown.iter().filter(|_| member.names().is_empty());
    let hidden: Vec<String> = hidden.map(|reason| printable(reason)).collect();
    let shape = member.dataset().filter(|dataset| !dataset.null).map(|dataset| format!(" {}", json!(dataset.shape)));
    let class = member.class().map(|class| format!(" {class}")).unwrap_or_default();
    let hidden = if hidden.is_empty() { String::new() } else { format!(" not shown: {}", hidden.join("; ")) };
    let name = printable(&member.name.to_string());
    format!("  {name} ({}{class}{}){hidden}", member.kind, shape.unwrap_or_default())
}

fn finding(finding: &Finding) -> String {
    format!("  ! {}: {} ({})", printable(&finding.path), printable(&finding.found), printable(finding.rule.text))
}
