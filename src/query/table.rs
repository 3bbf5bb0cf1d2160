//! A table of selected rows.

use std::sync::Arc;

use super::rows::SelectedRows;
use super::selection::Selected;
use crate::store::Rows;
use crate::table::{Column, Table};

/// The rows of a table that were selected, with all of its columns that have as many rows as the table. `what` says of the
/// selection how it was asked for. Search indexes speak of other rows and are left out, and so are own statistics.
pub fn filtered(table: &Table, selected: &Arc<Selected>, what: &str) -> Table {
    let rows_of = |rows: &Arc<dyn Rows>| Arc::new(SelectedRows::new(rows.clone(), selected.clone())) as Arc<dyn Rows>;
    let column = |column: &Column| Column {
        rows: column.rows.as_ref().map(rows_of).map_err(Clone::clone),
        stored_strings: column.stored_strings.as_ref().map(rows_of),
        learner: None,
        ..column.clone()
    };
    Table {
        path: table.path.clone(),
        selection: Some(what.to_owned()),
        dialect: table.dialect,
        revision: table.revision.clone(),
        rows: selected.len(),
        attributes: table.attributes.clone(),
        columns: table.columns.iter().filter(|column| column.in_table).map(column).collect(),
        categories: table.categories.clone(),
        indexes: Vec::new(),
        servants: Vec::new(),
        findings: table.findings.clone(),
    }
}
