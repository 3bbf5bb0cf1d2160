//! A file as a tree: walks its directories, with a line for each object.

use std::collections::{HashMap, HashSet};

use bstr::BString;
use serde_json::Value;

use super::lines::{Lines, Parts, array_in_words, bytes_in_words, short, table_in_words};
use crate::activity::words::{bytes, counted};
use crate::catalogue::Attribute;
use crate::cli::Error;
use crate::cli::tables::below;
use crate::cli::terminal::Ink;
use crate::session::{DirectoryDescription, EntryKind, Spot};
use crate::source::Interrupt;
use crate::table::Table;
use crate::views::metadata::{Details, ShownAs, ShownMember};
use crate::views::page::decoded;

/// Most members of a kind that are shown of a group.
const MOST_MEMBERS: usize = 20;

/// Objects of a file after which groups are not opened any more.
const MOST_OBJECTS: usize = 400;

/// Deepest directory to enter, as in other walks.
const DEEPEST: usize = 64;

/// Names in the directory of a table that show its own columns and rows.
const OF_TABLES: [&str; 2] = ["columns", "where"];

/// Writes the tree of a file, or of a part of it.
pub(super) struct Tree<'a> {
    pub lines: Lines<'a>,
    /// Levels below the top. Columns are a level.
    pub depth: usize,
    pub interrupt: &'a Interrupt,
    /// Called for each directory, with its path in the file.
    pub visit: &'a mut dyn FnMut(&str, &DirectoryDescription),
    pub seen: Seen,
}

/// Counts of a tree.
#[derive(Debug, Default)]
pub(super) struct Seen {
    tables: u64,
    arrays: u64,
    groups: u64,
    findings: u64,
    /// Objects shown.
    shown: usize,
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
    /// Attributes of the group above a made-up folder. The folder, and a table in it, repeats these.
    above: &'a [Attribute],
    depth: usize,
    /// Directories above it in the file. `depth` counts a path without forks once.
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

    /// Writes the counts of a whole file, which takes this number of bytes.
    ///
    /// # Errors
    /// If the output is closed.
    pub fn sum_up(&mut self, size: u64) -> Result<(), Error> {
        let Seen { tables, arrays, groups, findings, .. } = self.seen;
        let kinds = [(tables, "table"), (arrays, "array"), (groups, "group")];
        let counts = kinds.into_iter().filter(|(count, _)| *count > 0).map(|(count, kind)| counted(count, kind));
        let counts: Vec<String> = counts.chain([bytes(size)]).collect();
        let begin = if self.lines.is_cut { "shown: " } else { "" };
        let mut parts: Parts<'_> = vec![(Ink::Faint, format!("{begin}{}", counts.join(", ")).into())];
        if findings > 0 {
            let text = format!("{}, as `hepfs check` lists them", counted(findings, "finding"));
            parts.extend([(Ink::Faint, "; ".into()), (Ink::Alert, text.into())]);
        }
        self.lines.line("", parts)
    }

