//! The names in a directory: pure functions from the catalogue and the claims of dialects.
//!
//! | part | task |
//! | --- | --- |
//! | `entries` | the targets of names |
//! | `tables` | the files of a table, a column, a dataset |
//! | `members` | the members of a group, no two of one name |
//! | `links` | where links lead |

mod entries;
mod links;
mod members;
mod tables;

pub use entries::Formats;
pub(super) use entries::{
    COLUMNS, Child, ColumnView, DirectoryPlace, ElementsForm, GroupPlace, INDEX_PAGE, INDEXES, Listing, ListingEntry,
    METADATA, ShownArray, TABLE_PARQUET, WHERE, with_suffix,
};
pub(super) use links::{Resolver, Way};
pub(super) use members::{MemberLister, Namespace, names_of_made};
pub(super) use tables::{column_suffixes, describe_columns, is_of_tables, list, list_columns};
