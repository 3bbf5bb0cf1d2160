//! Interprets a variable's attributes: the CF conventions (§2.5.1 missing data, §3.5 flags, §4.4 time, §8.1 packed
//! data), the defaults of the netCDF library, and xarray's additions.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{
    Array, ArrayRef, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, UInt8Array,
    UInt16Array, UInt32Array, UInt64Array,
};
use arrow_buffer::Buffer;
use arrow_schema::DataType;
use bstr::BString;

use super::rules;
use crate::calendar::{Instant, SECOND};
use crate::catalogue::{Attribute, ByteOrder, Class, Dataset, Datatype, Elements, EnumerationMember, Fill, attribute};
use crate::dialects::attributes::text;
use crate::dialects::stated::{self, ExactNumber};
use crate::dialects::times;
use crate::store::decode::{HeapBytes, Oddities, arrow_type, decode, widen};
use crate::store::statistics::{Scalar, summary};
use crate::table::{Linear, Packing, Rule, UnitCount, Unreadable};

/// Every attribute that this dialect reads.
pub(super) const ATTRIBUTES: [&str; 24] = [
    "CLASS",
    "DIMENSION_LIST",
    "NAME",
    "_Encoding",
    "_FillValue",
    "_NCProperties",
    "_Netcdf4Coordinates",
    "_Netcdf4Dimid",
    "_Unsigned",
    "add_offset",
    "calendar",
    "dtype",
    "flag_masks",
    "flag_meanings",
    "flag_values",
    "instance_dimension",
    "long_name",
    "missing_value",
    "sample_dimension",
    "scale_factor",
    "units",
    "valid_max",
    "valid_min",
    "valid_range",
];

/// The attributes that state missing values.
const STATED: [&str; 2] = [stated::NAME, "missing_value"];

/// Most values of an attribute to read.
const MOST_VALUES: usize = 4096;

/// How to read the elements of a variable, according to its attributes.
#[derive(Debug)]
pub(super) struct VariableReading {
    /// The variable, with the type as which to read its elements; this may differ from the stored one.
    pub dataset: Arc<Dataset>,
    /// The elements that mean missing, unless `packing` lists missing numbers instead.
    pub missing: Vec<Fill>,
    /// How stored numbers become the shown ones.
    pub packing: Packing,
    /// How unpacked integers count time: attoseconds of the unit, and the epoch; or why they stay numbers. `None`: they
    /// do not count time.
    pub times: Option<Result<(i128, Instant), Unreadable>>,
    /// The least and the greatest number to be shown, according to the file.
    pub range: Option<[Option<Scalar>; 2]>,
    /// The number nearest to a stated missing value that the variable's type cannot hold exactly.
    pub near: Option<Scalar>,
    /// The rules that the attributes break, and what was found.
    pub findings: Vec<(&'static Rule, String)>,
}

impl VariableReading {
    /// Reads the attributes of `stored`. Unless `wants_times` is set, instants stay numbers.
    pub fn of(stored: &Arc<Dataset>, wants_times: bool) -> Self {
        let mut reading = Self {
            dataset: stored.clone(),
            missing: Vec::new(),
            packing: Packing::default(),
            times: None,
            range: None,
            near: None,
            findings: Vec::new(),
        };
        for name in ["sample_dimension", "instance_dimension"] {
            if let Some(dimension) = text(&stored.attributes, name) {
                reading.find(&rules::RAGGED, format!("{name} is {dimension:?}"));
            }
        }
        let datatype = reading.read_as(stored);
        if datatype != stored.datatype {
            reading.dataset = Arc::new(stored.described(|dataset| dataset.datatype = datatype));
        }
        match (&stored.datatype.class, is_number(&reading.dataset.datatype)) {
            (Class::FixedString { .. }, _) if stored.datatype.size == 1 => {
                reading.find_encoding(stored);
                // Characters along a second axis make up texts, which are never missing.
                if stored.shape.len() == 1 {
                    reading.missing = reading.stated(stored).into_iter().collect();
                }
            }
            (Class::VariableString { .. }, _) => {
                let texts = STATED.iter().filter_map(|name| attribute(&stored.attributes, name));
                reading.missing = texts.filter_map(|text| reading.element(stored, text)).collect();
            }
            (_, true) => reading.numbers(stored, wants_times),
            (Class::Integer { order, .. }, _) if matches!(reading.dataset.datatype.class, Class::Enum { .. }) => {
                let base = with_sign(stored);
                let missing = reading.missing_values(stored, &base).as_ref().and_then(integers_of);
                reading.missing = match missing {
                    Some(values) => {
                        values.into_iter().map(|value| stored_integer(value, stored.datatype.size, *order)).collect()
                    }
                    None => vec![default_fill(stored)],
                };
            }
            _ => reading.missing = reading.stated(stored).into_iter().collect(),
        }
        reading
    }

