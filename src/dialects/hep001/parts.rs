//! Holds a table group and its findings while a table is made from it.

use std::sync::Arc;

use bstr::BStr;

use super::draft::Draft;
use super::names::{APRIL, JULY};
use crate::catalogue::{Dataset, Fill, Group, join};
use crate::dialects::versioned;
use crate::store::File;
use crate::table::{Finding, Rule};

/// A table group, and the rules that it breaks.
pub(super) struct TableGroup<'a> {
    /// The file that the group lies in.
    pub file: &'a Arc<File>,
    /// HDF5 path of the table group.
    pub path: &'a str,
    /// The table group.
    pub group: &'a Group,
    /// Whether the group lies in a version of a Versioned HDF5 file: that library sets fill values by itself.
    pub is_in_version: bool,
    /// The draft that judges the group.
    pub draft: Draft,
    /// Whether to check every rule, as `hepfs check` does.
    pub is_full: bool,
    /// The rules found broken so far.
    pub findings: Vec<Finding>,
}

impl TableGroup<'_> {
    /// HDF5 path of a member of the group.
    pub fn path_of(&self, name: &BStr) -> String {
        join(self.path, name)
    }

    /// The fill value of a dataset, if it means missing (HEP001 §6.4).
    pub fn missing(&self, dataset: &Dataset) -> Fill {
        if self.has_foreign_fill(dataset) { Fill::Default } else { dataset.fill.clone() }
    }

    /// Whether Versioned HDF5 may have set the fill value. It then does not mean missing, though HEP001 §6.4 says so.
    pub fn has_foreign_fill(&self, dataset: &Dataset) -> bool {
        self.is_in_version && versioned::is_own_fill(&dataset.fill)
    }

    /// Reports that the table group breaks a rule, if the judging draft has it.
    pub fn report(&mut self, rule: &'static Rule, found: impl Into<String>) {
        self.find(self.path, rule, found);
    }

    /// Reports that the object at `path` breaks a rule, if the judging draft has it.
    pub fn find(&mut self, path: impl Into<String>, rule: &'static Rule, found: impl Into<String>) {
        if self.draft.has(rule) {
            self.findings.push(Finding::new(path, rule, found).by(self.revision()));
        }
    }

    /// The judging draft's name in findings.
    pub fn revision(&self) -> &'static str {
        if matches!(self.draft, Draft::April | Draft::MayJune) { APRIL } else { JULY }
    }
}
