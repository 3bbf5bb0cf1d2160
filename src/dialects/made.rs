//! Additions of dialects to the links of a group: made-up directories, groups from other places, changes.

use std::any::Any;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use bstr::BString;

use crate::catalogue::{ObjectId, join};
use crate::source::Interrupt;

/// A dataset that differs from its earlier state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatasetChange {
    /// How the dataset differs.
    pub changed: Changed,
    /// Path of the dataset from the group: names of links, with `/` between them.
    pub path: BString,
}

/// How a dataset differs from its earlier state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// The dataset is new.
    Added,
    /// The dataset no longer exists.
    Removed,
    /// The dataset's elements, shape or type changed, or may have changed.
    Modified,
}

/// A made-up directory, or an entry in one.
#[derive(Clone, Debug)]
pub enum Made {
    /// A directory that is no object of the file.
    Directory {
        /// Key of the table that the directory shows, as in [`super::Of::Made`]. `None`: it is not a table.
        table: Option<BString>,
        /// Entries of the directory by name. Of two with the same name, the first is shown.
        children: Arc<[(BString, Made)]>,
    },
    /// A group that is shown in another place than that of its link.
    Group(Elsewhere),
    /// A symbolic link to a sibling of this name.
    Link(BString),
}

/// The plan by which a dialect opens the tables that it made up for a group. It is made when the first of them is
/// opened, and serves all of them.
#[derive(Debug, Default)]
pub struct MadePlan(OnceLock<Box<dyn Any + Send + Sync>>);

impl MadePlan {
    /// Returns the plan, which the first call makes with `work_out`. `None`: the first call was interrupted. A dialect
    /// has only one type of plan.
    pub fn of<T: Any + Send + Sync>(&self, interrupt: &Interrupt, work_out: impl FnOnce() -> T) -> Option<&T> {
        if self.0.get().is_none() {
            let all = work_out();
            interrupt.check().ok()?;
            // If two threads make one at the same time, the first to finish is kept.
            let _ = self.0.set(Box::new(all));
        }
        self.0.get()?.downcast_ref()
    }
}

/// A group that is shown in another place than that of its link.
#[derive(Clone, Debug)]
pub struct Elsewhere {
    /// Identity of the group.
    pub id: ObjectId,
    /// Names of the links that lead to the group from the root.
    pub links: Vec<BString>,
    /// Time of last change that its directory shows. `None`: the file states none. Files inside show the time of the
    /// HDF5 file.
    pub mtime: Option<SystemTime>,
}

impl Elsewhere {
    /// HDF5 path of the group.
    pub fn path(&self) -> String {
        self.links.iter().fold("/".to_owned(), |path, link| join(&path, link))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_worked_out_once_and_not_kept_where_that_was_interrupted() {
        let (plan, interrupt) = (MadePlan::default(), Interrupt::new());
        interrupt.raise();
        assert_eq!(plan.of(&interrupt, || 1), None);
        assert_eq!(plan.of(&Interrupt::new(), || 2), Some(&2));
        assert_eq!(plan.of(&Interrupt::new(), || panic!("once more")), Some(&2));
    }
}
