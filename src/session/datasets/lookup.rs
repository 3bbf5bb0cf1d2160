//! Looks up a path of `.datasets` in one file, and lists the names below it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bstr::BString;
use lru::LruCache;
use parking_lot::Mutex;
use rustix::process::{Resource, getrlimit};

use super::names::{WITHIN, component};
use crate::catalogue::{Object, join};
use crate::session::Error;
use crate::session::contents::Contents;
use crate::session::directory::Directory;
use crate::session::listing::{Child, DirectoryPlace, ListingEntry, ShownArray};
use crate::session::sources::FileRoot;
use crate::source::Interrupt;
use crate::store;
use crate::table::{Single, SingleForm, Table};

/// Deepest nesting of tables within tables.
const DEEPEST: usize = 16;

/// Most directory members kept in all, some hundred bytes each.
const MOST_MEMBERS: usize = 100_000;

/// A column takes about as much memory as this many members.
const COLUMN: usize = 8;

/// Most files kept open, and at most a quarter of what the system allows the process.
const MOST_FILES: usize = 1024;

/// For this long, a file looked into makes no room for another.
const MOMENT: Duration = Duration::from_secs(10);

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

/// A file that was looked into, and its directories on the way to a path. Closes the file when dropped, unless others
/// use it.
pub(crate) struct LookedInto {
    file: Arc<FileRoot>,
    /// The root first.
    directories: Vec<Arc<Directory>>,
    /// Since when it is kept, and as how many members it counts.
    kept: Option<(Instant, usize)>,
}

impl Drop for LookedInto {
    fn drop(&mut self) {
        self.directories.clear();
        self.file.release();
    }
}

/// Files looked into last, by address: surveys go over all files, one after the other, and parts follow them.
#[derive(Default)]
pub(crate) struct RecentFiles(Mutex<Kept>);

struct Kept {
    files: LruCache<usize, LookedInto>,
    members: usize,
    /// Most files kept.
    most: usize,
}

impl Default for Kept {
    fn default() -> Self {
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / 4;
        let most = MOST_FILES.min(usize::try_from(descriptors).unwrap_or(MOST_FILES));
        Self { files: LruCache::unbounded(), members: 0, most }
    }
}

impl Kept {
    fn without(&mut self, at: usize) -> Option<LookedInto> {
        let gone = self.files.pop(&at)?;
        self.members -= gone.kept.map_or(0, |(_, members)| members);
        Some(gone)
    }

    /// The file looked into first, if that was more than a moment ago.
    fn oldest(&self) -> Option<usize> {
        let (at, file) = self.files.peek_lru()?;
        file.kept.is_some_and(|(since, _)| since.elapsed() > MOMENT).then_some(*at)
    }
}

impl RecentFiles {
    /// Keeps a file open if there is room. Files looked into a moment ago stay: of a walk over more files than fit, the
    /// next one would otherwise find none.
    pub fn keep(&self, mut one: LookedInto) {
        let at = Arc::as_ptr(&one.file).addr();
        let contents = one.directories.iter().filter_map(|directory| directory.contents());
        let columns = |table: &Arc<Table>| COLUMN * table.columns.len();
        let members = contents
            .map(|contents| contents.listing.entries().len() + contents.table.as_ref().map_or(0, columns))
            .sum();
        one.kept = Some((Instant::now(), members));
        let mut kept = self.0.lock();
        // Closing files may take long, so it waits for the lock's end.
        let mut gone = Vec::from_iter(kept.without(at));
        let lacks_room = |kept: &Kept| kept.files.len() >= kept.most || kept.members + members > MOST_MEMBERS;
        while lacks_room(&kept)
            && let Some(oldest) = kept.oldest()
        {
            gone.extend(kept.without(oldest));
        }
        if lacks_room(&kept) {
            gone.push(one);
        } else {
            kept.members += members;
            kept.files.push(at, one);
        }
        drop(kept);
    }

    /// Stops keeping a file.
    pub fn forget(&self, file: &Arc<FileRoot>) {
        let gone = self.0.lock().without(Arc::as_ptr(file).addr());
        drop(gone);
    }

    /// Looks up a path below the root group of a file; `None`: nothing has this path.
    ///
    /// # Errors
    /// If the file cannot be opened, or a group on the way cannot be listed.
    pub fn find(
        file: &Arc<FileRoot>,
        path: &[BString],
        interrupt: &Interrupt,
    ) -> Result<(Option<At>, LookedInto), Error> {
        let root = file.group(interrupt)?;
        // Dropped last: it closes the file only if nothing else holds it.
        let mut looked = LookedInto { file: file.clone(), directories: vec![root.clone()], kept: None };
        let mut directory = root;
        let mut contents = directory.load(interrupt)?;
        let parts: Vec<&BString> = path.iter().filter(|part| !part.is_empty()).collect();
        for (depth, part) in parts.iter().enumerate() {
            let listing = &contents.listing;
            let found = listing.numbered().enumerate().find(|(_, (_, entry))| name_of(entry).as_ref() == Some(part));
            let Some((position, (at, entry))) = found else { return Ok((None, looked)) };
            if let Some(place) = entry.place() {
                directory = directory.directory(at, &place);
                looked.directories.push(directory.clone());
            } else if let Some(array) = listing.array(position).filter(|_| depth + 1 == parts.len()) {
                let single = array.single(directory.opened().file()?, interrupt).map_err(Error::Io)?;
                return Ok((Some(At::Dataset(array, single)), looked));
            } else {
                return Ok((None, looked));
            }
            contents = directory.load(interrupt)?;
        }
        Ok((Some(At::Directory(directory, contents)), looked))
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
