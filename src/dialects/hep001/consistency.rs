//! Checks the consistency rules of HEP001 §9 and the July draft whose violation changes how a table is shown. They are
//! checked at each mount, on the catalogue alone; `conformance` has all other rules.

use std::collections::{HashMap, HashSet};

use bstr::{BString, ByteSlice};

use super::columns::Candidate;
use super::draft::Draft;
use super::members::MemberKind;
use super::names::{COLUMN_LIST, INDEX_LIST, RESERVED, RESERVED_IN_APRIL, ROWS, SEARCH_INDEX_LIST};
use super::parts::TableGroup;
use super::recognition::parse_version;
use super::rules;
use crate::catalogue::{Fill, ObjectId, attribute};
use crate::dialects::attributes::{any, references, text, unsigned};

/// Checks all rules of this module except those on `column-order`.
pub(super) fn check(parts: &mut TableGroup<'_>, candidates: &[Candidate<'_>], rows: Option<u64>) {
    version(parts);
    lengths(parts, candidates, rows);
    index_links(parts, candidates);
    for candidate in candidates {
        dangling(parts, candidate);
        values(parts, candidate);
    }
}

fn version(parts: &mut TableGroup<'_>) {
    match text(&parts.group.attributes, "VERSION") {
        None if attribute(&parts.group.attributes, "VERSION").is_some() => {
            parts.report(&rules::VERSION_STORAGE, "no string");
        }
        None => parts.report(&rules::VERSION_MISSING, "none"),
        Some(version) if parse_version(&version).is_none() => {
            parts.report(&rules::VERSION_FORM, format!("{version:?}"));
        }
        Some(_) => {}
    }
}

fn lengths(parts: &mut TableGroup<'_>, candidates: &[Candidate<'_>], rows: Option<u64>) {
    let Some(rows) = rows else { return };
    let declared = unsigned(&parts.group.attributes, ROWS).is_some();
    for candidate in candidates.iter().filter(|candidate| candidate.is_shown()) {
        let Some(extent) = candidate.extent.filter(|extent| *extent != rows) else { continue };
        let path = parts.path_of(candidate.name.as_bstr());
        if declared && extent < rows {
            let is_list = candidate.kind == MemberKind::List;
            let rule = if is_list { &rules::LIST_EXTENT } else { &rules::EXTENT_BELOW_NROWS };
            parts.find(path, rule, format!("{extent} rows, {ROWS} is {rows}; shown alone, not in table.*"));
        } else if !declared && (parts.draft != Draft::July || candidate.kind != MemberKind::List) {
            let found = format!("{extent} rows, most others {rows}; shown alone, not in table.*");
            parts.find(path, &rules::EXTENTS_DIFFER, found);
        }
    }
}

/// Checks that `_indexes` of a column and `_columns_list` of the index name each other.
fn index_links(parts: &mut TableGroup<'_>, candidates: &[Candidate<'_>]) {
    if !parts.draft.has(&rules::LABEL_LINK) {
        return;
    }
    let forth: HashMap<ObjectId, HashSet<ObjectId>> =
        candidates.iter().map(|candidate| (candidate.id, targets(candidate, &INDEX_LIST))).collect();
    let back: HashMap<ObjectId, HashSet<ObjectId>> =
        candidates.iter().map(|candidate| (candidate.id, targets(candidate, &COLUMN_LIST))).collect();
    let name_of = |id: &ObjectId| candidates.iter().find(|candidate| candidate.id == *id).map(|c| c.name);
    let unnamed = BString::default();
    for candidate in candidates {
        let path = parts.path_of(candidate.name.as_bstr());
        for index in forth.get(&candidate.id).into_iter().flatten() {
            let found = match back.get(index) {
                Some(columns) if columns.contains(&candidate.id) => continue,
                Some(_) => format!("{:?} does not list it back", name_of(index).unwrap_or(&unnamed)),
                None => "a reference to an object that is no member of the table".to_owned(),
            };
            parts.find(&path, &rules::LABEL_LINK, found);
        }
        for column in back.get(&candidate.id).into_iter().flatten() {
            if forth.get(column).is_some_and(|indexes| !indexes.contains(&candidate.id)) {
                let found = format!("{:?} does not refer to it", name_of(column).unwrap_or(&unnamed));
                parts.find(&path, &rules::LABEL_LINK, found);
            }
        }
    }
}