    fn find(&mut self, rule: &'static Rule, found: impl Into<String>) {
        self.findings.push((rule, found.into()));
    }

    /// The type that the producer of the variable means.
    fn read_as(&mut self, stored: &Dataset) -> Datatype {
        let (datatype, attributes) = (&stored.datatype, &stored.attributes);
        if !matches!(datatype.class, Class::Integer { .. }) {
            return datatype.clone();
        }
        if datatype.size == 1 && text(attributes, "dtype").as_deref() == Some("bool") {
            return Datatype { size: 1, class: Class::Flag };
        }
        let plain = with_sign(stored);
        let flags = if is_number(&plain) { self.flags(stored, &plain) } else { None };
        match flags {
            Some(members) => Datatype { size: plain.size, class: Class::Enum { base: Box::new(plain), members } },
            None => plain,
        }
    }

    /// The members of an enumeration according to `flag_values`. `None`: the variable is not an enumeration.
    fn flags(&mut self, stored: &Dataset, plain: &Datatype) -> Option<Vec<EnumerationMember>> {
        let attributes = &stored.attributes;
        let values = attribute(attributes, "flag_values")?;
        let is_packed = ["scale_factor", "add_offset"].iter().any(|name| attribute(attributes, name).is_some());
        // With masks, one number combines several flags.
        if is_packed || attribute(attributes, "flag_masks").is_some() {
            return None;
        }
        let meanings = text(attributes, "flag_meanings").unwrap_or_default();
        let names: Vec<&str> = meanings.split_ascii_whitespace().collect();
        let Some(values) = integers(values) else {
            let kind = arrow_type(&values.datatype);
            self.find(&rules::FLAGS, format!("flag_values are of type {kind}, no integers: numbers are shown"));
            return None;
        };
        if values.is_empty() || values.len() != names.len() {
            self.find(&rules::FLAGS, format!("{} values, {} words: numbers are shown", values.len(), names.len()));
            return None;
        }
        let data_type = arrow_type(plain);
        let (mut members, mut met) = (Vec::with_capacity(names.len()), HashSet::new());
        for (stated, name) in values.into_iter().zip(names) {
            let value = within(stated, &data_type, stored);
            match value.filter(|value| met.insert(*value)) {
                Some(value) => members.push(EnumerationMember { name: BString::from(name), value }),
                None => {
                    let wrong = value.map_or_else(|| format!("no {data_type}"), |_| "there twice".into());
                    self.find(&rules::FLAGS, format!("{stated} is {wrong}: numbers are shown"));
                    return None;
                }
            }
        }
        Some(members)
    }

    fn find_encoding(&mut self, stored: &Dataset) {
        let encoding = text(&stored.attributes, "_Encoding").map(|text| text.to_ascii_lowercase());
        if let Some(other) = encoding.filter(|one| !matches!(one.as_str(), "utf-8" | "utf8" | "ascii" | "us-ascii")) {
            self.find(&rules::ENCODING, format!("_Encoding is {other:?}: read as UTF-8"));
        }
    }

