//! Makes the table of an array of structs, in which each field is a dataset of references, one for each struct.

use std::sync::Arc;

use super::cells::CellReader;
use super::{CLASS, Field, Matlab, VECTOR, in_order, rules};
use crate::catalogue::{ColumnId, Group, attribute, join};
use crate::dialects::{Checks, Dialect, Here, Of, Site};
use crate::source::Interrupt;
use crate::table::{Column, Finding, Table};

/// Finds the fields of an array of structs, in its order: datasets of references, all of one shape, that state no
/// class. `None`: the group is a single struct.
pub(super) fn fields(group: &Group) -> Option<Vec<Field<'_>>> {
    let mut fields = Vec::new();
    for link in &group.links {
        let dataset = link.target.dataset()?;
        let is_field = dataset.datatype.is_reference() && attribute(&dataset.attributes, CLASS).is_none();
        if !is_field || dataset.null || dataset.len().is_none_or(|count| count < 2) {
            return None;
        }
        fields.push(Field { name: &link.name, dataset, is_cell: false });
    }
    let shape = &fields.first()?.dataset.shape;
    if fields.iter().any(|field| field.dataset.shape != *shape) {
        return None;
    }
    in_order(group, &mut fields);
    Some(fields)
}

/// Whether a group is an array of structs whose first struct has a number or a text.
pub(super) fn have_values(here: &Here<'_>) -> bool {
    let Some(fields) = fields(here.group) else { return false };
    let of = Of::Group(here.group);
    let site = Site { file: here.file, path: here.path, of, servant: None, checks: Checks::default() };
    let mut cells = CellReader::new(&site, here.interrupt);
    fields.iter().any(|field| cells.values(&join(here.path, field.name), field.dataset, 1).is_ok())
}

/// Makes the table of an array of structs: a row for each struct, in MATLAB's order.
pub(super) fn table(site: &Site<'_>, group: &Group, fields: Vec<Field<'_>>, interrupt: &Interrupt) -> Table {
    let rows = fields.first().and_then(|field| field.dataset.len()).unwrap_or(0);
    let (mut findings, mut cells) = (Vec::new(), CellReader::new(site, interrupt));
    let columns = fields.into_iter().filter_map(|Field { name, dataset, .. }| {
        let path = join(site.path, name);
        match cells.values(&path, dataset, u64::MAX) {
            Ok(values) => {
                // A column of targets is not the column of references.
                let id = ColumnId { object: dataset.id, field: VECTOR };
                let dataset = Some(dataset.clone());
                Some(Column { dataset, ..Column::new(name.clone(), path, id, Ok(values), Arc::default()) })
            }
            Err(reason) => {
                findings.push(Finding::new(&path, &rules::FIELDS, reason));
                None
            }
        }
    });
    let columns = columns.collect();
    let attributes = group.attributes.clone();
    Table {
        revision: "array of structs".into(),
        rows,
        attributes,
        columns,
        findings,
        ..Table::empty(site.path, Matlab.about().name)
    }
}
