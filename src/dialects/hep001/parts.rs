//! A table group while a table is made of it.

use std::sync::Arc;

use bstr::BStr;

use super::draft::Draft;
use super::names::{APRIL, JULY};
use crate::catalogue::{Dataset, Fill, Group, join};
use crate::dialects::versioned;
use crate::store::File;
use crate::table::{Finding, Rule};

/// The table group, and the rules that it was found to break.
pub(super) struct Parts<'a> {
    /// The file.
    pub file: &'a Arc<File>,
    /// HDF5 path of the table group.
    pub path: &'a str,
    /// The table group.
    pub group: &'a Group,
    /// It lies in a version of a Versioned HDF5 file, whose library sets fill values by itself.
    pub is_in_version: bool,
    /// The draft by which it is judged.
    pub draft: Draft,
    /// Whether it is held against every rule.
    pub is_full: bool,
    /// Rules broken so far.
    pub findings: Vec<Finding>,
}

impl Parts<'_> {
    /// HDF5 path of a member of the group.
    pub fn path_of(&self, name: &BStr) -> String {
        join(self.path, name)
    }

    /// The fill value that means missing (HEP001 §6.4).
    pub fn missing(&self, dataset: &Dataset) -> Fill {
        if self.has_foreign_fill(dataset) { Fill::Default } else { dataset.fill.clone() }
    }

    /// Whether a fill value says nothing of missing values, whatever the letter of HEP001 §6.4 is.
    pub fn has_foreign_fill(&self, dataset: &Dataset) -> bool {
        self.is_in_version && versioned::is_own_fill(&dataset.fill)
    }

    /// Reports a broken rule on the table group.
    pub fn report(&mut self, rule: &'static Rule, found: impl Into<String>) {
        self.find(self.path, rule, found);
    }

    /// Reports a broken rule, where the draft has it.
    pub fn find(&mut self, path: impl Into<String>, rule: &'static Rule, found: impl Into<String>) {
        if self.draft.has(rule) {
            self.findings.push(Finding::new(path, rule, found).by(self.revision()));
        }
    }

    /// What findings call the draft by which the table is judged.
    pub fn revision(&self) -> &'static str {
        if matches!(self.draft, Draft::April | Draft::MayJune) { APRIL } else { JULY }
    }
}
