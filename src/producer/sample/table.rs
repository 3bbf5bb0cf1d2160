//! Writes the large table, `/run_042`, which follows HEP001 of July 2026 and has a column of every kind.

use std::ffi::CStr;

use super::content::{CHARGE_RANGE, DETECTORS, LABELS, STATION_SIZE, SampleBlock, missing};
use super::entry;
use crate::activity::{Unit, Work};
use crate::catalogue::Charset;
use crate::h5::create::{CreatedDataset, CreatedObject, Error, FillSetting, Storage, UNLIMITED};
use crate::h5::element::{AttributeValue, ElementNumber, ElementType};
use crate::h5::steps::References;
use crate::producer::boolean;

/// Rows made and written at once. This is a multiple of every column's chunk, so that each chunk is compressed only
/// once, and of 8, so that rows fill whole bytes of a bitmap.
const BLOCK: u64 = 32_768;

/// Rows in a chunk of most columns.
const CHUNK: u64 = BLOCK;

/// Rows in a chunk of wide columns: columns may have different chunks.
const SMALL_CHUNK: u64 = BLOCK / 2;

/// Rows preallocated for later events, which do not belong to the table yet.
const SPARE: u64 = 1000;

/// Rows in a byte of a bitmap.
const BITS: u64 = 8;

const NAME: &str = "run_042";

/// `GENERATION` of the table, and of the rows that the search indexes cover.
const GENERATION: u64 = 0;

/// Name of a column, with a non-ASCII letter and a space.
const LENGTH: &str = "Länge (µm)";

const ORDER: [&str; 14] = [
    "event_id", "ts", "energy", "label", "hit", "detector", "station", "comment", "position", "charge", LENGTH,
    "calib", "readings", "tags",
];

/// Writes the table into the root group.
pub(super) fn write(root: &CreatedObject<'_>, rows: u64) -> Result<(), Error> {
    let table = root.group(NAME)?;
    describe(&table, rows)?;
    let mut columns = Columns::create(&table, rows)?;
    let categories = categories(&table)?;
    columns.label.node().reference("CATEGORIES", References::Standard, categories.node())?;
    let indexes = Indexes::create(&table.group("SEARCH_INDEXES")?, rows)?;
    columns.ts.node().references("SEARCH_INDEX_LIST", References::Standard, &[indexes.min_max.node()])?;
    columns.label.node().references("SEARCH_INDEX_LIST", References::Standard, &[indexes.bitmap.node()])?;
    table.references("INDEX_COLUMNS", References::Standard, &[columns.event_id.node()])?;

    let work = Work::begin(NAME, "writing", Unit::Rows);
    work.expect(rows);
    let mut first = 0;
    while first < rows {
        work.reach(first);
        let block = SampleBlock::of(first, BLOCK.min(rows - first));
        columns.write(first, &block)?;
        indexes.write(first, &block)?;
        first += BLOCK;
    }
    // NROWS is written last, since it makes the rows part of the table.
    table.attribute("NROWS", &AttributeValue::number(rows))
}

fn describe(table: &CreatedObject<'_>, rows: u64) -> Result<(), Error> {
    table.attribute("CLASS", &AttributeValue::ascii("COLUMN_TABLE"))?;
    table.attribute("VERSION", &AttributeValue::ascii("1.0"))?;
    table.attribute("TITLE", &AttributeValue::utf8("Run 42: detector events"))?;
    let description = format!("{rows} made-up events of a detector that does not exist, with a column of every kind.");
    table.attribute("description", &AttributeValue::utf8(&description))?;
    table.attribute("column-order", &AttributeValue::texts(&ORDER))?;
    table.attribute("_index", &AttributeValue::utf8("event_id"))?;
    table.attribute("units_vocabulary", &AttributeValue::utf8("UDUNITS-2"))?;
    table.attribute("GENERATION", &AttributeValue::number(GENERATION))
}

