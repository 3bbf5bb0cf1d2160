//! Spots: the folders, sources, groups, tables and files that names lead to.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use bstr::BString;

use super::contents::{Columns, Contents};
use super::datasets::{self, DatasetAt, DatasetFiles, LeftOutText, PartFile, Partition};
use super::file::{ObjectAttributes, ShownFile};
use super::listing::{COLUMNS, Child, TABLE_PARQUET, WHERE};
use super::live::{self, LiveFile};
use super::selections::{ChosenRows, FilteredTable, SelectionFile, VALUES, Where};
use super::sources::{FileRoot, Folder, NamedSources, SeveralSources, SourceEntry, Sources};
use super::{Children, DirEntry, Directory, DirectoryNames, EntryKind, Error, OpenError, OpenedSource, Session, Use};
use crate::learnt::pass::PassProgress;
use crate::source::Interrupt;
use crate::table::Table;
use crate::views::{Effort, Size};

/// A folder, source, group, table or file that a name leads to.
#[derive(Clone)]
pub(crate) enum Spot {
    /// The sources that the user named, with `.datasets` and `.hepfs`.
    Root(Arc<Root>),
    /// `.hepfs`, and when the session began.
    Live(Arc<Session>, SystemTime),
    /// A folder of the system.
    Folder(Arc<Folder>),
    /// Several files and folders that the user named.
    Several(Arc<SeveralSources>),
    /// A file: its root group, or its one table.
    Source(Arc<FileRoot>),
    /// A group, a table, or a directory that a dialect made up.
    Directory(Arc<Directory>),
    /// `columns/` of a table.
    Columns(Arc<Directory>, Arc<Contents>),
    /// `where/` of a table.
    Where(Arc<Where>),
    /// Selected rows of a table.
    Selection(Arc<ChosenRows>),
    /// `columns/` of selected rows.
    SelectionColumns(Arc<ChosenRows>),
    /// A directory in `.datasets`.
    Dataset(Arc<DatasetAt>),
    /// The directory of one file of a dataset.
    Partition(Arc<Partition>),
    /// A symbolic link.
    Link(Arc<OpenedSource>, BString),
    /// A file.
    File(FileSpot),
}

/// A file that a name leads to.
#[derive(Clone)]
pub(crate) enum FileSpot {
    /// A file of a dataset or a column, known only by its number in a directory, or in its `columns/` (`true`).
    Numbered(Arc<Directory>, bool, usize),
    /// A file of a table or a group.
    Shown(Arc<ShownFile>),
    /// A file over selected rows.
    Chosen(Arc<SelectionFile>),
    /// The rows of one file of a dataset.
    Part(Arc<PartFile>),
    /// The list of files that a dataset leaves out.
    LeftOut(Arc<LeftOutText>),
    /// A file of `.hepfs`.
    Live(Arc<LiveFile>),
}

/// The sources that the user named, with `.datasets` and `.hepfs`.
pub(crate) struct Root {
    pub shown: Spot,
    live: Spot,
    datasets: Option<Spot>,
}

/// The root over these sources: one file shows its root group, several sources or a folder one directory per source.
///
/// # Errors
/// If none of the sources can be opened as a file, or as a folder with a file of a known format. If only some fail,
/// their errors are in [`Session::errors`].
pub(crate) fn root(session: &Arc<Session>, sources: &[PathBuf], interrupt: &Interrupt) -> Result<Spot, OpenError> {
    let (shown, files): (Spot, Option<Arc<dyn Sources>>) = match sources {
        [only] if !session.opener.is_folder(only) => {
            (Spot::Source(Arc::new(FileRoot::open(session, only, BString::default(), interrupt)?)), None)
        }
        [only] => {
            let folder = Arc::new(Folder::open(session, only, BString::default(), interrupt)?);
            (Spot::Folder(folder.clone()), Some(folder))
        }
        several => {
            let several = Arc::new(SeveralSources::new(session.clone(), several, interrupt)?);
            (Spot::Several(several.clone()), Some(several))
        }
    };
    let datasets = files.filter(|_| datasets::are_shown(session.formats)).map(|files| datasets::root(session, files));
    Ok(Spot::Root(Arc::new(Root { shown, live: Spot::Live(session.clone(), SystemTime::now()), datasets })))
}

