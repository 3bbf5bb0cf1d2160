//! Bounds on the text of a value, from its type alone.

use arrow_schema::DataType;

use super::block::TextFormat;
use super::cell::time_lengths;
use super::csv::CsvOptions;

/// The fewest and the most bytes of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WidthRange {
    /// Fewest bytes of a text.
    pub least: u64,
    /// Most bytes of a text. `None`: unbounded.
    pub most: Option<u64>,
}

impl WidthRange {
    /// Returns the width of texts that all have `bytes` bytes.
    pub const fn exactly(bytes: u64) -> Self {
        Self { least: bytes, most: Some(bytes) }
    }

    const fn between(least: u64, most: u64) -> Self {
        Self { least, most: Some(most) }
    }

    /// Returns the width of a text that has this width or `other`.
    fn or(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.zip(other.most).map(|(a, b)| a.max(b)) }
    }

    /// Returns the width of a text of this width followed by one of `other`.
    pub fn plus(self, other: Self) -> Self {
        let most = self.most.zip(other.most).and_then(|(a, b)| a.checked_add(b));
        Self { least: self.least.saturating_add(other.least), most }
    }

    /// Returns the width of `count` texts of this width, one after the other.
    pub fn times(self, count: u64) -> Self {
        Self {
            least: self.least.saturating_mul(count),
            most: if count == 0 { Some(0) } else { self.most.and_then(|most| most.checked_mul(count)) },
        }
    }
}

/// Returns the width of a value of type `data_type`; a null takes `missing` bytes (`None`: not nullable).
///
/// `longest` is the length of the longest string, if known: the longest label of a dictionary, the declared length of a
/// fixed-size string.
pub fn value(
    data_type: &DataType,
    format: TextFormat,
    csv: &CsvOptions,
    longest: Option<u64>,
    missing: Option<u64>,
) -> WidthRange {
    let mut value = unquoted(data_type, format, longest, missing);
    // A value that reads like a null is quoted, whatever its type.
    if format == TextFormat::Csv && !csv.null().is_empty() && csv.may_quote(data_type) {
        value.most = value.most.and_then(|most| most.checked_add(2));
    }
    match missing {
        Some(missing) => value.or(WidthRange::exactly(missing)),
        None => value,
    }
}

