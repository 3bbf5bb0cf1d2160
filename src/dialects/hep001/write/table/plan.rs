//! How each column of a table to be is stored.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, TimeUnit};

use super::cells::{Cells, item_of};
use super::extend::{KnownLabels, Resumed};
use super::fills::{self, Bound};
use super::options::{NullPolicy, Options, Strings};
use super::profile::Profile;
use crate::catalogue::Charset;
use crate::codec::Compression;
use crate::dialects::hep001::boolean;
use crate::dialects::hep001::names::{ARROW_TYPE, RESERVED};
use crate::dialects::hep001::write::options::Revision;
use crate::h5::element::{Element, Fill, Number, Value};

/// Rows of a chunk, unless the user says otherwise.
const CHUNK: u64 = 65_536;

/// Most bytes of a chunk of long rows.
const LONG: u64 = 4 << 20;

/// Most bytes of a chunk at all, as it is handed to the worker.
const MOST: u64 = 16 << 20;

/// Characters of texts in a chunk.
const CHARACTERS: u64 = 1 << 20;

/// Texts of up to this many bytes all take as many, however short most are.
const SHORT: usize = 64;

/// Longer ones do where padding takes no more than this many times their own bytes.
const WASTE: u64 = 8;

/// With `--categorical auto`, texts are labels where each occurs this often on average.
const SOME_TIMES: u64 = 8;

/// Longest text of a fixed length.
const LONGEST: usize = 1 << 16;

/// A dataset to be.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// Its number among those of the table.
    pub number: usize,
    /// Type of its elements.
    pub element: Element,
    /// Bytes of an element.
    pub width: usize,
    /// The fill value.
    pub fill: Fill,
    /// Elements of a chunk.
    pub chunk: u64,
    /// Bytes are sorted before they are compressed.
    pub shuffles: bool,
    /// How chunks are compressed.
    pub compression: Compression,
    /// Where it goes on, of a table that is there.
    pub resumed: Option<Arc<Resumed>>,
}

impl Part {
    /// The element that stands for a missing one.
    pub fn fill(&self) -> Option<&[u8]> {
        match &self.fill {
            Fill::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// The datasets that make up a column.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    /// A value an element.
    Cells(Part, Cells),
    /// Codes of labels; whether the order of these means something.
    Codes(Part, bool),
    /// Strings of variable length.
    Strings(Part),
    /// Lists: where each ends, which are there, their items.
    Lists { offsets: Part, mask: Option<Part>, items: Box<Shape> },
    /// Texts or bytes of any length: where each ends, which are there, their bytes.
    Texts { offsets: Part, mask: Option<Part>, bytes: Part },
}

impl Shape {
    /// Calls `see` with each dataset.
    pub fn each(&self, see: &mut dyn FnMut(&Part)) {
        match self {
            Self::Cells(part, _) | Self::Codes(part, _) | Self::Strings(part) => see(part),
            Self::Lists { offsets, mask, items } => {
                see(offsets);
                mask.iter().for_each(&mut *see);
                items.each(see);
            }
            Self::Texts { offsets, mask, bytes } => {
                see(offsets);
                mask.iter().for_each(&mut *see);
                see(bytes);
            }
        }
    }
}

/// A column to be.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    /// Its name.
    pub name: String,
    /// The datasets.
    pub shape: Shape,
    /// Attributes of the dataset or group.
    pub attributes: Vec<(String, Value)>,
    /// Whether all values were known.
    pub is_known: bool,
    /// How it is stored, and what stands for a missing value, for people.
    pub stored: String,
    /// What was chosen that a user may want to know.
    pub note: Option<String>,
    /// Bytes of a row before compression, where they are fixed.
    pub row_bytes: u64,
    /// Labels of a column of codes that is there.
    pub known: Option<KnownLabels>,
}

/// Plans the columns.
pub(super) struct Planner<'a> {
    pub options: &'a Options,
    /// Rows of the table, where they are known.
    pub rows: Option<u64>,
    /// What users say of columns.
    pub fills: HashMap<usize, String>,
    pub units: HashMap<usize, String>,
    /// Datasets planned so far.
    pub parts: usize,
    /// What is planned lies in lists, where nothing says that a wider type was another one.
    pub in_list: bool,
}

