//! Names types, for attributes and for people.

use arrow_schema::{DataType, TimeUnit};

/// The type of the values that a dictionary or run-end encoding holds; any other type is returned as it is.
pub(super) fn plain(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => plain(values),
        DataType::RunEndEncoded(_, values) => plain(values.data_type()),
        other => other,
    }
}

/// The value of the attribute `arrow_type` for a type that HEP001 lacks. `None`: any other type.
pub(super) fn declared(data_type: &DataType) -> Option<String> {
    Some(match data_type {
        DataType::Timestamp(unit, None) => format!("timestamp[{}]", short(unit)),
        DataType::Timestamp(unit, Some(zone)) => format!("timestamp[{}, tz={zone}]", short(unit)),
        DataType::Date32 => "date32".into(),
        DataType::Date64 => "date64".into(),
        DataType::Time32(unit) => format!("time32[{}]", short(unit)),
        DataType::Time64(unit) => format!("time64[{}]", short(unit)),
        DataType::Duration(unit) => format!("duration[{}]", short(unit)),
        DataType::Decimal32(digits, scale) => format!("decimal32({digits}, {scale})"),
        DataType::Decimal64(digits, scale) => format!("decimal64({digits}, {scale})"),
        DataType::Decimal128(digits, scale) => format!("decimal128({digits}, {scale})"),
        _ => return None,
    })
}

/// The value of the attribute `units` for a time type. `None`: any other type.
pub(super) fn units(data_type: &DataType) -> Option<String> {
    Some(match data_type {
        DataType::Timestamp(unit, _) => format!("{} since 1970-01-01 00:00:00", long(unit)),
        DataType::Date32 => "days since 1970-01-01".into(),
        DataType::Date64 => "milliseconds since 1970-01-01 00:00:00".into(),
        DataType::Time32(unit) | DataType::Time64(unit) | DataType::Duration(unit) => short(unit).into(),
        _ => return None,
    })
}

fn short(unit: &TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    }
}

fn long(unit: &TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "seconds",
        TimeUnit::Millisecond => "milliseconds",
        TimeUnit::Microsecond => "microseconds",
        TimeUnit::Nanosecond => "nanoseconds",
    }
}
