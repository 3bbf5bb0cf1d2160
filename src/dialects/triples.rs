//! Sparse matrices that are compressed along one axis (CSR, CSC), as columns: a row for each stored entry, in storage
//! order.

use std::sync::Arc;

use crate::catalogue::{Dataset, Group, join};
use crate::dialects::{Site, datasets};
use crate::source::Interrupt;
use crate::store::Rows;
use crate::table::RunRows;

/// The members of a group that hold the matrix.
pub(super) const PARTS: [&str; 3] = ["data", "indices", "indptr"];

/// The stored entries of a matrix, as columns of one length.
pub(super) struct Triples<'a> {
    /// Numbers along the compressed axis, expanded from pointers; what is wrong with these.
    pub major: Result<Arc<dyn Rows>, String>,
    /// Numbers along the other axis.
    pub minor: (Arc<dyn Rows>, &'a Arc<Dataset>),
    /// What is stored.
    pub values: (Arc<dyn Rows>, &'a Arc<Dataset>),
}

impl<'a> Triples<'a> {
    /// Opens the matrix of a group: `data`, `indices`, and `indptr` along the axis `major` of a matrix of this `shape`.
    /// Of elements only the first and the last pointer are read.
    ///
    /// # Errors
    /// Why there are no entries.
    pub fn of(
        site: &Site<'_>,
        group: &'a Group,
        shape: Option<[u64; 2]>,
        major: usize,
        interrupt: &Interrupt,
    ) -> Result<Self, String> {
        let part = |name: &str| {
            let dataset = datasets::member(group, name)?;
            let rows = datasets::line(site.file, &join(site.path, name.as_bytes()), dataset, &Arc::default())?;
            Ok::<_, String>((rows, dataset))
        };
        let (values, minor) = (part("data")?, part("indices")?);
        let length = values.0.len();
        if minor.0.len() != length {
            return Err(format!("{} values and {} indices", length, minor.0.len()));
        }
        let major = part("indptr").and_then(|(pointers, _)| {
            let path = join(site.path, b"indptr");
            let wide = shape.is_none_or(|shape| shape.iter().any(|extent| *extent > i32::MAX as u64));
            if let Some(shape) = shape.filter(|shape| shape[major].checked_add(1) != Some(pointers.len())) {
                return Err(format!("{} pointers, the shape is {shape:?}", pointers.len()));
            }
            Ok(Arc::new(RunRows::new(path, pointers, length, wide, interrupt)?) as Arc<dyn Rows>)
        });
        Ok(Self { major, minor, values })
    }
}
