//! Recognises datasets that are tables, their producers, and the groups and datasets that serve them.

use std::sync::Arc;

use bstr::BString;

use super::astropy::DESCRIPTION;
use super::rules;
use crate::catalogue::{Class, Dataset, Group, Object, ObjectId, Target, attribute};
use crate::dialects::Mark;
use crate::dialects::attributes::text;
use crate::source::Interrupt;
use crate::store::File;
use crate::table::Finding;

/// The attribute of the root group by which files of PyTables are recognised.
const OF_PYTABLES: &str = "PYTABLES_FORMAT_VERSION";

/// Prefix of the group with the search indexes of a PyTables table.
pub(super) const INDEXES_OF: &[u8] = b"_i_";

/// Classifies a dataset by its type, shape and attributes.
pub(super) fn mark(path: &str, dataset: &Dataset) -> Mark {
    if is_record(dataset) {
        return Mark::Table;
    }
    if !is_declared(dataset) {
        return Mark::No;
    }
    let found = match (dataset.null, &dataset.datatype.class) {
        (true, _) => "a null dataspace".into(),
        (false, Class::Compound { .. }) => format!("rank {}", dataset.shape.len()),
        _ => "elements that are no compounds".into(),
    };
    Mark::Refused(Finding::new(path, &rules::TABLE, found))
}

/// Whether the attributes of a dataset declare it a table.
fn is_declared(dataset: &Dataset) -> bool {
    text(&dataset.attributes, "CLASS").as_deref() == Some("TABLE")
}

/// Whether a dataset has rank 1 and elements with fields. Complex numbers do not count, unless the dataset is declared
/// a table.
pub(in crate::dialects) fn is_record(dataset: &Dataset) -> bool {
    let has_fields = match &dataset.datatype.class {
        Class::Compound { fields } => {
            !fields.is_empty() && (dataset.datatype.complex_part().is_none() || is_declared(dataset))
        }
        _ => false,
    };
    has_fields && dataset.shape.len() == 1 && !dataset.null
}

/// The producer of a dataset, on which the meaning of its values depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dialects) struct System {
    /// Whether PyTables wrote the file. PyTables takes any dataset of compounds for a table.
    pub by_pytables: bool,
    /// Whether the dataset's attributes declare it a table.
    pub is_declared: bool,
}

impl System {
    /// The producer of a table that PyTables wrote.
    pub const PYTABLES: Self = Self { by_pytables: true, is_declared: true };

    pub fn of(file: &Arc<File>, dataset: &Dataset, interrupt: &Interrupt) -> Self {
        let root = file.root_attributes(interrupt);
        let by_pytables = root.is_ok_and(|attributes| attribute(&attributes, OF_PYTABLES).is_some());
        Self { by_pytables, is_declared: is_declared(dataset) }
    }

    /// Name of the format, for `metadata.json`.
    pub fn name(self) -> &'static str {
        match (self.is_declared, self.by_pytables) {
            (true, true) => "PyTables",
            (true, false) => "H5TB",
            (false, _) => "structured array",
        }
    }
}

/// Finds the datasets with astropy's descriptions: the identity of each, and the name of the table that it describes.
pub(super) fn descriptions(group: &Group) -> impl Iterator<Item = (ObjectId, &[u8])> {
    group.links.iter().filter_map(|link| {
        let table = link.name.strip_suffix(DESCRIPTION.as_bytes())?.strip_suffix(b".")?;
        let Target::Hard(Object::Dataset(dataset)) = &link.target else { return None };
        has_table(group, table).then_some((dataset.id, table))
    })
}

/// Finds the groups that serve a table beside them: the name of each, its identity, and the name of the table.
pub(super) fn servants(group: &Group) -> impl Iterator<Item = (&BString, ObjectId, &[u8])> {
    group.links.iter().filter_map(|link| {
        let table = link.name.strip_prefix(INDEXES_OF)?;
        let Target::Hard(Object::Group { id, attributes, .. }) = &link.target else { return None };
        let serves = text(attributes, "CLASS").as_deref() == Some("TINDEX") && has_table(group, table);
        serves.then_some((&link.name, *id, table))
    })
}

/// Whether a group has a table of this name.
fn has_table(group: &Group, name: &[u8]) -> bool {
    let object = group.link(name).and_then(|link| link.target.object());
    matches!(object, Some(Object::Dataset(dataset)) if is_record(dataset))
}
