//! The large table, `/run_042`: HEP001 of July 2026, a column of every kind.

use std::ffi::CStr;

use super::SampleError;
use super::content::{Block, CHARGE_RANGE, DETECTORS, LABELS, STATION_SIZE, missing};
use super::writer::{Context, Dataset, Node};
use crate::h5::objects::storage::{Fill, Storage, UNLIMITED};
use crate::h5::objects::types::{MinMax, Number, Text, Type};
use crate::h5::steps::References;

/// Rows that are made and written at once. A multiple of every column's chunk, so that no chunk is compressed twice, and of
/// 8, so that a bitmap's bytes are whole.
const BLOCK: u64 = 32_768;

/// Rows in a chunk of most columns.
const CHUNK: u64 = BLOCK;

/// Rows in a chunk of wide columns: columns need not agree.
const SMALL_CHUNK: u64 = BLOCK / 2;

/// Rows preallocated for events to come; they belong to no table yet.
const SPARE: u64 = 1000;

/// Rows in a byte of a bitmap.
const BITS: u64 = 8;

const NAME: &str = "run_042";

/// State of the table that the search indexes describe.
const GENERATION: u64 = 0;

/// Name of a column with a letter beyond ASCII and a space.
const LENGTH: &str = "Länge (µm)";

const ORDER: [&str; 14] = [
    "event_id", "ts", "energy", "label", "hit", "detector", "station", "comment", "position", "charge", LENGTH,
    "calib", "readings", "tags",
];

/// Writes the table into the root group.
pub(super) fn write(root: &Node, rows: u64) -> Result<(), SampleError> {
    let table = root.group(NAME)?;
    describe(&table, rows)?;
    let mut columns = Columns::create(&table, rows)?;
    let categories = categories(&table)?;
    columns.label.node().reference(c"CATEGORIES", References::Standard, categories.node())?;
    let indexes = Indexes::create(&table.group("SEARCH_INDEXES")?, rows)?;
    columns.ts.node().references(c"SEARCH_INDEX_LIST", References::Standard, &[indexes.min_max.node()])?;
    columns.label.node().references(c"SEARCH_INDEX_LIST", References::Standard, &[indexes.bitmap.node()])?;
    table.references(c"INDEX_COLUMNS", References::Standard, &[columns.event_id.node()])?;

    let mut first = 0;
    while first < rows {
        let block = Block::of(first, BLOCK.min(rows - first));
        columns.write(first, &block)?;
        indexes.write(first, &block)?;
        first += BLOCK;
    }
    // Last: what makes the rows part of the table.
    table.number(c"NROWS", rows)
}

fn describe(table: &Node, rows: u64) -> Result<(), SampleError> {
    table.text(c"CLASS", Text::Ascii, "COLUMN_TABLE")?;
    table.text(c"VERSION", Text::Ascii, "1.0")?;
    table.text(c"TITLE", Text::Utf8, "Run 42: detector events")?;
    let description = format!("{rows} made-up events of a detector that does not exist, with a column of every kind.");
    table.text(c"description", Text::Utf8, &description)?;
    table.texts(c"column-order", &ORDER)?;
    table.text(c"_index", Text::Utf8, "event_id")?;
    table.text(c"units_vocabulary", Text::Utf8, "UDUNITS-2")?;
    table.number(c"GENERATION", GENERATION)
}

fn categories(table: &Node) -> Result<Dataset, SampleError> {
    const SIZE: usize = 9;
    let group = table.group("CATEGORIES")?;
    let storage = Storage::contiguous(&[LABELS.len() as u64]);
    let datatype = Type::fixed_text(Text::Utf8, SIZE).at(group.path())?;
    let dataset = group.dataset("label__CATEGORIES", datatype, &storage, &Fill::Unset)?;
    let mut bytes = [[0u8; SIZE]; LABELS.len()];
    for (bytes, label) in bytes.iter_mut().zip(LABELS) {
        for (byte, &from) in bytes.iter_mut().zip(label.as_bytes()) {
            *byte = from;
        }
    }
    dataset.write(0, &bytes)?;
    dataset.node().boolean(c"ordered", false)?;
    Ok(dataset)
}

/// What a column says about itself.
fn annotate(column: &Node, description: &str, units: Option<&str>) -> Result<(), SampleError> {
    column.text(c"description", Text::Utf8, description)?;
    units.map_or(Ok(()), |units| column.text(c"units", Text::Utf8, units))
}

/// The columns of the table.
struct Columns {
    event_id: Dataset,
    ts: Dataset,
    energy: Dataset,
    label: Dataset,
    hit: Dataset,
    detector: Dataset,
    station: Dataset,
    comment: Dataset,
    position: Dataset,
    charge: Dataset,
    length: Dataset,
    calib: Dataset,
    readings: Lists,
    readings_mask: Dataset,
    readings_values: Dataset,
    tags: Lists,
    tags_ends: Lists,
    tags_chars: Dataset,
}

