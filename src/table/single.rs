//! A dataset that is a table by itself: files beside each other instead of a directory.

use std::sync::Arc;

use bstr::BString;

use super::Table;
use crate::catalogue::Datatype;
use crate::store::{File, Rows};

/// The content of a dataset's files.
#[derive(Debug)]
pub struct Single {
    /// One column: what lies along the first axis, as it is; a scalar is one row.
    pub whole: Table,
    /// Names of the places of an array of rank 2. Left out where only the choice of files is asked for.
    pub parts: Vec<BString>,
    /// The rows that label the places of an array of rank 2, as many as [`Single::parts`]; `None` where nothing does.
    pub labels: Option<Arc<dyn Rows>>,
    /// The bytes of a scalar string, for [`Form::Text`].
    pub text: Option<Arc<dyn Rows>>,
    /// Extents of the dataset.
    pub shape: Vec<u64>,
    /// The type as which its elements are read.
    pub datatype: Datatype,
    /// Its files. What else the closed set of suffixes has, this dataset has no use for.
    pub files: Vec<SingleFile>,
}

impl Single {
    /// The same, with columns whose statistics are learnt from all that is read of them.
    pub fn observed(self, file: &Arc<File>) -> Self {
        Self { whole: self.whole.observed(file), ..self }
    }
}

/// A file of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SingleFile {
    /// The end of the name: `.csv`.
    pub suffix: &'static str,
    /// The form of the bytes.
    pub form: Form,
}

/// The bytes of a file of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// Elements as stored.
    Raw,
    /// The same behind a NumPy header.
    Npy,
    /// Lines of values, behind one of names: of parts, where there are any.
    Csv,
    /// A value a line.
    Txt,
    /// The bytes of one string: nothing added, nothing escaped.
    Text,
    /// A JSON object a line.
    Ndjson,
    /// A JSON value a line, without a name.
    JsonValues,
    /// Apache Parquet.
    Parquet,
    /// An Arrow IPC file.
    Arrow,
    /// An image of the netpbm family: this header, then the elements.
    Pixmap(Vec<u8>),
}
