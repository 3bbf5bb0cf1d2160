//! HDF5 datatypes as stored.

use std::cell::Cell;

use bstr::{BString, ByteSlice};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// Deepest nesting of types to decode; the worker stops earlier.
const MAX_DEPTH: u32 = 64;

/// A datatype in its stored layout: `size` and field offsets are those on disk, not in memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Datatype {
    /// Bytes of one element in the file. A variable-length part counts as one descriptor: 4 bytes, an address, 4 bytes.
    pub size: u64,
    /// The meaning of the bytes.
    pub class: Class,
}

/// The meaning of an element's bytes (`H5T_class_t`), or a dialect's interpretation of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Class {
    /// Two's complement or unsigned integer.
    Integer {
        /// Whether it is two's complement; otherwise unsigned.
        signed: bool,
        /// Byte order.
        order: ByteOrder,
        /// Significant bits.
        precision: u32,
        /// Position of the lowest significant bit.
        offset: u32,
    },
    /// Floating point.
    Float {
        /// Byte order.
        order: ByteOrder,
        /// The layout of sign, exponent and mantissa.
        format: FloatFormat,
    },
    /// `H5T_TIME`, which no tool interprets.
    Time {
        /// Byte order.
        order: ByteOrder,
    },
    /// String of `size` bytes.
    FixedString {
        /// The padding of shorter texts.
        padding: Padding,
        /// Declared character set.
        charset: Charset,
    },
    /// Variable-length string, stored as a descriptor.
    VariableString {
        /// Declared padding.
        padding: Padding,
        /// Declared character set.
        charset: Charset,
    },
    /// Bits without sign or arithmetic.
    Bitfield {
        /// Byte order.
        order: ByteOrder,
        /// Significant bits.
        precision: u32,
        /// Position of the lowest significant bit.
        offset: u32,
    },
    /// Uninterpreted bytes.
    Opaque {
        /// The producer's name for the bytes.
        tag: BString,
    },
    /// Fields at offsets.
    Compound {
        /// The fields, in the file's order.
        fields: Vec<CompoundField>,
    },
    /// Names for numbers.
    Enum {
        /// The integer type underneath (same size).
        base: Box<Datatype>,
        /// The members, in the file's order.
        members: Vec<EnumerationMember>,
    },
    /// Variable-length sequence, stored as a descriptor.
    Sequence {
        /// Type of one element.
        base: Box<Datatype>,
    },
    /// Fixed-size array.
    Array {
        /// Extents, slowest first.
        dims: Vec<u64>,
        /// Type of one element.
        base: Box<Datatype>,
    },
    /// Reference to an object or a part of one.
    Reference(ReferenceKind),
    /// Complex number: real and imaginary part, each of `base`.
    Complex {
        /// Type of each part.
        base: Box<Datatype>,
    },
    /// A class that hepfs does not know.
    Unknown(i32),
    /// One byte that is true unless it is zero. This is no HDF5 class: dialects read bitfields and integers this way.
    Flag,
    /// Eight bytes that are one integer: seconds in its upper half, microseconds in its lower half, both signed. This
    /// is no HDF5 class: dialects read times this way.
    SplitSeconds {
        /// Byte order.
        order: ByteOrder,
        /// Whether the time is shown as a number of microseconds; otherwise as seconds in float64.
        is_integer: bool,
    },
}

/// Byte order of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
    /// VAX mixed order.
    Vax,
}

/// The bits of a floating-point number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FloatFormat {
    /// IEEE binary16.
    Half,
    /// IEEE binary32.
    Single,
    /// IEEE binary64.
    Double,
    /// Extended precision of x87: 80 bits, with an explicit leading bit of the mantissa.
    Extended,
    /// IEEE binary128.
    Quadruple,
    /// Any other format (bfloat16, custom ones).
    Other {
        /// Significant bits.
        precision: u32,
        /// Position of the lowest significant bit.
        offset: u32,
        /// Position of the sign bit.
        sign: u32,
        /// Position of the exponent's lowest bit.
        exponent_position: u32,
        /// Bits of the exponent.
        exponent_size: u32,
        /// Position of the mantissa's lowest bit.
        mantissa_position: u32,
        /// Bits of the mantissa.
        mantissa_size: u32,
        /// Bias of the exponent.
        bias: u64,
    },
}

impl FloatFormat {
    /// Whether numbers are wider than float64, like C's `long double`.
    pub fn is_wide(self) -> bool {
        matches!(self, Self::Extended | Self::Quadruple)
    }

