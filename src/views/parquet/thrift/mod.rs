//! The subset of Thrift's compact protocol that Parquet's metadata needs, with lengths that do not depend on values.
//!
//! A 32-bit number always takes five bytes and a 64-bit number nine: a varint may have more groups of seven bits than
//! necessary, and all tested readers accept that. So the length of a footer follows from the number of its entries
//! alone. Nine groups hold 63 bits, one of which zigzag takes: the largest number is [`LARGEST`].

pub(super) mod page;
pub(super) mod schema;

/// The largest 64-bit number that can be written.
pub(super) const LARGEST: u64 = (1 << 62) - 1;

/// Number of bytes of a 32-bit number.
const WIDTH_32: usize = 5;

/// Number of bytes of a 64-bit number.
pub(super) const WIDTH_64: usize = 9;

/// Number of bytes of the length in a [`ThriftStruct::padding`]: 21 bits would usually do, five groups hold any.
const WIDTH_PADDING: usize = 5;

/// Thrift types of elements and fields.
#[derive(Clone, Copy, Debug)]
pub(super) enum ThriftType {
    Bool = 1,
    I32 = 5,
    I64 = 6,
    Binary = 8,
    Struct = 12,
}

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const I8: u8 = 3;
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// Number of bytes that [`ThriftStruct::padding`] adds to the padding itself, if the field number exceeds the last one
/// by at most 15.
pub(super) const PADDING_OVERHEAD: u64 = 1 + WIDTH_PADDING as u64;

/// Appends a number in as few groups of seven bits as possible.
pub(super) fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a number in exactly `width` groups of seven bits.
fn wide_varint(mut value: u64, width: usize, out: &mut Vec<u8>) {
    for _ in 1..width {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8 & 0x7f);
}

/// Appends a small number to a list. Its value is constant, so its length may depend on the value.
pub(super) fn small_i32(value: i32, out: &mut Vec<u8>) {
    varint(u64::from(((value << 1) ^ (value >> 31)) as u32), out);
}

/// Appends a flag to a list.
pub(super) fn bool(value: bool, out: &mut Vec<u8>) {
    out.push(if value { TRUE } else { FALSE });
}

/// Appends a number up to [`LARGEST`] to a list.
pub(super) fn wide_i64(value: u64, out: &mut Vec<u8>) {
    debug_assert!(value <= LARGEST);
    wide_varint(value << 1, WIDTH_64, out);
}