    /// The least and the greatest number to be shown, if stated.
    fn valid_range(&mut self, stored: &Dataset) -> Option<[Option<Scalar>; 2]> {
        let [both, least, greatest] = [("valid_range", 2), ("valid_min", 1), ("valid_max", 1)]
            .map(|(name, count)| self.bounds(stored, name, count).unwrap_or_default().into_iter());
        if both.len() > 0 && least.len() + greatest.len() > 0 {
            self.find(&rules::VALID_TWICE, "there are both");
        }
        let mut stated = both;
        let range = [stated.next(), stated.next()];
        let range = [range[0].clone().or_else(|| least.last()), range[1].clone().or_else(|| greatest.last())];
        // Bounds that are integers have the sign of the data, so `_Unsigned` changes their sign as well.
        let read = arrow_type(&self.dataset.datatype);
        let range = range.map(|bound| {
            bound.and_then(|bound| match whole(&bound).filter(|_| read.is_integer()) {
                Some(number) => integer(within(number, &read, stored).unwrap_or(number), &read),
                None => Some(bound),
            })
        });
        let as_floats = range.each_ref().map(|bound| bound.as_ref().and_then(float));
        if let [Some(least), Some(greatest)] = as_floats
            && least > greatest
        {
            self.find(&rules::VALID, format!("from {least} to {greatest}"));
            return None;
        }
        let linear = self.packing.linear;
        let is_whole = matches!(stored.datatype.class, Class::Integer { .. });
        // Float bounds of packed integers are in the unit of the numbers as shown.
        let is_shown =
            linear.is_some() && is_whole && range.iter().flatten().any(|bound| matches!(bound, Scalar::Float(_)));
        let fill = attribute(&stored.attributes, "_FillValue").and_then(values).and_then(|values| floats(&values));
        if let Some([fill]) = fill.as_deref().filter(|_| !is_shown && as_floats.iter().any(Option::is_some)) {
            let [least, greatest] = as_floats;
            if least.is_none_or(|least| least <= *fill) && greatest.is_none_or(|greatest| *fill <= greatest) {
                self.find(&rules::VALID_FILL, format!("it is {fill}"));
            }
        }
        let count = self.packing.count;
        let is_single = linear.map_or(stored.datatype.size <= 4, |linear| linear.is_single) && count.is_none();
        let [least, greatest] = range.map(|bound| match (linear, is_whole) {
            (None, true) => bound.filter(|bound| !matches!(bound, Scalar::Float(_))),
            (linear, _) => {
                let of_stored = linear.filter(|_| !is_shown).unwrap_or_default();
                let number = of_stored.number(float(&bound?)?, is_single);
                match count {
                    Some(count) => count.instant(number).map(Scalar::Int),
                    None => Some(Scalar::Float(number)),
                }
            }
        });
        let falls = !is_shown && linear.and_then(|linear| linear.scale).is_some_and(|scale| scale < 0.0);
        let range = if falls { [greatest, least] } else { [least, greatest] };
        range.iter().any(Option::is_some).then_some(range)
    }

    /// Reads the attribute `name` of this many numbers.
    fn bounds(&mut self, stored: &Dataset, name: &str, count: usize) -> Option<Vec<Scalar>> {
        let values = values(attribute(&stored.attributes, name)?).filter(|values| values.len() == count);
        let bounds = values.map(|values| (0..count).map(|at| summary(&values.slice(at, 1))?.min).collect());
        let bounds: Option<Vec<Scalar>> = bounds.flatten();
        if bounds.is_none() {
            let numbers = if count == 1 { "a number" } else { "two numbers" };
            self.find(&rules::VALID, format!("{name} is not {numbers}"));
        }
        bounds
    }

