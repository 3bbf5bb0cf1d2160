//! A value of an array of objects: its kind, its form, and how to read it from its place in the pickle.

use std::borrow::Cow;

use half::f16;

use super::tokens::{self, PickleOpcode, PickleTextEncoding, PythonContainer, Tokens};
use crate::calendar;

/// Most bytes of a decimal number.
const LONGEST_DECIMAL: usize = 1000;

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CellKind {
    /// `None`, or `NA` and `NaT` of pandas.
    None,
    /// NaN, which also counts as missing.
    Nan,
    /// `True` or `False`.
    Bool,
    /// An integer that float64 holds exactly.
    Integer,
    /// An integer of 64 bits that float64 does not hold exactly.
    Long,
    /// An integer of more than 64 and up to 128 bits.
    Wide,
    /// A float.
    Float,
    /// A text.
    Text,
    /// A `datetime.date`.
    Date,
    /// A `datetime.datetime` without a zone, or a `Timestamp` of pandas without one that counts microseconds or longer
    /// units.
    Time,
    /// A `Timestamp` of pandas without a zone that counts nanoseconds.
    Nanoseconds,
    /// A `Timestamp` of pandas with a zone that counts microseconds or longer units.
    ZonedTime,
    /// A `Timestamp` of pandas with a zone that counts nanoseconds.
    ZonedNanoseconds,
    /// A `decimal.Decimal` that is a number.
    Decimal,
    /// Any other value.
    Other,
}

impl CellKind {
    /// All kinds, in order.
    pub const ALL: [CellKind; 15] = [
        CellKind::None,
        CellKind::Nan,
        CellKind::Bool,
        CellKind::Integer,
        CellKind::Long,
        CellKind::Wide,
        CellKind::Float,
        CellKind::Text,
        CellKind::Date,
        CellKind::Time,
        CellKind::Nanoseconds,
        CellKind::ZonedTime,
        CellKind::ZonedNanoseconds,
        CellKind::Decimal,
        CellKind::Other,
    ];
}

impl CellKind {
    /// The kind of an integer.
    pub(super) fn of_integer(value: i128) -> Self {
        match i64::try_from(value) {
            Ok(short) if short.unsigned_abs() <= 1 << f64::MANTISSA_DIGITS => CellKind::Integer,
            Ok(_) => CellKind::Long,
            Err(_) => CellKind::Wide,
        }
    }
}

/// The form in which a value is stored: Python's own, the little-endian bytes of a NumPy scalar, or a count of a unit
/// of time since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(super) enum CellForm {
    Python,
    Bool,
    Signed,
    Unsigned,
    Float,
    /// UTF-32.
    Text,
    Seconds,
    Milliseconds,
    Microseconds,
    Nanoseconds,
}

impl CellForm {
    pub const ALL: [CellForm; 10] = [
        CellForm::Python,
        CellForm::Bool,
        CellForm::Signed,
        CellForm::Unsigned,
        CellForm::Float,
        CellForm::Text,
        CellForm::Seconds,
        CellForm::Milliseconds,
        CellForm::Microseconds,
        CellForm::Nanoseconds,
    ];

    /// The form of a count of the unit with this number in NumPy. `None`: another unit.
    pub fn of_unit(unit: i128) -> Option<Self> {
        Some(match unit {
            7 => CellForm::Seconds,
            8 => CellForm::Milliseconds,
            9 => CellForm::Microseconds,
            10 => CellForm::Nanoseconds,
            _ => return None,
        })
    }

    /// Reads a count of this unit as an instant.
    pub fn timestamp(self, count: i128, is_zoned: bool) -> Option<Time> {
        let (each, is_fine) = match self {
            CellForm::Seconds => (1_000_000, false),
            CellForm::Milliseconds => (1000, false),
            CellForm::Microseconds => (1, false),
            CellForm::Nanoseconds => (1, true),
            _ => return None,
        };
        Some(Time { value: i64::try_from(count.checked_mul(each)?).ok()?, is_fine, is_zoned })
    }

    /// The form for the code of a data type, such as `f8`.
    pub fn of(code: &[u8]) -> Option<Self> {
        Some(match code.first()? {
            b'b' => CellForm::Bool,
            b'i' => CellForm::Signed,
            b'u' => CellForm::Unsigned,
            b'f' => CellForm::Float,
            b'U' => CellForm::Text,
            _ => return None,
        })
    }