fn categories<'f>(table: &CreatedObject<'f>) -> Result<CreatedDataset<'f>, Error> {
    const SIZE: usize = 9;
    let group = table.group("CATEGORIES")?;
    let storage = Storage::contiguous(&[LABELS.len() as u64]);
    let element = ElementType::text(Charset::Utf8, SIZE - 1);
    let dataset = group.dataset("label__CATEGORIES", &element, &storage, &FillSetting::Unset)?;
    let mut bytes = [[0u8; SIZE]; LABELS.len()];
    for (bytes, label) in bytes.iter_mut().zip(LABELS) {
        for (byte, &from) in bytes.iter_mut().zip(label.as_bytes()) {
            *byte = from;
        }
    }
    dataset.write(0, &bytes)?;
    dataset.node().attribute("ordered", &boolean::value(false))?;
    Ok(dataset)
}

/// Writes the descriptive attributes of a column.
fn annotate(column: &CreatedObject<'_>, description: &str, units: Option<&str>) -> Result<(), Error> {
    column.attribute("description", &AttributeValue::utf8(description))?;
    units.map_or(Ok(()), |units| column.attribute("units", &AttributeValue::utf8(units)))
}

/// The columns of the table while they are being written.
struct Columns<'f> {
    event_id: CreatedDataset<'f>,
    ts: CreatedDataset<'f>,
    energy: CreatedDataset<'f>,
    label: CreatedDataset<'f>,
    hit: CreatedDataset<'f>,
    detector: CreatedDataset<'f>,
    station: CreatedDataset<'f>,
    comment: CreatedDataset<'f>,
    position: CreatedDataset<'f>,
    charge: CreatedDataset<'f>,
    length: CreatedDataset<'f>,
    calib: CreatedDataset<'f>,
    readings: Lists<'f>,
    readings_mask: CreatedDataset<'f>,
    readings_values: CreatedDataset<'f>,
    tags: Lists<'f>,
    tags_ends: Lists<'f>,
    tags_chars: CreatedDataset<'f>,
}

impl<'f> Columns<'f> {
    fn create(table: &CreatedObject<'f>, rows: u64) -> Result<Self, Error> {
        let extent = rows + SPARE;
        let usual = Storage::growing(extent, CHUNK);
        let small = Storage::growing(extent, SMALL_CHUNK);
        // Shuffling does not help one-byte elements or text.
        let bytes = usual.clone().unshuffled();
        let text = small.clone().unshuffled();

        let event_id =
            table.dataset(ORDER[0], &u64::ELEMENT, &Storage::contiguous(&[extent]), &FillSetting::of(missing::U64))?;
        annotate(event_id.node(), "Number of the event, unique over all runs.", None)?;

        let ts = table.dataset("ts", &i64::ELEMENT, &usual, &FillSetting::of(missing::I64))?;
        annotate(ts.node(), "Time of the trigger.", Some("ns since 1970-01-01"))?;

        let energy = table.dataset("energy", &f32::ELEMENT, &small, &FillSetting::of(missing::F32))?;
        annotate(energy.node(), "Deposited energy.", Some("MeV"))?;

        let label = table.dataset("label", &i8::ELEMENT, &bytes, &FillSetting::of(missing::LABEL))?;
        annotate(label.node(), "Kind of particle, as classified.", None)?;

        // A boolean column has no fill value (§7).
        let hit = table.dataset("hit", &boolean::element(), &bytes, &FillSetting::Unset)?;
        annotate(hit.node(), "Whether the veto counter was hit.", None)?;

        let element = ElementType::enumeration(&DETECTORS);
        let detector = table.dataset("detector", &element, &bytes, &FillSetting::of(missing::DETECTOR))?;
        annotate(detector.node(), "Part of the detector with the largest signal.", None)?;

        let element = ElementType::text(Charset::Utf8, STATION_SIZE - 1);
        let station = table.dataset("station", &element, &text, &FillSetting::of([0u8; STATION_SIZE]))?;
        annotate(station.node(), "Station that recorded the event.", None)?;

        let comment = table.dataset("comment", &ElementType::VariableText, &small, &FillSetting::EmptyText)?;
        annotate(comment.node(), "Remark of the shift crew.", None)?;

        let element = ElementType::compound(["x", "y", "z"].map(|axis| (axis, f32::ELEMENT)));
        let position = table.dataset("position", &element, &small, &FillSetting::of([missing::F32; 3]))?;
        annotate(position.node(), "Where the track began, from the centre of the detector.", Some("mm"))?;

        let charge = table.dataset("charge", &i16::ELEMENT, &usual, &FillSetting::of(missing::CHARGE))?;
        annotate(charge.node(), "Collected charge, counts of a converter of 12 bits.", None)?;
        charge.node().attribute("valid_min", &AttributeValue::number(CHARGE_RANGE.0))?;
        charge.node().attribute("valid_max", &AttributeValue::number(CHARGE_RANGE.1))?;

        let length = table.dataset(LENGTH, &f64::ELEMENT, &usual, &FillSetting::of(missing::F64))?;
        annotate(length.node(), "Length of the track.", Some("um"))?;

        let element = ElementType::Opaque(missing::CALIB.len());
        let calib = table.dataset("calib", &element, &text, &FillSetting::of(missing::CALIB))?;
        annotate(calib.node(), "Word of the last calibration, as the front end sent it.", None)?;

        let group = list_column(table, "readings", "Readings of the auxiliary sensors.", Some("V"))?;
        let readings = Lists::create(&group, Some(extent))?;
        let readings_mask = group.dataset("MASK", &boolean::element(), &bytes, &FillSetting::Unset)?;
        let values = Storage::growing(0, CHUNK);
        let readings_values = group.dataset("VALUES", &f32::ELEMENT, &values, &FillSetting::of(missing::F32))?;

        let group = list_column(table, "tags", "Tags of the trigger.", None)?;
        let tags = Lists::create(&group, Some(extent))?;
        let strings = group.group("VALUES")?;
        strings.attribute("CLASS", &AttributeValue::ascii("STRING_VALUES"))?;
        let tags_ends = Lists::create(&strings, None)?;
        let chars = Storage::growing(0, CHUNK).unshuffled();
        let tags_chars = strings.dataset("CHARS", &u8::ELEMENT, &chars, &FillSetting::Unset)?;

        Ok(Self {
            event_id,
            ts,
            energy,
            label,
            hit,
            detector,
            station,
            comment,
            position,
            charge,
            length,
            calib,
            readings,
            readings_mask,
            readings_values,
            tags,
            tags_ends,
            tags_chars,
        })
    }

