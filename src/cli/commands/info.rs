//! `hepfs info SOURCE[:path]`.

mod array;

use std::collections::{HashMap, HashSet};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use crate::cli::Error;
use crate::cli::options::{NanOption, ShownTimes};
use crate::cli::place::{Named, Place};
use crate::cli::tables::{self, about, walk};
use crate::session::{self, FileSpot, Settings, Spot};
use crate::source::Interrupt;
use crate::table::Table;
use crate::views::metadata::{self, Called, Directory, Member};
use crate::views::{printable, printable_json};

/// Links of a group whose members are described while it is listed, since they will be asked for.
const MOST_DESCRIBED: usize = 1 << 20;

/// Most groups that are named as nearly tables.
const MOST_NEARLY: usize = 20;

/// Say which tables and arrays a file holds, and which rules it breaks
///
/// Of an array, under the name that `info` of its group prints, the type, the shape, how it is stored, its attributes.
/// Paths of groups and tables are those of a mount, as all commands take them; names are those in the file.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// The metadata.json of that one directory, a JSON object a line, with the key `source`; of a folder that of each
    /// file's root group, of an array what it says there
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    named: Named,

    #[command(flatten)]
    shown_times: ShownTimes,

    #[command(flatten)]
    nan: NanOption,
}

pub(in crate::cli) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let (times, nan) = (arguments.shown_times.are_instants(), arguments.nan.policy());
    let views = Settings { times, nan, most_described: MOST_DESCRIBED, ..Settings::default() };
    arguments.named.each(&views, 1, |asked| {
        let interrupt = Interrupt::new();
        let mut out = BufWriter::new(std::io::stdout().lock());
        let place = match asked.find(&interrupt) {
            Ok(place) if place.is_directory() => place,
            Err(error @ Error::Open(_)) => return Err(error),
            other => match array::find(asked, &interrupt) {
                Some((directory, one)) => {
                    let source = directory.spot.source();
                    let source = source.as_deref();
                    let lines = match (arguments.json, source) {
                        (true, Some(source)) => vec![with_source(source, one)],
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
        if let Some(table) = tables::dataset(&place, &interrupt)? {
            return of_dataset(&place, &table, arguments.json).map(|()| 0);
        }
        let (mut failed, mut nearly, mut has_any) = (0, Nearly::default(), false);
        let mut of_nan: Option<String> = None;
        walk(&place, &interrupt, &mut |met| {
            let prefix = place.prefix(met.source);
            if met.path.is_empty() {
                nearly.take().try_for_each(|line| writeln!(out, "{line}")).map_err(Error::io("standard output"))?;
            }
            let metadata = match &met.listed {
                Ok((directory, _)) => metadata_of(directory, &interrupt),
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
            has_any |= !matches!(metadata, Err(session::Error::NotFound));
            if let (None, false, Ok((directory, _))) = (&of_nan, arguments.json, &met.listed) {
                let hint = directory.table().and_then(|table| arguments.nan.hint(&table));
                of_nan = hint.map(|hint| format!("{prefix}note: {hint}"));
            }
            // Of a place that is no folder, of each file in a folder.
            let source = met.source.filter(|_| met.path.is_empty());
            let lines = match (metadata, source) {
                (Ok(metadata), Some(source)) if arguments.json => vec![with_source(source, metadata)],
                (Err(error), Some(_)) if arguments.json && has_any => return Err(place.failed(error)),
                (Ok(metadata), _) if !arguments.json => {
                    let path = printable(&place.path_in_file(met.path));
                    nearly.see(&prefix, &path, &metadata);
                    described(&metadata, &path)
                }
                // Folders and `where/` have none.
                _ => Vec::new(),
            };
            let unfinished = if source.is_some() && !arguments.json { place.session.unfinished() } else { Vec::new() };
            let prefix = if arguments.json { String::new() } else { prefix };
            let mut lines = lines.into_iter().chain(unfinished.iter().map(|broken| finding(&json!(broken))));
            lines.try_for_each(|line| writeln!(out, "{prefix}{line}")).map_err(Error::io("standard output"))?;
            Ok(!(arguments.json && source.is_some()))
        })?;
        let said = nearly.take().chain(of_nan);
        said.into_iter().try_for_each(|line| writeln!(out, "{line}")).map_err(Error::io("standard output"))?;
        out.flush().map_err(Error::io("standard output"))?;
        if !has_any && failed == 0 && !place.is_whole() {
            let owner = place.name_above(|spot| metadata_file(spot, &interrupt).is_ok());
            let reason = match place.is_folder() {
                true => "there is no HDF5 file in this folder".to_owned(),
                false => format!("not a table, a group or a file, but what belongs to {owner}: give that"),
            };
            return Err(Error::Usage(format!("{}: {reason}", place.name)));
        }
        Ok(failed)
    })
}

/// Writes what there is to say of a dataset.
fn of_dataset(place: &Place, table: &Table, json: bool) -> Result<(), Error> {
    let directory = Directory {
        path: &table.path,
        called: Called::Table,
        attributes: &[],
        members: &[],
        values: &HashMap::new(),
        nearly: None,
        findings: &table.findings,
    };
    let views = table.columns.iter().map(|column| Member::new(&column.name, "column"));
    let metadata = serde_json::from_slice(&metadata::table(table, views, &directory)).unwrap_or_default();
    let lines = if json {
        vec![with_source(Path::new(&place.name), metadata)]
    } else {
        let left_out = table.left_out.iter().map(|(file, reason)| printable(&format!("  {file}: left out: {reason}")));
        described(&metadata, &table.path).into_iter().chain(left_out).collect()
    };
    let prefix = if place.is_one_of_several && !json { place.prefix(None) } else { String::new() };
    let mut out = std::io::stdout().lock();
    lines.iter().try_for_each(|line| writeln!(out, "{prefix}{line}")).map_err(Error::io("standard output"))
}

/// Groups of a file that nearly are tables, for a file that has none.
#[derive(Default)]
struct Nearly {
    has_table: bool,
    lines: Vec<String>,
    more: usize,
}

impl Nearly {
    /// Takes note of a directory.
    fn see(&mut self, prefix: &str, path: &str, metadata: &Value) {
        self.has_table |= is_table(metadata);
        if metadata["no_table"].is_null() {
            return;
        }
        if self.lines.len() < MOST_NEARLY {
            let reason = text(&metadata["no_table"]);
            self.lines.push(format!("{prefix}nearly a table: {path}: {reason}"));
        } else {
            self.more += 1;
        }
    }

    /// The lines about them, where the file has no table; nothing is left for the next file.
    fn take(&mut self) -> impl Iterator<Item = String> + use<> {
        let Self { has_table, mut lines, more } = std::mem::take(self);
        lines.extend((more > 0).then(|| format!("… and {more} more that nearly are tables")));
        lines.into_iter().filter(move |_| !has_table)
    }
}

/// The `metadata.json` of a directory that is a table or a group: of a folder it may be the table of many files of this
/// name.
fn metadata_file(directory: &Spot, interrupt: &Interrupt) -> Result<FileSpot, session::Error> {
    match directory.lookup(b"metadata.json", interrupt)? {
        Spot::File(file) => Ok(file),
        _ => Err(session::Error::NotFound),
    }
}

/// What a directory's `metadata.json` says.
fn metadata_of(directory: &Spot, interrupt: &Interrupt) -> Result<Value, session::Error> {
    let bytes = metadata_file(directory, interrupt)?.bytes(interrupt)?;
    serde_json::from_slice(&bytes).map_err(|error| session::Error::Io(error.to_string()))
}

/// The same with the file that it is of, as a line.
fn with_source(source: &Path, metadata: Value) -> String {
    let mut said = json!({ "source": source.display().to_string() });
    if let (Some(said), Value::Object(metadata)) = (said.as_object_mut(), metadata) {
        said.extend(metadata);
    }
    printable_json(&said.to_string())
}

/// The lines about the directory at `path`.
fn described(metadata: &Value, path: &str) -> Vec<String> {
    let mut lines = match metadata["kind"].as_str() {
        _ if is_table(metadata) => table(metadata, path),
        Some("made") => Vec::new(),
        _ => group(metadata, path),
    };
    lines.extend(metadata["findings"].as_array().into_iter().flatten().map(finding));
    lines
}

/// Whether a directory has a table, which a group may be that only its members tell of.
fn is_table(metadata: &Value) -> bool {
    !metadata["columns"].is_null()
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => printable(text),
        Value::Null => String::new(),
        other => printable(&other.to_string()),
    }
}

fn table(metadata: &Value, path: &str) -> Vec<String> {
    let list = |key: &str| metadata[key].as_array().cloned().unwrap_or_default();
    let columns = list("columns");
    let by = if metadata["recognised_by"] == "shape" { "by " } else { "" };
    let revision = text(&metadata["revision"]);
    let mut lines = vec![format!(
        "table {path}: {} rows, {} columns ({by}{}{}{revision})",
        text(&metadata["rows"]),
        columns.len(),
        text(&metadata["dialect"]),
        if revision.is_empty() { "" } else { ", " },
    )];
    let widths = |key: &str| columns.iter().map(|column| text(&column[key]).chars().count()).max().unwrap_or(0).min(40);
    let (name_width, type_width) = (widths("name"), widths("type"));
    for column in &columns {
        let mut notes = Vec::new();
        if column["row_label"] == true {
            notes.push("row label".to_owned());
        }
        if column["in_table"] == false && column["error"].is_null() {
            let rows = Some(text(&column["rows"])).filter(|_| column["rows"] != metadata["rows"]);
            notes.push(rows.map(|rows| format!("{rows} rows: ")).unwrap_or_default() + "not in table.*");
        }
        if !column["units"].is_null() {
            notes.push(format!("[{}]", text(&column["units"])));
        }
        if !column["error"].is_null() {
            notes.push(format!("unreadable: {}", text(&column["error"])));
        }
        notes.push(text(&column["description"]));
        let line = format!(
            "  {:name_width$}  {:type_width$}  {}",
            text(&column["name"]),
            text(&column["type"]),
            notes.join(" "),
        );
        lines.push(line.trim_end().to_owned());
    }
    let columns: HashSet<String> = columns.iter().map(|column| text(&column["name"])).collect();
    let reasons: HashMap<String, String> =
        list("left_out").iter().map(|left| (text(&left["name"]), text(&left["reason"]))).collect();
    let members = list("members");
    let others = members.iter().filter(|member| !columns.contains(&text(&member["name"])));
    lines.extend(others.map(|member| match reasons.get(&text(&member["name"])) {
        Some(reason) => format!("{} no column: {reason}", one_member(member)),
        None => one_member(member),
    }));
    lines
}

fn group(metadata: &Value, path: &str) -> Vec<String> {
    let members = metadata["members"].as_array().into_iter().flatten();
    let members = members.filter(|member| member["kind"] != "group" && member["kind"] != "table");
    [format!("group {path}")].into_iter().chain(members.map(one_member)).collect()
}

fn one_member(member: &Value) -> String {
    // The type tells which files a dataset has: one that is missing is no news where others are there.
    let is_shown = member["shown_as"].as_array().is_some_and(|names| !names.is_empty());
    let hidden = member["not_shown"].as_array().into_iter().flatten().filter(|_| !is_shown);
    let hidden: Vec<String> = hidden.map(text).collect();
    let shape = if member["shape"].is_null() { String::new() } else { format!(" {}", text(&member["shape"])) };
    let class = match &member["datatype"] {
        Value::Null => String::new(),
        datatype => format!(" {}", text(&datatype["class"])),
    };
    let hidden = if hidden.is_empty() { String::new() } else { format!(" not shown: {}", hidden.join("; ")) };
    format!("  {} ({}{class}{shape}){hidden}", text(&member["name"]), text(&member["kind"]))
}

fn finding(finding: &Value) -> String {
    format!("  ! {}: {} ({})", text(&finding["path"]), text(&finding["found"]), text(&finding["rule"]))
}
