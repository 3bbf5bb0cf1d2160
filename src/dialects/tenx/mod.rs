//! 10x Genomics (Cell Ranger, Space Ranger and compatible software): counts of features in barcodes.
//!
//! ```text
//! /matrix       barcodes data indices indptr shape features/     version 3
//! /GENOME       barcodes data indices indptr shape genes gene_names     before
//! /             barcode_idx feature_idx umi count … barcodes features/     molecules
//! ```
//!
//! No attribute marks an object: names, ranks and lengths decide. A fill value is an ordinary value; only the attribute
//! `_FillValue` can make values missing.
//!
//! | module | what it does |
//! | --- | --- |
//! | `matrix` | makes the tables of a matrix: counts, barcodes, genes |
//! | `molecules` | makes the table of the counted molecules |

mod matrix;
mod molecules;
mod rules;

use std::collections::HashMap;
use std::sync::Arc;

use bstr::BString;

use self::matrix::Matrix;
use super::{About, Claims, Dialect, Here, ListedObject, Made, Mark, Of, Role, Site, arrays, datasets};
use crate::catalogue::{Dataset, Group, join};
use crate::source::Interrupt;
use crate::table::{Column, Table};

/// Name of the directory of a matrix's tables.
const TABLES: &str = "tables";

/// Name of the group of the features that are counted.
const FEATURES: &str = "features";

/// The columns of every group of features; the first labels rows.
const OF_FEATURES: [&str; 3] = ["id", "name", "feature_type"];

/// The member of a group of features that describes its other members.
const TAGS: &str = "_all_tag_keys";

/// The 10x Genomics dialect.
#[derive(Debug)]
pub struct TenX;

static ABOUT: About = About { rules: rules::ALL, ..About::named("10x Genomics") };

impl Dialect for TenX {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn mark(&self, _: &str, object: ListedObject<'_>) -> Mark {
        match object {
            ListedObject::Group(_) => Mark::LookInside,
            ListedObject::Dataset(_) => Mark::No,
        }
    }

    fn claims(&self, here: &Here<'_>) -> Claims {
        if let Some(matrix) = Matrix::of(here.group) {
            // The parts of the matrix are also shown by themselves.
            let tables = matrix.tables().iter().map(|key| {
                let table = Made::Directory { table: Some((*key).into()), children: [].into() };
                (BString::from(*key), table)
            });
            let tables = Made::Directory { table: None, children: tables.collect() };
            return Claims { made: vec![(TABLES.into(), tables)], ..Claims::default() };
        }
        let columns = if here.path == "/" { molecules::columns(here.group) } else { features(here.path, here.group) };
        let members: HashMap<_, _> = columns.into_iter().map(|(name, _)| (name.clone(), Role::Column)).collect();
        Claims { is_table: !members.is_empty(), members, ..Claims::default() }
    }

    fn open(&self, site: &Site<'_>, interrupt: &Interrupt) -> Table {
        match site.of {
            Of::Made { group, key, .. } => match Matrix::of(group) {
                Some(matrix) => matrix.table(site, key, interrupt),
                None => Table::empty(site.path, self.about().name),
            },
            Of::Group(group) if site.path == "/" => molecules::table(site, group, interrupt),
            Of::Group(group) => {
                let columns = features(site.path, group).into_iter().enumerate().map(|(at, (name, dataset))| {
                    let column = column(site, name, name, dataset);
                    Column { is_label: at == 0, ..column }
                });
                table(site.path.to_owned(), FEATURES, columns.collect())
            }
            Of::Dataset(_) => Table::empty(site.path, self.about().name),
        }
    }
}

/// A dataset in a group, with its name.
type Named<'a> = (&'a BString, &'a Arc<Dataset>);

/// Finds the datasets of rank 1 and of this length in a group. Those called as in `first` come first.
fn of_length<'a>(group: &'a Group, length: Option<u64>, first: &'a [&str]) -> Vec<Named<'a>> {
    let columns = group.datasets().filter(|(_, dataset)| !dataset.null && dataset.shape.len() == 1);
    let mut columns: Vec<_> = columns.filter(|(_, dataset)| dataset.shape.first().copied() == length).collect();
    columns.sort_by_key(|(name, _)| first.iter().position(|one| *name == one).unwrap_or(first.len()));
    columns
}

/// Finds the columns of a group of features, the identifiers first; none in any other group.
fn features<'a>(path: &str, group: &'a Group) -> Vec<Named<'a>> {
    let count = length(group, OF_FEATURES[0]);
    if !path.ends_with("/features") || count.is_none() || OF_FEATURES.iter().any(|name| length(group, name) != count) {
        return Vec::new();
    }
    let mut columns = of_length(group, count, &OF_FEATURES);
    columns.retain(|(name, _)| *name != TAGS);
    columns
}

/// Length of a dataset of rank 1 in a group.
fn length(group: &Group, name: &str) -> Option<u64> {
    datasets::of_rank(group, name, 1)?.shape.first().copied()
}

/// Opens a dataset of the group as a column named `shown`.
fn column(site: &Site<'_>, shown: &BString, name: &BString, dataset: &Arc<Dataset>) -> Column {
    arrays::column(site.file, &join(site.path, name), shown, dataset)
}

/// Makes a table of columns that have one length.
fn table(path: String, revision: &str, columns: Vec<Column>) -> Table {
    let rows = columns.iter().find_map(|column| Some(column.rows.as_ref().ok()?.len()));
    Table { revision: revision.into(), rows: rows.unwrap_or(0), columns, ..Table::empty(&path, TenX.about().name) }
}