/// The datasets of these sources, as in `.datasets` of a mount. Each source is opened on demand.
///
/// # Errors
/// If a source does not exist, or is given twice.
pub(crate) fn datasets(session: &Arc<Session>, sources: &[PathBuf]) -> Result<Spot, OpenError> {
    let sources: Arc<dyn Sources> = match sources {
        [only] if session.opener.is_folder(only) => {
            Arc::new(Folder::new(session.clone(), only.clone(), BString::default()))
        }
        several => Arc::new(NamedSources::new(session, several)?),
    };
    Ok(datasets::root(session, sources))
}

impl Spot {
    /// The kind of its directory entry.
    pub fn kind(&self) -> EntryKind {
        match self {
            Spot::Link(..) => EntryKind::Symlink,
            Spot::File(FileSpot::Live(_)) => EntryKind::LiveFile,
            Spot::File(_) => EntryKind::File,
            _ => EntryKind::Directory,
        }
    }

    /// Finds a name in the directory.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the name does not exist, [`Error::NotADirectory`] for a file or link.
    pub fn lookup(&self, name: &[u8], interrupt: &Interrupt) -> Result<Spot, Error> {
        match self {
            Spot::Root(root) => match &root.datasets {
                _ if name == live::DIRECTORY.as_bytes() => Ok(root.live.clone()),
                Some(datasets) if name == datasets::DIRECTORY.as_bytes() => Ok(datasets.clone()),
                _ => root.shown.lookup(name, interrupt),
            },
            Spot::Live(session, _) => Ok(Spot::File(FileSpot::Live(Arc::new(LiveFile::new(session, name)?)))),
            Spot::Folder(folder) => Ok(folder.found(name, interrupt)?.into()),
            Spot::Several(several) => Ok(several.found(name, interrupt)?.into()),
            Spot::Source(root) => in_directory(&root.shown(interrupt)?, name, interrupt),
            Spot::Directory(directory) => in_directory(directory, name, interrupt),
            Spot::Columns(directory, contents) => {
                let number = contents.columns().find(name).ok_or(Error::NotFound)?;
                Ok(Spot::File(FileSpot::Numbered(directory.clone(), true, number)))
            }
            Spot::Where(asked) => asked.lookup(name),
            Spot::Selection(chosen) => chosen.lookup(name),
            Spot::SelectionColumns(chosen) => chosen.lookup_column(name),
            Spot::Dataset(dataset) => dataset.lookup(name, interrupt),
            Spot::Partition(partition) => partition.lookup(name, interrupt),
            Spot::Link(..) | Spot::File(_) => Err(Error::NotADirectory),
        }
    }

    /// The names in the directory.
    ///
    /// # Errors
    /// If it cannot be listed; [`Error::NotADirectory`] for a file or link.
    pub fn children(&self, interrupt: &Interrupt) -> Result<Children, Error> {
        Ok(match self {
            Spot::Root(root) => {
                let datasets = root.datasets.as_ref().map(|_| datasets::DIRECTORY);
                let own = datasets.into_iter().chain([live::DIRECTORY]);
                let own = own.map(|name| DirEntry::directory(name.into())).collect();
                Children::new(Beside { own, shown: root.shown.children(interrupt)? })
            }
            Spot::Live(..) => live::children(),
            Spot::Folder(folder) => folder.names(interrupt)?.into_iter().map(DirEntry::directory).collect(),
            Spot::Several(several) => {
                several.all(interrupt)?.into_iter().map(|(name, _)| DirEntry::directory(name)).collect()
            }
            Spot::Source(root) => Children::new(root.shown(interrupt)?.load(interrupt)?),
            Spot::Directory(directory) => Children::new(directory.load(interrupt)?),
            Spot::Columns(_, contents) => Children::new(Columns(contents.clone())),
            Spot::Where(_) => std::iter::once(DirEntry { name: VALUES.into(), kind: EntryKind::File }).collect(),
            Spot::Selection(chosen) => Children::new(chosen.all().clone()),
            Spot::SelectionColumns(chosen) => Children::new(Columns(chosen.all().clone())),
            Spot::Dataset(dataset) => dataset.children(interrupt)?,
            Spot::Partition(partition) => partition.children(interrupt)?,
            Spot::Link(..) | Spot::File(_) => return Err(Error::NotADirectory),
        })
    }

