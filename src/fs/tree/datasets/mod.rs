//! `.datasets`: the same table of many files as one, in partitions as Hive names them.
//!
//! ```text
//! .datasets/run/events/file=a.h5/part-0.parquet
//! .datasets/run/events.left_out.txt
//! ```
//!
//! The first look into a directory here opens all files, at that path alone; nothing is opened before.

mod cast;
mod chain;
mod left_out;
mod lookup;
mod names;
mod part;
mod schema;
mod survey;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::SystemTime;

use bstr::BString;
use lru::LruCache;
use parking_lot::Mutex;

pub(super) use self::cast::{absent, cast, path_of};
use self::left_out::LeftOutNode;
use self::lookup::Listed;
use self::names::{WITHIN, components};
pub(super) use self::schema::CommonField;
use self::survey::{Dataset, Outcome};
use super::folder::{FileRoot, Found, Sources};
use super::{Attributes, Children, Context, Error, Formats, Interrupt, Kind, Node, NodeRef, plain_attributes};
use crate::fs::node::{DatasetFiles, DirEntry};
use crate::store::Tally;
use crate::table::Table;

/// Name of the directory, at the root of a mount of several files.
pub(super) const DIRECTORY: &str = ".datasets";

/// The one file of a partition.
const PART: &str = "part-0.parquet";

/// What the name of the file ends with that says which files a dataset leaves out.
const LEFT_OUT: &str = ".left_out.txt";

/// Longest name of a file in bytes.
const LONGEST_NAME: usize = 255;

/// Paths of which it stays known which files have a table there. Each takes some 200 bytes a file.
const MOST_KNOWN: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// Datasets in a directory that a listing of it looks into for files left out; all that are known stay so.
const MOST_LISTED: usize = 128;

/// Tables that such a listing opens at most: files for each dataset.
const MOST_OPENED: usize = 4096;

/// Values that a cast did not keep, by the path of the column.
pub(super) type Tallies = Vec<(String, Arc<Tally>)>;

/// Whether a mount of these formats has datasets.
pub(super) fn are_shown(formats: Formats) -> bool {
    formats.shows(PART.as_bytes())
}

/// The directory, over all files of a mount.
pub(super) fn root(context: &Arc<Context>, sources: Arc<dyn Sources>) -> NodeRef {
    let known = Mutex::new(LruCache::new(MOST_KNOWN));
    let listed = Arc::default();
    let all = Datasets { context: context.clone(), sources, listed, known, started: SystemTime::now() };
    let all = Arc::new(all);
    let root = all.at(Vec::new(), None);
    Arc::new(DatasetNode { all, dataset: root })
}

/// A dataset, and what is known of it.
type Known = (Arc<Dataset>, Arc<Outcome>);

/// The datasets of a mount.
struct Datasets {
    context: Arc<Context>,
    sources: Arc<dyn Sources>,
    listed: Arc<Listed>,
    known: Mutex<LruCache<Vec<BString>, Arc<Dataset>>>,
    started: SystemTime,
}

impl Datasets {
    fn at(&self, path: Vec<BString>, above: Option<(Arc<Dataset>, BString)>) -> Arc<Dataset> {
        let mut known = self.known.lock();
        if let Some(dataset) = known.get(&path) {
            return dataset.clone();
        }
        let dataset = Arc::new(Dataset::new(&self.context, &self.sources, &self.listed, path.clone(), above));
        let old = known.push(path, dataset.clone());
        drop(known);
        drop(old);
        dataset
    }

    /// The file with this path in the mount.
    fn file(&self, path: &BString) -> Result<Arc<FileRoot>, Error> {
        let mut names = path.split(|byte| *byte == b'/');
        let mut found = self.sources.found(names.next().unwrap_or_default())?;
        for name in names {
            let Found::Folder(folder) = found else { return Err(Error::NotFound) };
            found = folder.found(name)?;
        }
        match found {
            Found::File(file) => Ok(file),
            Found::Folder(_) => Err(Error::NotFound),
        }
    }

    /// The dataset or directory of this name below another.
    fn below(&self, above: &Arc<Dataset>, name: &BString) -> Arc<Dataset> {
        let path = above.path().iter().cloned().chain(components(name)).collect();
        self.at(path, Some((above.clone(), name.clone())))
    }

    /// The dataset that a directory is, with what is known of it: of groups that are tables and show what lies in them,
    /// the one beside their members. `None` where no file has a table.
    fn table(&self, dataset: &Arc<Dataset>, interrupt: &Interrupt) -> Result<Option<Known>, Error> {
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

    fn attributes(&self) -> Attributes {
        plain_attributes(Kind::Directory, self.started)
    }
}

/// The name of the file that says which files a dataset leaves out; `None` where it is too long, or another's.
fn left_out_name(name: &BString, outcome: &Outcome) -> Option<BString> {
    let file = BString::from([name.as_slice(), LEFT_OUT.as_bytes()].concat());
    (file.len() <= LONGEST_NAME && !outcome.below.contains(&file)).then_some(file)
}

fn directory(name: &BString) -> DirEntry {
    DirEntry { name: name.clone(), kind: Kind::Directory }
}

/// The directory of a path: partitions, where files have a table there, else what lies below.
struct DatasetNode {
    all: Arc<Datasets>,
    dataset: Arc<Dataset>,
}

impl Node for DatasetNode {
    fn attributes(&self) -> Attributes {
        self.all.attributes()
    }

