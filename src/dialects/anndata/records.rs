//! Makes the table of a data frame of a version before 0.7: a compound, whose first field labels rows.
//!
//! A categorical column is a field of codes. Its labels lie in `uns/FIELD_categories`, which `obs` and `var` share.

use std::sync::Arc;

use super::Anndata;
use super::elements::ElementOpener;
use super::rules;
use crate::catalogue::{Class, Dataset, Fill, Object, attribute, join};
use crate::dialects::compound::{self, Compound, is_record};
use crate::dialects::{Dialect, Of, Site, datasets};
use crate::source::Interrupt;
use crate::store::decode::widen;
use crate::store::{ARRAY_BYTES, Error, Nan, Rows, Tally, for_each_array};
use crate::table::{Categories, CategoryRows, Column, Finding, Table, Unreadable};

/// Paths of the data frames, each with the path of another frame that may have fields of the same names, if there is
/// one.
const FRAMES: [(&str, Option<&str>); 3] = [("/obs", Some("/var")), ("/var", Some("/obs")), ("/raw.var", None)];

/// Names that the first field of a data frame may have.
const LABELS: [&[u8]; 2] = [b"index", b"_index"];

/// Whether a dataset is a data frame, by its path and its first field. Tables of PyTables, which have the attribute
/// `CLASS`, do not count.
pub(super) fn is_frame(path: &str, dataset: &Dataset) -> bool {
    let Class::Compound { fields } = &dataset.datatype.class else { return false };
    FRAMES.iter().any(|(frame, _)| *frame == path)
        && is_record(dataset)
        && attribute(&dataset.attributes, "CLASS").is_none()
        && fields.first().is_some_and(|first| LABELS.contains(&first.name.as_slice()))
}

/// Makes the table of a data frame.
pub(super) fn table(site: &Site<'_>, dataset: &Arc<Dataset>, interrupt: &Interrupt) -> Table {
    let opener = ElementOpener { file: site.file, interrupt };
    let records = compound::table(site, dataset, Nan::Missing { alone: true }, interrupt);
    let mut table = Table { dialect: Anndata.about().name, revision: "compound".into(), ..records };
    if let Some(first) = table.columns.first_mut() {
        first.is_label = true;
    }
    let other = FRAMES.iter().find(|(frame, _)| *frame == site.path).and_then(|(_, other)| *other);
    for column in table.columns.iter_mut().skip(1) {
        let Some(labels) = labels_of(&opener, column) else { continue };
        match labelled(&opener, column, &labels, other) {
            Ok(Some(shown)) => {
                *column = Column { categories: Some(table.categories.len()), ..shown };
                table.categories.push(labels);
            }
            Ok(None) => {}
            Err(reason) => {
                let rule = &rules::LABELS_IN_UNS;
                table.findings.push(Finding::new(&labels.path, rule, reason));
            }
        }
    }
    table
}

/// Opens the column of row labels of a data frame. `None`: it has none that can be read.
pub(super) fn label(site: &Site<'_>, dataset: &Arc<Dataset>, interrupt: &Interrupt) -> Option<Column> {
    let site = Site { of: Of::Dataset(dataset), servant: None, ..*site };
    let first = Compound.open(&site, interrupt).columns.into_iter().next();
    first.filter(|_| is_frame(site.path, dataset)).map(|first| Column { is_label: true, ..first })
}

/// Opens the row labels of a data frame as a label set.
///
/// # Errors
/// Why they cannot be read.
pub(super) fn row_labels(
    site: &Site<'_>,
    dataset: &Arc<Dataset>,
    interrupt: &Interrupt,
) -> Result<Categories, Unreadable> {
    let Class::Compound { fields } = &dataset.datatype.class else { return Err("no compound".into()) };
    let first = fields.first().ok_or("no row labels")?;
    let column = label(site, dataset, interrupt).ok_or("no row labels")?;
    let path = join(site.path, &first.name);
    Ok(Categories { path, labels: Ok(column.rows?), datatype: first.datatype.clone(), ordered: None })
}

/// Finds the labels in `uns` for a field of integers, by the field's name.
fn labels_of(opener: &ElementOpener<'_>, column: &Column) -> Option<Categories> {
    column.rows.as_ref().ok().filter(|rows| rows.data_type().is_integer())?;
    let path = format!("/uns/{}_categories", column.name);
    let Object::Dataset(dataset) = opener.at(&path).ok()? else { return None };
    // A label set of one label is a scalar.
    if dataset.shape.len() > 1 || dataset.null {
        return None;
    }
    let labels = datasets::rows(opener.file, &path, &dataset, u64::MAX, &Fill::Default, &Arc::default());
    Some(Categories { path, labels, datatype: dataset.datatype.clone(), ordered: Some(false) })
}

/// Makes the column that shows codes as their labels. `None`: the labels belong to the field of the same name in the
/// other frame.
fn labelled(
    opener: &ElementOpener<'_>,
    column: &Column,
    labels: &Categories,
    other: Option<&str>,
) -> Result<Option<Column>, Unreadable> {
    let (codes, labels) = (column.rows.clone()?, labels.labels.clone()?);
    let is_shared = other.and_then(|other| opener.at(other).ok()).is_some_and(|object| {
        matches!(&object, Object::Dataset(dataset) if matches!(&dataset.datatype.class,
            Class::Compound { fields } if fields.iter().any(|field| field.name == column.name)))
    });
    if is_shared && !are_within(codes.as_ref(), labels.len(), opener.interrupt)? {
        return Ok(None);
    }
    let tally = Arc::<Tally>::default();
    let rows = Arc::new(CategoryRows::new(column.path.clone(), codes, labels, tally.clone()));
    Ok(Some(Column { rows: Ok(rows), tally, ..column.clone() }))
}

/// Whether all codes are less than the number of labels.
fn are_within(codes: &dyn Rows, labels: u64, interrupt: &Interrupt) -> Result<bool, Error> {
    let mut are_within = true;
    for_each_array(codes, 0..codes.len(), ARRAY_BYTES, interrupt, &mut |_, array| {
        let codes = widen::signed(&array);
        are_within &= codes.is_some_and(|codes| codes.values().iter().all(|code| *code < 0 || (*code as u64) < labels));
        Ok(())
    })?;
    Ok(are_within)
}
