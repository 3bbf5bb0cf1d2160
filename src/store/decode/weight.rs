//! Computes the memory of an array of elements before it is made, from widths and descriptors, without copying.

use arrow_schema::DataType;

use super::{VariableParts, arrow_type};
use crate::catalogue::{Class, Datatype, product};

/// Computes the bytes that elements of one type take in an array.
#[derive(Debug)]
pub struct Weigher {
    /// Bytes of an element without its variable parts.
    fixed: u64,
    part: Part,
    /// Bytes of the file: content that claims to be longer dangles, and counts as nothing.
    longest: u64,
}

/// The variable parts of an element.
#[derive(Debug)]
enum Part {
    Nowhere,
    Text,
    /// Items, each of `size` stored bytes, and of `fixed` bytes in an array besides its variable parts.
    Sequence {
        size: u64,
        fixed: u64,
        item: Box<Part>,
    },
    /// `count` items of `size` stored bytes each.
    Array {
        count: u64,
        size: u64,
        item: Box<Part>,
    },
    /// Offsets and sizes of fields, with their variable parts.
    Compound(Vec<(u64, u64, Part)>),
}

impl Part {
    fn of(datatype: &Datatype) -> Self {
        match &datatype.class {
            _ if !datatype.is_variable() => Self::Nowhere,
            Class::VariableString { .. } => Self::Text,
            Class::Sequence { base } => {
                Self::Sequence { size: base.size, fixed: width(base), item: Box::new(Self::of(base)) }
            }
            Class::Array { dims, base } => {
                Self::Array { count: product(dims).unwrap_or(0), size: base.size, item: Box::new(Self::of(base)) }
            }
            Class::Compound { fields } => {
                let variable = fields.iter().filter(|field| field.datatype.is_variable());
                Self::Compound(
                    variable.map(|field| (field.offset, field.datatype.size, Self::of(&field.datatype))).collect(),
                )
            }
            _ => Self::Nowhere,
        }
    }
}

impl Weigher {
    /// A weigher for elements of `datatype` in a file of `longest` bytes.
    pub fn new(datatype: &Datatype, longest: u64) -> Self {
        Self { fixed: width(datatype), part: Part::of(datatype), longest }
    }

    /// Bytes of an element, if all take equally many.
    pub fn fixed(&self) -> Option<u64> {
        matches!(self.part, Part::Nowhere).then_some(self.fixed)
    }

    /// Fewest bytes of an element.
    pub fn least(&self) -> u64 {
        self.fixed
    }

    /// Bytes of one element; stops counting past `most`.
    pub fn weight(&self, element: &[u8], most: u64, parts: &dyn VariableParts) -> u64 {
        self.fixed.saturating_add(self.variable(&self.part, element, most, parts))
    }

    /// Bytes of all `elements`, of `size` bytes each; may stop counting past `most`.
    pub fn weight_of_all(&self, elements: &[u8], size: u64, most: u64, parts: &dyn VariableParts) -> u64 {
        let count = elements.len() as u64 / size.max(1);
        let fixed = count.saturating_mul(self.fixed);
        match self.part {
            Part::Nowhere => fixed,
            _ => fixed.saturating_add(self.items(&self.part, elements, size, most.saturating_sub(fixed), parts)),
        }
    }

    fn variable(&self, part: &Part, bytes: &[u8], most: u64, parts: &dyn VariableParts) -> u64 {
        match part {
            Part::Nowhere => 0,
            Part::Text => self.text(bytes),
            Part::Sequence { size, fixed, item } => {
                let count = length(bytes);
                if count.saturating_mul(*size) > self.longest {
                    return 0;
                }
                let own = count.saturating_mul(*fixed);
                if own > most || matches!(**item, Part::Nowhere) {
                    return own;
                }
                let mut cursor = parts.cursor();
                let items = cursor.resolve(bytes, *size).unwrap_or_default();
                own.saturating_add(self.items(item, items, *size, most - own, parts))
            }
            Part::Array { count, size, item } => {
                let bytes = usize::try_from(count.saturating_mul(*size)).ok().and_then(|length| bytes.get(..length));
                self.items(item, bytes.unwrap_or_default(), *size, most, parts)
            }
            Part::Compound(fields) => fields.iter().fold(0, |sum: u64, (offset, size, field)| {
                let end = offset.saturating_add(*size) as usize;
                let field_bytes = bytes.get(*offset as usize..end).unwrap_or_default();
                sum.saturating_add(self.variable(field, field_bytes, most.saturating_sub(sum), parts))
            }),
        }
    }

    fn text(&self, descriptor: &[u8]) -> u64 {
        Some(length(descriptor)).filter(|length| *length <= self.longest).unwrap_or(0)
    }

    fn items(&self, item: &Part, bytes: &[u8], size: u64, most: u64, parts: &dyn VariableParts) -> u64 {
        let items = bytes.chunks_exact((size as usize).max(1));
        if let Part::Text = item {
            // Each is below 2^32, and memory holds fewer than 2^32 of them.
            return items.map(|descriptor| self.text(descriptor)).sum();
        }
        let mut sum = 0u64;
        for bytes in items {
            sum = sum.saturating_add(self.variable(item, bytes, most.saturating_sub(sum), parts));
            if sum > most {
                break;
            }
        }
        sum
    }
}