/// Appends bytes, preceded by their number.
pub(super) fn binary(bytes: &[u8], out: &mut Vec<u8>) {
    varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Appends the header of a list.
pub(super) fn list_header(element: ThriftType, count: usize, out: &mut Vec<u8>) {
    if count < 15 {
        out.push((count as u8) << 4 | element as u8);
    } else {
        out.push(0xf0 | element as u8);
        varint(count as u64, out);
    }
}

/// Returns the number of bytes that [`list_header`] appends.
pub(super) fn list_header_length(count: u64) -> u64 {
    if count < 15 { 1 } else { 1 + u64::from(count.ilog2() / 7 + 1) }
}

/// Appends a struct with the fields that `fields` writes.
pub(super) fn structure(out: &mut Vec<u8>, fields: impl FnOnce(&mut ThriftStruct<'_>)) {
    let mut fields_out = ThriftStruct { out, last: 0 };
    fields(&mut fields_out);
    out.push(0);
}

/// Writes the fields of a struct, in the order of their numbers.
pub(super) struct ThriftStruct<'a> {
    out: &'a mut Vec<u8>,
    last: u8,
}

impl<'a> ThriftStruct<'a> {
    /// Continues a struct whose last field, written elsewhere, has number `last`; the caller ends it with
    /// [`ThriftStruct::end`].
    pub fn resume(out: &'a mut Vec<u8>, last: u8) -> Self {
        Self { out, last }
    }

    /// Ends a struct that was not begun with [`structure`].
    pub fn end(self) {
        self.out.push(0);
    }

    fn field(&mut self, id: u8, kind: u8) {
        debug_assert!(id > self.last && id - self.last <= 15, "field {id} after {}", self.last);
        self.out.push((id - self.last) << 4 | kind);
        self.last = id;
    }

    pub fn bool(&mut self, id: u8, value: bool) {
        self.field(id, if value { TRUE } else { FALSE });
    }

    pub fn i8(&mut self, id: u8, value: i8) {
        self.field(id, I8);
        self.out.push(value as u8);
    }

    pub fn i32(&mut self, id: u8, value: i32) {
        self.field(id, I32);
        wide_varint(u64::from(((value << 1) ^ (value >> 31)) as u32), WIDTH_32, self.out);
    }

    /// Appends a field with a number up to [`LARGEST`].
    pub fn i64(&mut self, id: u8, value: u64) {
        self.field(id, I64);
        wide_i64(value, self.out);
    }

    pub fn binary(&mut self, id: u8, value: &[u8]) {
        self.field(id, BINARY);
        binary(value, self.out);
    }

    pub fn structure(&mut self, id: u8, fields: impl FnOnce(&mut ThriftStruct<'_>)) {
        self.field(id, STRUCT);
        structure(self.out, fields);
    }

    /// Appends a struct field that `write` writes, end included.
    pub fn structure_with(&mut self, id: u8, write: impl FnOnce(&mut Vec<u8>)) {
        self.field(id, STRUCT);
        write(self.out);
    }

    /// Returns the number of bytes in the buffer so far.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Appends a list whose elements `elements` writes.
    pub fn list(&mut self, id: u8, element: ThriftType, count: usize, elements: impl FnOnce(&mut Vec<u8>)) {
        self.field(id, LIST);
        list_header(element, count, self.out);
        elements(self.out);
    }

    /// Appends `length` zeros in a field that every reader skips as unknown. Takes [`PADDING_OVERHEAD`] bytes more.
    pub fn padding(&mut self, id: u8, length: usize) {
        self.field(id, BINARY);
        wide_varint(length as u64, WIDTH_PADDING, self.out);
        self.out.resize(self.out.len() + length, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_width() {
        let mut out = Vec::new();
        structure(&mut out, |fields| {
            fields.i32(1, 1);
            fields.i32(2, -1);
            fields.i64(5, 300);
        });
        // Zigzag: 1 is 2, −1 is 1, 300 is 600 = 0b100_1011000. Fields: 1, 1 on, 3 on.
        let one = [0x15, 0x82, 0x80, 0x80, 0x80, 0x00];
        let minus_one = [0x15, 0x81, 0x80, 0x80, 0x80, 0x00];
        let wide = [0x36, 0xd8, 0x84, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00];
        assert_eq!(out, [&one[..], &minus_one, &wide, &[0]].concat());
    }

    #[test]
    fn the_extremes_keep_their_value() {
        let read = |bytes: &[u8]| {
            bytes.iter().enumerate().fold(0u64, |sum, (i, byte)| sum | u64::from(byte & 0x7f) << (7 * i))
        };
        let mut out = Vec::new();
        ThriftStruct::resume(&mut out, 0).i64(1, LARGEST);
        assert_eq!((out.len(), read(&out[1..])), (10, LARGEST * 2));
        out.clear();
        ThriftStruct::resume(&mut out, 0).i32(1, i32::MIN);
        assert_eq!((out.len(), read(&out[1..])), (6, u64::from(u32::MAX)));
    }

    #[test]
    fn lists_and_padding() {
        let mut out = Vec::new();
        structure(&mut out, |fields| {
            fields.list(1, ThriftType::Binary, 2, |out| {
                binary(b"a", out);
                binary(b"", out);
            });
            fields.bool(2, true);
            fields.padding(15, 3);
        });
        assert_eq!(out, [0x19, 0x28, 1, b'a', 0, 0x11, 0xd8, 0x83, 0x80, 0x80, 0x80, 0x00, 0, 0, 0, 0]);
        out.clear();
        list_header(ThriftType::Struct, 300, &mut out);
        assert_eq!(out, [0xfc, 0xac, 0x02]);
        for count in [0, 1, 14, 15, 127, 128, 16_383, 16_384, 1 << 24] {
            out.clear();
            list_header(ThriftType::I64, count, &mut out);
            assert_eq!(out.len() as u64, list_header_length(count as u64), "{count}");
        }
    }
}