    /// Whether the format is binary16, 32 or 64.
    pub fn is_native(self) -> bool {
        matches!(self, Self::Half | Self::Single | Self::Double)
    }
}

/// The padding of a string shorter than its field (`H5T_str_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Padding {
    /// Ends at the first NUL.
    NullTerminated,
    /// Filled with NULs.
    NullPadded,
    /// Filled with spaces, as in Fortran.
    SpacePadded,
}

impl Padding {
    /// Strips the padding from a string's field.
    pub fn strip(self, bytes: &[u8]) -> &[u8] {
        match self {
            Padding::NullTerminated => &bytes[..bytes.find_byte(0).unwrap_or(bytes.len())],
            Padding::NullPadded => trim_end(bytes, 0),
            // C programs add a NUL even to these strings; Fortran fills them with spaces.
            Padding::SpacePadded => trim_end(trim_end(bytes, 0), b' '),
        }
    }
}

fn trim_end(bytes: &[u8], byte: u8) -> &[u8] {
    &bytes[..bytes.iter().rposition(|b| *b != byte).map_or(0, |last| last + 1)]
}

/// Declared character set (`H5T_cset_t`). Producers often declare ASCII and write UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Charset {
    /// ASCII.
    Ascii,
    /// UTF-8.
    Utf8,
}

/// A field of a compound.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CompoundField {
    /// Its name.
    pub name: BString,
    /// Offset of its first byte in the element, on disk.
    pub offset: u64,
    /// Its type.
    pub datatype: Datatype,
}

/// A member of an enumeration.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EnumerationMember {
    /// Its name.
    pub name: BString,
    /// Its value, sign-extended.
    pub value: i128,
}

/// Kinds of references.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ReferenceKind {
    /// `H5T_STD_REF_OBJ`: an object's address.
    Object,
    /// `H5T_STD_REF_DSETREG`: a region of a dataset, kept in the global heap.
    Region,
    /// `H5T_STD_REF` (HDF5 1.12): object, region or attribute.
    Standard,
}

/// Bounds the depth of nesting: a worker that a hostile file has taken over must not overflow the daemon's stack.
impl<'de> Deserialize<'de> for Datatype {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename = "Datatype")]
        struct Unbounded {
            size: u64,
            class: Class,
        }
        thread_local! {
            static DEPTH: Cell<u32> = const { Cell::new(0) };
        }
        let depth = DEPTH.get();
        if depth >= MAX_DEPTH {
            return Err(D::Error::custom("a datatype nested too deeply"));
        }
        DEPTH.set(depth + 1);
        let decoded = Unbounded::deserialize(deserializer);
        DEPTH.set(depth);
        decoded.map(|Unbounded { size, class }| Datatype { size, class })
    }
}

impl Datatype {
    /// An integer that fills its bytes.
    pub fn integer(size: u64, signed: bool, order: ByteOrder) -> Self {
        Self { size, class: Class::Integer { signed, order, precision: 8 * size as u32, offset: 0 } }
    }

    /// A compound of `size` bytes with these fields, each with its offset.
    #[cfg(test)]
    pub fn compound(size: u64, fields: &[(&str, u64, Self)]) -> Self {
        let field = |(name, offset, datatype): &(&str, u64, Self)| CompoundField {
            name: (*name).into(),
            offset: *offset,
            datatype: datatype.clone(),
        };
        Self { size, class: Class::Compound { fields: fields.iter().map(field).collect() } }
    }

    /// Whether an element has variable length: a string or sequence stored outside of it.
    pub fn is_variable(&self) -> bool {
        self.any(&|class| matches!(class, Class::VariableString { .. } | Class::Sequence { .. }))
    }

    /// Whether an element may hold descriptors of bytes outside of it: in variable-length parts, or in standard
    /// references, whose selection or attribute lies in the global heap.
    pub fn has_descriptors(&self) -> bool {
        self.is_variable() || self.any(&|class| matches!(class, Class::Reference(ReferenceKind::Standard)))
    }

    /// Whether it contains a reference of any kind, at any depth.
    pub fn holds_reference(&self) -> bool {
        self.any(&|class| matches!(class, Class::Reference(_)))
    }

    /// Whether it contains a float wider than float64, at any depth.
    pub fn holds_wide_float(&self) -> bool {
        self.any(&|class| matches!(class, Class::Float { format, .. } if format.is_wide()))
    }

    /// Whether its class, or that of a part of it at any depth, passes the test.
    fn any(&self, test: &impl Fn(&Class) -> bool) -> bool {
        test(&self.class)
            || match &self.class {
                Class::Compound { fields } => fields.iter().any(|field| field.datatype.any(test)),
                Class::Array { base, .. } | Class::Sequence { base } => base.any(test),
                _ => false,
            }
    }

