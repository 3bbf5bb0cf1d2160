//! Makes a [`Table`] from a table group.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bstr::{BString, ByteSlice};

use super::columns::{self, Candidate, CategorySets};
use super::draft::Draft;
use super::members::{MemberKind, TableMember, members};
use super::names::{ARROW_TYPE, CATEGORIES, COLUMN_ORDER, DIALECT, INDEX, INDEX_COLUMNS, INDEX_LIST, ROWS};
use super::parts::TableGroup;
use super::{conformance, consistency, indexes, rules, values};
use crate::catalogue::{ColumnId, Group, ObjectId, attribute};
use crate::dialects::attributes::{any, references, strings, text, unsigned};
use crate::dialects::{Checks, datasets, times, versioned};
use crate::source::Interrupt;
use crate::store::File;
use crate::table::{Column, Meaning, Table};

/// Makes the table of a group that [`recognition`](super::recognition) accepted. Each column keeps its own error, even
/// an interrupt, so a caller that raised one must not keep the table.
pub fn build(file: &Arc<File>, path: &str, group: &Group, checks: Checks, interrupt: &Interrupt) -> Table {
    let is_in_version = versioned::is_in_version(file, path, interrupt);
    let sorted = members(group);
    let follows = Draft::of(group, &sorted);
    let draft = checks.options.hep001.judge(follows, group);
    let mut parts =
        TableGroup { file, path, group, is_in_version, draft, is_full: checks.is_full, findings: Vec::new() };
    let candidates = columns::open(&mut parts, &sorted, interrupt);
    let labels = row_labels(&mut parts, &candidates);
    let ordered = logical_order(&mut parts, &candidates, &labels);
    let rows = row_count(&mut parts, &ordered);
    consistency::check(&mut parts, &candidates, rows);

    let mut categories = CategorySets::default();
    let mut shown = Vec::with_capacity(ordered.len());
    for candidate in ordered {
        let is_label = labels.contains(candidate.name) || candidate.kind == MemberKind::Index;
        shown.push(column(&mut parts, candidate, is_label, rows, &mut categories, interrupt));
    }
    // Label sets come first, then groups.
    let (sets, groups): (Vec<&TableMember<'_>>, Vec<&TableMember<'_>>) =
        sorted.iter().filter(|member| member.is_servant()).partition(|member| member.kind == MemberKind::Categories);
    let mut table = Table {
        revision: follows.to_string(),
        judged_by: parts.revision(),
        labels_differ: Some(&rules::CATEGORY_TWICE),
        rule_of: values::rule_of(draft),
        rows: rows.unwrap_or(0),
        attributes: group.attributes.clone(),
        columns: shown,
        categories: categories.into_sets(),
        servants: sets.into_iter().chain(groups).map(|member| member.name.clone()).collect(),
        ..Table::empty(path, DIALECT)
    };
    table.indexes = indexes::find(&mut parts, &candidates, &table, interrupt);
    if checks.is_full {
        conformance::check(&mut parts, follows, &sorted, &candidates, &mut table, interrupt);
    }
    table.findings = parts.findings;
    table
}

/// Names of the columns that label rows, outermost first. They are those of `INDEX_COLUMNS`, else of `_index`, else the
/// first target of an attribute `_indexes`. Index datasets follow in link order.
fn row_labels(parts: &mut TableGroup<'_>, candidates: &[Candidate<'_>]) -> Vec<BString> {
    let attributes = &parts.group.attributes;
    let by_id = |id: &ObjectId| candidates.iter().find(|candidate| candidate.id == *id && candidate.is_shown());
    let mut labels: Vec<BString> = Vec::new();
    if let Some(attribute) = attribute(attributes, INDEX_COLUMNS) {
        match references(attribute) {
            Some(targets) => {
                for (level, target) in targets.iter().enumerate() {
                    match target.as_ref().and_then(by_id) {
                        Some(candidate) if candidate.kind != MemberKind::List => labels.push(candidate.name.clone()),
                        _ => parts.report(&rules::LABELS_TARGET, format!("level {level} refers to no column")),
                    }
                }
            }
            None => parts.report(&rules::LABELS_TYPE, "another datatype"),
        }
    }
    let named = text(attributes, INDEX);
    if let Some(named) = &named {
        let found = candidates.iter().find(|candidate| candidate.name == named.as_str() && candidate.is_shown());
        match (found, labels.first()) {
            (_, Some(first)) if first != named.as_bytes().as_bstr() => {
                parts.report(&rules::LABELS_DIFFER, format!("_index is {named:?}, INDEX_COLUMNS[0] is {first:?}"))
            }
            (Some(candidate), None) => labels.push(candidate.name.clone()),
            (None, _) => parts.report(&rules::LABEL_UNKNOWN, format!("{named:?}")),
            _ => {}
        }
    }
    if labels.is_empty() {
        let first = candidates.iter().filter(|candidate| candidate.kind == MemberKind::Column).find_map(|candidate| {
            let (_, attribute) = any(candidate.attributes(), &INDEX_LIST)?;
            references(attribute)?.iter().flatten().find_map(by_id)
        });
        labels.extend(first.map(|candidate| candidate.name.clone()));
    }
    let others = candidates.iter().filter(|candidate| candidate.kind == MemberKind::Index);
    labels.extend(others.map(|candidate| candidate.name.clone()));
    let mut seen = HashSet::new();
    labels.retain(|label| seen.insert(label.clone()));
    labels
}