    /// The names to list, in the order shown: those of [`Spot::children`], but of a table in a mount of Parquet alone
    /// only `table.parquet` and groups below it. Programs then take the directory for a Parquet dataset.
    ///
    /// # Errors
    /// As [`Spot::children`].
    pub fn listed(&self, interrupt: &Interrupt) -> Result<Children, Error> {
        let children = self.children(interrupt)?;
        let is_parquet = self.opened().is_some_and(|opened| opened.session().formats.is_parquet_alone());
        let is_table = match self {
            Spot::Columns(..) => false,
            Spot::Selection(_) => true,
            _ => is_parquet && self.table().is_some(),
        };
        Ok(if is_parquet && is_table { Children::new(ParquetDataset(children)) } else { children })
    }

    /// The group or table that the spot shows, once someone asked for it.
    pub fn directory(&self) -> Option<Arc<Directory>> {
        match self {
            Spot::Root(root) => root.shown.directory(),
            Spot::Source(root) => root.known(),
            Spot::Directory(directory) => Some(directory.clone()),
            _ => None,
        }
    }

    /// The table that the spot shows, or whose columns it shows, once the table is listed.
    pub fn table(&self) -> Option<Arc<Table>> {
        match self {
            Spot::Columns(_, contents) => contents.table.clone(),
            other => other.directory()?.contents()?.table.clone(),
        }
    }

    /// The opening of the spot's source; `None` for folders above files.
    pub fn opened(&self) -> Option<Arc<OpenedSource>> {
        Some(match self {
            Spot::Columns(directory, _) | Spot::File(FileSpot::Numbered(directory, ..)) => directory.opened().clone(),
            Spot::Where(asked) => asked.subject().opened().clone(),
            Spot::Selection(chosen) | Spot::SelectionColumns(chosen) => chosen.subject().opened().clone(),
            Spot::Link(opened, _) => opened.clone(),
            Spot::File(FileSpot::Shown(file)) => file.opened.clone(),
            Spot::File(FileSpot::Chosen(file)) => file.opened().clone(),
            Spot::File(FileSpot::Part(part)) => part.file.opened.clone(),
            other => other.directory()?.opened().clone(),
        })
    }

    /// The path of the source that a directory belongs to; `None` for folders above files, and for files.
    pub fn source(&self) -> Option<PathBuf> {
        match self {
            Spot::Root(root) => root.shown.source(),
            Spot::Source(root) => Some(root.path().to_owned()),
            Spot::File(_) | Spot::Link(..) => None,
            other => Some(other.opened()?.path().to_owned()),
        }
    }

    /// Whether it is a folder of files.
    pub fn is_folder(&self) -> bool {
        match self {
            Spot::Root(root) => root.shown.is_folder(),
            Spot::Folder(_) => true,
            _ => false,
        }
    }

    /// Whether a walk over tables skips the directory: `.hepfs`, `.datasets`, and hidden ones such as `.versions`.
    pub fn repeats(&self) -> bool {
        match self {
            Spot::Live(..) | Spot::Dataset(_) => true,
            Spot::Directory(directory) => directory.is_hidden(),
            _ => false,
        }
    }

    /// Why facts learnt about the spot's source are not kept for later sessions; `None`: they are.
    pub fn why_not_kept(&self) -> Option<&'static str> {
        self.opened()?.opening().why_not_kept()
    }

    /// The attributes of the object that a directory shows.
    ///
    /// # Errors
    /// If the directory cannot be listed.
    pub fn attributes(&self, interrupt: &Interrupt) -> Result<Option<(ObjectAttributes, Arc<OpenedSource>)>, Error> {
        let directory = match self {
            Spot::Root(root) => return root.shown.attributes(interrupt),
            Spot::Source(root) => root.shown(interrupt)?,
            Spot::Directory(directory) => directory.clone(),
            Spot::Selection(chosen) => return Ok(Some((chosen.attributes(), chosen.subject().opened().clone()))),
            _ => return Ok(None),
        };
        let attributes = directory.load(interrupt)?.attributes.clone();
        Ok(Some((ObjectAttributes::new(directory.files().name.clone(), attributes), directory.opened().clone())))
    }

    /// The files of the dataset that a directory shows; `None`: not a dataset.
    ///
    /// # Errors
    /// If no source can be listed.
    pub fn dataset(&self, interrupt: &Interrupt) -> Result<Option<DatasetFiles>, Error> {
        let Spot::Dataset(dataset) = self else { return Ok(None) };
        dataset.files(interrupt)
    }

    /// The rows of all files of the dataset as one table, which holds them open.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the directory is not a dataset.
    pub fn whole_dataset(&self, interrupt: &Interrupt) -> Result<Arc<Table>, Error> {
        let Spot::Dataset(dataset) = self else { return Err(Error::NotFound) };
        dataset.whole(interrupt)
    }
}

