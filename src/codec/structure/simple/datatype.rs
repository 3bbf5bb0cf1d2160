//! Datatypes (file format IV.A.2.d).

use bstr::{BString, ByteSlice};

use super::{WIDTH, distinct};
use crate::catalogue::{
    ByteOrder, Charset, Class, CompoundField, Datatype, EnumerationMember, FloatFormat, Padding, ReferenceKind, product,
};
use crate::codec::structure::Rest;

/// Deepest nesting of types.
const MOST_DEPTH: usize = 16;

/// Most fields of a compound and members of an enumeration.
const MOST_PARTS: u64 = 4096;

/// Bytes of a descriptor of variable-length contents.
pub(super) const DESCRIPTOR: u64 = 4 + WIDTH as u64 + 4;

/// Reads the datatype at the beginning of a message.
pub(super) fn read(body: &[u8]) -> Option<Datatype> {
    Some(datatype(&mut Rest(body), MOST_DEPTH)?.0)
}

/// Whether libhdf5 converts elements of the type between file and memory, which leaves out the padding of compounds.
pub(super) fn is_converted(datatype: &Datatype) -> bool {
    match &datatype.class {
        Class::Compound { fields } => fields.iter().any(|field| is_converted(&field.datatype)),
        Class::Array { base, .. } => is_converted(base),
        Class::Reference(_) | Class::VariableString { .. } | Class::Sequence { .. } => true,
        _ => false,
    }
}

/// A type and its version; no part has a later one.
fn datatype(rest: &mut Rest<'_>, depth: usize) -> Option<(Datatype, u8)> {
    let depth = depth.checked_sub(1)?;
    let head = rest.byte()?;
    let (version, bits) = (head >> 4, rest.number(3)?);
    let size = rest.number(4).filter(|size| *size > 0 && (1..=3).contains(&version))?;
    let mut base = |rest: &mut Rest<'_>| datatype(rest, depth).filter(|(_, of)| *of <= version).map(|(base, _)| base);
    let class = match head & 0xf {
        0 => {
            let order = order(bits & !8)?;
            Class::Integer { signed: bits & 8 != 0, order, precision: whole(rest, size)?, offset: 0 }
        }
        1 => float(rest, bits, size)?,
        3 => Class::FixedString { padding: padding(bits & 0xf)?, charset: charset(bits >> 4)? },
        4 => Class::Bitfield { order: order(bits)?, precision: whole(rest, size)?, offset: 0 },
        5 => {
            let tag = rest.take(usize::try_from(bits).ok().filter(|length| *length < 256 && length % 8 == 0)?)?;
            Class::Opaque { tag: tag.split_once_str("\0").map_or(tag, |(tag, _)| tag).into() }
        }
        6 => Class::Compound { fields: fields(rest, version, bits, size, &mut base)? },
        7 => (bits == 0 && size == WIDTH as u64).then_some(Class::Reference(ReferenceKind::Object))?,
        8 => {
            let base = base(rest).filter(|base| base.size == size)?;
            let members = members(rest, version, bits, &base)?;
            Class::Enum { base: Box::new(base), members }
        }
        9 if size == DESCRIPTOR => {
            let of = base(rest)?;
            match (bits & 0xf, &of) {
                (0, _) if bits == 0 && (!is_converted(&of) || matches!(of.class, Class::Reference(_))) => {
                    Class::Sequence { base: Box::new(of) }
                }
                // C programs say that the characters are a string, h5py that they are unsigned integers.
                (1, Datatype { size: 1, class: Class::FixedString { .. } | Class::Integer { signed: false, .. } }) => {
                    Class::VariableString { padding: padding(bits >> 4 & 0xf)?, charset: charset(bits >> 8)? }
                }
                _ => return None,
            }
        }
        10 if version > 1 && bits == 0 => array(rest, version, size, &mut base)?,
        _ => return None,
    };
    Some((Datatype { size, class }, version))
}

/// The byte order of a number without padding.
fn order(bits: u64) -> Option<ByteOrder> {
    match bits {
        0 => Some(ByteOrder::Little),
        1 => Some(ByteOrder::Big),
        _ => None,
    }
}

/// The precision of a number that fills its bytes.
fn whole(rest: &mut Rest<'_>, size: u64) -> Option<u32> {
    let [offset, precision] = *rest.numbers(2, 2)? else { return None };
    (offset == 0 && precision == 8 * size && size <= 8).then_some(precision as u32)
}

