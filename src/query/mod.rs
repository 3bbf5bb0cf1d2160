//! Selections: which rows of a table satisfy a predicate, and the table of those rows alone.
//!
//! | part | what it is |
//! | --- | --- |
//! | [`Predicate`] | conditions on columns, joined by and, or, not |
//! | [`path`] | predicates as names of directories: `energy:gt:5/label:eq:electron` |
//! | [`expression`] | predicates as text: `energy > 5 and label = "electron"` |
//! | `categories` | categories whose order means something, compared by their places |
//! | [`Bound`] | a predicate over the columns of one table, its values in their types |
//! | `ranges` | values that satisfy a condition, as ranges; held against arrays and against bounds |
//! | `pattern` | texts that `like` matches |
//! | `known` | what statistics and believed search indexes know of rows without decoding them |
//! | [`Selection`] | finds the rows, once, on all cores; keeps them under the memory budget |
//! | [`held`], [`first`] | a table in another order, the first rows of one |
//! | [`filtered`] | a table of the rows found, as good as any other |
//!
//! SQL's three-valued logic needs no third value here: `not` is moved down to the conditions when a predicate is bound,
//! and a condition and its opposite are both false where the value is missing.

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

pub use bind::Bound;
pub use known::answer::UsedIndex;
pub use predicate::{Condition, Error, Literal, Operator, Order, Predicate, Query, expression, path};
pub use selection::SelectedRows;
pub use selection::{Explained, Selected, Selection, filtered, selectable};
pub use sorted::{SortError, first, held, one_zero, places, sort_fields, sort_keys};
pub use values::values_text;
