//! Checks the rules on label sets, and on the codes of columns (HEP001 §6.6; July §8.7).

use std::collections::{HashMap, HashSet};

use bstr::{BStr, ByteSlice};

use super::storage::{is_scalar, is_strict_boolean, stored};
use crate::catalogue::{Dataset, Fill, Object, ObjectId, attribute, join};
use crate::dialects::attributes::{any, boolean, references, text};
use crate::dialects::hep001::columns::Candidate;
use crate::dialects::hep001::draft::Draft;
use crate::dialects::hep001::members::TableMember;
use crate::dialects::hep001::names::{CATEGORIES, CATEGORIES_GROUP};
use crate::dialects::hep001::parts::TableGroup;
use crate::dialects::hep001::{rules, values};
use crate::source::Interrupt;
use crate::store::statistics::Scalar;
use crate::table::{Categories, Table};

pub(super) fn check(
    parts: &mut TableGroup<'_>,
    members: &[TableMember<'_>],
    candidates: &[Candidate<'_>],
    (table, columns): (&Table, &HashMap<ObjectId, usize>),
    interrupt: &Interrupt,
) {
    let inside = of_group(parts, interrupt);
    let beside: HashMap<ObjectId, &TableMember<'_>> = members.iter().map(|member| (member.id, member)).collect();
    let within: HashMap<ObjectId, &(String, Object)> = inside.iter().map(|(id, found)| (*id, found)).collect();
    let mut referred = HashSet::new();
    for candidate in candidates {
        let Some((name, attribute)) = any(candidate.attributes(), &CATEGORIES) else { continue };
        let path = parts.path_of(candidate.name.as_bstr());
        if references(attribute).is_some() && !is_scalar(attribute) {
            parts.find(&path, &rules::CATEGORY_COLUMN, format!("{name} is {}", stored(attribute)));
        }
        let Some([Some(target)]) = references(attribute) else { continue };
        let is_placed = match parts.draft {
            Draft::April => beside.contains_key(target),
            Draft::MayJune => true,
            Draft::July | Draft::Mixed => within.contains_key(target),
        };
        if !is_placed {
            parts.find(&path, &rules::CATEGORY_PLACE, format!("{name} leads elsewhere"));
        }
        if let Some(dataset) = candidate.dataset {
            let column = columns.get(&candidate.id).and_then(|at| table.columns.get(*at));
            let set = column.and_then(|column| table.categories.get(column.categories?));
            fill(parts, &path, dataset, set);
        }
        if referred.insert(*target) {
            let beside = beside.get(target).map(|member| (parts.path_of(member.name.as_bstr()), member.object));
            let within = within.get(target).map(|(path, object)| (path.clone(), object));
            if let Some((path, Object::Dataset(dataset))) = beside.or(within) {
                of_set(parts, &path, dataset);
            }
        }
    }
    for (id, (path, object)) in &inside {
        match object {
            Object::Dataset(dataset) if dataset.shape.len() == 1 && !dataset.null => {
                if !referred.contains(id) {
                    parts.find(path, &rules::CATEGORY_ORPHAN, "no column refers to it");
                }
            }
            Object::Dataset(dataset) => {
                parts.find(path, &rules::CATEGORY_CONTENT, format!("a dataset of rank {}", dataset.shape.len()));
            }
            _ => parts.find(path, &rules::CATEGORY_CONTENT, "something that is no dataset"),
        }
    }
}

/// Lists the members of the group of label sets: the path and object of each, by identity.
fn of_group(parts: &mut TableGroup<'_>, interrupt: &Interrupt) -> Vec<(ObjectId, (String, Object))> {
    let link = parts.group.link(CATEGORIES_GROUP.as_bytes());
    let Some(Object::Group { id, .. }) = link.and_then(|link| link.target.object()) else { return Vec::new() };
    let path = parts.path_of(BStr::new(CATEGORIES_GROUP));
    match parts.file.group(*id, interrupt) {
        Ok(group) => {
            let objects = group.links.iter().filter_map(|link| Some((link, link.target.object()?)));
            objects.map(|(link, object)| (object.id(), (join(&path, &link.name), object.clone()))).collect()
        }
        Err(error) => {
            parts.find(path, &rules::CATEGORY_CONTENT, error.to_string());
            Vec::new()
        }
    }
}

/// Checks that the fill value is not the code of a label, so that a missing category differs from all others.
fn fill(parts: &mut TableGroup<'_>, path: &str, dataset: &Dataset, set: Option<&Categories>) {
    let Fill::Explicit(fill) = &dataset.fill else { return };
    let code = match values::scalar(&dataset.datatype, fill) {
        Some(Scalar::Int(code)) => u64::try_from(code).ok(),
        Some(Scalar::UInt(code)) => Some(code),
        _ => None,
    };
    let labels = set.and_then(|set| Some(set.labels.as_ref().ok()?.len()));
    if let (Some(code), Some(labels)) = (code, labels)
        && code < labels
    {
        parts.find(path, &rules::CATEGORY_FILL, format!("{code}, which is the code of a label"));
    }
}

/// Checks the rules on a label set.
fn of_set(parts: &mut TableGroup<'_>, path: &str, dataset: &Dataset) {
    let attributes = &dataset.attributes;
    if parts.draft == Draft::April && text(attributes, "encoding-type").as_deref() != Some("categorical") {
        parts.find(path, &rules::CATEGORY_ENCODING, "none, or another");
    }
    match attribute(attributes, "ordered") {
        None if parts.draft == Draft::April => parts.find(path, &rules::CATEGORY_ORDERED, "none"),
        None => {}
        // April accepts a boolean of any form.
        Some(_) if parts.draft != Draft::July && boolean(attributes, "ordered").is_some() => {}
        Some(ordered) if is_scalar(ordered) && is_strict_boolean(&ordered.datatype) => {}
        Some(ordered) => parts.find(path, &rules::CATEGORY_ORDERED, stored(ordered)),
    }
}
