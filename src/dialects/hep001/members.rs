//! Sorts the links of a table group into columns, servants and strangers.
//!
//! It opens nothing and asks no worker, so a directory listing can afford it for every group.

use std::collections::HashSet;

use bstr::BString;

use super::names::{CATEGORIES, CATEGORIES_GROUP, COLUMN_LIST, COLUMN_ORDER, LIST_CLASS, SEARCH_INDEX_GROUPS};
use crate::catalogue::{Attribute, Group, Object, ObjectId, attribute};
use crate::dialects::attributes::{any, references, strings, text};

/// The role of a member of a table group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberKind {
    /// A column that is a dataset of rank 1.
    Column,
    /// A dataset of rank 1 that labels rows without being a column (April).
    Index,
    /// A list column, which is a group.
    List,
    /// The labels of a categorical column, as a dataset directly in the table group (April).
    Categories,
    /// A group of label sets or of search indexes.
    Servants,
    /// An object that does not belong in a table group.
    Stranger,
}

impl MemberKind {
    /// Whether `columns/` shows members of this kind.
    pub fn is_shown(self) -> bool {
        matches!(self, Self::Column | Self::Index | Self::List)
    }
}

/// A link of a table group that leads to an object.
#[derive(Clone, Copy, Debug)]
pub struct TableMember<'a> {
    /// Name of the link.
    pub name: &'a BString,
    /// The target object's identity.
    pub id: ObjectId,
    /// The member's role.
    pub kind: MemberKind,
    /// The target object.
    pub object: &'a Object,
}

impl TableMember<'_> {
    /// Whether the member serves the table and is not shown by itself. This includes a list column with a reserved
    /// name.
    pub fn is_servant(&self) -> bool {
        self.kind == MemberKind::Categories || serves(self.name, self.object)
    }
}

/// Sorts the links of a table group, and keeps their order. Skips links without a target object.
pub fn members(group: &Group) -> Vec<TableMember<'_>> {
    let labels = category_targets(group);
    let listed: HashSet<BString> = attribute(&group.attributes, COLUMN_ORDER)
        .and_then(strings)
        .map(|names| names.into_iter().collect())
        .unwrap_or_default();
    let objects = group.links.iter().filter_map(|link| Some((&link.name, link.target.object()?)));
    objects
        .map(|(name, object)| {
            let kind = kind(name, object, &labels, &listed);
            TableMember { name, id: object.id(), kind, object }
        })
        .collect()
}

fn kind(name: &BString, object: &Object, labels: &HashSet<ObjectId>, listed: &HashSet<BString>) -> MemberKind {
    match object {
        Object::Dataset(dataset) if dataset.shape.len() == 1 && !dataset.null => {
            let attributes = &dataset.attributes;
            let says_categories = text(attributes, "encoding-type").as_deref() == Some("categorical")
                && attribute(attributes, "ordered").is_some();
            let is_listed = listed.contains(name);
            if labels.contains(&dataset.id) || says_categories && !is_listed {
                MemberKind::Categories
            } else if any(attributes, &COLUMN_LIST).is_some() && !is_listed {
                MemberKind::Index
            } else {
                MemberKind::Column
            }
        }
        Object::Group { attributes, .. } if is_list(attributes) => MemberKind::List,
        object if serves(name, object) => MemberKind::Servants,
        _ => MemberKind::Stranger,
    }
}

/// Whether these are the attributes of a list column.
pub(super) fn is_list(attributes: &[Attribute]) -> bool {
    text(attributes, "CLASS").as_deref() == Some(LIST_CLASS)
}

/// Whether a member is a group of label sets or of search indexes.
fn serves(name: &BString, object: &Object) -> bool {
    let mut reserved = SEARCH_INDEX_GROUPS.iter().chain(&[CATEGORIES_GROUP]);
    matches!(object, Object::Group { .. }) && reserved.any(|reserved| name == *reserved)
}

/// Finds the datasets that columns refer to as their categories.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{Charset, Class, Datatype, Elements, Link, Padding, Target};

    fn class(value: &str) -> Attribute {
        let class = Class::FixedString { padding: Padding::NullPadded, charset: Charset::Ascii };
        Attribute {
            name: "CLASS".into(),
            datatype: Datatype { size: value.len() as u64, class },
            shape: Vec::new(),
            null: false,
            value: Ok(Elements { bytes: value.into(), heap: Vec::new() }),
            references: Vec::new(),
        }
    }

    fn group_link(name: &str, address: u64, attributes: Vec<Attribute>) -> Link {
        let object = Object::Group { id: ObjectId { file: 0, address }, link_count: 1, attributes: attributes.into() };
        Link { name: name.into(), target: Target::Hard(object) }
    }

    #[test]
    fn groups_are_sorted_by_class_and_name() {
        let links = vec![
            group_link("readings", 1, vec![class("LIST_COLUMN")]),
            group_link("CATEGORIES", 2, Vec::new()),
            group_link("_search_indexes", 3, Vec::new()),
            group_link("notes", 4, vec![class("COLUMN_TABLE")]),
            group_link("SEARCH_INDEXES", 5, vec![class("LIST_COLUMN")]),
        ];
        let id = ObjectId { file: 0, address: 0 };
        let group = Group::new(id, Vec::new().into(), links, true);
        let found: Vec<_> =
            members(&group).iter().map(|member| (member.id.address, member.kind, member.is_servant())).collect();
        let expected = [
            (1, MemberKind::List, false),
            (2, MemberKind::Servants, true),
            (3, MemberKind::Servants, true),
            (4, MemberKind::Stranger, false),
            (5, MemberKind::List, true),
        ];
        assert_eq!(found, expected);
    }
}
