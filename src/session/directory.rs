//! A directory of a file: a group, a table, or a directory that a dialect made up.

use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use bstr::{BString, ByteSlice};
use parking_lot::Mutex;

use super::contents::Contents;
use super::file::ShownFile;
use super::files::FileMaker;
use super::in_use::InUse;
use super::listing::{Child, DirectoryPlace, GroupPlace, INDEX_PAGE, Way};
use super::pages::{self, PageAt};
use super::recent::{Recent, Use};
use super::{Error, OpenedSource, live, lock, names};
use crate::catalogue::{ObjectId, join};
use crate::dialects::Made;
use crate::source::Interrupt;
use crate::store::Rows;
use crate::table::Unreadable;
use crate::views::page::source_name;

/// Name of the root of a mount of several sources, on the pages below it.
const ALL_SOURCES: &str = "All files";

/// A directory of a file, listed at first use.
pub struct Directory {
    files_of: FileMaker,
    place: DirectoryPlace,
    /// Path in the mount.
    shown: BString,
    /// When the directory last changed; `None`: together with the file.
    mtime: Option<SystemTime>,
    way: Way,
    contents: OnceLock<Arc<Contents>>,
    listing: Mutex<()>,
    /// Files in use, by position, in the directory and in its `columns/`.
    files: Mutex<InUse<(bool, usize), ShownFile>>,
    /// The files used last in any directory of the opening.
    recent: Arc<Recent>,
    /// Subdirectories in use. Unused ones are dropped, since a file may have millions.
    directories: Mutex<InUse<usize, Directory>>,
}

impl Directory {
    /// The root group, or the table of a file without groups; `shown` is the source's path in the mount.
    pub fn root(opened: Arc<OpenedSource>, shown: BString) -> Self {
        let recent = Arc::<Recent>::default();
        let Some(id) = opened.hdf5().map(|file| file.info().root) else {
            return Self::new(opened, DirectoryPlace::File, (Way::default(), shown), recent);
        };
        let way = Way { groups: vec![(id, 0)], ..Way::default() };
        let place = DirectoryPlace::Group(GroupPlace { id, path: "/".into(), link: "/".into() });
        Self::new(opened, place, (way, shown), recent)
    }

    /// Makes the subdirectory of this name that shows a place.
    fn below(&self, name: &BString, place: &DirectoryPlace) -> Self {
        let mut mtime = None;
        let (place, way) = match place {
            DirectoryPlace::Group(group) => (place.clone(), self.way.to_group(group.id, &group.link)),
            // A dialect may show a group elsewhere; its directory is like any other group's.
            DirectoryPlace::Made(_, _, Made::Group(group)) => {
                let link = group.links.last().cloned().unwrap_or_default();
                let place = GroupPlace { id: group.id, path: group.path(), link };
                mtime = group.mtime;
                (DirectoryPlace::Group(place), self.way.to_elsewhere(group))
            }
            other => (other.clone(), self.way.to_directory()),
        };
        let way = (way, names::below(&self.shown, name));
        Self { mtime, ..Self::new(self.opened().clone(), place, way, self.recent.clone()) }
    }

    fn new(
        opened: Arc<OpenedSource>,
        place: DirectoryPlace,
        (way, shown): (Way, BString),
        recent: Arc<Recent>,
    ) -> Self {
        let (id, path, name) = match &place {
            DirectoryPlace::File => (ObjectId { file: 0, address: 0 }, "/".to_owned(), "/".into()),
            DirectoryPlace::Group(group) => (group.id, group.path.clone(), group.link.clone()),
            DirectoryPlace::Dataset(array) => (array.dataset.id, array.path.clone(), array.name.clone()),
            DirectoryPlace::Made(group, name, _) => (group.id, join(&group.path, name), name.clone()),
        };
        Self {
            files_of: FileMaker { opened, id, title: path.trim_matches('/').into(), path, name, selection: None },
            place,
            shown,
            mtime: None,
            way,
            contents: OnceLock::new(),
            listing: Mutex::new(()),
            files: Mutex::default(),
            recent,
            directories: Mutex::default(),
        }
    }

    /// The opening that the directory belongs to.
    pub fn opened(&self) -> &Arc<OpenedSource> {
        &self.files_of.opened
    }

    /// Lists the directory, once.
    ///
    /// # Errors
    /// If the worker cannot list its group.
    pub fn load(&self, interrupt: &Interrupt) -> Result<Arc<Contents>, Error> {
        if let Some(contents) = self.contents.get() {
            return Ok(contents.clone());
        }
        let _one = lock(&self.listing, interrupt)?;
        if let Some(contents) = self.contents.get() {
            return Ok(contents.clone());
        }
        let contents = Arc::new(self.list(interrupt).inspect_err(|error| self.opened().log(error))?);
        Ok(self.contents.get_or_init(|| contents).clone())
    }

    fn list(&self, interrupt: &Interrupt) -> Result<Contents, Error> {
        let opened = self.opened();
        let mut contents = match &self.place {
            DirectoryPlace::File => Contents::of_table(opened.table_file().ok_or(Error::NotFound)?.table()),
            DirectoryPlace::Group(group) => Contents::of_group(opened, group, &self.way, interrupt)?,
            DirectoryPlace::Dataset(array) => Contents::of_dataset(opened, array, interrupt)?,
            DirectoryPlace::Made(group, _, made) => Contents::of_made(opened, group, made, interrupt)?,
        };
        contents.listing.add(INDEX_PAGE.into(), Child::Page);
        contents.show(opened.session().formats);
        if let Some(table) = &contents.table {
            opened.watch_table(table);
        }
        opened.report(&self.files_of.path, contents.findings.clone());
        Ok(contents)
    }