/// Bytes of a value of this type in an array, without its variable part: offsets of 8 bytes, keys, numbers.
pub fn fixed_width(data_type: &DataType) -> u64 {
    match data_type {
        DataType::Struct(fields) => {
            fields.iter().map(|field| fixed_width(field.data_type())).fold(1, u64::saturating_add)
        }
        DataType::FixedSizeList(item, length) => {
            fixed_width(item.data_type()).saturating_mul(u64::from(length.unsigned_abs()))
        }
        DataType::FixedSizeBinary(width) => u64::from(width.unsigned_abs()),
        DataType::Dictionary(key, _) => fixed_width(key),
        DataType::Boolean | DataType::Null => 1,
        other => other.primitive_width().map_or(8, |width| width as u64),
    }
}

/// Bytes of an element in an array, without variable-length parts. A fixed-length text counts in full, since its
/// padding is read as well.
fn width(datatype: &Datatype) -> u64 {
    fixed_width(&arrow_type(datatype)).saturating_add(fixed_texts(datatype))
}

fn fixed_texts(datatype: &Datatype) -> u64 {
    match &datatype.class {
        Class::FixedString { .. } => datatype.size,
        Class::Array { dims, base } => product(dims).unwrap_or(u64::MAX).saturating_mul(fixed_texts(base)),
        Class::Compound { fields } => {
            fields.iter().map(|field| fixed_texts(&field.datatype)).fold(0, u64::saturating_add)
        }
        _ => 0,
    }
}

/// The length in a descriptor.
fn length(descriptor: &[u8]) -> u64 {
    descriptor.first_chunk().map_or(0, |length| u64::from(u32::from_le_bytes(*length)))
}

#[cfg(test)]
mod tests {
    use super::super::{HeapBytes, Oddities, decode};
    use super::*;
    use crate::catalogue::{ByteOrder, Charset, CompoundField, Padding};
    use arrow_array::Array;
    use arrow_buffer::Buffer;

    fn descriptor(length: u32, position: u64) -> Vec<u8> {
        [&length.to_le_bytes()[..], &position.to_le_bytes(), &(1u32 << 31).to_le_bytes()].concat()
    }

    #[test]
    fn nested_values_weigh_what_their_array_takes() {
        let integer = Datatype::integer(4, true, ByteOrder::Little);
        let text = Class::VariableString { padding: Padding::NullTerminated, charset: Charset::Utf8 };
        let text = Datatype { size: 16, class: text };
        let texts = Datatype { size: 16, class: Class::Sequence { base: Box::new(text) } };
        let pair = Datatype { size: 32, class: Class::Array { dims: vec![2], base: Box::new(texts) } };
        let fields = vec![
            CompoundField { name: "n".into(), offset: 0, datatype: integer },
            CompoundField { name: "p".into(), offset: 4, datatype: pair },
        ];
        let datatype = Datatype { size: 36, class: Class::Compound { fields } };
        // Two descriptors of one text of 1,000 bytes.
        let mut heap = vec![b'x'; 1000];
        heap.extend([descriptor(1000, 0), descriptor(1000, 0)].concat());
        let element = [&7i32.to_le_bytes()[..], &descriptor(2, 1000), &descriptor(1, 1000)].concat();
        let weigher = Weigher::new(&datatype, 1 << 20);
        let weight = weigher.weight(&element, u64::MAX, &HeapBytes(&heap));
        let bytes = Buffer::from(element.as_slice());
        let array = decode(&datatype, bytes, 1, &HeapBytes(&heap), &mut Oddities::new()).unwrap();
        let taken = array.to_data().get_slice_memory_size().unwrap() as u64;
        assert!(taken.abs_diff(weight) < 100, "{taken} bytes, not {weight}");
        // Fixed-length texts count in full, though these are all padding.
        let class = Class::FixedString { padding: Padding::NullPadded, charset: Charset::Utf8 };
        let fixed = Datatype { size: 32_000, class };
        let pair = Datatype { size: 64_000, class: Class::Array { dims: vec![2], base: Box::new(fixed.clone()) } };
        let list = Datatype { size: 16, class: Class::Sequence { base: Box::new(fixed.clone()) } };
        assert_eq!(Weigher::new(&fixed, 1 << 20).fixed(), Some(32_008));
        assert_eq!(Weigher::new(&pair, 1 << 20).fixed(), Some(64_016));
        assert_eq!(Weigher::new(&list, 1 << 20).weight(&descriptor(3, 0), u64::MAX, &HeapBytes(&[])), 8 + 3 * 32_008);
        // Counting stops, and content longer than the file dangles.
        assert!((1001..=2100).contains(&weigher.weight(&element, 1000, &HeapBytes(&heap))));
        assert!(Weigher::new(&datatype, 999).weight(&element, u64::MAX, &HeapBytes(&heap)) < 200);
    }
}