/// The objects to which an attribute of one of these names refers.
fn targets(candidate: &Candidate<'_>, names: &[&'static str]) -> HashSet<ObjectId> {
    any(candidate.attributes(), names)
        .and_then(|(_, attribute)| references(attribute))
        .map(|targets| targets.iter().flatten().copied().collect())
        .unwrap_or_default()
}

/// Reports references of a column that have no target. Those to categories fall under the rule of categorical columns.
fn dangling(parts: &mut TableGroup<'_>, candidate: &Candidate<'_>) {
    for names in [&INDEX_LIST, &COLUMN_LIST, &SEARCH_INDEX_LIST] {
        let Some((name, attribute)) = any(candidate.attributes(), names) else { continue };
        let path = parts.path_of(candidate.name.as_bstr());
        match references(attribute) {
            None => parts.find(path, &rules::REFERENCE_TYPE, format!("{name} holds no references")),
            Some(targets) if targets.contains(&None) => {
                parts.find(path, &rules::REFERENCE_LOST, format!("{name} holds a null or dangling reference"));
            }
            Some(_) => {}
        }
    }
}

/// Checks the rules on a column's values that its description alone can break.
fn values(parts: &mut TableGroup<'_>, candidate: &Candidate<'_>) {
    let path = parts.path_of(candidate.name.as_bstr());
    if attribute(candidate.attributes(), "MASK").is_some() && candidate.kind != MemberKind::List {
        parts.find(&path, &rules::MASK_RESERVED, "a MASK attribute");
    }
    if let Some(dataset) = candidate.dataset {
        match &dataset.fill {
            Fill::Explicit(_) if dataset.datatype.is_boolean() => {
                parts.find(&path, &rules::BOOLEAN_FILL, "an explicit fill value, which is ignored");
            }
            Fill::Explicit(_) if parts.has_foreign_fill(dataset) => {
                let found =
                    format!("an explicit fill of {} zero bytes; values that equal it are shown", dataset.datatype.size);
                parts.find(&path, &rules::FILL_FOREIGN, found);
            }
            Fill::Unreadable(reason) => parts.find(&path, &rules::FILL_UNREADABLE, reason),
            _ => {}
        }
    }
    if candidate.is_shown() && is_reserved(parts.draft, candidate.name) {
        parts.find(&path, &rules::NAME_RESERVED, candidate.name.to_string());
    }
}

/// Whether a draft reserves a name for its own use, so that no column may have it.
pub(super) fn is_reserved(draft: Draft, name: &BString) -> bool {
    match draft {
        Draft::April => name == RESERVED_IN_APRIL,
        _ => RESERVED.iter().any(|reserved| name == reserved),
    }
}

/// Checks that `column-order` lists every column once, and nothing else. Row labels are optional in it (HEP001 §7.1),
/// and so are categories in April (§6.6).
pub(super) fn column_order(
    parts: &mut TableGroup<'_>,
    candidates: &[Candidate<'_>],
    listed: &[BString],
    labels: &[BString],
) {
    let columns: HashSet<&BString> = candidates
        .iter()
        .filter(|candidate| {
            candidate.is_shown() || candidate.kind == MemberKind::Categories && parts.draft != Draft::July
        })
        .map(|candidate| candidate.name)
        .collect();
    let mut seen = HashSet::new();
    for name in listed {
        if !seen.insert(name) {
            parts.report(&rules::ORDER_TWICE, format!("{name:?} twice"));
        } else if !columns.contains(name) {
            parts.report(&rules::ORDER_STRANGER, format!("{name:?}, which is no column"));
        }
    }
    for candidate in
        candidates.iter().filter(|candidate| matches!(candidate.kind, MemberKind::Column | MemberKind::List))
    {
        // Since July, a row label is a column like any other.
        let may_lack = labels.contains(candidate.name) && parts.draft != Draft::July;
        if !seen.contains(&candidate.name) && !may_lack {
            parts.report(&rules::ORDER_LACKS, format!("column {:?} is not listed", candidate.name));
        }
    }
}
