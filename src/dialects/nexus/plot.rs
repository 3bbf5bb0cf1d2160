//! Recognises `NXdata`: a signal and its axes, in three generations of the standard.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bstr::BString;

use super::Named;
use crate::catalogue::{Attribute, Dataset, Group, attribute};
use crate::dialects::attributes::{integer, integers, strings, text};

/// The class of groups with a signal and its axes.
pub(super) const CLASS: &str = "NXdata";

/// Finds the columns of a group whose signal has rank 1: axes, the signal and its errors, other signals, then every
/// other dataset of the same length. Axes of another length (bin edges) are left out. `None`: any other group, or one
/// with a single column.
pub(super) fn columns(group: &Group) -> Option<Vec<Named<'_>>> {
    let datasets: Vec<(&BString, &Arc<Dataset>)> = group.datasets().collect();
    let by_name: HashMap<&[u8], (&BString, &Arc<Dataset>)> =
        datasets.iter().map(|named| (named.0.as_slice(), *named)).collect();
    let signal = match text(&group.attributes, "signal") {
        Some(signal) => *by_name.get(signal.as_bytes())?,
        None => *datasets.iter().find(|(_, dataset)| says_one(&dataset.attributes, "signal"))?,
    };
    let (rank, rows) = (signal.1.shape.len(), signal.1.shape.first());
    if rank != 1 || signal.1.null {
        return None;
    }
    let mut names: Vec<BString> = axes(group, signal.1);
    let indices = group.attributes.iter().filter(|one| integers(one).is_some_and(|places| places == [0]));
    names.extend(indices.filter_map(|one| one.name.strip_suffix(b"_indices").map(BString::from)));
    names.extend(datasets.iter().filter(|(_, one)| says_one(&one.attributes, "axis")).map(|(name, _)| (*name).clone()));
    let with_errors = |name: &BString| [name.clone(), [name, b"_errors".as_slice()].concat().into()];
    names.extend(with_errors(signal.0));
    names.push("errors".into());
    let others = attribute(&group.attributes, "auxiliary_signals").and_then(strings).unwrap_or_default();
    names.extend(others.iter().flat_map(with_errors));
    names.extend(datasets.iter().map(|(name, _)| (*name).clone()));
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    let columns = names
        .iter()
        .filter_map(|name| by_name.get(name.as_slice()).copied())
        .filter(|(_, dataset)| dataset.shape.len() == 1 && dataset.shape.first() == rows && !dataset.null);
    let columns: Vec<Named<'_>> = columns.map(|(name, dataset)| (name.clone(), dataset)).collect();
    (columns.len() > 1).then_some(columns)
}

/// Whether a group's own attribute names more than one axis.
pub(super) fn has_several_axes(group: &Group) -> bool {
    listed(attribute(&group.attributes, "axes")).len() > 1
}

/// Names of the axes, as the group states them, or else the signal.
fn axes(group: &Group, signal: &Dataset) -> Vec<BString> {
    listed(attribute(&group.attributes, "axes").or_else(|| attribute(&signal.attributes, "axes")))
}

/// Splits a list of names: several texts, or one with colons or commas between the names.
fn listed(stated: Option<&Attribute>) -> Vec<BString> {
    match stated.and_then(strings).unwrap_or_default().as_slice() {
        [one] => {
            let names = one.split(|byte| matches!(byte, b':' | b',' | b'[' | b']'));
            names.map(|name| name.trim_ascii().into()).collect()
        }
        several => several.to_vec(),
    }
}

/// Whether the attribute `name` is 1, as a number or as text.
fn says_one(attributes: &[Attribute], name: &str) -> bool {
    integer(attributes, name) == Some(1) || text(attributes, name).as_deref() == Some("1")
}