/// What is chosen for the values of a dataset.
struct Chosen {
    element: Element,
    cells: Cells,
    fill: Fill,
    /// The least and the greatest value, where a fill value other than the usual one needs them.
    valid: Option<[Value; 2]>,
    /// The Arrow type, where HDF5's says too little.
    arrow_type: Option<String>,
    units: Option<String>,
    note: Option<String>,
    /// What stands for a missing value.
    missing: String,
}

impl Chosen {
    fn new(element: Element, cells: Cells, fill: Fill, missing: impl Into<String>) -> Self {
        Self { element, cells, fill, valid: None, arrow_type: None, units: None, note: None, missing: missing.into() }
    }
}

impl Planner<'_> {
    /// Plans a column.
    ///
    /// # Errors
    /// Why it cannot be stored, and the option that helps.
    pub fn column(&mut self, at: usize, field: &Field, profile: &Profile) -> Result<Planned, String> {
        let name = field.name();
        if name.is_empty() || name.contains(['/', '\0']) || name == "." || RESERVED.contains(&name.as_str()) {
            return Err("no HDF5 link, or no column of HEP001, can have this name".into());
        }
        let mut attributes = Vec::new();
        let is_april = self.options.revision == Revision::April;
        let mut chosen = None;
        let labelled = self.is_labelled(name, field.data_type(), profile);
        let shape = match field.data_type() {
            DataType::Dictionary(key, labels) => {
                text_or_number(labels).ok_or_else(|| format!("labels of {labels} have no place in HEP001"))?;
                Shape::Codes(self.codes(key)?, field.dict_is_ordered().unwrap_or(false))
            }
            _ if labelled => Shape::Codes(self.codes(&DataType::Int32)?, false),
            data_type => {
                let nullable = field.is_nullable();
                let (shape, said) = self.shape(at, data_type, nullable, profile, true)?;
                chosen = said;
                shape
            }
        };
        if is_april && matches!(shape, Shape::Lists { .. } | Shape::Texts { .. }) {
            return Err(format!("{} has no place in HEP001 of April: use --revision july", field.data_type()));
        }
        let given = |key: &str| {
            let metadata = field.metadata();
            metadata.get(&format!("h5col.{key}")).or_else(|| metadata.get(key)).cloned()
        };
        let (mut note, mut missing) = (None, None);
        let mut own_units = None;
        if let Some(Chosen { valid, arrow_type, units, note: said, missing: fill, .. }) = chosen {
            if let Some([least, greatest]) = valid {
                attributes.push(("valid_min".to_owned(), least));
                attributes.push(("valid_max".to_owned(), greatest));
            }
            if let Some(arrow_type) = arrow_type {
                attributes.push((ARROW_TYPE.to_owned(), Value::utf8(&arrow_type)));
            }
            (own_units, note, missing) = (units, said, Some(fill));
        }
        let units = own_units.or_else(|| self.units.get(&at).cloned()).or_else(|| given("units"));
        let others = ["units_vocabulary", "description"].map(|key| (key, given(key)));
        for (key, value) in [("units", units)].into_iter().chain(others) {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                attributes.push((key.to_owned(), Value::utf8(&value)));
            }
        }
        let stored = describe(&shape, missing.as_deref());
        let row_bytes = row_bytes(&shape);
        Ok(Planned {
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
        let is_text = matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
        let is_named = self.options.categorical.iter().any(|column| column == name);
        let count = profile.labels.as_ref().map(|labels| labels.len() as u64);
        // Codes take less, and say more, where each label occurs some times.
        let is_few = count.is_some_and(|count| count > 0 && count.saturating_mul(SOME_TIMES) <= profile.rows);
        is_text && (is_named || self.options.wants_labels() && is_few)
    }

    /// The datasets of values of a type; what was chosen for those that are one dataset.
    fn shape(
        &mut self,
        at: usize,
        data_type: &DataType,
        nullable: bool,
        profile: &Profile,
        is_column: bool,
    ) -> Result<(Shape, Option<Chosen>), String> {
        let text = |arrow_type: &str| Chosen {
            arrow_type: Some(arrow_type.to_owned()),
            ..Chosen::new(Element::VariableText, Cells::Bytes(1), Fill::Unset, "in MASK")
        };
        match data_type {
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView if is_column => {
                Ok((self.texts(nullable), Some(text("binary"))))
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                if !is_column {
                    return Ok((self.texts(nullable), None));
                }
                let is_wide = self.is_wasteful(profile);
                let wants = self.options.string.unwrap_or(if is_wide { Strings::Vlen } else { Strings::Fixed });
                if profile.has_nul {
                    let note = "a text has a NUL, which HDF5's strings cannot hold: stored as lists of bytes";
                    return Ok((self.texts(nullable), Some(Chosen { note: Some(note.into()), ..text("utf8") })));
                }
                let (fill, note) = self.text_fill(at, profile)?;
                match wants {
                    Strings::Vlen => {
                        let missing = format!("{fill:?}");
                        let stored = if fill.is_empty() { Fill::EmptyText } else { Fill::Text(fill) };
                        let mut chosen = Chosen::new(Element::VariableText, Cells::Text(16), stored, missing);
                        chosen.note = note;
                        let part = self.part(&chosen);
                        // libhdf5 itself writes these, and knows no other compressor.
                        let compression = match self.options.compression {
                            Compression::None => Compression::None,
                            _ => Compression::Deflate(6),
                        };
                        Ok((Shape::Strings(Part { compression, ..part }), Some(chosen)))
                    }
                    Strings::Fixed => {
                        let width = profile.longest.max(fill.len()).max(1);
                        let mut bytes = fill.clone().into_bytes();
                        bytes.resize(width, 0);
                        let element = Element::Text { charset: Charset::Utf8, size: width, is_terminated: false };
                        let missing = format!("{fill:?}");
                        let mut chosen = Chosen::new(element, Cells::Text(width), Fill::Bytes(bytes), missing);
                        chosen.note = note;
                        Ok((Shape::Cells(self.part(&chosen), chosen.cells.clone()), Some(chosen)))
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
                    Fill::Bytes(fill) => Fill::Bytes(fill.repeat(count)),
                    _ => {
                        return Err("every value of the items may be one: cast it to list".into());
                    }
                };
                let element = Element::Array(Box::new(inner.element), count as u64);
                let cells = Cells::Items(Box::new(inner.cells), count);
                let missing = format!("{} in each place", inner.missing);
                let chosen = Chosen { arrow_type: None, ..Chosen::new(element, cells, fill, missing) };
                Ok((Shape::Cells(self.part(&chosen), chosen.cells.clone()), Some(chosen)))
            }
            _ if item_of(data_type).is_some() => {
                let Some(item) = item_of(data_type) else { return Err("no list".into()) };
                let offsets = self.offsets();
                let mask = nullable.then(|| self.mask());
                let was_in_list = std::mem::replace(&mut self.in_list, true);
                let shape = self.shape(at, item.data_type(), item.is_nullable(), part_of(profile), false);
                self.in_list = was_in_list;
                let (items, chosen) = shape?;
                if let Some(arrow_type) = chosen.as_ref().and_then(|chosen| chosen.arrow_type.as_ref()) {
                    return Err(format!("lists of {arrow_type} have no place in HEP001: cast the items to integers"));
                }
                Ok((Shape::Lists { offsets, mask, items: Box::new(items) }, None))
            }
            _ => {
                let chosen = self.cells(at, data_type, nullable, profile)?;
                Ok((Shape::Cells(self.part(&chosen), chosen.cells.clone()), Some(chosen)))
            }
        }
    }

    fn has_missing_items(&self, profile: &Profile) -> bool {
        let items = part_of(profile);
        items.nulls > profile.nulls.saturating_mul(items.rows.checked_div(profile.rows).unwrap_or(0))
    }

    /// Chooses how values of a fixed width are stored.
    fn cells(&self, at: usize, data_type: &DataType, nullable: bool, profile: &Profile) -> Result<Chosen, String> {
        let typed = |chosen: Chosen, arrow_type: String| Chosen { arrow_type: Some(arrow_type), ..chosen };
        let counted = |chosen: Chosen, unit: &TimeUnit| Chosen { units: Some(short(unit).into()), ..chosen };
        Ok(match data_type {
            DataType::Boolean if nullable && (profile.nulls > 0 || !profile.is_counted) => {
                let names = [("FALSE", 0i8), ("TRUE", 1), ("MISSING", 2)];
                let chosen = Chosen::new(Element::enumeration(&names), Cells::Boolean, Fill::of(2i8), "MISSING");
                typed(chosen, "bool".into())
            }
            DataType::Boolean => Chosen::new(boolean::element(), Cells::Boolean, Fill::Unset, "none"),
            whole if whole.is_integer() => {
                let chosen = self.whole(at, whole, profile)?;
                let is_wider = chosen.cells != Cells::Number(whole.primitive_width().unwrap_or(0));
                if is_wider { typed(chosen, whole.to_string().to_lowercase()) } else { chosen }
            }
            float if float.is_floating() => self.float(at, float, profile)?,
            DataType::Timestamp(unit, zone) => {
                let chosen = self.whole(at, &DataType::Int64, profile)?;
                let zone = zone.as_ref().map_or(String::new(), |zone| format!(", tz={zone}"));
                let units = format!("{} since 1970-01-01 00:00:00", long(unit));
                typed(Chosen { units: Some(units), ..chosen }, format!("timestamp[{}{zone}]", short(unit)))
            }
            DataType::Date32 => {
                let chosen = self.whole(at, &DataType::Int32, profile)?;
                typed(Chosen { units: Some("days since 1970-01-01".into()), ..chosen }, "date32".into())
            }
            DataType::Date64 => {
                let chosen = self.whole(at, &DataType::Int64, profile)?;
                let units = "milliseconds since 1970-01-01 00:00:00";
                typed(Chosen { units: Some(units.into()), ..chosen }, "date64".into())
            }
            DataType::Time32(unit) => {
                typed(counted(self.whole(at, &DataType::Int32, profile)?, unit), format!("time32[{}]", short(unit)))
            }
            DataType::Time64(unit) => {
                typed(counted(self.whole(at, &DataType::Int64, profile)?, unit), format!("time64[{}]", short(unit)))
            }
            DataType::Duration(unit) => {
                typed(counted(self.whole(at, &DataType::Int64, profile)?, unit), format!("duration[{}]", short(unit)))
            }
            DataType::Decimal32(digits, scale) => {
                typed(self.whole(at, &DataType::Int32, profile)?, format!("decimal32({digits}, {scale})"))
            }
            DataType::Decimal64(digits, scale) => {
                typed(self.whole(at, &DataType::Int64, profile)?, format!("decimal64({digits}, {scale})"))
            }
            DataType::Decimal128(digits, scale) => {
                let arrow_type = format!("decimal128({digits}, {scale})");
                if *digits <= 18 {
                    let chosen = self.whole(at, &DataType::Int64, &Profile::unknown(&DataType::Int64))?;
                    typed(Chosen { cells: Cells::Widened(8), ..chosen }, arrow_type)
                } else {
                    // No decimal of 38 digits has it.
                    let fill = i128::MIN.to_le_bytes().to_vec();
                    typed(Chosen::new(Element::Opaque(16), Cells::Number(16), Fill::Bytes(fill), "-2^127"), arrow_type)
                }
            }
            DataType::FixedSizeBinary(width) if *width > 0 => {
                let width = *width as usize;
                let patterns = fills::patterns(width);
                let (choice, pattern) = self.free(profile, &patterns)?;
                let missing = pattern.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
                let fill = Fill::Bytes(pattern.clone());
                let note = (choice > 0).then(|| format!("the usual bytes for missing values occur: {missing}"));
                Chosen { note, ..Chosen::new(Element::Opaque(width), Cells::Bytes(width), fill, missing) }
            }
            DataType::Struct(fields) if !fields.is_empty() => {
                let (mut elements, mut cells, mut fill) = (Vec::new(), Vec::new(), Vec::new());
                for (field, part) in fields.iter().zip(&profile.parts) {
                    let inner = match field.data_type() {
                        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => inner_text(part)?,
                        inner => self.cells(at, inner, false, part)?,
                    };
                    if inner.arrow_type.is_some() || part.is_known && part.nulls > 0 {
                        return Err(format!(
                            "field {:?} of a struct, {}, or a missing value in it, has no place in a compound of HEP001: \
                             make a column of each field",
                            field.name(),
                            field.data_type()
                        ));
                    }
                    match &inner.fill {
                        Fill::Bytes(bytes) => fill.extend_from_slice(bytes),
                        _ => fill.extend(std::iter::repeat_n(0xff, inner.cells.width())),
                    }
                    elements.push((field.name().clone(), inner.element));
                    cells.push(inner.cells);
                }
                Chosen::new(Element::Compound(elements), Cells::Fields(cells), Fill::Bytes(fill), "all fields' fills")
            }
            other => {
                return Err(format!("{other} has no place in HEP001: leave the column out, or cast it"));
            }
        })
    }

    /// Integers: a fill value outside of their range, or else of a wider type.
    fn whole(&self, at: usize, data_type: &DataType, profile: &Profile) -> Result<Chosen, String> {
        let own = data_type.primitive_width().unwrap_or(8);
        let is_signed = data_type.is_signed_integer();
        let range = match profile.range {
            Some([Bound::Whole(least), Bound::Whole(greatest)]) => Some([least, greatest]),
            _ => None,
        };
        let is_free = |value: i128| range.is_none_or(|[least, greatest]| value < least || value > greatest);
        let policy = self.options.null_policy;
        let mut width = own;
        loop {
            let [least, most] = ends(width, is_signed);
            let usual = if is_signed { least + 1 } else { most };
            if let Some(given) = self.fills.get(&at) {
                let value: i128 = given.parse().map_err(|_| format!("--fill: {given:?} is no whole number"))?;
                if value < least || value > most {
                    return Err(format!("--fill: {given} is no value of {data_type}"));
                }
                if !is_free(value) {
                    return Err(format!("--fill: {given} lies among the values of the column"));
                }
                return Ok(whole(width, own, is_signed, value, range.filter(|_| value != usual), None));
            }
            let beyond = range.map(|[least, greatest]| [greatest + 1, least - 1]).into_iter().flatten();
            let others = [least, most].into_iter().chain(beyond).filter(|_| policy == NullPolicy::Free);
            let mut candidates = [usual].into_iter().chain(others);
            if let Some(fill) = candidates.find(|value| (least..=most).contains(value) && is_free(*value)) {
                let note = match (width != own, fill != usual) {
                    (true, _) => Some(format!("{data_type} has no value left for missing ones: stored wider")),
                    (_, true) => Some(format!("{usual} occurs; {fill} stands for missing values")),
                    _ => None,
                };
                return Ok(whole(width, own, is_signed, fill, range.filter(|_| fill != usual), note));
            }
            if policy == NullPolicy::Error {
                return Err(format!("{usual} occurs, which stands for missing values: use --fill or --null-policy"));
            }
            if width == 8 || self.in_list {
                // Where nothing is missing, every value may be one.
                if profile.is_counted && profile.nulls == 0 {
                    let bytes = own as u8;
                    let element = if is_signed { Element::Signed(bytes) } else { Element::Unsigned(bytes) };
                    let note = Some("every value of its type may be one: no value stands for missing ones".to_owned());
                    return Ok(Chosen { note, ..Chosen::new(element, Cells::Number(own), Fill::Unset, "none") });
                }
                return Err(format!("{data_type} has no value left for missing ones: use --fill"));
            }
            width *= 2;
        }
    }

    fn float(&self, at: usize, data_type: &DataType, profile: &Profile) -> Result<Chosen, String> {
        let own = data_type.primitive_width().unwrap_or(8);
        let element = Element::Float(own as u8);
        if let Some(given) = self.fills.get(&at) {
            let value: f64 = given.parse().map_err(|_| format!("--fill: {given:?} is no number"))?;
            let bytes = match own {
                2 => half::f16::from_f64(value).to_le_bytes().to_vec(),
                4 => (value as f32).to_le_bytes().to_vec(),
                _ => value.to_le_bytes().to_vec(),
            };
            return Ok(Chosen::new(element, Cells::Number(own), Fill::Bytes(bytes), given.clone()));
        }
        let all = fills::floats(data_type);
        let (choice, fill) = self.free(profile, &all)?;
        let missing = match (own, fill.as_slice()) {
            (2, &[a, b]) => half::f16::from_le_bytes([a, b]).to_string(),
            (4, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]).to_string(),
            (_, bytes) => bytes.try_into().map_or(String::new(), |bytes| f64::from_le_bytes(bytes).to_string()),
        };
        let note = (choice > 0).then(|| format!("the usual value for missing ones occurs; {missing} stands for them"));
        let chosen = Chosen::new(element, Cells::Number(own), Fill::Bytes(fill.clone()), missing);
        let valid = match profile.range {
            Some([Bound::Float(least), Bound::Float(greatest)]) if choice > 0 => {
                let end = |value: f64| match own {
                    2 => Value::Scalar(Element::Float(2), half::f16::from_f64(value).to_le_bytes().to_vec()),
                    4 => Value::number(value as f32),
                    _ => Value::number(value),
                };
                Some([end(least), end(greatest)])
            }
            _ => None,
        };
        // One that lies among the values is free all the same, but outside of no range.
        let is_outside = match (own, fill.as_slice(), profile.range) {
            (4, &[a, b, c, d], Some([low, high])) => is_outside(f64::from(f32::from_le_bytes([a, b, c, d])), low, high),
            (8, bytes, Some([low, high])) => {
                bytes.try_into().is_ok_and(|bytes| is_outside(f64::from_le_bytes(bytes), low, high))
            }
            _ => false,
        };
        Ok(Chosen { note, valid: valid.filter(|_| is_outside), ..chosen })
    }

    /// The first of some values that does not occur, and its place among them.
    fn free<'v>(&self, profile: &Profile, values: &'v [Vec<u8>]) -> Result<(usize, &'v Vec<u8>), String> {
        let allowed = if self.options.null_policy == NullPolicy::Free { values.len() } else { 1 };
        let free = values.iter().enumerate().take(allowed).find(|(at, _)| profile.met >> at & 1 == 0);
        free.ok_or_else(|| "the values that may stand for missing ones all occur: use --fill or --null-policy".into())
    }

    fn text_fill(&self, at: usize, profile: &Profile) -> Result<(String, Option<String>), String> {
        if let Some(given) = self.fills.get(&at) {
            return Ok((given.clone(), None));
        }
        let texts: Vec<Vec<u8>> = fills::texts().iter().map(|text| text.as_bytes().to_vec()).collect();
        let (choice, _) = self.free(profile, &texts)?;
        let fill = fills::texts().get(choice).copied().unwrap_or_default();
        let note = (choice > 0).then(|| format!("\"\" occurs; {fill:?} stands for missing values"));
        Ok((fill.to_owned(), note))
    }

    fn is_wasteful(&self, profile: &Profile) -> bool {
        let all = (profile.longest as u64).saturating_mul(profile.rows);
        profile.longest > LONGEST
            || profile.longest > SHORT && all > (profile.bytes + profile.rows).saturating_mul(WASTE).max(1 << 20)
    }

    fn part(&mut self, chosen: &Chosen) -> Part {
        let width = chosen.cells.width();
        let is_number = !matches!(chosen.cells, Cells::Text(_) | Cells::Bytes(_) | Cells::Boolean) && width > 1;
        self.dataset(chosen.element.clone(), width, chosen.fill.clone(), is_number, CHUNK)
    }

    fn dataset(&mut self, element: Element, width: usize, fill: Fill, shuffles: bool, usual: u64) -> Part {
        let number = self.parts;
        self.parts += 1;
        let width_of = width.max(1) as u64;
        let chunk = match self.options.chunk_rows {
            Some(rows) => rows.min((MOST / width_of).max(1)),
            None => {
                let few = self.rows.map_or(usual, |rows| rows.checked_next_power_of_two().unwrap_or(rows).max(1024));
                usual.min(few).min((LONG / width_of).max(1))
            }
        };
        Part { number, element, width, fill, chunk, shuffles, compression: self.options.compression, resumed: None }
    }

    fn codes(&mut self, key: &DataType) -> Result<Part, String> {
        let width = key.primitive_width().filter(|_| key.is_integer()).ok_or_else(|| format!("codes of {key}"))?;
        let (element, fill) = match key.is_signed_integer() {
            true => (Element::Signed(width as u8), vec![0xff; width]),
            false => (Element::Unsigned(width as u8), vec![0xff; width]),
        };
        Ok(self.dataset(element, width, Fill::Bytes(fill), width > 1, CHUNK))
    }

    fn offsets(&mut self) -> Part {
        self.dataset(u64::ELEMENT, 8, Fill::Unset, true, CHUNK)
    }

    fn mask(&mut self) -> Part {
        self.dataset(boolean::element(), 1, Fill::Unset, false, CHUNK)
    }

    fn texts(&mut self, nullable: bool) -> Shape {
        let offsets = self.offsets();
        let mask = nullable.then(|| self.mask());
        let bytes = self.dataset(u8::ELEMENT, 1, Fill::Unset, false, CHARACTERS);
        // As many bytes as rows say nothing of how many there will be.
        let chunk = self.options.chunk_rows.map_or(CHARACTERS.min(bytes.chunk.max(1) * 16), |_| bytes.chunk);
        Shape::Texts { offsets, mask, bytes: Part { chunk, ..bytes } }
    }
}