    fn numbers(&mut self, stored: &Dataset, wants_times: bool) {
        let read = self.dataset.datatype.clone();
        self.packing.linear = self.linear(stored);
        let missing = match self.missing_values(stored, &read) {
            None => default_fill(stored),
            Some(missing) if self.packing.linear.is_none() && missing.len() == 1 && read == stored.datatype => {
                // A single pattern of the stored type can be tested for as in any dataset.
                stated_element(stored).unwrap_or_else(|| {
                    self.packing.missing = Some(missing);
                    Fill::Default
                })
            }
            Some(missing) => {
                self.packing.missing = (!missing.is_empty()).then_some(missing);
                Fill::Default
            }
        };
        let counted = times::counted_by(&stored.attributes).filter(|_| wants_times);
        self.times = match counted {
            Some(Ok((step, epoch))) if self.packing.linear.is_some() || is_float(&read) => {
                let micro = SECOND / 1_000_000;
                let whole = (epoch.is_exact && epoch.attoseconds % micro == 0).then_some(epoch.attoseconds / micro);
                match whole.and_then(|micros| i64::try_from(micros).ok()) {
                    Some(epoch) => {
                        self.packing.count = Some(UnitCount { step, epoch });
                        Some(Ok((micro, Instant { attoseconds: 0, is_exact: true })))
                    }
                    None => Some(Err("it is finer than microseconds, or too far from 1970".into())),
                }
            }
            counted => counted,
        };
        self.range = self.valid_range(stored);
        if let Some(Err(reason)) = &self.times {
            let found = format!("{reason}: numbers are shown");
            self.find(&rules::TIMES, found);
        }
        // Single patterns can be tested for only in numbers that are not packed.
        match missing {
            Fill::Explicit(fill) if !self.packing.is_none() => self.packing.missing = decoded(&read, &fill.bytes),
            missing => self.missing.push(missing),
        }
        match not_a_time(stored) {
            fill if self.packing.is_none() => self.missing.extend(fill),
            // If attributes state missing values, this one is already among them.
            Some(Fill::Explicit(fill)) if self.packing.missing.is_none() && read == stored.datatype => {
                self.packing.missing = decoded(&read, &fill.bytes);
            }
            _ => {}
        }
    }

    /// How attributes pack the stored numbers linearly. `None`: they do not.
    fn linear(&mut self, stored: &Dataset) -> Option<Linear> {
        let [scale, offset] = ["scale_factor", "add_offset"].map(|name| {
            let attribute = attribute(&stored.attributes, name)?;
            let values = values(attribute).and_then(|values| Some((values.data_type().clone(), floats(&values)?)));
            match values.as_ref().map(|(data_type, values)| (data_type, values.as_slice())) {
                Some((data_type, [number])) => Some((*number, *data_type == DataType::Float32)),
                _ => {
                    self.find(&rules::SCALE, format!("{name} is no such number: it is left out"));
                    None
                }
            }
        });
        if let Some((odd, _)) = scale.filter(|(scale, _)| *scale == 0.0 || !scale.is_finite()) {
            self.find(&rules::SCALE_ZERO, format!("it is {odd}"));
        }
        if let Some((odd, _)) = offset.filter(|(offset, _)| !offset.is_finite()) {
            self.find(&rules::OFFSET, format!("it is {odd}"));
        }
        let is_narrow = match stored.datatype.class {
            Class::Integer { .. } => stored.datatype.size <= 2,
            _ => stored.datatype.size <= 4,
        };
        let all_single = matches!((scale, offset), (Some((_, true)), None | Some((_, true))));
        (scale.is_some() || offset.is_some()).then(|| Linear {
            scale: scale.map(|(scale, _)| scale),
            offset: offset.map(|(offset, _)| offset),
            is_single: is_narrow && all_single,
        })
    }

