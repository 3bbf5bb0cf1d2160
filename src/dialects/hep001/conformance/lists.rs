//! Checks the rules on list columns, level by level (HEP001 July §9).

use std::sync::Arc;

use super::storage::{is_padded, is_strict_boolean, is_token, stored};
use crate::catalogue::{Attribute, Class, Dataset, Group, Object, ObjectId, attribute, join};
use crate::dialects::attributes::{any, unsigned};
use crate::dialects::datasets;
use crate::dialects::hep001::columns::Candidate;
use crate::dialects::hep001::members::is_list;
use crate::dialects::hep001::names::{ROWS, SEARCH_INDEX_LIST};
use crate::dialects::hep001::parts::TableGroup;
use crate::dialects::hep001::rules;
use crate::source::Interrupt;
use crate::store::decode::widen;
use crate::store::{DatasetRows, Rows};

/// Deepest nesting of lists to check.
const MOST_LEVELS: usize = 32;

/// Members that a level of lists may have.
const OF_LISTS: [&str; 3] = ["OFFSETS", "VALUES", "MASK"];
/// Members that a level of strings may have.
const OF_STRINGS: [&str; 3] = ["OFFSETS", "CHARS", "MASK"];

pub(super) fn check(parts: &mut TableGroup<'_>, path: &str, candidate: &Candidate<'_>, interrupt: &Interrupt) {
    if let Some((name, _)) = any(candidate.attributes(), &SEARCH_INDEX_LIST) {
        parts.find(path, &rules::LIST_INDEXED, name);
    }
    // Without `NROWS`, the offsets give the number of entries.
    let rows = unsigned(&parts.group.attributes, ROWS).or(candidate.extent).unwrap_or(0);
    level(parts, path, candidate.id, candidate.attributes(), (rows, 0), interrupt);
}

/// Checks a level of a list column, at this depth, for which the level above has this many entries.
fn level(
    parts: &mut TableGroup<'_>,
    path: &str,
    id: ObjectId,
    attributes: &[Attribute],
    (entries, depth): (u64, usize),
    interrupt: &Interrupt,
) {
    let is_list = is_list(attributes);
    for (name, rule) in [("CLASS", &rules::LIST_CLASS), ("KIND", &rules::LIST_KIND)] {
        match attribute(attributes, name).filter(|_| is_list || name == "CLASS") {
            Some(token) if !is_token(token, true) => parts.find(path, rule, stored(token)),
            Some(token) if is_padded(token) => parts.find(path, &rules::TOKEN_PADDING, name),
            _ => {}
        }
    }
    // If a group cannot be opened, opening the column has already reported why.
    let Ok(group) = parts.file.group(id, interrupt) else { return };
    let members = if is_list { OF_LISTS } else { OF_STRINGS };
    for link in group.links.iter().filter(|link| !members.iter().any(|member| link.name == *member)) {
        parts.find(join(path, &link.name), &rules::LIST_STRANGER, link.name.to_string());
    }
    if let Some((path, mask)) = dataset(&group, path, "MASK") {
        if mask.datatype.is_boolean() && !is_strict_boolean(&mask.datatype) {
            parts.find(&path, &rules::BOOLEAN_TYPE, "an enumeration over an unsigned integer");
        }
        extent(parts, &path, mask, entries);
    }
    let Some((offsets_path, offsets)) = dataset(&group, path, "OFFSETS") else { return };
    match offsets.datatype.class {
        Class::Integer { signed: false, .. } if offsets.datatype.size == 8 => {}
        // Opening the column has already reported types other than integers.
        Class::Integer { signed, .. } => {
            let sign = if signed { "" } else { "u" };
            let found = format!("{sign}int{}", offsets.datatype.size.saturating_mul(8));
            parts.find(&offsets_path, &rules::LIST_OFFSETS_TYPE, found);
        }
        _ => return,
    }
    // `consistency` has compared the top level with the rows of the table.
    if depth > 0 {
        extent(parts, &offsets_path, offsets, entries.saturating_add(1));
    }
    let Ok(opened) = datasets::open(parts.file, &offsets_path, offsets) else { return };
    let rows = DatasetRows::plain(opened, u64::MAX);
    let offset = |at: u64| {
        let array = rows.array(at..at.checked_add(1)?, interrupt).ok()?;
        widen::unsigned(&array)?.values().first().copied()
    };
    if let Some(first) = offset(0).filter(|first| *first > 0 && !offsets.is_empty()) {
        parts.find(&offsets_path, &rules::LIST_FIRST, first.to_string());
    }
    if let Some((path, values)) = dataset(&group, path, "VALUES") {
        super::range(parts, &path, values);
    }
    let nested = group.link(b"VALUES").and_then(|link| link.target.object());
    if let (Some(Object::Group { id, attributes, .. }), Some(entries)) = (nested, offset(entries))
        && depth < MOST_LEVELS
    {
        level(parts, &join(path, b"VALUES"), *id, attributes, (entries, depth + 1), interrupt);
    }
}

/// The member of a level with this name, and its path, if it is a dataset of rank 1. Opening the column has reported
/// any other.
fn dataset<'g>(group: &'g Group, path: &str, name: &str) -> Option<(String, &'g Arc<Dataset>)> {
    match group.link(name.as_bytes())?.target.object()? {
        Object::Dataset(dataset) if dataset.shape.len() == 1 && !dataset.null => {
            Some((join(path, name.as_bytes()), dataset))
        }
        _ => None,
    }
}

fn extent(parts: &mut TableGroup<'_>, path: &str, dataset: &Dataset, least: u64) {
    let extent = dataset.shape.first().copied().unwrap_or(0);
    if extent < least {
        parts.find(path, &rules::LIST_EXTENT, format!("{extent} elements, {least} are needed"));
    }
}
