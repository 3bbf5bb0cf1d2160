//! Tells the content of a frame's columns from attributes.

use arrow_array::timezone::Tz;

use super::plan::FramePlan;
use super::stored::{PandasAttribute, is_set};
use crate::calendar::{DAY, SECOND};
use crate::catalogue::{Attribute, ByteOrder, Charset, Class, Datatype, Elements, Fill, FloatFormat, Padding};
use crate::codec::pickle;
use crate::dialects::times;
use crate::store::decode::FillTest;
use crate::store::{File, Rows};
use crate::table::{Times, Unreadable};

/// Number of the first day of 1970 in Python's count of days.
pub(super) const FIRST_OF_1970: i64 = 719_163;

/// The content of a column, according to attributes of the group and of its table.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ColumnContent {
    /// Values as their type describes them.
    Plain,
    /// Text, and the text, if any, that means missing.
    Text(Option<String>),
    /// Counts since 1970 in UTC, of `per_second` units in a second, shown in `zone`.
    Instants { per_second: i128, zone: Option<String> },
    /// Counts of a unit that has this name.
    Durations(String),
    /// Days of the calendar, in Python's count: number 719,163 is the first of 1970.
    Days,
    /// Codes of categories, and whether these have an order.
    Codes { ordered: bool },
    /// Codes of categories that are not stored: pandas does not store an empty set.
    Unlabelled,
}

impl ColumnContent {
    /// Tells the content of the columns of a field, whose values have this type.
    pub fn of(
        field: &str,
        datatype: &Datatype,
        plan: &FramePlan<'_>,
        [group, table]: [&[Attribute]; 2],
        is_level: bool,
    ) -> Self {
        let own = |what: &str| PandasAttribute::text(table, &format!("{field}_{what}"));
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
            if is_own { own("nan_rep") } else { PandasAttribute::text(group, "nan_rep").or(Some("nan".into())) }
        })
    }

    /// Tells the content from pandas' name for the type of values, or for the kind of an axis.
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

    /// Whether integers are shown as instants, or as counts of a unit.
    pub fn are_counted(&self) -> bool {
        matches!(self, Self::Instants { .. } | Self::Durations(_) | Self::Days)
    }

    /// The unit that durations count. `None`: other content.
    pub fn unit(&self) -> Option<String> {
        if let Self::Durations(unit) = self { Some(unit.clone()) } else { None }
    }

    /// How integers count instants. `None`: they do not, or times are shown as numbers.
    pub fn times(&self, file: &File, rows: &dyn Rows) -> Option<Result<Times, Unreadable>> {
        let (times, zone) = match self {
            Self::Instants { per_second, zone } => {
                (times::since(file, SECOND / per_second.max(&1), 0, rows), zone.as_deref())
            }
            Self::Days => (times::since(file, i128::from(DAY) * SECOND, -FIRST_OF_1970, rows), None),
            _ => return None,
        };
        times.map(|times| times.map(|times| times.in_zone(zone)))
    }

    /// Makes the test for missing elements: for those that mean missing by the content, and for the stated one.
    pub fn missing(&self, datatype: &Datatype, stated: &Fill) -> FillTest {
        let (Self::Text(Some(text)), Class::FixedString { padding, .. }) = (self, &datatype.class) else {
            return FillTest::any_of(datatype, &[self.element(datatype), stated.clone()]);
        };
        // The test compares texts without padding, so its pattern need not be as long as a field, which may take 4 GiB
        // in a file without rows.
        let stated = match stated {
            Fill::Explicit(stated) => Some(padding.strip(&stated.bytes)),
            _ => None,
        };
        let texts: Vec<&[u8]> = [Some(text.as_bytes()).filter(|text| text.len() as u64 <= datatype.size), stated]
            .into_iter()
            .flatten()
            .collect();
        let size = texts.iter().map(|text| text.len()).max().unwrap_or(0);
        let fills: Vec<Fill> = texts
            .iter()
            .map(|text| {
                let mut bytes = text.to_vec();
                bytes.resize(size, 0);
                Fill::Explicit(Elements { bytes, heap: Vec::new() })
            })
            .collect();
        FillTest::any_of(&Datatype { size: size as u64, class: datatype.class.clone() }, &fills)
    }

    /// The integer that means missing, or the default if none does.
    fn element(&self, datatype: &Datatype) -> Fill {
        match (self, &datatype.class) {
            (Self::Instants { .. } | Self::Durations(_), Class::Integer { order, .. }) => times::not_a_time(*order),
            // This is −1, in either byte order.
            (Self::Unlabelled, Class::Integer { .. }) if datatype.size <= 8 => {
                Fill::Explicit(Elements { bytes: vec![0xff; datatype.size as usize], heap: Vec::new() })
            }
            _ => Fill::Default,
        }
    }
}

