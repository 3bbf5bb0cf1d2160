//! Finds the missing elements that an attribute states, in files of any kind.
//!
//! The attribute may have another type than the data, since h5py makes a float64 of a Python float, and an int64 of an
//! integer. It counts if the type of the data can hold its value exactly. Otherwise no element equals it, as in xarray
//! and NumPy, and hepfs reports a finding: for example, no float32 equals the float64 -9999.9.

use arrow_schema::DataType;
use half::f16;

use super::attributes::strings;
use super::hep001::names::DIALECT as HEP001;
use super::netcdf::rules::DIALECT as NETCDF;
use super::{Checks, Dialect};
use crate::catalogue::{
    Attribute, ByteOrder, Class, Dataset, Datatype, Descriptor, Elements, Fill, FloatFormat, attribute,
};
use crate::store::decode::{HeapBytes, Oddities, Oddity, arrow_type, decode, widen};
use crate::store::statistics::Scalar;
use crate::table::{self, Expected, Finding, Near, Table};

crate::table::rules! {
    FILL: Warning "values/fill-value" []
        "an attribute _FillValue is one value that the data can have; any other one makes nothing missing"
        => "write it in the type of the data";
}

/// The attribute that states the missing element.
pub const NAME: &str = "_FillValue";

/// The fault of a stated value that no element equals.
#[derive(Clone, Debug)]
pub struct Unfit {
    /// The stated value, and why no element equals it.
    pub found: String,
    /// The nearest value that the type of the data has. `None`: it has no such value.
    pub nearest: Option<Scalar>,
}

/// A number without rounding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ExactNumber {
    /// An integer.
    Whole(i128),
    /// A floating-point number.
    Float(f64),
}

impl ExactNumber {
    /// The number in an attribute of one element. `None`: not a number.
    fn of(attribute: &Attribute) -> Option<Self> {
        let bytes = attribute.value.as_ref().ok()?.bytes.as_slice();
        let array = decode(plain(&attribute.datatype), bytes.into(), 1, &HeapBytes(&[]), &mut Oddities::new()).ok()?;
        if let Some(unsigned) = widen::unsigned(&array).filter(|_| array.data_type().is_unsigned_integer()) {
            return Some(Self::Whole(unsigned.value(0).into()));
        }
        if let Some(signed) = widen::signed(&array) {
            return Some(Self::Whole(signed.value(0).into()));
        }
        super::attributes::number(attribute).map(Self::Float)
    }

    /// The number as an integer. `None`: not an integer, or too large.
    pub fn whole(self) -> Option<i128> {
        match self {
            Self::Whole(whole) => Some(whole),
            // Every integer of 64 bits stays exact.
            Self::Float(float) => (float.fract() == 0.0 && float.abs() < 1e20).then_some(float as i128),
        }
    }

    /// The number as float64. `None`: it would be rounded.
    fn float(self) -> Option<f64> {
        match self {
            Self::Whole(whole) => Some(whole as f64).filter(|float| *float as i128 == whole),
            Self::Float(float) => Some(float),
        }
    }

    /// The number as a float of `size` bytes. `None`: it would be rounded.
    pub fn float_of(self, size: u64) -> Option<f64> {
        let float = self.float()?;
        Some(rounded(float, size)).filter(|rounded| *rounded == float || float.is_nan())
    }

    /// The value of a type that is nearest to the number. `None`: the type has none.
    pub fn nearest(self, datatype: &Datatype) -> Option<Scalar> {
        match &plain(datatype).class {
            Class::Integer { signed, .. } => {
                let Self::Float(float) = self else { return None };
                let whole = Self::Float(float.round_ties_even()).whole()?;
                within(whole, *signed, datatype.size)?;
                if *signed {
                    i64::try_from(whole).ok().map(Scalar::Int)
                } else {
                    whole.try_into().ok().map(Scalar::UInt)
                }
            }
            Class::Float { .. } => {
                let float = match self {
                    Self::Whole(whole) => whole as f64,
                    Self::Float(float) => float,
                };
                Some(rounded(float, datatype.size)).filter(|float| float.is_finite()).map(Scalar::Float)
            }
            _ => None,
        }
    }

    /// The element of a type that has exactly this value. `None`: no such element.
    fn stored(self, datatype: &Datatype) -> Option<Vec<u8>> {
        let size = usize::try_from(datatype.size).ok()?;
        let (mut bytes, order) = match plain(datatype).class {
            Class::Integer { signed, order, precision, offset: 0 } if u64::from(precision) == 8 * datatype.size => {
                let whole = within(self.whole()?, signed, datatype.size)?;
                (whole.to_le_bytes().get(..size)?.to_vec(), order)
            }
            Class::Float { order, format } => {
                let float = self.float_of(datatype.size)?;
                let bytes = match format {
                    FloatFormat::Half => f16::from_f64(float).to_le_bytes().to_vec(),
                    FloatFormat::Single => (float as f32).to_le_bytes().to_vec(),
                    FloatFormat::Double => float.to_le_bytes().to_vec(),
                    FloatFormat::Extended | FloatFormat::Quadruple | FloatFormat::Other { .. } => return None,
                };
                (bytes, order)
            }
            _ => return None,
        };
        match order {
            ByteOrder::Little => {}
            ByteOrder::Big => bytes.reverse(),
            ByteOrder::Vax => return None,
        }
        Some(bytes)
    }
}

