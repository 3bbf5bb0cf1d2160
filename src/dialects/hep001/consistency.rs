//! The consistency rules of HEP001 §9 and the July draft, checked on the catalogue alone: findings, never refusals.

use std::collections::{HashMap, HashSet};

use bstr::{BString, ByteSlice};

use super::columns::Candidate;
use super::members::Kind;
use super::names::{CATEGORIES, COLUMN_LIST, INDEX_LIST, RESERVED, ROWS, SEARCH_INDEX_LIST};
use super::parts::Parts;
use super::recognition::parse_version;
use crate::catalogue::{Fill, ObjectId, attribute};
use crate::dialects::attributes::{any, references, text};
use crate::table::Finding;

/// Every rule but those on `column-order` and search indexes.
pub(super) fn check(parts: &mut Parts<'_>, candidates: &[Candidate<'_>], rows: Option<u64>) {
    version(parts);
    lengths(parts, candidates, rows);
    index_links(parts, candidates);
    for candidate in candidates {
        dangling(parts, candidate);
        values(parts, candidate);
    }
}

fn version(parts: &mut Parts<'_>) {
    let rule = "HEP001 §5.2: VERSION is MAJOR.MINOR";
    match text(&parts.group.attributes, "VERSION") {
        None => parts.report(rule, "no VERSION"),
        Some(version) if parse_version(&version).is_none() => parts.report(rule, format!("{version:?}")),
        Some(_) => {}
    }
}

fn lengths(parts: &mut Parts<'_>, candidates: &[Candidate<'_>], rows: Option<u64>) {
    let Some(rows) = rows else { return };
    let declared = attribute(&parts.group.attributes, ROWS).is_some();
    for candidate in candidates.iter().filter(|candidate| candidate.is_shown()) {
        let Some(extent) = candidate.extent.filter(|extent| *extent != rows) else { continue };
        let path = parts.path_of(candidate.name.as_bstr());
        if declared && extent < rows {
            parts.findings.push(Finding::new(
                path,
                "HEP001 July: every column is at least NROWS long",
                format!("{extent} rows, NROWS is {rows}; shown alone, not in table.*"),
            ));
        } else if !declared {
            parts.findings.push(Finding::new(
                path,
                "HEP001 §9: every column has the same length",
                format!("{extent} rows, most others {rows}; shown alone, not in table.*"),
            ));
        }
    }
}

/// `_indexes` on a column and `_columns_list` on the index must name each other.
fn index_links(parts: &mut Parts<'_>, candidates: &[Candidate<'_>]) {
    let targets = |candidate: &Candidate<'_>, names: &[&'static str]| -> HashSet<ObjectId> {
        any(candidate.attributes(), names)
            .and_then(|(_, attribute)| references(attribute))
            .map(|targets| targets.iter().flatten().copied().collect())
            .unwrap_or_default()
    };
    let forth: HashMap<ObjectId, HashSet<ObjectId>> =
        candidates.iter().map(|candidate| (candidate.id, targets(candidate, &INDEX_LIST))).collect();
    let back: HashMap<ObjectId, HashSet<ObjectId>> =
        candidates.iter().map(|candidate| (candidate.id, targets(candidate, &COLUMN_LIST))).collect();
    let name_of = |id: &ObjectId| candidates.iter().find(|candidate| candidate.id == *id).map(|c| c.name);
    let unnamed = BString::default();
    let rule = "HEP001 §7.2: a column and its index refer to each other";
    for candidate in candidates {
        for index in forth.get(&candidate.id).into_iter().flatten() {
            match back.get(index) {
                Some(columns) if columns.contains(&candidate.id) => {}
                Some(_) => {
                    let found = format!("{:?} does not list it back", name_of(index).unwrap_or(&unnamed));
                    parts.findings.push(Finding::new(parts.path_of(candidate.name.as_bstr()), rule, found));
                }
                None => parts.findings.push(Finding::new(
                    parts.path_of(candidate.name.as_bstr()),
                    rule,
                    "a reference to an object that is no member of the table",
                )),
            }
        }
        for column in back.get(&candidate.id).into_iter().flatten() {
            if let Some(indexes) = forth.get(column)
                && !indexes.contains(&candidate.id)
            {
                let found = format!("{:?} does not refer to it", name_of(column).unwrap_or(&unnamed));
                parts.findings.push(Finding::new(parts.path_of(candidate.name.as_bstr()), rule, found));
            }
        }
    }
}