fn part_of(profile: &Profile) -> &Profile {
    profile.parts.first().unwrap_or(profile)
}

fn is_outside(value: f64, low: Bound, high: Bound) -> bool {
    value.is_nan() || Bound::Float(value).is_below(low) || high.is_below(Bound::Float(value))
}

/// A text in a struct, whose length is known.
fn inner_text(profile: &Profile) -> Result<Chosen, String> {
    if profile.has_nul || profile.longest > LONGEST {
        return Err("a text of a struct has a NUL, or is longer than 64 KiB: make a column of it".into());
    }
    let width = profile.longest.max(1);
    let element = Element::Text { charset: Charset::Utf8, size: width, is_terminated: false };
    Ok(Chosen::new(element, Cells::Text(width), Fill::Bytes(vec![0xff; width]), ""))
}

fn text_or_number(labels: &DataType) -> Option<()> {
    let is_text = matches!(labels, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    is_text.then_some(())
}

/// The least and the greatest integer of a width.
fn ends(width: usize, is_signed: bool) -> [i128; 2] {
    let bits = width as u32 * 8;
    if is_signed { [-(1 << (bits - 1)), (1 << (bits - 1)) - 1] } else { [0, (1 << bits) - 1] }
}

fn whole(
    width: usize,
    own: usize,
    is_signed: bool,
    fill: i128,
    range: Option<[i128; 2]>,
    note: Option<String>,
) -> Chosen {
    let element = if is_signed { Element::Signed(width as u8) } else { Element::Unsigned(width as u8) };
    let bytes = |value: i128| value.to_le_bytes().into_iter().take(width).collect::<Vec<u8>>();
    let cells = if width == own { Cells::Number(width) } else { Cells::Widened(width) };
    let valid = range.map(|range| range.map(|end| Value::Scalar(element.clone(), bytes(end))));
    Chosen { valid, note, ..Chosen::new(element, cells, Fill::Bytes(bytes(fill)), fill.to_string()) }
}

fn short(unit: &TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    }
}