impl FileSpot {
    /// The file's size.
    ///
    /// # Errors
    /// If values cannot be read.
    pub fn size(&self, effort: Effort, interrupt: &Interrupt) -> Result<Size, Error> {
        match self {
            FileSpot::Chosen(chosen) => chosen.size(effort, interrupt),
            FileSpot::LeftOut(left_out) => Ok(Size::Exact(left_out.text.len() as u64)),
            FileSpot::Live(_) => Ok(Size::Exact(0)),
            file => {
                let used = if effort == Effort::Prepared { Use::Opened } else { Use::Seen };
                file.with(used, interrupt, |file| file.size(effort, interrupt))?
            }
        }
    }

    /// The progress of the passes that [`Effort::Prepared`] takes; `None`: no pass is needed. Never slow.
    pub fn progress(&self) -> Option<PassProgress> {
        match self {
            FileSpot::Chosen(chosen) => chosen.progress(),
            file => file.with(Use::Seen, &Interrupt::new(), |file| file.view.progress()).ok()?,
        }
    }

    /// Why facts learnt about the file's source are not kept, as in [`Spot::why_not_kept`].
    pub fn why_not_kept(&self) -> Option<&'static str> {
        Spot::File(self.clone()).why_not_kept()
    }

    /// Calls `act` with the file that it names.
    ///
    /// # Errors
    /// If its dataset cannot be opened any more, or the rows of a selection cannot be found.
    fn with<T>(&self, used: Use, interrupt: &Interrupt, act: impl FnOnce(&ShownFile) -> T) -> Result<T, Error> {
        match self {
            FileSpot::Numbered(directory, in_columns, number) => {
                Ok(act(directory.file((*in_columns, *number), used)?.as_ref()))
            }
            FileSpot::Shown(file) => Ok(act(file)),
            FileSpot::Chosen(chosen) => Ok(act(chosen.file(interrupt)?)),
            FileSpot::Part(part) => Ok(act(&part.file)),
            FileSpot::LeftOut(_) | FileSpot::Live(_) => Err(Error::NotAFile),
        }
    }
}

impl From<SourceEntry> for Spot {
    fn from(found: SourceEntry) -> Self {
        match found {
            SourceEntry::File(file) => Spot::Source(file),
            SourceEntry::Folder(folder) => Spot::Folder(folder),
        }
    }
}

/// Finds a name in a group, a table, or a directory that a dialect made up.
fn in_directory(directory: &Arc<Directory>, name: &[u8], interrupt: &Interrupt) -> Result<Spot, Error> {
    let contents = directory.load(interrupt)?;
    let number = contents.listing.find(name).ok_or(Error::NotFound)?;
    if contents.listing.is_single(number) {
        return Ok(Spot::File(FileSpot::Numbered(directory.clone(), false, number)));
    }
    Ok(match contents.listing.child(number).ok_or(Error::NotFound)? {
        Child::Directory(place) => Spot::Directory(directory.directory(number, &place)),
        Child::Columns => Spot::Columns(directory.clone(), contents),
        Child::Where => {
            let table = contents.table.as_ref().ok_or(Error::NotFound)?;
            Spot::Where(Arc::new(Where::new(FilteredTable::new(directory.files(), table))))
        }
        Child::Link(target) => Spot::Link(directory.opened().clone(), target),
        _ => Spot::File(FileSpot::Shown(directory.file((false, number), Use::Opened)?)),
    })
}

/// The names of a table's directory that make it a Parquet dataset.
struct ParquetDataset(Children);

impl DirectoryNames for ParquetDataset {
    fn at(&self, mut place: u64) -> Option<(u64, DirEntry)> {
        loop {
            let (at, entry) = self.0.at(place)?;
            let is_listed = match entry.kind {
                EntryKind::Directory => entry.name != COLUMNS && entry.name != WHERE,
                _ => entry.name == TABLE_PARQUET,
            };
            if is_listed {
                return Some((at, entry));
            }
            place = at.checked_add(1)?;
        }
    }
}

/// A directory's own names, followed by names shown in it as well.
struct Beside {
    own: Vec<DirEntry>,
    shown: Children,
}

impl DirectoryNames for Beside {
    fn at(&self, place: u64) -> Option<(u64, DirEntry)> {
        let count = self.own.len() as u64;
        self.own.at(place).or_else(|| {
            let (at, entry) = self.shown.at(place.saturating_sub(count))?;
            Some((at + count, entry))
        })
    }
}
