//! Decodes stored elements to Arrow arrays: the only place that decides the meaning of bytes, so that all views agree
//! on a value (`docs/reference/types.md`).
//!
//! Pure functions over slices. Elements are concatenated in the layout and byte order of the file; variable-length
//! content is looked up through [`VariableParts`].

mod enumeration;
mod missing;
mod nested;
mod number;
mod oddity;
pub mod outline;
mod references;
mod regions;
mod tally;
mod text;
mod weight;
mod wide;
pub mod widen;

use std::sync::Arc;

use arrow_array::{ArrayRef, FixedSizeBinaryArray, LargeStringArray, new_empty_array};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_schema::{DataType, Field as ArrowField, Fields};

use crate::catalogue::{ByteOrder, Class, Datatype, Descriptor, FloatFormat, ReferenceKind};
use crate::store::{Cursor, Heap, Unresolved};

pub(super) use enumeration::integers as codes;
pub use missing::FillTest;
pub use oddity::{Oddities, Oddity};
pub use references::LONGEST_REFERENCE;
#[cfg(feature = "fuzzing")]
pub use references::{Objects, references};
#[cfg(feature = "fuzzing")]
pub use regions::text as region;
pub use tally::{Tally, TallyCount};
use text::hexadecimal;
pub use weight::{Weigher, fixed_width};

/// The storage of the variable-length parts of elements.
pub trait VariableParts {
    /// A cursor that looks up one descriptor after the other.
    fn cursor(&self) -> Box<dyn Resolve + '_>;

    /// The text of references of `width` bytes each; null if a reference is null or dangles. An implementation that
    /// cannot follow them returns their bytes in hexadecimal.
    ///
    /// # Errors
    /// The reason why their targets cannot be determined.
    fn references(&self, kind: ReferenceKind, stored: &[u8], width: usize) -> Result<LargeStringArray, Unresolved> {
        let _ = kind;
        Ok(hexadecimal(stored, width))
    }
}

/// Looks up the content of descriptors.
pub trait Resolve {
    /// The content of a descriptor: exactly `length × width` bytes; empty for a null descriptor.
    ///
    /// # Errors
    /// A broken descriptor, or unreadable bytes.
    fn resolve(&mut self, descriptor: &[u8], width: u64) -> Result<&[u8], Unresolved>;
}

impl VariableParts for Heap {
    fn cursor(&self) -> Box<dyn Resolve + '_> {
        Box::new(Heap::cursor(self))
    }

    fn references(&self, kind: ReferenceKind, stored: &[u8], width: usize) -> Result<LargeStringArray, Unresolved> {
        Heap::references(self, kind, stored, width)
    }
}

impl Resolve for Cursor<'_> {
    fn resolve(&mut self, descriptor: &[u8], width: u64) -> Result<&[u8], Unresolved> {
        Cursor::resolve(self, descriptor, width)
    }
}

/// The heap of [`crate::catalogue::Elements`]: descriptors contain offsets into it.
#[derive(Clone, Copy, Debug)]
pub struct HeapBytes<'a>(pub &'a [u8]);

impl VariableParts for HeapBytes<'_> {
    fn cursor(&self) -> Box<dyn Resolve + '_> {
        Box::new(*self)
    }
}

impl Resolve for HeapBytes<'_> {
    fn resolve(&mut self, descriptor: &[u8], width: u64) -> Result<&[u8], Unresolved> {
        let invalid = |reason: &str| Unresolved::Invalid(reason.to_owned());
        let descriptor = Descriptor::parse(descriptor).ok_or_else(|| invalid("descriptor cut short"))?;
        let bytes = u64::from(descriptor.length).checked_mul(width).ok_or_else(|| invalid("length overflows"))?;
        let end = descriptor.position.checked_add(bytes).ok_or_else(|| invalid("position overflows"))?;
        let range = usize::try_from(descriptor.position).ok().zip(usize::try_from(end).ok());
        range
            .and_then(|(start, end)| self.0.get(start..end))
            .ok_or_else(|| Unresolved::Invalid(format!("bytes {}..{end} lie outside the heap", descriptor.position)))
    }
}

/// An element that cannot be decoded at all.
#[derive(Debug, thiserror::Error)]
#[error("row {row}: {cause}")]
pub struct DecodeError {
    /// Row counted from the first row decoded.
    pub row: u64,
    /// The fault.
    pub cause: Unresolved,
}

impl DecodeError {
    fn new(row: usize, reason: impl Into<String>) -> Self {
        Self { row: row as u64, cause: Unresolved::Invalid(reason.into()) }
    }
}

