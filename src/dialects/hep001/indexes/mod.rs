//! Lists the search indexes that a table declares (HEP001 §8). They are not trusted yet.

mod rules;
mod verified;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};

use self::rules::CheckedIndex;
use super::columns::Candidate;
use super::conformance;
use super::consistency::is_reserved;
use super::draft::Draft;
use super::names::{COLUMN_LIST, SEARCH_INDEX_GROUPS, SEARCH_INDEX_LIST, SOURCE_GENERATION, SOURCE_ROWS, VALUES};
use super::parts::TableGroup;
use super::rules as known;
use crate::catalogue::{Dataset, Group, Object, ObjectId, join};
use crate::dialects::attributes::{any, references, text, unsigned};
use crate::source::Interrupt;
use crate::table::{AbsenceReason, AbsentIndex, IndexForm, SearchIndex, Table};

/// Lists the search indexes, and checks that both sides of every link agree (HEP001 §9).
///
/// `table` is the table without its search indexes.
pub(super) fn find(
    parts: &mut TableGroup<'_>,
    candidates: &[Candidate<'_>],
    table: &Table,
    interrupt: &Interrupt,
) -> Vec<SearchIndex> {
    let mut found = Vec::new();
    let mut members: HashSet<ObjectId> = HashSet::new();
    let columns = Columns::of(candidates);
    for name in SEARCH_INDEX_GROUPS {
        let Some(Object::Group { id, .. }) = parts.group.link(name.as_bytes()).and_then(|l| l.target.object()) else {
            continue;
        };
        let group_path = parts.path_of(BStr::new(name));
        let group = match parts.file.group(*id, interrupt) {
            Ok(group) => group,
            Err(error) => {
                parts.find(group_path, &known::INDEX_LISTING, error.to_string());
                continue;
            }
        };
        let served = served(&group);
        members.extend(group.links.iter().filter_map(|link| link.target.object()).map(Object::id));
        for link in &group.links {
            let path = join(&group_path, &link.name);
            match link.target.object() {
                Some(Object::Dataset(dataset)) => {
                    let place = Place {
                        group: &group,
                        group_path: &group_path,
                        path: &path,
                        name: &link.name,
                        served: &served,
                    };
                    found.extend(one(parts, &columns, table, &place, dataset));
                }
                _ => parts.find(path, &known::INDEX_CONTENT, "something else"),
            }
        }
    }
    for candidate in candidates {
        let targets = any(candidate.attributes(), &SEARCH_INDEX_LIST).and_then(|(_, attribute)| references(attribute));
        if targets.into_iter().flatten().flatten().any(|target| !members.contains(target)) {
            let path = parts.path_of(candidate.name.as_bstr());
            parts.find(path, &known::INDEX_PLACE, "a reference to something else");
        }
    }
    found
}

/// The place of a dataset in a group of search indexes.
struct Place<'a> {
    group: &'a Group,
    group_path: &'a str,
    path: &'a str,
    name: &'a BString,
    /// The datasets that bitmaps of the group refer to as their values.
    served: &'a HashSet<ObjectId>,
}

/// Finds the datasets that serve a search index of the group: the values of bitmaps, and the targets of the same
/// attribute on indexes of unknown kinds.
fn served(group: &Group) -> HashSet<ObjectId> {
    let objects = group.links.iter().filter_map(|link| link.target.object());
    let attributes = objects.map(Object::attributes).filter(|attributes| {
        !matches!(text(attributes, "KIND").as_deref(), None | Some("CHUNK_MINMAX" | "SORTED_ROWS" | "CHUNK_BLOOM"))
    });
    let values = attributes.filter_map(|attributes| references(any(attributes, &VALUES)?.1));
    values.flatten().flatten().copied().collect()
}

/// The columns of a table: their positions by object, and the objects of columns by the index that they refer to.
struct Columns<'a, 'c> {
    candidates: &'a [Candidate<'c>],
    by_id: HashMap<ObjectId, Vec<usize>>,
    by_index: HashMap<ObjectId, HashSet<ObjectId>>,
}

impl<'a, 'c> Columns<'a, 'c> {
    fn of(candidates: &'a [Candidate<'c>]) -> Self {
        let mut columns = Self { candidates, by_id: HashMap::new(), by_index: HashMap::new() };
        for (at, candidate) in candidates.iter().enumerate() {
            let of_object = columns.by_id.entry(candidate.id).or_default();
            of_object.push(at);
            // Several links may lead to one object.
            if of_object.len() > 1 {
                continue;
            }
            let listed = any(candidate.attributes(), &SEARCH_INDEX_LIST);
            for index in listed.and_then(|(_, attribute)| references(attribute)).into_iter().flatten().flatten() {
                columns.by_index.entry(*index).or_default().insert(candidate.id);
            }
        }
        columns
    }

    /// Positions of the columns that are these objects.
    fn of_objects<'i>(&self, ids: impl Iterator<Item = &'i ObjectId>) -> BTreeSet<usize> {
        ids.filter_map(|id| self.by_id.get(id)).flatten().copied().collect()
    }

    fn name(&self, at: usize) -> &BString {
        self.candidates[at].name
    }
}

