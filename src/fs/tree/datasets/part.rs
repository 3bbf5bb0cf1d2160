//! The rows of one file of a dataset: `part-0.parquet`.

use std::sync::Arc;
use std::time::SystemTime;

use super::schema::CommonField;
use super::survey::Dataset;
use crate::fs::Error;
use crate::fs::node::{Attributes, Node, Xattrs};
use crate::fs::tree::file::FileNode;
use crate::source::Interrupt;
use crate::store::Answer;
use crate::store::pass::Progress;
use crate::views::{Access, Effort, Size};

/// A Parquet file like any other, for as long as the files of its dataset have these columns in common.
pub(super) struct Part {
    pub dataset: Arc<Dataset>,
    pub fields: Arc<[CommonField]>,
    /// When the columns became these, where they were others before.
    pub since: Option<SystemTime>,
    pub file: FileNode,
}

impl Node for Part {
    fn attributes(&self) -> Attributes {
        let own = self.file.attributes();
        // Bytes never change while the time stands.
        Attributes { mtime: self.since.map_or(own.mtime, |since| since.max(own.mtime)), ..own }
    }

    fn is_current(&self) -> bool {
        self.file.is_current() && self.dataset.is_current(&self.fields)
    }

    fn size(&self, effort: Effort, interrupt: &Interrupt) -> Result<Size, Error> {
        self.file.size(effort, interrupt)
    }

    fn gather(&self, offset: u64, length: usize, answer: &mut Answer, interrupt: &Interrupt) -> Result<(), Error> {
        self.file.gather(offset, length, answer, interrupt)
    }

    fn progress(&self) -> Option<Progress> {
        self.file.progress()
    }

    fn why_not_kept(&self) -> Option<&'static str> {
        self.file.why_not_kept()
    }

    fn access(&self) -> Access {
        self.file.access()
    }

    fn xattrs(&self, interrupt: &Interrupt) -> Result<Box<dyn Xattrs>, Error> {
        self.file.xattrs(interrupt)
    }
}
