//! Datatypes: turns libhdf5's description of a type in memory into the catalogue's description of it on disk, and into
//! a plan that turns elements in memory into elements on disk.
//!
//! `H5Dget_type` returns the form of a type in memory: there a variable-length string is a pointer of 8 bytes, on disk
//! a descriptor of 4 + address size + 4 bytes. References differ too, and so do the offsets of all later fields in a
//! compound. `H5T_set_loc` computed the form in memory: it visits the fields in the order of their offsets and adds up
//! their growth. The walk here reverses that.

use std::ffi::{CStr, c_char, c_uint, c_ulong};

use bstr::BString;

use super::reference;
use crate::catalogue::{
    ByteOrder, Charset, Class, CompoundField, Datatype, EnumerationMember, FloatFormat, Padding, ReferenceKind,
};
use crate::h5::library::ffi::{self, Hid, Vlen};
use crate::h5::library::{FailureReason, Id, check};

/// Deepest nesting of types; h5py and libhdf5's own tests stay below 10.
const MAX_DEPTH: usize = 32;

/// Most types, fields and members of one description.
const MAX_PARTS: usize = 100_000;

/// The conversion of an element in memory into an element on disk.
#[derive(Clone, Debug)]
pub(in crate::h5::worker) struct ElementConversion {
    /// Bytes of an element in memory.
    pub memory: usize,
    /// Bytes of an element on disk.
    pub disk: usize,
    kind: PlanKind,
}

#[derive(Clone, Debug)]
enum PlanKind {
    /// The same bytes; if the sizes differ, the first of them.
    Copy,
    /// A standard reference, decoded by libhdf5.
    Standard,
    /// A variable-length string: `char *` in memory.
    Text,
    /// A variable-length sequence: `hvl_t` in memory.
    Sequence(Box<ElementConversion>),
    /// The fields of a compound, each with its offset in memory, its offset on disk, and its conversion.
    Fields(Vec<(usize, usize, ElementConversion)>),
    /// A number of elements, back to back.
    Array(usize, Box<ElementConversion>),
}

/// The heap of variable-length parts, with its limit in bytes.
#[derive(Debug)]
pub(in crate::h5::worker) struct HeapOutput {
    pub bytes: Vec<u8>,
    pub limit: usize,
    pub address_size: u8,
    /// The number of the file that the elements come from.
    pub file_number: c_ulong,
}

/// The heap would exceed its limit of this many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::h5::worker) struct Overflow(pub usize);

impl HeapOutput {
    pub fn new(limit: usize, address_size: u8, file_number: c_ulong) -> Self {
        Self { bytes: Vec::new(), limit, address_size, file_number }
    }

    fn room(&self, more: usize) -> Result<(), Overflow> {
        match self.bytes.len().checked_add(more) {
            Some(total) if total <= self.limit => Ok(()),
            _ => Err(Overflow(self.bytes.len().saturating_add(more))),
        }
    }

    /// Writes a descriptor of the file's address width: length, position in this heap, index 0.
    fn describe(&self, length: usize, position: usize, disk: &mut [u8]) {
        let address = usize::from(self.address_size);
        let parts = [(length as u64, 4), (position as u64, address), (0, 4)];
        let mut place = disk.iter_mut();
        for (value, size) in parts {
            for byte in value.to_le_bytes().into_iter().chain([0; 24]).take(size) {
                if let Some(place) = place.next() {
                    *place = byte;
                }
            }
        }
    }
}

impl ElementConversion {
    /// Whether elements in memory equal those on disk, byte for byte.
    pub fn is_copy(&self) -> bool {
        matches!(self.kind, PlanKind::Copy) && self.memory == self.disk
    }

    /// Whether libhdf5 allocates memory for elements, which `H5Treclaim` must free.
    pub fn allocates(&self) -> bool {
        match &self.kind {
            PlanKind::Copy => false,
            PlanKind::Standard | PlanKind::Text | PlanKind::Sequence(_) => true,
            PlanKind::Fields(fields) => fields.iter().any(|(_, _, plan)| plan.allocates()),
            PlanKind::Array(_, base) => base.allocates(),
        }
    }

