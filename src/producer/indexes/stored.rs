//! Encodes values as a column stores them, for `min` and `max` of entries and for the values of bitmaps.

use half::f16;

use crate::catalogue::{ByteOrder, Class, Datatype, Elements, Fill, FloatFormat, Padding};
use crate::h5;
use crate::store::decode::{HeapBytes, Resolve};
use crate::store::statistics::Scalar;

/// Builds stored elements value by value.
#[derive(Debug)]
pub(super) struct ElementEncoder<'a> {
    datatype: &'a Datatype,
    elements: h5::ElementPayload,
}

impl<'a> ElementEncoder<'a> {
    /// Encodes elements that each begin with `fields` values of the datatype.
    pub fn new(datatype: &'a Datatype, fields: u64) -> Self {
        let strings =
            if is_variable(datatype) { (0..fields).map(|field| field * POINTER).collect() } else { Vec::new() };
        Self { datatype, elements: h5::ElementPayload { strings, ..h5::ElementPayload::default() } }
    }

    /// Appends a value in the stored form of the datatype.
    pub fn value(&mut self, value: &Scalar) {
        let width = self.datatype.size as usize;
        if let (true, Scalar::Text(text)) = (is_variable(self.datatype), value) {
            self.elements.bytes.extend((self.elements.heap.len() as u64).to_ne_bytes());
            self.elements.heap.extend(text);
            self.elements.heap.push(0);
            return;
        }
        encode(self.datatype, value, width, &mut self.elements.bytes);
    }

    /// Appends the fill value, or zero if none is set.
    pub fn fill(&mut self, fill: &Fill) {
        let (bytes, heap) = match fill {
            Fill::Explicit(Elements { bytes, heap }) => (bytes.as_slice(), heap.as_slice()),
            _ => (&[][..], &[][..]),
        };
        if is_variable(self.datatype) {
            let text = HeapBytes(heap).resolve(bytes, 1).unwrap_or_default().to_vec();
            return self.value(&Scalar::Text(text));
        }
        let end = self.elements.bytes.len() + self.datatype.size as usize;
        self.elements.bytes.extend(bytes);
        self.elements.bytes.resize(end, 0);
    }

    /// Appends a count, as a field of an entry.
    pub fn count(&mut self, count: u64) {
        self.elements.bytes.extend(count.to_le_bytes());
    }

    pub fn finish(self) -> h5::ElementPayload {
        self.elements
    }
}

/// Bytes of a pointer to a string, in libhdf5's in-memory layout.
const POINTER: u64 = 8;

fn is_variable(datatype: &Datatype) -> bool {
    matches!(datatype.class, Class::VariableString { .. })
}

/// Bytes of a value in libhdf5's in-memory layout.
pub(super) fn width(datatype: &Datatype) -> u64 {
    if is_variable(datatype) { POINTER } else { datatype.size }
}

/// Why values of this type cannot be written. `None`: they can be.
pub(super) fn why_not(datatype: &Datatype) -> Option<&'static str> {
    match &datatype.class {
        Class::Integer { order: ByteOrder::Vax, .. } | Class::Float { order: ByteOrder::Vax, .. } => {
            Some("numbers in VAX byte order")
        }
        Class::Integer { precision, offset, .. } => {
            let is_whole = *offset == 0 && u64::from(*precision) == datatype.size * 8;
            let is_width = matches!(datatype.size, 1 | 2 | 4 | 8);
            (!is_whole || !is_width).then_some("integers that do not fill 1, 2, 4 or 8 bytes")
        }
        Class::Float { format, .. } if !format.is_native() => {
            Some("floating-point numbers that are not of IEEE 754 binary16, 32 or 64")
        }
        Class::Float { .. } | Class::FixedString { .. } | Class::VariableString { .. } | Class::Opaque { .. } => None,
        Class::Enum { base, .. } => why_not(base),
        Class::Time { .. } | Class::SplitSeconds { .. } => Some("times"),
        Class::Bitfield { .. } | Class::Flag => Some("bit fields"),
        Class::Compound { .. } => Some("compounds"),
        Class::Sequence { .. } => Some("sequences"),
        Class::Array { .. } => Some("arrays"),
        Class::Reference(_) => Some("references"),
        Class::Complex { .. } => Some("complex numbers"),
        Class::Unknown(_) => Some("an unknown class"),
    }
}

fn encode(datatype: &Datatype, value: &Scalar, width: usize, out: &mut Vec<u8>) {
    let start = out.len();
    let order = match &datatype.class {
        Class::Enum { base, .. } => return encode(base, value, width, out),
        Class::Integer { order, .. } => {
            let wide = match value {
                Scalar::Bool(value) => u64::from(*value),
                Scalar::Int(value) => value.cast_unsigned(),
                Scalar::UInt(value) => *value,
                Scalar::Float(_) | Scalar::Text(_) => 0,
            };
            out.extend(wide.to_le_bytes().iter().take(width));
            *order
        }
        Class::Float { order, format } => {
            let Scalar::Float(value) = value else { return out.resize(start + width, 0) };
            match format {
                FloatFormat::Half => out.extend(f16::from_f64(*value).to_le_bytes()),
                FloatFormat::Single => out.extend((*value as f32).to_le_bytes()),
                _ => out.extend(value.to_le_bytes()),
            }
            *order
        }
        class => {
            let pads_with_space = matches!(class, Class::FixedString { padding: Padding::SpacePadded, .. });
            if let Scalar::Text(text) = value {
                out.extend(text.iter().take(width));
            }
            return out.resize(start + width, if pads_with_space { b' ' } else { 0 });
        }
    };
    out.resize(start + width, 0);
    if order == ByteOrder::Big
        && let Some(written) = out.get_mut(start..)
    {
        written.reverse();
    }
}
