//! `.datasets`: one table of the tables that many files have at one path, as a Hive-partitioned dataset.
//!
//! ```text
//! .datasets/run/events/file=a.h5/part-0.parquet
//! .datasets/run/events.left_out.txt
//! ```
//!
//! The first look into a directory opens all files, and looks up that path alone. Until then, no file is opened.

mod cast;
mod chain;
mod lookup;
mod names;
mod part;
mod schema;
mod survey;

use std::fmt::{self, Display, Formatter};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use bstr::BString;
use lru::LruCache;
use parking_lot::Mutex;

pub(super) use self::cast::{absent, cast, path_of};
use self::lookup::RecentFiles;
use self::names::{WITHIN, components};
pub(crate) use self::part::{LeftOutText, PartFile, Partition};
pub(super) use self::schema::CommonField;
use self::survey::{MultiFileTable, Outcome};
use super::sources::{FileRoot, SourceEntry, Sources};
use super::{Children, DirEntry, EntryKind, Error, FileSpot, Formats, Session, Spot};
use crate::source::Interrupt;
use crate::store::Tally;
use crate::table::{Finding, Table};

/// Name of the directory, at the root of a mount of several files.
pub(crate) const DIRECTORY: &str = ".datasets";

/// The one file of a partition.
const PART: &str = "part-0.parquet";

/// Suffix of the file that lists the files left out of a dataset.
const LEFT_OUT: &str = ".left_out.txt";

/// Longest file name in bytes.
const LONGEST_NAME: usize = 255;

/// Most paths whose surveys are kept. Each takes some 200 bytes per file.
const MOST_KNOWN: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// Most datasets of a directory that a listing surveys for files left out. Surveys made before are kept.
const MOST_LISTED: usize = 128;

/// Most tables that such a listing opens: datasets times files.
const MOST_OPENED: usize = 4096;

/// Values that a cast rounded or lost, by path of the column.
pub(super) type Tallies = Vec<(String, Arc<Tally>)>;

/// Whether a mount of these formats has datasets.
pub(crate) fn are_shown(formats: Formats) -> bool {
    formats.shows(PART.as_bytes())
}

/// The directory `.datasets` over all files of a mount.
pub(crate) fn root(session: &Arc<Session>, sources: Arc<dyn Sources>) -> Spot {
    let known = Mutex::new(LruCache::new(MOST_KNOWN));
    let recent = Arc::default();
    let all = Datasets { session: session.clone(), sources, recent, known, started: SystemTime::now() };
    let all = Arc::new(all);
    let root = all.at(Vec::new(), None);
    Spot::Dataset(Arc::new(DatasetAt { all, dataset: root }))
}

/// The files of a dataset, which is the table that several files have at one path.
#[derive(Clone, Debug)]
pub struct DatasetFiles {
    /// Number of files in the dataset.
    pub count: usize,
    /// Files left out, sorted by path.
    pub left_out: Arc<[LeftOut]>,
}

/// A file that a dataset leaves out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The file's path as a mount shows it.
    pub file: BString,
    /// The file's path in the system.
    pub source: PathBuf,
    /// Why it is left out.
    pub finding: Finding,
}

impl LeftOut {
    /// The reason, without the path of the source that some errors begin with.
    pub fn reason(&self) -> &str {
        let found = &self.finding.found;
        found.strip_prefix(&format!("{}: ", self.source.display())).unwrap_or(found)
    }
}

impl Display for LeftOut {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.reason())
    }
}

/// A dataset and the outcome of its last survey.
type Known = (Arc<MultiFileTable>, Arc<Outcome>);

/// The datasets of some sources.
struct Datasets {
    session: Arc<Session>,
    sources: Arc<dyn Sources>,
    recent: Arc<RecentFiles>,
    known: Mutex<LruCache<Vec<BString>, Arc<MultiFileTable>>>,
    started: SystemTime,
}

impl Datasets {
    fn at(&self, path: Vec<BString>, above: Option<(Arc<MultiFileTable>, BString)>) -> Arc<MultiFileTable> {
        let mut known = self.known.lock();
        if let Some(dataset) = known.get(&path) {
            return dataset.clone();
        }
        let dataset = Arc::new(MultiFileTable::new(&self.session, &self.sources, &self.recent, path.clone(), above));
        let old = known.push(path, dataset.clone());
        drop(known);
        drop(old);
        dataset
    }

    /// Finds a file by its path in the mount.
    fn file(&self, path: &BString, interrupt: &Interrupt) -> Result<Arc<FileRoot>, Error> {
        let mut names = path.split(|byte| *byte == b'/');
        let mut found = self.sources.found(names.next().unwrap_or_default(), interrupt)?;
        for name in names {
            let SourceEntry::Folder(folder) = found else { return Err(Error::NotFound) };
            found = folder.found(name, interrupt)?;
        }
        match found {
            SourceEntry::File(file) => Ok(file),
            SourceEntry::Folder(_) => Err(Error::NotFound),
        }
    }

    /// The dataset or directory of this name below another.
    fn below(&self, above: &Arc<MultiFileTable>, name: &BString) -> Arc<MultiFileTable> {
        let path = above.path().iter().cloned().chain(components(name)).collect();
        self.at(path, Some((above.clone(), name.clone())))
    }