    /// Turns elements back to back in memory into elements back to back on disk.
    ///
    /// # Safety
    /// `memory` holds elements that libhdf5 wrote by this plan's type: its pointers are null or valid.
    pub unsafe fn encode_all(&self, memory: &[u8], disk: &mut [u8], heap: &mut HeapOutput) -> Result<(), Overflow> {
        if self.is_copy() {
            let length = memory.len().min(disk.len());
            if let (Some(from), Some(to)) = (memory.get(..length), disk.get_mut(..length)) {
                to.copy_from_slice(from);
            }
            return Ok(());
        }
        if self.memory == 0 || self.disk == 0 {
            return Ok(());
        }
        for (memory, disk) in memory.chunks_exact(self.memory).zip(disk.chunks_exact_mut(self.disk)) {
            // SAFETY: the caller's promise, for one element.
            unsafe { self.encode(memory, disk, heap)? };
        }
        Ok(())
    }

    /// # Safety
    /// As for [`ElementConversion::encode_all`], for one element.
    unsafe fn encode(&self, memory: &[u8], disk: &mut [u8], heap: &mut HeapOutput) -> Result<(), Overflow> {
        match &self.kind {
            PlanKind::Copy => {
                for (to, from) in disk.iter_mut().zip(memory) {
                    *to = *from;
                }
            }
            PlanKind::Standard => {
                disk.fill(0);
                let Some((kind, body)) = reference::stored(memory, heap.file_number, heap.address_size) else {
                    return Ok(());
                };
                let Some(([first, _flags], rest)) = disk.split_first_chunk_mut::<2>() else { return Ok(()) };
                *first = kind;
                if kind == ffi::R_OBJECT2 as u8 {
                    for (to, from) in rest.iter_mut().zip(&body) {
                        *to = *from;
                    }
                } else {
                    heap.room(body.len())?;
                    heap.describe(body.len(), heap.bytes.len(), rest);
                    heap.bytes.extend_from_slice(&body);
                }
            }
            PlanKind::Text => {
                let pointer = pointer(memory, 0);
                // SAFETY: the caller's promise: null or a C string.
                let text: &[u8] = if pointer.is_null() {
                    &[]
                } else {
                    unsafe { CStr::from_ptr(pointer.cast::<c_char>()) }.to_bytes()
                };
                heap.room(text.len())?;
                heap.describe(text.len(), heap.bytes.len(), disk);
                heap.bytes.extend_from_slice(text);
            }
            PlanKind::Sequence(base) => {
                let vlen = Vlen { length: word(memory, 0), pointer: pointer(memory, 8) };
                let length = if vlen.pointer.is_null() { 0 } else { vlen.length };
                let size = length.checked_mul(base.disk).ok_or(Overflow(usize::MAX))?;
                let size_in_memory = length.checked_mul(base.memory).ok_or(Overflow(usize::MAX))?;
                heap.room(size)?;
                let mut elements = vec![0; size];
                if size_in_memory > 0 {
                    // SAFETY: the caller's promise: `length` elements of the base type.
                    unsafe {
                        let from = std::slice::from_raw_parts(vlen.pointer, size_in_memory);
                        base.encode_all(from, &mut elements, heap)?;
                    }
                }
                heap.room(size)?;
                heap.describe(length, heap.bytes.len(), disk);
                heap.bytes.extend_from_slice(&elements);
            }
            PlanKind::Fields(fields) => {
                for (from, to, plan) in fields {
                    let memory = from.checked_add(plan.memory).and_then(|end| memory.get(*from..end));
                    let disk = to.checked_add(plan.disk).and_then(|end| disk.get_mut(*to..end));
                    if let (Some(memory), Some(disk)) = (memory, disk) {
                        // SAFETY: the caller's promise, for a field of the element.
                        unsafe { plan.encode(memory, disk, heap)? };
                    }
                }
            }
            PlanKind::Array(count, base) => {
                let memory = base.memory.checked_mul(*count).and_then(|size| memory.get(..size));
                let disk = base.disk.checked_mul(*count).and_then(|size| disk.get_mut(..size));
                if let (Some(memory), Some(disk)) = (memory, disk) {
                    // SAFETY: the caller's promise, for the elements of the array.
                    unsafe { base.encode_all(memory, disk, heap)? };
                }
            }
        }
        Ok(())
    }
}

