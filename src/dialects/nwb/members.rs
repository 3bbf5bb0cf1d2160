//! Tells the roles of the members of a `DynamicTable`.

use crate::table::Unreadable;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bstr::{BString, ByteSlice};

use super::{COLUMNS, ELEMENTS, ID, TARGET, type_of};
use crate::catalogue::{Dataset, Group, ObjectId, attribute};
use crate::dialects::attributes::{references, strings};

/// A dataset that is a member of a table, with its name.
pub(super) type NamedDataset<'a> = (&'a BString, &'a Arc<Dataset>);

/// Deepest nesting of lists to follow.
const MOST_LEVELS: usize = 16;

/// The members of a table, and how they serve each other.
pub(super) struct NwbMembers<'a> {
    group: &'a Group,
    datasets: HashMap<&'a [u8], NamedDataset<'a>>,
    /// For each dataset of list values, the dataset with the ends of its lists.
    ends: HashMap<ObjectId, NamedDataset<'a>>,
    /// Datasets that hold ends of lists, or labels of codes.
    servants: HashSet<ObjectId>,
}

impl<'a> NwbMembers<'a> {
    /// Collects the members of a group.
    pub fn of(group: &'a Group) -> Self {
        let datasets: HashMap<&[u8], NamedDataset<'a>> =
            group.datasets().map(|named| (named.0.as_slice(), named)).collect();
        let mut members = Self { group, datasets, ends: HashMap::new(), servants: HashSet::new() };
        for link in &group.links {
            let Some(&(name, dataset)) = members.datasets.get(link.name.as_slice()) else { continue };
            if let Some(labels) = referred(dataset, ELEMENTS) {
                members.servants.insert(labels);
            }
            let is_index = type_of(&dataset.attributes).as_deref() == Some("VectorIndex");
            // If ends have lost their reference, they are recognised by their name.
            let target = referred(dataset, TARGET).or_else(|| {
                let values = name.strip_suffix(b"_index").filter(|_| is_index)?;
                Some(members.datasets.get(values)?.1.id)
            });
            if target.is_some() || is_index {
                members.servants.insert(dataset.id);
            }
            let Some(target) = target else { continue };
            // If several datasets of ends have the same target, the one named after the values counts.
            let values = name.strip_suffix(b"_index").and_then(|values| members.datasets.get(values));
            let is_named = values.is_some_and(|(_, values)| values.id == target);
            if is_named || !members.ends.contains_key(&target) {
                members.ends.insert(target, (name, dataset));
            }
        }
        members
    }

    /// The dataset with this name. `None`: no such dataset.
    pub fn get(&self, name: &[u8]) -> Option<NamedDataset<'a>> {
        self.datasets.get(name).copied()
    }

    /// The dataset of row labels. `None`: the table has none.
    pub fn id(&self) -> Option<NamedDataset<'a>> {
        self.get(ID.as_bytes())
    }

    /// Names of the columns, in the order in which the table lists them; a name may occur twice. `None`: there is no
    /// list.
    pub fn listed(&self) -> Option<Vec<BString>> {
        let listed = attribute(&self.group.attributes, COLUMNS)?;
        strings(listed).or_else(|| listed.is_empty().then(Vec::new))
    }

    /// Finds the datasets of ends that cut a dataset into lists, innermost first; none if the dataset holds one value
    /// for each row.
    ///
    /// # Errors
    /// The references lead in a circle, or are nested too deep.
    pub fn levels(&self, values: ObjectId) -> Result<Vec<NamedDataset<'a>>, Unreadable> {
        let (mut levels, mut met, mut last) = (Vec::new(), HashSet::from([values]), values);
        while let Some(ends) = self.ends.get(&last) {
            if !met.insert(ends.1.id) {
                return Err(format!("its indexes lead in a circle, from {} on", ends.0).into());
            }
            if levels.len() == MOST_LEVELS {
                return Err(format!("more than {MOST_LEVELS} indexes of indexes").into());
            }
            levels.push(*ends);
            last = ends.1.id;
        }
        Ok(levels)
    }

    /// Finds the columns that are not listed, in the order of links: datasets as long as the row labels that do not
    /// serve another column.
    pub fn unlisted(&self, listed: &HashSet<&[u8]>) -> Vec<NamedDataset<'a>> {
        let rows = self.id().and_then(|(_, dataset)| dataset.shape.first());
        let columns = self.group.links.iter().filter_map(|link| self.get(&link.name)).filter(|(name, dataset)| {
            let is_free = !listed.contains(name.as_slice()) && name.as_bstr() != ID && !dataset.null;
            let outermost = match self.levels(dataset.id) {
                Ok(levels) => levels.last().map_or(*dataset, |(_, ends)| *ends),
                Err(_) => return false,
            };
            is_free && !self.servants.contains(&dataset.id) && rows.is_some() && outermost.shape.first() == rows
        });
        columns.collect()
    }

    /// Names of the members that are columns by themselves, not values of lists. Values of lists, ends, and labels of
    /// codes are also shown as arrays.
    pub fn plain_columns(&self) -> Vec<&'a BString> {
        let names = self.listed().unwrap_or_default();
        let listed: HashSet<&[u8]> = names.iter().map(|name| name.as_slice()).collect();
        let found = listed.iter().filter_map(|name| self.get(name)).chain(self.unlisted(&listed)).chain(self.id());
        found
            .filter(|(_, dataset)| is_column(dataset) && self.levels(dataset.id).is_ok_and(|levels| levels.is_empty()))
            .map(|(name, _)| name)
            .collect()
    }
}

/// Whether a dataset has rows.
pub(super) fn is_column(dataset: &Dataset) -> bool {
    !dataset.shape.is_empty() && !dataset.null
}

/// The object to which the attribute `name` of a dataset refers. `None`: it refers to none, or to several.
pub(super) fn referred(dataset: &Dataset, name: &str) -> Option<ObjectId> {
    let [Some(id)] = references(attribute(&dataset.attributes, name)?)? else { return None };
    Some(*id)
}
