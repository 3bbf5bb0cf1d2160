//! Makes the table of a group that is declared a table.

use std::collections::HashSet;
use std::sync::Arc;

use bstr::BString;

use super::columns::{ColumnOpener, OpenedColumn, kind};
use super::datatype::Lh5Datatype;
use super::rules;
use super::{Lh5, listed};
use crate::catalogue::{ColumnId, Group, Object, join};
use crate::dialects::attributes::text;
use crate::dialects::{Dialect, Site, datasets};
use crate::source::Interrupt;
use crate::store::Tally;
use crate::table::{Column, Finding, Meaning, Table};

/// Makes the table of a group whose attribute declares it a table.
pub(super) fn table(site: &Site<'_>, group: &Group, interrupt: &Interrupt) -> Table {
    let mut opener = ColumnOpener { file: site.file, interrupt, findings: Vec::new(), nested: 0 };
    let names = listed(&group.attributes).unwrap_or_default();
    let mut findings = Vec::new();
    let mut columns = Vec::with_capacity(names.len());
    let mut seen = HashSet::new();
    for name in names.iter().filter(|name| seen.insert(*name)) {
        match group.link(name).and_then(|link| link.target.object()) {
            Some(object) => columns.extend(column(site, &mut opener, name, object)),
            None => {
                let rule = &rules::MEMBERS;
                findings.push(Finding::new(site.path, rule, format!("{name}: there is no such member")));
            }
        }
    }
    let unlisted: Vec<_> = group.links.iter().map(|link| &link.name).filter(|name| !seen.contains(name)).collect();
    if let Some(first) = unlisted.first() {
        let found = format!("{} that are not, such as {first}: shown by themselves", unlisted.len());
        findings.push(Finding::new(site.path, &rules::MEMBERS_LACK, found));
    }
    let rows = datasets::commonest(columns.iter().filter_map(|column| Some(column.rows.as_ref().ok()?.len())));
    let rows = rows.unwrap_or(0);
    for column in &mut columns {
        let Ok(length) = column.rows.as_ref().map(|rows| rows.len()) else { continue };
        if length != rows {
            column.in_table = false;
            let found = format!("{length} rows, the table has {rows}");
            findings.push(Finding::new(&column.path, &rules::LENGTHS, found));
        }
    }
    findings.append(&mut opener.findings);
    Table {
        revision: "table".into(),
        rows,
        attributes: group.attributes.clone(),
        columns,
        findings,
        ..Table::empty(site.path, Lh5.about().name)
    }
}

/// Makes a column. `None`: the object is not a column, but a scalar, a struct, or a table without columns.
fn column(site: &Site<'_>, opener: &mut ColumnOpener<'_>, name: &BString, object: &Object) -> Option<Column> {
    let path = join(site.path, name);
    let kind = kind(object).filter(|_| matches!(object, Object::Group { .. }));
    if kind == Some(Lh5Datatype::Table(Vec::new())) {
        return None;
    }
    let tally = Arc::<Tally>::default();
    let opened = opener.column(&path, object, &tally, 0);
    if let Err(reason) = &opened {
        let rule = &rules::COLUMN;
        opener.findings.push(Finding::new(&path, rule, reason.clone()));
        let is_scalar = matches!(object, Object::Dataset(dataset) if dataset.shape.is_empty());
        if is_scalar || matches!(kind, Some(Lh5Datatype::Struct(_))) {
            return None;
        }
    }
    let (rows, dataset, below, tallies) = match opened {
        Ok(OpenedColumn { rows, dataset, below, tallies }) => (Ok(rows), dataset, below, tallies),
        Err(reason) => (Err(reason), None, Arc::default(), Vec::new()),
    };
    let [units, description] =
        ["units", "description"].map(|what| text(object.attributes(), what).or_else(|| text(&below, what)));
    let stored_strings = match object {
        Object::Dataset(dataset) => datasets::stored_strings(site.file, &path, dataset, u64::MAX),
        _ => None,
    };
    Some(Column {
        in_table: rows.is_ok(),
        below: tallies,
        stored_strings,
        attributes: object.attributes().into(),
        dataset,
        meaning: Meaning { units, description, ..Meaning::default() },
        ..Column::new(name.clone(), path, ColumnId::whole(object.id()), rows, tally)
    })
}
