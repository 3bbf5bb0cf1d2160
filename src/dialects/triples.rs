//! Opens sparse matrices compressed along one axis (CSR, CSC) as columns, with a row for each stored entry, in storage
//! order.

use std::sync::Arc;

use crate::catalogue::{ColumnId, Dataset, Group, join};
use crate::dialects::{Site, arrays, datasets};
use crate::source::Interrupt;
use crate::store::{Rows, Tally};
use crate::table::{Categories, CategoryRows, Column, RunRows, Unreadable};

/// The members of a group that hold the matrix, as Python's libraries name them.
pub(super) const PARTS: [&str; 3] = ["data", "indices", "indptr"];

/// A dataset that belongs to a matrix, as stored.
pub(super) struct MatrixDataset<'a> {
    pub rows: Arc<dyn Rows>,
    pub dataset: &'a Arc<Dataset>,
    /// Oddities counted in the dataset.
    pub tally: Arc<Tally>,
}

/// The stored entries of a matrix, as columns of one length.
pub(super) struct Triples<'a> {
    /// Indexes along the compressed axis, expanded from the pointers, or why the pointers are invalid.
    pub major: Result<Arc<dyn Rows>, Unreadable>,
    /// Indexes along the other axis, as stored.
    pub minor: MatrixDataset<'a>,
    /// The stored values.
    pub values: MatrixDataset<'a>,
    /// HDF5 path of the values.
    of_values: String,
}

/// Name of the column of indexes along an axis, and what it shows.
pub(super) struct MatrixAxis {
    pub name: &'static str,
    /// Labels to show instead of indexes. `None`: the indexes themselves are shown.
    pub labels: Option<Categories>,
}

impl<'a> Triples<'a> {
    /// Opens the matrix in a group, whose members `parts` hold values, indexes along the minor axis, and pointers along
    /// the axis `major` of a matrix of this `shape`. Reads only the first and the last pointer.
    ///
    /// # Errors
    /// Why the entries cannot be read.
    pub fn of(
        site: &Site<'_>,
        group: &'a Group,
        parts: [&str; 3],
        shape: Option<[u64; 2]>,
        major: usize,
        interrupt: &Interrupt,
    ) -> Result<Self, Unreadable> {
        let part = |name: &str| {
            let dataset = datasets::member(group, name)?;
            let tally = Arc::default();
            let rows = datasets::line(site.file, &join(site.path, name.as_bytes()), dataset, &tally)?;
            Ok::<_, Unreadable>(MatrixDataset { rows, dataset, tally })
        };
        let [data, indices, indptr] = parts;
        let (values, minor) = (part(data)?, part(indices)?);
        let length = values.rows.len();
        if minor.rows.len() != length {
            return Err(format!("{} values and {} indices", length, minor.rows.len()).into());
        }
        let major = part(indptr).and_then(|MatrixDataset { rows: pointers, .. }| {
            let path = join(site.path, indptr.as_bytes());
            let wide = shape.is_none_or(|shape| shape.iter().any(|extent| *extent > i32::MAX as u64));
            if let Some(shape) = shape.filter(|shape| shape[major].checked_add(1) != Some(pointers.len())) {
                return Err(format!("{} pointers, the shape is {shape:?}", pointers.len()).into());
            }
            Ok(Arc::new(RunRows::new(path, pointers, length, wide, interrupt)?) as Arc<dyn Rows>)
        });
        Ok(Self { major, minor, values, of_values: join(site.path, data.as_bytes()) })
    }

    /// Makes the columns of a table at `path`: indexes along the major and the minor axis, and `value`. Adds the label
    /// sets that they show to `categories`.
    pub fn columns(
        self,
        site: &Site<'_>,
        path: &str,
        group: &Group,
        [major, minor]: [MatrixAxis; 2],
        categories: &mut Vec<Categories>,
    ) -> Vec<Column> {
        let mut column =
            |MatrixAxis { name, labels }: MatrixAxis, object, numbers: Result<Arc<dyn Rows>, Unreadable>| {
                let path = join(path, name.as_bytes());
                let (tally, id) = (Arc::<Tally>::default(), ColumnId { object, field: 1 });
                let known = labels.and_then(|set| Some((set.labels.clone().ok()?, set)));
                let Some((known, set)) = known else { return Column::new(name.into(), path, id, numbers, tally) };
                let rows = numbers.map(|numbers| {
                    Arc::new(CategoryRows::new(path.clone(), numbers, known, tally.clone())) as Arc<dyn Rows>
                });
                categories.push(set);
                let categories = Some(categories.len() - 1);
                Column { categories, ..Column::new(name.into(), path, id, rows, tally) }
            };
        let MatrixDataset { rows: indices, dataset, .. } = self.minor;
        let (major, minor) = (column(major, group.id, self.major), column(minor, dataset.id, Ok(indices)));
        let value = arrays::column(site.file, &self.of_values, &"value".into(), self.values.dataset);
        vec![major, minor, value]
    }
}