    fn write(&mut self, first: u64, block: &SampleBlock) -> Result<(), Error> {
        self.event_id.write(first, &block.event_id)?;
        self.ts.write(first, &block.ts)?;
        self.energy.write(first, &block.energy)?;
        self.label.write(first, &block.label)?;
        self.hit.write(first, &block.hit)?;
        self.detector.write(first, &block.detector)?;
        self.station.write(first, &block.station)?;
        self.comment.write_texts(first, &block.comment as &[&CStr])?;
        self.position.write(first, &block.position)?;
        self.charge.write(first, &block.charge)?;
        self.length.write(first, &block.length)?;
        self.calib.write(first, &block.calib)?;

        let present: Vec<i8> = block.readings_count.iter().map(|count| i8::from(count.is_some())).collect();
        self.readings_mask.write(first, &present)?;
        self.readings.write(block.readings_count.iter().map(|count| count.unwrap_or(0)))?;
        self.readings_values.append(&block.readings)?;

        let strings = block.tags.iter().copied().flatten();
        self.tags.write(block.tags.iter().map(|tags| tags.len() as u64))?;
        self.tags_ends.write(strings.clone().map(|text| text.len() as u64))?;
        self.tags_chars.append(&strings.flat_map(|text| text.bytes()).collect::<Vec<u8>>())
    }
}

/// Creates the group of a list column (HEP001 of July 2026 §9).
fn list_column<'f>(
    table: &CreatedObject<'f>,
    name: &str,
    description: &str,
    units: Option<&str>,
) -> Result<CreatedObject<'f>, Error> {
    let group = table.group(name)?;
    group.attribute("CLASS", &AttributeValue::ascii("LIST_COLUMN"))?;
    group.attribute("KIND", &AttributeValue::ascii("OFFSETS"))?;
    annotate(&group, description, units)?;
    Ok(group)
}

/// An `OFFSETS` dataset under construction, which holds the boundaries of entries.
struct Lists<'f> {
    dataset: CreatedDataset<'f>,
    /// Whether the dataset has room for all entries from the start; otherwise it grows with them.
    preallocated: bool,
    /// Number of offsets written: one more than entries.
    written: u64,
    /// The last offset written.
    end: u64,
}

