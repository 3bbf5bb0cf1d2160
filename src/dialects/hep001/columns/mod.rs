//! Opens the members of a table group that are columns or serve one.

mod categories;
mod declared;
mod lists;

use crate::table::Unreadable;
use std::sync::Arc;

use bstr::{BString, ByteSlice};

pub(super) use self::categories::CategorySets;
pub(super) use self::declared::{duration, in_zone, typed};
use super::members::{MemberKind, TableMember};
use super::names::ARROW_TYPE;
use super::parts::TableGroup;
use super::rules;
use crate::catalogue::{Attribute, Dataset, Object, ObjectId};
use crate::dialects::attributes::text;
use crate::dialects::datasets;
use crate::source::Interrupt;
use crate::store::{Rows, Tally};

/// A member of the table group that is a column or serves one.
pub(super) struct Candidate<'a> {
    pub name: &'a BString,
    pub id: ObjectId,
    pub kind: MemberKind,
    pub dataset: Option<&'a Arc<Dataset>>,
    /// Number of elements in the dataset, reserved ones included; of a list column, number of entries according to its
    /// offsets. `None`: unknown.
    pub extent: Option<u64>,
    attributes: &'a Arc<[Attribute]>,
    /// The opened list column, or why it cannot be read. `None`: the member is a dataset.
    list: Option<Result<lists::ListColumn, Unreadable>>,
}

impl<'a> Candidate<'a> {
    pub fn attributes(&self) -> &'a Arc<[Attribute]> {
        self.attributes
    }

    /// Oddities counted in the parts of a list column, by path.
    pub fn below(&self) -> lists::Below {
        self.list.as_ref().and_then(|list| list.as_ref().ok()).map(|list| list.below.clone()).unwrap_or_default()
    }

    /// Whether `columns/` shows the member.
    pub fn is_shown(&self) -> bool {
        self.kind.is_shown()
    }
}

/// Opens the members of the table group that are columns or serve one. Reports strangers.
pub(super) fn open<'a>(
    parts: &mut TableGroup<'_>,
    sorted: &[TableMember<'a>],
    interrupt: &Interrupt,
) -> Vec<Candidate<'a>> {
    let mut candidates = Vec::new();
    for TableMember { name, id, kind, object } in sorted.iter().copied() {
        match (kind, object) {
            (MemberKind::Column | MemberKind::Index | MemberKind::Categories, Object::Dataset(dataset)) => candidates
                .push(Candidate {
                    name,
                    id,
                    kind,
                    dataset: Some(dataset),
                    extent: dataset.len(),
                    attributes: &dataset.attributes,
                    list: None,
                }),
            (MemberKind::List, Object::Group { attributes, .. }) => {
                let path = parts.path_of(name.as_bstr());
                let list = lists::open(parts, &path, id, attributes, interrupt);
                candidates.push(Candidate {
                    name,
                    id,
                    kind,
                    dataset: None,
                    extent: list.as_ref().ok().map(lists::ListColumn::entries),
                    attributes,
                    list: Some(list),
                });
            }
            (MemberKind::Servants, _) => {}
            _ => {
                let is_dataset = matches!(object, Object::Dataset(_));
                let rule = if is_dataset { &rules::COLUMN_RANK } else { &rules::STRANGER };
                parts.find(parts.path_of(name.as_bstr()), rule, stranger(object));
            }
        }
    }
    candidates
}

/// Describes a member that is neither a column nor a servant.
fn stranger(object: &Object) -> String {
    match object {
        Object::Dataset(dataset) => format!("a dataset of rank {}", dataset.shape.len()),
        Object::Group { .. } => "a group that is no list column".into(),
        Object::Datatype { .. } => "a committed datatype".into(),
        Object::Unreadable { reason, .. } => format!("an unreadable object: {reason}"),
    }
}

/// Opens the rows of a column: at most `declared` (the table's `NROWS`), or fewer if the column is shorter.
pub(super) fn rows(
    parts: &TableGroup<'_>,
    candidate: &Candidate<'_>,
    declared: Option<u64>,
    tally: &Arc<Tally>,
) -> Result<Arc<dyn Rows>, Unreadable> {
    let len = declared.unwrap_or(u64::MAX);
    let path = parts.path_of(candidate.name.as_bstr());
    let arrow_type = text(candidate.attributes(), ARROW_TYPE);
    match (&candidate.list, candidate.dataset) {
        (Some(Ok(list)), _) => Ok(list.rows(len, arrow_type.as_deref(), tally)),
        (Some(Err(reason)), _) => Err(reason.clone()),
        (None, Some(dataset)) => {
            let booleans = arrow_type.and_then(|arrow_type| declared::as_booleans(dataset, &arrow_type));
            let shown = booleans.as_ref().unwrap_or(dataset);
            datasets::rows(parts.file, &path, shown, len, &parts.missing(dataset), tally)
        }
        (None, None) => Err("neither a dataset nor a list".into()),
    }
}