/// The text that means a missing row label. Before pandas 3.1 no attribute stated it.
pub(super) fn index_nan(stated: Option<String>) -> Option<String> {
    match stated {
        None => Some("nan".into()),
        Some(text) => Some(text).filter(|text| !text.is_empty()),
    }
}

/// Name of a pickled time zone; UTC if it is unknown.
pub(super) fn zone_of(value: pickle::PickleValue<'_>) -> String {
    known(pickle::zone(value))
}

/// The name of a time zone if readers know it, else UTC: pyarrow cannot make a frame from an Arrow file with an unknown
/// zone.
pub(super) fn known(zone: Option<String>) -> String {
    zone.filter(|zone| zone.parse::<Tz>().is_ok()).unwrap_or_else(|| "UTC".into())
}

/// The unit in the name of a time type. A name without a unit is older than pandas 2, and means ns. `None`: a type of
/// another name.
pub(super) fn unit(kind: &str, name: &str) -> Option<String> {
    let unit = kind.strip_prefix(name)?;
    Some(unit.strip_prefix('[').and_then(|unit| unit.strip_suffix(']')).unwrap_or("ns").to_owned())
}

/// The datatype that NumPy's type name means for an array without elements. `None`: neither numbers, booleans nor
/// bytes.
pub(super) fn stored_as(name: &str) -> Option<Datatype> {
    let name = name.strip_prefix(['|', '<', '=']).unwrap_or(name);
    let (kind, length) = name.split_at(name.find(|letter: char| letter.is_ascii_digit()).unwrap_or(name.len()));
    let order = ByteOrder::Little;
    if kind == "S" {
        // The stated length is of no importance, since the array has no elements.
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
    use arrow_array::Array;

    use super::*;
    use crate::store::decode::{HeapBytes, Oddities, decode};

    /// A field of 4 GiB may have no rows.
    #[test]
    fn a_text_for_missing_ones_is_no_longer_than_it_is() {
        let class = Class::FixedString { padding: Padding::NullPadded, charset: Charset::Utf8 };
        let of = |text: &str, size, stated: &Fill| {
            ColumnContent::Text(Some(text.into())).missing(&Datatype { size, class: class.clone() }, stated)
        };
        assert_eq!(of("nan", u64::from(u32::MAX), &Fill::Default).text(), Some(&b"nan"[..]));
        assert_eq!(of("", 8, &Fill::Default).text(), Some(&b""[..]));
        assert!(!of("nan", 2, &Fill::Default).finds_any());
        let stated = Fill::Explicit(Elements { bytes: b"lost\0\0".into(), heap: Vec::new() });
        assert_eq!(of("long-text", 6, &stated).text(), Some(&b"lost"[..]));
        let datatype = Datatype { size: 6, class: class.clone() };
        let bytes = b"nan\0\0\0lost\0\0nano\0\0";
        let read = decode(&datatype, bytes.as_slice().into(), 3, &HeapBytes(&[]), &mut Oddities::new()).unwrap();
        let read = of("nan", 6, &stated).apply(read, &datatype, bytes, &HeapBytes(&[]));
        assert_eq!([0, 1, 2].map(|row| read.is_null(row)), [true, true, false]);
    }

    #[test]
    fn zones_that_nobody_knows_are_shown_in_utc() {
        let of = |zone: &str| known(Some(zone.into()));
        let zones = ["Europe/Paris", "US/Pacific", "UTC", "+05:30", "Mars/Olympus", ""];
        assert_eq!(zones.map(of), ["Europe/Paris", "US/Pacific", "UTC", "+05:30", "UTC", "UTC"]);
        assert_eq!(known(None), "UTC");
    }

    /// A file states any length: nothing of it is allocated.
    #[test]
    fn types_of_arrays_without_elements() {
        let of = |name: &str| stored_as(name).map(|datatype| datatype.size);
        assert_eq!(of("|S9223372036854775807"), Some(1));
        assert_eq!(["bool", "int8", "uint16", "float32", "int64"].map(of), [1, 1, 2, 4, 8].map(Some));
        assert_eq!(["object", "int7", "int99999999999", "float8", "M8[ns]", ""].map(of), [None; 6]);
    }
}
