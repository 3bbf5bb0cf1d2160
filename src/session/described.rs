//! Descriptions of groups, tables and selections: their members, findings, `metadata.json`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bstr::{BString, ByteSlice};
use serde_json::Value;

use super::contents::Contents;
use super::{Error, OpenedSource, Spot, listing};
use crate::catalogue::{Attribute, Dataset, Layout};
use crate::source::Interrupt;
use crate::table::{Finding, Table};
use crate::views::metadata::{DirectoryKind, Lines, ShownMember, column_value};
use crate::views::page::Stored;

/// A directory's description: the facts of its `metadata.json`.
pub(crate) struct DirectoryDescription {
    contents: Arc<Contents>,
    opened: Arc<OpenedSource>,
    /// HDF5 path.
    path: String,
}

impl Spot {
    /// Describes a group, a table or a selection.
    ///
    /// # Errors
    /// [`Error::NotFound`] for any other directory; any other error if the directory cannot be listed.
    pub fn described(&self, interrupt: &Interrupt) -> Result<DirectoryDescription, Error> {
        let (files, contents) = match self {
            Spot::Root(root) => return root.shown.described(interrupt),
            Spot::Selection(chosen) => (chosen.subject().files(), chosen.load(interrupt)?),
            Spot::Source(root) => {
                let directory = root.shown(interrupt)?;
                (directory.files().clone(), directory.load(interrupt)?)
            }
            Spot::Directory(directory) => (directory.files().clone(), directory.load(interrupt)?),
            _ => return Err(Error::NotFound),
        };
        Ok(DirectoryDescription { contents, opened: files.opened, path: files.path })
    }
}

impl DirectoryDescription {
    /// The directory's contents, and the opening that they belong to.
    pub(super) fn shown(&self) -> (&Arc<Contents>, &Arc<OpenedSource>) {
        (&self.contents, &self.opened)
    }

    /// Bytes that the columns of the table take in the file; looks at `most` datasets at most. `None`: the directory
    /// has no table that can be read.
    pub fn stored_bytes(&self, most: usize, interrupt: &Interrupt) -> Option<Stored> {
        let mut columns = self.table()?.columns.iter().filter(|column| column.in_table).peekable();
        columns.peek()?;
        let (mut stored, mut counted) = (Stored { bytes: 0, are_all: true }, HashSet::new());
        for column in columns {
            let dataset = column.dataset.as_ref();
            // The column of a compound has a dataset of its member's type: rows tell how far apart compounds lie.
            let apart = column.rows.as_ref().ok().and_then(|rows| rows.stride()?.checked_mul(rows.len()));
            let bytes = dataset.and_then(|dataset| match (counted.insert(dataset.id), apart) {
                (true, _) if counted.len() > most => None,
                (true, Some(all)) if is_in_one_piece(dataset) => Some(all),
                (true, _) => self.stored(dataset, interrupt),
                (false, _) => Some(0),
            });
            stored.bytes = stored.bytes.saturating_add(bytes.unwrap_or(0));
            stored.are_all &= bytes.is_some() && dataset.is_some_and(|dataset| !dataset.datatype.is_variable());
        }
        Some(stored)
    }

    /// The table, if the directory is one.
    pub fn table(&self) -> Option<&Arc<Table>> {
        self.contents.table.as_ref()
    }

    /// Whether a dialect made the directory up: no object of the file stands behind it.
    pub fn is_made_up(&self) -> bool {
        self.contents.called == DirectoryKind::Made
    }

    /// Why the group is not a table, though some members have equal lengths.
    pub fn nearly(&self) -> Option<&str> {
        self.contents.nearly.as_deref().filter(|_| self.table().is_none())
    }

    /// The findings on the directory and its members.
    pub fn findings(&self) -> &[Finding] {
        &self.contents.findings
    }

    /// The directory's members, without columns and their servants.
    ///
    /// # Errors
    /// If the group cannot be listed any more.
    pub fn members(&self, interrupt: &Interrupt) -> Result<Vec<ShownMember>, Error> {
        let members = self.contents.members(&self.opened, interrupt).map_err(Error::from);
        members.inspect_err(|error| self.opened.log(error))
    }

    /// The attributes of the directory's object.
    pub fn attributes(&self) -> &[Attribute] {
        &self.contents.attributes
    }

    /// The values of scalar datasets by link name, as far as they are short and readable.
    pub fn values(&self, interrupt: &Interrupt) -> HashMap<BString, Value> {
        self.contents.values(&self.opened, interrupt)
    }

    /// Bytes that a dataset takes in the file; see [`File::stored_bytes`](crate::store::File::stored_bytes). `None`:
    /// not known.
    pub fn stored(&self, dataset: &Dataset, interrupt: &Interrupt) -> Option<u64> {
        self.opened.hdf5()?.stored_bytes(dataset, interrupt).ok()?
    }

    /// Renders `metadata.json` on one line.
    ///
    /// # Errors
    /// As [`DirectoryDescription::members`].
    pub fn line(&self, interrupt: &Interrupt) -> Result<String, Error> {
        let bytes = self.contents.metadata(&self.opened, &self.path, Lines::One, interrupt).map_err(Error::from);
        let bytes = bytes.inspect_err(|error| self.opened.log(error))?;
        String::from_utf8(bytes).map_err(|error| Error::Io(error.to_string()))
    }

    /// The entry in `metadata.json` for the member or column with this link name, or else with this shown name.
    ///
    /// # Errors
    /// As [`DirectoryDescription::members`].
    pub fn one(&self, name: &str, interrupt: &Interrupt) -> Result<Option<Value>, Error> {
        let (members, values) = (self.members(interrupt)?, self.contents.values(&self.opened, interrupt));
        let find = |is_it: &dyn Fn(&ShownMember) -> bool| {
            if let Some(member) = members.iter().find(|member| is_it(member)) {
                return Some(member.value(values.get(&member.name)));
            }
            let table = self.table()?;
            let mut columns = table.columns.iter().zip(listing::describe_columns(table));
            let (column, views) = columns.find(|(_, views)| is_it(views))?;
            Some(column_value(table, column, &views))
        };
        let called = find(&|member| member.name.to_str_lossy() == name);
        Ok(called.or_else(|| find(&|member| member.names().iter().any(|own| own == name))))
    }
}

/// Whether the elements of a dataset lie in the file one after the other, as they are decoded.
fn is_in_one_piece(dataset: &Dataset) -> bool {
    matches!(dataset.layout, Layout::Compact | Layout::Contiguous { address: Some(_) })
}
