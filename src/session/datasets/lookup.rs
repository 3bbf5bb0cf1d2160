//! Looks up a path of `.datasets` in one file, and lists the names below it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use bstr::BString;
use parking_lot::Mutex;

use super::names::{WITHIN, component};
use crate::catalogue::{Object, join};
use crate::session::Error;
use crate::session::contents::Contents;
use crate::session::directory::Directory;
use crate::session::listing::{Child, DirectoryPlace, ListingEntry, ShownArray};
use crate::source::Interrupt;
use crate::store;
use crate::table::{Single, SingleForm, Table};

/// Deepest nesting of tables within tables.
const DEEPEST: usize = 16;

/// Most directory members kept in all, some hundred bytes each.
const MOST_MEMBERS: usize = 100_000;

/// Most directories kept in all; each may hold a file open.
const MOST_DIRECTORIES: usize = 256;

/// A table or directory at a path of one file.
#[derive(Clone)]
pub(crate) enum At {
    Directory(Arc<Directory>, Arc<Contents>),
    Dataset(Arc<ShownArray>, Arc<Single>),
}

impl At {
    /// The table, if it is shown as Parquet.
    pub fn table(&self) -> Option<&Table> {
        match self {
            Self::Directory(_, contents) => table_of(contents),
            Self::Dataset(_, single) => Some(&single.whole),
        }
    }
}

/// The table of a directory, if it is shown as Parquet.
pub(super) fn table_of(contents: &Contents) -> Option<&Table> {
    let has_parquet = contents
        .listing
        .entries()
        .iter()
        .any(|entry| matches!(entry, ListingEntry::One(_, child) if matches!(**child, Child::Parquet)));
    contents.table.as_deref().filter(|_| has_parquet)
}

/// A child's name in the path of a table; `None`: the child is neither a table nor a directory that may contain one.
/// Links are not followed: their targets have paths of their own.
fn name_of(entry: &ListingEntry) -> Option<BString> {
    let link = match entry {
        ListingEntry::One(_, child) => match &**child {
            Child::Directory(place) => match place.as_ref() {
                DirectoryPlace::File => return None,
                DirectoryPlace::Group(group) => &group.link,
                DirectoryPlace::Dataset(array) => &array.name,
                DirectoryPlace::Made(_, name, _) => name,
            },
            _ => return None,
        },
        ListingEntry::Group(named, ..) => named.link(),
        ListingEntry::Single(named, _, all) if all.files.iter().any(|file| file.form == SingleForm::Parquet) => {
            named.link()
        }
        _ => return None,
    };
    Some(component(link))
}

/// LRU of listed groups: a walk through the tables of a group lists it once.
#[derive(Default)]
pub(crate) struct RecentListings(Mutex<VecDeque<(Arc<Directory>, usize)>>);

impl RecentListings {
    fn keep(&self, directory: &Arc<Directory>, contents: &Contents) {
        let mut kept = self.0.lock();
        kept.retain(|(known, _)| !Arc::ptr_eq(known, directory));
        // The listing of a table holds its columns, so it is not kept.
        if contents.table.is_none() {
            kept.push_back((directory.clone(), contents.listing.entries().len()));
        }
        let mut members: usize = kept.iter().map(|(_, members)| members).sum();
        let mut old = Vec::new();
        while (members > MOST_MEMBERS || kept.len() > MOST_DIRECTORIES)
            && let Some((directory, fewer)) = kept.pop_front()
        {
            members -= fewer;
            old.push(directory);
        }
        // Dropping a file's last directory closes the file, which may take long.
        drop(kept);
    }

    /// Looks up a path below the root group of a file; `None`: nothing has this path.
    pub fn find(&self, root: &Arc<Directory>, path: &[BString], interrupt: &Interrupt) -> Result<Option<At>, Error> {
        let mut directory = root.clone();
        let mut contents = directory.load(interrupt)?;
        let parts: Vec<&BString> = path.iter().filter(|part| !part.is_empty()).collect();
        for (depth, part) in parts.iter().enumerate() {
            let listing = &contents.listing;
            let found = listing.numbered().enumerate().find(|(_, (_, entry))| name_of(entry).as_ref() == Some(part));
            let Some((position, (at, entry))) = found else { return Ok(None) };
            if let Some(place) = entry.place() {
                self.keep(&directory, &contents);
                directory = directory.directory(at, &place);
            } else if let Some(array) = listing.array(position).filter(|_| depth + 1 == parts.len()) {
                self.keep(&directory, &contents);
                let single = array.single(directory.opened().file()?, interrupt).map_err(Error::Io)?;
                return Ok(Some(At::Dataset(array, single)));
            } else {
                return Ok(None);
            }
            contents = directory.load(interrupt)?;
        }
        Ok(Some(At::Directory(directory, contents)))
    }
}

/// Names of a group's links that lead to tables, judged from the group's listing.
fn tables_in(directory: &Directory, interrupt: &Interrupt) -> Result<BTreeSet<BString>, Error> {
    let (files, opened) = (directory.files(), directory.opened());
    let group = opened.file()?.group(files.id, interrupt);
    let group = group.map_err(|error| store::Error::Hdf5 { path: files.path.clone(), error })?;
    let tables = group.links.iter().filter(|link| {
        let group = link.target.object().filter(|object| matches!(object, Object::Group { .. }));
        let kind = group.map(|group| opened.session().dialects.kind(&join(&files.path, &link.name), group));
        kind == Some("table")
    });
    Ok(tables.map(|link| link.name.clone()).collect())
}

/// Collects the names in a directory, each behind `prefix`; a table is followed by the names of the tables within it.
pub(super) fn names_below(
    directory: &Arc<Directory>,
    contents: &Contents,
    prefix: &BString,
    depth: usize,
    names: &mut Vec<BString>,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    // A table that is a dataset has no groups in it, and cannot be listed as one.
    let mut entries = contents.listing.numbered();
    let has_groups = entries.any(|(_, entry)| matches!(entry.place(), Some(DirectoryPlace::Group(_))));
    let tables = if has_groups { tables_in(directory, interrupt)? } else { BTreeSet::new() };
    for (at, entry) in contents.listing.numbered() {
        let Some(name) = name_of(entry) else { continue };
        let name: BString = [prefix.as_slice(), &name].concat().into();
        names.push(name.clone());
        if let Some(place) = entry.place()
            && let DirectoryPlace::Group(group) = &place
            && tables.contains(&group.link)
            && depth < DEEPEST
        {
            let below = directory.directory(at, &place);
            // If a table cannot be listed, nothing is found within it; its siblings stay.
            match below.load(interrupt) {
                Ok(contents) => {
                    let prefix = [name.as_slice(), WITHIN.as_bytes()].concat().into();
                    names_below(&below, &contents, &prefix, depth + 1, names, interrupt)?;
                }
                Err(error @ Error::Interrupted) => return Err(error),
                Err(_) => {}
            }
        }
    }
    Ok(())
}
