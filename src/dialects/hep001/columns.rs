//! Which members of a table group are columns, and their rows.

use std::collections::HashSet;
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};

use super::build::{CATEGORIES, COLUMN_LIST, Parts, SEARCH_INDEX_GROUPS};
use super::lists;
use crate::catalogue::{Attribute, Class, Dataset, Group, Object, ObjectId, attribute};
use crate::dialects::attributes::{any, references, strings, text};
use crate::source::Interrupt;
use crate::store::{self, DatasetRows, File, Rows, StoredStrings, Tally};
use crate::table::{Finding, Storage};

/// What a member of the table group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A rank-1 dataset.
    Column,
    /// A rank-1 dataset that labels rows and is no column of its own (April).
    Index,
    /// A group that holds lists.
    List,
    /// Labels of a categorical column that lie directly in the table group (April).
    Categories,
}

/// A member of the table group that is a column or serves one.
pub(super) struct Candidate<'a> {
    pub name: BString,
    pub id: ObjectId,
    pub kind: Kind,
    pub dataset: Option<&'a Dataset>,
    /// Elements of the dataset, reserved ones included; of a list column, entries that its offsets allow.
    pub extent: Option<u64>,
    attributes: &'a Arc<[Attribute]>,
    /// A list column opened, or why it cannot be.
    list: Option<Result<lists::List, String>>,
}

impl Candidate<'_> {
    pub fn attributes(&self) -> &Arc<[Attribute]> {
        self.attributes
    }

    /// Whether it is shown in `columns/`.
    pub fn is_shown(&self) -> bool {
        self.kind != Kind::Categories
    }
}

/// Whether a member is one of the groups that serve the table: categories and search indexes.
pub(super) fn is_servant_group(group: &Group, name: &BStr) -> bool {
    let is_group = || matches!(group.link(name).and_then(|link| link.target.object()), Some(Object::Group { .. }));
    let reserved = SEARCH_INDEX_GROUPS.iter().chain(&["CATEGORIES"]).any(|reserved| name == *reserved);
    reserved && is_group()
}

/// Whether a group is a list column.
pub(super) fn is_list(attributes: &[Attribute]) -> bool {
    text(attributes, "CLASS").as_deref() == Some("LIST_COLUMN")
}

/// Sorts the members of the table group; reports those that have no business there.
pub(super) fn discover<'a>(parts: &mut Parts<'a>, interrupt: &Interrupt) -> Vec<Candidate<'a>> {
    let group = parts.group;
    let labels = category_targets(group);
    let listed: HashSet<BString> = attribute(&group.attributes, "column-order")
        .and_then(strings)
        .map(|names| names.into_iter().collect())
        .unwrap_or_default();
    let mut candidates = Vec::new();
    for link in &group.links {
        let Some(object) = link.target.object() else { continue };
        match object {
            Object::Dataset(dataset) if dataset.shape.len() == 1 && !dataset.null => {
                let is_labels = labels.contains(&dataset.id)
                    || (text(&dataset.attributes, "encoding-type").as_deref() == Some("categorical")
                        && attribute(&dataset.attributes, "ordered").is_some()
                        && !listed.contains(&link.name));
                let kind = if is_labels {
                    Kind::Categories
                } else if any(&dataset.attributes, &COLUMN_LIST).is_some() && !listed.contains(&link.name) {
                    Kind::Index
                } else {
                    Kind::Column
                };
                candidates.push(Candidate {
                    name: link.name.clone(),
                    id: dataset.id,
                    kind,
                    dataset: Some(dataset),
                    extent: dataset.len(),
                    attributes: &dataset.attributes,
                    list: None,
                });
            }
            Object::Group { id, attributes, .. } if is_list(attributes) => {
                let path = parts.path_of(link.name.as_bstr());
                let list = lists::open(parts, &path, *id, attributes, interrupt);
                candidates.push(Candidate {
                    name: link.name.clone(),
                    id: *id,
                    kind: Kind::List,
                    dataset: None,
                    extent: list.as_ref().ok().map(lists::List::entries),
                    attributes,
                    list: Some(list),
                });
            }
            _ if is_servant_group(group, link.name.as_bstr()) => {}
            other => {
                let what = match other {
                    Object::Dataset(dataset) => format!("a dataset of rank {}", dataset.shape.len()),
                    Object::Group { .. } => "a group that is no list column".into(),
                    Object::Datatype { .. } => "a committed datatype".into(),
                    Object::Unreadable { reason, .. } => format!("an unreadable object: {reason}"),
                };
                parts.findings.push(Finding::new(
                    parts.path_of(link.name.as_bstr()),
                    "HEP001 July, \"Self-contained contents\": only columns, CATEGORIES and SEARCH_INDEXES lie under a table group",
                    what,
                ));
            }
        }
    }
    candidates
}

/// The datasets that columns name as their categories.
fn category_targets(group: &Group) -> HashSet<ObjectId> {
    let objects = group.links.iter().filter_map(|link| link.target.object());
    objects
        .filter_map(|object| any(object.attributes(), &CATEGORIES))
        .filter_map(|(_, attribute)| references(attribute))
        .flatten()
        .flatten()
        .copied()
        .collect()
}

/// Opens a dataset for reading; the reason where its layout or size makes no sense.
pub(super) fn open(file: &Arc<File>, path: &str, dataset: &Dataset) -> Result<Arc<store::Dataset>, String> {
    store::Dataset::new(file.clone(), path.to_owned(), Arc::new(dataset.clone()))
        .map(Arc::new)
        .map_err(|error| error.to_string())
}

/// How a column's dataset is stored.
pub(super) fn storage(dataset: &Dataset) -> Storage {
    Storage {
        datatype: dataset.datatype.clone(),
        extent: dataset.len().unwrap_or(u64::MAX),
        fill: dataset.fill.clone(),
        layout: dataset.layout.clone(),
        filters: dataset.filters.clone(),
    }
}

/// The rows of a dataset of any type, at most `len` of them.
pub(super) fn dataset_rows(
    file: &Arc<File>,
    path: &str,
    dataset: &Dataset,
    len: u64,
    tally: &Arc<Tally>,
) -> Result<Arc<dyn Rows>, String> {
    let opened = open(file, path, dataset)?;
    Ok(Arc::new(DatasetRows::new(opened, len, tally.clone())))
}

/// The strings of a column of variable-length strings as stored.
pub(super) fn stored_strings(
    file: &Arc<File>,
    candidate: &Candidate<'_>,
    declared: Option<u64>,
    path: &str,
) -> Option<Arc<dyn Rows>> {
    let dataset = candidate.dataset.filter(|dataset| matches!(dataset.datatype.class, Class::VariableString { .. }))?;
    let opened = open(file, path, dataset).ok()?;
    Some(Arc::new(StoredStrings::new(opened, declared.unwrap_or(u64::MAX))))
}

/// The rows of a column: at most `declared` (the table's `NROWS`), fewer where it is shorter.
pub(super) fn rows(
    parts: &Parts<'_>,
    candidate: &Candidate<'_>,
    declared: Option<u64>,
    tally: &Arc<Tally>,
) -> Result<Arc<dyn Rows>, String> {
    let len = declared.unwrap_or(u64::MAX);
    let path = parts.path_of(candidate.name.as_bstr());
    match (&candidate.list, candidate.dataset) {
        (Some(Ok(list)), _) => Ok(list.rows(len, tally)),
        (Some(Err(reason)), _) => Err(reason.clone()),
        (None, Some(dataset)) => dataset_rows(parts.file, &path, dataset, len, tally),
        (None, None) => Err("neither a dataset nor a list".into()),
    }
}
