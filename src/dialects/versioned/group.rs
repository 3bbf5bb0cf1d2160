//! Makes the tables of groups in a version: a group that holds nothing but arrays of rank 1 and of one length is a
//! table.

use std::sync::Arc;

use bstr::BString;

use super::history::{self, VersionsGroup};
use super::rules;
use super::{BELOW, CHANGES, STORE, Versioned, finding};
use crate::catalogue::{Class, Dataset, Group, Layout, Link, join};
use crate::dialects::arrays;
use crate::dialects::compound::is_record;
use crate::dialects::{Claims, Dialect, Here, Role, Site};
use crate::table::{Finding, Table};

/// Finds the columns of a group. `None`: the group is not a table.
fn columns(group: &Group) -> Option<Vec<(&BString, &Arc<Dataset>)>> {
    let columns = group.links.iter().map(|link| {
        let dataset = link.target.dataset()?;
        let is_column = dataset.shape.len() == 1 && !dataset.null && !is_record(dataset);
        is_column.then_some((&link.name, dataset))
    });
    let columns: Vec<_> = columns.collect::<Option<_>>()?;
    let (_, first) = columns.first()?;
    columns.iter().all(|(_, dataset)| dataset.shape == first.shape).then_some(columns)
}

/// Makes the claims on a group in a version, with findings on datasets that may hold another version's data.
pub(super) fn claims(here: &Here<'_>) -> Claims {
    let Some(kept) = VersionsGroup::in_file(here.file, here.interrupt) else { return Claims::default() };
    let is_version = here.path.strip_prefix(BELOW).is_some_and(|below| !below.contains('/'));
    let changes = is_version.then_some(CHANGES);
    let mut claims = Claims { is_final: true, changes, ..Claims::default() };
    if let Some(columns) = columns(here.group) {
        claims.is_table = true;
        claims.members = columns.into_iter().map(|(name, _)| (name.clone(), Role::Column)).collect();
    }
    claims.findings = here.group.links.iter().filter_map(|link| misplaced(here.path, link)).collect();
    let data_version = kept.data_version();
    let mut doubtful = doubtful(here.group, data_version).peekable();
    if doubtful.peek().is_some() && history::has_others(here.file, &kept, here.path, here.interrupt) {
        let found = format!("it is {data_version}: may hold chunks of another version");
        claims
            .findings
            .extend(doubtful.map(|name| finding(join(here.path, name), &rules::DATA_VERSION, found.clone())));
    }
    claims
}

/// Makes a finding on a dataset that is not mapped from its `raw_data`. One without elements is exempt.
fn misplaced(above: &str, link: &Link) -> Option<Finding> {
    let (path, dataset) = (join(above, &link.name), link.target.dataset()?);
    let (_, below) = path.strip_prefix(BELOW)?.split_once('/')?;
    let (raw_data, rule) = (format!("/{STORE}/{below}/raw_data"), &rules::RAW_DATA);
    let found = match &dataset.layout {
        Layout::Virtual { sources } => {
            let other = sources.iter().find(|source| source.file != "." || source.dataset != raw_data.as_str())?;
            format!("it maps {:?} of {:?}", other.dataset.to_string(), other.file.to_string())
        }
        _ if dataset.is_empty() => return None,
        _ => "it is not virtual".to_owned(),
    };
    Some(finding(path, rule, found))
}

/// Finds the datasets that the library may have confused with those of other versions, according to the file's
/// `data_version`.
fn doubtful(group: &Group, data_version: i128) -> impl Iterator<Item = &BString> {
    group.links.iter().filter_map(move |link| {
        let dataset = link.target.dataset()?;
        let is_doubtful = match data_version {
            1 | 3 => matches!(dataset.datatype.class, Class::VariableString { .. }),
            2 => true,
            _ => false,
        };
        is_doubtful.then_some(&link.name)
    })
}

/// Makes the table of a group.
pub(super) fn table(site: &Site<'_>, group: &Group) -> Table {
    let found = columns(group).unwrap_or_default();
    let rows = found.first().and_then(|(_, dataset)| dataset.shape.first()).copied().unwrap_or(0);
    let columns =
        found.into_iter().map(|(name, dataset)| arrays::column(site.file, &join(site.path, name), name, dataset));
    Table {
        rows,
        attributes: group.attributes.clone(),
        columns: columns.collect(),
        ..Table::empty(site.path, Versioned.about().name)
    }
}