fn word(memory: &[u8], at: usize) -> usize {
    memory.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, usize::from_ne_bytes)
}

fn pointer(memory: &[u8], at: usize) -> *const u8 {
    std::ptr::with_exposed_provenance(word(memory, at))
}

/// Describes a type that libhdf5 returned in its form in memory.
pub(in crate::h5::worker) fn describe(
    datatype: &Id,
    address_size: u8,
) -> Result<(Datatype, ElementConversion), FailureReason> {
    Walk { address_size, parts: 0 }.datatype(datatype.raw(), 0)
}

struct Walk {
    address_size: u8,
    parts: usize,
}

impl Walk {
    fn part(&mut self) -> Result<(), FailureReason> {
        self.parts += 1;
        if self.parts > MAX_PARTS {
            return Err(FailureReason::new(format!("a datatype of more than {MAX_PARTS} parts")));
        }
        Ok(())
    }

    /// Bytes on disk of a descriptor, or of a region reference's identifier, with `lead` bytes in front.
    fn heap_id(&self, lead: usize) -> usize {
        lead + usize::from(self.address_size) + 4
    }

    fn base(&mut self, id: Hid, depth: usize) -> Result<(Datatype, ElementConversion), FailureReason> {
        // SAFETY: `id` is an open datatype (so in all calls of this file).
        let base = Id::own(unsafe { ffi::H5Tget_super(id) })?;
        self.datatype(base.raw(), depth + 1)
    }

    fn datatype(&mut self, id: Hid, depth: usize) -> Result<(Datatype, ElementConversion), FailureReason> {
        if depth >= MAX_DEPTH {
            return Err(FailureReason::new(format!("a datatype nested deeper than {MAX_DEPTH}")));
        }
        self.part()?;
        // SAFETY: as above.
        let (class, memory) = unsafe { (ffi::H5Tget_class(id), ffi::H5Tget_size(id)) };
        if memory == 0 {
            return Err(FailureReason::of_library().context("a datatype of size 0"));
        }
        let plain = ElementConversion { memory, disk: memory, kind: PlanKind::Copy };
        let (class, plan) = match class {
            ffi::T_INTEGER => {
                let (precision, offset) = bits(id)?;
                // SAFETY: as above. H5T_SGN_2 is 1.
                let signed = unsafe { ffi::H5Tget_sign(id) } == 1;
                (Class::Integer { signed, order: order(id)?, precision, offset }, plain)
            }
            ffi::T_FLOAT => (Class::Float { order: order(id)?, format: float(id, memory)? }, plain),
            ffi::T_TIME => (Class::Time { order: order(id)? }, plain),
            ffi::T_STRING => self.string(id, plain)?,
            ffi::T_BITFIELD => {
                let (precision, offset) = bits(id)?;
                (Class::Bitfield { order: order(id)?, precision, offset }, plain)
            }
            // SAFETY: as above.
            ffi::T_OPAQUE => (Class::Opaque { tag: library_string(unsafe { ffi::H5Tget_tag(id) })? }, plain),
            ffi::T_COMPOUND => self.compound(id, memory, depth)?,
            ffi::T_REFERENCE => self.reference(id, memory),
            ffi::T_ENUM => self.enumeration(id, plain, depth)?,
            ffi::T_SEQUENCE => {
                let (base, plan) = self.base(id, depth)?;
                let disk = self.heap_id(4);
                (
                    Class::Sequence { base: Box::new(base) },
                    ElementConversion { memory, disk, kind: PlanKind::Sequence(Box::new(plan)) },
                )
            }
            ffi::T_ARRAY => self.array(id, memory, depth)?,
            ffi::T_COMPLEX => (Class::Complex { base: Box::new(self.base(id, depth)?.0) }, plain),
            other => (Class::Unknown(other), plain),
        };
        Ok((Datatype { size: plan.disk as u64, class }, plan))
    }

