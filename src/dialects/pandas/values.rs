//! What the parts of fields hold.

use super::plan::Plan;
use super::stored::{Stored, is_set};
use crate::calendar::{DAY, SECOND};
use crate::catalogue::{Attribute, ByteOrder, Charset, Class, Datatype, Elements, Fill, FloatFormat, Padding};
use crate::codec::pickle;
use crate::dialects::times;
use crate::store::{File, Rows};
use crate::table::Times;

/// The first day of 1970, as Python counts days.
pub(super) const FIRST_OF_1970: i64 = 719_163;

/// What a column holds, by attributes of the group and of its table.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    /// Values as their type says.
    Plain,
    /// Text, of which this one stands for a missing value.
    Text(Option<String>),
    /// Units since 1970 in UTC: units in a second, and the zone.
    Instants { per_second: i128, zone: Option<String> },
    /// Units, by this name.
    Durations(String),
    /// Days of the calendar: 719,163 is the first of 1970.
    Days,
    /// Codes of categories, which may have an order.
    Codes { ordered: bool },
    /// Codes of categories that are not there: pandas keeps none of none.
    Unlabelled,
}

impl Content {
    /// Of the parts of a field, which has elements of this type.
    pub fn of(
        field: &str,
        datatype: &Datatype,
        plan: &Plan<'_>,
        [group, table]: [&[Attribute]; 2],
        is_level: bool,
    ) -> Self {
        let own = |what: &str| Stored::text(table, &format!("{field}_{what}"));
        let is_index = field == plan.axis;
        let about = plan.about(field);
        if own("meta").as_deref() == Some("category") {
            let ordered = about.and_then(|about| about.get("ordered")?.bool()).unwrap_or(false);
            return Self::Codes { ordered };
        }
        let kind = own(if is_index { "kind" } else { "dtype" }).unwrap_or_default();
        let zone = about.and_then(|about| about.get("tz")).filter(|zone| !zone.is_none());
        Self::of_kind(&kind, datatype, zone.map(zone_of), is_index, || {
            if is_index {
                return index_nan(own("nan_rep"));
            }
            let is_own = is_set(group, "data_col_nan_rep") || is_level && is_set(group, "mi_level_nan_rep");
            if is_own { own("nan_rep") } else { Stored::text(group, "nan_rep").or(Some("nan".into())) }
        })
    }

    /// By what pandas calls the type of values, or the kind of an axis.
    pub fn of_kind(
        kind: &str,
        datatype: &Datatype,
        zone: Option<String>,
        is_axis: bool,
        nan: impl FnOnce() -> Option<String>,
    ) -> Self {
        let is_integer = matches!(datatype.class, Class::Integer { .. }) && datatype.size == 8;
        if let Some(unit) = unit(kind, "datetime64").filter(|_| is_integer)
            && let Some(per_second) = per_second(&unit)
        {
            return Self::Instants { per_second, zone };
        }
        if let Some(unit) = unit(kind, "timedelta64").filter(|_| is_integer) {
            return Self::Durations(unit);
        }
        match datatype.class {
            Class::Integer { .. } if is_axis && kind == "date" => Self::Days,
            Class::FixedString { .. } => Self::Text(nan()),
            _ => Self::Plain,
        }
    }

    /// Whether integers are shown as instants, or with a unit.
    pub fn are_counted(&self) -> bool {
        matches!(self, Self::Instants { .. } | Self::Durations(_) | Self::Days)
    }

    /// How integers stand for instants.
    pub fn times(&self, file: &File, rows: &dyn Rows) -> Option<Result<Times, String>> {
        let (times, zone) = match self {
            Self::Instants { per_second, zone } => {
                (times::since(file, SECOND / per_second.max(&1), 0, rows), zone.as_deref())
            }
            Self::Days => (times::since(file, i128::from(DAY) * SECOND, -FIRST_OF_1970, rows), None),
            _ => return None,
        };
        times.map(|times| times.map(|times| times.in_zone(zone)))
    }

    /// The element that stands for a missing value.
    pub fn missing(&self, datatype: &Datatype) -> Fill {
        match (self, &datatype.class) {
            (Self::Text(Some(text)), _) if text.len() as u64 <= datatype.size => {
                let mut bytes = text.clone().into_bytes();
                bytes.resize(datatype.size as usize, 0);
                Fill::Explicit(Elements { bytes, heap: Vec::new() })
            }
            (Self::Instants { .. } | Self::Durations(_), Class::Integer { order, .. }) => times::not_a_time(*order),
            // −1, in either byte order.
            (Self::Unlabelled, Class::Integer { .. }) if datatype.size <= 8 => {
                Fill::Explicit(Elements { bytes: vec![0xff; datatype.size as usize], heap: Vec::new() })
            }
            _ => Fill::Default,
        }
    }
}

/// The text that stands for a missing row label; before pandas 3.1 nothing said so.
pub(super) fn index_nan(stated: Option<String>) -> Option<String> {
    match stated {
        None => Some("nan".into()),
        Some(text) => Some(text).filter(|text| !text.is_empty()),
    }
}

/// The name of a zone. One that is none of those known is shown in UTC.
pub(super) fn zone_of(value: pickle::Value<'_>) -> String {
    pickle::zone(value).unwrap_or_else(|| "UTC".into())
}

/// The unit of a type of times; without one it is of before pandas 2.
pub(super) fn unit(kind: &str, name: &str) -> Option<String> {
    let unit = kind.strip_prefix(name)?;
    Some(unit.strip_prefix('[').and_then(|unit| unit.strip_suffix(']')).unwrap_or("ns").to_owned())
}

/// The datatype of an array without elements, by the name that NumPy has for it. `None`: neither numbers, booleans nor
/// bytes.
pub(super) fn stored_as(name: &str) -> Option<Datatype> {
    let name = name.strip_prefix(['|', '<', '=']).unwrap_or(name);
    let (kind, length) = name.split_at(name.find(|letter: char| letter.is_ascii_digit()).unwrap_or(name.len()));
    let order = ByteOrder::Little;
    if kind == "S" {
        // Whatever length is stated, no element has it.
        let class = Class::FixedString { padding: Padding::NullPadded, charset: Charset::Ascii };
        return Some(Datatype { size: 1, class });
    }
    let precision = if kind == "bool" { 8 } else { length.parse::<u32>().ok().filter(|bits| *bits <= 64)? };
    let format = match precision {
        16 => FloatFormat::Half,
        32 => FloatFormat::Single,
        _ => FloatFormat::Double,
    };
    let class = match (kind, precision) {
        ("bool", _) => Class::Flag,
        ("int" | "uint", 8 | 16 | 32 | 64) => Class::Integer { signed: kind == "int", order, precision, offset: 0 },
        ("float", 16 | 32 | 64) => Class::Float { order, format },
        _ => return None,
    };
    Some(Datatype { size: u64::from(precision / 8), class })
}

pub(super) fn per_second(unit: &str) -> Option<i128> {
    Some(match unit {
        "s" => 1,
        "ms" => 1_000,
        "us" => 1_000_000,
        "ns" => 1_000_000_000,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file states any length: nothing of it is allocated.
    #[test]
    fn types_of_arrays_without_elements() {
        let of = |name: &str| stored_as(name).map(|datatype| datatype.size);
        assert_eq!(of("|S9223372036854775807"), Some(1));
        assert_eq!(["bool", "int8", "uint16", "float32", "int64"].map(of), [1, 1, 2, 4, 8].map(Some));
        assert_eq!(["object", "int7", "int99999999999", "float8", "M8[ns]", ""].map(of), [None; 6]);
    }
}
