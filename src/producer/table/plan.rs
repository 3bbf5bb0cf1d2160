//! Plans the storage of each column.

use std::collections::HashMap;

use arrow_schema::{DataType, Field};

use super::cells::{CellEncoding, item_of};
use super::options::{Options, TextStorage};
use super::planned::{ChosenStorage, ColumnDatasets, PlannedColumn, PlannedDataset, StandsFor};
use super::profile::Profile;
use super::types;
use crate::catalogue::Charset;
use crate::codec::Compression;
use crate::dialects::hep001::names::{ARROW_TYPE, RESERVED};
use crate::h5::element::{AttributeValue, ElementNumber, ElementType, FillSetting};
use crate::producer::boolean;
use crate::producer::options::Revision;
use crate::table::NestedJson;

/// Most rows in a chunk, unless the user sets the number.
const CHUNK: u64 = 65_536;

/// Most bytes in a chunk, unless the user sets its number of rows.
const LONG: u64 = 4 << 20;

/// Most bytes in any chunk: the worker takes no more at once.
const MOST: u64 = 16 << 20;

/// Most characters in a chunk of texts of any length.
const CHARACTERS: u64 = 1 << 20;

/// Texts of up to this many bytes get a fixed width, however short most of them are.
const SHORT: usize = 64;

/// Longer texts get a fixed width if padding multiplies their bytes by no more than this.
const WASTE: u64 = 8;

/// With `--categorical auto`, texts become labels if each occurs this often on average.
const SOME_TIMES: u64 = 8;

/// Longest text that gets a fixed width, in bytes.
pub(super) const LONGEST: usize = 1 << 16;

/// Plans the columns of a table.
pub(super) struct Planner<'a> {
    pub options: &'a Options,
    /// Number of rows of the table, if known.
    pub rows: Option<u64>,
    /// Fill values that the user set, by position of the column.
    pub fills: HashMap<usize, String>,
    /// Units that the user set, by position of the column.
    pub units: HashMap<usize, String>,
    /// Number of datasets planned so far.
    pub parts: usize,
    /// How to compress the chunks of the column being planned.
    pub compression: Compression,
    /// Most bytes in a chunk.
    pub most: u64,
}

impl<'a> Planner<'a> {
    /// Makes a planner that has planned nothing yet.
    pub fn new(options: &'a Options, rows: Option<u64>) -> Self {
        let (fills, units) = (HashMap::new(), HashMap::new());
        let compression = options.compression_of(None);
        Self { options, rows, fills, units, parts: 0, compression, most: LONG }
    }

