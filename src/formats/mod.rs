//! Recognises the formats of files, and opens files of formats other than HDF5.
//!
//! An HDF5 file is a tree of objects in which [dialects](crate::dialects) find tables. A file of another format is a
//! single table without HDF5 objects, and gives its [`Rows`](crate::store::Rows) directly.

mod members;
mod signature;
mod trevni;

use std::fmt::Debug;
use std::sync::Arc;

pub use members::shell_word;

use crate::source::{Interrupt, Source};
use crate::store::{Error, Opening, Store};
use crate::table::{Finding, Rule, Table};

/// The format of a file, recognised by its first bytes, whatever the file is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// HDF5, whose files hold a tree of objects.
    Hdf5,
    /// Trevni, a format of column files.
    Trevni,
}

/// Ends of names that files of these formats usually have.
const USUAL_ENDS: [&str; 16] = [
    ".cdf",
    ".h5",
    ".h5ad",
    ".h5mu",
    ".h5seurat",
    ".hdf",
    ".hdf5",
    ".he5",
    ".lh5",
    ".loom",
    ".mat",
    ".nc",
    ".nc4",
    ".ndx",
    ".nwb",
    ".trv",
];

/// Whether a file of a known format may have this name, where only names are known.
pub fn is_usual_name(name: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    USUAL_ENDS.iter().any(|end| name.ends_with(end.as_bytes()))
}

/// An opened file that is one table.
pub trait TableFile: Debug + Send + Sync {
    /// The opening of the file: its bytes, and what is learnt of them.
    fn opening(&self) -> &Arc<Opening>;

    /// Makes the table of the file. An unreadable column keeps its own error.
    fn table(&self) -> Table;

    /// The rules found broken while values were read.
    fn findings(&self) -> Vec<Finding>;
}

/// The rules for files of these formats.
pub fn rules() -> &'static [&'static Rule] {
    trevni::rules::ALL
}

/// Opens a file of a format that is one table.
///
/// # Errors
/// [`Error::Unsupported`] if the file must be refused.
pub fn open(
    format: Format,
    store: &Arc<Store>,
    source: &Arc<Source>,
    interrupt: &Interrupt,
) -> Result<Arc<dyn TableFile>, Error> {
    match format {
        Format::Trevni => Ok(trevni::TrevniFile::open(store, source, interrupt)?),
        Format::Hdf5 => Err(Error::unsupported("/", "an HDF5 file is no single table")),
    }
}
