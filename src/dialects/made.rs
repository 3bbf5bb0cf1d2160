//! What dialects show beside the links of a group: directories that are made up, groups of other places, changes.

use std::sync::Arc;
use std::time::SystemTime;

use bstr::BString;

use crate::catalogue::{ObjectId, join};

/// A dataset that differs from what it was in an earlier state of its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// How.
    pub changed: Changed,
    /// Names of the links that lead to it from the group, a `/` between them.
    pub path: BString,
}

/// How a dataset differs from what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// It was not there.
    Added,
    /// It is not there any more.
    Removed,
    /// Its elements, shape or type are others, or it is not known that they are not.
    Modified,
}

/// A directory made up by a dialect, or what is in one.
#[derive(Clone, Debug)]
pub enum Made {
    /// A directory that is no object of the file.
    Directory {
        /// The table that it is: [`super::Of::Made`], told by this key.
        table: Option<BString>,
        /// What is in it, by name. Of two that would be shown under one name the first has it.
        children: Arc<[(BString, Made)]>,
    },
    /// A group that is shown at another place than its link.
    Group(Elsewhere),
    /// A symbolic link to what stands beside it under this name.
    Link(BString),
}

/// A group that is shown at another place than its link.
#[derive(Clone, Debug)]
pub struct Elsewhere {
    /// The group.
    pub id: ObjectId,
    /// Names of the links that lead to it from the root.
    pub links: Vec<BString>,
    /// Last change of its directory, where the file tells one: files in it have the times of the HDF5 file.
    pub mtime: Option<SystemTime>,
}

impl Elsewhere {
    /// Its HDF5 path.
    pub fn path(&self) -> String {
        self.links.iter().fold("/".to_owned(), |path, link| join(&path, link))
    }
}
