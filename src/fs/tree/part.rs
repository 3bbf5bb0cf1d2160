//! The node of the rows of one file of a dataset: `part-0.parquet`.

use super::{Attributes, Effort, Error, Interrupt, Node, Size, Xattrs};
use crate::session::datasets::PartFile;
use crate::store::Answer;
use crate::views::AccessPattern;

impl Node for PartFile {
    fn attributes(&self) -> Attributes {
        let own = self.file.attributes();
        // Bytes never change while this time stays.
        Attributes { mtime: self.since.map_or(own.mtime, |since| since.max(own.mtime)), ..own }
    }

    fn is_current(&self) -> bool {
        PartFile::is_current(self)
    }

    fn size(&self, effort: Effort, interrupt: &Interrupt) -> Result<Size, Error> {
        Node::size(&self.file, effort, interrupt)
    }

    fn gather(&self, offset: u64, length: usize, answer: &mut Answer, interrupt: &Interrupt) -> Result<(), Error> {
        self.file.gather(offset, length, answer, interrupt)
    }

    fn access(&self) -> AccessPattern {
        self.file.access()
    }

    fn xattrs(&self, interrupt: &Interrupt) -> Result<Box<dyn Xattrs>, Error> {
        self.file.xattrs(interrupt)
    }
}