/// The Arrow type that elements of `datatype` are shown as.
///
/// Strings and lists have 64-bit offsets, so that no block of rows is too large for its type.
pub fn arrow_type(datatype: &Datatype) -> DataType {
    if let Some(part) = datatype.complex_part() {
        let part = arrow_type(part);
        return DataType::Struct(Fields::from(vec![
            ArrowField::new("re", part.clone(), true),
            ArrowField::new("im", part, true),
        ]));
    }
    match &datatype.class {
        Class::Integer { order: ByteOrder::Little | ByteOrder::Big, signed, .. } if datatype.size <= 8 => {
            number::integer_type(datatype.size, *signed)
        }
        Class::Bitfield { order: ByteOrder::Little | ByteOrder::Big, .. } if datatype.size <= 8 => {
            number::integer_type(datatype.size, false)
        }
        Class::Float { order: ByteOrder::Little | ByteOrder::Big, format } => match format {
            FloatFormat::Half => DataType::Float16,
            FloatFormat::Single => DataType::Float32,
            FloatFormat::Double | FloatFormat::Extended | FloatFormat::Quadruple => DataType::Float64,
            FloatFormat::Other { .. } => binary_type(datatype),
        },
        Class::FixedString { .. } | Class::VariableString { .. } | Class::Reference(_) => DataType::LargeUtf8,
        Class::Enum { .. } if datatype.is_boolean() => DataType::Boolean,
        Class::Flag if datatype.size == 1 => DataType::Boolean,
        Class::SplitSeconds { order, is_integer } if number::is_ordered(*order) && datatype.size == 8 => {
            if *is_integer { DataType::Int64 } else { DataType::Float64 }
        }
        Class::Enum { base, .. } if enumeration::is_readable(base) => {
            DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::LargeUtf8))
        }
        Class::Compound { fields } => DataType::Struct(
            fields
                .iter()
                .map(|field| ArrowField::new(field.name.to_string(), arrow_type(&field.datatype), true))
                .collect::<Fields>(),
        ),
        Class::Array { dims, base } => nested::array_type(dims, base).unwrap_or_else(|| binary_type(datatype)),
        Class::Sequence { base } => DataType::LargeList(Arc::new(ArrowField::new_list_field(arrow_type(base), true))),
        _ => binary_type(datatype),
    }
}

/// Whether the stored bytes equal those of the values from [`decode`], on a little-endian machine.
pub fn is_shown_as_stored(datatype: &Datatype) -> bool {
    match &datatype.class {
        _ if datatype.complex_part().is_some() => false,
        Class::Integer { order, precision, offset, .. } | Class::Bitfield { order, precision, offset }
            if number::is_ordered(*order) && datatype.size <= 8 =>
        {
            let ordered = *order == ByteOrder::Little || datatype.size == 1;
            ordered && datatype.size.is_power_of_two() && *offset == 0 && u64::from(*precision) == datatype.size * 8
        }
        Class::Float { order, format } if format.is_wide() => !number::is_ordered(*order),
        Class::Float { order: ByteOrder::Big, format } => matches!(format, FloatFormat::Other { .. }),
        Class::Array { base, .. } => is_shown_as_stored(base),
        // Opaque bytes, and floats as they are.
        Class::Integer { .. }
        | Class::Bitfield { .. }
        | Class::Float { .. }
        | Class::Time { .. }
        | Class::Opaque { .. }
        | Class::Unknown(_) => true,
        _ => false,
    }
}

/// Opaque bytes. The type of an element too wide for Arrow has the widest width; reading such an element is an error.
fn binary_type(datatype: &Datatype) -> DataType {
    DataType::FixedSizeBinary(i32::try_from(datatype.size).unwrap_or(i32::MAX))
}

/// Decodes `count` elements, concatenated in `bytes`. Nulls come from [`Oddity`]s and dangling references only.
///
/// # Errors
/// [`DecodeError`] if `bytes` has another length than `count` elements, or a variable-length part dangles.
pub fn decode(
    datatype: &Datatype,
    bytes: Buffer,
    count: usize,
    parts: &dyn VariableParts,
    oddities: &mut Oddities,
) -> Result<ArrayRef, DecodeError> {
    let width = usize::try_from(datatype.size).map_err(|_| DecodeError::new(0, "element too wide"))?;
    if width.checked_mul(count) != Some(bytes.len()) {
        return Err(DecodeError::new(0, format!("{count} elements of {width} bytes in {} bytes", bytes.len())));
    }
    if count == 0 {
        return Ok(new_empty_array(&arrow_type(datatype)));
    }
    // Only an array may take no bytes: otherwise the number of elements would be unknown.
    if width == 0 && !matches!(datatype.class, Class::Array { .. }) {
        return Err(DecodeError::new(0, "elements of 0 bytes"));
    }
    let array = decode_elements(datatype, bytes, width, count, parts, oddities)?;
    if array.len() != count {
        // The datatype's size contradicts its class.
        return Err(DecodeError::new(0, format!("{count} elements of {width} bytes are {} values", array.len())));
    }
    Ok(array)
}

