//! From a table group to a [`Table`].

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};

use super::attributes::{any, boolean, references, strings, text, unsigned};
use super::columns::{self, Candidate, Kind};
use super::{consistency, indexes};
use crate::catalogue::{self, Group, Object, ObjectId, attribute, join};
use crate::source::Interrupt;
use crate::store::statistics::Observed;
use crate::store::{DatasetRows, File};
use crate::table::{Categories, Column, Finding, Table};

/// Names of a group or attribute over the drafts: April, then the capitals of May and later.
pub(super) const SEARCH_INDEX_GROUPS: [&str; 2] = ["SEARCH_INDEXES", "_search_indexes"];
pub(super) const CATEGORIES: [&str; 2] = ["CATEGORIES", "_categories"];
pub(super) const INDEX_LIST: [&str; 2] = ["INDEX_LIST", "_indexes"];
pub(super) const COLUMN_LIST: [&str; 2] = ["COLUMN_LIST", "_columns_list"];
pub(super) const SEARCH_INDEX_LIST: [&str; 2] = ["SEARCH_INDEX_LIST", "_search_indexes"];

/// The pieces of a table group while a table is made of them.
pub(super) struct Parts<'a> {
    /// The file.
    pub file: &'a Arc<File>,
    /// HDF5 path of the table group.
    pub path: &'a str,
    /// The table group.
    pub group: &'a Group,
    /// Rules broken so far.
    pub findings: Vec<Finding>,
}

impl Parts<'_> {
    /// HDF5 path of a member of the group.
    pub fn path_of(&self, name: &BStr) -> String {
        join(self.path, name)
    }

    /// Reports a broken rule on the table group.
    pub fn report(&mut self, rule: &str, found: impl Into<String>) {
        self.findings.push(Finding::new(self.path, rule, found));
    }
}

/// Builds the table of a group that [`super::recognise`] took for one. Whatever is wrong with a column is kept with it: an
/// interrupt, too, so whoever raised one must not keep the table.
pub fn build(file: &Arc<File>, path: &str, group: &Group, interrupt: &Interrupt) -> Table {
    let mut parts = Parts { file, path, group, findings: Vec::new() };
    let candidates = columns::discover(&mut parts, interrupt);
    let labels = row_labels(&mut parts, &candidates);
    let ordered = logical_order(&mut parts, &candidates, &labels);
    let rows = row_count(&mut parts, &ordered);
    consistency::check(&mut parts, &candidates, rows);

    let mut categories = CategorySets::default();
    let mut shown = Vec::with_capacity(ordered.len());
    for candidate in ordered {
        let is_label = labels.contains(&candidate.name) || candidate.kind == Kind::Index;
        shown.push(column(&mut parts, candidate, is_label, rows, &mut categories, interrupt));
    }
    let mut servants: Vec<BString> = candidates
        .iter()
        .filter(|candidate| candidate.kind == Kind::Categories)
        .map(|candidate| candidate.name.clone())
        .collect();
    servants.extend(
        group
            .links
            .iter()
            .map(|link| &link.name)
            .filter(|name| columns::is_servant_group(group, name.as_bstr()))
            .cloned(),
    );
    let mut table = Table {
        path: path.to_owned(),
        selection: None,
        dialect: "HEP001",
        revision: revision(group, &candidates).to_owned(),
        rows: rows.unwrap_or(0),
        attributes: group.attributes.clone(),
        columns: shown,
        categories: categories.sets,
        indexes: Vec::new(),
        servants,
        findings: Vec::new(),
    };
    table.indexes = indexes::find(&mut parts, &candidates, &table, interrupt);
    table.findings = parts.findings;
    table
}

