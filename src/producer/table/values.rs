//! Chooses storage and fill values for values of fixed width.

use arrow_schema::DataType;

use super::cells::CellEncoding;
use super::fills::{self, RangeEnd};
use super::options::NullPolicy;
use super::plan::{LONGEST, Planner};
use super::planned::ChosenStorage;
use super::profile::Profile;
use super::types;
use crate::catalogue::Charset;
use crate::h5::element::{AttributeValue, ElementType, FillSetting};
use crate::producer::boolean;

impl Planner<'_> {
    /// Chooses how to store values of fixed width.
    pub(super) fn cells(
        &self,
        at: usize,
        data_type: &DataType,
        nullable: bool,
        profile: &Profile,
    ) -> Result<ChosenStorage, String> {
        let typed =
            |chosen: ChosenStorage, arrow_type: String| ChosenStorage { arrow_type: Some(arrow_type), ..chosen };
        Ok(match data_type {
            DataType::Boolean if nullable && (profile.nulls > 0 || !profile.is_counted) => {
                let names = [("FALSE", 0i8), ("TRUE", 1), ("MISSING", 2)];
                let chosen = ChosenStorage::new(
                    ElementType::enumeration(&names),
                    CellEncoding::Boolean,
                    FillSetting::of(2i8),
                    "MISSING",
                );
                typed(chosen, "bool".into())
            }
            DataType::Boolean => {
                ChosenStorage::new(boolean::element(), CellEncoding::Boolean, FillSetting::Unset, "none")
            }
            whole if whole.is_integer() => {
                let chosen = self.whole(at, whole, profile)?;
                let is_wider = chosen.cells != CellEncoding::Number(whole.primitive_width().unwrap_or(0));
                if is_wider { typed(chosen, whole.to_string().to_lowercase()) } else { chosen }
            }
            float if float.is_floating() => self.float(at, float, profile)?,
            DataType::Decimal128(_, scale) | DataType::Decimal64(_, scale) | DataType::Decimal32(_, scale)
                if *scale < 0 =>
            {
                return Err(format!(
                    "{data_type}: its scale is negative: `--type COLUMN=decimal(38,0)` has the same numbers"
                ));
            }
            DataType::Decimal128(digits, _) => {
                let arrow_type = types::declared(data_type).unwrap_or_default();
                if *digits <= 18 {
                    let chosen = self.whole(at, &DataType::Int64, &Profile::unknown(&DataType::Int64))?;
                    typed(ChosenStorage { cells: CellEncoding::Widened(8), ..chosen }, arrow_type)
                } else {
                    // No decimal of up to 38 digits has this value.
                    let fill = i128::MIN.to_le_bytes().to_vec();
                    typed(
                        ChosenStorage::new(
                            ElementType::Opaque(16),
                            CellEncoding::Number(16),
                            FillSetting::Bytes(fill),
                            "-2^127",
                        ),
                        arrow_type,
                    )
                }
            }
            // Integers that count a unit: days, cents.
            counted if types::declared(counted).is_some() => {
                let stored = if counted.primitive_width() == Some(4) { DataType::Int32 } else { DataType::Int64 };
                let chosen = ChosenStorage { units: types::units(counted), ..self.whole(at, &stored, profile)? };
                typed(chosen, types::declared(counted).unwrap_or_default())
            }
            DataType::FixedSizeBinary(width) if *width > 0 => {
                let width = *width as usize;
                let patterns = fills::patterns(width);
                let (choice, pattern) = self.free(profile, &patterns)?;
                let missing = pattern.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
                let fill = FillSetting::Bytes(pattern.clone());
                let note = (choice > 0).then(|| format!("the usual bytes for missing values occur: {missing}"));
                ChosenStorage {
                    note,
                    ..ChosenStorage::new(ElementType::Opaque(width), CellEncoding::Bytes(width), fill, missing)
                }
            }
            DataType::Struct(fields) if !fields.is_empty() => {
                let (mut elements, mut cells, mut fill) = (Vec::new(), Vec::new(), Vec::new());
                for (field, part) in fields.iter().zip(&profile.parts) {
                    let inner = match field.data_type() {
                        text if text.is_string() => inner_text(part)?,
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
                        FillSetting::Bytes(bytes) => fill.extend_from_slice(bytes),
                        _ => fill.extend(std::iter::repeat_n(0xff, inner.cells.width())),
                    }
                    elements.push((field.name().clone(), inner.element));
                    cells.push(inner.cells);
                }
                ChosenStorage::new(
                    ElementType::Compound(elements),
                    CellEncoding::Fields(cells),
                    FillSetting::Bytes(fill),
                    "all fields' fills",
                )
            }
            DataType::Decimal256(..) | DataType::Interval(_) | DataType::Null => {
                return Err(format!(
                    "{data_type} has no place in HEP001 (`import --type COLUMN=text` keeps it as text)"
                ));
            }
            other => return Err(format!("{other} has no place in HEP001: leave the column out")),
        })
    }

    /// Chooses how to store integers: with a fill value outside of their range, else in a wider type.
    fn whole(&self, at: usize, data_type: &DataType, profile: &Profile) -> Result<ChosenStorage, String> {
        let own = data_type.primitive_width().unwrap_or(8);
        let is_signed = data_type.is_signed_integer();
        let range = match profile.range {
            Some([RangeEnd::Whole(least), RangeEnd::Whole(greatest)]) => Some([least, greatest]),
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
            if width == 8 {
                // Without nulls, every pattern may be a value, and no fill value is needed.
                if profile.is_counted && profile.nulls == 0 {
                    let bytes = own as u8;
                    let element = if is_signed { ElementType::Signed(bytes) } else { ElementType::Unsigned(bytes) };
                    let note = Some("every value of its type may be one: no value stands for missing ones".to_owned());
                    return Ok(ChosenStorage {
                        note,
                        ..ChosenStorage::new(element, CellEncoding::Number(own), FillSetting::Unset, "none")
                    });
                }
                return Err(format!("{data_type} has no value left for missing ones: use --fill"));
            }
            width *= 2;
        }
    }

    fn float(&self, at: usize, data_type: &DataType, profile: &Profile) -> Result<ChosenStorage, String> {
        let own = data_type.primitive_width().unwrap_or(8);
        let element = ElementType::Float(own as u8);
        if let Some(given) = self.fills.get(&at) {
            let value: f64 = given.parse().map_err(|_| format!("--fill: {given:?} is no number"))?;
            let bytes = match own {
                2 => half::f16::from_f64(value).to_le_bytes().to_vec(),
                4 => (value as f32).to_le_bytes().to_vec(),
                _ => value.to_le_bytes().to_vec(),
            };
            return Ok(ChosenStorage::new(
                element,
                CellEncoding::Number(own),
                FillSetting::Bytes(bytes),
                given.clone(),
            ));
        }
        let all = fills::floats(data_type);
        let (choice, fill) = self.free(profile, &all)?;
        let missing = match (own, fill.as_slice()) {
            (2, &[a, b]) => half::f16::from_le_bytes([a, b]).to_string(),
            (4, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]).to_string(),
            (_, bytes) => bytes.try_into().map_or(String::new(), |bytes| f64::from_le_bytes(bytes).to_string()),
        };
        let note = (choice > 0).then(|| format!("the usual value for missing ones occurs; {missing} stands for them"));
        let chosen = ChosenStorage::new(element, CellEncoding::Number(own), FillSetting::Bytes(fill.clone()), missing);
        let valid = match profile.range {
            Some([RangeEnd::Float(least), RangeEnd::Float(greatest)]) if choice > 0 => {
                Some([least, greatest].map(|value| match own {
                    2 => {
                        AttributeValue::Scalar(ElementType::Float(2), half::f16::from_f64(value).to_le_bytes().to_vec())
                    }
                    4 => AttributeValue::number(value as f32),
                    _ => AttributeValue::number(value),
                }))
            }
            _ => None,
        };
        // A fill value between the extremes is usable if it does not occur, but `valid_min` and `valid_max` would
        // include it.
        let is_outside = match (own, fill.as_slice(), profile.range) {
            (4, &[a, b, c, d], Some([low, high])) => is_outside(f64::from(f32::from_le_bytes([a, b, c, d])), low, high),
            (8, bytes, Some([low, high])) => {
                bytes.try_into().is_ok_and(|bytes| is_outside(f64::from_le_bytes(bytes), low, high))
            }
            _ => false,
        };
        Ok(ChosenStorage { note, valid: valid.filter(|_| is_outside), ..chosen })
    }

    /// The first of these candidates that does not occur among the values, and its position.
    fn free<'v>(&self, profile: &Profile, values: &'v [Vec<u8>]) -> Result<(usize, &'v Vec<u8>), String> {
        let allowed = if self.options.null_policy == NullPolicy::Free { values.len() } else { 1 };
        let free = values.iter().enumerate().take(allowed).find(|(at, _)| profile.met >> at & 1 == 0);
        free.ok_or_else(|| "the values that may stand for missing ones all occur: use --fill or --null-policy".into())
    }

    pub(super) fn text_fill(&self, at: usize, profile: &Profile) -> Result<(String, Option<String>), String> {
        if let Some(given) = self.fills.get(&at) {
            return Ok((given.clone(), None));
        }
        let texts: Vec<Vec<u8>> = fills::texts().iter().map(|text| text.as_bytes().to_vec()).collect();
        let (choice, _) = self.free(profile, &texts)?;
        let fill = fills::texts().get(choice).copied().unwrap_or_default();
        let note = (choice > 0).then(|| format!("\"\" occurs; {fill:?} stands for missing values"));
        Ok((fill.to_owned(), note))
    }
}

