//! HEP001 ("H5Col"): a group with one rank-1 dataset per column.
//!
//! The April 2026 draft, the July 2026 draft and those between them all say `VERSION = "1.0"`, so each feature is told
//! by what is in the group, never by the version string; files that mix drafts are served.
//!
//! Each room imports from those above it in this list:
//!
//! | room | what it does |
//! | --- | --- |
//! | `names` | what the drafts call things |
//! | `recognition` | tells a table group by its attributes |
//! | `parts` | holds a table group and its findings while a table is made of it |
//! | `members` | sorts the links of a table group, from the catalogue alone |
//! | `draft` | tells which draft a table follows |
//! | `lists` | opens list columns |
//! | `columns` | opens the members that are columns or serve one |
//! | `categories` | shows codes as labels |
//! | `consistency` | checks the rules on columns |
//! | `verified_rules` | names the rules that only verification can tell |
//! | `index_rules` | checks the rules on one search index |
//! | `indexes` | lists the search indexes |
//! | `build` | makes the table |
//! | `boolean` | makes values of the boolean datatype |
//! | `write` | writes search indexes into the file |
//! | `sample` | writes the file that `hepfs demo` shows |

mod boolean;
mod build;
mod categories;
mod columns;
mod consistency;
mod draft;
mod index_rules;
mod indexes;
mod lists;
mod members;
mod names;
mod parts;
mod recognition;
pub mod sample;
mod verified_rules;
pub mod write;

pub use super::attributes::text;
pub use build::build;
pub use members::{Kind, Member, members};
pub use recognition::{Recognised, recognise};

/// Name of the dialect.
pub const NAME: &str = "HEP001";
