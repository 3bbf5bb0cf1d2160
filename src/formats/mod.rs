//! Formats of files: which one a file is of, and opened files of those that are not HDF5.
//!
//! An HDF5 file is a tree of objects in which [dialects](crate::dialects) find tables. A file of another format stands
//! beside it at [`Rows`](crate::store::Rows): it is one table, and there is nothing in it that HDF5 has a name for.

mod members;
mod signature;
mod trevni;

use std::fmt::Debug;
use std::sync::Arc;

pub use members::shell_word;

use crate::source::{Interrupt, Source};
use crate::store::{Error, Opening, Store};
use crate::table::{Finding, Rule, Table};

/// A format, told by the first bytes of a file; names do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// HDF5.
    Hdf5,
    /// Trevni, a format of column files.
    Trevni,
}

/// An opened file that is one table.
pub trait TableFile: Debug + Send + Sync {
    /// Its bytes, and what is learnt of them.
    fn opening(&self) -> &Arc<Opening>;

    /// Makes its table. What is wrong with a column is kept with the column.
    fn table(&self) -> Table;

    /// Rules found broken while values were read.
    fn findings(&self) -> Vec<Finding>;
}

/// The rules that files of these formats are held against.
pub fn rules() -> &'static [&'static Rule] {
    trevni::rules::ALL
}

/// Opens a file of a format that is one table.
///
/// # Errors
/// [`Error::Unsupported`] where the file must be refused.
pub fn open(
    format: Format,
    store: &Arc<Store>,
    source: &Arc<Source>,
    interrupt: &Interrupt,
) -> Result<Arc<dyn TableFile>, Error> {
    match format {
        Format::Trevni => Ok(trevni::File::open(store, source, interrupt)?),
        Format::Hdf5 => Err(Error::unsupported("/", "an HDF5 file is no single table")),
    }
}