impl std::fmt::Display for ExactNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Whole(whole) => write!(f, "{whole}"),
            Self::Float(float) => write!(f, "{float:?}"),
        }
    }
}

/// Rounds a number to a float of `size` bytes.
fn rounded(float: f64, size: u64) -> f64 {
    match size {
        2 => f16::from_f64(float).to_f64(),
        4 => (float as f32).into(),
        _ => float,
    }
}

/// Returns an integer if it fits into `size` bytes.
fn within(whole: i128, signed: bool, size: u64) -> Option<i128> {
    let bits = u32::try_from(size).ok().filter(|size| (1..=8).contains(size))? * 8;
    let (least, most) = if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
    (least..=most).contains(&whole).then_some(whole)
}

/// The type of an enumeration's codes; any other type is returned as it is.
fn plain(datatype: &Datatype) -> &Datatype {
    match &datatype.class {
        Class::Enum { base, .. } if !datatype.is_boolean() => base,
        _ => datatype,
    }
}

/// Makes an element of variable length from a text.
pub fn stored_text(text: &[u8]) -> Elements {
    let heap = text.to_vec();
    // No attribute is as long as 2^32 bytes, so its length fits.
    let descriptor = Descriptor { length: heap.len() as u32, position: 0, index: 0 };
    Elements { bytes: descriptor.to_bytes().to_vec(), heap }
}

/// The element of `datatype` that an attribute states. `None`: the attribute is unreadable, or it is of another type
/// than `datatype` and that is one of booleans or compounds.
///
/// # Errors
/// Why no element equals the attribute.
pub fn element(datatype: &Datatype, attribute: &Attribute) -> Result<Option<Elements>, Unfit> {
    let unfit = |found: String| Unfit { found, nearest: None };
    let (name, Ok(value)) = (&attribute.name, &attribute.value) else { return Ok(None) };
    if attribute.datatype == *datatype && attribute.len() == Some(1) {
        return Ok(Some(value.clone()));
    }
    if datatype.is_boolean() || matches!(datatype.class, Class::Flag | Class::Compound { .. } | Class::Complex { .. }) {
        return Ok(None);
    }
    let (stated, read) = (arrow_type(&attribute.datatype), arrow_type(datatype));
    match attribute.len() {
        Some(1) => {}
        Some(count) => return Err(unfit(format!("{name} has {count} values"))),
        None => return Err(unfit(format!("{name} has too many values"))),
    }
    let texts = strings(attribute);
    let fitting = match (&datatype.class, texts.as_deref()) {
        (Class::VariableString { .. }, Some([text])) => Some(stored_text(text)),
        (Class::FixedString { padding, .. }, Some([text])) => {
            let mut bytes = text.to_vec();
            let size = usize::try_from(datatype.size).unwrap_or(0);
            let fits = bytes.len() <= size;
            bytes.resize(size, 0);
            let is_same = fits && padding.strip(&bytes) == text.as_slice();
            is_same.then_some(Elements { bytes, heap: Vec::new() })
        }
        _ => None,
    };
    if fitting.is_some() {
        return Ok(fitting);
    }
    match ExactNumber::of(attribute) {
        Some(number) => match number.stored(datatype) {
            Some(bytes) => Ok(Some(Elements { bytes, heap: Vec::new() })),
            None => Err(Unfit {
                found: format!("{name} is {number} of type {stated}, which no {read} is: nothing equals it"),
                nearest: number.nearest(datatype),
            }),
        },
        None => Err(unfit(format!("{name} is of type {stated}, which no {read} is: nothing equals it"))),
    }
}

/// The missing element of this type that the attribute `_FillValue` states, or the default if it states none.
pub fn fill(datatype: &Datatype, attributes: &[Attribute]) -> Fill {
    match attribute(attributes, NAME).map(|attribute| element(datatype, attribute)) {
        Some(Ok(Some(element))) => Fill::Explicit(element),
        _ => Fill::Default,
    }
}

/// Why no element of this type equals the attribute `_FillValue`. `None`: there is no such attribute, or it fits.
pub fn unfit(datatype: &Datatype, attributes: &[Attribute]) -> Option<Unfit> {
    element(datatype, attribute(attributes, NAME)?).err()
}

