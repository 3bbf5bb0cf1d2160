//! Lists search indexes, and plans the removal of one: first from the lists of columns, then its dataset, then the
//! values of a bitmap.

use std::sync::Arc;

use super::kind::IndexKind;
use super::subject::own;
use crate::catalogue::{Class, Object, attribute, join};
use crate::dialects::hep001::names::{SEARCH_INDEX_GROUPS, SEARCH_INDEX_LIST, VALUES};
use crate::h5::WritingClient;
use crate::h5::steps::{Step, TargetObject};
use crate::producer::Error;
use crate::producer::paths::{group_at, member};
use crate::source::Interrupt;
use crate::store::File;
use crate::table::Table;

/// An index that a table lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedIndex {
    /// HDF5 path of the index.
    pub path: String,
    /// The steps that remove the index, each a commit of its own: the file is valid after each of them.
    pub removal: Vec<Step>,
}

impl ListedIndex {
    /// Removes the index. The file keeps the space that the index took.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn remove(&self, writing: &mut WritingClient<'_>, interrupt: &Interrupt) -> Result<(), Error> {
        for step in &self.removal {
            for step in [Step::Begin, step.clone(), Step::Commit { removes: true }] {
                writing.step(step, interrupt)?;
            }
        }
        Ok(())
    }
}

/// Lists the search indexes of a table that cover `column` and are of one of `kinds`; without these, all of them.
///
/// # Errors
/// The table cannot have search indexes, or a group that holds some cannot be listed.
pub fn listed(
    file: &Arc<File>,
    table: &Table,
    column: Option<&str>,
    kinds: &[IndexKind],
    interrupt: &Interrupt,
) -> Result<Vec<ListedIndex>, Error> {
    own(table)?;
    let mut listed = Vec::new();
    let wanted = table.indexes.iter().filter(|index| {
        let is_of_kind = kinds.is_empty() || kinds.iter().any(|kind| index.kind.as_deref() == Some(kind.stored_name()));
        is_of_kind && column.is_none_or(|column| index.columns.iter().any(|name| name == column))
    });
    for index in wanted {
        let Some((path, _)) = index.path.rsplit_once('/') else { continue };
        let group = group_at(file, path, interrupt)?;
        let name = |id| group.links.iter().find(|link| link.target.object().is_some_and(|object| object.id() == id));
        let dataset = group.links.iter().find(|link| join(path, &link.name) == index.path);
        let Some((link, Object::Dataset(dataset))) = dataset.and_then(|link| Some((link, link.target.object()?)))
        else {
            continue;
        };
        let values = VALUES.iter().find_map(|name| attribute(&dataset.attributes, name));
        let values = values.filter(|values| matches!(values.datatype.class, Class::Reference(_)));
        let values = values.and_then(|values| values.references.first().copied().flatten()).and_then(name);
        let dataset = member(path, &link.name);
        let mut removal: Vec<Step> = index
            .columns
            .iter()
            .map(|column| Step::RemoveReference {
                object: TargetObject::Path(member(&table.path, column)),
                name: list_of(path).into(),
                to: TargetObject::Path(dataset.clone()),
            })
            .collect();
        removal.push(Step::Unlink { path: dataset });
        removal.extend(values.map(|link| Step::Unlink { path: member(path, &link.name) }));
        listed.push(ListedIndex { path: format!("{path}/{}", link.name), removal });
    }
    Ok(listed)
}

/// The attribute in which a column lists the indexes of this group: that of the draft by whose spelling the group is
/// named.
fn list_of(group: &str) -> &'static str {
    let name = group.rsplit('/').next().unwrap_or_default();
    let spelling = SEARCH_INDEX_GROUPS.iter().position(|known| *known == name);
    SEARCH_INDEX_LIST[spelling.unwrap_or(0)]
}
