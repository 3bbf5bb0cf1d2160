//! The node of a file over chosen rows, which becomes an ordinary file once the rows are known.

use super::{Attributes, Effort, EntryKind, Error, Interrupt, Node, Size, Xattrs};
use crate::session::selections::SelectionFile;
use crate::store::Answer;
use crate::views::AccessPattern;

impl Node for SelectionFile {
    fn attributes(&self) -> Attributes {
        self.opened().attributes(EntryKind::File)
    }

    fn is_current(&self) -> bool {
        SelectionFile::is_current(self)
    }

    fn size(&self, effort: Effort, interrupt: &Interrupt) -> Result<Size, Error> {
        Ok(SelectionFile::size(self, effort, interrupt)?)
    }

    fn gather(&self, offset: u64, length: usize, answer: &mut Answer, interrupt: &Interrupt) -> Result<(), Error> {
        self.file(interrupt)?.gather(offset, length, answer, interrupt)
    }

    fn access(&self) -> AccessPattern {
        self.known()
            .map_or_else(|| self.of_all().map_or(AccessPattern::Any, |file| file.access()), |file| file.access())
    }

    fn xattrs(&self, interrupt: &Interrupt) -> Result<Box<dyn Xattrs>, Error> {
        self.of_all()?.xattrs(interrupt)
    }
}
