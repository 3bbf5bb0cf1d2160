//! Ways of keeping a table in an HDF5 file. A dialect recognises its tables in the catalogue and builds a
//! [`Table`](crate::table::Table) of them; nothing above knows which dialect a table came from.

mod attributes;
mod datasets;
pub mod hep001;
