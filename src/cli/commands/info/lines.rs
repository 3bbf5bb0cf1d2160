//! Lines about an object: attributes, columns, findings.

use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;

use bstr::BString;
use serde_json::Value;

use super::array;
use crate::activity::words::{bytes, count, counted};
use crate::catalogue::{Attribute, Class, Dataset};
use crate::cli::Error;
use crate::cli::terminal::{Ink, Terminal, width};
use crate::store::Rows;
use crate::table::{Column, Finding, Table, Unreadable, arrow_name};
use crate::views::metadata::attribute_value;
use crate::views::page::format_of;

/// Most columns that are shown of a table.
const MOST_COLUMNS: usize = 40;

/// Most groups or files to name that a table leaves out.
const MOST_LEFT_OUT: usize = 20;

/// Most attributes of the top.
const MOST_AT_TOP: usize = 20;

/// Most attributes in a line.
const MOST_ATTRIBUTES: usize = 6;

/// Most elements of an attribute in a line with others.
const MOST_ELEMENTS: u64 = 20;

/// Most findings that are shown of a group or table.
const MOST_FINDINGS: usize = 10;

/// Most characters of a value in a line of attributes and behind a scalar, and of an array's type.
const MOST_OF_VALUE: usize = 60;

/// Most columns of the terminal that names, types and units take in a list of columns.
const MOST_WIDE: usize = 40;

/// Text of a line, in inks.
pub(super) type Parts<'a> = Vec<(Ink, Cow<'a, str>)>;

/// Writes lines about objects, and counts those beyond a limit.
pub(super) struct Lines<'a> {
    pub out: &'a mut dyn Write,
    pub terminal: &'a Terminal,
    /// Whether everything is shown, without limits.
    pub is_whole: bool,
    /// Begins each line: the file's name, if there are several.
    pub prefix: &'a str,
    /// Whether members or columns are not shown.
    pub is_cut: bool,
}

impl Lines<'_> {
    /// Writes a line.
    ///
    /// # Errors
    /// As for all methods: if the output is closed.
    pub fn line(&mut self, before: &str, mut parts: Parts<'_>) -> Result<(), Error> {
        parts.insert(0, (Ink::Faint, format!("{}{before}", self.prefix).into()));
        writeln!(self.out, "{}", self.terminal.line(&parts)).map_err(Error::io("standard output"))
    }

    /// Text of the file, escaped as [`Terminal::shown`] does.
    pub fn shown(&self, text: &str) -> String {
        self.terminal.shown(text)
    }

    /// Writes a table that is no directory of a file.
    pub fn table(&mut self, table: &Table) -> Result<(), Error> {
        let text = format!("{}: {}", table.path, table_in_words(table));
        self.line("", vec![(Ink::Faint, "table ".into()), (Ink::Plain, self.shown(&text).into())])?;
        self.columns(table, "  ")?;
        self.findings(&table.findings, "  ")?;
        self.left_out(table, "  ")
    }

    /// Writes attributes: one below the other at the top, in a line elsewhere.
    pub fn attributes(&mut self, attributes: &[Attribute], is_top: bool, before: &str) -> Result<(), Error> {
        if is_top || self.is_whole {
            let most = self.most(attributes.len(), MOST_AT_TOP);
            for attribute in attributes.iter().take(most) {
                let name = self.shown(&attribute.name.to_string());
                let value = self.shown(&array::as_json(&attribute_value(attribute)));
                self.line(before, vec![(Ink::Faint, format!("@{name}: ").into()), (Ink::Plain, value.into())])?;
            }
            return self.more(attributes.len() - most, "attributes", before);
        }
        // Addresses mean nothing to people.
        let mut shown = attributes.iter().filter(|attribute| !attribute.datatype.holds_reference());
        let few: Vec<String> = shown.by_ref().take(MOST_ATTRIBUTES).map(short_attribute).collect();
        if few.is_empty() {
            return Ok(());
        }
        let more = shown.count();
        let more = if more > 0 { format!(", … {} more", count(more as u64)) } else { String::new() };
        self.line(before, vec![(Ink::Faint, self.shown(&format!("@{}{more}", few.join(", @"))).into())])
    }

    /// Writes the columns of a table.
    pub fn columns(&mut self, table: &Table, before: &str) -> Result<(), Error> {
        let most = self.most(table.columns.len(), MOST_COLUMNS);
        let described = table.columns.iter().take(most).map(|column| {
            let shown = column.shown();
            let units = column.shown_units().map(|units| format!("[{units}]")).unwrap_or_default();
            let texts = [column.name.to_string(), type_name(&shown), units];
            let [name, type_name, units] = texts.map(|text| self.shown(&text));
            let type_name = match self.is_whole {
                true => type_name,
                false => self.terminal.clipped(&type_name, MOST_WIDE).into_owned(),
            };
            ([name, type_name, units], self.shown(&notes(table, column, &shown)), shown.is_err())
        });
        let described: Vec<([String; 3], String, bool)> = described.collect();
        let widths: [usize; 3] = std::array::from_fn(|at| {
            described.iter().map(|(texts, ..)| width(&texts[at])).max().unwrap_or(0).min(MOST_WIDE)
        });
        for (texts, notes, is_unreadable) in &described {
            let last = if notes.is_empty() { texts.iter().rposition(|text| !text.is_empty()) } else { Some(3) };
            let mut parts: Parts<'_> = Vec::new();
            for (at, text) in texts.iter().enumerate().filter(|(at, _)| widths[*at] > 0 && Some(*at) <= last) {
                let ink = if at == 0 { Ink::Name } else { Ink::Faint };
                let blank = if Some(at) < last { widths[at].saturating_sub(width(text)) + 2 } else { 0 };
                parts.extend([(ink, text.as_str().into()), (Ink::Plain, " ".repeat(blank).into())]);
            }
            parts.push((if *is_unreadable { Ink::Alert } else { Ink::Plain }, notes.as_str().into()));
            self.line(before, parts)?;
        }
        self.more(table.columns.len() - most, "columns", before)
    }

    /// Writes the groups or files that a table leaves out.
    pub fn left_out(&mut self, table: &Table, before: &str) -> Result<(), Error> {
        let most = self.most(table.left_out.len(), MOST_LEFT_OUT);
        for (name, reason) in table.left_out.iter().take(most) {
            let text = format!(": left out: {reason}");
            let parts = vec![(Ink::Name, self.shown(&name.to_string()).into()), (Ink::Plain, self.shown(&text).into())];
            self.line(before, parts)?;
        }
        self.more(table.left_out.len() - most, "that are left out", before)
    }

    /// Writes findings.
    pub fn findings(&mut self, findings: &[Finding], before: &str) -> Result<(), Error> {
        let most = self.most(findings.len(), MOST_FINDINGS);
        for finding in findings.iter().take(most) {
            let text = format!("! {}: {} ({})", finding.path, finding.found, finding.rule.text);
            self.line(before, vec![(Ink::Alert, self.shown(&text).into())])?;
        }
        self.more(findings.len() - most, "findings", before)
    }

    /// Writes how many members or columns are not shown, if any.
    pub fn more(&mut self, more: usize, kind: &str, before: &str) -> Result<(), Error> {
        if more == 0 {
            return Ok(());
        }
        self.is_cut = true;
        self.line(before, vec![(Ink::Faint, format!("… {} more {kind}: --all", count(more as u64)).into())])
    }

    /// How many of `all` are shown where `most` are too many. A line about a few more would be no shorter than these.
    pub fn most(&self, all: usize, most: usize) -> usize {
        if self.is_whole || all <= most + most / 4 { all } else { most }
    }
}