    /// Reads a NumPy scalar. `None`: the wrong number of bytes.
    pub fn scalar(self, bytes: &[u8]) -> Option<PickledCell<'static>> {
        let number = || {
            let mut number = [0; 8];
            number.get_mut(..bytes.len())?.copy_from_slice(bytes);
            matches!(bytes.len(), 1 | 2 | 4 | 8).then_some(u64::from_le_bytes(number))
        };
        Some(match self {
            CellForm::Bool => PickledCell::Bool(*bytes.first().filter(|_| bytes.len() == 1)? != 0),
            CellForm::Unsigned => PickledCell::Integer(number()?.into()),
            CellForm::Signed => {
                let number = number()?.cast_signed();
                let unused = 64 - 8 * bytes.len() as u32;
                PickledCell::Integer((number << unused >> unused).into())
            }
            CellForm::Float => PickledCell::Float(match *bytes {
                [a, b] => f16::from_le_bytes([a, b]).into(),
                [a, b, c, d] => f32::from_le_bytes([a, b, c, d]).into(),
                _ => f64::from_le_bytes(bytes.try_into().ok()?),
            }),
            CellForm::Text => {
                let (units, []) = bytes.as_chunks() else { return None };
                let mut text: String =
                    units.iter().map(|unit| char::from_u32(u32::from_le_bytes(*unit)).unwrap_or('\u{fffd}')).collect();
                text.truncate(text.trim_end_matches('\0').len());
                PickledCell::Text(text.into())
            }
            _ => return None,
        })
    }
}

/// The place of a value in the pickle. Values with the same place are the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CellPlace {
    pub(super) kind: CellKind,
    pub(super) form: CellForm,
    /// Where the value's token begins.
    pub(super) at: usize,
}

/// An instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    /// Microseconds or nanoseconds since 1970; in UTC if there is a zone.
    pub value: i64,
    /// Whether the unit is nanoseconds.
    pub is_fine: bool,
    /// Whether it has a time zone, of any name.
    pub is_zoned: bool,
}

impl Time {
    /// Number of units of the value in a second.
    pub fn per_second(self) -> i64 {
        if self.is_fine { 1_000_000_000 } else { 1_000_000 }
    }

    pub(super) fn kind(self) -> CellKind {
        match (self.is_fine, self.is_zoned) {
            (false, false) => CellKind::Time,
            (true, false) => CellKind::Nanoseconds,
            (false, true) => CellKind::ZonedTime,
            (true, true) => CellKind::ZonedNanoseconds,
        }
    }
}