    fn string(&mut self, id: Hid, plain: ElementConversion) -> Result<(Class, ElementConversion), FailureReason> {
        // SAFETY: as above.
        let (padding, charset, variable) =
            unsafe { (ffi::H5Tget_strpad(id), ffi::H5Tget_cset(id), check(ffi::H5Tis_variable_str(id))? > 0) };
        let padding = match padding {
            1 => Padding::NullPadded,
            2 => Padding::SpacePadded,
            _ => Padding::NullTerminated,
        };
        let charset = if charset == 1 { Charset::Utf8 } else { Charset::Ascii };
        if variable {
            let plan = ElementConversion { memory: plain.memory, disk: self.heap_id(4), kind: PlanKind::Text };
            Ok((Class::VariableString { padding, charset }, plan))
        } else {
            Ok((Class::FixedString { padding, charset }, plain))
        }
    }

    fn compound(&mut self, id: Hid, memory: usize, depth: usize) -> Result<(Class, ElementConversion), FailureReason> {
        let mut members = Vec::new();
        for index in 0..count(id)? {
            self.part()?;
            // SAFETY: as above; the index is below the number of members.
            let (name, offset, member) = unsafe {
                (
                    library_string(ffi::H5Tget_member_name(id, index))?,
                    ffi::H5Tget_member_offset(id, index),
                    Id::own(ffi::H5Tget_member_type(id, index))?,
                )
            };
            let (datatype, plan) = self.datatype(member.raw(), depth + 1)?;
            members.push((offset, index, name, datatype, plan));
        }
        members.sort_by_key(|member| member.0);
        let mut grown = 0i128;
        let mut fields = Vec::with_capacity(members.len());
        let mut plans = Vec::with_capacity(members.len());
        for (offset, index, name, datatype, plan) in members {
            let end = offset.checked_add(plan.memory).filter(|end| *end <= memory);
            let on_disk = usize::try_from(offset as i128 + grown).ok();
            let (Some(_), Some(on_disk)) = (end, on_disk) else {
                return Err(FailureReason::new(format!("a compound whose field {name:?} lies outside of it")));
            };
            grown += plan.disk as i128 - plan.memory as i128;
            fields.push((index, CompoundField { name, offset: on_disk as u64, datatype }));
            plans.push((offset, on_disk, plan));
        }
        let disk = usize::try_from(memory as i128 + grown)
            .map_err(|_| FailureReason::new("a compound smaller than its fields"))?;
        let same = plans.iter().all(|(from, to, plan)| from == to && plan.is_copy()) && disk == memory;
        let kind = if same { PlanKind::Copy } else { PlanKind::Fields(plans) };
        // Back to the order of the file.
        fields.sort_by_key(|(index, _)| *index);
        let fields = fields.into_iter().map(|(_, field)| field).collect();
        Ok((Class::Compound { fields }, ElementConversion { memory, disk, kind }))
    }

    fn reference(&mut self, id: Hid, memory: usize) -> (Class, ElementConversion) {
        let address = usize::from(self.address_size);
        // SAFETY: as above; the globals are set by H5open.
        let is = |known: Hid| unsafe { ffi::H5Tequal(id, known) } > 0;
        // SAFETY: as above.
        let (object, region) = unsafe { (ffi::H5T_STD_REF_OBJ_g, ffi::H5T_STD_REF_DSETREG_g) };
        // libhdf5 does not mark a reference under a sequence as being in memory, so H5Tequal fails; then its size
        // decides.
        let kind = if is(object) || memory == address {
            ReferenceKind::Object
        } else if is(region) || memory == address + 4 {
            ReferenceKind::Region
        } else {
            ReferenceKind::Standard
        };
        let (disk, kind_of_plan) = match kind {
            ReferenceKind::Object => (address, PlanKind::Copy),
            ReferenceKind::Region => (address + 4, PlanKind::Copy),
            // H5T__ref_set_loc: type, flags, length and an identifier in the heap, or type, flags and a token with its
            // length, whichever is longer.
            ReferenceKind::Standard => ((4 + 2 + address + 4).max(2 + 1 + address), PlanKind::Standard),
        };
        (Class::Reference(kind), ElementConversion { memory, disk, kind: kind_of_plan })
    }

