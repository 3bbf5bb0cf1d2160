//! The canonical missing-value test (HEP001 July, "Missing values"): `isnan(fill) ? isnan(v) : v == fill`.

use arrow_array::cast::AsArray;
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, FixedSizeListArray, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_schema::DataType;

use super::{DecodeError, HeapBytes, Oddities, Resolve, VariableParts, decode, text};
use crate::catalogue::{ByteOrder, Class, DESCRIPTOR_SIZE, Datatype, Elements, Fill, FloatFormat};

/// Finds the missing elements of a dataset by its explicit fill value.
#[derive(Clone, Debug, Default)]
pub struct FillTest {
    kind: Option<Pattern>,
    /// If elements are the innermost items of nested arrays: their type, and the number of arrays around each.
    items: Option<Box<(Datatype, usize)>>,
}

#[derive(Clone, Debug)]
enum Pattern {
    /// Equal numbers (so −0 equals 0), or NaN if the fill is NaN; the fill is an array of one element.
    Float(ArrayRef),
    /// Equal texts without their padding.
    Text(Vec<u8>),
    /// Sequences with this content.
    Sequence(Vec<u8>),
    /// Elements with these bytes.
    Bytes(Vec<u8>),
    /// Elements with these bytes from this position on.
    Part(usize, Vec<u8>),
    /// Elements that match any of these patterns.
    AnyOf(Vec<Pattern>),
}

impl FillTest {
    /// A test that no element fulfils.
    pub fn none() -> Self {
        Self::default()
    }

    /// The test for a dataset. No element is missing if the writer set no fill value, if the fill value cannot be read,
    /// or in booleans, which have none (HEP001 July, "Boolean columns").
    pub fn new(datatype: &Datatype, fill: &Fill) -> Self {
        match fill {
            Fill::Explicit(fill) if !datatype.is_boolean() => Self { kind: Pattern::of(datatype, fill), items: None },
            _ => Self::none(),
        }
    }

    /// The test for several values, each as in [`FillTest::new`].
    pub fn any_of(datatype: &Datatype, fills: &[Fill]) -> Self {
        let mut kinds: Vec<Pattern> = fills.iter().filter_map(|fill| Self::new(datatype, fill).kind).collect();
        let kind = if kinds.len() > 1 { Some(Pattern::AnyOf(kinds)) } else { kinds.pop() };
        Self { kind, items: None }
    }

    /// This test for arrays whose innermost items, within `depth` arrays, are elements of `datatype`.
    pub fn of_items(self, datatype: &Datatype, depth: usize) -> Self {
        Self { items: Some(Box::new((datatype.clone(), depth))), ..self }
    }

    /// Whether any element can be missing.
    pub fn finds_any(&self) -> bool {
        self.kind.is_some()
    }

    /// Whether a row can be missing, as opposed to items in it.
    pub fn finds_rows(&self) -> bool {
        self.kind.is_some() && self.items.is_none()
    }

    /// Number of arrays around each item that can be missing; `None`: no item can.
    pub fn item_depth(&self) -> Option<usize> {
        let (_, depth) = self.items.as_deref().filter(|_| self.kind.is_some())?;
        Some(*depth)
    }

    /// Whether NaN counts as missing.
    pub fn is_nan(&self) -> bool {
        let Some(Pattern::Float(fill)) = &self.kind else { return false };
        match fill.data_type() {
            DataType::Float16 => fill.as_primitive::<Float16Type>().value(0).is_nan(),
            DataType::Float32 => fill.as_primitive::<Float32Type>().value(0).is_nan(),
            _ => fill.as_primitive::<Float64Type>().value(0).is_nan(),
        }
    }

