//! `SOURCE[:path]`: a place in a source, as a mount would show it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use clap::Args;

use super::Error;
use super::options::Reading;
use crate::fs::tree::{self, Context, ViewOptions};
use crate::fs::{Kind, NodeRef};
use crate::source::{Identity, Interrupt};
use crate::table::Table;

/// How long to wait for a file that is written to: for file systems that count time in whole seconds.
const LONGEST_SETTLING: Duration = Duration::from_secs(4);

/// A place, as arguments name it, and how it is read.
#[derive(Debug, Args)]
pub(super) struct Named {
    /// An HDF5 file or a folder, and a path in it as a mount would show it
    #[arg(value_name = "SOURCE[:PATH]")]
    place: String,

    #[command(flatten)]
    pub reading: Reading,
}

impl Named {
    /// Finds it.
    ///
    /// # Errors
    /// As [`Place::find`].
    pub fn find(&self, views: ViewOptions) -> Result<Place, Error> {
        Place::open(&self.place, self.reading.context(views)?, &Interrupt::new())
    }

    /// Finds it once the file has not been written to for a moment, so that what is learnt of it can be kept.
    ///
    /// # Errors
    /// As [`Place::find`].
    pub fn find_settled(&self, views: ViewOptions, interrupt: &Interrupt) -> Result<Place, Error> {
        let (source, _) = split(&self.place);
        let end = Instant::now() + LONGEST_SETTLING;
        let settled = || {
            let metadata = std::fs::metadata(&source);
            metadata.is_ok_and(|metadata| Identity::of(&metadata).is_settled_at(SystemTime::now()))
        };
        while source.is_file() && !settled() && Instant::now() < end && !interrupt.is_raised() {
            std::thread::sleep(Duration::from_millis(10));
        }
        Place::open(&self.place, self.reading.context(views)?, interrupt)
    }
}

/// A node found without mounting.
pub(super) struct Place {
    /// What all nodes of the source share.
    pub context: Arc<Context>,
    /// The node.
    pub node: NodeRef,
    /// Its name for messages.
    pub name: String,
}

/// Splits `SOURCE[:path]` at the last colon that leaves the name of something that exists.
pub(super) fn split(text: &str) -> (PathBuf, String) {
    if Path::new(text).exists() {
        return (text.into(), String::new());
    }
    let at = text.char_indices().rev().find(|(at, c)| *c == ':' && Path::new(&text[..*at]).exists());
    match at {
        Some((at, _)) => (text[..at].into(), text[at + 1..].to_owned()),
        None => (text.into(), String::new()),
    }
}

impl Place {
    /// Finds a place.
    ///
    /// # Errors
    /// Where the source cannot be opened, or shows no such name.
    pub fn open(text: &str, context: Arc<Context>, interrupt: &Interrupt) -> Result<Self, Error> {
        let (source, path) = split(text);
        let mut node = tree::root(&context, &[source], interrupt)?;
        let failed = |error| Error::Tree { path: text.to_owned(), error };
        for part in path.split('/').filter(|part| !part.is_empty()) {
            node = node.lookup(part.as_bytes(), interrupt).map_err(failed)?;
        }
        Ok(Self { context, node, name: text.to_owned() })
    }

    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        self.node.attributes().kind == Kind::Directory
    }

    /// The table that it is.
    ///
    /// # Errors
    /// Where it is none, or cannot be listed.
    pub fn table(&self, interrupt: &Interrupt) -> Result<Arc<Table>, Error> {
        let none = || Error::Usage(format!("{}: not a table", self.name));
        if !self.is_directory() {
            return Err(none());
        }
        // Lists the group, which is when its table is known.
        self.node.children(interrupt).map_err(|error| self.failed(error))?;
        self.node.table().ok_or_else(none)
    }

    /// As an error about this place.
    pub fn failed(&self, error: crate::fs::Error) -> Error {
        Error::Tree { path: self.name.clone(), error }
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn the_path_begins_after_the_last_colon_of_a_file_that_exists() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a:b.h5");
        std::fs::write(&file, "").unwrap();
        let text = file.display().to_string();
        assert_eq!(split(&text), (file.clone(), String::new()));
        assert_eq!(split(&format!("{text}:run/columns")), (file, "run/columns".into()));
        assert_eq!(split("none:x"), ("none:x".into(), String::new()));
    }
}