/// Puts the columns in order: row labels, then `column-order`, then those that it leaves out.
fn logical_order<'c, 'a>(
    parts: &mut TableGroup<'_>,
    candidates: &'c [Candidate<'a>],
    labels: &[BString],
) -> Vec<&'c Candidate<'a>> {
    let listed = attribute(&parts.group.attributes, COLUMN_ORDER).map(strings);
    if listed == Some(None) {
        parts.report(&rules::ORDER_TYPE, "another datatype, or unreadable");
    }
    let listed = listed.flatten();
    // Names of links are unique, so without a list there is nothing to look up.
    if labels.is_empty() && listed.is_none() {
        return candidates.iter().filter(|candidate| candidate.is_shown()).collect();
    }
    let by_name: HashMap<&BString, &Candidate<'_>> = candidates
        .iter()
        .filter(|candidate| candidate.is_shown())
        .map(|candidate| (candidate.name, candidate))
        .collect();
    let mut order = Vec::new();
    let mut seen: HashSet<&BString> = HashSet::new();
    for label in labels {
        if let Some(candidate) = by_name.get(label)
            && seen.insert(label)
        {
            order.push(*candidate);
        }
    }
    for name in listed.iter().flatten() {
        match by_name.get(name) {
            Some(candidate) if seen.insert(candidate.name) => order.push(*candidate),
            _ => {}
        }
    }
    for candidate in candidates.iter().filter(|candidate| candidate.is_shown()) {
        if seen.insert(candidate.name) {
            order.push(candidate);
        }
    }
    if let Some(listed) = &listed {
        consistency::column_order(parts, candidates, listed, labels);
    }
    order
}

/// Number of rows of the table: `NROWS`, else the commonest length of a column; of several, the first. `None`: no
/// column has a length.
fn row_count(parts: &mut TableGroup<'_>, ordered: &[&Candidate<'_>]) -> Option<u64> {
    if attribute(&parts.group.attributes, ROWS).is_some() {
        if let Some(rows) = unsigned(&parts.group.attributes, ROWS) {
            return Some(rows);
        }
        parts.report(&rules::NROWS_TYPE, "no unsigned integer, or unreadable");
    }
    datasets::commonest(ordered.iter().filter_map(|candidate| candidate.extent))
}

fn column(
    parts: &mut TableGroup<'_>,
    candidate: &Candidate<'_>,
    is_label: bool,
    rows: Option<u64>,
    categories: &mut CategorySets,
    interrupt: &Interrupt,
) -> Column {
    let path = parts.path_of(candidate.name.as_bstr());
    let tally = Arc::default();
    let declared = attribute(&parts.group.attributes, ROWS).and(rows);
    let opened = columns::rows(parts, candidate, declared, &tally);
    let attributes = candidate.attributes().clone();
    let mut label_set = None;
    let mut below = candidate.below();
    let content = opened.map(|content| {
        let Some(reference) = any(&attributes, &CATEGORIES) else { return content };
        match categories.label(parts, &path, reference, content.clone(), &tally, interrupt) {
            Ok((set, rows)) => {
                label_set = Some(set);
                below.extend(categories.below(set));
                rows
            }
            Err(reason) => {
                parts.find(&path, &rules::CATEGORY_COLUMN, reason);
                content
            }
        }
    });
    let arrow_type = text(&attributes, ARROW_TYPE);
    let typed = arrow_type.as_ref().zip(content.as_ref().ok());
    let typed = typed.and_then(|(arrow_type, rows)| columns::typed(&path, rows, arrow_type));
    let duration = arrow_type.as_deref().and_then(columns::duration);
    let times = match (&typed, content.as_ref()) {
        (None, Ok(rows)) => times::of(parts.file, &attributes, rows.as_ref()),
        _ => None,
    };
    let times = times.map(|times| match &arrow_type {
        Some(arrow_type) => times.map(|times| columns::in_zone(times, arrow_type)),
        None => times,
    });
    let content = typed.map_or(content, Ok);
    let in_table = match (&content, rows) {
        (Ok(content), Some(rows)) => content.len() == rows,
        _ => false,
    };
    let vocabulary =
        text(&attributes, "units_vocabulary").or_else(|| text(&parts.group.attributes, "units_vocabulary"));
    let stored_strings = candidate
        .dataset
        .and_then(|dataset| datasets::stored_strings(parts.file, &path, dataset, declared.unwrap_or(u64::MAX)));
    Column {
        is_label,
        in_table,
        stored_strings,
        categories: label_set,
        below,
        meaning: Meaning {
            times: times.map(Box::new),
            duration,
            units: times::units(&attributes),
            units_vocabulary: vocabulary,
            calendar: times::calendar(&attributes),
            description: text(&attributes, "description"),
            ..Meaning::default()
        },
        attributes,
        dataset: candidate.dataset.cloned(),
        ..Column::new(candidate.name.clone(), path, ColumnId::whole(candidate.id), content, tally)
    }
}