    /// The text that counts as missing, if the pattern is text.
    pub fn text(&self) -> Option<&[u8]> {
        match &self.kind {
            Some(Pattern::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Decodes elements as [`decode`] does, with a null for each missing one, which does not count as odd.
    ///
    /// # Errors
    /// Those of [`decode`].
    pub fn decode(
        &self,
        datatype: &Datatype,
        bytes: Buffer,
        count: usize,
        parts: &dyn VariableParts,
        oddities: &mut Oddities,
    ) -> Result<ArrayRef, DecodeError> {
        let array = decode(datatype, bytes.clone(), count, parts, oddities)?;
        let array = self.apply(array, datatype, &bytes, parts);
        // Booleans have no test, and their nulls are the odd ones.
        if self.finds_rows() {
            oddities.retain(|row| array.is_valid(row as usize));
        }
        Ok(array)
    }

    /// `array` with a null for each missing element. `array` was decoded from `bytes`.
    pub fn apply(&self, array: ArrayRef, datatype: &Datatype, bytes: &[u8], parts: &dyn VariableParts) -> ArrayRef {
        let Some(kind) = &self.kind else { return array };
        match self.items.as_deref() {
            Some((item, depth)) => Self::apply_inside(&array, *depth, &|items| mark(kind, items, item, bytes, parts)),
            None => mark(kind, array, datatype, bytes, parts),
        }
    }

    /// Applies `mark` to the innermost items of the nested arrays `array`.
    fn apply_inside(array: &ArrayRef, depth: usize, mark: &dyn Fn(ArrayRef) -> ArrayRef) -> ArrayRef {
        let (Some(list), 1..) = (array.as_fixed_size_list_opt(), depth) else { return mark(array.clone()) };
        let items = Self::apply_inside(list.values(), depth - 1, mark);
        let DataType::FixedSizeList(field, length) = list.data_type() else { return array.clone() };
        let marked = FixedSizeListArray::try_new(field.clone(), *length, items, list.nulls().cloned());
        // Only the validity changed.
        marked.map_or_else(|_| array.clone(), |marked| Arc::new(marked))
    }
}

/// `array` with a null for each missing element.
fn mark(kind: &Pattern, array: ArrayRef, datatype: &Datatype, bytes: &[u8], parts: &dyn VariableParts) -> ArrayRef {
    let valid = kind.valid(&array, datatype, bytes, parts);
    if valid.count_set_bits() == array.len() {
        return array;
    }
    let nulls = NullBuffer::union(array.nulls(), Some(&NullBuffer::new(valid)));
    let data = array.to_data().into_builder().nulls(nulls);
    // Only the validity changed, and it is as long as the array.
    data.build().map(make_array).unwrap_or(array)
}

impl Pattern {
    fn of(datatype: &Datatype, fill: &Elements) -> Option<Self> {
        let mut heap = HeapBytes(&fill.heap);
        let width = usize::try_from(datatype.size).ok()?;
        match &datatype.class {
            // In fill values a descriptor has 16 bytes, whatever the file's address size is.
            Class::VariableString { padding, .. } => {
                let text = heap.resolve(fill.bytes.get(..DESCRIPTOR_SIZE)?, 1).ok()?;
                Some(Pattern::Text(text::variable_padding(*padding).strip(text).to_vec()))
            }
            Class::Sequence { base } if !base.is_variable() => {
                let content = heap.resolve(fill.bytes.get(..DESCRIPTOR_SIZE)?, base.size).ok()?;
                Some(Pattern::Sequence(content.to_vec()))
            }
            _ if datatype.is_variable() => None,
            Class::FixedString { padding, .. } => Some(Pattern::Text(padding.strip(fill.bytes.get(..width)?).to_vec())),
            Class::Float { .. } => {
                let bytes = Buffer::from(fill.bytes.get(..width)?);
                let value = decode(datatype, bytes, 1, &HeapBytes(&[]), &mut Oddities::new()).ok()?;
                let is_nan = value.as_primitive_opt::<Float64Type>().is_some_and(|number| number.value(0).is_nan());
                match &datatype.class {
                    // Several stored numbers may share the nearest 64-bit number, so bytes are compared.
                    Class::Float { order, format } if format.is_wide() && !is_nan => {
                        // Writers may leave anything after the 80 bits of x87.
                        let used = if *format == FloatFormat::Extended { width.min(10) } else { width };
                        let start = if *order == ByteOrder::Big { width - used } else { 0 };
                        Some(Pattern::Part(start, fill.bytes.get(start..start + used)?.to_vec()))
                    }
                    _ if value.data_type().is_floating() => Some(Pattern::Float(value)),
                    _ => Some(Pattern::Bytes(fill.bytes.get(..width)?.to_vec())),
                }
            }
            _ => Some(Pattern::Bytes(fill.bytes.get(..width)?.to_vec())),
        }
    }

    /// A bit per element, set if it is not missing.
    fn valid(&self, array: &ArrayRef, datatype: &Datatype, bytes: &[u8], parts: &dyn VariableParts) -> BooleanBuffer {
        let count = array.len();
        match self {
            Pattern::AnyOf(patterns) => patterns.iter().fold(BooleanBuffer::new_set(count), |valid, pattern| {
                &valid & &pattern.valid(array, datatype, bytes, parts)
            }),
            // No elements, or arrays that Arrow cannot represent: nothing to compare.
            Pattern::Float(fill) if fill.data_type() != array.data_type() => BooleanBuffer::new_set(count),
            Pattern::Float(fill) => match array.data_type() {
                DataType::Float16 => float_valid::<Float16Type>(array, fill, |v| v.is_nan()),
                DataType::Float32 => float_valid::<Float32Type>(array, fill, |v| v.is_nan()),
                _ => float_valid::<Float64Type>(array, fill, |v| v.is_nan()),
            },
            Pattern::Text(fill) => match &datatype.class {
                Class::FixedString { padding, .. } => cells(bytes, datatype, count, |cell| {
                    // The first byte nearly always decides.
                    let is_like = match fill.first() {
                        Some(first) => cell.first() == Some(first),
                        None => matches!(cell.first(), None | Some(b'\0' | b' ')),
                    };
                    !is_like || padding.strip(cell) != fill
                }),
                Class::VariableString { padding, .. } => {
                    let padding = text::variable_padding(*padding);
                    let mut cursor = parts.cursor();
                    cells(bytes, datatype, count, |cell| {
                        cursor.resolve(cell, 1).map_or(true, |text| padding.strip(text) != fill)
                    })
                }
                _ => BooleanBuffer::new_set(count),
            },
            Pattern::Sequence(fill) => match &datatype.class {
                Class::Sequence { base } => {
                    let mut cursor = parts.cursor();
                    cells(bytes, datatype, count, |cell| {
                        cursor.resolve(cell, base.size).map_or(true, |content| content != fill)
                    })
                }
                _ => BooleanBuffer::new_set(count),
            },
            Pattern::Part(start, fill) => {
                cells(bytes, datatype, count, |cell| cell.get(*start..).is_none_or(|cell| !cell.starts_with(fill)))
            }
            Pattern::Bytes(fill) => match *fill.as_slice() {
                // Common widths compare as one number.
                [a] => words(bytes, count, [a]),
                [a, b] => words(bytes, count, [a, b]),
                [a, b, c, d] => words(bytes, count, [a, b, c, d]),
                [a, b, c, d, e, f, g, h] => words(bytes, count, [a, b, c, d, e, f, g, h]),
                _ => {
                    // These bytes nearly always decide, where a single byte is often equal.
                    let head = |cell: &[u8]| cell.first_chunk().copied().map(u64::from_ne_bytes);
                    let of_fill = head(fill);
                    cells(bytes, datatype, count, |cell| head(cell) != of_fill || cell != fill)
                }
            },
        }
    }
}

fn words<const N: usize>(bytes: &[u8], count: usize, fill: [u8; N]) -> BooleanBuffer {
    let (cells, _) = bytes.as_chunks::<N>();
    present(&cells[..count.min(cells.len())], |cell| *cell != fill)
}

/// A bit per value, set if it is present. Nearly always all are: a single scan for that is many times as fast as one
/// bit per value.
fn present<T>(values: &[T], is_present: impl Fn(&T) -> bool) -> BooleanBuffer {
    if values.iter().fold(true, |all, value| all & is_present(value)) {
        return BooleanBuffer::new_set(values.len());
    }
    BooleanBuffer::collect_bool(values.len(), |i| is_present(&values[i]))
}

fn cells(bytes: &[u8], datatype: &Datatype, count: usize, mut valid: impl FnMut(&[u8]) -> bool) -> BooleanBuffer {
    let width = (datatype.size as usize).max(1);
    BooleanBuffer::collect_bool(count, |i| bytes.get(i * width..(i + 1) * width).is_none_or(&mut valid))
}

fn float_valid<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    fill: &ArrayRef,
    is_nan: impl Fn(&T::Native) -> bool,
) -> BooleanBuffer {
    let values = array.as_primitive::<T>().values();
    let fill = fill.as_primitive::<T>().value(0);
    if is_nan(&fill) { present(values, |value| !is_nan(value)) } else { present(values, |value| *value != fill) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{Charset, Padding};

    fn missing(datatype: &Datatype, fill: &[u8], bytes: &[u8]) -> Vec<bool> {
        let test = FillTest::new(datatype, &Fill::Explicit(Elements { bytes: fill.to_vec(), heap: Vec::new() }));
        let count = bytes.len() / datatype.size as usize;
        let array = decode(datatype, Buffer::from(bytes), count, &HeapBytes(&[]), &mut Oddities::new()).unwrap();
        let array = test.apply(array, datatype, bytes, &HeapBytes(&[]));
        (0..count).map(|i| array.is_null(i)).collect()
    }

    #[test]
    fn any_nan_matches_a_nan_fill() {
        let datatype = Datatype { size: 4, class: Class::Float { order: ByteOrder::Big, format: FloatFormat::Single } };
        let payload = f32::from_bits(0xffc0_1234);
        let bytes = [f32::NAN, 1.0, payload].map(|v| v.to_be_bytes()).concat();
        assert_eq!(missing(&datatype, &f32::NAN.to_be_bytes(), &bytes), [true, false, true]);
        // −0 == 0, as in NumPy and in the specification's formula.
        let bytes = [0.0f32, -0.0, f32::NAN].map(|v| v.to_be_bytes()).concat();
        assert_eq!(missing(&datatype, &0.0f32.to_be_bytes(), &bytes), [true, true, false]);
    }

    #[test]
    fn strings_match_without_their_padding() {
        let class = Class::FixedString { padding: Padding::NullPadded, charset: Charset::Utf8 };
        let datatype = Datatype { size: 3, class };
        assert_eq!(missing(&datatype, b"NA\0", b"NA\0N\0\0\0\0\0"), [true, false, false]);
        assert_eq!(missing(&datatype, b"\0\0\0", b"NA\0\0\0\0\0\0A"), [false, true, false]);
        let class = Class::FixedString { padding: Padding::SpacePadded, charset: Charset::Ascii };
        let datatype = Datatype { size: 3, class };
        assert_eq!(missing(&datatype, b"   ", b"    \0\0\0\0\0 x "), [true, true, true, false]);
        assert_eq!(missing(&datatype, b" x ", b"    x  x\0 xy"), [false, true, true, false]);
    }

    #[test]
    fn integers_match_at_every_width() {
        for size in [1usize, 2, 3, 4, 8] {
            let datatype = Datatype::integer(size as u64, true, ByteOrder::Little);
            let bytes = [vec![9; size], vec![8; size], vec![9; size]].concat();
            assert_eq!(missing(&datatype, &vec![9; size], &bytes), [true, false, true], "{size} bytes");
        }
    }

    #[test]
    fn no_fill_no_missing() {
        let datatype = Datatype::integer(1, true, ByteOrder::Little);
        assert!(!FillTest::new(&datatype, &Fill::Default).finds_any());
        assert!(!FillTest::new(&datatype, &Fill::Undefined).finds_any());
    }
}
