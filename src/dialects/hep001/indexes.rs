//! Search indexes as a table declares them (HEP001 §8): listed, not believed.

use bstr::{BStr, BString, ByteSlice};

use super::attributes::{any, references, text, unsigned};
use super::build::{COLUMN_LIST, Parts, SEARCH_INDEX_GROUPS, SEARCH_INDEX_LIST};
use super::columns::Candidate;
use crate::catalogue::{Dataset, Object, join};
use crate::source::Interrupt;
use crate::table::{Finding, SearchIndex};

/// Lists the search indexes and checks that both sides of every link agree (HEP001 §9).
pub(super) fn find(parts: &mut Parts<'_>, candidates: &[Candidate<'_>], interrupt: &Interrupt) -> Vec<SearchIndex> {
    let mut found = Vec::new();
    for name in SEARCH_INDEX_GROUPS {
        let Some(Object::Group { id, .. }) = parts.group.link(name.as_bytes()).and_then(|l| l.target.object()) else {
            continue;
        };
        let path = parts.path_of(BStr::new(name));
        let group = match parts.file.group(*id, interrupt) {
            Ok(group) => group,
            Err(error) => {
                parts.findings.push(Finding::new(path, "HEP001 §8.1: search indexes can be listed", error.to_string()));
                continue;
            }
        };
        for link in &group.links {
            let path = join(&path, &link.name);
            match link.target.object() {
                Some(Object::Dataset(dataset)) => found.extend(one(parts, candidates, &path, dataset, &link.name)),
                _ => parts.findings.push(Finding::new(
                    path,
                    "HEP001 §8.1: the group of search indexes holds datasets only",
                    "something else",
                )),
            }
        }
    }
    found
}

fn one(
    parts: &mut Parts<'_>,
    candidates: &[Candidate<'_>],
    path: &str,
    dataset: &Dataset,
    name: &BString,
) -> Option<SearchIndex> {
    let kind = text(&dataset.attributes, "KIND");
    let covered: Vec<&Candidate<'_>> = candidates
        .iter()
        .filter(|candidate| {
            any(candidate.attributes(), &SEARCH_INDEX_LIST)
                .and_then(|(_, attribute)| references(attribute))
                .is_some_and(|targets| targets.contains(&Some(dataset.id)))
        })
        .collect();
    let back = any(&dataset.attributes, &COLUMN_LIST).and_then(|(_, attribute)| references(attribute));
    if let Some(back) = back {
        for candidate in candidates {
            let forth = covered.iter().any(|covered| covered.id == candidate.id);
            let back = back.contains(&Some(candidate.id));
            if forth != back {
                let (has, lacks) = if forth { ("column", "index") } else { ("index", "column") };
                parts.findings.push(Finding::new(
                    path,
                    "HEP001 §9: a search index and its column refer to each other",
                    format!("only the {has} refers to the {lacks}, for column {:?}", candidate.name),
                ));
            }
        }
        if back.contains(&None) {
            parts.findings.push(Finding::new(path, "HEP001 §9: references lead somewhere", "a dangling reference"));
        }
    }
    if kind.is_none() {
        // July: datasets without KIND accompany an index. April: each must have one, but a bitmap's values.
        let accompanies = name.to_str_lossy().to_ascii_lowercase().ends_with("__values");
        if back.is_some() || (covered.is_empty() && !accompanies && parts.group.link(b"_search_indexes").is_some()) {
            parts.findings.push(Finding::new(path, "HEP001 §9: every search index has a KIND", "none"));
        }
        if covered.is_empty() && back.is_none() {
            return None;
        }
    }
    let mut columns: Vec<BString> = covered.iter().map(|candidate| candidate.name.clone()).collect();
    for candidate in candidates {
        let back = back.is_some_and(|back| back.contains(&Some(candidate.id)));
        if back && !columns.contains(&candidate.name) {
            columns.push(candidate.name.clone());
        }
    }
    Some(SearchIndex {
        path: path.to_owned(),
        kind,
        columns,
        shape: dataset.shape.clone(),
        source_generation: unsigned(&dataset.attributes, "SOURCE_GENERATION"),
        source_rows: unsigned(&dataset.attributes, "SOURCE_NROWS"),
        attributes: dataset.attributes.clone(),
    })
}