/// An IEEE number.
fn float(rest: &mut Rest<'_>, bits: u64, size: u64) -> Option<Class> {
    // Implied leading bit of the mantissa; position of the sign.
    let order = order(bits & !0xff20)?;
    let layout = rest.take(12)?;
    let (format, exponent, mantissa, bias) = match size {
        2 => (FloatFormat::Half, 5, 10, 15),
        4 => (FloatFormat::Single, 8, 23, 127),
        8 => (FloatFormat::Double, 11, 52, 1023u32),
        _ => return None,
    };
    let mut expected = vec![0, 0, 8 * size as u8, 0, mantissa, exponent, 0, mantissa];
    expected.extend(bias.to_le_bytes());
    let is_ieee = bits & !1 == 0x20 | (8 * size - 1) << 8;
    (layout == expected && is_ieee).then_some(Class::Float { order, format })
}

fn padding(bits: u64) -> Option<Padding> {
    match bits {
        0 => Some(Padding::NullTerminated),
        1 => Some(Padding::NullPadded),
        2 => Some(Padding::SpacePadded),
        _ => None,
    }
}

fn charset(bits: u64) -> Option<Charset> {
    match bits {
        0 => Some(Charset::Ascii),
        1 => Some(Charset::Utf8),
        _ => None,
    }
}

/// A name with the NUL behind it; padded before version 3.
fn name(rest: &mut Rest<'_>, version: u8) -> Option<BString> {
    let length = rest.0.find_byte(0).filter(|length| *length > 0)?;
    let whole = if version < 3 { (length + 1).checked_next_multiple_of(8)? } else { length + 1 };
    Some(rest.take(whole)?.get(..length)?.into())
}

/// The fields of a compound, which follow each other without overlap.
fn fields(
    rest: &mut Rest<'_>,
    version: u8,
    count: u64,
    size: u64,
    base: &mut impl FnMut(&mut Rest<'_>) -> Option<Datatype>,
) -> Option<Vec<CompoundField>> {
    let width = if version < 3 { 4 } else { size.ilog2() as usize / 8 + 1 };
    let (mut fields, mut end) = (Vec::new(), 0u64);
    for _ in 0..(1..=MOST_PARTS).contains(&count).then_some(count)? {
        let (name, offset) = (name(rest, version)?, rest.number(width)?);
        // Dimensions of version 1: none.
        if version == 1 && rest.take(28)?.first() != Some(&0) {
            return None;
        }
        let datatype = base(rest)?;
        if offset < end {
            return None;
        }
        end = offset.checked_add(datatype.size).filter(|end| *end <= size)?;
        fields.push(CompoundField { name, offset, datatype });
    }
    distinct(&fields, |field| &field.name)?;
    Some(fields)
}

/// The members of an enumeration of this type: names, then values.
fn members(rest: &mut Rest<'_>, version: u8, count: u64, base: &Datatype) -> Option<Vec<EnumerationMember>> {
    let Class::Integer { signed, order, .. } = base.class else { return None };
    let count = (1..=MOST_PARTS).contains(&count).then_some(count)?;
    let names: Vec<BString> = (0..count).map(|_| name(rest, version)).collect::<Option<_>>()?;
    let mut members = Vec::new();
    for name in names {
        let mut bytes = rest.take(base.size as usize)?.to_vec();
        if order == ByteOrder::Big {
            bytes.reverse();
        }
        let negative = signed && bytes.last().is_some_and(|top| top & 0x80 != 0);
        bytes.resize(16, if negative { 0xff } else { 0 });
        members.push(EnumerationMember { name, value: i128::from_le_bytes(bytes.try_into().ok()?) });
    }
    distinct(&members, |member| &member.name)?;
    distinct(&members, |member| member.value)?;
    Some(members)
}

fn array(
    rest: &mut Rest<'_>,
    version: u8,
    size: u64,
    base: &mut impl FnMut(&mut Rest<'_>) -> Option<Datatype>,
) -> Option<Class> {
    let rank = usize::from(rest.byte().filter(|rank| (1..=32).contains(rank))?);
    rest.skip(if version < 3 { 3 } else { 0 })?;
    let dims = rest.numbers(4, rank).filter(|dims| !dims.contains(&0))?;
    // Permutations of version 2 mean nothing.
    rest.skip(if version < 3 { 4 * rank } else { 0 })?;
    let base = base(rest).filter(|base| !is_converted(base))?;
    (product(&dims)?.checked_mul(base.size)? == size).then(|| Class::Array { dims, base: Box::new(base) })
}