    fn directory(&mut self, place: &Place<'_>, branch: &Branch) -> Result<(), Error> {
        let directory = place.directory;
        let members = match directory.members(self.interrupt) {
            Ok(members) => members,
            Err(_) if self.interrupt.is_raised() => return Ok(()),
            Err(error) => return self.failed(place.name, &error.to_string(), branch),
        };
        let is_open = place.depth < self.depth && (self.lines.is_whole || self.seen.shown < MOST_OBJECTS);
        let items = if is_open { self.items(place, &members) } else { Vec::new() };
        self.seen.groups += u64::from(directory.table().is_none() && !directory.is_made_up());
        (self.visit)(place.path, directory);
        // A path without forks takes one line.
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
        self.lines.line(&branch.first, head)?;
        let under = format!("{}{}", branch.rest, if items.is_empty() { "  " } else { "│ " });
        self.lines.attributes(place.attributes(), place.depth == 0, &under)?;
        if let Some(table) = directory.table().filter(|_| is_open) {
            self.lines.columns(table, &under)?;
            self.lines.left_out(table, &under)?;
        }
        self.lines.findings(directory.findings(), &under)?;
        let has_leaf = items.iter().any(|item| matches!(item, Item::Leaf(_)));
        let values = if has_leaf { directory.values(self.interrupt) } else { HashMap::new() };
        self.members(place, &items, &values, branch)
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
                Item::More(more, kind) => self.lines.more(*more, kind, &branch.first)?,
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
        let [name, reason] = [name, reason].map(|text| self.lines.shown(text));
        self.lines.line(&branch.first, vec![(Ink::Name, name.into()), (Ink::Alert, format!(": {reason}").into())])
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
        let leaves = members.iter().filter(|member| match &member.shown_as {
            _ if columns.contains(&member.name) && member.kind != "table" && member.kind != "group" => false,
            ShownAs::Name(name) => !directories.contains(name),
            _ => true,
        });
        let leaves: Vec<&ShownMember> = leaves.collect();
        let mut items = self.begun("tables", tables, |name| self.found(place, name));
        items.extend(self.begun("arrays and others", leaves, Item::Leaf));
        items.extend(self.begun("groups", groups, |name| self.found(place, name)));
        items
    }

    /// Makes items of the first members of a kind, and one that counts the others.
    fn begun<'m, T>(&self, kind: &'static str, members: Vec<T>, item: impl Fn(T) -> Item<'m>) -> Vec<Item<'m>> {
        let most = self.lines.most(members.len(), MOST_MEMBERS);
        let more = members.len() - most;
        let items = members.into_iter().take(most).map(item);
        items.chain((more > 0).then_some(Item::More(more, kind))).collect()
    }

    /// Finds a directory in another one.
    fn found<'m>(&self, above: &Place<'_>, name: BString) -> Item<'m> {
        match above.spot.lookup(&name, self.interrupt) {
            Ok(spot) => Item::Directory(name, spot),
            Err(error) => Item::Failed(name, error.to_string()),
        }
    }

    /// The line of a directory: whether it is opened, and whether nothing is below it.
    fn head(
        &mut self,
        place: &Place<'_>,
        members: &[ShownMember],
        (is_open, is_bottom): (bool, bool),
    ) -> Parts<'static> {
        let name = self.lines.shown(place.name);
        let directory = place.directory;
        let (kind, about) = match directory.table() {
            Some(table) => ("table ", format!(": {}{}", table_in_words(table), self.table_bytes(directory, table))),
            None => {
                let kind = if directory.is_made_up() { "folder " } else { "group " };
                let is_closed = !is_open && !members.is_empty();
                self.lines.is_cut |= is_closed && place.depth < self.depth;
                let about = match members.len() {
                    0 if is_open && is_bottom => ": empty".to_owned(),
                    members if is_closed => format!(": {}", counted(members as u64, "member")),
                    _ => String::new(),
                };
                (kind, about)
            }
        };
        vec![(Ink::Faint, kind.into()), (Ink::Name, name.into()), (Ink::Plain, self.lines.shown(&about).into())]
    }

    /// The bytes of a table's columns.
    fn table_bytes(&self, directory: &DirectoryDescription, table: &Table) -> String {
        if table.selection.is_some() || table.repeats || table.rows == 0 {
            return String::new();
        }
        let decoded = decoded(table);
        let Some(stored) = directory.stored_bytes(usize::MAX, self.interrupt) else { return String::new() };
        bytes_in_words(stored.bytes, decoded.unwrap_or(0), stored.are_all && decoded.is_some())
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
            (Ink::Name, self.lines.shown(&member.name.to_string()).into()),
            (Ink::Plain, self.lines.shown(&about).into()),
        ];
        self.lines.line(&branch.first, parts)?;
        match member.dataset() {
            Some(dataset) => self.lines.attributes(&dataset.attributes, false, &format!("{}  ", branch.rest)),
            None => Ok(()),
        }
    }
}