impl Columns {
    fn create(table: &Node, rows: u64) -> Result<Self, SampleError> {
        let at = table.path();
        let extent = rows + SPARE;
        let usual = Storage::growing(extent, CHUNK);
        let small = Storage::growing(extent, SMALL_CHUNK);
        // Shuffling bytes that stand alone or are text only costs time.
        let bytes = usual.clone().unshuffled();
        let text = small.clone().unshuffled();

        let event_id = table.dataset(
            ORDER[0],
            Type::number::<u64>().at(at)?,
            &Storage::contiguous(&[extent]),
            &Fill::of(missing::U64),
        )?;
        annotate(event_id.node(), "Number of the event, unique over all runs.", None)?;

        let ts = table.dataset("ts", Type::number::<i64>().at(at)?, &usual, &Fill::of(missing::I64))?;
        annotate(ts.node(), "Time of the trigger since 1970-01-01T00:00:00Z.", Some("ns"))?;

        let energy = table.dataset("energy", Type::number::<f32>().at(at)?, &small, &Fill::of(missing::F32))?;
        annotate(energy.node(), "Deposited energy.", Some("MeV"))?;

        let label = table.dataset("label", Type::number::<i8>().at(at)?, &bytes, &Fill::of(missing::LABEL))?;
        annotate(label.node(), "Kind of particle, as classified.", None)?;

        // §7: a boolean column has no fill value.
        let hit = table.dataset("hit", Type::boolean().at(at)?, &bytes, &Fill::Unset)?;
        annotate(hit.node(), "Whether the veto counter was hit.", None)?;

        let datatype = Type::enumeration(&DETECTORS).at(at)?;
        let detector = table.dataset("detector", datatype, &bytes, &Fill::of(missing::DETECTOR))?;
        annotate(detector.node(), "Part of the detector with the largest signal.", None)?;

        let datatype = Type::fixed_text(Text::Utf8, STATION_SIZE).at(at)?;
        let station = table.dataset("station", datatype, &text, &Fill::of([0u8; STATION_SIZE]))?;
        annotate(station.node(), "Station that recorded the event.", None)?;

        let comment = table.dataset("comment", Type::variable_text().at(at)?, &small, &Fill::EmptyText)?;
        annotate(comment.node(), "Remark of the shift crew.", None)?;

        let coordinate = f32::file_type();
        let datatype = Type::compound(&[("x", coordinate, 4), ("y", coordinate, 4), ("z", coordinate, 4)]).at(at)?;
        let position = table.dataset("position", datatype, &small, &Fill::of([missing::F32; 3]))?;
        annotate(position.node(), "Where the track began, from the centre of the detector.", Some("mm"))?;

        let charge = table.dataset("charge", Type::number::<i16>().at(at)?, &usual, &Fill::of(missing::CHARGE))?;
        annotate(charge.node(), "Collected charge, counts of a converter of 12 bits.", None)?;
        charge.node().number(c"valid_min", CHARGE_RANGE.0)?;
        charge.node().number(c"valid_max", CHARGE_RANGE.1)?;

        let length = table.dataset(LENGTH, Type::number::<f64>().at(at)?, &usual, &Fill::of(missing::F64))?;
        annotate(length.node(), "Length of the track.", Some("um"))?;

        let datatype = Type::opaque(missing::CALIB.len()).at(at)?;
        let calib = table.dataset("calib", datatype, &text, &Fill::of(missing::CALIB))?;
        annotate(calib.node(), "Word of the last calibration, as the front end sent it.", None)?;

        let group = list_column(table, "readings", "Readings of the auxiliary sensors.", Some("V"))?;
        let readings = Lists::create(&group, Some(extent))?;
        let readings_mask = group.dataset("MASK", Type::boolean().at(at)?, &bytes, &Fill::Unset)?;
        let values = Storage::growing(0, CHUNK);
        let readings_values =
            group.dataset("VALUES", Type::number::<f32>().at(at)?, &values, &Fill::of(missing::F32))?;

        let group = list_column(table, "tags", "Tags of the trigger.", None)?;
        let tags = Lists::create(&group, Some(extent))?;
        let strings = group.group("VALUES")?;
        strings.text(c"CLASS", Text::Ascii, "STRING_VALUES")?;
        let tags_ends = Lists::create(&strings, None)?;
        let chars = Storage::growing(0, CHUNK).unshuffled();
        let tags_chars = strings.dataset("CHARS", Type::number::<u8>().at(at)?, &chars, &Fill::Unset)?;

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

    fn write(&mut self, first: u64, block: &Block) -> Result<(), SampleError> {
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

        let strings = || block.tags.iter().copied().flatten();
        self.tags.write(block.tags.iter().map(|tags| tags.len() as u64))?;
        self.tags_ends.write(strings().map(|text| text.len() as u64))?;
        self.tags_chars.append(&strings().flat_map(|text| text.bytes()).collect::<Vec<u8>>())
    }
}

/// A group that is a list column (HEP001 of July 2026 §9).
fn list_column(table: &Node, name: &str, description: &str, units: Option<&str>) -> Result<Node, SampleError> {
    let group = table.group(name)?;
    group.text(c"CLASS", Text::Ascii, "LIST_COLUMN")?;
    group.text(c"KIND", Text::Ascii, "OFFSETS")?;
    annotate(&group, description, units)?;
    Ok(group)
}

/// An `OFFSETS` dataset that is being written: where entries begin and end.
struct Lists {
    dataset: Dataset,
    /// The dataset has room for all entries; else it grows with them.
    preallocated: bool,
    /// Offsets written, one more than entries.
    written: u64,
    /// The last offset.
    end: u64,
}

impl Lists {
    /// Writes the first offset, 0, too.
    fn create(group: &Node, entries: Option<u64>) -> Result<Self, SampleError> {
        let extent = entries.map_or(0, |entries| entries + 1);
        let datatype = Type::number::<u64>().at(group.path())?;
        let dataset = group.dataset("OFFSETS", datatype, &Storage::growing(extent, CHUNK), &Fill::Unset)?;
        let mut lists = Self { dataset, preallocated: entries.is_some(), written: 0, end: 0 };
        lists.put(&[0])?;
        Ok(lists)
    }

