//! What rows may tell of their values before one is read.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::Rows;
use crate::catalogue::{Class, Datatype, Member};
use crate::store::decode::{LONGEST_REFERENCE, is_shown_as_stored};

/// What is known of the values of some rows without reading one: [`Facts::hints`](super::Facts::hints).
///
/// Nothing need be known. What is known makes a file smaller, or its size arithmetic; it never changes a value.
#[derive(Clone, Debug, Default)]
pub struct Hints {
    /// How long texts get.
    pub texts: TextLength,
    /// All values that there can be.
    pub values: Option<ValueSet>,
    /// The bytes stored of a value are those of the Arrow value, little-endian.
    pub stored: bool,
    /// A value in a list, an array or a compound can be missing while its whole is not.
    pub nullable: bool,
    /// What NaN among floats means.
    pub nan: Nan,
    /// The values in a list or an array.
    pub items: Option<Box<Hints>>,
    /// The fields of a compound, in their order.
    pub fields: Vec<Hints>,
}

/// What NaN among the floats of some rows means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Nan {
    /// A value, unless it equals a fill value.
    #[default]
    Value,
    /// A missing value. It still lies under its null: [`Rows::array`] clears no slot.
    Missing {
        /// Nothing but NaN is missing.
        alone: bool,
    },
}

impl Nan {
    /// The same where values may be missing for other reasons.
    pub fn among_others(self) -> Self {
        match self {
            Self::Value => Self::Value,
            Self::Missing { .. } => Self::Missing { alone: false },
        }
    }
}

/// How long the texts of some rows get: of strings, of labels, of an enumeration's names and numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextLength {
    /// Nothing is known, or there are no texts.
    #[default]
    Unknown,
    /// Strings of this many bytes as stored, which are shown but for those that are no UTF-8: each U+FFFD, three bytes,
    /// stands for one or more.
    Stored(u64),
    /// Strings of this many bytes as stored, in an encoding that shows none of them as more than three.
    Encoded(u64),
    /// This many bytes as shown, or fewer.
    Shown(u64),
    /// Strings each of which is stored in at most this many bytes: what all of a file's take, or a limit that is seldom
    /// reached. Far too much to give each row a place by.
    Within(u64),
}

impl TextLength {
    /// Bytes of the longest text as shown, where the type tells: each row can have a slot of this width.
    pub fn slot(self) -> Option<u64> {
        match self {
            Self::Stored(width) | Self::Encoded(width) => width.checked_mul(3),
            Self::Shown(longest) => Some(longest),
            Self::Unknown | Self::Within(_) => None,
        }
    }

    /// A bound for the longest text as shown, from whatever is known.
    pub fn bound(self) -> Option<u64> {
        match self {
            Self::Within(bytes) => bytes.checked_mul(3),
            _ => self.slot(),
        }
    }
}

/// The values that rows can have.
#[derive(Clone, Debug)]
pub enum ValueSet {
    /// Names of an enumeration, and the numbers of codes without a name.
    Names(Arc<Names>),
    /// Labels of categories.
    Categories {
        /// All labels, in the order of their codes.
        labels: Arc<dyn Rows>,
        /// The order of the labels means something.
        ordered: bool,
    },
}

/// The names of an enumeration. A code without a name is shown as its number.
#[derive(Clone, Debug)]
pub struct Names {
    members: Vec<(i128, String)>,
    signed: bool,
    /// 1 to 8.
    code_bytes: u32,
}

impl Hints {
    /// What a stored datatype tells.
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
                if let Some(names) = Names::new(base, members) {
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

    /// Arrays of values with these hints.
    fn array_of(items: Self) -> Self {
        Self { stored: items.stored, items: Some(Box::new(items)), ..Self::default() }
    }

    /// The same where each value that lies `depth` arrays deep can be missing by itself.
    pub fn of_nullable_items(self, depth: usize) -> Self {
        match (depth.checked_sub(1), self.items) {
            (None, items) => Self { items, nullable: true, nan: self.nan.among_others(), ..self },
            (Some(below), Some(items)) => Self { items: Some(Box::new(items.of_nullable_items(below))), ..self },
            (Some(_), None) => Self { items: None, ..self },
        }
    }

    /// The same of variable-length strings, which a heap of a file of this size holds as they are.
    pub fn within(mut self, file_size: u64) -> Self {
        self.texts = TextLength::Within(file_size);
        self
    }

    /// What holds of rows that these hints, or those others, are of.
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
        // Which values there can be is not the same question.
        let (stored, nullable) = (self.stored && other.stored, self.nullable || other.nullable);
        let nan = match (self.nan, other.nan) {
            (a, b) if a == b => a,
            _ => Nan::Missing { alone: false },
        };
        Self { texts, values: None, stored, nullable, nan, items, fields }
    }

    /// Those of the values that lists and arrays hold in the end; these very hints where there are none.
    pub fn innermost(&self) -> &Self {
        self.items.as_ref().map_or(self, |items| items.innermost())
    }
}

impl Names {
    /// `None` where codes of this base type cannot be read.
    fn new(base: &Datatype, members: &[Member]) -> Option<Self> {
        let Class::Integer { signed, .. } = base.class else { return None };
        let code_bytes = u32::try_from(base.size).ok().filter(|bytes| (1..=8).contains(bytes))?;
        let members = members.iter().map(|member| (member.value, member.name.to_string())).collect();
        Some(Self { members, signed, code_bytes })
    }

    /// The names, in the order of the enumeration.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.members.iter().map(|(_, name)| name.as_str())
    }

    /// What a code is shown as: the first name it has, or its number.
    pub fn shown(&self, code: i128) -> String {
        let named = self.members.iter().find(|(value, _)| *value == code);
        named.map_or_else(|| code.to_string(), |(_, name)| name.clone())
    }

    /// Whether a code has a name.
    pub fn has_name(&self, code: i128) -> bool {
        self.members.iter().any(|(value, _)| *value == code)
    }

    /// Codes there can be.
    pub fn codes(&self) -> RangeInclusive<i128> {
        let bits = self.code_bytes * 8;
        if self.signed { -(1 << (bits - 1))..=(1 << (bits - 1)) - 1 } else { 0..=(1 << bits) - 1 }
    }

    /// Whether a code is one byte: few enough to have a label for each.
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
