//! Selections: which rows of a table satisfy a predicate, and the table of those rows alone.
//!
//! | part | what it is |
//! | --- | --- |
//! | [`Predicate`] | conditions on columns, joined by and, or, not |
//! | [`path`] | predicates as names of directories: `energy:gt:5/label:eq:electron` |
//! | [`expression`] | predicates as text: `energy > 5 and label = "electron"` |
//! | [`Bound`] | a predicate over the columns of one table, its values in their types |
//! | `ranges` | values that satisfy a condition, as ranges; held against arrays and against bounds |
//! | `prune` | what is known of a block of rows without decoding it |
//! | `answer` | what search indexes that are believed say of a condition |
//! | [`Selection`] | finds the rows, once, on all cores; keeps them under the memory budget |
//! | [`filtered`] | a table of the rows found, as good as any other |
//!
//! SQL's three-valued logic needs no third value here: `not` is moved down to the conditions when a predicate is bound, and
//! a condition and its opposite are both false where the value is missing.

mod answer;
mod bind;
mod evaluation;
pub mod expression;
mod literal;
mod matches;
mod model;
pub mod path;
mod prune;
mod ranges;
mod rows;
mod selection;
mod sorted;
mod table;
#[cfg(test)]
mod tests;
mod values;

pub use answer::UsedIndex;
pub use bind::Bound;
pub use model::{Condition, Error, Literal, Operator, Predicate};
pub use rows::SelectedRows;
pub use selection::{Explained, Selected, Selection};
pub use table::{filtered, selectable};
pub use values::values_text;
