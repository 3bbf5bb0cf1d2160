//! Names of files of which a directory may have very many: the first use of a name creates its file.

use std::sync::{Arc, OnceLock};

use super::{Attributes, Effort, EntryKind, Error, Interrupt, Node, NodeRef, Size, Xattrs};
use crate::session::{Directory, ShownFile, Use};
use crate::store::Answer;
use crate::views::{AccessPattern, Standing};

/// A file of a dataset or a column, known by its position in a directory.
pub(super) struct FileName {
    directory: Arc<Directory>,
    /// Whether the file is in `columns/`.
    in_columns: bool,
    /// Position of the file in the listing.
    position: usize,
    /// The file of the last open, whose layout may change later: the kernel knows this layout under the name.
    opened: OnceLock<Arc<ShownFile>>,
}

impl FileName {
    pub fn new(directory: Arc<Directory>, in_columns: bool, position: usize) -> Self {
        Self { directory, in_columns, position, opened: OnceLock::new() }
    }

    fn file(&self, used: Use) -> Result<Arc<ShownFile>, Error> {
        match self.opened.get() {
            Some(file) => Ok(file.clone()),
            None => Ok(self.directory.file((self.in_columns, self.position), used)?),
        }
    }
}

impl Node for FileName {
    fn attributes(&self) -> Attributes {
        self.directory.opened().attributes(EntryKind::File)
    }

    fn is_current(&self) -> bool {
        self.opened.get().map_or_else(|| self.directory.opened().is_current(), |file| file.is_current())
    }

    fn opened(&self) -> Result<Option<NodeRef>, Error> {
        let file = self.file(Use::Opened)?;
        let is_lasting = file.view.standing() == Standing::Lasting;
        Ok(Some(if is_lasting { file } else { self.opened.get_or_init(|| file).clone() }))
    }

    fn size(&self, effort: Effort, interrupt: &Interrupt) -> Result<Size, Error> {
        Node::size(self.file(Use::Seen)?.as_ref(), effort, interrupt)
    }

    fn gather(&self, offset: u64, length: usize, answer: &mut Answer, interrupt: &Interrupt) -> Result<(), Error> {
        self.file(Use::Opened)?.gather(offset, length, answer, interrupt)
    }

    fn access(&self) -> AccessPattern {
        self.file(Use::Seen).map_or(AccessPattern::Any, |file| file.access())
    }

    fn xattrs(&self, interrupt: &Interrupt) -> Result<Box<dyn Xattrs>, Error> {
        self.file(Use::Seen)?.xattrs(interrupt)
    }
}
