//! Tables kept in one dataset of rank 1 whose elements are compounds: those of PyTables and of the HDF5 table API
//! (H5TB), and structured arrays, as h5py and many other libraries write them. Each field is a column.
//!
//! | module | what it does |
//! | --- | --- |
//! | `recognition` | recognises such a dataset, its producer, and the groups that serve it |
//! | `reading` | interprets stored types as their producer means them |
//! | `fields` | makes the columns |
//! | `indexes` | lists the search indexes of a table |
//! | `astropy` | reads astropy's descriptions of columns |
//!
//! A fill value is an ordinary value, with which all of these libraries begin new rows. A value is missing if it equals
//! the attribute `FIELD_n_ATTR__FillValue`, if astropy's mask hides it, or if it is `NaT` of NumPy.

mod astropy;
mod fields;
mod indexes;
mod reading;
mod recognition;
mod rules;

use std::sync::Arc;

use bstr::ByteSlice;

pub(super) use self::fields::rows_of_part;
pub(super) use self::indexes::{Covered, Indexed};
pub(super) use self::reading::{in_order, part_of, read_as};
use self::recognition::INDEXES_OF;
pub(super) use self::recognition::{System, is_record};
use super::attributes::{integer, text, unsigned};
use super::{About, Claims, Dialect, Here, ListedObject, Mark, Of, Role, Site, datasets};
use crate::catalogue::{Dataset, attribute, join};
use crate::source::Interrupt;
use crate::store::{DatasetRows, Nan, Rows};
use crate::table::{Finding, Table};

/// The dialect of compounds.
#[derive(Debug)]
pub struct Compound;

static ABOUT: About = About { rules: rules::ALL, ..About::named("structured array") };

impl Dialect for Compound {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn mark(&self, path: &str, object: ListedObject<'_>) -> Mark {
        match object {
            // The objects that serve a table lie beside it in the group.
            ListedObject::Group(_) => Mark::LookInside,
            ListedObject::Dataset(dataset) => recognition::mark(path, dataset),
        }
    }

    fn claims(&self, here: &Here<'_>) -> Claims {
        let mut claims = Claims::default();
        for (name, id, table) in recognition::servants(here.group) {
            claims.members.insert(name.clone(), Role::Servant);
            claims.serving.insert(table.into(), id);
        }
        for (id, table) in recognition::descriptions(here.group) {
            claims.serving.entry(table.into()).or_insert(id);
        }
        claims
    }

    fn open(&self, site: &Site<'_>, interrupt: &Interrupt) -> Table {
        match site.of {
            Of::Dataset(dataset) => table(site, dataset, Nan::Value, interrupt),
            // This dialect claims only datasets.
            Of::Group(_) | Of::Made { .. } => Table::empty(site.path, self.about().name),
        }
    }
}

/// Makes the table of a dataset of compounds; `nan` says what NaN means to its producer.
pub(super) fn table(site: &Site<'_>, dataset: &Arc<Dataset>, nan: Nan, interrupt: &Interrupt) -> Table {
    let system = System::of(site.file, dataset, interrupt);
    let rows = dataset.shape.first().copied().unwrap_or(0);
    let mut findings = Vec::new();
    let mut columns = fields::columns(site, dataset, system, &mut findings);
    if !system.by_pytables {
        let mut said = astropy::of_table(site, dataset, interrupt);
        for column in &mut columns {
            let Some(said) = column.name.to_str().ok().and_then(|name| said.remove(name)) else { continue };
            column.meaning.units = column.meaning.units.take().or(said.unit);
            column.meaning.description = column.meaning.description.take().or(said.description);
        }
    }
    if attribute(&dataset.attributes, "NROWS").is_some() && unsigned(&dataset.attributes, "NROWS") != Some(rows) {
        let stated = integer(&dataset.attributes, "NROWS").map_or("no number".to_owned(), |stated| stated.to_string());
        let found = format!("{rows} rows, NROWS is {stated}");
        findings.push(Finding::new(site.path, &rules::ROWS, found));
    }
    // Opened once more: readers of whole rows must not disturb the reading ahead of columns.
    let read = part_of(dataset, &read_as(&dataset.datatype, system), dataset.fill.clone());
    let whole = datasets::open(site.file, site.path, &read).ok();
    if nan != Nan::Value {
        columns = columns.into_iter().map(|column| column.with_missing_nan(site.file)).collect();
    }
    let indexes = site.servant.filter(|_| system.by_pytables).map(|group| {
        let (folder, name) = site.path.rsplit_once('/').unwrap_or_default();
        let path = join(folder, &[INDEXES_OF, name.as_bytes()].concat());
        Indexed { site, dataset, find: &|names| fields::covered(site, dataset, system, &columns, names), interrupt }
            .all(&path, group, &mut findings)
    });
    Table {
        revision: text(&dataset.attributes, "VERSION").filter(|_| system.is_declared).unwrap_or_default(),
        rows,
        attributes: dataset.attributes.clone(),
        columns,
        indexes: indexes.unwrap_or_default(),
        whole: whole.map(|opened| Arc::new(DatasetRows::plain(opened, rows)) as Arc<dyn Rows>),
        findings,
        ..Table::empty(site.path, system.name())
    }
}
