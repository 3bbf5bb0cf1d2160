//! A file as a tree: a line for each object, below it what is said of it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::sync::Arc;

use arrow_schema::DataType;
use bstr::BString;
use serde_json::Value;

use super::array;
use crate::activity::words::{bytes, count};
use crate::catalogue::{Attribute, Class, Dataset};
use crate::cli::Error;
use crate::cli::tables::below;
use crate::cli::terminal::{Ink, Terminal, width};
use crate::session::{DirectoryDescription, EntryKind, Spot};
use crate::source::Interrupt;
use crate::store::Rows;
use crate::table::{Column, Finding, Table, Unreadable, arrow_name};
use crate::views::metadata::{Details, ShownAs, ShownMember, attribute_value};

/// Most members of a kind that are shown of a group.
const MOST_MEMBERS: usize = 20;

/// Most columns that are shown of a table.
const MOST_COLUMNS: usize = 40;

/// Objects of a file after which groups are not opened any more.
const MOST_OBJECTS: usize = 400;

/// Most attributes of the top.
const MOST_AT_TOP: usize = 20;

/// Most attributes in a line.
const MOST_ATTRIBUTES: usize = 6;

/// Most findings that are shown of a group or table.
const MOST_FINDINGS: usize = 10;

/// Most characters of a value in a line of attributes and behind a scalar, and of an array's type.
const MOST_OF_VALUE: usize = 60;

/// Most columns of the terminal that names, types and units take in a list of columns.
const MOST_WIDE: usize = 40;

/// Deepest directory to enter, as in other walks.
const DEEPEST: usize = 64;

/// Names in the directory of a table that show its own columns and rows.
const OF_TABLES: [&str; 2] = ["columns", "where"];

type Parts<'a> = Vec<(Ink, Cow<'a, str>)>;

/// What a tree shows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// Levels below the top. Columns are a level.
    pub depth: usize,
    /// Whether everything on these levels is shown, however much it is.
    pub is_whole: bool,
}

/// Writes the tree of a file, or of a part of it.
pub(super) struct Tree<'a> {
    pub out: &'a mut dyn Write,
    pub terminal: &'a Terminal,
    pub extent: Extent,
    /// Begins each line: the file's name, if there are several.
    pub prefix: &'a str,
    pub interrupt: &'a Interrupt,
    /// Called for each directory, with its path in the file.
    pub visit: &'a mut dyn FnMut(&str, &DirectoryDescription),
    pub seen: Seen,
}

/// What a tree has come across.
#[derive(Debug, Default)]
pub(super) struct Seen {
    tables: u64,
    arrays: u64,
    groups: u64,
    findings: u64,
    /// Objects shown.
    shown: usize,
    /// Whether members or columns are not shown.
    pub is_cut: bool,
    /// Whether a directory cannot be listed.
    pub has_failed: bool,
}

/// A line of the tree, with all below it.
enum Item<'a> {
    /// A member that is no directory.
    Leaf(&'a ShownMember),
    /// A directory, with the name that a mount shows.
    Directory(BString, Spot),
    /// A directory that cannot be found, and why.
    Failed(BString, String),
    /// The number of members that are not shown, and their kind.
    More(usize, &'static str),
}

/// A directory, and where it stands.
struct Place<'a> {
    spot: &'a Spot,
    directory: &'a DirectoryDescription,
    /// Its name, or the path of the top.
    name: &'a str,
    /// Its path in the file.
    path: &'a str,
    /// Attributes of the group that a made-up folder, and a table in it, has them from.
    above: &'a [Attribute],
    depth: usize,
    /// Directories above it in the file. A way without forks has one depth.
    nesting: usize,
}

impl Place<'_> {
    /// Its attributes, unless they stand above it.
    fn attributes(&self) -> &[Attribute] {
        let own = self.directory.attributes();
        if own == self.above { &[] } else { own }
    }

    /// The attributes above what is in it.
    fn passed_on(&self) -> &[Attribute] {
        if self.directory.is_made_up() { self.above } else { self.directory.attributes() }
    }
}

