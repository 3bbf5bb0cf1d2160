//! A table of selected rows.

use std::sync::Arc;

use super::Selected;
use super::rows::SelectedRows;
use crate::store::Rows;
use crate::table::Table;

/// Returns a table to select from: without columns of another length, and without search indexes, which cover other
/// rows. `what` describes the selection.
pub fn selectable(table: &Table, what: &str) -> Table {
    Table {
        path: table.path.clone(),
        selection: Some(what.to_owned()),
        dialect: table.dialect,
        recognised_by: table.recognised_by,
        revision: table.revision.clone(),
        rows: table.rows,
        // Selected rows of a column are shown only here.
        only_adds: false,
        repeats: table.repeats,
        is_held: table.is_held,
        attributes: table.attributes.clone(),
        columns: table.columns.iter().filter(|column| column.in_table).cloned().collect(),
        whole: table.whole.clone(),
        categories: table.categories.clone(),
        indexes: Vec::new(),
        servants: Vec::new(),
        left_out: Vec::new(),
        findings: table.findings.clone(),
        judged_by: table.judged_by,
        labels_differ: table.labels_differ,
        rule_of: table.rule_of,
        storage: table.storage.clone(),
    }
}

/// Returns a table of the selected rows, without statistics: those cover all rows.
pub fn filtered(table: &Table, selected: &Arc<Selected>, what: &str) -> Table {
    let rows_of = |rows: &Arc<dyn Rows>| Arc::new(SelectedRows::new(rows.clone(), selected.clone())) as Arc<dyn Rows>;
    let mut filtered = selectable(table, what);
    filtered.rows = selected.len();
    filtered.whole = table.whole.as_ref().map(rows_of);
    for column in &mut filtered.columns {
        column.rows = column.rows.as_ref().map(rows_of).map_err(Clone::clone);
        column.stored_strings = column.stored_strings.as_ref().map(rows_of);
        column.learner = None;
    }
    filtered
}
