//! Reads columns whose attribute `arrow_type` names an Arrow type that HDF5's type does not imply.
//! `producer::table` writes them.

use std::sync::Arc;

use arrow_schema::{DataType, TimeUnit};

use crate::catalogue::{Class, Dataset, Datatype, Fill};
use crate::dialects::times::unit_of;
use crate::store::Rows;
use crate::table::{Times, TypedRows};

/// The dataset described as nullable booleans. `None`: it is not an enumeration of `FALSE`, `TRUE` and a fill value.
pub(in crate::dialects::hep001) fn as_booleans(dataset: &Arc<Dataset>, arrow_type: &str) -> Option<Arc<Dataset>> {
    let Class::Enum { members, .. } = &dataset.datatype.class else { return None };
    let is = |name: &str, value: i128| members.iter().any(|member| member.name == name && member.value == value);
    let Fill::Explicit(fill) = &dataset.fill else { return None };
    let is_nullable = is("FALSE", 0) && is("TRUE", 1) && members.len() == 3 && fill.bytes == [2];
    (arrow_type == "bool" && dataset.datatype.size == 1 && is_nullable).then(|| {
        let datatype = Datatype { size: 1, class: Class::Flag };
        Arc::new(dataset.described(|dataset| dataset.datatype = datatype))
    })
}

/// Converts rows to the type that the attribute names. `None`: the rows stay as they are.
pub(in crate::dialects::hep001) fn typed(path: &str, rows: &Arc<dyn Rows>, arrow_type: &str) -> Option<Arc<dyn Rows>> {
    let data_type = parse(arrow_type)?;
    let rows = TypedRows::new(path.to_owned(), rows.clone(), data_type)?;
    Some(Arc::new(rows))
}

/// The unit of durations. `None`: the attribute does not declare integers to be durations.
pub(in crate::dialects::hep001) fn duration(arrow_type: &str) -> Option<TimeUnit> {
    unit_of(arrow_type.strip_prefix("duration[")?.strip_suffix(']')?)
}

/// Converts items of lists to the type that the attribute names, durations and instants included; in columns outside of
/// lists, the table itself converts those. `None`: the items stay as they are.
pub(in crate::dialects::hep001) fn typed_item(
    path: &str,
    rows: &Arc<dyn Rows>,
    arrow_type: &str,
    shows_times: bool,
) -> Option<Arc<dyn Rows>> {
    let data_type = parse(arrow_type).or_else(|| duration(arrow_type).map(DataType::Duration)).or_else(|| {
        let (unit, zone) = timestamp(arrow_type).filter(|_| shows_times)?;
        Some(DataType::Timestamp(unit_of(unit)?, zone.map(Into::into)))
    })?;
    let rows = TypedRows::new(path.to_owned(), rows.clone(), data_type)?;
    Some(Arc::new(rows))
}

/// Unit and time zone of `timestamp[UNIT, tz=ZONE]`.
fn timestamp(arrow_type: &str) -> Option<(&str, Option<&str>)> {
    let inside = arrow_type.strip_prefix("timestamp[")?.strip_suffix(']')?;
    Some(inside.split_once(", tz=").map_or((inside, None), |(unit, zone)| (unit, Some(zone))))
}

fn parse(text: &str) -> Option<DataType> {
    let (name, inside) = match text.split_once(['[', '(']) {
        Some((name, inside)) => (name, inside.trim_end_matches([']', ')'])),
        None => (text, ""),
    };
    Some(match (name, inside) {
        ("int8", "") => DataType::Int8,
        ("int16", "") => DataType::Int16,
        ("int32", "") => DataType::Int32,
        ("uint8", "") => DataType::UInt8,
        ("uint16", "") => DataType::UInt16,
        ("uint32", "") => DataType::UInt32,
        ("date32", "") => DataType::Date32,
        ("time32", "s") => DataType::Time32(TimeUnit::Second),
        ("time32", "ms") => DataType::Time32(TimeUnit::Millisecond),
        ("time64", "us") => DataType::Time64(TimeUnit::Microsecond),
        ("time64", "ns") => DataType::Time64(TimeUnit::Nanosecond),
        ("decimal32" | "decimal64" | "decimal128", numbers) => {
            let (digits, scale) = numbers.split_once(", ")?;
            let (digits, scale) = (digits.parse().ok()?, scale.parse().ok()?);
            // Parquet has no other decimals.
            let is_known = (1..=38).contains(&digits) && (0..=digits as i8).contains(&scale);
            is_known.then_some(DataType::Decimal128(digits, scale))?
        }
        _ => return None,
    })
}

/// The instants, shown in the time zone of `timestamp[UNIT, tz=ZONE]`, or in none. Days have no time zone.
pub(in crate::dialects::hep001) fn in_zone(times: Times, arrow_type: &str) -> Times {
    if arrow_type == "date64" {
        return times.in_zone(None);
    }
    timestamp(arrow_type).map_or(times, |(_, zone)| times.in_zone(zone))
}
