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
    /// The kind of difference.
    pub changed: Changed,
    /// Path from the group: names of links with `/` between them.
    pub path: BString,
}

/// How a dataset differs from its earlier state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// The dataset is new.
    Added,
    /// The dataset no longer exists.
    Removed,
    /// Its elements, shape or type changed, or may have.
    Modified,
}

/// A made-up directory, or an entry in one.
#[derive(Clone, Debug)]
pub enum Made {
    /// A directory that is no object of the file.
    Directory {
        /// The table that the directory shows: [`super::Of::Made`] with this key.
        table: Option<BString>,
        /// Its entries by name. Of two with the same name, the first is shown.
        children: Arc<[(BString, Made)]>,
    },
    /// A group shown at another place than its link.
    Group(Elsewhere),
    /// A symbolic link to a sibling of this name.
    Link(BString),
}

/// The plan by which a dialect opens its made-up tables of a group; the first one opened makes it for all.
#[derive(Debug, Default)]
pub struct MadePlan(OnceLock<Box<dyn Any + Send + Sync>>);

impl MadePlan {
    /// Returns the plan; the first call makes it by `work_out`. `None` after an interrupt. Each dialect has one type of
    /// plan.
    pub fn of<T: Any + Send + Sync>(&self, interrupt: &Interrupt, work_out: impl FnOnce() -> T) -> Option<&T> {
        if self.0.get().is_none() {
            let all = work_out();
            interrupt.check().ok()?;
            // If two are made at once, the first one stays.
            let _ = self.0.set(Box::new(all));
        }
        self.0.get()?.downcast_ref()
    }
}

/// A group shown at another place than its link.
#[derive(Clone, Debug)]
pub struct Elsewhere {
    /// The group.
    pub id: ObjectId,
    /// Path from the root: names of links.
    pub links: Vec<BString>,
    /// Time of last change for its directory, if the file states one. Files inside have the times of the HDF5 file.
    pub mtime: Option<SystemTime>,
}

impl Elsewhere {
    /// Its HDF5 path.
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
