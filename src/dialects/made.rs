//! What dialects show beside the links of a group: directories that are made up, groups of other places, changes.

use std::any::Any;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use bstr::BString;

use crate::catalogue::{ObjectId, join};
use crate::source::Interrupt;

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

/// Keeps the plan by which a dialect opens the tables that it made up in a group: the first makes it for the others.
#[derive(Debug, Default)]
pub struct Plan(OnceLock<Box<dyn Any + Send + Sync>>);

impl Plan {
    /// Returns the plan, made by `work_out` at the first call; `None` after an interrupt. Each dialect has one type of
    /// plan.
    pub fn of<T: Any + Send + Sync>(&self, interrupt: &Interrupt, work_out: impl FnOnce() -> T) -> Option<&T> {
        if self.0.get().is_none() {
            let all = work_out();
            interrupt.check().ok()?;
            // Of two at once the first is kept.
            let _ = self.0.set(Box::new(all));
        }
        self.0.get()?.downcast_ref()
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_worked_out_once_and_not_kept_where_that_was_interrupted() {
        let (plan, interrupt) = (Plan::default(), Interrupt::new());
        interrupt.raise();
        assert_eq!(plan.of(&interrupt, || 1), None);
        assert_eq!(plan.of(&Interrupt::new(), || 2), Some(&2));
        assert_eq!(plan.of(&Interrupt::new(), || panic!("once more")), Some(&2));
    }
}
