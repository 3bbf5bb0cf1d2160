//! `.datasets`: the same table of many files as one, in partitions as Hive names them.
//!
//! ```text
//! .datasets/run/events/file=a.h5/part-0.parquet
//! ```
//!
//! The first look into a directory here opens all files, at that path alone; nothing is opened before.

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

use self::names::components;
pub(super) use self::schema::CommonField;
use self::survey::{Dataset, Listed};
use super::folder::{FileRoot, Found, Sources};
use super::{Attributes, Children, Context, Error, Formats, Interrupt, Kind, Node, NodeRef, plain_attributes};
use crate::fs::node::DirEntry;

/// Name of the directory, at the root of a mount of several files.
pub(super) const DIRECTORY: &str = ".datasets";

/// The one file of a partition.
const PART: &str = "part-0.parquet";

/// Paths of which it stays known which files have a table there. Each takes some 200 bytes a file.
const MOST_KNOWN: NonZeroUsize = NonZeroUsize::new(64).unwrap();

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

    fn attributes(&self) -> Attributes {
        plain_attributes(Kind::Directory, self.started)
    }
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
        if !outcome.below.contains(&name) {
            return Err(Error::NotFound);
        }
        let path = self.dataset.path().iter().cloned().chain(components(&name)).collect();
        let above = Some((self.dataset.clone(), name));
        Ok(Arc::new(DatasetNode { all: self.all.clone(), dataset: self.all.at(path, above) }))
    }

    fn children(&self, interrupt: &Interrupt) -> Result<Children, Error> {
        let outcome = self.dataset.outcome(interrupt)?;
        Ok(outcome.files.keys().chain(&outcome.below).map(directory).collect())
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
        Ok(is_there.then(|| DirEntry { name: PART.into(), kind: Kind::File }).into_iter().collect())
    }
}
