//! `.arrow`: an Arrow IPC file (Feather V2, uncompressed) rendered on demand.
//!
//! ```text
//! ARROW1..                            magic
//! schema                              fields, units and descriptions, row labels for pandas
//! labels of categories …              dictionary batches: read once, kept in memory
//! ┌ header of batch 0                 metadata: rows, nulls and buffers of every node; the same length in every batch
//! │ body                              a validity bitmap, values, offsets, … for every node
//! ├ header of batch 1
//! ┊
//! └
//! end of stream, footer, ARROW1       where every batch lies
//! ```
//!
//! | column | nodes and buffers |
//! | --- | --- |
//! | numbers, opaque bytes, arrays of them | values; little-endian ones are the stored bytes, never looked at |
//! | float16 | widened to float |
//! | boolean | bits |
//! | categories, enumerations of one byte, lists of them | keys into a dictionary, 0 under a null |
//! | fixed-length strings | string views; those of more than 12 bytes lead to slots (below) |
//! | other enumerations | string views into a data buffer with each name once |
//! | compounds, complex numbers | a struct of its fields |
//! | variable-length strings, references | 64-bit offsets, bytes |
//! | lists, sequences | 64-bit offsets, and the nodes of an item |
//!
//! A fixed-length string of up to 12 bytes stands in its view. A longer one has a slot of the stored width in a data
//! buffer; if U+FFFD makes it longer than stored, a slot of three times that width in another.
//!
//! Every batch has the same power of two of rows, the last one fewer. Where no list and no variable-length string is
//! among the columns, every position is arithmetic; otherwise a pass learns their lengths, for each piece of rows
//! (`learnt`). Buffers begin at multiples of 64 bytes; values of 64 KiB or more at a multiple of 4 KiB of the file, so
//! that pages of a memory map are pages of the stored bytes.
//!
//! The header of a batch says how many nulls each node has, and readers trust it: a wrong one drops nulls silently. So
//! the first read of a header counts them, in that batch alone (`learnt`); the size of the file does not depend on it.
//!
//! | part | task |
//! | --- | --- |
//! | `plan` | from the type of a column to nodes and buffers; labels |
//! | `message` | messages of the format |
//! | `table`, `layout` | schema and batches; where buffers lie in them |
//! | `learnt` | what must be learnt from values, and kept: lengths, nulls |
//! | `render` | rows to bytes |
//! | `file`, `view` | where batches lie; the file |

mod file;
mod layout;
mod learnt;
mod message;
mod plan;
mod render;
mod table;
#[cfg(test)]
mod tests;
mod view;

use std::borrow::Borrow;
use std::sync::Arc;

use bstr::BString;

use crate::learnt::Learner;
use crate::store::{Hints, Rows};
use crate::table::{Column, Origin, Table};
use crate::views::Misfit;

pub use view::IpcView;

/// A column of an Arrow file.
#[derive(Clone, Debug)]
pub struct IpcColumn {
    /// Name of the column, with invalid UTF-8 replaced.
    pub name: BString,
    /// Rows of the column.
    pub rows: Arc<dyn Rows>,
    /// Hints about the values.
    pub hints: Hints,
    /// Whether the column labels rows: pandas makes it the index.
    pub is_label: bool,
    /// The column's origin in the software that wrote it.
    pub origin: Origin,
    /// The column's notes: units, description and others.
    pub notes: Vec<(&'static str, String)>,
    /// Facts already known about the column's values.
    pub learner: Option<Arc<Learner>>,
}

impl IpcColumn {
    /// Returns a column of a table as a column of the file.
    ///
    /// # Errors
    /// The reason why the column cannot be shown.
    pub fn new(column: &Column) -> Result<Self, Misfit> {
        let rows = column.shown()?;
        let column = Self {
            name: column.name.clone(),
            hints: rows.hints().clone(),
            rows,
            is_label: column.is_label,
            origin: column.meaning.origin.clone(),
            notes: column.notes(),
            // The learner knows the stored integers; integers that are no valid instant become nulls, which it does not
            // know.
            learner: column.learner.clone().filter(|_| column.times().is_none_or(|times| times.bounds().is_none())),
        };
        check([&column])?;
        Ok(column)
    }

    /// As [`IpcColumn::of_table`], but one column at a time.
    pub fn each_of_table(table: &Table) -> impl Iterator<Item = Self> {
        table.columns.iter().filter(|column| column.in_table).filter_map(|column| Self::new(column).ok())
    }

    /// Returns the columns of the whole table that can be shown.
    pub fn of_table(table: &Table) -> Vec<Self> {
        Self::each_of_table(table).collect()
    }
}

/// Whether these columns together can make an Arrow file.
///
/// # Errors
/// The reason why they cannot.
pub fn check(columns: impl IntoIterator<Item = impl Borrow<IpcColumn>>) -> Result<(), Misfit> {
    table::check(columns)
}
