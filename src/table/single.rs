//! A dataset that is a table by itself, shown as files side by side instead of a directory.

use std::sync::Arc;

use bstr::BString;

use super::Table;
use crate::catalogue::Datatype;
use crate::store::Rows;

/// The content of a dataset's files.
#[derive(Debug)]
pub struct Single {
    /// A table of one column: slices along the first axis, unchanged; a scalar is one row.
    pub whole: Table,
    /// Names of the elements in a row of an array of rank 2. Empty if only the choice of files was asked for.
    pub parts: Vec<BString>,
    /// The labels of these elements, as many as [`Single::parts`]. `None`: no labels.
    pub labels: Option<Arc<dyn Rows>>,
    /// The bytes of a scalar string, for [`SingleForm::Text`].
    pub text: Option<Arc<dyn Rows>>,
    /// Extents of the dataset.
    pub shape: Vec<u64>,
    /// The type as which its elements are read.
    pub datatype: Datatype,
    /// Its files. No other suffix applies to this dataset.
    pub files: Vec<SingleFile>,
}

/// A file of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SingleFile {
    /// Suffix of the name: `.csv`.
    pub suffix: &'static str,
    /// The form of the bytes.
    pub form: SingleForm,
}

/// The form of a file of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SingleForm {
    /// Elements as stored.
    Raw,
    /// Elements as stored after a NumPy header.
    Npy,
    /// A line of names (those of the parts, if there are any), then lines of values.
    Csv,
    /// A value on each line.
    Txt,
    /// The bytes of one string, without additions or escapes.
    Text,
    /// A JSON object on each line.
    Ndjson,
    /// A JSON value on each line, without a name.
    JsonValues,
    /// Apache Parquet.
    Parquet,
    /// An Arrow IPC file.
    Arrow,
    /// An image of the netpbm family: this header, then the elements.
    Pixmap(Vec<u8>),
}
