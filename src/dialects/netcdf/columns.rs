//! Opens a variable as a column, as its attributes demand.

use std::sync::Arc;

use bstr::BString;

use super::conventions::VariableReading;
use super::rules;
use crate::catalogue::{Class, ColumnId, Dataset, Fill};
use crate::dialects::attributes::text;
use crate::dialects::{compound, datasets, scales, times};
use crate::store::decode::FillTest;
use crate::store::{self, DatasetRows, File, Rows, Tally};
use crate::table::{Column, Expected, Meaning, Near, PackedRows, PaddedRows, Times, Unreadable};

/// Number of the column that has the elements of a variable, rather than slices along its first axis.
const ELEMENTS: u32 = 1 << 30;
/// Number of the column that has a variable's characters as a single text.
const TEXT: u32 = ELEMENTS + 1;

/// Most characters in a text outside of tables.
const MOST_LETTERS: u64 = 1 << 20;

/// Bytes of the widest element that can be made up for padding.
const WIDEST_FILL: u64 = 1 << 20;

/// Makes the column of the slices along a variable's first axis.
pub(super) fn column(file: &Arc<File>, path: &str, name: BString, stored: &Arc<Dataset>) -> Column {
    column_of(file, path, name, stored, stored.shape.len() <= 1)
}

/// Makes the column of the elements of a variable of any rank.
pub(super) fn elements(file: &Arc<File>, path: &str, name: BString, stored: &Arc<Dataset>) -> Column {
    let column = column_of(file, path, name, stored, true);
    let field = if stored.shape.len() > 1 { ELEMENTS } else { column.id.field };
    Column { id: ColumnId { field, ..column.id }, ..column }
}

/// Makes the column of the one text that characters along a dimension make up.
pub(super) fn text_of(file: &Arc<File>, path: &str, name: BString, stored: &Arc<Dataset>) -> Column {
    let tally = Arc::<Tally>::default();
    let rows = joined(file, path, stored, &tally);
    let id = ColumnId { field: TEXT, ..ColumnId::whole(stored.id) };
    Column {
        attributes: stored.attributes.clone(),
        dataset: Some(stored.clone()),
        ..Column::new(name, path.to_owned(), id, rows, tally)
    }
}

fn joined(
    file: &Arc<File>,
    path: &str,
    stored: &Arc<Dataset>,
    tally: &Arc<Tally>,
) -> Result<Arc<dyn Rows>, Unreadable> {
    let joined = DatasetRows::joined(datasets::open(file, path, stored)?, tally.clone());
    joined.map(|joined| Arc::new(joined) as Arc<dyn Rows>).ok_or_else(|| "no characters".into())
}

fn column_of(file: &Arc<File>, path: &str, name: BString, stored: &Arc<Dataset>, is_line: bool) -> Column {
    let reading = VariableReading::of(stored, file.store().shows_times());
    let tally = Arc::<Tally>::default();
    let rows = rows(file, path, stored, &reading, is_line, &tally);
    let range = reading.range.clone().map(|range| (&rules::VALID_EXCEEDED, range));
    // Packed numbers are shown as other values than the attributes state, so these are not looked for.
    let near = reading.near.clone().filter(|_| reading.packing.linear.is_none() && reading.packing.count.is_none());
    let near = near.map(|nearest| Near { rule: &rules::MISSING, of: String::new(), nearest });
    let expected = (range.is_some() || near.is_some()).then(|| Expected { range, near, ..Expected::default() });
    let times = reading.times.filter(|_| is_line).and_then(|times| {
        let rows = rows.as_ref().ok()?;
        Some(Box::new(times.and_then(|(step, epoch)| Times::new(step, epoch, rows.data_type()))))
    });
    let said = ["units", "description", "long_name"].map(|name| text(&stored.attributes, name));
    let [units, description, long_name] = said;
    let stored_strings = is_line.then(|| datasets::stored_strings(file, path, stored, u64::MAX)).flatten();
    Column {
        stored_strings,
        attributes: stored.attributes.clone(),
        dataset: Some(stored.clone()),
        meaning: Meaning {
            times,
            expected: expected.map(Box::new),
            units,
            calendar: times::calendar(&stored.attributes),
            description: description.or(long_name),
            ..Meaning::default()
        },
        ..Column::new(name, path.to_owned(), ColumnId::whole(stored.id), rows, tally)
    }
}