/// Adds findings on stated values that no element equals. In a full check, also has the nearest values counted when
/// rows are read.
pub fn look(table: Table, checks: Checks) -> Table {
    let mut table = table;
    // For netCDF variables, another rule covers this. In HEP001, an HDF5 fill value takes precedence over the
    // attribute.
    let (is_of_netcdf, is_of_hep001) = (table.dialect == NETCDF, table.dialect == HEP001);
    for column in table.columns.iter_mut().filter(|_| !is_of_netcdf) {
        let Some(dataset) = column.dataset.as_deref() else { continue };
        if is_of_hep001 && matches!(dataset.fill, Fill::Explicit(_)) {
            continue;
        }
        let Some(Unfit { found, nearest }) = unfit(&dataset.datatype, &column.attributes) else { continue };
        // If columns are fields of one dataset, their names tell them apart.
        let of = if column.path == table.path { format!("{}: ", column.name) } else { String::new() };
        let is_as_stored =
            column.rows.as_ref().is_ok_and(|rows| is_of(rows.data_type(), &arrow_type(&dataset.datatype)));
        if let Some(nearest) = nearest.filter(|_| checks.is_full && is_as_stored) {
            let near = Near { rule: &FILL, of: of.clone(), nearest };
            column.meaning.expected.get_or_insert_with(Box::<Expected>::default).near = Some(near);
        }
        // Columns that are also shown by themselves have the finding there instead.
        if !table.only_adds {
            table.findings.push(Finding::new(&column.path, &FILL, of + &found));
        }
    }
    table
}

/// Makes a finding on a dataset at `path` that `dialect` shows as files, if it has a stated value that no element
/// equals.
pub fn of_array(path: &str, dataset: &Dataset, dialect: &dyn Dialect) -> Option<Finding> {
    let is_of_netcdf = dialect.about().name == NETCDF;
    let unfit = unfit(&dataset.datatype, &dataset.attributes).filter(|_| !is_of_netcdf)?;
    Some(Finding::new(path, &FILL, unfit.found))
}

/// Makes a finding on a dataset at `path` if it holds long doubles. This reads no values, so it cannot count those that
/// are inexact.
pub fn long_double(path: &str, dataset: &Dataset) -> Option<Finding> {
    let found = "long doubles; how many are not exact is not counted in an array by itself";
    dataset.datatype.holds_wide_float().then(|| Finding::new(path, table::rule_of(Oddity::Nearest), found))
}

