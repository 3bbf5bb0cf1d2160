//! Names of files of which a directory may have very many: what stands behind one is made when it is asked for.

use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};

use lru::LruCache;
use parking_lot::Mutex;

use super::directory::Directory;
use super::file::FileNode;
use super::{Attributes, Effort, Error, Interrupt, Kind, Node, NodeRef, Size, Xattrs, last_used};
use crate::store::Answer;
use crate::store::pass::Progress;
use crate::views::{Access, Standing};

/// Files of an opening that stay when nobody uses them, of those that were opened and of those that were looked at:
/// they know their exact size, which may have taken a pass.
const MOST_UNUSED: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// What a file is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Its size and attributes.
    Seen,
    /// Its bytes. Those that are looked at do not drive it out.
    Opened,
}

/// The files of an opening that were used last.
pub(super) struct Recent {
    seen: Mutex<Files>,
    opened: Mutex<Files>,
}

/// Files by their addresses, which are theirs for as long as they are held.
type Files = LruCache<usize, Arc<FileNode>>;

impl Default for Recent {
    fn default() -> Self {
        let files = || Mutex::new(last_used(MOST_UNUSED));
        Self { seen: files(), opened: files() }
    }
}

impl Recent {
    /// Holds a file until as many others were used since.
    pub fn touch(&self, file: &Arc<FileNode>, used: Use) {
        let files = if used == Use::Opened { &self.opened } else { &self.seen };
        let old = files.lock().push(Arc::as_ptr(file).addr(), file.clone());
        // What is driven out ends outside the lock.
        drop(old);
    }
}

/// A file of a dataset or a column, as far as it is known by its place in a directory.
pub(super) struct FileName {
    directory: Arc<Directory>,
    /// Whether it is in `columns/`.
    in_columns: bool,
    /// Its number in the listing.
    position: usize,
    /// A file that was opened and may be laid out anew: what the kernel knows under this name is this layout.
    opened: OnceLock<Arc<FileNode>>,
}

impl FileName {
    pub fn new(directory: &Arc<Directory>, in_columns: bool, position: usize) -> Self {
        Self { directory: directory.clone(), in_columns, position, opened: OnceLock::new() }
    }

    fn file(&self, used: Use) -> Result<Arc<FileNode>, Error> {
        match self.opened.get() {
            Some(file) => Ok(file.clone()),
            None => self.directory.file((self.in_columns, self.position), used),
        }
    }
}

impl Node for FileName {
    fn attributes(&self) -> Attributes {
        self.directory.opened().attributes(Kind::File)
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
        let used = if effort == Effort::Prepared { Use::Opened } else { Use::Seen };
        self.file(used)?.size(effort, interrupt)
    }

    fn gather(&self, offset: u64, length: usize, answer: &mut Answer, interrupt: &Interrupt) -> Result<(), Error> {
        self.file(Use::Opened)?.gather(offset, length, answer, interrupt)
    }

    fn progress(&self) -> Option<Progress> {
        self.file(Use::Seen).ok()?.progress()
    }

    fn why_not_kept(&self) -> Option<&'static str> {
        self.directory.opened().opening().why_not_kept()
    }

    fn access(&self) -> Access {
        self.file(Use::Seen).map_or(Access::Any, |file| file.access())
    }

    fn xattrs(&self, interrupt: &Interrupt) -> Result<Box<dyn Xattrs>, Error> {
        self.file(Use::Seen)?.xattrs(interrupt)
    }
}