fn decode_elements(
    datatype: &Datatype,
    bytes: Buffer,
    width: usize,
    count: usize,
    parts: &dyn VariableParts,
    oddities: &mut Oddities,
) -> Result<ArrayRef, DecodeError> {
    if let Some(part) = datatype.complex_part() {
        return nested::complex(&bytes, width, count, part, parts, oddities);
    }
    match &datatype.class {
        Class::Integer { order, signed, precision, offset } if number::is_ordered(*order) && width <= 8 => {
            Ok(number::integers(
                bytes,
                number::BitPlaces { width, order: *order, precision: *precision, offset: *offset },
                *signed,
            ))
        }
        Class::Bitfield { order, precision, offset } if number::is_ordered(*order) && width <= 8 => {
            Ok(number::integers(
                bytes,
                number::BitPlaces { width, order: *order, precision: *precision, offset: *offset },
                false,
            ))
        }
        Class::Float { order, format } if number::is_ordered(*order) && format.is_wide() => {
            Ok(wide::floats(&bytes, width, *order, *format, oddities))
        }
        Class::Float { order, format } if number::is_ordered(*order) => {
            number::floats(bytes.clone(), *order, *format).map_or_else(|| binary(bytes, width, count), Ok)
        }
        Class::FixedString { padding, .. } => Ok(text::fixed(&bytes, width, *padding, oddities)),
        Class::VariableString { padding, .. } => text::variable(&bytes, width, *padding, parts, oddities),
        Class::Reference(kind) => match parts.references(*kind, &bytes, width) {
            Ok(texts) => Ok(Arc::new(texts)),
            Err(cause) => Err(DecodeError { row: 0, cause }),
        },
        Class::Enum { .. } if datatype.is_boolean() => Ok(enumeration::booleans(&bytes, oddities)),
        Class::Flag if width == 1 => Ok(enumeration::flags(&bytes)),
        Class::SplitSeconds { order, is_integer } if number::is_ordered(*order) && width == 8 => {
            Ok(number::split_seconds(bytes, *order, *is_integer))
        }
        Class::Enum { base, members } if enumeration::is_readable(base) => {
            enumeration::labels(&bytes, base, members, oddities)
        }
        Class::Compound { fields } => nested::compound(&bytes, width, count, fields, parts, oddities),
        Class::Array { dims, base } if nested::array_type(dims, base).is_some() => {
            nested::arrays(bytes, dims, base, count, parts, oddities)
        }
        Class::Sequence { base } => nested::sequences(&bytes, width, base, parts, oddities),
        _ => binary(bytes, width, count),
    }
}

