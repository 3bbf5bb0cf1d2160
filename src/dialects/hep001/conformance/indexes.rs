//! Checks the rules on how search indexes are stored (HEP001 §8; July §11), on which readers do not depend.

use super::storage::{is_line, is_scalar, is_strict_boolean, is_token, is_unsigned, stored};
use crate::catalogue::{Attribute, Dataset, Layout, attribute};
use crate::dialects::hep001::draft::Draft;
use crate::dialects::hep001::parts::TableGroup;
use crate::dialects::hep001::rules;

/// Checks a search index against the rules on its attributes and on its room to grow.
pub(in crate::dialects::hep001) fn check(
    parts: &mut TableGroup<'_>,
    path: &str,
    kind: Option<&str>,
    dataset: &Dataset,
) {
    let attributes = &dataset.attributes;
    if let Some(kind) = attribute(attributes, "KIND").filter(|kind| !is_token(kind, false)) {
        parts.find(path, &rules::INDEX_KIND_STORAGE, stored(kind));
    }
    let (numbers, booleans, axis): (&[(&str, u64)], &[&str], usize) = match kind {
        Some("CHUNK_MINMAX") => (&[], &[], 0),
        Some("SORTED_ROWS") => (&[("nan_tail_length", 8), ("fill_tail_length", 8)], &["ordered"], 0),
        Some("BITMAP") => (&[], &["ordered", "exhaustive"], 1),
        Some("CHUNK_BLOOM") => (&[("k", 2), ("m_bits", 8), ("seed", 4)], &[], 0),
        _ => return,
    };
    let mut told = |name: &str, is_right: &dyn Fn(&Attribute) -> bool, rule| {
        if let Some(wrong) = attribute(attributes, name).filter(|one| !is_right(one)) {
            parts.find(path, rule, format!("{name} is {}", stored(wrong)));
        }
    };
    for (name, size) in numbers {
        told(name, &|one| is_scalar(one) && is_unsigned(one, *size), &rules::INDEX_ATTRIBUTE);
    }
    told("hash_family", &|one| is_token(one, false), &rules::INDEX_ATTRIBUTE);
    told("chunk_shape", &|one| is_line(one) && is_unsigned(one, 8), &rules::INDEX_ATTRIBUTE);
    let is_of_july = parts.draft == Draft::July;
    for name in booleans.iter().filter(|_| is_of_july) {
        if let Some(wrong) = attribute(attributes, name)
            && !(is_scalar(wrong) && is_strict_boolean(&wrong.datatype))
        {
            parts.find(path, &rules::BOOLEAN_TYPE, format!("{name} is {}", stored(wrong)));
        }
    }
    let can_grow = matches!(dataset.layout, Layout::Chunked { .. }) && dataset.max_shape.get(axis) == Some(&None);
    if !can_grow {
        parts.find(path, &rules::INDEX_FIXED, "a dataset of fixed extent");
    }
}
