//! Labels of rows and columns.

use std::fmt::{self, Display, Formatter};

use super::calendar;
use super::tree::{Value, View};
use super::zones::zone;

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
        /// The unit of `value`.
        unit: Unit,
        /// The zone as [`zone`] names it, `UTC` where it does not know it; `None`: without a zone.
        zone: Option<String>,
    },
}

/// The unit of a point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Second,
    /// Milliseconds.
    Millisecond,
    /// Microseconds.
    Microsecond,
    /// Nanoseconds.
    Nanosecond,
}

impl Unit {
    /// By NumPy's number of it.
    fn new(number: i64) -> Option<Self> {
        Some(match number {
            7 => Unit::Second,
            8 => Unit::Millisecond,
            9 => Unit::Microsecond,
            10 => Unit::Nanosecond,
            _ => return None,
        })
    }

    /// How many there are in a second.
    fn per_second(self) -> i64 {
        match self {
            Unit::Second => 1,
            Unit::Millisecond => 1_000,
            Unit::Microsecond => 1_000_000,
            Unit::Nanosecond => 1_000_000_000,
        }
    }
}

/// Reads a label. `None`: something else.
pub fn label(value: Value<'_>) -> Option<Label<'_>> {
    Some(match value.view() {
        View::None => Label::None,
        View::Bool(value) => Label::Bool(value),
        View::Integer(value) => Label::Integer(value),
        View::Float(value) => Label::Float(value),
        View::Text(text) => Label::Text(text),
        View::Tuple => Label::Tuple(value.items()?.map(label).collect::<Option<_>>()?),
        View::Call { .. } => timestamp(value)?,
        _ => return None,
    })
}

fn timestamp(value: Value<'_>) -> Option<Label<'_>> {
    let (module, name, arguments) = value.call()?;
    let unit = match name.as_str() {
        "_unpickle_timestamp" => Unit::new(arguments.item(3)?.integer()?)?,
        // As pandas wrote it before 2.0.
        "Timestamp" => Unit::Nanosecond,
        _ => return None,
    };
    if !module.starts_with("pandas.") {
        return None;
    }
    let zoned = arguments.item(2).filter(|zone| !zone.is_none());
    Some(Label::Timestamp {
        value: arguments.item(0)?.integer()?,
        unit,
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
            Label::Timestamp { value, unit, zone } => {
                instant(*value, *unit, f)?;
                f.write_str(if zone.is_some() { "+00:00" } else { "" })
            }
        }
    }
}

/// As Python's `repr` of a float: the shortest digits, an exponent below -4 and from 16.
fn float(value: f64, f: &mut Formatter<'_>) -> fmt::Result {
    if !value.is_finite() {
        return f.write_str(if value.is_nan() { "nan" } else if value > 0.0 { "inf" } else { "-inf" });
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
fn instant(value: i64, unit: Unit, f: &mut Formatter<'_>) -> fmt::Result {
    let per_second = unit.per_second();
    let seconds = value.div_euclid(per_second);
    let nanoseconds = value.rem_euclid(per_second) * (1_000_000_000 / per_second);
    let (year, month, day) = calendar::date(seconds.div_euclid(86_400));
    let time = seconds.rem_euclid(86_400);
    write!(f, "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", time / 3600, time / 60 % 60, time % 60)?;
    match nanoseconds {
        0 => Ok(()),
        _ if nanoseconds % 1000 == 0 => write!(f, ".{:06}", nanoseconds / 1000),
        _ => write!(f, ".{nanoseconds:09}"),
    }
}
