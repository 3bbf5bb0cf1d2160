//! A table group while a table is made of it.

use std::sync::Arc;

use bstr::BStr;

use crate::catalogue::{Group, join};
use crate::store::File;
use crate::table::Finding;

/// The table group, and the rules that it was found to break.
pub(super) struct Parts<'a> {
    /// The file.
    pub file: &'a Arc<File>,
    /// HDF5 path of the table group.
    pub path: &'a str,
    /// The table group.
    pub group: &'a Group,
    /// Rules broken so far.
    pub findings: Vec<Finding>,
}

impl Parts<'_> {
    /// HDF5 path of a member of the group.
    pub fn path_of(&self, name: &BStr) -> String {
        join(self.path, name)
    }

    /// Reports a broken rule on the table group.
    pub fn report(&mut self, rule: &str, found: impl Into<String>) {
        self.findings.push(Finding::new(self.path, rule, found));
    }
}