    /// Whether it is a reference of any kind.
    pub fn is_reference(&self) -> bool {
        matches!(self.class, Class::Reference(_))
    }

    /// The type of each part of a complex number: of HDF5 2's class, or of the compound of `r` and `i` that h5py and
    /// others write.
    pub fn complex_part(&self) -> Option<&Datatype> {
        let part = match &self.class {
            Class::Complex { base } => base,
            Class::Compound { fields } => match fields.as_slice() {
                [r, i]
                    if r.name == "r"
                        && i.name == "i"
                        && r.datatype == i.datatype
                        && r.offset == 0
                        && i.offset == r.datatype.size =>
                {
                    &r.datatype
                }
                _ => return None,
            },
            _ => return None,
        };
        // Complex numbers of complex numbers, which no library writes, would double the work at each level.
        let is_float = matches!(part.class, Class::Float { format, .. } if format.is_native());
        (is_float && part.size.checked_mul(2) == Some(self.size)).then_some(part)
    }

    /// The type of the values that search indexes cover: the codes of an enumeration, except for booleans.
    pub fn coded(&self) -> Datatype {
        match &self.class {
            Class::Enum { base, .. } if !self.is_boolean() => (**base).clone(),
            Class::Compound { fields } => {
                let fields =
                    fields.iter().map(|field| CompoundField { datatype: field.datatype.coded(), ..field.clone() });
                Datatype { size: self.size, class: Class::Compound { fields: fields.collect() } }
            }
            _ => self.clone(),
        }
    }

    /// Whether two types have the same values, though byte order, padding and declared character set may differ.
    pub fn has_values_of(&self, other: &Datatype) -> bool {
        self.plainly() == other.plainly()
    }

    fn plainly(&self) -> Datatype {
        let mut plain = self.clone();
        match &mut plain.class {
            Class::Integer { order, .. } | Class::Float { order, .. } => *order = ByteOrder::Little,
            Class::FixedString { padding, charset } | Class::VariableString { padding, charset } => {
                (*padding, *charset) = (Padding::NullTerminated, Charset::Utf8);
            }
            Class::Opaque { tag } => tag.clear(),
            Class::Enum { base, members } => {
                **base = base.plainly();
                members.sort_by(|a, b| (a.value, &a.name).cmp(&(b.value, &b.name)));
            }
            _ => {}
        }
        plain
    }

    /// The HEP001 boolean: an enumeration over one byte with exactly `FALSE` = 0 and `TRUE` = 1.
    pub fn is_boolean(&self) -> bool {
        let Class::Enum { members, .. } = &self.class else { return false };
        self.size == 1
            && members.len() == 2
            && members.iter().any(|member| member.name == "FALSE" && member.value == 0)
            && members.iter().any(|member| member.name == "TRUE" && member.value == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(depth: usize) -> Datatype {
        let number = Class::Opaque { tag: "x".into() };
        (0..depth).fold(Datatype { size: 1, class: number }, |base, _| Datatype {
            size: 16,
            class: Class::Sequence { base: Box::new(base) },
        })
    }

    #[test]
    fn decoding_is_bounded_in_depth() {
        let bytes = postcard::to_stdvec(&nested(63)).unwrap();
        assert_eq!(postcard::from_bytes::<Datatype>(&bytes).unwrap(), nested(63));
        // One level encodes as two bytes: size 16 and the class; far deeper than any stack.
        let mut bytes = postcard::to_stdvec(&nested(1)).unwrap()[..2].repeat(5_000_000);
        bytes.extend(postcard::to_stdvec(&nested(0)).unwrap());
        assert!(postcard::from_bytes::<Datatype>(&bytes).is_err());
        // And the bound is the same the next time.
        let bytes = postcard::to_stdvec(&nested(63)).unwrap();
        assert!(postcard::from_bytes::<Datatype>(&bytes).is_ok());
    }

    #[test]
    fn padding_is_stripped_as_h5t_str_t_says() {
        assert_eq!(Padding::NullTerminated.strip(b"ab\0cd\0"), b"ab");
        assert_eq!(Padding::NullPadded.strip(b"ab\0cd\0\0"), b"ab\0cd");
        assert_eq!(Padding::SpacePadded.strip(b" ab  "), b" ab");
        assert_eq!(Padding::NullPadded.strip(b"\0\0"), b"");
        assert_eq!(Padding::NullTerminated.strip(b"full"), b"full");
    }
}
