//! The first and the last rows of a table, as text.

use std::ops::Range;

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use bstr::BString;

use super::words;
use crate::source::Interrupt;
use crate::store::{Error, Rows};
use crate::views::text::{TextFormat, TextLayout};

/// Rows shown of the beginning of a table, and of its end.
const SHOWN: [u64; 2] = [6, 2];

/// Most bytes of arrays that the cells of a column are made of.
const MOST_BYTES: u64 = 64 << 10;

/// Most characters of a cell; longer texts are cut.
const MOST_CHARACTERS: usize = 200;

/// Fewest digits behind the point of a float of 64 bits.
const BEHIND: usize = 4;

/// A cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cell {
    /// It was not read: reading it would take too much.
    #[default]
    Unread,
    /// It has no value.
    Missing,
    /// Its text, cut if it is long.
    Text(String),
}

/// The first and the last rows of a table of `rows` rows; all of them, if these are few.
pub fn ranges(rows: u64) -> [Range<u64>; 2] {
    let [first, last] = SHOWN;
    if rows <= first + last { [0..rows, rows..rows] } else { [0..first, rows - last..rows] }
}

/// The cells of a column in these rows.
///
/// # Errors
/// As [`Rows::array`].
pub fn cells(rows: &dyn Rows, range: Range<u64>, interrupt: &Interrupt) -> Result<Vec<Cell>, Error> {
    let mut cells = Vec::new();
    if range.is_empty() {
        return Ok(cells);
    }
    let fits = rows.fitting(range.clone(), MOST_BYTES, interrupt)?;
    if fits.end == range.end && fits.bytes <= MOST_BYTES {
        let array = rows.array(range, interrupt)?;
        return Ok((0..array.len()).map(|row| cell(array.slice(row, 1))).collect());
    }
    for row in range {
        let fits = rows.fitting(row..row + 1, MOST_BYTES, interrupt)?.bytes <= MOST_BYTES;
        cells.push(if fits { cell(rows.array(row..row + 1, interrupt)?) } else { Cell::Unread });
    }
    Ok(cells)
}

/// The text of the only value of an array; of a float, seven digits or more.
fn cell(array: ArrayRef) -> Cell {
    if array.is_empty() || array.logical_nulls().is_some_and(|nulls| nulls.is_null(0)) {
        return Cell::Missing;
    }
    if array.data_type().is_floating()
        && let Some(number) = super::values::reals(array.as_ref()).first()
    {
        let behind = if array.data_type() == &DataType::Float64 { BEHIND } else { 0 };
        return Cell::Text(words::seven(*number, behind));
    }
    let is_instant = matches!(array.data_type(), DataType::Timestamp(..));
    match text(array) {
        Some(text) if is_instant => Cell::Text(instant(&text)),
        Some(text) => Cell::Text(cut(&text)),
        None => Cell::Unread,
    }
}

/// An instant, as text formats write it, without its zone and without trailing zeros: `2026-01-31 06:00:00.25`.
pub fn instant(text: &str) -> String {
    let text = text.trim_end_matches('Z').replace('T', " ");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// The text of the only value of an array. `None`: its type has no text.
pub fn text(array: ArrayRef) -> Option<String> {
    let mut text = Vec::new();
    TextLayout::new(TextFormat::Verbatim, [&BString::default()]).render(&[array], &mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// A text, cut if it is long.
pub fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_end_with_their_last_digit() {
        let texts = ["2018-01-10T04:55:00.000000000Z", "2018-01-10T04:50:00", "2018-01-10T04:55:00.250"].map(instant);
        assert_eq!(texts, ["2018-01-10 04:55:00", "2018-01-10 04:50:00", "2018-01-10 04:55:00.25"]);
    }
}
