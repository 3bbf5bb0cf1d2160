//! What pandas pickles in attributes, known by its shape: labels of rows and columns, time zones.

use std::fmt::{self, Display, Formatter};

use serde_json::Value as Json;

use super::tree::{Node, Value};

/// Seconds in a day.
const DAY: i64 = 86_400;

/// A label of pandas. Its `Display` is Python's `str` of it; see [`Label::Timestamp`] for those with a zone.
#[derive(Clone, Debug, PartialEq)]
pub enum Label<'a> {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer.
    Integer(i128),
    /// A float.
    Float(f64),
    /// A text.
    Text(&'a str),
    /// Labels of several levels.
    Tuple(Vec<Label<'a>>),
    /// A point in time. With a zone it is shown in UTC: `2020-01-01 00:00:00+00:00`.
    Timestamp {
        /// Since 1970, in UTC.
        value: i64,
        /// Units of `value` in a second: a power of 1,000.
        per_second: i64,
        /// The zone as [`zone`] names it, `UTC` where it does not know it; `None`: without a zone.
        zone: Option<String>,
    },
}

/// Reads a label. `None`: something else.
pub fn label(value: Value<'_>) -> Option<Label<'_>> {
    Some(match value.node() {
        Node::None => Label::None,
        Node::Bool(value) => Label::Bool(*value),
        Node::Integer(value) => Label::Integer(*value),
        Node::Float(value) => Label::Float(*value),
        Node::Text(text) => Label::Text(text),
        Node::Tuple(_) => Label::Tuple(value.items()?.map(label).collect::<Option<_>>()?),
        Node::Call(..) => timestamp(value)?,
        _ => return None,
    })
}

fn timestamp(value: Value<'_>) -> Option<Label<'_>> {
    let (module, name, arguments) = value.call()?;
    let per_second = match name.as_str() {
        "_unpickle_timestamp" => match arguments.item(3)?.integer()? {
            unit @ 7..=10 => 1000_i64.pow(unit as u32 - 7),
            _ => return None,
        },
        // As pandas wrote it before 2.0: nanoseconds.
        "Timestamp" => 1_000_000_000,
        _ => return None,
    };
    if !module.starts_with("pandas.") {
        return None;
    }
    let zoned = arguments.item(2).filter(|zone| !zone.is_none());
    Some(Label::Timestamp {
        value: arguments.item(0)?.integer()?,
        per_second,
        zone: zoned.map(|value| zone(value).unwrap_or_else(|| "UTC".into())),
    })
}

impl Display for Label<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Label::None => f.write_str("None"),
            Label::Bool(value) => f.write_str(if *value { "True" } else { "False" }),
            Label::Integer(value) => value.fmt(f),
            Label::Float(value) => float(*value, f),
            Label::Text(text) => f.write_str(text),
            Label::Tuple(labels) => {
                f.write_str("(")?;
                for (i, label) in labels.iter().enumerate() {
                    f.write_str(if i > 0 { ", " } else { "" })?;
                    match label {
                        Label::Text(text) => quoted(text, f)?,
                        Label::Timestamp { .. } => write!(f, "Timestamp('{label}')")?,
                        _ => label.fmt(f)?,
                    }
                }
                f.write_str(if labels.len() == 1 { ",)" } else { ")" })
            }
            Label::Timestamp { value, per_second, zone } => {
                instant(*value, *per_second, f)?;
                f.write_str(if zone.is_some() { "+00:00" } else { "" })
            }
        }
    }
}

/// What was pickled, as JSON: plain values as such, a label or a zone as its text, keys of a dict as texts. Anything
/// else is named in angle brackets: `<decimal.Decimal>`. Floats that JSON has not are `"NaN"`, `"Infinity"`,
/// `"-Infinity"`.
pub fn json(value: Value<'_>) -> Json {
    match value.node() {
        Node::None => Json::Null,
        Node::Bool(value) => (*value).into(),
        Node::Integer(integer) => match (i64::try_from(*integer), u64::try_from(*integer)) {
            (Ok(small), _) => small.into(),
            (_, Ok(large)) => large.into(),
            _ => integer.to_string().into(),
        },
        Node::Float(value) if value.is_nan() => "NaN".into(),
        Node::Float(value) if value.is_infinite() => if *value > 0.0 { "Infinity" } else { "-Infinity" }.into(),
        Node::Float(value) => (*value).into(),
        Node::Text(text) => (**text).into(),
        Node::Bytes(bytes) => String::from_utf8_lossy(bytes).into(),
        Node::List(_) | Node::Tuple(_) => value.items().into_iter().flatten().map(json).collect(),
        Node::Dict(_) => {
            let text = |key: Value<'_>| label(key).map_or_else(|| named_in(key), |label| label.to_string());
            let entries = value.entries().into_iter().flatten();
            Json::Object(entries.map(|(key, value)| (text(key), json(value))).collect())
        }
        Node::Symbol(..) | Node::Call(..) | Node::Build(..) => {
            let known = label(value).map(|label| label.to_string()).or_else(|| zone(value));
            known.unwrap_or_else(|| named_in(value)).into()
        }
    }
}

