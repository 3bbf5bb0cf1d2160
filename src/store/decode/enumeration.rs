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
    let codes = codes(bytes.clone(), base);
    let mut labels: Vec<String> = members.iter().map(|member| member.name.to_string()).collect();
    let mut key_of: HashMap<i128, i32> = HashMap::with_capacity(members.len());
    for (key, member) in members.iter().enumerate() {
        key_of.entry(member.value).or_insert(key as i32);
    }
    let named = labels.len() as i32;
    let mut last: Option<(i128, i32)> = None;
    let mut keys = Vec::with_capacity(codes.len());
    for (row, code) in codes.into_iter().enumerate() {
        let key = match last {
            Some((seen, key)) if seen == code => key,
            _ => *key_of.entry(code).or_insert_with(|| {
                labels.push(code.to_string());
                labels.len() as i32 - 1
            }),
        };
        if key >= named {
            oddities.push((Oddity::UnnamedCode, row as u64));
        }
        last = Some((code, key));
        keys.push(key);
    }
    let labels = Arc::new(LargeStringArray::from(labels));
    // Every key was made from an index of `labels` just above.
    match DictionaryArray::<Int32Type>::try_new(Int32Array::from(keys), labels) {
        Ok(array) => Arc::new(array),
        Err(_) => arrow_array::new_null_array(
            &DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::LargeUtf8)),
            bytes.len() / (base.size.max(1) as usize),
        ),
    }
}

/// Codes of this base type as integers; `None` of another.
pub(in crate::store) fn integers(bytes: Buffer, base: &Datatype) -> Option<ArrayRef> {
    let Class::Integer { order, signed, precision, offset } = base.class else { return None };
    let layout = number::BitPlaces { width: usize::try_from(base.size).ok()?, order, precision, offset };
    is_readable(base).then(|| number::integers(bytes, layout, signed))
}

fn codes(bytes: Buffer, base: &Datatype) -> Vec<i128> {
    let Some(integers) = integers(bytes, base) else { return Vec::new() };
    let wide = if integers.data_type().is_signed_integer() {
        widen::signed(&integers).map(|codes| codes.values().iter().map(|code| i128::from(*code)).collect())
    } else {
        widen::unsigned(&integers).map(|codes| codes.values().iter().map(|code| i128::from(*code)).collect())
    };
    wide.unwrap_or_default()
}
