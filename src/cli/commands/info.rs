//! `hepfs info SOURCE[:path]`.

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use crate::cli::Error;
use crate::cli::place::Named;
use crate::fs::tree::{ViewOptions, printable};
use crate::fs::{Kind, NodeRef};
use crate::source::Interrupt;

/// Deepest directory looked into for tables.
const DEEPEST: usize = 32;

/// Say which tables and arrays a file holds, and which rules it breaks
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// The metadata.json of that one directory
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    named: Named,
}

pub(in crate::cli) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let place = arguments.named.find(ViewOptions::default())?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    if arguments.json {
        let bytes = metadata_of(&place.node).map_err(|error| place.failed(error))?;
        out.write_all(&bytes).and_then(|()| out.flush()).map_err(Error::io("standard output"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if !place.is_directory() {
        return Err(Error::Usage(format!("{} is no directory; give a group, a table or a file", place.name)));
    }
    place.node.children(&Interrupt::new()).map_err(|error| place.failed(error))?;
    describe(&place.node, &place.name, &mut out, 0)
        .and_then(|()| place.context.unfinished().iter().try_for_each(|broken| finding(&json!(broken), &mut out)))
        .and_then(|()| out.flush())
        .map_err(Error::io("standard output"))?;
    Ok(ExitCode::SUCCESS)
}

/// The bytes of a directory's `metadata.json`.
fn metadata_of(directory: &NodeRef) -> Result<Vec<u8>, crate::fs::Error> {
    let interrupt = Interrupt::new();
    let file = directory.lookup(b"metadata.json", &interrupt)?;
    let size = file.size(crate::views::Effort::Exact, &interrupt)?.bytes();
    let mut bytes = Vec::new();
    file.read(0, usize::try_from(size).unwrap_or(usize::MAX), &mut bytes, &interrupt)?;
    Ok(bytes)
}

/// Describes a directory and those below it; `name` is for one that cannot be listed.
fn describe(directory: &NodeRef, name: &str, out: &mut impl Write, depth: usize) -> std::io::Result<()> {
    let interrupt = Interrupt::new();
    let children = match directory.children(&interrupt) {
        Ok(children) => children,
        Err(error) => return unlisted(name, &error, out),
    };
    if let Ok(bytes) = metadata_of(directory)
        && let Ok(metadata) = serde_json::from_slice::<Value>(&bytes)
    {
        if metadata["kind"] == "table" {
            table(&metadata, out)?
        } else {
            group(&metadata, out)?
        }
        findings(&metadata, out)?;
    }
    for entry in children.iter().filter(|entry| entry.kind == Kind::Directory) {
        if depth < DEEPEST && entry.name != ".hepfs" {
            let name = entry.name.to_string();
            match directory.lookup(&entry.name, &interrupt) {
                Ok(child) => describe(&child, &name, out, depth + 1)?,
                Err(error) => unlisted(&name, &error, out)?,
            }
        }
    }
    Ok(())
}

/// A directory that cannot be listed.
fn unlisted(name: &str, error: &crate::fs::Error, out: &mut impl Write) -> std::io::Result<()> {
    writeln!(out, "{}: {}", printable(name), printable(&error.to_string()))
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => printable(text),
        Value::Null => String::new(),
        other => printable(&other.to_string()),
    }
}

fn table(metadata: &Value, out: &mut impl Write) -> std::io::Result<()> {
    let list = |key: &str| metadata[key].as_array().cloned().unwrap_or_default();
    let columns = list("columns");
    writeln!(
        out,
        "table {}: {} rows, {} columns ({}, {})",
        text(&metadata["path"]),
        text(&metadata["rows"]),
        columns.len(),
        text(&metadata["dialect"]),
        text(&metadata["revision"]),
    )?;
    let widths = |key: &str| columns.iter().map(|column| text(&column[key]).chars().count()).max().unwrap_or(0).min(40);
    let (name_width, type_width) = (widths("name"), widths("type"));
    for column in &columns {
        let mut notes = Vec::new();
        if column["row_label"] == true {
            notes.push("row label".to_owned());
        }
        if column["in_table"] == false && column["error"].is_null() {
            notes.push(format!("{} rows: not in table.*", text(&column["rows"])));
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
        writeln!(out, "{}", line.trim_end())?;
    }
    for member in list("members") {
        one_member(&member, out)?;
    }
    Ok(())
}

fn group(metadata: &Value, out: &mut impl Write) -> std::io::Result<()> {
    writeln!(out, "group {}", text(&metadata["path"]))?;
    for member in metadata["members"].as_array().into_iter().flatten() {
        if member["kind"] != "group" && member["kind"] != "table" {
            one_member(member, out)?;
        }
    }
    Ok(())
}

fn one_member(member: &Value, out: &mut impl Write) -> std::io::Result<()> {
    let hidden: Vec<String> = member["not_shown"].as_array().into_iter().flatten().map(text).collect();
    let shape = if member["shape"].is_null() { String::new() } else { format!(" {}", text(&member["shape"])) };
    let class = match &member["datatype"] {
        Value::Null => String::new(),
        datatype => format!(" {}", text(&datatype["class"])),
    };
    write!(out, "  {} ({}{class}{shape})", text(&member["name"]), text(&member["kind"]))?;
    if hidden.is_empty() { writeln!(out) } else { writeln!(out, " not shown: {}", hidden.join("; ")) }
}

fn findings(metadata: &Value, out: &mut impl Write) -> std::io::Result<()> {
    metadata["findings"].as_array().into_iter().flatten().try_for_each(|broken| finding(broken, out))
}

fn finding(finding: &Value, out: &mut impl Write) -> std::io::Result<()> {
    writeln!(out, "  ! {}: {} ({})", text(&finding["path"]), text(&finding["found"]), text(&finding["rule"]))
}
