//! Looks up a path of `.datasets` in one file, and lists the names below it.

use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use bstr::BString;
use lru::LruCache;
use parking_lot::Mutex;

use super::names::{WITHIN, component};
use crate::session::Error;
use crate::session::contents::Contents;
use crate::session::directory::Directory;
use crate::session::listing::{Child, DirectoryPlace, ListingEntry, ShownArray};
use crate::session::sources::FileRoot;
use crate::source::{self, Interrupt};
use crate::table::{Single, SingleForm, Table};

/// Deepest nesting of tables within tables.
const DEEPEST: usize = 16;

/// Most directory members kept in all, some hundred bytes each.
const MOST_MEMBERS: usize = 100_000;

/// A column takes about as much memory as this many members.
const COLUMN: usize = 8;

/// Most files kept open, and at most half of [`source::most_open`].
const MOST_FILES: usize = 1024;

/// For this long, a file looked into makes no room for another.
const MOMENT: Duration = Duration::from_secs(10);

/// For this long, a file stays open for further looks. Without an end, a deleted file would take room for ever, and the
/// file system that it lies in could not be unmounted.
const WHILE: Duration = Duration::from_secs(60);

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

/// A file that was looked into, and its directories on the way to a path. Dropping it closes the file, unless others
/// use that.
pub(crate) struct LookedInto {
    file: Arc<FileRoot>,
    /// The root first.
    directories: Vec<Arc<Directory>>,
    /// Since when it is kept, and as how many members it counts.
    kept: Option<(Instant, usize)>,
}

impl LookedInto {
    fn new(file: &Arc<FileRoot>, root: &Arc<Directory>) -> Self {
        Self { file: file.clone(), directories: vec![root.clone()], kept: None }
    }

    /// The root group of the file.
    pub fn root(&self) -> Option<&Arc<Directory>> {
        self.directories.first()
    }

    /// The memory that it takes, as a number of directory members.
    fn members(&self) -> usize {
        let contents = self.directories.iter().filter_map(|directory| directory.contents());
        let members = contents.map(|contents| {
            let columns = contents.table.as_ref().map_or(0, |table| table.columns.len());
            contents.listing.entries().len() + COLUMN * columns
        });
        members.sum()
    }
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
    /// Whether a thread closes them in the end.
    is_closing: bool,
}

impl Default for Kept {
    fn default() -> Self {
        let most = usize::try_from(source::most_open() / 2).map_or(MOST_FILES, |most| most.min(MOST_FILES));
        Self { files: LruCache::unbounded(), members: 0, most, is_closing: false }
    }
}

impl Kept {
    fn without(&mut self, at: usize) -> Option<LookedInto> {
        let gone = self.files.pop(&at)?;
        self.members -= gone.kept.map_or(0, |(_, members)| members);
        Some(gone)
    }

    /// Takes out the file looked into first, if that was longer ago than this.
    fn oldest(&mut self, age: Duration) -> Option<LookedInto> {
        let (at, file) = self.files.peek_lru()?;
        let (at, (since, _)) = (*at, file.kept?);
        if since.elapsed() > age { self.without(at) } else { None }
    }

    fn has_room(&self, members: usize) -> bool {
        self.files.len() < self.most && self.members + members <= MOST_MEMBERS
    }
}

impl RecentFiles {
    /// Keeps a file open for a while if there is room. Files looked into a moment ago stay: of a walk over more files
    /// than fit, the next one would otherwise find none.
    pub fn keep(self: &Arc<Self>, mut one: LookedInto) {
        let (at, members) = (Arc::as_ptr(&one.file).addr(), one.members());
        one.kept = Some((Instant::now(), members));
        let mut kept = self.0.lock();
        // Closing files may take long, so it waits for the lock's end.
        let mut gone = Vec::from_iter(kept.without(at));
        while !kept.has_room(members)
            && let Some(oldest) = kept.oldest(MOMENT)
        {
            gone.push(oldest);
        }
        if !kept.has_room(members) {
            gone.push(one);
        } else {
            kept.members += members;
            kept.files.push(at, one);
            if !kept.is_closing {
                let recent = Arc::downgrade(self);
                let closing = thread::Builder::new().name("hepfs-recent".to_owned());
                kept.is_closing = closing.spawn(move || close_unused(&recent)).is_ok();
            }
        }
        drop(kept);
    }

    /// Closes files that were looked into longer ago than this. Returns whether others are left.
    fn close(&self, age: Duration) -> bool {
        let mut kept = self.0.lock();
        let gone: Vec<LookedInto> = std::iter::from_fn(|| kept.oldest(age)).collect();
        kept.is_closing = !kept.files.is_empty();
        let are_left = kept.is_closing;
        drop(kept);
        drop(gone);
        are_left
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
        let mut looked = LookedInto::new(file, &root);
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

/// Closes files a while after the last look into them, until none is left.
fn close_unused(recent: &Weak<RecentFiles>) {
    loop {
        thread::sleep(MOMENT);
        if !recent.upgrade().is_some_and(|recent| recent.close(WHILE)) {
            return;
        }
    }
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
    for (at, entry) in contents.listing.numbered() {
        let Some(name) = name_of(entry) else { continue };
        let name: BString = [prefix.as_slice(), &name].concat().into();
        names.push(name.clone());
        // The listing of a group keeps which of its groups are marked as tables.
        if matches!(entry, ListingEntry::Group(.., true))
            && depth < DEEPEST
            && let Some(place) = entry.place()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h5;
    use crate::session::Session;
    use crate::session::sources::{Folder, SourceEntry, Sources};
    use crate::store::{Options, Store};

    #[test]
    fn files_looked_into_stay_open_for_a_while() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy("tests/data/trevni/digest.trv", folder.path().join("t.trv")).unwrap();
        let session = Session::new(Store::new(Options::default()), h5::Options::default());
        let sources = Folder::new(session.clone(), folder.path().to_owned(), BString::default());
        let recent = Arc::new(RecentFiles::default());
        let SourceEntry::File(file) = sources.found(b"t.trv", &Interrupt::new()).unwrap() else { panic!("a folder") };
        let (at, looked) = RecentFiles::find(&file, &[], &Interrupt::new()).unwrap();
        assert!(at.is_some_and(|at| at.table().is_some()));
        recent.keep(looked);
        drop(file);
        assert!(recent.close(WHILE));
        assert_eq!(session.opened().len(), 1);
        assert!(!recent.close(Duration::ZERO));
        assert_eq!(session.opened().len(), 0);
    }
}
