//! Makes the table of a data frame.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bstr::{BString, ByteSlice};

use super::Anndata;
use super::elements::{AnndataElement, ElementOpener, is_element};
use super::encoding::{EncodingType, INDEX, ORDER, version};
use super::rules;
use crate::catalogue::{ColumnId, Group, Object, attribute, join};
use crate::dialects::attributes::{strings, text};
use crate::dialects::{Dialect, Role, Site, datasets};
use crate::source::Interrupt;
use crate::store::{Rows, Tally};
use crate::table::{Categories, Column, CompoundRows, Finding, Meaning, Origin, OriginalName, Rule, Table, Unreadable};

/// Most parts of a column's name: for each part, a group is listed.
const MOST_PARTS: usize = 32;

/// The group of label sets, as version 0.1.0 has it.
const CATEGORIES: &[u8] = b"__categories";

/// Roles of the members of a data frame: columns, listed or not, are columns; label sets and groups that hold parts of
/// columns are servants. Any other member is shown by itself.
pub(super) fn roles(group: &Group) -> HashMap<BString, Role> {
    let listed = listed(group).unwrap_or_default();
    // A listed name `a/b` means the dataset `b` in the group `a`.
    let helpers: HashSet<&[u8]> = listed.iter().filter_map(|name| Some(name.split_once_str("/")?.0)).collect();
    let roles = group.links.iter().filter_map(|link| {
        let name = &link.name;
        let role = match link.target.object()? {
            Object::Dataset(dataset) => (dataset.shape.len() == 1 && !dataset.null).then_some(Role::Column),
            Object::Group { attributes, .. } if is_element(&EncodingType::of(attributes)) => Some(Role::Column),
            Object::Group { .. } => (*name == CATEGORIES || helpers.contains(name.as_slice())).then_some(Role::Servant),
            Object::Datatype { .. } | Object::Unreadable { .. } => None,
        };
        Some((name.clone(), role?))
    });
    roles.collect()
}

/// Names of the columns, in the order in which the frame lists them; an empty list has a numeric type. `None`: the
/// frame has no list.
fn listed(group: &Group) -> Option<Vec<BString>> {
    let order = attribute(&group.attributes, ORDER)?;
    strings(order).or_else(|| order.is_empty().then(Vec::new))
}

/// Makes the table of a data frame.
pub(super) fn table(site: &Site<'_>, group: &Group, interrupt: &Interrupt) -> Table {
    let opener = ElementOpener { file: site.file, interrupt };
    let mut frame = Frame { site, group, opener, categories: Vec::new(), findings: Vec::new() };
    let version = version(&group.attributes);
    if let Some(version) = version.as_deref().filter(|version| !["0.1.0", "0.2.0"].contains(version)) {
        let found = format!("{version:?}: read as 0.2.0");
        frame.report(&rules::VERSION, found);
    }
    let mut columns = frame.columns();
    let rows = datasets::of_one_length(&mut columns, &rules::LENGTHS, false, &mut frame.findings);
    let roles = roles(group);
    let servants = group.links.iter().filter(|link| roles.get(&link.name) == Some(&Role::Servant));
    Table {
        revision: format!("dataframe {}", version.as_deref().unwrap_or("without version")),
        rows,
        attributes: group.attributes.clone(),
        columns: columns.into_iter().map(|column| column.with_missing_nan(site.file)).collect(),
        categories: frame.categories,
        labels_differ: Some(&rules::LABELS_TWICE),
        servants: servants.map(|link| link.name.clone()).collect(),
        findings: frame.findings,
        ..Table::empty(site.path, Anndata.about().name)
    }
}

/// Opens the row labels of a data frame. `None`: it has none that can be read.
pub(super) fn label(site: &Site<'_>, group: &Group, interrupt: &Interrupt) -> Option<Column> {
    let name = text(&group.attributes, INDEX)?;
    let opener = ElementOpener { file: site.file, interrupt };
    let mut frame = Frame { site, group, opener, categories: Vec::new(), findings: Vec::new() };
    // Codes cannot label rows here: their categories belong to the other frame.
    frame.column(&name.into(), true).filter(|column| column.categories.is_none())
}

/// The rows of a data frame as compounds, and the oddities of its columns by path.
pub(super) type Compounds = (Arc<dyn Rows>, Vec<(String, Arc<Tally>)>);

/// Opens the columns of a data frame except its row labels, joined into compounds. `None`: the frame has only row
/// labels.
///
/// # Errors
/// Why the columns cannot be read as compounds.
pub(super) fn compounds(
    site: &Site<'_>,
    group: &Group,
    interrupt: &Interrupt,
) -> Result<Option<Compounds>, Unreadable> {
    let opener = ElementOpener { file: site.file, interrupt };
    let mut frame = Frame { site, group, opener, categories: Vec::new(), findings: Vec::new() };
    let mut columns = frame.columns();
    if columns.iter().all(|column| column.is_label) {
        return Ok(None);
    }
    datasets::of_one_length(&mut columns, &rules::LENGTHS, false, &mut frame.findings);
    columns.retain(|column| !column.is_label && column.in_table);
    let below = columns.iter().map(|column| (column.path.clone(), column.tally.clone())).collect();
    let fields = columns.into_iter().filter_map(|column| Some((column.name.to_string(), column.rows.ok()?)));
    Ok(Some((Arc::new(CompoundRows::new(site.path.to_owned(), fields.collect())?), below)))
}