impl<'f> Lists<'f> {
    /// Creates the dataset and writes the first offset, 0.
    fn create(group: &CreatedObject<'f>, entries: Option<u64>) -> Result<Self, Error> {
        let extent = entries.map_or(0, |entries| entries + 1);
        let dataset = group.dataset("OFFSETS", &u64::ELEMENT, &Storage::growing(extent, CHUNK), &FillSetting::Unset)?;
        let mut lists = Self { dataset, preallocated: entries.is_some(), written: 0, end: 0 };
        lists.put(&[0])?;
        Ok(lists)
    }

    /// Writes the offsets of entries of these lengths.
    fn write(&mut self, lengths: impl Iterator<Item = u64>) -> Result<(), Error> {
        let offsets: Vec<u64> = lengths
            .map(|length| {
                self.end += length;
                self.end
            })
            .collect();
        self.put(&offsets)
    }

    fn put(&mut self, offsets: &[u64]) -> Result<(), Error> {
        if self.preallocated {
            self.dataset.write(self.written, offsets)?;
        } else {
            self.dataset.append(offsets)?;
        }
        self.written += offsets.len() as u64;
        Ok(())
    }
}

/// The search indexes of the table while they are being written.
struct Indexes<'f> {
    min_max: CreatedDataset<'f>,
    bitmap: CreatedDataset<'f>,
}

impl<'f> Indexes<'f> {
    fn create(group: &CreatedObject<'f>, rows: u64) -> Result<Self, Error> {
        const PROVENANCE: &str = concat!("Built with the table by hepfs ", env!("CARGO_PKG_VERSION"), ".");
        let storage = Storage::growing(rows.div_ceil(CHUNK), 64);
        let min_max = group.dataset("ts__chunk_minmax", &entry::element(), &storage, &FillSetting::Unset)?;
        min_max.node().attribute("KIND", &AttributeValue::ascii("CHUNK_MINMAX"))?;

        let values = group.dataset(
            "label__bitmap__VALUES",
            &i8::ELEMENT,
            &Storage::contiguous(&[LABELS.len() as u64]),
            &FillSetting::Unset,
        )?;
        values.write(0, &CODES)?;
        let count = CODES.len() as u64;
        let storage = Storage::chunked(&[count, rows.div_ceil(BITS)], &[count, UNLIMITED], &[count, BLOCK / BITS]);
        let bitmap = group.dataset("label__bitmap", &u8::ELEMENT, &storage.unshuffled(), &FillSetting::Unset)?;
        bitmap.node().attribute("KIND", &AttributeValue::ascii("BITMAP"))?;
        bitmap.node().reference("VALUES", References::Standard, values.node())?;
        // The order of the codes means nothing.
        bitmap.node().attribute("ordered", &boolean::value(false))?;
        bitmap.node().attribute("exhaustive", &boolean::value(true))?;

        for index in [&min_max, &bitmap] {
            index.node().attribute("SOURCE_GENERATION", &AttributeValue::number(GENERATION))?;
            index.node().attribute("SOURCE_NROWS", &AttributeValue::number(rows))?;
            index.node().attribute("description", &AttributeValue::utf8(PROVENANCE))?;
        }
        Ok(Self { min_max, bitmap })
    }

    fn write(&self, first: u64, block: &SampleBlock) -> Result<(), Error> {
        let entries: Vec<_> = block.ts.chunks(CHUNK as usize).map(entry::of).collect();
        self.min_max.write(first / CHUNK, &entries)?;

        let mut bytes = Vec::new();
        for code in CODES {
            bytes.extend(block.label.chunks(BITS as usize).map(|labels| bits(labels, code)));
        }
        let count = CODES.len() as u64;
        let width = (block.label.len() as u64).div_ceil(BITS);
        self.bitmap.write_box(&[0, first / BITS], &[count, width], &bytes)
    }
}

/// Codes of the labels: their positions in the categories.
const CODES: [i8; LABELS.len()] = [0, 1, 2, 3];

/// Up to eight rows of the bitmap of `code`, the first in the least significant bit (§8.6).
fn bits(labels: &[i8], code: i8) -> u8 {
    labels.iter().rev().fold(0, |byte, &label| byte << 1 | u8::from(label == code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_is_the_least_significant_bit() {
        assert_eq!(bits(&[3, 0, 0, 3, 1, -1, 2, 3], 3), 0b1000_1001);
        assert_eq!(bits(&[3, 0, 3], 3), 0b101);
    }
}