    fn is_current(&self) -> bool {
        true
    }

    fn repeats(&self) -> bool {
        true
    }

    fn lookup(&self, name: &[u8], interrupt: &Interrupt) -> Result<NodeRef, Error> {
        let (name, outcome) = (BString::from(name), self.dataset.outcome(interrupt)?);
        if let Some(path) = outcome.files.get(&name) {
            let file = self.all.file(path)?;
            let (all, dataset) = (self.all.clone(), self.dataset.clone());
            return Ok(Arc::new(PartitionNode { all, dataset, partition: name, file }));
        }
        if outcome.below.contains(&name) {
            let dataset = self.all.below(&self.dataset, &name);
            return Ok(Arc::new(DatasetNode { all: self.all.clone(), dataset }));
        }
        let of = name.strip_suffix(LEFT_OUT.as_bytes()).map(BString::from).ok_or(Error::NotFound)?;
        if !outcome.below.contains(&of) {
            return Err(Error::NotFound);
        }
        let found = self.all.table(&self.all.below(&self.dataset, &of), interrupt)?;
        let found = found.filter(|(_, outcome)| !outcome.left_out.is_empty());
        let (dataset, outcome) = found.ok_or(Error::NotFound)?;
        Ok(Arc::new(LeftOutNode::new(dataset, &outcome)))
    }

    fn children(&self, interrupt: &Interrupt) -> Result<Children, Error> {
        let outcome = self.dataset.outcome(interrupt)?;
        let mut names: Vec<DirEntry> = outcome.files.keys().map(directory).collect();
        let (mut listed, mut opened) = (0, 0);
        // Arrays beside a table are its columns, of which it tells.
        let has_table = outcome.below.contains(&BString::from(WITHIN));
        for name in &outcome.below {
            names.push(directory(name));
            let is_looked_into = listed < MOST_LISTED && opened < MOST_OPENED && (!has_table || name == WITHIN);
            let Some(file) = left_out_name(name, &outcome).filter(|_| is_looked_into) else { continue };
            listed += 1;
            // One that cannot be looked into hides no other.
            let found = match self.all.table(&self.all.below(&self.dataset, name), interrupt) {
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                found => found.ok().flatten().map(|(_, outcome)| outcome),
            };
            opened += found.as_ref().map_or(0, |found| found.files.len() + found.left_out.len());
            if found.is_some_and(|found| !found.left_out.is_empty()) {
                names.push(DirEntry { name: file, kind: Kind::File });
            }
        }
        Ok(names.into_iter().collect())
    }

    fn dataset(&self, interrupt: &Interrupt) -> Result<Option<DatasetFiles>, Error> {
        let found = self.all.table(&self.dataset, interrupt)?;
        let files = |outcome: &Outcome| DatasetFiles { count: outcome.files.len(), left_out: outcome.left_out.clone() };
        Ok(found.map(|(_, outcome)| files(&outcome)))
    }

    fn whole_dataset(&self, interrupt: &Interrupt) -> Result<Arc<Table>, Error> {
        // What surveys open from here on is what is read.
        let within = self.all.below(&self.dataset, &WITHIN.into());
        let all = [&self.dataset, &within];
        all.into_iter().for_each(|dataset| dataset.hold());
        let found = self.all.table(&self.dataset, interrupt);
        let whole = found.and_then(|found| found.ok_or(Error::NotFound)?.0.whole(interrupt));
        all.into_iter().for_each(|dataset| drop(dataset.held()));
        whole.map(Arc::new)
    }
}

/// The directory of one file.
struct PartitionNode {
    all: Arc<Datasets>,
    dataset: Arc<Dataset>,
    partition: BString,
    file: Arc<FileRoot>,
}

impl Node for PartitionNode {
    fn attributes(&self) -> Attributes {
        self.all.attributes()
    }

    fn is_current(&self) -> bool {
        self.file.is_current()
    }

    fn lookup(&self, name: &[u8], interrupt: &Interrupt) -> Result<NodeRef, Error> {
        if name != PART.as_bytes() {
            return Err(Error::NotFound);
        }
        Ok(self.dataset.part(&self.partition, &self.file, interrupt)?)
    }

    fn children(&self, interrupt: &Interrupt) -> Result<Children, Error> {
        let is_there = self.dataset.outcome(interrupt)?.files.contains_key(&self.partition);
        let names: Children = is_there.then(|| DirEntry { name: PART.into(), kind: Kind::File }).into_iter().collect();
        // A partition without its file is none, and its directory is not found any more.
        Ok(if is_there { names.lasting() } else { names })
    }
}