    /// The stored values that mean missing, in the type as which elements are read. `None`: no attribute states any.
    fn missing_values(&mut self, stored: &Dataset, read: &Datatype) -> Option<ArrayRef> {
        let found = STATED.map(|name| Some((name, attribute(&stored.attributes, name)?)));
        let found: Vec<_> = found.into_iter().flatten().collect();
        if found.is_empty() {
            return None;
        }
        let data_type = arrow_type(read);
        let (mut whole, mut broken) = (Vec::new(), Vec::new());
        for (name, attribute) in found {
            let values = values(attribute);
            match values.as_ref().and_then(integers_of) {
                Some(integers) if is_float(read) => {
                    broken.extend(self.exact(name, integers.into_iter().map(ExactNumber::Whole), read));
                }
                Some(integers) => {
                    let fitting = integers.iter().filter_map(|value| within(*value, &data_type, stored));
                    let before = whole.len();
                    whole.extend(fitting);
                    if whole.len() - before < integers.len() {
                        self.find(&rules::MISSING, format!("{name} is no {data_type}: nothing equals it"));
                    }
                }
                None => match values.as_ref().and_then(floats) {
                    Some(floats) if is_float(read) => {
                        broken.extend(self.exact(name, floats.into_iter().map(ExactNumber::Float), read));
                    }
                    // A float that is a whole number means that integer.
                    Some(floats) => {
                        let exact =
                            |value: &f64| (value.fract() == 0.0 && value.abs() < 1e19).then_some(*value as i128);
                        let values = floats.iter().filter_map(exact);
                        let before = whole.len();
                        whole.extend(values.filter_map(|value| within(value, &data_type, stored)));
                        if whole.len() - before < floats.len() {
                            let unfit = floats.iter().filter(|float| exact(float).is_none());
                            let nearest = unfit.filter_map(|float| ExactNumber::Float(*float).nearest(read)).next();
                            self.near = self.near.take().or(nearest);
                            self.find(&rules::MISSING, format!("{name} is no {data_type}: nothing equals it"));
                        }
                    }
                    None => self.find(&rules::MISSING, format!("{name} is no number: nothing equals it")),
                },
            }
        }
        whole.extend(not_a_time(stored).map(|_| i128::from(i64::MIN)));
        whole.sort_unstable();
        whole.dedup();
        broken.dedup();
        Some(if is_float(read) { floats_as(&data_type, &broken) } else { integers_as(&data_type, &whole) })
    }

    /// The numbers that a float type can hold exactly, as xarray compares them. Reports the first that it cannot.
    fn exact(&mut self, name: &str, numbers: impl Iterator<Item = ExactNumber>, read: &Datatype) -> Vec<f64> {
        let (mut exact, mut unfit) = (Vec::new(), None);
        for number in numbers {
            match number.float_of(read.size) {
                Some(float) => exact.push(float),
                None => unfit = unfit.or(Some(number)),
            }
        }
        if let Some(number) = unfit {
            self.near = self.near.take().or_else(|| number.nearest(read));
            self.find(&rules::MISSING, format!("{name} is {number}, no {}: nothing equals it", arrow_type(read)));
        }
        exact
    }

    /// The element that an attribute states. Reports a value that does not fit the type.
    fn element(&mut self, stored: &Dataset, attribute: &Attribute) -> Option<Fill> {
        match stated::element(&stored.datatype, attribute) {
            Ok(element) => element.map(Fill::Explicit),
            Err(unfit) => {
                self.find(&rules::MISSING, unfit.found);
                None
            }
        }
    }

