//! Selections: finds the rows of a table that satisfy a predicate, and makes a table of these rows.
//!
//! | part | what it is |
//! | --- | --- |
//! | [`Predicate`] | conditions on columns, joined by and, or, not |
//! | [`path`] | predicates as names of directories: `energy:gt:5/label:eq:electron` |
//! | [`expression`] | predicates as text: `energy > 5 and label = "electron"` |
//! | `categories` | ordered categories, compared by their positions |
//! | [`BoundPredicate`] | a predicate over the columns of one table, its values in their types |
//! | `ranges` | values that satisfy a condition, as ranges; tested against arrays and bounds |
//! | `pattern` | patterns of `like` |
//! | `known` | answers of statistics and search indexes, without decoding rows |
//! | [`Selection`] | finds the rows, once, on all cores; keeps them under the memory budget |
//! | [`held`], [`first`] | a table in another order, the first rows of one |
//! | [`filtered`] | an ordinary table of the rows found |
//!
//! SQL's three-valued logic needs no third value here: binding a predicate moves `not` down to the conditions, and a
//! condition and its opposite are both false for a null.

mod bind;
mod categories;
mod known;
mod pattern;
mod predicate;
mod ranges;
mod selection;
mod sorted;
#[cfg(test)]
mod tests;
mod values;

pub use bind::BoundPredicate;
pub use known::answer::UsedIndex;
pub use predicate::literal::hexadecimal;
pub use predicate::{Condition, Error, Literal, Operator, Predicate, Query, SortKey, expression, path};
pub use selection::SelectedRows;
pub use selection::{Explained, Selected, Selection, filtered, selectable};
pub use sorted::{SortError, Steps, first, held, one_zero, places, sort_fields, sort_keys};
pub use values::values_text;