fn dangling(parts: &mut Parts<'_>, candidate: &Candidate<'_>) {
    for names in [&INDEX_LIST, &COLUMN_LIST, &SEARCH_INDEX_LIST, &CATEGORIES] {
        let Some((name, attribute)) = any(candidate.attributes(), names) else { continue };
        let found = match references(attribute) {
            None => format!("{name} holds no references"),
            Some(targets) if targets.contains(&None) => format!("{name} holds a null or dangling reference"),
            Some(_) => continue,
        };
        let path = parts.path_of(candidate.name.as_bstr());
        parts.findings.push(Finding::new(path, "HEP001 §9: references lead somewhere", found));
    }
}

/// Rules on a column's values that its description alone can break.
fn values(parts: &mut Parts<'_>, candidate: &Candidate<'_>) {
    let path = parts.path_of(candidate.name.as_bstr());
    if attribute(candidate.attributes(), "MASK").is_some() && candidate.kind != Kind::List {
        parts.findings.push(Finding::new(
            &path,
            "HEP001 July, \"Reserved: the MASK column attribute\": the fill alone need not find every missing row",
            "a MASK attribute; missing rows are told by the fill value only",
        ));
    }
    if let Some(dataset) = candidate.dataset
        && dataset.datatype.is_boolean()
        && matches!(dataset.fill, Fill::Explicit(_))
    {
        parts.findings.push(Finding::new(
            &path,
            "HEP001 July, \"Boolean columns\": a boolean column has no fill value",
            "an explicit fill value, which is ignored",
        ));
    }
    if let Some(dataset) = candidate.dataset.filter(|dataset| parts.has_foreign_fill(dataset)) {
        parts.findings.push(Finding::new(
            &path,
            "Versioned HDF5: the library sets a fill value of zeros by itself, so it means nothing (HEP001 §6.4 would have it mean missing)",
            format!("an explicit fill of {} zero bytes; values that equal it are shown", dataset.datatype.size),
        ));
    }
    if let Some(Fill::Unreadable(reason)) = candidate.dataset.map(|dataset| &dataset.fill) {
        parts.findings.push(Finding::new(&path, "HEP001 §6.4: the fill value can be read", reason));
    }
    if candidate.is_shown() && RESERVED.iter().any(|name| candidate.name == *name) {
        parts.findings.push(Finding::new(
            &path,
            "HEP001 §6.1: a column has no reserved name",
            candidate.name.to_string(),
        ));
    }
}

/// `column-order` lists every column once and nothing else. Row labels may be listed or not (HEP001 §7.1).
pub(super) fn column_order(
    parts: &mut Parts<'_>,
    candidates: &[Candidate<'_>],
    listed: &[BString],
    labels: &[BString],
) {
    let rule = "HEP001 §9: column-order lists every column once, and columns only";
    let columns: HashSet<&BString> =
        candidates.iter().filter(|candidate| candidate.is_shown()).map(|candidate| candidate.name).collect();
    let mut seen = HashSet::new();
    for name in listed {
        if !seen.insert(name) {
            parts.report(rule, format!("{name:?} twice"));
        } else if !columns.contains(name) {
            parts.report(rule, format!("{name:?}, which is no column"));
        }
    }
    for candidate in candidates.iter().filter(|candidate| matches!(candidate.kind, Kind::Column | Kind::List)) {
        if !seen.contains(&candidate.name) && !labels.contains(candidate.name) {
            parts.report(rule, format!("column {:?} is not listed", candidate.name));
        }
    }
}