/// Which draft the group follows, by the features met.
fn revision(group: &Group, candidates: &[Candidate<'_>]) -> &'static str {
    let has = |names: &[&str]| {
        names.iter().any(|name| {
            group.link(name.as_bytes()).is_some()
                || attribute(&group.attributes, name).is_some()
                || candidates.iter().any(|candidate| attribute(candidate.attributes(), name).is_some())
        })
    };
    let july = has(&["NROWS", "INDEX_COLUMNS", "GENERATION"])
        || candidates.iter().any(|candidate| candidate.kind == Kind::List);
    let april = has(&["_indexes", "_columns_list", "_categories", "_search_indexes"]);
    let between = has(&["INDEX_LIST", "COLUMN_LIST"]);
    match (april, between, july) {
        (true, _, true) | (_, true, true) | (true, true, _) => "mixed drafts",
        (_, _, true) => "July 2026",
        (_, true, _) => "May-June 2026",
        _ => "April 2026",
    }
}

/// Names of the columns that label rows, outermost first: `INDEX_COLUMNS`; else `_index`; else the first `_indexes` of a
/// column; index datasets follow in link order.
fn row_labels(parts: &mut Parts<'_>, candidates: &[Candidate<'_>]) -> Vec<BString> {
    let attributes = &parts.group.attributes;
    let by_id = |id: &ObjectId| candidates.iter().find(|candidate| candidate.id == *id && candidate.is_shown());
    let mut labels: Vec<BString> = Vec::new();
    if let Some(attribute) = attribute(attributes, "INDEX_COLUMNS") {
        match references(attribute) {
            Some(targets) => {
                for (level, target) in targets.iter().enumerate() {
                    match target.as_ref().and_then(by_id) {
                        Some(candidate) if candidate.kind != Kind::List => labels.push(candidate.name.clone()),
                        _ => parts.report(
                            "HEP001 July: every INDEX_COLUMNS reference leads to a column dataset of the table",
                            format!("level {level} leads to none"),
                        ),
                    }
                }
            }
            None => parts.report("HEP001 July: INDEX_COLUMNS holds references", "another datatype"),
        }
    }
    let named = text(attributes, "_index");
    if let Some(named) = &named {
        let found = candidates.iter().find(|candidate| candidate.name == named.as_str() && candidate.is_shown());
        match (found, labels.first()) {
            (_, Some(first)) if first != named.as_bytes().as_bstr() => parts.report(
                "HEP001 July: _index equals the name of INDEX_COLUMNS[0]",
                format!("_index is {named:?}, INDEX_COLUMNS[0] is {first:?}"),
            ),
            (Some(candidate), None) => labels.push(candidate.name.clone()),
            (None, _) => parts.report("HEP001 §5.3: _index names a column or index dataset", format!("{named:?}")),
            _ => {}
        }
    }
    if labels.is_empty() {
        let first = candidates.iter().filter(|candidate| candidate.kind == Kind::Column).find_map(|candidate| {
            let (_, attribute) = any(candidate.attributes(), &INDEX_LIST)?;
            references(attribute)?.iter().flatten().find_map(by_id)
        });
        labels.extend(first.map(|candidate| candidate.name.clone()));
    }
    let others = candidates.iter().filter(|candidate| candidate.kind == Kind::Index);
    labels.extend(others.map(|candidate| candidate.name.clone()));
    let mut seen = HashSet::new();
    labels.retain(|label| seen.insert(label.clone()));
    labels
}

/// Row labels, then `column-order`, then whatever it leaves out.
fn logical_order<'c, 'a>(
    parts: &mut Parts<'_>,
    candidates: &'c [Candidate<'a>],
    labels: &[BString],
) -> Vec<&'c Candidate<'a>> {
    let listed = attribute(&parts.group.attributes, "column-order").map(strings);
    if listed == Some(None) {
        parts.report("HEP001 §5.3: column-order holds strings", "another datatype, or unreadable");
    }
    let listed = listed.flatten();
    let by_name: HashMap<&BString, &Candidate<'_>> = candidates
        .iter()
        .filter(|candidate| candidate.is_shown())
        .map(|candidate| (&candidate.name, candidate))
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
            Some(candidate) if seen.insert(&candidate.name) => order.push(*candidate),
            _ => {}
        }
    }
    for candidate in candidates.iter().filter(|candidate| candidate.is_shown()) {
        if seen.insert(&candidate.name) {
            order.push(candidate);
        }
    }
    if let Some(listed) = &listed {
        consistency::column_order(parts, candidates, listed, labels);
    }
    order
}

/// Rows of the table: `NROWS`; else the commonest length, ties to the first column. `None` without any column.
fn row_count(parts: &mut Parts<'_>, ordered: &[&Candidate<'_>]) -> Option<u64> {
    if attribute(&parts.group.attributes, "NROWS").is_some() {
        if let Some(rows) = unsigned(&parts.group.attributes, "NROWS") {
            return Some(rows);
        }
        parts.report("HEP001 July: NROWS is a scalar uint64", "another datatype, or unreadable");
    }
    let lengths: Vec<u64> = ordered.iter().filter_map(|candidate| candidate.extent).collect();
    let mut counts: HashMap<u64, usize> = HashMap::new();
    for length in &lengths {
        *counts.entry(*length).or_default() += 1;
    }
    let most = counts.values().copied().max()?;
    lengths.into_iter().find(|length| counts.get(length) == Some(&most))
}

/// Label sets met so far, one for each categories dataset.
#[derive(Default)]
struct CategorySets {
    sets: Vec<Categories>,
    by_id: HashMap<ObjectId, usize>,
}

