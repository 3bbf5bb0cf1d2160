//! Enumerations: names for numbers, and the boolean among them.

use std::collections::HashMap;
use std::fmt::{Display, Write};
use std::sync::Arc;

use arrow_array::builder::LargeStringBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BooleanArray, DictionaryArray, Int32Array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};

use super::{DecodeError, Oddities, Oddity, number, widen};
use crate::catalogue::{Class, Datatype, EnumerationMember};

/// Whether codes of this base type can be read: an integer of at most 8 bytes in a known byte order.
pub(super) fn is_readable(base: &Datatype) -> bool {
    matches!(&base.class, Class::Integer { order, .. } if number::is_ordered(*order)) && base.size <= 8
}

/// HEP001 booleans: a byte other than 0 and 1 is an oddity and becomes null, never coerced.
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

/// Bytes as booleans; any byte but 0 is true.
pub(super) fn flags(bytes: &[u8]) -> ArrayRef {
    Arc::new(BooleanArray::new(BooleanBuffer::collect_bool(bytes.len(), |i| bytes[i] != 0), None))
}

/// Most bytes of labels made for unnamed codes, in one array.
const MOST_UNNAMED: usize = 64 << 20;

/// Codes as a dictionary of member names; an unnamed code is an oddity, labelled by its number.
///
/// # Errors
/// [`DecodeError`] if there are more unnamed codes than are shown at once.
pub(super) fn labels(
    bytes: &Buffer,
    base: &Datatype,
    members: &[EnumerationMember],
    oddities: &mut Oddities,
) -> Result<ArrayRef, DecodeError> {
    let mut names = Names::new(members);
    let codes = integers(bytes.clone(), base);
    let is_signed = codes.as_ref().is_some_and(|codes| codes.data_type().is_signed_integer());
    let keys = codes.and_then(|codes| match is_signed {
        true => widen::signed(&codes).map(|codes| names.keys(codes.values(), oddities)),
        false => widen::unsigned(&codes).map(|codes| names.keys(codes.values(), oddities)),
    });
    let keys = Int32Array::from(keys.unwrap_or_else(|| Err(DecodeError::new(0, "codes that are no integers")))?);
    DictionaryArray::<Int32Type>::try_new(keys, Arc::new(names.labels.finish()))
        .map(|array| Arc::new(array) as ArrayRef)
        .map_err(|error| DecodeError::new(0, error.to_string()))
}

/// The labels of codes: names, and numbers of unnamed codes.
struct Names {
    labels: LargeStringBuilder,
    /// Number of labels that are names.
    named: i32,
    key_of: HashMap<i128, i32>,
    /// For each lowest byte, the last code seen and its key if it has a name: avoids most hashing.
    recent: [Option<(i128, Option<i32>)>; 256],
}

impl Names {
    fn new(members: &[EnumerationMember]) -> Self {
        let mut labels = LargeStringBuilder::new();
        let mut key_of = HashMap::with_capacity(members.len());
        for (member, key) in members.iter().zip(0..) {
            labels.append_value(member.name.to_string());
            key_of.entry(member.value).or_insert(key);
        }
        Self { labels, named: members.len() as i32, key_of, recent: [None; 256] }
    }

    /// The key of a named code.
    fn key(&mut self, code: i128) -> Option<i32> {
        let recent = &mut self.recent[usize::from(code as u8)];
        match recent {
            Some((seen, key)) if *seen == code => *key,
            _ => {
                let key = self.key_of.get(&code).copied();
                *recent = Some((code, key));
                key
            }
        }
    }

    fn keys<T: Copy + Ord + Display + Into<i128>>(
        &mut self,
        codes: &[T],
        oddities: &mut Oddities,
    ) -> Result<Vec<i32>, DecodeError> {
        const UNNAMED: i32 = -1;
        let mut unnamed = Vec::new();
        let keys = codes.iter().enumerate().map(|(row, code)| {
            self.key((*code).into()).unwrap_or_else(|| {
                oddities.add(Oddity::UnnamedCode, row as u64);
                unnamed.push(*code);
                UNNAMED
            })
        });
        let mut keys: Vec<i32> = keys.collect();
        // All codes may be unnamed and different: sorted, they take little more than their own bytes.
        unnamed.sort_unstable();
        unnamed.dedup();
        let most = self.labels.values_slice().len() + MOST_UNNAMED;
        for code in &unnamed {
            // Writing to memory cannot fail.
            let _ = write!(self.labels, "{code}");
            self.labels.append_value("");
            if self.labels.values_slice().len() > most {
                let reason = format!("{} codes without a name, more than are shown at once", unnamed.len());
                return Err(DecodeError::new(0, reason));
            }
        }
        for (key, code) in keys.iter_mut().zip(codes).filter(|(key, _)| **key == UNNAMED) {
            *key = self.named + unnamed.partition_point(|other| other < code) as i32;
        }
        Ok(keys)
    }
}

/// Codes of this base type as integers; `None`: not an integer type.
pub(in crate::store) fn integers(bytes: Buffer, base: &Datatype) -> Option<ArrayRef> {
    let Class::Integer { order, signed, precision, offset } = base.class else { return None };
    let layout = number::BitPlaces { width: usize::try_from(base.size).ok()?, order, precision, offset };
    is_readable(base).then(|| number::integers(bytes, layout, signed))
}
