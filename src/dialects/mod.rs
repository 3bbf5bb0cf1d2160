//! Ways of keeping a table in an HDF5 file. A dialect recognises its tables in the catalogue and builds a
//! [`Table`] of them; nothing above knows which dialect a table came from.

mod attributes;
mod datasets;
pub mod hep001;
pub mod index_writer;

pub use hep001::sample;

use clap::Args;

use self::index_writer::IndexWriter;
use crate::table::Table;

/// How search indexes are written, as far as a dialect has options of its own.
#[derive(Clone, Debug, Default, Args)]
pub struct IndexOptions {
    #[command(flatten)]
    hep001: hep001::write::Options,
}

/// What writes the search indexes of a table.
///
/// # Errors
/// Where tables of its dialect take none.
pub fn index_writer(table: &Table, options: &IndexOptions) -> Result<Box<dyn IndexWriter>, index_writer::Error> {
    match table.dialect {
        hep001::NAME => Ok(Box::new(hep001::write::Writer::new(options.hep001.clone()))),
        other => {
            let reason = format!("tables of {other} take no search indexes");
            Err(index_writer::Error::refused(&table.path, reason))
        }
    }
}