    fn enumeration(
        &mut self,
        id: Hid,
        plain: ElementConversion,
        depth: usize,
    ) -> Result<(Class, ElementConversion), FailureReason> {
        let (base, _) = self.base(id, depth)?;
        let Class::Integer { signed, order, .. } = base.class else {
            return Err(FailureReason::new("an enumeration of a type that is not an integer"));
        };
        if plain.memory > 16 || base.size != plain.memory as u64 {
            return Err(FailureReason::new(format!("an enumeration of {} bytes", plain.memory)));
        }
        let mut members = Vec::new();
        for index in 0..count(id)? {
            self.part()?;
            let mut value = [0u8; 16];
            // SAFETY: as above; a value has the size of the type, at most 16 bytes.
            let name = unsafe {
                check(ffi::H5Tget_member_value(id, index, value.as_mut_ptr().cast()))?;
                library_string(ffi::H5Tget_member_name(id, index))?
            };
            members.push(EnumerationMember {
                name,
                value: integer(value.get(..plain.memory).unwrap_or_default(), signed, order),
            });
        }
        Ok((Class::Enum { base: Box::new(base), members }, plain))
    }

    fn array(&mut self, id: Hid, memory: usize, depth: usize) -> Result<(Class, ElementConversion), FailureReason> {
        // SAFETY: as above.
        let rank = check(unsafe { ffi::H5Tget_array_ndims(id) })? as usize;
        let mut dims = vec![0u64; rank.min(ffi::MAX_RANK)];
        if rank > ffi::MAX_RANK {
            return Err(FailureReason::new(format!("an array of {rank} dimensions")));
        }
        // SAFETY: as above; `dims` has room for each dimension.
        check(unsafe { ffi::H5Tget_array_dims2(id, dims.as_mut_ptr()) })?;
        let (base, plan) = self.base(id, depth)?;
        let count = crate::catalogue::product(&dims).and_then(|count| usize::try_from(count).ok());
        let sizes = count.and_then(|count| {
            let fits = plan.memory.checked_mul(count)? <= memory;
            fits.then_some((count, plan.disk.checked_mul(count)?))
        });
        let Some((count, disk)) = sizes else {
            return Err(FailureReason::new(format!("an array of {dims:?} elements in {memory} bytes")));
        };
        let kind =
            if plan.is_copy() && disk == memory { PlanKind::Copy } else { PlanKind::Array(count, Box::new(plan)) };
        Ok((Class::Array { dims, base: Box::new(base) }, ElementConversion { memory, disk, kind }))
    }
}

fn count(id: Hid) -> Result<c_uint, FailureReason> {
    // SAFETY: as above. A negative count is an error; all others fit.
    check(unsafe { ffi::H5Tget_nmembers(id) }).map(|count| count as c_uint)
}

fn order(id: Hid) -> Result<ByteOrder, FailureReason> {
    // SAFETY: as above.
    match unsafe { ffi::H5Tget_order(id) } {
        1 => Ok(ByteOrder::Big),
        2 => Ok(ByteOrder::Vax),
        // H5T_ORDER_NONE (one byte) and H5T_ORDER_MIXED count as little-endian.
        order if order >= 0 => Ok(ByteOrder::Little),
        _ => Err(FailureReason::of_library()),
    }
}

/// Precision and offset of a number, in bits.
fn bits(id: Hid) -> Result<(u32, u32), FailureReason> {
    // SAFETY: as above.
    let (precision, offset) = unsafe { (ffi::H5Tget_precision(id), ffi::H5Tget_offset(id)) };
    let offset = check(offset)?;
    Ok((u32::try_from(precision).unwrap_or(u32::MAX), offset as u32))
}

