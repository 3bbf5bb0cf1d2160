//! Names that can follow on a command line: files, places inside them, columns.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;

use bstr::BString;
use clap::{Args, Command, CommandFactory, FromArgMatches};

use crate::cli::options::ReadingOptions;
use crate::cli::place::{Place, split};
use crate::session::{EntryKind, Settings, Spot, is_known};
use crate::source::{Interrupt, is_address, mounts};
use crate::table::Table;

/// Most seconds that a request to the HDF5 library may take.
const DEADLINE: u64 = 1;

/// Deepest group to enter in search of a file's only table.
const DEEPEST: usize = 8;

/// Names in a table's directory that lead to its own columns and rows.
const OF_TABLES: [&str; 2] = ["columns", "where"];

/// The kind of place that an argument names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inside {
    /// A file that a mount would show.
    File,
    /// A file or a directory.
    Any,
    /// A directory.
    Directory,
    /// A table, or a file that has only one.
    Table,
}

/// The arguments on a command line that others are completed by.
pub(super) struct GivenPlaces {
    reading: ReadingOptions,
    /// The first source, with a path in it.
    place: Option<OsString>,
    /// The path of a table in all sources.
    table: Option<String>,
}

impl GivenPlaces {
    /// Parses words as far as they are arguments.
    pub fn new<'a>(words: impl Iterator<Item = &'a OsString>) -> Self {
        let matches = crate::cli::Arguments::command().ignore_errors(true).try_get_matches_from(words);
        let mut matches = matches.as_ref().ok();
        while let Some(below) = matches.and_then(|matches| Some(matches.subcommand()?.1)) {
            matches = Some(below);
        }
        let place = ["place", "places"].iter().find_map(|id| matches?.try_get_raw(id).ok()??.next());
        let table = matches.and_then(|matches| matches.try_get_one::<String>("table").ok()?);
        let reads = matches.filter(|matches| matches.try_contains_id("cache_folder").is_ok());
        let mut reading =
            reads.and_then(|matches| ReadingOptions::from_arg_matches(matches).ok()).unwrap_or_else(|| {
                let defaults = ReadingOptions::augment_args(Command::new("hepfs")).get_matches_from(["hepfs"]);
                ReadingOptions::from_arg_matches(&defaults).unwrap_or_else(|error| error.exit())
            });
        reading.deadline = reading.deadline.min(DEADLINE);
        Self { reading, place: place.map(OsStr::to_owned), table: table.cloned() }
    }

    /// Whether a table is named by an option.
    pub fn has_table(&self) -> bool {
        self.table.is_some()
    }

    fn open(&self, place: &OsStr) -> Option<Place> {
        // A key pressed asks no store.
        if is_address(Path::new(place)) {
            return None;
        }
        let place = Place::open(place, self.reading.session(Settings::default()).ok()?, &Interrupt::new()).ok()?;
        // Lists the directory, which makes its table known. The files of a dataset would all be opened.
        let is_dataset = matches!(place.spot, Spot::Dataset(_) | Spot::Partition(_));
        (!is_dataset && place.spot.children(&Interrupt::new()).is_ok()).then_some(place)
    }

    /// Sources, and places in them, that begin with `typed`.
    pub fn places(&self, typed: &[u8], inside: Inside) -> Vec<BString> {
        let (source, _) = split(OsStr::from_bytes(typed));
        let source = source.as_os_str().len();
        if source < typed.len() {
            return self.below(source + 1, typed, inside);
        }
        let mut files = files(typed);
        let only = if let [only] = files.as_slice() { Some(only) } else { files.iter().find(|file| *file == typed) };
        let only = only.filter(|only| is_known(Path::new(OsStr::from_bytes(only))));
        if let Some(mut with_path) = only.cloned() {
            with_path.push(b':');
            if inside == Inside::File {
                files.retain(|file| !with_path.starts_with(file));
            }
            files.push(with_path);
        }
        files
    }

    /// Paths of tables in the first source that begin with `typed`.
    pub fn tables(&self, typed: &[u8]) -> Vec<BString> {
        let Some(source) = &self.place else { return Vec::new() };
        let mut place = source.as_bytes().to_vec();
        place.push(b':');
        let path = place.len();
        place.extend(typed);
        self.below(path, &place, Inside::Table).into_iter().map(|found| found[path..].into()).collect()
    }

    /// Places inside a source that begin with `typed`, whose path begins at `path`.
    fn below(&self, path: usize, typed: &[u8], inside: Inside) -> Vec<BString> {
        let name = typed.iter().rposition(|byte| *byte == b'/').map_or(path, |slash| path.max(slash + 1));
        let (directory, name) = typed.split_at(name);
        let Some(place) = self.open(OsStr::from_bytes(directory)) else { return Vec::new() };
        let Ok(children) = place.spot.children(&Interrupt::new()) else { return Vec::new() };
        let is_table = place.spot.table().is_some();
        let is_wanted = |of_table: bool, kind: EntryKind, name: &[u8]| match kind {
            EntryKind::Directory => {
                !(of_table && inside == Inside::Table && OF_TABLES.iter().any(|own| own.as_bytes() == name))
            }
            _ => matches!(inside, Inside::File | Inside::Any),
        };
        let found = children.iter().filter(|entry| entry.name.starts_with(name));
        // As in a shell, names with a point are offered once it is typed.
        let found = found.filter(|entry| name.starts_with(b".") || !entry.name.starts_with(b"."));
        let found: Vec<_> = found.filter(|entry| is_wanted(is_table, entry.kind, &entry.name)).collect();
        let whole = |name: &[u8], end: &str| BString::from([directory, name, end.as_bytes()].concat());
        if let ([only], Inside::Table) = (found.as_slice(), inside)
            && let Ok(spot) = place.spot.lookup(&only.name, &Interrupt::new())
            && let Ok(children) = spot.children(&Interrupt::new())
            && spot.table().is_some()
        {
            let mut below = children.iter().filter(|entry| is_wanted(true, entry.kind, &entry.name));
            let above = below.next().map(|_| whole(&only.name, "/"));
            return [whole(&only.name, "")].into_iter().chain(above).collect();
        }
        found
            .iter()
            .map(|entry| whole(&entry.name, if entry.kind == EntryKind::Directory { "/" } else { "" }))
            .collect()
    }

    /// Names of columns that begin with `typed`, of the table that other arguments name.
    pub fn columns(&self, typed: &[u8]) -> Vec<BString> {
        let table = self.place.as_ref().and_then(|place| {
            let mut place = place.clone();
            if let Some(table) = &self.table {
                place.push(":");
                place.push(table);
            }
            only_table(self.open(&place)?.spot)
        });
        let Some(table) = table else { return Vec::new() };
        let names = table.columns.iter().filter(|column| column.in_table).map(|column| column.name.clone());
        names.filter(|name| name.starts_with(typed)).collect()
    }
}