/// Why an index of April that no column refers to is not used.
const ORPHAN: &str = "no column refers to it";

fn one(
    parts: &mut TableGroup<'_>,
    columns: &Columns<'_, '_>,
    table: &Table,
    place: &Place<'_>,
    dataset: &Dataset,
) -> Option<SearchIndex> {
    let (path, name) = (place.path, place.name);
    let kind = text(&dataset.attributes, "KIND");
    let forth = columns.of_objects(columns.by_index.get(&dataset.id).into_iter().flatten());
    let covered: Vec<&Candidate<'_>> = forth.iter().map(|at| &columns.candidates[*at]).collect();
    let back = any(&dataset.attributes, &COLUMN_LIST).and_then(|(_, attribute)| references(attribute));
    let mut named: Vec<BString> = covered.iter().map(|candidate| candidate.name.clone()).collect();
    if let Some(back) = back {
        let back_to = columns.of_objects(back.iter().flatten());
        for at in forth.symmetric_difference(&back_to) {
            let (has, lacks) = if forth.contains(at) { ("column", "index") } else { ("index", "column") };
            let found = format!("only the {has} refers to the {lacks}, for column {:?}", columns.name(*at));
            parts.find(path, &known::INDEX_LINK, found);
        }
        named.extend(back_to.difference(&forth).map(|at| columns.name(*at).clone()));
        if back.contains(&None) {
            parts.find(path, &known::REFERENCE_LOST, "a dangling reference");
        }
    }
    let is_both_ways = matches!(parts.draft, Draft::April | Draft::MayJune);
    if let (true, None, Some(first)) = (is_both_ways, back, named.first()) {
        parts.find(path, &known::INDEX_LINK, format!("only column {first:?} refers to the index, which lists none"));
    }
    if kind.is_none() {
        // In July, a dataset without KIND accompanies an index. In April, every dataset needs KIND, except the values
        // of a bitmap.
        let accompanies = name.to_str_lossy().to_ascii_lowercase().ends_with("__values");
        let lacks = match parts.draft {
            Draft::July => !place.served.contains(&dataset.id),
            _ => covered.is_empty() && !accompanies && parts.group.link(b"_search_indexes").is_some(),
        };
        if back.is_some() || lacks || !covered.is_empty() {
            parts.find(path, &known::INDEX_KIND, "none");
        }
        if covered.is_empty() && back.is_none() {
            return None;
        }
    }
    let is_orphan = kind.is_some() && is_both_ways && named.is_empty();
    if is_orphan {
        parts.find(path, &known::INDEX_LINK, ORPHAN);
    }
    if parts.is_full {
        conformance::indexes::check(parts, path, kind.as_deref(), dataset);
    }
    if is_reserved(parts.draft, name) {
        parts.find(path, &known::NAME_RESERVED, name.to_string());
    }
    let form = match kind.as_deref() {
        Some(_) if is_orphan => Err(AbsentIndex::new(&known::INDEX_LINK, ORPHAN)),
        Some(kind @ ("CHUNK_MINMAX" | "SORTED_ROWS" | "BITMAP" | "CHUNK_BLOOM")) => {
            form(parts, &covered, named.len(), table, place, dataset, kind)
        }
        Some(other) => {
            let unknown = AbsentIndex::new(&known::INDEX_KIND_UNKNOWN, format!("KIND {other:?}"));
            Err(AbsentIndex { reason: AbsenceReason::Unused, ..unknown })
        }
        None => Err(AbsentIndex::new(&known::INDEX_KIND, "none")),
    };
    let source_generation = unsigned(&dataset.attributes, SOURCE_GENERATION);
    let source_rows = unsigned(&dataset.attributes, SOURCE_ROWS);
    let has_tokens = source_generation.is_some() || source_rows.is_some();
    Some(SearchIndex {
        path: path.to_owned(),
        kind,
        revision: if has_tokens { "July" } else { "April" },
        form: form.map(Arc::new),
        bytes: dataset.len().and_then(|len| len.checked_mul(dataset.datatype.size)).unwrap_or(u64::MAX),
        columns: named,
        shape: dataset.shape.clone(),
        source_generation,
        source_rows,
        attributes: dataset.attributes.clone(),
    })
}

fn form(
    parts: &TableGroup<'_>,
    covered: &[&Candidate<'_>],
    columns: usize,
    table: &Table,
    place: &Place<'_>,
    dataset: &Dataset,
    kind: &str,
) -> Result<IndexForm, AbsentIndex> {
    let column = match covered {
        [only] if columns == 1 => {
            table.columns.iter().find(|column| column.name == *only.name).map(|column| (*only, column))
        }
        _ => None,
    };
    let Some((candidate, column)) = column else {
        let found = format!("{} refer to it, {columns} in all", covered.len());
        let rule = if columns == 0 { &known::INDEX_ORPHAN } else { &known::INDEX_COLUMN };
        return Err(AbsentIndex::new(rule, found));
    };
    let Place { group, group_path, path, .. } = *place;
    CheckedIndex { path, dataset, group, group_path, candidate, column, table }.form(parts, kind)
}