/// A value of the array.
#[derive(Clone, Debug, PartialEq)]
pub enum PickledCell<'a> {
    /// A missing value other than NaN.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer.
    Integer(i128),
    /// A float, NaN included.
    Float(f64),
    /// A text; invalid Unicode became U+FFFD.
    Text(Cow<'a, str>),
    /// Days since 1970.
    Date(i32),
    /// An instant.
    Time(Time),
    /// The digits of a decimal number, as Python wrote them.
    Decimal(Cow<'a, str>),
    /// Any other value, by the name of its class, as far as known.
    Other(Cow<'a, str>),
}

impl<'a> PickledCell<'a> {
    /// Reads a value. `None`: the bytes are not those that were scanned, or are too few.
    pub(super) fn read(CellPlace { kind, form, at }: CellPlace, pickle: &'a [u8]) -> Option<Self> {
        // A missing value may have the token of a class.
        if kind == CellKind::None {
            return Some(PickledCell::None);
        }
        let token = Tokens::new(pickle, at).next().ok()?;
        if form != CellForm::Python {
            return match token {
                PickleOpcode::Integer(count) => {
                    let is_zoned = matches!(kind, CellKind::ZonedTime | CellKind::ZonedNanoseconds);
                    form.timestamp(count?, is_zoned).map(PickledCell::Time)
                }
                _ => form.scalar(content(token)?),
            };
        }
        Some(match (kind, token) {
            (CellKind::Bool, PickleOpcode::Bool(value)) => PickledCell::Bool(value),
            (CellKind::Integer | CellKind::Long | CellKind::Wide, PickleOpcode::Integer(value)) => {
                PickledCell::Integer(value?)
            }
            (CellKind::Float | CellKind::Nan, PickleOpcode::Float(value)) => PickledCell::Float(value),
            (CellKind::Text, PickleOpcode::Text(encoding, bytes)) => PickledCell::Text(tokens::text(encoding, bytes)?),
            (CellKind::Date, token) => PickledCell::Date(date(token)?),
            (CellKind::Time, token) => {
                PickledCell::Time(Time { value: micros(token)?, is_fine: false, is_zoned: false })
            }
            (CellKind::Decimal, PickleOpcode::Text(encoding, bytes)) => {
                PickledCell::Decimal(tokens::text(encoding, bytes)?)
            }
            (CellKind::Other, token) => PickledCell::Other(match token {
                PickleOpcode::Text(encoding, bytes) => tokens::text(encoding, bytes)?,
                PickleOpcode::Global(_, name) | PickleOpcode::Instance(_, name) => String::from_utf8_lossy(name),
                PickleOpcode::Bytes(_) => "bytes".into(),
                PickleOpcode::Integer(_) => "int".into(),
                PickleOpcode::Make(PythonContainer::List, _) => "list".into(),
                PickleOpcode::Make(PythonContainer::Dict, _) => "dict".into(),
                PickleOpcode::Make(PythonContainer::Set, _) => "set".into(),
                PickleOpcode::Make(PythonContainer::Tuple, _) => "tuple".into(),
                _ => "object".into(),
            }),
            _ => return None,
        })
    }
}

/// The content of bytes, or of a string of Python 2, which also holds bytes.
pub(super) fn content(token: PickleOpcode<'_>) -> Option<&[u8]> {
    match token {
        PickleOpcode::Bytes(bytes) | PickleOpcode::Text(PickleTextEncoding::Python2, bytes) => Some(bytes),
        _ => None,
    }
}

/// Days since 1970 of a `datetime.date`.
pub(super) fn date(token: PickleOpcode<'_>) -> Option<i32> {
    days(content(token)?)?.try_into().ok()
}

/// Microseconds since 1970 of a `datetime.datetime`, whose bytes are: those of a date, with a flag in the month for the
/// second of two equal hours of the clock; hour, minute, second; three bytes of microseconds, the most significant
/// first.
pub(super) fn micros(token: PickleOpcode<'_>) -> Option<i64> {
    let [high, low, month, day, hour, minute, second, rest @ ..] = content(token)? else { return None };
    let [first, middle, last] = *rest else { return None };
    let days = days(&[*high, *low, month & 0x7f, *day])?;
    let micros = u32::from_be_bytes([0, first, middle, last]);
    let seconds = (i64::from(*hour) * 60 + i64::from(*minute)) * 60 + i64::from(*second);
    let is_time = *hour < 24 && *minute < 60 && *second < 60 && micros < 1_000_000;
    is_time.then_some((days * 86_400 + seconds) * 1_000_000 + i64::from(micros))
}

/// The kind of a `decimal.Decimal` with this text. `None`: not a number, or more than [`LONGEST_DECIMAL`] digits.
pub(super) fn decimal(bytes: &[u8]) -> Option<CellKind> {
    let number = bytes.strip_prefix(b"-").unwrap_or(bytes);
    // Many values may share one long number.
    match number {
        _ if number.len() > LONGEST_DECIMAL => None,
        b"Infinity" => Some(CellKind::Decimal),
        [b'N', b'a', b'N', ..] | [b's', b'N', b'a', b'N', ..] => Some(CellKind::None),
        [b'0'..=b'9', ..] if number.iter().all(|byte| b"0123456789.E+-".contains(byte)) => Some(CellKind::Decimal),
        _ => None,
    }
}

/// Days since 1970 from the bytes of a `datetime.date`: the year in two bytes, the most significant first, month and
/// day. `None`: not a day; years of Python have one to four digits.
pub(super) fn days(bytes: &[u8]) -> Option<i64> {
    let [high, low, month, day] = *bytes else { return None };
    let year = u16::from_be_bytes([high, low]);
    (1..=9999).contains(&year).then(|| calendar::day(year.into(), month.into(), day.into()))?
}
