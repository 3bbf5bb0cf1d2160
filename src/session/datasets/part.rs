//! One file of a dataset: its partition directory with `part-0.parquet`. Also the list of files left out.

use std::sync::Arc;
use std::time::SystemTime;

use bstr::BString;

use super::schema::CommonField;
use super::survey::{MultiFileTable, Outcome};
use super::{LeftOut, PART};
use crate::session::file::ShownFile;
use crate::session::sources::FileRoot;
use crate::session::{Children, DirEntry, EntryKind, Error, FileSpot, Spot};
use crate::source::Interrupt;
use crate::views::printable;

/// The Parquet file of one partition, valid for as long as the dataset keeps these columns.
pub(crate) struct PartFile {
    pub dataset: Arc<MultiFileTable>,
    pub fields: Arc<[CommonField]>,
    /// When the columns last changed, if they ever did.
    pub since: Option<SystemTime>,
    pub file: ShownFile,
}

impl PartFile {
    /// Whether the file still shows the current state of its source, with the current columns of the dataset.
    pub fn is_current(&self) -> bool {
        self.file.is_current() && self.dataset.is_current(&self.fields)
    }
}

/// The partition directory of one file of a dataset.
pub(crate) struct Partition {
    /// When the session began to show datasets.
    pub since: SystemTime,
    pub dataset: Arc<MultiFileTable>,
    pub name: BString,
    pub file: Arc<FileRoot>,
}

impl Partition {
    /// Finds a name in the partition.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the name does not exist.
    pub fn lookup(&self, name: &[u8], interrupt: &Interrupt) -> Result<Spot, Error> {
        if name != PART.as_bytes() {
            return Err(Error::NotFound);
        }
        Ok(Spot::File(FileSpot::Part(self.dataset.part(&self.name, &self.file, interrupt)?)))
    }

    /// The names in the partition.
    ///
    /// # Errors
    /// If no source can be listed.
    pub fn children(&self, interrupt: &Interrupt) -> Result<Children, Error> {
        let is_there = self.dataset.outcome(interrupt)?.files.contains_key(&self.name);
        let names: Children =
            is_there.then(|| DirEntry { name: PART.into(), kind: EntryKind::File }).into_iter().collect();
        // A partition whose file is gone is gone too, and the next lookup does not find its directory.
        Ok(if is_there { names.lasting() } else { names })
    }
}

/// `TABLE.left_out.txt`: the files that a dataset leaves out, one per line with the reason. It exists for as long as
/// that list holds.
pub(crate) struct LeftOutText {
    dataset: Arc<MultiFileTable>,
    left_out: Arc<[LeftOut]>,
    pub since: SystemTime,
    pub text: String,
}

impl LeftOutText {
    pub fn new(dataset: Arc<MultiFileTable>, outcome: &Outcome) -> Self {
        let left_out = outcome.left_out.clone();
        let text = left_out.iter().map(|one| format!("{}\n", printable(&one.to_string()))).collect();
        Self { dataset, left_out, since: outcome.left_out_since, text }
    }

    /// Whether the list still holds.
    pub fn is_current(&self) -> bool {
        self.dataset.leaves_out(&self.left_out)
    }
}