/// Whether a type is `item`, or one of lists of it.
fn is_of(data_type: &DataType, item: &DataType) -> bool {
    match data_type {
        DataType::FixedSizeList(field, _) => is_of(field.data_type(), item),
        other => other == item,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{Charset, EnumerationMember, Padding};

    fn float(size: u64, order: ByteOrder) -> Datatype {
        let format = match size {
            2 => FloatFormat::Half,
            4 => FloatFormat::Single,
            _ => FloatFormat::Double,
        };
        Datatype { size, class: Class::Float { order, format } }
    }

    fn stating(datatype: &Datatype, bytes: &[u8]) -> Attribute {
        let value = Ok(Elements { bytes: bytes.to_vec(), heap: Vec::new() });
        let shape = vec![1];
        Attribute { name: NAME.into(), datatype: datatype.clone(), shape, null: false, value, references: Vec::new() }
    }

    /// The bytes of the element of `datatype` that is what `bytes` of a type are.
    fn bytes(datatype: &Datatype, stated: &Datatype, bytes: &[u8]) -> Option<Vec<u8>> {
        element(datatype, &stating(stated, bytes)).ok()?.map(|element| element.bytes)
    }

    /// What NumPy says of `np.array(stated).astype(dtype) == stated`.
    #[test]
    fn numbers_of_other_types_count_where_they_are_exact() {
        use ByteOrder::{Big, Little};
        let double = |value: f64, datatype: &Datatype| bytes(datatype, &float(8, Little), &value.to_le_bytes());
        let single = float(4, Big);
        assert_eq!(double(-9999.0, &single), Some((-9999_f32).to_be_bytes().to_vec()));
        assert_eq!(double(-9999.9, &single), None);
        assert_eq!(double(1e20, &single), None);
        assert_eq!(double(f64::from(1e20_f32), &single), Some(1e20_f32.to_be_bytes().to_vec()));
        assert!(f32::from_be_bytes(double(f64::NAN, &single).unwrap().try_into().unwrap()).is_nan());
        assert_eq!(double(f64::INFINITY, &single), Some(f32::INFINITY.to_be_bytes().to_vec()));
        assert_eq!(double(2.0, &float(2, Little)), Some(vec![0, 0x40]));
        assert_eq!(double(65_520.0, &float(2, Little)), None);
        let (short, long) = (Datatype::integer(2, true, Big), Datatype::integer(8, true, Little));
        assert_eq!(double(-9999.0, &short), Some((-9999_i16).to_be_bytes().to_vec()));
        for odd in [40_000.0, 0.5, f64::NAN, f64::INFINITY] {
            assert_eq!(double(odd, &short), None, "{odd}");
        }
        assert_eq!(double(-0.0, &short), Some(vec![0, 0]));
        assert_eq!(double(9_223_372_036_854_775_808.0, &long), None);
        assert_eq!(double(-9_223_372_036_854_775_808.0, &long), Some(i64::MIN.to_le_bytes().to_vec()));
        let wide = |value: i64, datatype: &Datatype| bytes(datatype, &long, &value.to_le_bytes());
        assert_eq!(wide(-1, &short), Some(vec![255, 255]));
        assert_eq!(wide(-1, &Datatype::integer(2, false, Little)), None);
        assert_eq!(wide(255, &Datatype::integer(1, false, Little)), Some(vec![255]));
        assert_eq!(wide(256, &Datatype::integer(1, false, Little)), None);
        assert_eq!(wide(16_777_216, &single), Some(16_777_216_f32.to_be_bytes().to_vec()));
        assert_eq!(wide(16_777_217, &single), None);
        assert_eq!(wide((1 << 53) + 1, &float(8, Little)), None);
        assert_eq!(bytes(&float(8, Little), &Datatype::integer(8, false, Little), &[255; 8]), None);
        assert_eq!(
            bytes(&long, &Datatype::integer(4, true, Big), &(-5_i32).to_be_bytes()),
            Some((-5_i64).to_le_bytes().to_vec())
        );
    }

    #[test]
    fn texts_count_whatever_their_length_is_stored_as() {
        let fixed = |size, padding| Datatype { size, class: Class::FixedString { padding, charset: Charset::Ascii } };
        let class = Class::VariableString { padding: Padding::NullTerminated, charset: Charset::Utf8 };
        let variable = Datatype { size: 16, class };
        let text = stored_text(b"NA");
        let of_length = Attribute { value: Ok(text.clone()), ..stating(&variable, &[]) };
        let padded = fixed(4, Padding::NullPadded);
        assert_eq!(element(&padded, &of_length).unwrap().unwrap().bytes, b"NA\0\0");
        assert_eq!(element(&variable, &stating(&padded, b"NA\0\0")).unwrap(), Some(text));
        assert_eq!(bytes(&fixed(2, Padding::SpacePadded), &padded, b"NA\0\0"), Some(b"NA".to_vec()));
        assert_eq!(bytes(&fixed(1, Padding::NullPadded), &padded, b"NA\0\0"), None);
        assert_eq!(bytes(&fixed(4, Padding::SpacePadded), &padded, b"NA \0"), None);
        assert_eq!(bytes(&Datatype::integer(1, true, ByteOrder::Little), &padded, b"1\0\0\0"), None);
        assert_eq!(bytes(&padded, &Datatype::integer(1, true, ByteOrder::Little), b"1"), None);
    }

    #[test]
    fn booleans_are_never_missing_and_codes_of_other_enumerations_are() {
        let byte = Datatype::integer(1, false, ByteOrder::Little);
        let of = |members: &[(&str, i128)]| {
            let members =
                members.iter().map(|(name, value)| EnumerationMember { name: (*name).into(), value: *value }).collect();
            Datatype { size: 1, class: Class::Enum { base: Box::new(byte.clone()), members } }
        };
        let (boolean, colour) = (of(&[("FALSE", 0), ("TRUE", 1)]), of(&[("red", 0), ("none", 255)]));
        let stated = Datatype::integer(8, true, ByteOrder::Big);
        assert!(element(&boolean, &stating(&stated, &1_i64.to_be_bytes())).unwrap().is_none());
        assert_eq!(bytes(&colour, &stated, &255_i64.to_be_bytes()), Some(vec![255]));
        assert_eq!(bytes(&colour, &stated, &256_i64.to_be_bytes()), None);
    }

    #[test]
    fn the_nearest_value_is_told() {
        let nearest = |datatype: &Datatype, value: f64| {
            let stated = stating(&float(8, ByteOrder::Little), &value.to_le_bytes());
            element(datatype, &stated).unwrap_err().nearest
        };
        let single = float(4, ByteOrder::Little);
        assert_eq!(nearest(&single, 1e20), Some(Scalar::Float(1e20_f32.into())));
        assert_eq!(nearest(&single, 1e300), None);
        let short = Datatype::integer(2, true, ByteOrder::Little);
        assert_eq!(nearest(&short, -9999.5), Some(Scalar::Int(-10_000)));
        assert_eq!(nearest(&short, 1e9), None);
        assert_eq!(nearest(&short, f64::NAN), None);
    }
}
