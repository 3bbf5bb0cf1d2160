//! What a column's stored type tells beyond its Arrow type: how long texts get, and which values there can be.

use std::sync::Arc;

use arrow_array::{ArrayRef, LargeStringArray};

use crate::catalogue::{Class, Datatype, Member};
use crate::store::arrow::is_shown_as_stored;

/// What is known of a column before a value is read. Nothing need be; what is, makes pages smaller or their sizes
/// arithmetic. An array or a sequence has the hints of its elements.
#[derive(Clone, Debug, Default)]
pub(super) struct Hints {
    /// Bytes of the longest text that can be shown, as UTF-8: of a string (an invalid byte becomes three), of a name or
    /// number of an enumeration.
    pub longest_text: Option<u64>,
    /// The labels of categories; or all that an enumeration of 8 bits can show, in the order of its codes' bytes.
    pub labels: Option<ArrayRef>,
    /// A stored element is the very bytes of what it is shown as.
    pub stored: bool,
    /// Rows of a row group, each of which repeats the dictionary.
    pub row_group: Option<u64>,
    /// The order of the labels means something.
    pub ordered: bool,
    /// Hints for the fields of a compound, in their order.
    pub fields: Vec<Hints>,
}

impl Hints {
    /// What a stored datatype tells. Labels of categories, their order and the size of row groups are the caller's.
    pub fn of(datatype: &Datatype) -> Self {
        let mut hints = Self { stored: is_shown_as_stored(datatype), ..Self::default() };
        if let Some(part) = datatype.complex_part() {
            hints.fields = vec![Self::of(part), Self::of(part)];
            return hints;
        }
        match &datatype.class {
            Class::FixedString { .. } => hints.longest_text = datatype.size.checked_mul(3),
            Class::Enum { .. } if datatype.is_boolean() => {}
            // Codes are decoded even where they are the indices of a page: one without a name is to be counted.
            Class::Enum { base, members } => {
                hints.longest_text = longest(base, members);
                hints.labels = names(base, members);
            }
            Class::Compound { fields } => hints.fields = fields.iter().map(|field| Self::of(&field.datatype)).collect(),
            Class::Array { base, .. } | Class::Sequence { base } => return Self::of(base),
            _ => {}
        }
        hints
    }
}

/// Bytes of the longest name or number of an enumeration.
fn longest(base: &Datatype, members: &[Member]) -> Option<u64> {
    let Class::Integer { signed, .. } = base.class else { return None };
    let bits = u32::try_from(base.size.checked_mul(8)?).ok().filter(|bits| (1..=64).contains(bits))?;
    let number = if signed { (-(1i128 << (bits - 1))).to_string() } else { ((1i128 << bits) - 1).to_string() };
    let name = members.iter().map(|member| member.name.to_string().len()).max().unwrap_or(0);
    Some(number.len().max(name) as u64)
}

/// What each of the 256 codes of one byte is shown as.
fn names(base: &Datatype, members: &[Member]) -> Option<ArrayRef> {
    let Class::Integer { signed, .. } = base.class else { return None };
    if base.size != 1 {
        return None;
    }
    let codes = (0..=u8::MAX).map(|byte| if signed { i128::from(byte as i8) } else { i128::from(byte) });
    let shown = codes.map(|code| match members.iter().find(|member| member.value == code) {
        Some(member) => member.name.to_string(),
        None => code.to_string(),
    });
    Some(Arc::new(LargeStringArray::from(shown.collect::<Vec<_>>())))
}