    /// The subdirectory at a position of the listing.
    pub(crate) fn directory(&self, position: usize, place: &DirectoryPlace) -> Arc<Self> {
        let mut below = self.directories.lock();
        below.get(&position).unwrap_or_else(|| {
            let listing = self.contents.get().map(|contents| &contents.listing);
            let named = listing.and_then(|listing| listing.name(position as u64));
            let directory = Arc::new(self.below(&named.map(|(_, entry)| entry.name).unwrap_or_default(), place));
            below.insert(position, &directory);
            directory
        })
    }

    /// The maker of the directory's files.
    pub(crate) fn files(&self) -> &FileMaker {
        &self.files_of
    }

    /// The file at a position of the listing, or of the listing of `columns/`. Callers share one file as long as it is
    /// current and in use.
    ///
    /// # Errors
    /// If its dataset cannot be opened any more.
    pub(crate) fn file(&self, place: (bool, usize), used: Use) -> Result<Arc<ShownFile>, Error> {
        let contents = self.contents.get().ok_or(Error::Stale)?;
        let mut files = self.files.lock();
        // Readers of an outdated layout keep their file; new readers get a fresh one.
        let known = files.get(&place).filter(|file| file.is_current());
        let file = match known {
            Some(file) => file,
            None => {
                let listing = if place.0 { contents.columns() } else { &contents.listing };
                let child = listing.child(place.1).ok_or(Error::NotFound)?;
                let file = Arc::new(match child {
                    Child::Page => pages::file(&self.copy(contents), self.page_at())?,
                    child => {
                        let named = listing.name(place.1 as u64).map(|(_, entry)| entry.name).unwrap_or_default();
                        self.files_of.file(contents, &child, &named)?
                    }
                });
                files.insert(place, &file);
                file
            }
        };
        drop(files);
        self.recent.touch(&file, used);
        Ok(file)
    }

    /// The directory for its page alone: files that the page opens are not those used last, or they would hold it.
    fn copy(&self, contents: &Arc<Contents>) -> Arc<Self> {
        let way = (self.way.clone(), self.shown.clone());
        let directory = Self::new(self.opened().clone(), self.place.clone(), way, Arc::default());
        Arc::new(Self { contents: contents.clone().into(), mtime: self.mtime, ..directory })
    }

    /// The place of the directory's page.
    fn page_at(&self) -> PageAt {
        let source = self.opened().path();
        let names: Vec<&[u8]> = self.shown.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).collect();
        let of_source = names.len().saturating_sub(self.way.depth);
        let top = match of_source {
            0 => source_name(source),
            _ => ALL_SOURCES.to_owned(),
        };
        let names_above = std::iter::once(top).chain(names.iter().map(|name| name.as_bstr().to_string()));
        let above = names_above.take(names.len()).enumerate().map(|(to, name)| {
            // A folder has no page: a browser lists it.
            let page = if to < of_source { "" } else { INDEX_PAGE };
            (name, Some(["../".repeat(names.len() - to).as_bytes(), page.as_bytes()].concat()))
        });
        PageAt {
            mounted: self.opened().session().mounted_path(&self.shown),
            path: bstr::join("/", names.get(of_source..).unwrap_or_default()).into(),
            above: above.collect(),
            findings: Some(format!("{}{}/findings", "../".repeat(names.len()), live::DIRECTORY)),
        }
    }

    /// When the directory last changed; `None`: together with the file.
    pub(crate) fn mtime(&self) -> Option<SystemTime> {
        self.mtime
    }

    /// Whether the directory is hidden, as `.versions` is: walks that process tables skip it.
    pub fn is_hidden(&self) -> bool {
        matches!(&self.place, DirectoryPlace::Made(_, name, Made::Directory { .. }) if name.starts_with(b"."))
    }

    /// The contents, if the directory has been listed.
    pub fn contents(&self) -> Option<&Arc<Contents>> {
        self.contents.get()
    }

    /// Locates the stored bytes of everything that the directory shows, so that damaged chunk indexes come to light.
    /// Skips subdirectories. Calls `failed` with the HDF5 path and reason of each object that fails.
    pub fn examine(&self, failed: &mut dyn FnMut(&str, String), interrupt: &Interrupt) {
        let Ok(contents) = self.load(interrupt) else { return };
        let mut look = |path: &str, rows: &Result<Arc<dyn Rows>, Unreadable>| {
            // The listing already reports objects that cannot be opened at all.
            if let Ok(rows) = rows
                && !interrupt.is_raised()
                && let Err(error) = rows.facts().containers.examine(interrupt)
            {
                failed(path, error.to_string());
            }
        };
        let columns = contents.table.iter().filter(|table| !table.only_adds).flat_map(|table| &table.columns);
        columns.for_each(|column| look(&column.path, &column.rows));
        for position in 0..contents.listing.entries().len() {
            if let Some(array) = contents.listing.array(position)
                && let Ok(file) = self.opened().file()
                && let Ok(single) = array.single(file, interrupt)
            {
                single.whole.columns.iter().for_each(|column| look(&array.path, &column.rows));
            }
        }
    }
}
