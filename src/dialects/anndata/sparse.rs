//! Makes the table of a sparse matrix: a row for each stored entry, in storage order (the coordinate form).

use std::collections::HashMap;
use std::sync::Arc;

use bstr::BString;

use super::Anndata;
use super::elements::ElementOpener;
use super::encoding::{AnndataAxis, INDEX, sparse};
use super::records;
use super::rules;
use crate::catalogue::{Attribute, ColumnId, Dataset, Group, Object, attribute, join};
use crate::dialects::attributes::{integers, text};
use crate::dialects::triples::{MatrixDataset, PARTS, Triples};
use crate::dialects::{Dialect, Role, Site};
use crate::source::Interrupt;
use crate::store::{Rows, Tally};
use crate::table::{Categories, CategoryRows, Column, Finding, Table, Unreadable};

/// Roles of the members that hold the matrix.
pub(super) fn roles() -> HashMap<BString, Role> {
    PARTS.iter().map(|part| (BString::from(*part), Role::Servant)).collect()
}

/// Makes the table of a sparse matrix.
pub(super) fn table(site: &Site<'_>, group: &Group, interrupt: &Interrupt) -> Table {
    let empty = Table { attributes: group.attributes.clone(), ..Table::empty(site.path, Anndata.about().name) };
    let mut matrix = Matrix { site, opener: ElementOpener { file: site.file, interrupt }, categories: Vec::new() };
    let mut findings = Vec::new();
    let columns = matrix.columns(group, &mut findings).unwrap_or_else(|reason| {
        findings.push(Finding::new(site.path, &rules::SPARSE, reason));
        Vec::new()
    });
    let rows =
        columns.iter().filter(|column| column.in_table).find_map(|column| Some(column.rows.as_ref().ok()?.len()));
    Table {
        revision: "sparse matrix".into(),
        rows: rows.unwrap_or(0),
        columns,
        categories: matrix.categories,
        servants: PARTS.iter().map(|part| BString::from(*part)).collect(),
        findings,
        ..empty
    }
}

/// A sparse matrix whose columns are being made.
struct Matrix<'a> {
    site: &'a Site<'a>,
    opener: ElementOpener<'a>,
    categories: Vec<Categories>,
}

impl Matrix<'_> {
    /// Makes the columns `row`, `column` and `value`, and `row_name` and `column_name` where the matrix belongs to data
    /// frames.
    fn columns(&mut self, group: &Group, findings: &mut Vec<Finding>) -> Result<Vec<Column>, Unreadable> {
        let major = sparse(&group.attributes).ok_or("it does not say how it is stored")?;
        let shape = shape(&group.attributes);
        let Triples { major: runs, minor, values: value, .. } =
            Triples::of(self.site, group, PARTS, shape, major as usize, self.opener.interrupt)?;
        if let Err(reason) = &runs {
            findings.push(Finding::new(self.site.path, &rules::SPARSE, reason.clone()));
        }
        let [major_name, minor_name] = match major {
            AnndataAxis::Row => ["row", "column"],
            AnndataAxis::Column => ["column", "row"],
        };
        let mut by_major = self.column(major_name, ColumnId { object: group.id, field: 1 }, runs, None);
        let stored = |name, MatrixDataset { rows, dataset, tally }: MatrixDataset<'_>| {
            let column = self.column(name, ColumnId::whole(dataset.id), Ok(rows), Some(dataset));
            Column { tally, ..column }
        };
        let mut by_minor = stored(minor_name, minor);
        if major == AnndataAxis::Column {
            std::mem::swap(&mut by_major, &mut by_minor);
        }
        let mut columns = vec![by_major, by_minor, stored("value", value)];
        let frames = frames(self.site.path);
        for (axis, frame) in frames.iter().flatten().enumerate() {
            let codes = &columns[axis];
            let (Ok(rows), true) = (codes.rows.clone(), codes.in_table) else { continue };
            // A missing frame, or one without row labels, is no error of the matrix.
            let Ok(labels) = self.labels(frame) else { continue };
            let name = format!("{}_name", columns[axis].name);
            let id = ColumnId { field: codes.id.field + 2, ..codes.id };
            let tally = Arc::<Tally>::default();
            let named = CategoryRows::new(labels.path.clone(), rows, labels.labels.clone()?, tally.clone());
            let mut column = self.column(&name, id, Ok(Arc::new(named)), None);
            column.tally = tally;
            self.categories.push(labels);
            column.categories = Some(self.categories.len() - 1);
            columns.push(column);
        }
        Ok(columns)
    }

    fn column(
        &self,
        name: &str,
        id: ColumnId,
        rows: Result<Arc<dyn Rows>, Unreadable>,
        dataset: Option<&Arc<Dataset>>,
    ) -> Column {
        Column {
            attributes: dataset.map(|dataset| dataset.attributes.clone()).unwrap_or_default(),
            dataset: dataset.cloned(),
            ..Column::new(name.into(), join(self.site.path, name.as_bytes()), id, rows, Arc::default())
        }
    }

    /// Opens the row labels of the data frame at a path.
    fn labels(&self, frame: &str) -> Result<Categories, Unreadable> {
        let object = self.opener.at(frame)?;
        if let Object::Dataset(dataset) = &object {
            return records::row_labels(&Site { path: frame, ..*self.site }, dataset, self.opener.interrupt);
        }
        let group = self.opener.group(&object)?;
        let name = text(&group.attributes, INDEX).ok_or("no row labels")?;
        let object = group.link(name.as_bytes()).and_then(|link| link.target.object()).ok_or("no row labels")?;
        self.opener.labels(join(frame, name.as_bytes()), object, false)
    }
}

/// Paths of the data frames that describe the rows and the columns of the matrix at `path`. `None`: the path does not
/// tell.
fn frames(path: &str) -> Option<[String; 2]> {
    let (parent, name) = path.rsplit_once('/')?;
    let above = |place: &str| Some(parent.strip_suffix(place)?.to_owned());
    if let Some(base) = above("/layers") {
        within(&base, ["obs", "var"])
    } else if let Some(base) = above("/obsp") {
        within(&base, ["obs", "obs"])
    } else if let Some(base) = above("/varp") {
        within(&base, ["var", "var"])
    } else if let Some(base) = above("/uns/neighbors") {
        // Neighbour graphs of cells, as they were before version 0.7.
        within(&base, ["obs", "obs"])
    } else if name == "raw.X" {
        within(parent, ["obs", "raw.var"])
    } else if let Some(base) = above("/raw").filter(|_| name == "X") {
        within(&base, ["obs", "raw/var"])
    } else {
        (name == "X").then(|| within(parent, ["obs", "var"])).flatten()
    }
}

fn within(base: &str, frames: [&str; 2]) -> Option<[String; 2]> {
    Some(frames.map(|frame| format!("{base}/{frame}")))
}

/// The number of rows and of columns of the matrix, as its attributes state them.
fn shape(attributes: &[Attribute]) -> Option<[u64; 2]> {
    let shape = attribute(attributes, "shape").or_else(|| attribute(attributes, "h5sparse_shape"))?;
    let [rows, columns] = integers(shape)?[..] else { return None };
    Some([u64::try_from(rows).ok()?, u64::try_from(columns).ok()?])
}
