//! Which names a directory has: pure functions from the catalogue, and what dialects claim of it.
//!
//! | part | what it does |
//! | --- | --- |
//! | `entries` | what can stand behind a name |
//! | `tables` | the files of a table, a column, a dataset |
//! | `members` | the members of a group, no two of one name |
//! | `links` | where links lead |

mod entries;
mod links;
mod members;
mod tables;

pub(super) use entries::{Array, Child, ColumnView, Elements, GroupPlace, Listing, METADATA, Place};
pub(super) use links::{Resolver, Way};
pub(super) use members::Members;
pub(super) use tables::{is_of_tables, list, list_columns};