impl CategorySets {
    /// The label set of a categories dataset.
    fn get(&mut self, parts: &mut Parts<'_>, id: ObjectId, interrupt: &Interrupt) -> Result<usize, String> {
        if let Some(at) = self.by_id.get(&id) {
            return Ok(*at);
        }
        let object = parts.file.object(id, interrupt).map_err(|error| error.to_string())?;
        let Object::Dataset(dataset) = object else { return Err("no dataset".into()) };
        if dataset.shape.len() != 1 || dataset.null {
            return Err(format!("a dataset of rank {}, not 1", dataset.shape.len()));
        }
        let path = self.path_of(parts, id);
        let ordered = boolean(&dataset.attributes, "ordered");
        let labels = columns::open(parts.file, &path, &dataset)
            .map(|dataset| Arc::new(DatasetRows::plain(dataset, u64::MAX)) as Arc<dyn crate::store::Rows>);
        self.sets.push(Categories { path, labels, datatype: dataset.datatype.clone(), ordered });
        self.by_id.insert(id, self.sets.len() - 1);
        Ok(self.sets.len() - 1)
    }

    /// Where in the table the dataset lies; a dataset elsewhere has no name here.
    fn path_of(&self, parts: &Parts<'_>, id: ObjectId) -> String {
        let direct = parts.group.links.iter().find(|link| link.target.object().is_some_and(|o| o.id() == id));
        match direct {
            Some(link) => parts.path_of(link.name.as_bstr()),
            None => format!("{} (categories at {})", join(parts.path, b"CATEGORIES"), id.address),
        }
    }
}

fn column(
    parts: &mut Parts<'_>,
    candidate: &Candidate<'_>,
    is_label: bool,
    rows: Option<u64>,
    categories: &mut CategorySets,
    interrupt: &Interrupt,
) -> Column {
    let path = parts.path_of(candidate.name.as_bstr());
    let tally = Arc::default();
    let declared = attribute(&parts.group.attributes, "NROWS").and(rows);
    let opened = columns::rows(parts, candidate, declared, &tally);
    let attributes = candidate.attributes().clone();
    let mut label_set = None;
    let content = opened.map(|content| {
        let Some((name, target)) = any(&attributes, &CATEGORIES) else { return content };
        match categorical(parts, &path, name, target, content.clone(), &tally, categories, interrupt) {
            Ok((set, rows)) => {
                label_set = Some(set);
                rows
            }
            Err(reason) => {
                parts.findings.push(Finding::new(
                    &path,
                    "HEP001 §6.6: a categorical column has integer codes and refers to a categories dataset of rank 1",
                    reason,
                ));
                content
            }
        }
    });
    let in_table = match (&content, rows) {
        (Ok(content), Some(rows)) => content.len() == rows,
        _ => false,
    };
    let learner = content.as_ref().ok().and_then(|content| parts.file.learner(&path, candidate.id, content.as_ref()));
    let content = content.map(|content| match &learner {
        Some(learner) => Arc::new(Observed::new(content, learner.clone())),
        None => content,
    });
    let vocabulary =
        text(&attributes, "units_vocabulary").or_else(|| text(&parts.group.attributes, "units_vocabulary"));
    Column {
        name: candidate.name.clone(),
        path,
        is_label,
        in_table,
        stored_strings: columns::stored_strings(
            parts.file,
            candidate,
            declared,
            &parts.path_of(candidate.name.as_bstr()),
        ),
        rows: content,
        learner,
        tally,
        units: text(&attributes, "units"),
        units_vocabulary: vocabulary,
        description: text(&attributes, "description"),
        categories: label_set,
        attributes,
        storage: candidate.dataset.map(columns::storage),
    }
}

#[allow(clippy::too_many_arguments)]
fn categorical(
    parts: &mut Parts<'_>,
    path: &str,
    name: &str,
    target: &catalogue::Attribute,
    codes: Arc<dyn crate::store::Rows>,
    tally: &Arc<crate::store::Tally>,
    categories: &mut CategorySets,
    interrupt: &Interrupt,
) -> Result<(usize, Arc<dyn crate::store::Rows>), String> {
    let targets = references(target).ok_or_else(|| format!("{name} holds no reference"))?;
    let [Some(id)] = targets else { return Err(format!("{name} is a null or dangling reference, or not just one")) };
    if !codes.data_type().is_integer() {
        return Err(format!("codes of type {}", codes.data_type()));
    }
    let set = categories.get(parts, *id, interrupt).map_err(|reason| format!("{name} leads to {reason}"))?;
    let labels = categories.sets[set].labels.clone()?;
    let ordered = categories.sets[set].ordered == Some(true);
    let rows = crate::table::CategoryRows::new(path.to_owned(), codes, labels, tally.clone()).ordered(ordered);
    Ok((set, Arc::new(rows)))
}
