//! A small table as HEP001 of April 2026 has it: object references both ways, reserved names in lower case.

use super::SampleError;
use super::content::{Block, LABELS, missing};
use super::table::min_max;
use super::writer::{Context, Dataset, Node};
use crate::h5::objects::c_string;
use crate::h5::objects::storage::{Fill, Storage, UNLIMITED};
use crate::h5::objects::types::{Number, Text, Type};
use crate::h5::steps::References;

const ROWS: u64 = 500;
const CHUNK: u64 = 128;

/// Writes the table `events` into `parent`.
pub(super) fn write(parent: &Node) -> Result<(), SampleError> {
    let table = parent.group("events")?;
    let at = table.path();
    // Twelve bytes: no room for a NUL (§5.1).
    table.text_padded(c"CLASS", "COLUMN_TABLE")?;
    table.text(c"VERSION", Text::Ascii, "1.0")?;
    table.text(c"TITLE", Text::Utf8, "Calibration events")?;
    table.text(c"description", Text::Utf8, "Made-up events in the layout of the April 2026 draft of HEP001.")?;
    table.texts(c"column-order", &["ts", "energy", "label"])?;
    table.text(c"_index", Text::Utf8, "row_id")?;

    let block = Block::of(0, ROWS);
    let fixed = Storage::contiguous(&[ROWS]);
    let chunked = Storage::chunked(&[ROWS], &[UNLIMITED], &[CHUNK]);

    let row_id = table.dataset("row_id", Type::number::<u64>().at(at)?, &fixed, &Fill::of(missing::U64))?;
    row_id.write(0, &block.event_id)?;
    let ts = table.dataset("ts", Type::number::<i64>().at(at)?, &chunked, &Fill::of(missing::I64))?;
    ts.write(0, &block.ts)?;
    ts.node().text(c"units", Text::Utf8, "ns")?;
    let energy = table.dataset("energy", Type::number::<f32>().at(at)?, &chunked, &Fill::of(missing::F32))?;
    energy.write(0, &block.energy)?;
    energy.node().text(c"units", Text::Utf8, "MeV")?;
    let label = table.dataset("label", Type::number::<i8>().at(at)?, &fixed, &Fill::of(missing::LABEL))?;
    label.write(0, &block.label)?;

    for column in [&ts, &energy, &label] {
        column.node().references(c"_indexes", References::Object, &[row_id.node()])?;
    }
    let labelled = [ts.node(), energy.node(), label.node()];
    row_id.node().references(c"_columns_list", References::Object, &labelled)?;

    let categories = categories(&table)?;
    label.node().reference(c"_categories", References::Object, categories.node())?;

    search_index(&table.group("_search_indexes")?, &ts, &block.ts)
}

fn categories(table: &Node) -> Result<Dataset, SampleError> {
    let storage = Storage::contiguous(&[LABELS.len() as u64]);
    let categories =
        table.dataset("label_categories", Type::variable_text().at(table.path())?, &storage, &Fill::Unset)?;
    let labels = LABELS.iter().map(|label| c_string(label)).collect::<Result<Vec<_>, _>>().at(table.path())?;
    categories.write_texts(0, &labels.iter().map(|label| label.as_c_str()).collect::<Vec<_>>())?;
    categories.node().text(c"encoding-type", Text::Utf8, "categorical")?;
    categories.node().boolean(c"ordered", false)?;
    Ok(categories)
}

fn search_index(group: &Node, ts: &Dataset, values: &[i64]) -> Result<(), SampleError> {
    let entries: Vec<_> = values.chunks(CHUNK as usize).map(min_max).collect();
    let storage = Storage::growing(entries.len() as u64, 64);
    let index = group.dataset(
        "ts__chunk_minmax",
        Type::min_max(<i64 as Number>::file_type()).at(group.path())?,
        &storage,
        &Fill::Unset,
    )?;
    index.write(0, &entries)?;
    index.node().text(c"KIND", Text::Ascii, "CHUNK_MINMAX")?;
    index.node().numbers(c"chunk_shape", &[CHUNK])?;
    index.node().references(c"_columns_list", References::Object, &[ts.node()])?;
    ts.node().references(c"_search_indexes", References::Object, &[index.node()])
}