/// Rows, columns and kind of a table.
pub(super) fn table_in_words(table: &Table) -> String {
    let [rows, columns] =
        [(table.rows, "row"), (table.columns.len() as u64, "column")].map(|(n, name)| counted(n, name));
    format!("{rows}, {columns} ({})", format_of(table))
}

/// Bytes stored and decoded; empty where they are not known.
pub(super) fn bytes_in_words(stored: u64, decoded: u64, are_all: bool) -> String {
    let [in_file, decoded] = [stored, decoded].map(bytes);
    match are_all {
        false if stored == 0 => String::new(),
        false => format!(", over {in_file} stored"),
        true if in_file == decoded => format!(", {decoded}"),
        true => format!(", {in_file} stored, {decoded} decoded"),
    }
}

/// Type, shape, dimensions, storage and filters of an array. `one` is its entry in `metadata.json`.
pub(super) fn array_in_words(dataset: &Dataset, axes: Option<&[Option<BString>]>, one: &Value) -> String {
    let mut text = beginning(&array::type_name(&one["datatype"]));
    if dataset.null {
        return text + ", without elements";
    }
    if dataset.shape.is_empty() {
        return text;
    }
    text += &format!(", {}", array::list(&one["shape"]));
    if let Some(axes) = axes.filter(|axes| axes.iter().any(Option::is_some)) {
        let names = axes.iter().map(|axis| axis.as_ref().map_or_else(|| "–".to_owned(), ToString::to_string));
        text += &format!(" ({})", names.collect::<Vec<_>>().join(", "));
    }
    let layout = &one["layout"];
    if layout["kind"] == "chunked" {
        text += &format!(", chunks {}", array::list(&layout["chunk"]));
    }
    for filter in one["filters"].as_array().into_iter().flatten() {
        text += &format!(", {}", array::filter(filter));
    }
    text
}

/// An attribute in a line with others. One of many elements is only described.
fn short_attribute(attribute: &Attribute) -> String {
    let value = match attribute.len() {
        Some(len) if len <= MOST_ELEMENTS => short(&attribute_value(attribute)),
        _ => format!("{:?} elements", attribute.shape),
    };
    format!("{}: {value}", attribute.name)
}

/// The beginning of a value as JSON.
pub(super) fn short(value: &Value) -> String {
    beginning(&value.to_string())
}

/// The beginning of a long text.
fn beginning(text: &str) -> String {
    match text.char_indices().nth(MOST_OF_VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The type of a column's values; with their width, if they are texts of one width.
fn type_name(shown: &Result<Arc<dyn Rows>, Unreadable>) -> String {
    let Ok(rows) = shown else { return String::new() };
    let name = arrow_name(rows.data_type());
    match rows.stored_type().map(|datatype| (&datatype.class, datatype.size)) {
        Some((Class::FixedString { .. }, size)) if name == "utf8" => format!("utf8[{size}]"),
        _ => name,
    }
}

/// The remarks that follow the type of a column.
fn notes(table: &Table, column: &Column, shown: &Result<Arc<dyn Rows>, Unreadable>) -> String {
    let mut notes = Vec::new();
    if column.is_label {
        notes.push("row label".to_owned());
    }
    if let Ok(own) = shown.as_ref().map(|rows| rows.len())
        && !column.in_table
    {
        let rows = Some(own).filter(|own| *own != table.rows).map(|own| format!("{}: ", counted(own, "row")));
        notes.push(rows.unwrap_or_default() + "not in table.*");
    }
    notes.extend(shown.as_ref().err().map(|reason| format!("unreadable: {reason}")));
    notes.extend(column.meaning.description.clone());
    notes.join("; ")
}