/// The table at a spot, or the one below it that has no sibling. Groups with several members are not searched: that
/// takes a request for each.
fn only_table(mut spot: Spot) -> Option<Arc<Table>> {
    for _ in 0..DEEPEST {
        let children = spot.children(&Interrupt::new()).ok()?;
        if let Some(table) = spot.table() {
            return Some(table);
        }
        let mut directories =
            children.iter().filter(|entry| entry.kind == EntryKind::Directory && !entry.name.starts_with(b"."));
        let (only, None) = (directories.next()?, directories.next()) else { return None };
        spot = spot.lookup(&only.name, &Interrupt::new()).ok()?;
    }
    None
}

/// The mount points of hepfs that begin with these bytes, as paths from here where they lie below; files, if there are
/// none.
pub(super) fn mountpoints(meant: &[u8]) -> Vec<BString> {
    let here = std::env::current_dir().unwrap_or_default();
    let found = mounts::mountpoints().unwrap_or_default().into_iter().map(|path| {
        let below = if meant.starts_with(b"/") { None } else { path.strip_prefix(&here).ok() };
        BString::from(below.unwrap_or(&path).as_os_str().as_bytes())
    });
    let found: Vec<BString> = found.filter(|path| path.starts_with(meant)).collect();
    if found.is_empty() { files(meant) } else { found }
}

/// Files and folders whose paths begin with `typed`.
pub(super) fn files(typed: &[u8]) -> Vec<BString> {
    let name = typed.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let (folder, name) = typed.split_at(name);
    let listed = fs::read_dir(OsStr::from_bytes(if folder.is_empty() { b"." } else { folder }));
    let entries = listed.into_iter().flatten().flatten().filter_map(|entry| {
        let own = entry.file_name().into_vec();
        let is_hidden = own.starts_with(b".") && !name.starts_with(b".");
        let end: &[u8] = if entry.path().is_dir() { b"/" } else { b"" };
        (own.starts_with(name) && !is_hidden).then(|| BString::from([folder, &own, end].concat()))
    });
    let mut files: Vec<BString> = entries.collect();
    files.sort();
    files
}