fn binary(bytes: Buffer, width: usize, count: usize) -> Result<ArrayRef, DecodeError> {
    match i32::try_from(width) {
        // The number of elements without bytes shows only in a validity bitmap.
        Ok(0) => Ok(Arc::new(FixedSizeBinaryArray::new(0, Buffer::default(), Some(NullBuffer::new_valid(count))))),
        Ok(width) => Ok(Arc::new(FixedSizeBinaryArray::new(width, bytes, None))),
        _ => Err(DecodeError::new(0, format!("elements of {width} bytes are too wide to show"))),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Int32Type, Int64Type, UInt16Type};

    use super::*;
    use crate::catalogue::{Charset, CompoundField, EnumerationMember, Padding};

    fn run(datatype: &Datatype, bytes: &[u8], count: usize, heap: &[u8]) -> (ArrayRef, Oddities) {
        let mut oddities = Oddities::new();
        let array = decode(datatype, Buffer::from(bytes), count, &HeapBytes(heap), &mut oddities).unwrap();
        assert_eq!(array.data_type(), &arrow_type(datatype));
        (array, oddities)
    }

    #[test]
    fn three_byte_big_endian_integers_keep_their_sign() {
        let (array, _) =
            run(&Datatype::integer(3, true, ByteOrder::Big), &[0xff, 0xff, 0xfe, 0x00, 0x01, 0x00], 2, &[]);
        assert_eq!(array.as_primitive::<Int32Type>().values(), &[-2, 256]);
    }

    #[test]
    fn what_is_shown_as_stored_decodes_to_its_own_bytes() {
        use ByteOrder::{Big, Little, Vax};
        let float = |size, order, format| Datatype { size, class: Class::Float { order, format } };
        let partial = Class::Integer { signed: true, order: Little, precision: 31, offset: 0 };
        let array = |base: Datatype| Datatype {
            size: base.size * 2,
            class: Class::Array { dims: vec![2], base: Box::new(base) },
        };
        let as_stored = [
            Datatype::integer(1, true, Big),
            Datatype::integer(8, false, Little),
            Datatype::integer(4, true, Vax),
            Datatype::integer(16, true, Big),
            float(2, Little, FloatFormat::Half),
            float(8, Little, FloatFormat::Double),
            float(4, Vax, FloatFormat::Single),
            Datatype { size: 5, class: Class::Opaque { tag: "x".into() } },
            array(Datatype::integer(2, true, Little)),
        ];
        for datatype in as_stored {
            assert!(is_shown_as_stored(&datatype), "{datatype:?}");
            let bytes: Vec<u8> = (1..=2 * datatype.size as u8).collect();
            let (mut array, _) = run(&datatype, &bytes, 2, &[]);
            if let Some(list) = array.as_fixed_size_list_opt() {
                array = list.values().clone();
            }
            assert_eq!(array.to_data().buffers()[0].as_slice(), bytes, "{datatype:?}");
        }
        let not = [
            Datatype::integer(2, true, Big),
            Datatype::integer(3, true, Little),
            Datatype { size: 4, class: partial },
            float(4, Big, FloatFormat::Single),
            Datatype { size: 4, class: Class::FixedString { padding: Padding::NullPadded, charset: Charset::Utf8 } },
            array(Datatype::integer(2, true, Big)),
        ];
        assert!(!not.iter().any(is_shown_as_stored));
    }

    #[test]
    fn precision_and_offset_select_the_bits() {
        // 12 significant bits from bit 2 on, as H5Tset_precision/H5Tset_offset make them.
        let class = Class::Integer { signed: false, order: ByteOrder::Little, precision: 12, offset: 2 };
        let (array, _) = run(&Datatype { size: 2, class }, &0b1110_1010_1010_1001_u16.to_le_bytes(), 1, &[]);
        assert_eq!(array.as_primitive::<UInt16Type>().value(0), 0b1010_1010_1010);
    }

    #[test]
    fn a_field_in_the_middle_of_a_compound() {
        let fields = vec![
            CompoundField { name: "a".into(), offset: 0, datatype: Datatype::integer(1, false, ByteOrder::Little) },
            CompoundField { name: "b".into(), offset: 4, datatype: Datatype::integer(8, true, ByteOrder::Big) },
        ];
        let datatype = Datatype { size: 12, class: Class::Compound { fields } };
        let mut bytes = vec![7, 0xee, 0xee, 0xee];
        bytes.extend((-5i64).to_be_bytes());
        let (array, _) = run(&datatype, &bytes, 1, &[]);
        assert_eq!(array.as_struct().column(1).as_primitive::<Int64Type>().value(0), -5);
    }

    /// HDF5 has no such type; a damaged file may claim it.
    #[test]
    fn strings_of_no_bytes_are_an_error() {
        let class = Class::FixedString { padding: Padding::NullPadded, charset: Charset::Utf8 };
        let none = Datatype { size: 0, class };
        assert!(decode(&none, Buffer::default(), 190, &HeapBytes(&[]), &mut Oddities::new()).is_err());
    }

    #[test]
    fn complex_numbers_of_complex_numbers_are_bytes() {
        let class = Class::Float { order: ByteOrder::Little, format: FloatFormat::Single };
        let mut datatype = Datatype { size: 4, class };
        for _ in 0..40 {
            datatype = Datatype { size: 2 * datatype.size, class: Class::Complex { base: Box::new(datatype) } };
        }
        datatype.size = 8;
        assert_eq!(run(&datatype, &[7; 8], 1, &[]).0.data_type(), &DataType::FixedSizeBinary(8));
    }

    #[test]
    fn a_size_that_is_not_that_of_the_class_is_an_error() {
        let class = Class::Float { order: ByteOrder::Little, format: FloatFormat::Single };
        assert!(
            decode(&Datatype { size: 1, class }, Buffer::from([1_u8]), 1, &HeapBytes(&[]), &mut Oddities::new())
                .is_err()
        );
    }

    #[test]
    fn a_field_past_the_element_is_an_error() {
        let fields = vec![CompoundField {
            name: "a".into(),
            offset: 6,
            datatype: Datatype::integer(4, true, ByteOrder::Little),
        }];
        let datatype = Datatype { size: 8, class: Class::Compound { fields } };
        let mut oddities = Oddities::new();
        assert!(decode(&datatype, Buffer::from([0u8; 8].as_slice()), 1, &HeapBytes(&[]), &mut oddities).is_err());
    }

    #[test]
    fn enumerations_name_what_they_can() {
        let members = vec![
            EnumerationMember { name: "off".into(), value: -1 },
            EnumerationMember { name: "on".into(), value: 300 },
        ];
        let base = Box::new(Datatype::integer(2, true, ByteOrder::Big));
        let datatype = Datatype { size: 2, class: Class::Enum { base, members } };
        let codes = [300i16, -1, 7, 263, -9, 7, 300].map(i16::to_be_bytes).concat();
        let (array, oddities) = run(&datatype, &codes, 7, &[]);
        let array = array.as_dictionary::<Int32Type>();
        let labels = array.values().as_string::<i64>();
        let shown: Vec<_> = array.keys().iter().map(|key| labels.value(key.unwrap() as usize)).collect();
        assert_eq!(shown, ["on", "off", "7", "263", "-9", "7", "on"]);
        assert_eq!(labels.len(), 5);
        assert!(oddities.iter().eq([2, 3, 4, 5].map(|row| (Oddity::UnnamedCode, row))));
    }

    #[test]
    fn a_row_is_odd_once_however_many_of_its_items_are() {
        let members = vec![
            EnumerationMember { name: "FALSE".into(), value: 0 },
            EnumerationMember { name: "TRUE".into(), value: 1 },
        ];
        let base = Box::new(Datatype::integer(1, true, ByteOrder::Little));
        let flag = Datatype { size: 1, class: Class::Enum { base, members } };
        let datatype = Datatype { size: 100, class: Class::Array { dims: vec![100], base: Box::new(flag) } };
        let (array, oddities) = run(&datatype, &[[7u8; 100], [1; 100], [9; 100]].concat(), 3, &[]);
        assert_eq!(array.as_fixed_size_list().values().null_count(), 200);
        assert!(oddities.iter().eq([(Oddity::InvalidBoolean, 0), (Oddity::InvalidBoolean, 2)]));
        let tally = Tally::default();
        tally.add(10..13, &oddities);
        assert_eq!(tally.counts(), [(Oddity::InvalidBoolean, TallyCount { rows: 2, first: 10 })]);
    }

    #[test]
    fn a_boolean_of_two_is_missing_and_reported() {
        let members = vec![
            EnumerationMember { name: "FALSE".into(), value: 0 },
            EnumerationMember { name: "TRUE".into(), value: 1 },
        ];
        let base = Box::new(Datatype::integer(1, true, ByteOrder::Little));
        let datatype = Datatype { size: 1, class: Class::Enum { base, members } };
        let (array, oddities) = run(&datatype, &[1, 2, 0], 3, &[]);
        assert_eq!(array.as_boolean().iter().collect::<Vec<_>>(), [Some(true), None, Some(false)]);
        assert!(oddities.iter().eq([(Oddity::InvalidBoolean, 1)]));
    }

    #[test]
    fn sequences_and_strings_lead_into_the_heap() {
        let string = Datatype {
            size: 16,
            class: Class::VariableString { padding: Padding::NullTerminated, charset: Charset::Utf8 },
        };
        let descriptor = |length, position| crate::catalogue::Descriptor { length, position, index: 0 }.to_bytes();
        let bytes = [descriptor(2, 1), descriptor(0, 0)].concat();
        let (array, _) = run(&string, &bytes, 2, b"xhi");
        assert_eq!(array.as_string::<i64>().iter().collect::<Vec<_>>(), [Some("hi"), Some("")]);

        let numbers = Datatype {
            size: 16,
            class: Class::Sequence { base: Box::new(Datatype::integer(2, false, ByteOrder::Little)) },
        };
        let (array, _) = run(&numbers, &bytes, 2, &[0, 1, 0, 2, 0]);
        let list = array.as_list::<i64>();
        assert_eq!(list.value(0).as_primitive::<UInt16Type>().values(), &[1, 2]);
        assert_eq!(list.value_length(1), 0);
        let mut oddities = Oddities::new();
        let error = decode(&numbers, Buffer::from(bytes.as_slice()), 2, &HeapBytes(&[]), &mut oddities).unwrap_err();
        assert_eq!(error.row, 0);
    }
}