/// Returns the width of a value that needs no quotes to differ from a null; for a type of nulls, that of a null.
fn unquoted(data_type: &DataType, format: TextFormat, longest: Option<u64>, missing: Option<u64>) -> WidthRange {
    match data_type {
        DataType::Null => WidthRange::exactly(missing.unwrap_or(0)),
        DataType::Boolean => WidthRange::between(4, 5),
        DataType::Int8 => WidthRange::between(1, 4),
        DataType::Int16 => WidthRange::between(1, 6),
        DataType::Int32 => WidthRange::between(1, 11),
        DataType::UInt8 => WidthRange::between(1, 3),
        DataType::UInt16 => WidthRange::between(1, 5),
        DataType::UInt32 => WidthRange::between(1, 10),
        DataType::Int64 | DataType::UInt64 | DataType::Duration(_) => WidthRange::between(1, 20),
        // `-0.000012345679` and the like; `-1.2345678901234567e-308`. The shortest are `0.0` and `NaN`.
        DataType::Float16 | DataType::Float32 => WidthRange::between(3, 16),
        DataType::Float64 => WidthRange::between(3, 24),
        DataType::Timestamp(unit, zone) => {
            let around = 2 * u64::from(matches!(format, TextFormat::Ndjson | TextFormat::JsonValues));
            let [least, most] = time_lengths(*unit, zone.is_some());
            WidthRange::between(least + around, most + around)
        }
        DataType::FixedSizeBinary(size) => {
            let digits = 2 * u64::from(size.unsigned_abs());
            WidthRange::exactly(match format {
                TextFormat::Csv if digits == 0 => 2,
                TextFormat::Csv | TextFormat::Txt | TextFormat::NulTerminated | TextFormat::Verbatim => digits,
                TextFormat::Ndjson | TextFormat::JsonValues => digits + 2,
            })
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::LargeBinary => string(format, longest),
        // A byte takes two hexadecimal digits.
        DataType::Binary => string(format, longest.and_then(|longest| longest.checked_mul(2))),
        DataType::Dictionary(_, labels) => unquoted(labels, format, longest, None),
        DataType::Struct(_) | DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => {
            in_format(format, nested(data_type, 0))
        }
        _ => WidthRange { least: 0, most: None },
    }
}

/// Returns the width of a string of at most `longest` bytes.
fn string(format: TextFormat, longest: Option<u64>) -> WidthRange {
    // CSV doubles quotes and adds two; `.txt` doubles `\` and LF; in JSON a control character becomes `\u00xx`.
    let (least, factor, around) = match format {
        TextFormat::Csv => (1, 2, 2),
        TextFormat::Txt => (0, 2, 0),
        TextFormat::NulTerminated | TextFormat::Verbatim => (0, 1, 0),
        TextFormat::Ndjson | TextFormat::JsonValues => (2, 6, 2),
    };
    WidthRange { least, most: longest.and_then(|longest| longest.checked_mul(factor)?.checked_add(around)) }
}

/// Returns the width of JSON inside a format.
fn in_format(format: TextFormat, json: WidthRange) -> WidthRange {
    match format {
        TextFormat::Ndjson | TextFormat::JsonValues => json,
        TextFormat::Csv | TextFormat::Txt | TextFormat::NulTerminated | TextFormat::Verbatim => {
            WidthRange { least: json.least, most: json.most.and_then(|most| most.checked_mul(2)?.checked_add(2)) }
        }
    }
}

/// Returns the width of a value inside JSON.
fn nested(data_type: &DataType, depth: usize) -> WidthRange {
    // The writer has the same limit of depth; deeper types have no text anyway.
    if depth > 64 {
        return WidthRange { least: 0, most: None };
    }
    let child = |data_type: &DataType, nullable: bool| {
        let width = nested(data_type, depth + 1);
        if nullable { width.or(WidthRange::exactly(4)) } else { width }
    };
    match data_type {
        DataType::Struct(fields) => {
            let separators = WidthRange::exactly(1 + fields.len().max(1) as u64);
            fields.iter().fold(separators, |sum, field| {
                let key = crate::views::json::string_length(field.name().as_bytes()) as u64 + 1;
                sum.plus(WidthRange::exactly(key)).plus(child(field.data_type(), field.is_nullable()))
            })
        }
        DataType::FixedSizeList(field, length) => {
            let length = u64::from(length.unsigned_abs());
            let elements = child(field.data_type(), field.is_nullable()).times(length);
            elements.plus(WidthRange::exactly(2 + length.saturating_sub(1)))
        }
        DataType::List(_) | DataType::LargeList(_) => WidthRange { least: 2, most: None },
        // A null within a dictionary, or in a column of nulls, is `null`.
        DataType::Null => WidthRange::exactly(4),
        flat => unquoted(flat, TextFormat::Ndjson, None, None),
    }
}

/// Returns about how many bytes a value takes, to choose the length of blocks; never for anything that must be exact.
pub fn estimate(data_type: &DataType, longest: Option<u64>) -> u64 {
    match data_type {
        DataType::Boolean => 5,
        DataType::Int8 | DataType::UInt8 => 3,
        DataType::Int16 | DataType::UInt16 => 5,
        DataType::Int32 | DataType::UInt32 => 8,
        DataType::Int64 | DataType::UInt64 | DataType::Duration(_) => 11,
        DataType::Float16 | DataType::Float32 => 10,
        DataType::Float64 => 18,
        DataType::Timestamp(unit, zone) => time_lengths(*unit, zone.is_some())[0] + 1,
        DataType::Dictionary(..) => longest.map_or(10, |longest| longest.clamp(1, 32)),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::LargeBinary | DataType::Binary => {
            longest.map_or(24, |longest| longest.clamp(2, 64))
        }
        DataType::FixedSizeBinary(size) => 2 * u64::from(size.unsigned_abs()),
        DataType::Struct(fields) => fields.iter().fold(2, |sum: u64, field| {
            sum.saturating_add(field.name().len() as u64 + 4).saturating_add(estimate(field.data_type(), None))
        }),
        DataType::FixedSizeList(field, length) => {
            estimate(field.data_type(), None).saturating_add(1).saturating_mul(u64::from(length.unsigned_abs()))
        }
        DataType::List(field) | DataType::LargeList(field) => {
            estimate(field.data_type(), None).saturating_add(1).saturating_mul(8)
        }
        _ => 4,
    }
}