fn is_outside(value: f64, low: RangeEnd, high: RangeEnd) -> bool {
    value.is_nan() || RangeEnd::Float(value).is_below(low) || high.is_below(RangeEnd::Float(value))
}

/// How to store the texts of a struct's field, in a fixed width.
fn inner_text(profile: &Profile) -> Result<ChosenStorage, String> {
    if profile.has_nul || profile.longest > LONGEST {
        return Err("a text of a struct has a NUL, or is longer than 64 KiB: make a column of it".into());
    }
    let width = profile.longest.max(1);
    let element = ElementType::Text { charset: Charset::Utf8, size: width, is_terminated: false };
    Ok(ChosenStorage::new(element, CellEncoding::Text(width), FillSetting::Bytes(vec![0xff; width]), ""))
}

/// The least and the greatest integer of this many bytes.
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
) -> ChosenStorage {
    let element = if is_signed { ElementType::Signed(width as u8) } else { ElementType::Unsigned(width as u8) };
    let bytes = |value: i128| value.to_le_bytes().into_iter().take(width).collect::<Vec<u8>>();
    let cells = if width == own { CellEncoding::Number(width) } else { CellEncoding::Widened(width) };
    let valid = range.map(|range| range.map(|end| AttributeValue::Scalar(element.clone(), bytes(end))));
    ChosenStorage {
        valid,
        note,
        ..ChosenStorage::new(element, cells, FillSetting::Bytes(bytes(fill)), fill.to_string())
    }
}