fn float(id: Hid, size: usize) -> Result<FloatFormat, FailureReason> {
    let (precision, offset) = bits(id)?;
    let mut fields = [0usize; 5];
    let [sign, exponent_position, exponent_size, mantissa_position, mantissa_size] = &mut fields;
    // SAFETY: as above; five places for five numbers.
    let (bias, implied) = unsafe {
        check(ffi::H5Tget_fields(id, sign, exponent_position, exponent_size, mantissa_position, mantissa_size))?;
        (ffi::H5Tget_ebias(id) as u64, ffi::H5Tget_norm(id) == 0)
    };
    Ok(match (size, precision, offset, fields, bias, implied) {
        (2, 16, 0, [15, 10, 5, 0, 10], 15, true) => FloatFormat::Half,
        (4, 32, 0, [31, 23, 8, 0, 23], 127, true) => FloatFormat::Single,
        (8, 64, 0, [63, 52, 11, 0, 52], 1023, true) => FloatFormat::Double,
        (10 | 12 | 16, 80, 0, [79, 64, 15, 0, 64], 16_383, false) => FloatFormat::Extended,
        (16, 128, 0, [127, 112, 15, 0, 112], 16_383, true) => FloatFormat::Quadruple,
        _ => {
            let [sign, exponent_position, exponent_size, mantissa_position, mantissa_size] =
                fields.map(|field| u32::try_from(field).unwrap_or(u32::MAX));
            FloatFormat::Other {
                precision,
                offset,
                sign,
                exponent_position,
                exponent_size,
                mantissa_position,
                mantissa_size,
                bias,
            }
        }
    })
}

/// An integer of up to 16 bytes.
fn integer(bytes: &[u8], signed: bool, order: ByteOrder) -> i128 {
    let mut little: Vec<u8> = bytes.to_vec();
    if order == ByteOrder::Big {
        little.reverse();
    }
    let negative = signed && little.last().is_some_and(|top| top & 0x80 != 0);
    let mut wide = [if negative { 0xff } else { 0 }; 16];
    for (to, from) in wide.iter_mut().zip(&little) {
        *to = *from;
    }
    i128::from_le_bytes(wide)
}

/// Takes over a string that libhdf5 allocated.
fn library_string(text: *mut c_char) -> Result<BString, FailureReason> {
    if text.is_null() {
        return Err(FailureReason::of_library());
    }
    // SAFETY: libhdf5 returns a C string that we must free by H5free_memory.
    unsafe {
        let owned = BString::from(CStr::from_ptr(text).to_bytes());
        ffi::H5free_memory(text.cast());
        Ok(owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_any_width_and_order() {
        assert_eq!(integer(&[0xfe, 0xff], true, ByteOrder::Little), -2);
        assert_eq!(integer(&[0xff, 0xfe], true, ByteOrder::Big), -2);
        assert_eq!(integer(&[0xff, 0xfe], false, ByteOrder::Big), 0xfffe);
        assert_eq!(integer(&[0x01, 0x00, 0x00], true, ByteOrder::Big), 0x10000);
        assert_eq!(integer(&[], true, ByteOrder::Big), 0);
    }

    /// A text after a number: 16 bytes in memory become 4 + 16 on disk, and the text goes to the heap.
    #[test]
    fn compounds_move_their_texts_into_the_heap() {
        let text = c"abc";
        let mut memory = vec![7, 0, 0, 0, 0, 0, 0, 0];
        memory.extend_from_slice(&(text.as_ptr().expose_provenance()).to_ne_bytes());
        let number = ElementConversion { memory: 4, disk: 4, kind: PlanKind::Copy };
        let string = ElementConversion { memory: 8, disk: 16, kind: PlanKind::Text };
        let plan =
            ElementConversion { memory: 16, disk: 24, kind: PlanKind::Fields(vec![(0, 0, number), (8, 8, string)]) };
        let mut disk = vec![0xee; 24];
        let mut heap = HeapOutput::new(100, 8, 0);
        heap.bytes.extend_from_slice(b"before");
        // SAFETY: the pointer leads to a C string.
        unsafe { plan.encode_all(&memory, &mut disk, &mut heap) }.unwrap();
        assert_eq!(&disk[..4], [7, 0, 0, 0]);
        assert_eq!(&disk[8..], [3, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(heap.bytes, b"beforeabc");
        heap.limit = 10;
        // SAFETY: as above.
        assert_eq!(unsafe { plan.encode_all(&memory, &mut disk, &mut heap) }, Err(Overflow(12)));
    }

    #[test]
    fn descriptors_follow_the_width_of_addresses() {
        let heap = HeapOutput::new(100, 4, 0);
        let mut disk = [0xee; 13];
        heap.describe(5, 0x0102, &mut disk);
        assert_eq!(disk, [5, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0xee]);
    }
}