    /// The dataset that a directory shows, and its survey. A group that is itself a table and has members is shown as a
    /// dataset of its own within the directory. `None`: no file has a table here.
    fn table(&self, dataset: &Arc<MultiFileTable>, interrupt: &Interrupt) -> Result<Option<Known>, Error> {
        let outcome = dataset.outcome(interrupt)?;
        if !outcome.files.is_empty() {
            return Ok(Some((dataset.clone(), outcome)));
        }
        let within = BString::from(WITHIN);
        if dataset.path().is_empty() || !outcome.below.contains(&within) {
            return Ok(None);
        }
        let within = self.below(dataset, &within);
        let outcome = within.outcome(interrupt)?;
        Ok((!outcome.files.is_empty()).then_some((within, outcome)))
    }
}

/// Name of the list of files that a dataset leaves out; `None`: the name is too long, or another entry has it.
fn left_out_name(name: &BString, outcome: &Outcome) -> Option<BString> {
    let file = BString::from([name.as_slice(), LEFT_OUT.as_bytes()].concat());
    (file.len() <= LONGEST_NAME && !outcome.below.contains(&file)).then_some(file)
}

/// The directory of a path below `.datasets`: partitions if files have a table there, otherwise the names below.
pub(crate) struct DatasetAt {
    all: Arc<Datasets>,
    dataset: Arc<MultiFileTable>,
}

impl DatasetAt {
    /// When the session began to show datasets.
    pub fn since(&self) -> SystemTime {
        self.all.started
    }

    /// Finds a name in the directory.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the name does not exist; any other error if no source can be listed.
    pub fn lookup(&self, name: &[u8], interrupt: &Interrupt) -> Result<Spot, Error> {
        let (name, outcome) = (BString::from(name), self.dataset.outcome(interrupt)?);
        if let Some(path) = outcome.files.get(&name) {
            let file = self.all.file(path, interrupt)?;
            let (since, dataset) = (self.all.started, self.dataset.clone());
            return Ok(Spot::Partition(Arc::new(Partition { since, dataset, name, file })));
        }
        if outcome.below.contains(&name) {
            let dataset = self.all.below(&self.dataset, &name);
            return Ok(Spot::Dataset(Arc::new(Self { all: self.all.clone(), dataset })));
        }
        let of = name.strip_suffix(LEFT_OUT.as_bytes()).map(BString::from).ok_or(Error::NotFound)?;
        if !outcome.below.contains(&of) {
            return Err(Error::NotFound);
        }
        let found = self.all.table(&self.all.below(&self.dataset, &of), interrupt)?;
        let found = found.filter(|(_, outcome)| !outcome.left_out.is_empty());
        let (dataset, outcome) = found.ok_or(Error::NotFound)?;
        Ok(Spot::File(FileSpot::LeftOut(Arc::new(LeftOutText::new(dataset, &outcome)))))
    }

    /// The names in the directory.
    ///
    /// # Errors
    /// If no source can be listed.
    pub fn children(&self, interrupt: &Interrupt) -> Result<Children, Error> {
        let outcome = self.dataset.outcome(interrupt)?;
        let mut names: Vec<DirEntry> = outcome.files.keys().cloned().map(DirEntry::directory).collect();
        let (mut listed, mut opened) = (0, 0);
        // Arrays beside a table are its columns, so the table's survey covers them.
        let has_table = outcome.below.contains(&BString::from(WITHIN));
        for name in &outcome.below {
            names.push(DirEntry::directory(name.clone()));
            let is_looked_into = listed < MOST_LISTED && opened < MOST_OPENED && (!has_table || name == WITHIN);
            let Some(file) = left_out_name(name, &outcome).filter(|_| is_looked_into) else { continue };
            listed += 1;
            // A failed survey hides no other entry.
            let found = match self.all.table(&self.all.below(&self.dataset, name), interrupt) {
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                found => found.ok().flatten().map(|(_, outcome)| outcome),
            };
            opened += found.as_ref().map_or(0, |found| found.files.len() + found.left_out.len());
            if found.is_some_and(|found| !found.left_out.is_empty()) {
                names.push(DirEntry { name: file, kind: EntryKind::File });
            }
        }
        Ok(names.into_iter().collect())
    }

    /// The files of the dataset that the directory shows; `None`: not a dataset.
    ///
    /// # Errors
    /// If no source can be listed.
    pub fn files(&self, interrupt: &Interrupt) -> Result<Option<DatasetFiles>, Error> {
        let found = self.all.table(&self.dataset, interrupt)?;
        Ok(found.map(|(_, outcome)| DatasetFiles { count: outcome.files.len(), left_out: outcome.left_out.clone() }))
    }

    /// The rows of all files of the dataset as one table, which holds them open.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the directory is not a dataset.
    pub fn whole(&self, interrupt: &Interrupt) -> Result<Arc<Table>, Error> {
        // From here on, keep what surveys open, and read exactly that.
        let within = self.all.below(&self.dataset, &WITHIN.into());
        let all = [&self.dataset, &within];
        all.into_iter().for_each(|dataset| dataset.hold());
        let found = self.all.table(&self.dataset, interrupt);
        let whole = found.and_then(|found| found.ok_or(Error::NotFound)?.0.whole(interrupt));
        all.into_iter().for_each(|dataset| drop(dataset.held()));
        whole.map(Arc::new)
    }
}
