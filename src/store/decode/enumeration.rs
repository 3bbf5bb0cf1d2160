//! Enumerations: names for numbers, and the boolean among them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BooleanArray, DictionaryArray, Int32Array, LargeStringArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_schema::DataType;

use super::{Oddities, Oddity, number, widen};
use crate::catalogue::{Class, Datatype, Member};

/// Whether codes of this base type can be read: an integer of at most 8 bytes in a known byte order.
pub(super) fn is_readable(base: &Datatype) -> bool {
    matches!(&base.class, Class::Integer { order, .. } if number::is_ordered(*order)) && base.size <= 8
}

/// HEP001 booleans: any byte but 0 and 1 is missing and an oddity, never coerced.
pub(super) fn booleans(bytes: &[u8], oddities: &mut Oddities) -> ArrayRef {
    let values = BooleanBuffer::collect_bool(bytes.len(), |i| bytes[i] == 1);
    let valid = BooleanBuffer::collect_bool(bytes.len(), |i| bytes[i] <= 1);
    if valid.count_set_bits() == bytes.len() {
        return Arc::new(BooleanArray::new(values, None));
    }
    let odd = bytes.iter().enumerate().filter(|(_, byte)| **byte > 1);
    oddities.extend(odd.map(|(row, _)| (Oddity::InvalidBoolean, row as u64)));
    Arc::new(BooleanArray::new(values, Some(NullBuffer::new(valid))))
}

/// Bytes of which any but 0 is true.
pub(super) fn flags(bytes: &[u8]) -> ArrayRef {
    Arc::new(BooleanArray::new(BooleanBuffer::collect_bool(bytes.len(), |i| bytes[i] != 0), None))
}

/// Codes as a dictionary of member names; a code without a name is an oddity and stands as its number.
pub(super) fn labels(bytes: &Buffer, base: &Datatype, members: &[Member], oddities: &mut Oddities) -> ArrayRef {
    let mut names = Names::new(members);
    let codes = integers(bytes.clone(), base);
    let is_signed = codes.as_ref().is_some_and(|codes| codes.data_type().is_signed_integer());
    let keys = codes.and_then(|codes| match is_signed {
        true => widen::signed(&codes).map(|codes| names.keys(codes.values(), oddities)),
        false => widen::unsigned(&codes).map(|codes| names.keys(codes.values(), oddities)),
    });
    let labels = Arc::new(LargeStringArray::from(names.labels));
    // Every key was made from an index of `labels` just above.
    match DictionaryArray::<Int32Type>::try_new(Int32Array::from(keys.unwrap_or_default()), labels) {
        Ok(array) => Arc::new(array),
        Err(_) => arrow_array::new_null_array(
            &DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::LargeUtf8)),
            bytes.len() / (base.size.max(1) as usize),
        ),
    }
}

/// The names of codes, and those made for codes without one.
struct Names {
    labels: Vec<String>,
    /// How many labels are of members.
    named: i32,
    key_of: HashMap<i128, i32>,
    /// The last code met of each lowest byte, and its key: few codes are hashed.
    recent: [Option<(i128, i32)>; 256],
}

impl Names {
    fn new(members: &[Member]) -> Self {
        let labels: Vec<String> = members.iter().map(|member| member.name.to_string()).collect();
        let named = labels.len() as i32;
        let mut names = Self { labels, named, key_of: HashMap::with_capacity(members.len()), recent: [None; 256] };
        for (member, key) in members.iter().zip(0..) {
            names.key_of.entry(member.value).or_insert(key);
        }
        names
    }

    fn keys<T: Copy + Into<i128>>(&mut self, codes: &[T], oddities: &mut Oddities) -> Vec<i32> {
        let one = |(row, code): (usize, &T)| {
            let code = (*code).into();
            let recent = &mut self.recent[usize::from(code as u8)];
            let key = match recent {
                Some((seen, key)) if *seen == code => *key,
                _ => {
                    let key = *self.key_of.entry(code).or_insert_with(|| {
                        self.labels.push(code.to_string());
                        self.labels.len() as i32 - 1
                    });
                    *recent = Some((code, key));
                    key
                }
            };
            if key >= self.named {
                oddities.push((Oddity::UnnamedCode, row as u64));
            }
            key
        };
        codes.iter().enumerate().map(one).collect()
    }
}

/// Codes of this base type as integers; `None` of another.
pub(in crate::store) fn integers(bytes: Buffer, base: &Datatype) -> Option<ArrayRef> {
    let Class::Integer { order, signed, precision, offset } = base.class else { return None };
    let layout = number::BitPlaces { width: usize::try_from(base.size).ok()?, order, precision, offset };
    is_readable(base).then(|| number::integers(bytes, layout, signed))
}