    /// Writes entries of these lengths.
    fn write(&mut self, lengths: impl Iterator<Item = u64>) -> Result<(), SampleError> {
        let offsets: Vec<u64> = lengths
            .map(|length| {
                self.end += length;
                self.end
            })
            .collect();
        self.put(&offsets)
    }

    fn put(&mut self, offsets: &[u64]) -> Result<(), SampleError> {
        if self.preallocated {
            self.dataset.write(self.written, offsets)?;
        } else {
            self.dataset.append(offsets)?;
        }
        self.written += offsets.len() as u64;
        Ok(())
    }
}

/// The search indexes of the table.
struct Indexes {
    min_max: Dataset,
    bitmap: Dataset,
}

impl Indexes {
    fn create(group: &Node, rows: u64) -> Result<Self, SampleError> {
        const PROVENANCE: &str = concat!("Built with the table by hepfs ", env!("CARGO_PKG_VERSION"), ".");
        let at = group.path();
        let storage = Storage::growing(rows.div_ceil(CHUNK), 64);
        let min_max = group.dataset(
            "ts__chunk_minmax",
            Type::min_max(<i64 as Number>::file_type()).at(at)?,
            &storage,
            &Fill::Unset,
        )?;
        min_max.node().text(c"KIND", Text::Ascii, "CHUNK_MINMAX")?;

        let values = group.dataset(
            "label__bitmap__VALUES",
            Type::number::<i8>().at(at)?,
            &Storage::contiguous(&[LABELS.len() as u64]),
            &Fill::Unset,
        )?;
        values.write(0, &CODES)?;
        let count = CODES.len() as u64;
        let storage = Storage::chunked(&[count, rows.div_ceil(BITS)], &[count, UNLIMITED], &[count, BLOCK / BITS]);
        let bitmap =
            group.dataset("label__bitmap", Type::number::<u8>().at(at)?, &storage.unshuffled(), &Fill::Unset)?;
        bitmap.node().text(c"KIND", Text::Ascii, "BITMAP")?;
        bitmap.node().reference(c"VALUES", References::Standard, values.node())?;
        // The codes have no order that means anything.
        bitmap.node().boolean(c"ordered", false)?;
        bitmap.node().boolean(c"exhaustive", true)?;

        for index in [&min_max, &bitmap] {
            index.node().number(c"SOURCE_GENERATION", GENERATION)?;
            index.node().number(c"SOURCE_NROWS", rows)?;
            index.node().text(c"description", Text::Utf8, PROVENANCE)?;
        }
        Ok(Self { min_max, bitmap })
    }

    fn write(&self, first: u64, block: &Block) -> Result<(), SampleError> {
        let entries: Vec<MinMax> = block.ts.chunks(CHUNK as usize).map(min_max).collect();
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

/// Codes of the labels: positions in the categories.
const CODES: [i8; LABELS.len()] = [0, 1, 2, 3];

/// Up to eight rows of a bitmap, the first in the least significant bit (§8.6).
fn bits(labels: &[i8], code: i8) -> u8 {
    labels.iter().rev().fold(0, |byte, &label| byte << 1 | u8::from(label == code))
}

/// The entry of a chunk of `ts` in a chunk min/max index (§8.4).
pub(super) fn min_max(chunk: &[i64]) -> MinMax {
    let present = || chunk.iter().copied().filter(|&value| value != missing::I64);
    MinMax {
        min: present().min().unwrap_or(missing::I64),
        max: present().max().unwrap_or(missing::I64),
        nan_count: 0,
        fill_count: chunk.len() as u64 - present().count() as u64,
        n: chunk.len() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_is_the_least_significant_bit() {
        assert_eq!(bits(&[3, 0, 0, 3, 1, -1, 2, 3], 3), 0b1000_1001);
        assert_eq!(bits(&[3, 0, 3], 3), 0b101);
    }

    #[test]
    fn missing_times_are_counted_and_left_out() {
        let fill = missing::I64;
        assert_eq!(min_max(&[5, fill, -3]), MinMax { min: -3, max: 5, nan_count: 0, fill_count: 1, n: 3 });
        assert_eq!(min_max(&[fill]), MinMax { min: fill, max: fill, nan_count: 0, fill_count: 1, n: 1 });
    }
}
