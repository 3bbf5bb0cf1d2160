//! Makes the table of the counted molecules (`molecule_info.h5`), whose columns lie side by side at the root.

use std::sync::Arc;

use super::matrix::{identifiers, labels};
use super::rules;
use super::{FEATURES, Named, column, length, of_length};
use crate::catalogue::{ColumnId, Group, Object, join};
use crate::dialects::{Site, datasets};
use crate::source::Interrupt;
use crate::store::Tally;
use crate::table::{Categories, CategoryRows, Column, Finding, Table, Unreadable};

/// The columns by which such a file is recognised, in version 3 and before that.
const KNOWN: [[&str; 4]; 2] = [["barcode_idx", "feature_idx", "umi", "count"], ["barcode", "gem_group", "gene", "umi"]];

/// The columns of numbers that have labels, the name for the column of these labels, and the dataset that holds them.
const LABELLED: [(&str, &str, &str); 3] =
    [("barcode_idx", "barcode", "barcodes"), ("feature_idx", "feature", FEATURES), ("gene", "gene_id", "gene_ids")];

/// Finds the columns of the root group; none if it holds no molecules.
pub(super) fn columns(group: &Group) -> Vec<Named<'_>> {
    let columns = KNOWN.iter().find_map(|known| {
        let count = length(group, known[0])?;
        let are_there = known.iter().all(|name| length(group, name) == Some(count));
        are_there.then(|| of_length(group, Some(count), known))
    });
    columns.unwrap_or_default()
}

/// Makes the table of the root group: its columns, then the columns of labels for those of numbers.
pub(super) fn table(site: &Site<'_>, group: &Group, interrupt: &Interrupt) -> Table {
    let found = columns(group);
    let mut columns: Vec<Column> = found.iter().map(|(name, dataset)| column(site, name, name, dataset)).collect();
    let (mut categories, mut findings) = (Vec::new(), Vec::new());
    for (numbers, name, of) in LABELLED {
        let Some(numbers) = columns.iter().find(|column| column.name == numbers) else { continue };
        match named(site, group, numbers, (name, of), interrupt) {
            Ok((column, labels)) => {
                categories.push(labels);
                columns.push(Column { categories: Some(categories.len() - 1), ..column });
            }
            Err(reason) => {
                let rule = &rules::MOLECULES;
                findings.push(Finding::new(&numbers.path, rule, format!("{of}: {reason}")));
            }
        }
    }
    datasets::tell_apart(&mut columns);
    let table = super::table(site.path.to_owned(), "molecules", columns);
    Table { attributes: group.attributes.clone(), categories, findings, ..table }
}

/// Makes the column of the labels that the numbers in a column stand for. Also returns the label set.
fn named(
    site: &Site<'_>,
    group: &Group,
    numbers: &Column,
    (name, of): (&str, &str),
    interrupt: &Interrupt,
) -> Result<(Column, Categories), Unreadable> {
    let path = join(site.path, of.as_bytes());
    let labels = match group.link(of.as_bytes()).and_then(|link| link.target.object()) {
        Some(Object::Group { id, .. }) => identifiers(site, &path, *id, interrupt)?,
        _ => labels(site, path, datasets::member(group, of)?),
    };
    let (rows, known) = (numbers.rows.clone()?, labels.labels.clone()?);
    if !rows.data_type().is_integer() {
        return Err(format!("numbers of type {}", rows.data_type()).into());
    }
    let (path, tally) = (join(site.path, name.as_bytes()), Arc::<Tally>::default());
    let rows = Arc::new(CategoryRows::new(path.clone(), rows, known, tally.clone()));
    let id = ColumnId { field: 1, ..numbers.id };
    Ok((Column::new(name.into(), path, id, Ok(rows), tally), labels))
}
