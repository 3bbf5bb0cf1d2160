//! Writes what the dialect HEP001 reads: tables, search indexes, the sample of `hepfs demo`.
//!
//! ```text
//! table     fields ─► PlannedTable ─► ColumnEncoder ─► TableWriter
//! indexes   a table's column ─► IndexPlan ─► ComputedIndex ─► written
//!           a table ─► ListedIndex ─► removed
//! ```
//!
//! Each room imports from those above it in this list:
//!
//! | room | what it does |
//! | --- | --- |
//! | `error` | says why a file was not changed |
//! | `options` | holds the user's options that tables and search indexes share |
//! | `boolean` | makes values of the boolean datatype |
//! | `steps` | performs the steps of a change |
//! | `paths` | finds the objects at HDF5 paths |
//! | `indexes` | builds, lists and removes search indexes |
//! | `table` | plans, encodes and writes tables |
//! | `sample` | writes the file that `hepfs demo` shows |

mod boolean;
mod error;
pub mod indexes;
mod options;
mod paths;
pub mod sample;
mod steps;
pub mod table;

pub use error::Error;
pub use paths::is_there;

use crate::dialects::hep001::names::DIALECT;
use crate::table::Table;

/// Whether a table is of the dialect that is written here.
pub fn is_own(table: &Table) -> bool {
    table.dialect == DIALECT
}
