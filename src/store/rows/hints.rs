//! Hints about values before one is read.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::Rows;
use crate::catalogue::{Class, Datatype, EnumerationMember};
use crate::store::decode::{LONGEST_REFERENCE, is_shown_as_stored};

/// Hints about the values of some rows without reading any: [`Facts::hints`](super::Facts::hints).
///
/// Every hint is optional. Hints make a file smaller, or its size arithmetic; they never change a value.
#[derive(Clone, Debug, Default)]
pub struct Hints {
    /// Bounds on the length of texts.
    pub texts: TextLength,
    /// The set of possible values.
    pub values: Option<ValueSet>,
    /// Whether the stored bytes of a value are those of the Arrow value, little-endian.
    pub stored: bool,
    /// Whether a value in a list, an array or a compound can be null by itself.
    pub nullable: bool,
    /// The meaning of NaN among floats.
    pub nan: Nan,
    /// Hints about the values in a list or an array.
    pub items: Option<Box<Hints>>,
    /// Hints about the fields of a compound, in order.
    pub fields: Vec<Hints>,
}

/// The meaning of NaN among the floats of some rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Nan {
    /// A value, unless it equals a fill value.
    #[default]
    Value,
    /// A null. NaN stays under its null, since [`Rows::array`] clears no slot.
    Missing {
        /// Whether NaN is the only reason for nulls.
        alone: bool,
    },
}

impl Nan {
    /// This meaning in values that may be null for other reasons.
    pub fn among_others(self) -> Self {
        match self {
            Self::Value => Self::Value,
            Self::Missing { .. } => Self::Missing { alone: false },
        }
    }
}

/// A bound on the length of the texts of some rows: strings, labels, or names and numbers of an enumeration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextLength {
    /// Unknown, or there are no texts.
    #[default]
    Unknown,
    /// Strings of this many stored bytes, shown unchanged except for invalid UTF-8: each U+FFFD, three bytes, stands
    /// for one or more.
    Stored(u64),
    /// Strings of this many stored bytes, in an encoding where each byte is shown as at most three.
    Encoded(u64),
    /// At most this many bytes as shown.
    Shown(u64),
    /// Strings of at most this many stored bytes each: the total of a file, or a limit that is rarely reached. This is
    /// far too much for a fixed slot per row.
    Within(u64),
}

impl TextLength {
    /// Bytes of the longest text as shown, if the type determines it: each row can have a slot of this width.
    pub fn slot(self) -> Option<u64> {
        match self {
            Self::Stored(width) | Self::Encoded(width) => width.checked_mul(3),
            Self::Shown(longest) => Some(longest),
            Self::Unknown | Self::Within(_) => None,
        }
    }

    /// A bound on the bytes of the longest text as shown, even if it is far too much for a slot.
    pub fn bound(self) -> Option<u64> {
        match self {
            Self::Within(bytes) => bytes.checked_mul(3),
            _ => self.slot(),
        }
    }
}

/// The set of values that rows can have.
#[derive(Clone, Debug)]
pub enum ValueSet {
    /// Names of an enumeration, and the numbers of unnamed codes.
    Names(Arc<EnumerationNames>),
    /// Labels of categories.
    Categories {
        /// All labels, in the order of their codes.
        labels: Arc<dyn Rows>,
        /// Whether the order of the labels is meaningful.
        ordered: bool,
    },
}

/// The names of an enumeration. An unnamed code is shown as its number.
#[derive(Clone, Debug)]
pub struct EnumerationNames {
    members: Vec<(i128, String)>,
    signed: bool,
    /// Bytes of a code, 1 to 8.
    code_bytes: u32,
}

impl Hints {
    /// Hints from a stored datatype.
    pub fn of(datatype: &Datatype) -> Self {
        let mut hints = Self {
            stored: is_shown_as_stored(datatype),
            nullable: datatype.is_boolean() || datatype.is_reference(),
            ..Self::default()
        };
        if let Some(part) = datatype.complex_part() {
            hints.fields = vec![Self::of(part), Self::of(part)];
            return hints;
        }
        match &datatype.class {
            Class::FixedString { .. } => hints.texts = TextLength::Stored(datatype.size),
            Class::Reference(_) => hints.texts = TextLength::Within(LONGEST_REFERENCE),
            Class::Enum { .. } if datatype.is_boolean() => {}
            Class::Enum { base, members } => {
                if let Some(names) = EnumerationNames::new(base, members) {
                    hints.texts = TextLength::Shown(names.longest() as u64);
                    hints.values = Some(ValueSet::Names(Arc::new(names)));
                }
            }
            Class::Compound { fields } => hints.fields = fields.iter().map(|field| Self::of(&field.datatype)).collect(),
            Class::Array { dims, base } => {
                let inner = dims.iter().skip(1).fold(Self::of(base), |items, _| Self::array_of(items));
                hints.items = Some(Box::new(inner));
            }
            Class::Sequence { base } => hints.items = Some(Box::new(Self::of(base))),
            _ => {}
        }
        hints
    }