    /// Plans a column.
    ///
    /// # Errors
    /// Why it cannot be stored, and the option that helps.
    pub fn column(&mut self, at: usize, field: &Field, profile: &Profile) -> Result<PlannedColumn, String> {
        let name = field.name();
        if name.is_empty() || name.contains(['/', '\0']) || name == "." || RESERVED.contains(&name.as_str()) {
            return Err("no HDF5 link, or no column of HEP001, can have this name".into());
        }
        self.compression = self.options.compression_of(Some(name));
        let mut attributes = Vec::new();
        let is_april = self.options.revision == Revision::April;
        let mut chosen = None;
        let labelled = self.is_labelled(name, field.data_type(), profile);
        let shape = match field.data_type() {
            DataType::Dictionary(key, labels) if labels.is_string() => {
                ColumnDatasets::Codes(self.codes(key)?, field.dict_is_ordered().unwrap_or(false))
            }
            _ if labelled => ColumnDatasets::Codes(self.codes(&DataType::Int32)?, false),
            data_type => {
                let nullable = field.is_nullable();
                let (shape, said) = self.shape(at, data_type, nullable, profile, true)?;
                chosen = said;
                shape
            }
        };
        if is_april && shape.is_group() {
            return Err(format!("{} has no place in HEP001 of April: use --revision july", field.data_type()));
        }
        let given = |key: &str| {
            let metadata = field.metadata();
            metadata.get(&format!("h5col.{key}")).or_else(|| metadata.get(key)).cloned()
        };
        let (mut note, mut missing) = (None, None);
        let mut own_units = None;
        if let Some(ChosenStorage { valid, arrow_type, units, note: said, missing: fill, .. }) = chosen {
            if let Some([least, greatest]) = valid {
                attributes.push(("valid_min".to_owned(), least));
                attributes.push(("valid_max".to_owned(), greatest));
            }
            if let Some(arrow_type) = arrow_type {
                attributes.push((ARROW_TYPE.to_owned(), AttributeValue::utf8(&arrow_type)));
            }
            (own_units, note, missing) = (units, said, Some(fill));
        }
        let units = own_units.or_else(|| self.units.get(&at).cloned()).or_else(|| given("units"));
        let others = ["units_vocabulary", "calendar", "description"].map(|key| (key, given(key)));
        for (key, value) in [("units", units)].into_iter().chain(others) {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                attributes.push((key.to_owned(), AttributeValue::utf8(&value)));
            }
        }
        let (stored, row_bytes) = (shape.told(missing.as_deref()), shape.row_bytes());
        Ok(PlannedColumn {
            name: name.clone(),
            shape,
            attributes,
            is_known: profile.is_known,
            stored,
            note,
            row_bytes,
            known: None,
        })
    }

    fn is_labelled(&self, name: &str, data_type: &DataType, profile: &Profile) -> bool {
        let is_named = self.options.categorical.iter().any(|column| column == name);
        let count = profile.labels.as_ref().map(|labels| labels.len() as u64);
        // If each label occurs several times, codes take less room, and carry more meaning.
        let is_few = count.is_some_and(|count| count > 0 && count.saturating_mul(SOME_TIMES) <= profile.rows);
        data_type.is_string() && (is_named || self.options.wants_labels() && is_few)
    }

    /// Plans the datasets for values of a type. If it is a single dataset, also returns the choices made for it.
    fn shape(
        &mut self,
        at: usize,
        data_type: &DataType,
        nullable: bool,
        profile: &Profile,
        is_column: bool,
    ) -> Result<(ColumnDatasets, Option<ChosenStorage>), String> {
        match types::plain(data_type) {
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
                Ok((self.texts(nullable, Some(StandsFor::Bytes)), None))
            }
            data_type if data_type.is_string() => {
                if !is_column {
                    return Ok((self.texts(nullable, None), None));
                }
                let is_wide = self.is_wasteful(profile);
                let wants = self.options.string.unwrap_or(if is_wide { TextStorage::Vlen } else { TextStorage::Fixed });
                if profile.has_nul {
                    let note = "a text has a NUL, which HDF5's strings cannot hold: stored as lists of bytes";
                    let chosen = ChosenStorage::new(u8::ELEMENT, CellEncoding::Bytes(1), FillSetting::Unset, "in MASK");
                    return Ok((
                        self.texts(nullable, Some(StandsFor::Text)),
                        Some(ChosenStorage { note: Some(note.into()), ..chosen }),
                    ));
                }
                let (fill, note) = self.text_fill(at, profile)?;
                match wants {
                    TextStorage::Vlen => {
                        let missing = format!("{fill:?}");
                        let stored = if fill.is_empty() { FillSetting::EmptyText } else { FillSetting::Text(fill) };
                        let mut chosen =
                            ChosenStorage::new(ElementType::VariableText, CellEncoding::Text(16), stored, missing);
                        chosen.note = note;
                        let part = self.part(&chosen);
                        // libhdf5 itself writes these chunks, and offers no other compression here.
                        let compression = match self.compression {
                            Compression::None => Compression::None,
                            _ => Compression::Deflate(6),
                        };
                        Ok((ColumnDatasets::Strings(PlannedDataset { compression, ..part }), Some(chosen)))
                    }
                    TextStorage::Fixed => {
                        let width = profile.longest.max(fill.len()).max(1);
                        let mut bytes = fill.clone().into_bytes();
                        bytes.resize(width, 0);
                        let element = ElementType::Text { charset: Charset::Utf8, size: width, is_terminated: false };
                        let missing = format!("{fill:?}");
                        let mut chosen =
                            ChosenStorage::new(element, CellEncoding::Text(width), FillSetting::Bytes(bytes), missing);
                        chosen.note = note;
                        Ok((ColumnDatasets::Cells(self.part(&chosen), chosen.cells.clone()), Some(chosen)))
                    }
                }
            }
            DataType::FixedSizeList(item, count)
                if *count > 0
                    && (item.data_type().is_integer() || item.data_type().is_floating())
                    && !self.has_missing_items(profile) =>
            {
                let inner = self.cells(at, item.data_type(), false, part_of(profile))?;
                let count = *count as usize;
                let fill = match &inner.fill {
                    FillSetting::Bytes(fill) => FillSetting::Bytes(fill.repeat(count)),
                    _ => {
                        return Err("every value of the items may be one: cast it to list".into());
                    }
                };
                let element = ElementType::Array(Box::new(inner.element), count as u64);
                let cells = CellEncoding::Items(Box::new(inner.cells), count);
                let missing = format!("{} in each place", inner.missing);
                let chosen = ChosenStorage { arrow_type: None, ..ChosenStorage::new(element, cells, fill, missing) };
                Ok((ColumnDatasets::Cells(self.part(&chosen), chosen.cells.clone()), Some(chosen)))
            }
            list if let Some(item) = item_of(list) => {
                let offsets = self.offsets();
                let mask = nullable.then(|| self.mask());
                let (mut items, chosen) =
                    self.shape(at, item.data_type(), item.is_nullable(), part_of(profile), false)?;
                if let (ColumnDatasets::Cells(part, _), Some(chosen)) = (&mut items, chosen) {
                    let attributes = [(ARROW_TYPE, chosen.arrow_type), ("units", chosen.units)];
                    part.attributes = attributes.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
                }
                Ok((ColumnDatasets::Lists { offsets, mask, items: Box::new(items) }, None))
            }
            data_type => match self.cells(at, data_type, nullable, profile) {
                Ok(chosen) => Ok((ColumnDatasets::Cells(self.part(&chosen), chosen.cells.clone()), Some(chosen))),
                Err(reason) => {
                    let json = NestedJson::of(data_type).ok_or(reason)?;
                    let chosen = ChosenStorage::new(u8::ELEMENT, CellEncoding::Bytes(1), FillSetting::Unset, "in MASK");
                    let note = "no compound of HEP001 has such values: kept as JSON, in lists of bytes";
                    let texts = self.texts(nullable, Some(StandsFor::Json(json)));
                    Ok((texts, Some(ChosenStorage { note: Some(note.into()), ..chosen })))
                }
            },
        }
    }

    fn has_missing_items(&self, profile: &Profile) -> bool {
        let items = part_of(profile);
        items.nulls > profile.nulls.saturating_mul(items.rows.checked_div(profile.rows).unwrap_or(0))
    }

    fn is_wasteful(&self, profile: &Profile) -> bool {
        let all = (profile.longest as u64).saturating_mul(profile.rows);
        profile.longest > LONGEST
            || profile.longest > SHORT && all > (profile.bytes + profile.rows).saturating_mul(WASTE).max(1 << 20)
    }

    fn part(&mut self, chosen: &ChosenStorage) -> PlannedDataset {
        let width = chosen.cells.width();
        let is_number = !matches!(chosen.cells, CellEncoding::Text(_) | CellEncoding::Bytes(_) | CellEncoding::Boolean)
            && width > 1;
        self.dataset(chosen.element.clone(), width, chosen.fill.clone(), is_number, CHUNK)
    }

    fn dataset(
        &mut self,
        element: ElementType,
        width: usize,
        fill: FillSetting,
        shuffles: bool,
        usual: u64,
    ) -> PlannedDataset {
        let number = self.parts;
        self.parts += 1;
        let width_of = width.max(1) as u64;
        let chunk = match self.options.chunk_rows {
            Some(rows) => rows.min((MOST / width_of).max(1)),
            None => {
                let few = self.rows.map_or(usual, |rows| rows.checked_next_power_of_two().unwrap_or(rows).max(1024));
                usual.min(few).min((self.most / width_of).max(1))
            }
        };
        PlannedDataset {
            number,
            element,
            width,
            fill,
            chunk,
            shuffles,
            compression: self.compression,
            attributes: Vec::new(),
            resumed: None,
        }
    }

    fn codes(&mut self, key: &DataType) -> Result<PlannedDataset, String> {
        let width = key.primitive_width().filter(|_| key.is_integer()).ok_or_else(|| format!("codes of {key}"))?;
        let (element, fill) = match key.is_signed_integer() {
            true => (ElementType::Signed(width as u8), vec![0xff; width]),
            false => (ElementType::Unsigned(width as u8), vec![0xff; width]),
        };
        Ok(self.dataset(element, width, FillSetting::Bytes(fill), width > 1, CHUNK))
    }

    fn offsets(&mut self) -> PlannedDataset {
        self.dataset(u64::ELEMENT, 8, FillSetting::Unset, true, CHUNK)
    }

    fn mask(&mut self) -> PlannedDataset {
        self.dataset(boolean::element(), 1, FillSetting::Unset, false, CHUNK)
    }

    fn texts(&mut self, nullable: bool, stands_for: Option<StandsFor>) -> ColumnDatasets {
        let offsets = self.offsets();
        let mask = nullable.then(|| self.mask());
        let bytes = self.dataset(u8::ELEMENT, 1, FillSetting::Unset, false, CHARACTERS);
        // The number of rows says nothing about the number of bytes.
        let usual = CHARACTERS.min(self.most).min(bytes.chunk.max(1) * 16);
        let chunk = self.options.chunk_rows.map_or(usual, |_| bytes.chunk);
        ColumnDatasets::Texts { offsets, mask, bytes: PlannedDataset { chunk, ..bytes }, stands_for }
    }
}

fn part_of(profile: &Profile) -> &Profile {
    profile.parts.first().unwrap_or(profile)
}
