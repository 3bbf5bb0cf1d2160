//! Tables kept in one dataset of rank 1 whose elements are compounds: those of PyTables and of the HDF5 table API
//! (H5TB), and structured arrays, as h5py and many others write them. Each field is a column.
//!
//! | module | what it does |
//! | --- | --- |
//! | `recognition` | tells such a dataset, what wrote it, and the groups that serve it |
//! | `reading` | what stored bytes mean to who wrote them |
//! | `fields` | makes the columns |
//!
//! No value is missing: a fill value is what new rows begin with, in all of these.

mod fields;
mod reading;
mod recognition;

use std::sync::Arc;

pub(super) use self::fields::{distinct, part_of, rows_of_part};
pub(super) use self::reading::{in_order, read_as};
pub(super) use self::recognition::{System, is_record};
use super::attributes::{integer, text, unsigned};
use super::{Claims, Dialect, Here, Mark, Of, Role, Site, Subject, datasets};
use crate::catalogue::{Dataset, attribute};
use crate::source::Interrupt;
use crate::store::{DatasetRows, Rows};
use crate::table::{Finding, Table};

/// The dialect.
#[derive(Debug)]
pub struct Compound;

impl Dialect for Compound {
    fn name(&self) -> &'static str {
        "structured array"
    }

    fn mark(&self, path: &str, object: Subject<'_>) -> Mark {
        match object {
            // What serves a table lies beside it.
            Subject::Group(_) => Mark::LookInside,
            Subject::Dataset(dataset) => recognition::mark(path, dataset),
        }
    }

    fn claims(&self, here: &Here<'_>) -> Claims {
        let servants = recognition::servants(here.group).map(|name| (name.clone(), Role::Servant)).collect();
        Claims { members: servants, ..Claims::default() }
    }

    fn open(&self, site: &Site<'_>, interrupt: &Interrupt) -> Table {
        match site.of {
            Of::Dataset(dataset) => table(site, dataset, interrupt),
            // It marks and makes up nothing else.
            Of::Group(_) | Of::Made { .. } => Table::empty(site.path, self.name()),
        }
    }
}

fn table(site: &Site<'_>, dataset: &Arc<Dataset>, interrupt: &Interrupt) -> Table {
    let system = System::of(site.file, dataset, interrupt);
    let rows = dataset.shape.first().copied().unwrap_or(0);
    let mut findings = Vec::new();
    let columns = fields::columns(site, dataset, system, &mut findings);
    if attribute(&dataset.attributes, "NROWS").is_some() && unsigned(&dataset.attributes, "NROWS") != Some(rows) {
        let stated = integer(&dataset.attributes, "NROWS").map_or("no number".to_owned(), |stated| stated.to_string());
        let found = format!("{rows} rows, NROWS is {stated}");
        findings.push(Finding::new(site.path, "PyTables: NROWS is the number of rows", found));
    }
    // Opened for itself: a reader of whole rows is none of the columns.
    let read = part_of(dataset, &read_as(&dataset.datatype, system), dataset.fill.clone());
    let whole = datasets::open(site.file, site.path, &read).ok();
    Table {
        revision: text(&dataset.attributes, "VERSION").filter(|_| system.is_declared).unwrap_or_default(),
        rows,
        attributes: dataset.attributes.clone(),
        columns: columns.into_iter().map(|column| column.observed(site.file)).collect(),
        whole: whole.map(|opened| Arc::new(DatasetRows::plain(opened, rows)) as Arc<dyn Rows>),
        findings,
        ..Table::empty(site.path, system.name())
    }
}