fn long(unit: &TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "seconds",
        TimeUnit::Millisecond => "milliseconds",
        TimeUnit::Microsecond => "microseconds",
        TimeUnit::Nanosecond => "nanoseconds",
    }
}

fn describe(shape: &Shape, missing: Option<&str>) -> String {
    let of = |part: &Part| match &part.element {
        Element::Signed(width) => format!("int{}", u32::from(*width) * 8),
        Element::Unsigned(width) => format!("uint{}", u32::from(*width) * 8),
        Element::Float(width) => format!("float{}", u32::from(*width) * 8),
        Element::Text { size, .. } => format!("string[{size}]"),
        Element::VariableText => "strings of variable length".to_owned(),
        Element::Opaque(size) => format!("opaque[{size}]"),
        Element::Enum { members, .. } => format!("enum of {}", members.len()),
        Element::Compound(fields) => format!("compound of {}", fields.len()),
        Element::Array(_, count) => format!("array[{count}]"),
    };
    match shape {
        Shape::Cells(part, _) | Shape::Strings(part) => {
            let missing = missing.unwrap_or("none");
            format!("{}, missing {missing}, chunks of {}", of(part), part.chunk)
        }
        Shape::Codes(part, _) => format!("{} codes of labels, chunks of {}", of(part), part.chunk),
        Shape::Lists { items, .. } => format!("lists of {}", describe(items, None)),
        Shape::Texts { .. } => "bytes of any length".to_owned(),
    }
}

fn row_bytes(shape: &Shape) -> u64 {
    match shape {
        Shape::Cells(part, _) | Shape::Strings(part) | Shape::Codes(part, _) => part.width as u64,
        Shape::Lists { .. } | Shape::Texts { .. } => 9,
    }
}