/// Beginnings of lines about an object, and about what is below it.
struct Branch {
    first: String,
    rest: String,
}

impl Branch {
    fn new(above: &str, is_last: bool) -> Self {
        let [first, rest] = if is_last { ["└─ ", "   "] } else { ["├─ ", "│  "] };
        Self { first: format!("{above}{first}"), rest: format!("{above}{rest}") }
    }
}

impl Tree<'_> {
    /// Writes the tree of a directory with this path in the file.
    ///
    /// # Errors
    /// If the output is closed.
    pub fn draw(&mut self, spot: &Spot, directory: &DirectoryDescription, path: &str) -> Result<(), Error> {
        let top = Branch { first: String::new(), rest: String::new() };
        self.directory(&Place { spot, directory, name: path, path, above: &[], depth: 0, nesting: 0 }, &top)
    }

    /// Writes a table that is no directory of a file.
    ///
    /// # Errors
    /// If the output is closed.
    pub fn table(&mut self, table: &Table) -> Result<(), Error> {
        let text = format!("{}: {}", table.path, table_in_words(table));
        self.line("", vec![(Ink::Faint, "table ".into()), (Ink::Plain, self.shown(&text).into())])?;
        self.columns(table, "  ")?;
        self.findings(&table.findings, "  ")?;
        self.left_out(table, "  ")
    }

    /// Writes what the tree of a whole file of this many bytes has come to.
    ///
    /// # Errors
    /// If the output is closed.
    pub fn sum_up(&mut self, size: u64) -> Result<(), Error> {
        let Seen { tables, arrays, groups, findings, is_cut, .. } = self.seen;
        let kinds = [(tables, "table"), (arrays, "array"), (groups, "group")];
        let counts = kinds.into_iter().filter(|(count, _)| *count > 0).map(|(count, kind)| counted(count, kind));
        let counts: Vec<String> = counts.chain([bytes(size)]).collect();
        let begin = if is_cut { "shown: " } else { "" };
        let mut parts: Parts<'_> = vec![(Ink::Faint, format!("{begin}{}", counts.join(", ")).into())];
        if findings > 0 {
            let text = format!("{}, as `hepfs check` lists them", counted(findings, "finding"));
            parts.extend([(Ink::Faint, "; ".into()), (Ink::Alert, text.into())]);
        }
        self.line("", parts)
    }

    /// Writes a line.
    fn line(&mut self, before: &str, mut parts: Parts<'_>) -> Result<(), Error> {
        parts.insert(0, (Ink::Faint, format!("{}{before}", self.prefix).into()));
        writeln!(self.out, "{}", self.terminal.line(&parts)).map_err(Error::io("standard output"))
    }

    /// The text of the file as it can be shown.
    fn shown(&self, text: &str) -> String {
        self.terminal.shown(text).into_owned()
    }

    fn directory(&mut self, place: &Place<'_>, branch: &Branch) -> Result<(), Error> {
        let directory = place.directory;
        let members = match directory.members(self.interrupt) {
            Ok(members) => members,
            Err(_) if self.interrupt.is_raised() => return Ok(()),
            Err(error) => return self.failed(place.name, &error.to_string(), branch),
        };
        let is_open = place.depth < self.extent.depth && (self.extent.is_whole || self.seen.shown < MOST_OBJECTS);
        let items = if is_open { self.items(place, &members) } else { Vec::new() };
        self.seen.groups += u64::from(directory.table().is_none() && !directory.is_made_up());
        (self.visit)(place.path, directory);
        // A way without forks takes one line.
        let is_bare =
            directory.table().is_none() && directory.attributes().is_empty() && directory.findings().is_empty();
        if let ([Item::Directory(name, spot)], true) = (items.as_slice(), is_bare && place.depth > 0) {
            let name = below(place.name, &name.to_string());
            return self.child(place, &name, spot, place.depth, branch);
        }
        self.seen.tables += u64::from(directory.table().is_some());
        self.seen.shown += 1;
        self.seen.findings += directory.findings().len() as u64;
        let head = self.head(place, &members, (is_open, items.is_empty()));
        self.line(&branch.first, head)?;
        let under = format!("{}{}", branch.rest, if items.is_empty() { "  " } else { "│ " });
        self.attributes(place.attributes(), place.depth == 0, &under)?;
        if let Some(table) = directory.table().filter(|_| is_open) {
            self.columns(table, &under)?;
            self.left_out(table, &under)?;
        }
        self.findings(directory.findings(), &under)?;
        if items.iter().any(|item| matches!(item, Item::Leaf(_))) {
            let values = directory.values(self.interrupt);
            return self.members(place, &items, &values, branch);
        }
        self.members(place, &items, &HashMap::new(), branch)
    }

    /// Writes the members of a directory.
    fn members(
        &mut self,
        place: &Place<'_>,
        items: &[Item<'_>],
        values: &HashMap<BString, Value>,
        branch: &Branch,
    ) -> Result<(), Error> {
        for (at, item) in items.iter().enumerate() {
            if self.interrupt.is_raised() {
                break;
            }
            let branch = Branch::new(&branch.rest, at + 1 == items.len());
            match item {
                Item::Leaf(member) => self.leaf(place, member, values.get(&member.name), &branch)?,
                Item::Directory(name, spot) => {
                    self.child(place, &name.to_string(), spot, place.depth + 1, &branch)?;
                }
                Item::Failed(name, reason) => self.failed(&name.to_string(), reason, &branch)?,
                Item::More(more, kind) => self.more(*more, kind, &branch.first)?,
            }
        }
        Ok(())
    }

    /// Writes a directory in another one.
    fn child(
        &mut self,
        above: &Place<'_>,
        name: &str,
        spot: &Spot,
        depth: usize,
        branch: &Branch,
    ) -> Result<(), Error> {
        let nesting = above.nesting + 1;
        if nesting > DEEPEST {
            return self.failed(name, &format!("more than {DEEPEST} directories deep: not looked into"), branch);
        }
        let last = name.rsplit('/').next().unwrap_or(name);
        let path = below(above.path.trim_end_matches('/'), last);
        match spot.described(self.interrupt) {
            _ if self.interrupt.is_raised() => Ok(()),
            Ok(directory) => {
                let is_made_up = directory.is_made_up() || above.directory.is_made_up();
                let above = if is_made_up { above.passed_on() } else { &[] };
                self.directory(&Place { spot, directory: &directory, name, path: &path, above, depth, nesting }, branch)
            }
            Err(error) => self.failed(name, &error.to_string(), branch),
        }
    }

    /// Writes a line about a directory that cannot be listed.
    fn failed(&mut self, name: &str, reason: &str, branch: &Branch) -> Result<(), Error> {
        self.seen.has_failed = true;
        let text = (Ink::Alert, format!(": {}", self.shown(reason)).into());
        self.line(&branch.first, vec![(Ink::Name, self.shown(name).into()), text])
    }

    /// Writes how many members or columns are not shown, if any.
    fn more(&mut self, more: usize, kind: &str, before: &str) -> Result<(), Error> {
        if more == 0 {
            return Ok(());
        }
        self.seen.is_cut = true;
        self.line(before, vec![(Ink::Faint, format!("… {} more {kind}: --all", count(more as u64)).into())])
    }

    /// How many of `all` are shown where `most` are too many. A few more take no longer to read than a line about them.
    fn most(&self, all: usize, most: usize) -> usize {
        if self.extent.is_whole || all <= most + most / 4 { all } else { most }
    }

    /// The lines below a directory: tables, then what is no directory, then groups.
    fn items<'m>(&self, place: &Place<'_>, members: &'m [ShownMember]) -> Vec<Item<'m>> {
        let Ok(children) = place.spot.children(self.interrupt) else { return Vec::new() };
        let kinds = members.iter().filter_map(|member| match &member.shown_as {
            ShownAs::Name(name) => Some((name, member.kind)),
            _ => None,
        });
        let kinds: HashMap<&BString, &str> = kinds.collect();
        let table = place.directory.table();
        let (mut tables, mut groups) = (Vec::new(), Vec::new());
        for entry in children.iter().filter(|entry| entry.kind == EntryKind::Directory) {
            match kinds.get(&entry.name) {
                Some(&"table") => tables.push(entry.name.clone()),
                Some(_) => groups.push(entry.name.clone()),
                // Made up: hidden ones repeat tables, and those of a table show its columns and rows.
                None if entry.name.starts_with(b".") => {}
                None if table.is_some() && OF_TABLES.iter().any(|own| entry.name == *own) => {}
                None => tables.push(entry.name.clone()),
            }
        }
        let directories: HashSet<&BString> = tables.iter().chain(&groups).collect();
        let columns: HashSet<&BString> = table.iter().flat_map(|table| &table.columns).map(|one| &one.name).collect();
        let is_leaf = |member: &&ShownMember| match &member.shown_as {
            _ if columns.contains(&member.name) && member.kind != "table" && member.kind != "group" => false,
            ShownAs::Name(name) => !directories.contains(name),
            _ => true,
        };
        let leaves: Vec<&ShownMember> = members.iter().filter(is_leaf).collect();
        let find = |name: BString| match place.spot.lookup(&name, self.interrupt) {
            Ok(spot) => Item::Directory(name, spot),
            Err(error) => Item::Failed(name, error.to_string()),
        };
        let [most_tables, most_leaves, most_groups] =
            [tables.len(), leaves.len(), groups.len()].map(|all| self.most(all, MOST_MEMBERS));
        let more = |all: usize, most: usize, kind| (all > most).then(|| Item::More(all - most, kind));
        let [of_tables, of_leaves, of_groups] = [
            more(tables.len(), most_tables, "tables"),
            more(leaves.len(), most_leaves, "arrays and others"),
            more(groups.len(), most_groups, "groups"),
        ];
        let tables = tables.into_iter().take(most_tables).map(find).chain(of_tables);
        let leaves = leaves.into_iter().take(most_leaves).map(Item::Leaf).chain(of_leaves);
        tables.chain(leaves).chain(groups.into_iter().take(most_groups).map(find).chain(of_groups)).collect()
    }

    /// The line of a directory: whether it is opened, and whether nothing is below it.
    fn head(
        &mut self,
        place: &Place<'_>,
        members: &[ShownMember],
        (is_open, is_bottom): (bool, bool),
    ) -> Parts<'static> {
        let name = self.shown(place.name);
        let directory = place.directory;
        let (kind, about) = match directory.table() {
            Some(table) => ("table ", format!(": {}{}", table_in_words(table), self.table_bytes(directory, table))),
            None => {
                let kind = if directory.is_made_up() { "folder " } else { "group " };
                let is_closed = !is_open && !members.is_empty();
                self.seen.is_cut |= is_closed && place.depth < self.extent.depth;
                let about = match members.len() {
                    0 if is_open && is_bottom => ": empty".to_owned(),
                    members if is_closed => format!(": {}", counted(members as u64, "member")),
                    _ => String::new(),
                };
                (kind, about)
            }
        };
        vec![(Ink::Faint, kind.into()), (Ink::Name, name.into()), (Ink::Plain, self.shown(&about).into())]
    }

    /// The bytes of a table's columns.
    fn table_bytes(&self, directory: &DirectoryDescription, table: &Table) -> String {
        if table.selection.is_some() || table.repeats || table.rows == 0 {
            return String::new();
        }
        let (mut stored, mut decoded, mut are_all, mut seen) = (0u64, 0u64, true, HashSet::new());
        for column in &table.columns {
            let width =
                column.rows.as_ref().ok().and_then(|rows| Some(rows.stored_width()?.saturating_mul(rows.len())));
            let own = column.dataset.as_ref().map(|dataset| {
                if seen.insert(dataset.id) { directory.stored(dataset, self.interrupt) } else { Some(0) }
            });
            are_all &= width.is_some() && own.flatten().is_some();
            decoded = decoded.saturating_add(width.unwrap_or(0));
            stored = stored.saturating_add(own.flatten().unwrap_or(0));
        }
        bytes_in_words(stored, decoded, are_all)
    }

    /// Writes attributes: one below the other at the top, in a line elsewhere.
    fn attributes(&mut self, attributes: &[Attribute], is_top: bool, before: &str) -> Result<(), Error> {
        if is_top || self.extent.is_whole {
            let most = self.most(attributes.len(), MOST_AT_TOP);
            for attribute in attributes.iter().take(most) {
                let name = self.shown(&attribute.name.to_string());
                let value = self.shown(&array::as_json(&attribute_value(attribute)));
                self.line(before, vec![(Ink::Faint, format!("@{name}: ").into()), (Ink::Plain, value.into())])?;
            }
            return self.more(attributes.len() - most, "attributes", before);
        }
        // References say nothing to people.
        let mut told = attributes.iter().filter(|attribute| !attribute.datatype.holds_reference());
        let few: Vec<String> = told.by_ref().take(MOST_ATTRIBUTES).map(short_attribute).collect();
        if few.is_empty() {
            return Ok(());
        }
        let more = told.count();
        let more = if more > 0 { format!(", … {} more", count(more as u64)) } else { String::new() };
        self.line(before, vec![(Ink::Faint, self.shown(&format!("@{}{more}", few.join(", @"))).into())])
    }

    /// Writes the columns of a table.
    fn columns(&mut self, table: &Table, before: &str) -> Result<(), Error> {
        let most = self.most(table.columns.len(), MOST_COLUMNS);
        let described = table.columns.iter().take(most).map(|column| {
            let shown = column.shown();
            let texts = [column.name.to_string(), type_name(&shown), units(column, &shown)];
            let [name, type_name, units] = texts.map(|text| self.shown(&text));
            let type_name = match self.extent.is_whole {
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
    fn left_out(&mut self, table: &Table, before: &str) -> Result<(), Error> {
        let most = self.most(table.left_out.len(), MOST_MEMBERS);
        for (name, reason) in table.left_out.iter().take(most) {
            let text = format!(": left out: {reason}");
            let parts = vec![(Ink::Name, self.shown(&name.to_string()).into()), (Ink::Plain, self.shown(&text).into())];
            self.line(before, parts)?;
        }
        self.more(table.left_out.len() - most, "that are left out", before)
    }

    /// Writes findings.
    ///
    /// # Errors
    /// If the output is closed.
    pub fn findings(&mut self, findings: &[Finding], before: &str) -> Result<(), Error> {
        let most = self.most(findings.len(), MOST_FINDINGS);
        for finding in findings.iter().take(most) {
            let text = format!("! {}: {} ({})", finding.path, finding.found, finding.rule.text);
            self.line(before, vec![(Ink::Alert, self.shown(&text).into())])?;
        }
        self.more(findings.len() - most, "findings", before)
    }

    /// Writes a member that is no directory.
    fn leaf(
        &mut self,
        place: &Place<'_>,
        member: &ShownMember,
        value: Option<&Value>,
        branch: &Branch,
    ) -> Result<(), Error> {
        self.seen.shown += 1;
        let mut about = String::new();
        let mut kind = member.kind;
        match &member.details {
            Details::Array(dataset, axes) => {
                self.seen.arrays += 1;
                kind = if dataset.shape.is_empty() && !dataset.null { "value" } else { kind };
                about = array_in_words(dataset, axes.as_deref(), &member.value(None));
                if !dataset.is_empty() && !dataset.shape.is_empty() {
                    let stored = place.directory.stored(dataset, self.interrupt);
                    let are_all = stored.is_some() && !dataset.datatype.is_variable();
                    let decoded = dataset.bytes().unwrap_or(u64::MAX);
                    about += &bytes_in_words(stored.unwrap_or(0), decoded, are_all);
                }
                about = format!(": {about}{}", value.map(|value| format!(" = {}", short(value))).unwrap_or_default());
            }
            Details::Soft(target) => about = format!(" → {target}"),
            Details::External(target) => about = format!(" → {}:{}", target.0, target.1),
            Details::None => {
                if let ShownAs::Name(name) = &member.shown_as
                    && let Ok(Spot::Link(_, target)) = place.spot.lookup(name, self.interrupt)
                {
                    about = format!(" → {target}");
                }
            }
        }
        // The type determines which files a dataset has, so a missing one is reported only if there are no others.
        if !member.not_shown.is_empty() && member.names().is_empty() {
            about += &format!("; not shown: {}", member.not_shown.join("; "));
        }
        let is_of_table = place.directory.table().is_some_and(|table| table.only_adds || !table.left_out.is_empty());
        if let Some(reason) = member.left_out.as_ref().filter(|_| is_of_table) {
            about += &format!("; no column: {reason}");
        }
        let parts = vec![
            (Ink::Faint, format!("{kind} ").into()),
            (Ink::Name, self.shown(&member.name.to_string()).into()),
            (Ink::Plain, self.shown(&about).into()),
        ];
        self.line(&branch.first, parts)?;
        match member.dataset() {
            Some(dataset) => self.attributes(&dataset.attributes, false, &format!("{}  ", branch.rest)),
            None => Ok(()),
        }
    }
}

/// A number of things: `1 table`, `2 000 tables`.
fn counted(number: u64, name: &str) -> String {
    format!("{} {name}{}", count(number), if number == 1 { "" } else { "s" })
}

/// Rows, columns and kind of a table.
pub(super) fn table_in_words(table: &Table) -> String {
    let by = if table.recognised_by == "shape" { "by " } else { "" };
    let [rows, columns] =
        [(table.rows, "row"), (table.columns.len() as u64, "column")].map(|(n, name)| counted(n, name));
    let divider = if table.revision.is_empty() { "" } else { ", " };
    format!("{rows}, {columns} ({by}{}{divider}{})", table.dialect, table.revision)
}

/// Bytes stored and decoded; empty where they are not known.
fn bytes_in_words(stored: u64, decoded: u64, are_all: bool) -> String {
    let [in_file, decoded] = [stored, decoded].map(bytes);
    match are_all {
        false if stored == 0 => String::new(),
        false => format!(", over {in_file} stored"),
        true if in_file == decoded => format!(", {decoded}"),
        true => format!(", {in_file} stored, {decoded} decoded"),
    }
}

/// Type, shape, dimensions, storage and filters of an array. `one` is its entry in `metadata.json`.
fn array_in_words(dataset: &Dataset, axes: Option<&[Option<BString>]>, one: &Value) -> String {
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
    const FEW: u64 = 20;
    let value = match attribute.len() {
        Some(len) if len <= FEW => short(&attribute_value(attribute)),
        _ => format!("{:?} elements", attribute.shape),
    };
    format!("{}: {value}", attribute.name)
}

/// The beginning of a value as JSON.
fn short(value: &Value) -> String {
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

/// The units of a column in brackets. Those of dates and instants only say how they are stored.
fn units(column: &Column, shown: &Result<Arc<dyn Rows>, Unreadable>) -> String {
    let is_date =
        shown.as_ref().is_ok_and(|rows| matches!(rows.data_type(), DataType::Date32 | DataType::Timestamp(..)));
    let units = column.meaning.units.as_ref().filter(|_| !is_date);
    units.map(|units| format!("[{units}]")).unwrap_or_default()
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