    /// The element that means missing, if an attribute states one.
    fn stated(&mut self, stored: &Dataset) -> Option<Fill> {
        self.element(stored, stating(stored)?)
    }
}

/// The type of the variable, with the sign that `_Unsigned` states if it is an integer.
fn with_sign(stored: &Dataset) -> Datatype {
    let mut datatype = stored.datatype.clone();
    let said = text(&stored.attributes, "_Unsigned").map(|text| text.to_ascii_lowercase());
    if let Class::Integer { signed, .. } = &mut datatype.class {
        match said.as_deref() {
            Some("true") => *signed = false,
            Some("false") => *signed = true,
            _ => {}
        }
    }
    datatype
}

/// The integer that xarray writes for a missing instant or time difference: the least one of 64 bits. `None`: the
/// variable does not count time in such integers.
fn not_a_time(stored: &Dataset) -> Option<Fill> {
    let Class::Integer { order, signed: true, .. } = stored.datatype.class else { return None };
    let is_time = times::counted_by(&stored.attributes).is_some()
        || text(&stored.attributes, "dtype").is_some_and(|dtype| dtype.starts_with("timedelta64"));
    (stored.datatype.size == 8 && is_time).then(|| times::not_a_time(order))
}

/// Whether elements are numbers that hepfs can unpack by attributes.
fn is_number(datatype: &Datatype) -> bool {
    let data_type = arrow_type(datatype);
    matches!(datatype.class, Class::Integer { .. } | Class::Float { .. })
        && (data_type.is_integer() || data_type.is_floating())
}

fn is_float(datatype: &Datatype) -> bool {
    matches!(datatype.class, Class::Float { .. })
}

/// The attribute that states the missing element: `_FillValue`, or else `missing_value`.
fn stating(stored: &Dataset) -> Option<&Attribute> {
    STATED.iter().find_map(|name| attribute(&stored.attributes, name))
}

/// The element that means missing, if an attribute states one and it fits the stored type.
fn stated_element(stored: &Dataset) -> Option<Fill> {
    stated::element(&stored.datatype, stating(stored)?).ok().flatten().map(Fill::Explicit)
}

/// The value with which the netCDF library fills unwritten numbers of two bytes or more, if it is also the HDF5 fill
/// value. Bytes and characters have no such value: their fill is an ordinary value.
pub(super) fn default_fill(stored: &Dataset) -> Fill {
    let Fill::Explicit(fill) = &stored.fill else { return Fill::Default };
    let is_default = decoded(&stored.datatype, &fill.bytes).is_some_and(|fill| match fill.data_type() {
        DataType::Int16 => integers_of(&fill) == Some(vec![-32_767]),
        DataType::UInt16 => integers_of(&fill) == Some(vec![65_535]),
        DataType::Int32 => integers_of(&fill) == Some(vec![-2_147_483_647]),
        DataType::UInt32 => integers_of(&fill) == Some(vec![4_294_967_295]),
        DataType::Int64 => integers_of(&fill) == Some(vec![-9_223_372_036_854_775_806]),
        DataType::UInt64 => integers_of(&fill) == Some(vec![18_446_744_073_709_551_614]),
        DataType::Float32 | DataType::Float64 => floats(&fill) == Some(vec![9.969_209_968_386_869e36]),
        _ => false,
    });
    if is_default { Fill::Explicit(Elements { bytes: fill.bytes.clone(), heap: Vec::new() }) } else { Fill::Default }
}

/// The stored form of an integer of `size` bytes.
fn stored_integer(value: i128, size: u64, order: ByteOrder) -> Fill {
    let mut bytes = value.to_le_bytes().into_iter().take(size as usize).collect::<Vec<u8>>();
    if order == ByteOrder::Big {
        bytes.reverse();
    }
    Fill::Explicit(Elements { bytes, heap: Vec::new() })
}

/// A stored integer in the type as which elements are read, which may have the other sign. `None`: that type cannot
/// hold it.
fn within(value: i128, data_type: &DataType, stored: &Dataset) -> Option<i128> {
    let bits = 8 * stored.datatype.size as u32;
    let is_signed = data_type.is_signed_integer();
    let (least, most) =
        if is_signed { (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
    let was_signed = matches!(stored.datatype.class, Class::Integer { signed: true, .. });
    [value, value + (1_i128 << bits), value - (1_i128 << bits)]
        .into_iter()
        .take(if was_signed == is_signed { 1 } else { 3 })
        .find(|value| (least..=most).contains(value))
}

/// The values of an attribute of numbers. `None`: not numbers, unreadable, or too many.
fn values(attribute: &Attribute) -> Option<ArrayRef> {
    let bytes = &attribute.value.as_ref().ok()?.bytes;
    let is_short = attribute.len()? <= MOST_VALUES as u64;
    decoded(&attribute.datatype, bytes).filter(|_| is_short && is_number(&attribute.datatype))
}

/// Decodes elements. `None`: they cannot be decoded, as those with references or heap data, or of no width.
fn decoded(datatype: &Datatype, bytes: &[u8]) -> Option<ArrayRef> {
    let width = usize::try_from(datatype.size).ok().filter(|width| *width > 0)?;
    decode(datatype, Buffer::from(bytes), bytes.len() / width, &HeapBytes(&[]), &mut Oddities::new()).ok()
}

/// The integers in an attribute. `None`: it holds no integers.
fn integers(attribute: &Attribute) -> Option<Vec<i128>> {
    integers_of(&values(attribute)?)
}

fn integers_of(array: &ArrayRef) -> Option<Vec<i128>> {
    match array.data_type() {
        data_type if !data_type.is_integer() => None,
        DataType::UInt64 => Some(widen::unsigned(array)?.values().iter().map(|value| i128::from(*value)).collect()),
        _ => Some(widen::signed(array)?.values().iter().map(|value| i128::from(*value)).collect()),
    }
}

/// The numbers in an array as float64. `None`: they are not numbers.
fn floats(array: &ArrayRef) -> Option<Vec<f64>> {
    Some(match array.data_type() {
        DataType::Float16 => array.as_primitive::<Float16Type>().values().iter().map(|value| value.to_f64()).collect(),
        DataType::Float32 => array.as_primitive::<Float32Type>().values().iter().map(|value| (*value).into()).collect(),
        DataType::Float64 => array.as_primitive::<Float64Type>().values().to_vec(),
        _ => integers_of(array)?.into_iter().map(|value| value as f64).collect(),
    })
}

/// The number, if it is of an integer type. `None`: a float, even one without a fraction.
fn whole(number: &Scalar) -> Option<i128> {
    match number {
        Scalar::Int(number) => Some((*number).into()),
        Scalar::UInt(number) => Some((*number).into()),
        _ => None,
    }
}

/// An integer as a number of this type. `None`: out of the range of 64 bits.
fn integer(number: i128, data_type: &DataType) -> Option<Scalar> {
    match data_type.is_signed_integer() {
        true => number.try_into().ok().map(Scalar::Int),
        false => number.try_into().ok().map(Scalar::UInt),
    }
}

/// The number as float64. `None`: not a number.
fn float(number: &Scalar) -> Option<f64> {
    match number {
        Scalar::Int(number) => Some(*number as f64),
        Scalar::UInt(number) => Some(*number as f64),
        Scalar::Float(number) => Some(*number),
        Scalar::Bool(_) | Scalar::Text(_) => None,
    }
}

/// Makes an array of this type from integers that are all in its range.
fn integers_as(data_type: &DataType, values: &[i128]) -> ArrayRef {
    macro_rules! of {
        ($array:ty, $native:ty) => {
            Arc::new(values.iter().map(|value| *value as $native).collect::<$array>())
        };
    }
    match data_type {
        DataType::Int8 => of!(Int8Array, i8),
        DataType::Int16 => of!(Int16Array, i16),
        DataType::Int32 => of!(Int32Array, i32),
        DataType::UInt8 => of!(UInt8Array, u8),
        DataType::UInt16 => of!(UInt16Array, u16),
        DataType::UInt32 => of!(UInt32Array, u32),
        DataType::UInt64 => of!(UInt64Array, u64),
        _ => of!(Int64Array, i64),
    }
}

/// Makes an array of this type from floats, rounding them.
fn floats_as(data_type: &DataType, values: &[f64]) -> ArrayRef {
    match data_type {
        DataType::Float16 => {
            Arc::new(values.iter().map(|value| half::f16::from_f64(*value)).collect::<arrow_array::Float16Array>())
        }
        DataType::Float32 => Arc::new(values.iter().map(|value| *value as f32).collect::<Float32Array>()),
        _ => Arc::new(values.iter().copied().collect::<Float64Array>()),
    }
}

/// The name under which a variable is shown: without the prefix that netCDF adds if a variable has the name of a
/// dimension that it does not label.
pub(super) fn shown_name(link: &BString) -> BString {
    link.strip_prefix(b"_nc4_non_coord_").map_or_else(|| link.clone(), BString::from)
}