fn rows(
    file: &Arc<File>,
    path: &str,
    stored: &Arc<Dataset>,
    reading: &VariableReading,
    is_line: bool,
    tally: &Arc<Tally>,
) -> Result<Arc<dyn Rows>, Unreadable> {
    if is_text(stored) {
        return joined(file, path, stored, tally);
    }
    let opened = datasets::open(file, path, &reading.dataset)?;
    let missing = match reading.missing {
        _ if compound::is_record(stored) => FillTest::none(),
        ref missing => FillTest::any_of(&reading.dataset.datatype, missing),
    };
    let rows: Arc<dyn Rows> = Arc::new(along(is_line, opened, missing, tally.clone()));
    let is_same = reading.dataset.datatype == stored.datatype;
    // An enumeration's codes are read as stored.
    if reading.packing.is_none() && (is_same || matches!(reading.dataset.datatype.class, Class::Enum { .. })) {
        return Ok(rows);
    }
    // In an array, a count of time stays a number.
    let mut packing = reading.packing.clone();
    packing.count = packing.count.filter(|_| is_line);
    let datatype = (!is_same).then(|| {
        let plain = along(is_line, datasets::open(file, path, stored).ok()?, FillTest::none(), tally.clone());
        plain.facts().stored.datatype.clone()
    });
    Ok(Arc::new(PackedRows::new(path.to_owned(), rows, packing, datatype.flatten(), tally.clone())))
}

/// The elements of a dataset as rows, or the slices along its first axis.
fn along(is_line: bool, dataset: Arc<store::StoredDataset>, missing: FillTest, tally: Arc<Tally>) -> DatasetRows {
    match is_line {
        true => DatasetRows::new(dataset, u64::MAX, missing, tally),
        false => DatasetRows::along_first(dataset, missing, tally),
    }
}

/// Pads a column with nulls at its end, so that it has `rows` rows.
pub(super) fn padded(column: Column, stored: &Dataset, rows: u64) -> Column {
    let Ok(own) = &column.rows else { return column };
    if own.len() >= rows {
        return column;
    }
    let width = own.stored_width().filter(|width| *width <= WIDEST_FILL).unwrap_or(0) as usize;
    let fill = match &stored.fill {
        Fill::Explicit(fill) if !fill.bytes.is_empty() => {
            let repeated = fill.bytes.iter().cycle().copied();
            if width.is_multiple_of(fill.bytes.len()) { repeated.take(width).collect() } else { Vec::new() }
        }
        _ => vec![0; width],
    };
    let padded = PaddedRows::new(column.path.clone(), own.clone(), rows, fill);
    let texts = column
        .stored_strings
        .as_ref()
        .map(|texts| Arc::new(PaddedRows::new(column.path.clone(), texts.clone(), rows, Vec::new())) as Arc<dyn Rows>);
    Column { rows: Ok(Arc::new(padded)), stored_strings: texts, ..column }
}

/// Whether a variable holds characters that make up texts along its last axis.
pub(super) fn is_text(dataset: &Dataset) -> bool {
    is_character(dataset) && dataset.shape.len() >= 2 && dataset.shape.last() != Some(&0)
}

/// Whether a variable is a single text: characters along a dimension that they do not label.
pub(super) fn is_one_text(dataset: &Dataset) -> bool {
    is_character(dataset) && matches!(dataset.shape[..], [1..=MOST_LETTERS]) && !scales::is_scale(dataset)
}

/// Whether the elements are single characters.
pub(super) fn is_character(dataset: &Dataset) -> bool {
    matches!(dataset.datatype.class, Class::FixedString { .. }) && dataset.datatype.size == 1
}