/// The class or function that a value is made by.
fn named_in(value: Value<'_>) -> String {
    match value.call() {
        // What `copyreg` makes is of the class that it is given.
        Some(("copy_reg" | "copyreg", _, arguments))
            if arguments.item(0).is_some_and(|class| class.symbol().is_some()) =>
        {
            arguments.item(0).map_or_else(String::new, named_in)
        }
        Some((module, name, _)) => format!("<{module}.{name}>"),
        None => match value.symbol() {
            Some((module, name)) => format!("<{module}.{name}>"),
            None => format!("<{}>", value.describe()),
        },
    }
}

/// As Python's `repr` of a float: the shortest digits, an exponent below -4 and from 16.
fn float(value: f64, f: &mut Formatter<'_>) -> fmt::Result {
    if !value.is_finite() {
        return f.write_str(if value.is_nan() {
            "nan"
        } else if value > 0.0 {
            "inf"
        } else {
            "-inf"
        });
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>().unwrap_or(0) {
        -4..=15 => write!(f, "{value:?}"),
        exponent => write!(f, "{digits}e{exponent:+03}"),
    }
}

/// As Python's `repr` of a text.
fn quoted(text: &str, f: &mut Formatter<'_>) -> fmt::Result {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    write!(f, "{quote}")?;
    for c in text.chars() {
        match c {
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            '\\' => f.write_str("\\\\")?,
            _ if c == quote => write!(f, "\\{c}")?,
            _ if c.is_control() => write!(f, "\\x{:02x}", u32::from(c))?,
            _ => write!(f, "{c}")?,
        }
    }
    write!(f, "{quote}")
}

/// As pandas shows a point in time: a fraction in six or nine digits where there is one.
fn instant(value: i64, per_second: i64, f: &mut Formatter<'_>) -> fmt::Result {
    let seconds = value.div_euclid(per_second);
    let nanoseconds = value.rem_euclid(per_second) * (1_000_000_000 / per_second);
    let (year, month, day) = date(seconds.div_euclid(DAY));
    let time = seconds.rem_euclid(DAY);
    write!(f, "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", time / 3600, time / 60 % 60, time % 60)?;
    match nanoseconds {
        0 => Ok(()),
        _ if nanoseconds % 1000 == 0 => write!(f, ".{:06}", nanoseconds / 1000),
        _ => write!(f, ".{nanoseconds:09}"),
    }
}

/// Reads a time zone as Arrow names it: `America/New_York`, `+05:30`, `UTC`.
///
/// Understood are names (also those of dateutil), and the classes of pytz, zoneinfo, datetime and dateutil. `None`:
/// something else, or an offset that is not in whole minutes.
pub fn zone(value: Value<'_>) -> Option<String> {
    if let Some(text) = value.text() {
        return named(text);
    }
    let (module, name, arguments) = value.call()?;
    match (module, name.as_str()) {
        ("pytz" | "zoneinfo" | "zoneinfo._common" | "backports.zoneinfo", "_p" | "ZoneInfo._unpickle") => {
            named(arguments.item(0)?.text()?)
        }
        ("pytz", "_UTC") | ("dateutil.tz.tz" | "dateutil.tz", "tzutc") => Some("UTC".into()),
        ("pytz", "FixedOffset" | "_FixedOffset") => offset(arguments.item(0)?.integer()?.checked_mul(60)?),
        ("datetime", "timezone") => offset(seconds(arguments.item(0)?)?),
        // Its name comes first.
        ("dateutil.tz.tz" | "dateutil.tz", "tzoffset") => offset(seconds(arguments.item(1)?)?),
        _ => None,
    }
}

/// The name of a zone. dateutil's have a prefix, and maybe the folder of the system's zones.
fn named(text: &str) -> Option<String> {
    let name = match text.strip_prefix("dateutil/") {
        Some(path) => path.rsplit_once("zoneinfo/").map_or(path, |(_, name)| name),
        None => text,
    };
    (!name.is_empty()).then(|| name.into())
}

/// The seconds of a `datetime.timedelta(days, seconds, microseconds)`, without a fraction.
fn seconds(value: Value<'_>) -> Option<i64> {
    let (module, name, arguments) = value.call()?;
    let part = |i| arguments.item(i).map_or(Some(0), Value::integer);
    if (module, name.as_str()) != ("datetime", "timedelta") || part(2)? != 0 {
        return None;
    }
    part(0)?.checked_mul(DAY)?.checked_add(part(1)?)
}

/// An offset east of UTC, of less than a day.
fn offset(seconds: i64) -> Option<String> {
    let minutes = seconds.unsigned_abs() / 60;
    match seconds {
        0 => Some("UTC".into()),
        _ if seconds % 60 != 0 || minutes >= 24 * 60 => None,
        _ => Some(format!("{}{:02}:{:02}", if seconds < 0 { '-' } else { '+' }, minutes / 60, minutes % 60)),
    }
}

/// Days from the first of March of the year 0 to 1970: years begin in March here, so that the leap day is their last.
const EPOCH: i64 = 719_468;

/// Days in 400 years.
const ERA: i64 = 146_097;

/// Year, month and day of a number of days since 1970.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH;
    let (era, day_of_era) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// Days since 1970 of a date of Python; `None` where there is no such day, or the year has not one to four digits.
pub(super) fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=9999).contains(&year) || !(1..=12).contains(&month) {
        return None;
    }
    let from_march = year - i64::from(month <= 2);
    let (era, year_of_era) = (from_march.div_euclid(400), from_march.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * ERA + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - EPOCH;
    (date(days) == (year, month, day)).then_some(days)
}