    /// Hints about arrays of values with these hints.
    fn array_of(items: Self) -> Self {
        Self { stored: items.stored, items: Some(Box::new(items)), ..Self::default() }
    }

    /// These hints, with each value within `depth` arrays nullable by itself.
    pub fn of_nullable_items(self, depth: usize) -> Self {
        match (depth.checked_sub(1), self.items) {
            (None, items) => Self { items, nullable: true, nan: self.nan.among_others(), ..self },
            (Some(below), Some(items)) => Self { items: Some(Box::new(items.of_nullable_items(below))), ..self },
            (Some(_), None) => Self { items: None, ..self },
        }
    }

    /// These hints for variable-length strings in the heap of a file of this size, which is uncompressed.
    pub fn within(mut self, file_size: u64) -> Self {
        self.texts = TextLength::Within(file_size);
        self
    }

    /// Hints that hold for rows of which some have these hints, and others `other`.
    pub fn of_either(self, other: Self) -> Self {
        let texts = match (self.texts, other.texts) {
            (TextLength::Stored(a), TextLength::Stored(b)) => TextLength::Stored(a.max(b)),
            (TextLength::Encoded(a), TextLength::Stored(b) | TextLength::Encoded(b))
            | (TextLength::Stored(a), TextLength::Encoded(b)) => TextLength::Encoded(a.max(b)),
            (TextLength::Shown(a), TextLength::Shown(b)) => TextLength::Shown(a.max(b)),
            (TextLength::Within(a), TextLength::Within(b)) => TextLength::Within(a.max(b)),
            (a, b) => match (a.slot(), b.slot()) {
                (Some(a), Some(b)) => TextLength::Shown(a.max(b)),
                _ => TextLength::Unknown,
            },
        };
        let items = match (self.items, other.items) {
            (Some(a), Some(b)) => Some(Box::new(a.of_either(*b))),
            _ => None,
        };
        let fields = match self.fields.len() == other.fields.len() {
            true => self.fields.into_iter().zip(other.fields).map(|(a, b)| a.of_either(b)).collect(),
            false => Vec::new(),
        };
        // Sets of possible values are not joined.
        let (stored, nullable) = (self.stored && other.stored, self.nullable || other.nullable);
        let nan = match (self.nan, other.nan) {
            (a, b) if a == b => a,
            _ => Nan::Missing { alone: false },
        };
        Self { texts, values: None, stored, nullable, nan, items, fields }
    }

    /// Hints about the innermost values of lists and arrays; these hints themselves for other columns.
    pub fn innermost(&self) -> &Self {
        self.items.as_ref().map_or(self, |items| items.innermost())
    }
}

impl EnumerationNames {
    /// The names of these members. `None`: codes of this base type cannot be read.
    fn new(base: &Datatype, members: &[EnumerationMember]) -> Option<Self> {
        let Class::Integer { signed, .. } = base.class else { return None };
        let code_bytes = u32::try_from(base.size).ok().filter(|bytes| (1..=8).contains(bytes))?;
        let members = members.iter().map(|member| (member.value, member.name.to_string())).collect();
        Some(Self { members, signed, code_bytes })
    }

    /// The names, in the order of the enumeration.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.members.iter().map(|(_, name)| name.as_str())
    }

    /// The text of a code: its first name, or its number.
    pub fn shown(&self, code: i128) -> String {
        let named = self.members.iter().find(|(value, _)| *value == code);
        named.map_or_else(|| code.to_string(), |(_, name)| name.clone())
    }

    /// Whether a code has a name.
    pub fn has_name(&self, code: i128) -> bool {
        self.members.iter().any(|(value, _)| *value == code)
    }

    /// All possible codes.
    pub fn codes(&self) -> RangeInclusive<i128> {
        let bits = self.code_bytes * 8;
        if self.signed { -(1 << (bits - 1))..=(1 << (bits - 1)) - 1 } else { 0..=(1 << bits) - 1 }
    }

    /// Whether codes take one byte: few enough to have a label for each.
    pub fn is_of_one_byte(&self) -> bool {
        self.code_bytes == 1
    }

    /// Bytes of the longest number.
    pub fn longest_number(&self) -> usize {
        self.codes().start().to_string().len().max(self.codes().end().to_string().len())
    }

    /// Bytes of the longest name or number.
    fn longest(&self) -> usize {
        self.names().map(str::len).max().unwrap_or(0).max(self.longest_number())
    }
}
