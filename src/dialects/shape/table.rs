//! Makes the table of a row set.

use std::sync::Arc;

use bstr::BString;

use super::rule::{self, Shapes};
use crate::catalogue::{Dataset, Group, join};
use crate::dialects::{Site, arrays};
use crate::table::{Column, Table};

/// Makes the table of those members of a group that have this many rows.
pub(super) fn table(site: &Site<'_>, group: &Group, shapes: &Shapes<'_>, rows: u64, is_loose: bool) -> Table {
    Table {
        revision: format!("rule {}{}", rule::VERSION, if is_loose { ", loose" } else { "" }),
        recognised_by: "shape",
        only_adds: true,
        rows,
        attributes: group.attributes.clone(),
        columns: shapes.columns(rows).map(|(name, dataset)| column(site, name, dataset)).collect(),
        ..Table::empty(site.path, super::NAME)
    }
}

fn column(site: &Site<'_>, name: &BString, dataset: &Arc<Dataset>) -> Column {
    arrays::column_by_fill(site.file, &join(site.path, name), name, dataset)
}
