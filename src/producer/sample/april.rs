//! Writes a small table of HEP001's April 2026 draft, with object references both ways and reserved names in lower
//! case.

use std::ffi::CString;

use super::content::{LABELS, SampleBlock, missing};
use super::entry;
use crate::h5::create::{CreatedDataset, CreatedObject, Error, FillSetting, Storage, UNLIMITED};
use crate::h5::element::{AttributeValue, ElementNumber, ElementType};
use crate::h5::steps::References;
use crate::producer::boolean;

const ROWS: u64 = 500;
const CHUNK: u64 = 128;

/// Writes the table `events` into `parent`.
pub(super) fn write(parent: &CreatedObject<'_>) -> Result<(), Error> {
    let table = parent.group("events")?;
    // Twelve bytes, without room for a NUL (§5.1).
    table.attribute("CLASS", &AttributeValue::padded("COLUMN_TABLE"))?;
    table.attribute("VERSION", &AttributeValue::ascii("1.0"))?;
    table.attribute("TITLE", &AttributeValue::utf8("Calibration events"))?;
    table.attribute(
        "description",
        &AttributeValue::utf8("Made-up events in the layout of the April 2026 draft of HEP001."),
    )?;
    table.attribute("column-order", &AttributeValue::texts(&["ts", "energy", "label"]))?;
    table.attribute("_index", &AttributeValue::utf8("row_id"))?;

    let block = SampleBlock::of(0, ROWS);
    let fixed = Storage::contiguous(&[ROWS]);
    let chunked = Storage::chunked(&[ROWS], &[UNLIMITED], &[CHUNK]);

    let row_id = table.dataset("row_id", &u64::ELEMENT, &fixed, &FillSetting::of(missing::U64))?;
    row_id.write(0, &block.event_id)?;
    let ts = table.dataset("ts", &i64::ELEMENT, &chunked, &FillSetting::of(missing::I64))?;
    ts.write(0, &block.ts)?;
    ts.node().attribute("units", &AttributeValue::utf8("ns"))?;
    let energy = table.dataset("energy", &f32::ELEMENT, &chunked, &FillSetting::of(missing::F32))?;
    energy.write(0, &block.energy)?;
    energy.node().attribute("units", &AttributeValue::utf8("MeV"))?;
    let label = table.dataset("label", &i8::ELEMENT, &fixed, &FillSetting::of(missing::LABEL))?;
    label.write(0, &block.label)?;

    for column in [&ts, &energy, &label] {
        column.node().references("_indexes", References::Object, &[row_id.node()])?;
    }
    let labelled = [ts.node(), energy.node(), label.node()];
    row_id.node().references("_columns_list", References::Object, &labelled)?;

    let categories = categories(&table)?;
    label.node().reference("_categories", References::Object, categories.node())?;

    search_index(&table.group("_search_indexes")?, &ts, &block.ts)
}

fn categories<'f>(table: &CreatedObject<'f>) -> Result<CreatedDataset<'f>, Error> {
    let storage = Storage::contiguous(&[LABELS.len() as u64]);
    let categories = table.dataset("label_categories", &ElementType::VariableText, &storage, &FillSetting::Unset)?;
    // No label contains a NUL, so none is dropped.
    let labels: Vec<CString> = LABELS.iter().filter_map(|label| CString::new(*label).ok()).collect();
    categories.write_texts(0, &labels.iter().map(|label| label.as_c_str()).collect::<Vec<_>>())?;
    categories.node().attribute("encoding-type", &AttributeValue::utf8("categorical"))?;
    categories.node().attribute("ordered", &boolean::value(false))?;
    Ok(categories)
}

fn search_index<'f>(group: &CreatedObject<'f>, ts: &CreatedDataset<'f>, values: &[i64]) -> Result<(), Error> {
    let entries: Vec<_> = values.chunks(CHUNK as usize).map(entry::of).collect();
    let storage = Storage::growing(entries.len() as u64, 64);
    let index = group.dataset("ts__chunk_minmax", &entry::element(), &storage, &FillSetting::Unset)?;
    index.write(0, &entries)?;
    index.node().attribute("KIND", &AttributeValue::ascii("CHUNK_MINMAX"))?;
    index.node().attribute("chunk_shape", &AttributeValue::numbers(&[CHUNK]))?;
    index.node().references("_columns_list", References::Object, &[ts.node()])?;
    ts.node().references("_search_indexes", References::Object, &[index.node()])
}