/// A data frame whose columns are being made.
struct Frame<'a> {
    site: &'a Site<'a>,
    group: &'a Group,
    opener: ElementOpener<'a>,
    categories: Vec<Categories>,
    findings: Vec<Finding>,
}

impl Frame<'_> {
    fn report(&mut self, rule: &'static Rule, found: impl Into<String>) {
        self.findings.push(Finding::new(self.site.path, rule, found));
    }

    /// Makes the columns: row labels, then the listed ones, then those that the list leaves out.
    fn columns(&mut self) -> Vec<Column> {
        let label = text(&self.group.attributes, INDEX).map(BString::from);
        if label.is_none() {
            self.report(&rules::INDEX, "there is no such attribute");
        }
        let listed = listed(self.group);
        if listed.is_none() {
            self.report(&rules::ORDER, "there is no list; columns are shown in link order");
        }
        let mut names: Vec<BString> = label.iter().cloned().chain(listed.iter().flatten().cloned()).collect();
        let mut seen = HashSet::new();
        names.retain(|name| seen.insert(name.clone()));
        let roles = roles(self.group);
        let links = self.group.links.iter().map(|link| &link.name);
        let mut others: Vec<BString> = links.filter(|name| roles.get(*name) == Some(&Role::Column)).cloned().collect();
        others.retain(|name| seen.insert(name.clone()));
        if listed.is_some() && !others.is_empty() {
            let first = others.iter().take(8).map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let found = format!("{} that are not listed: {first}", others.len());
            self.report(&rules::ORDER_LACKS, found);
        }
        names.extend(others);
        names.into_iter().filter_map(|name| self.column(&name, label.as_ref() == Some(&name))).collect()
    }

    /// Looks up the object of a column. A name with slashes is a path through groups.
    fn object(&self, name: &BString) -> Result<Object, Unreadable> {
        let mut parts = name.split_str("/");
        if parts.clone().count() > MOST_PARTS {
            return Err(format!("a name of more than {MOST_PARTS} parts").into());
        }
        let member = |group: &Group, part: &[u8]| {
            group.link(part).and_then(|link| link.target.object()).cloned().ok_or("there is no such member")
        };
        let mut object = member(self.group, parts.next().unwrap_or_default())?;
        for part in parts {
            object = member(&self.opener.group(&object)?, part)?;
        }
        Ok(object)
    }

    /// Makes the column with this name. `None`: there is no such member, or it is a dataset that is not of rank 1.
    fn column(&mut self, name: &BString, is_label: bool) -> Option<Column> {
        let path = join(self.site.path, name);
        let tally = Arc::<Tally>::default();
        let object = match self.object(name) {
            Ok(object) => object,
            Err(reason) => {
                self.report(&rules::NAMES, format!("{name}: {reason}"));
                return None;
            }
        };
        let opened = self.opener.element(&path, &object, &tally);
        if let Err(reason) = &opened {
            let rule = &rules::COLUMN;
            self.findings.push(Finding::new(&path, rule, reason.clone()));
            // A dataset of another rank is shown by itself.
            if matches!(&object, Object::Dataset(dataset) if dataset.shape.len() != 1 || dataset.null) {
                return None;
            }
        }
        let attributes = object.attributes().into();
        let id = ColumnId::whole(object.id());
        let AnndataElement { rows, dataset, categories, finding, is_whole } = match opened {
            Ok(element) => element,
            Err(reason) => {
                return Some(Column {
                    is_label,
                    attributes,
                    ..Column::new(name.clone(), path, id, Err(reason), tally)
                });
            }
        };
        self.findings.extend(finding.map(|(rule, found)| Finding::new(&path, rule, found)));
        let stored_strings = datasets::stored_strings(self.site.file, &path, &dataset, u64::MAX);
        let categories = categories.map(|labels| {
            self.categories.push(labels);
            self.categories.len() - 1
        });
        let is_masked = categories.is_none() && matches!(object, Object::Group { .. });
        // The member `_index` is anndata's name for row labels that have no name of their own.
        let called = if is_label && name == INDEX { OriginalName::Nothing } else { OriginalName::Name };
        Some(Column {
            is_label,
            in_table: is_whole,
            stored_strings,
            categories,
            attributes,
            dataset: Some(dataset),
            meaning: Meaning { origin: Origin { called, is_masked, ..Origin::default() }, ..Meaning::default() },
            ..Column::new(name.clone(), path, id, Ok(rows), tally)
        })
    }
}
