//! A dataset that is a table by itself: files beside each other instead of a directory.

use std::sync::Arc;

use super::Table;
use crate::store::{File, Rows};

/// What the files of a dataset show.
#[derive(Debug)]
pub struct Single {
    /// One column: what lies along the first axis, as it is; a scalar is one row.
    pub whole: Table,
    /// A column for each field of an element, or for each place of a row; `None` where nothing can be told apart.
    pub split: Option<Table>,
    /// Of a scalar string: its bytes, whatever their encoding.
    pub text: Option<Arc<dyn Rows>>,
    /// Extents of the dataset.
    pub shape: Vec<u64>,
    /// Its files. What else the closed set of suffixes has, this dataset has no use for.
    pub files: Vec<SingleFile>,
}

impl Single {
    /// The same, with columns whose statistics are learnt from all that is read of them. Places of a row have none: there
    /// may be very many, and no file tells of them.
    pub fn observed(mut self, file: &Arc<File>) -> Self {
        let split = self.split.as_mut().filter(|_| self.shape.len() == 1);
        for table in split.into_iter().chain([&mut self.whole]) {
            table.columns =
                std::mem::take(&mut table.columns).into_iter().map(|column| column.observed(file)).collect();
        }
        self
    }

    /// The table that a file shows.
    pub fn table(&self, file: &SingleFile) -> &Table {
        self.split.as_ref().filter(|_| file.is_split).unwrap_or(&self.whole)
    }
}

/// A file of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SingleFile {
    /// What stands behind the name: `.csv`.
    pub suffix: &'static str,
    /// What the bytes are.
    pub form: Form,
    /// Whether it shows [`Single::split`].
    pub is_split: bool,
}

/// The bytes of a file of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// Elements as stored.
    Raw,
    /// The same behind a NumPy header.
    Npy,
    /// Lines of columns, behind one of names.
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
