//! Recognises objects that pandas pickles in attributes, by their structure: labels of rows and columns, time zones.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};

use arrow_array::temporal_conversions::as_datetime_with_timezone;
use arrow_array::types::TimestampSecondType;
use serde_json::Value as Json;

use super::cell::{CellForm, PickledCell, days};
use super::tree::{PickleNode, PickleValue, VALUES};
use crate::calendar::{self, DAY};

/// A label of pandas. Its `Display` is Python's `str` of it.
#[derive(Clone, Debug, PartialEq)]
pub enum PandasLabel<'a> {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer.
    Integer(i128),
    /// A float.
    Float(f64),
    /// A text.
    Text(Cow<'a, str>),
    /// Labels of several levels.
    Tuple(Vec<PandasLabel<'a>>),
    /// A day, counted from 1970-01-01.
    Date(i64),
    /// An instant. It is shown in its zone if that is known, else in UTC: `2020-01-01 00:00:00+00:00`.
    Timestamp {
        /// The number of units since 1970, in UTC.
        value: i64,
        /// Units of `value` in a second: a power of 1,000.
        per_second: i64,
        /// The zone as [`zone`] names it; `UTC` if unknown. `None`: without a zone.
        zone: Option<String>,
    },
    /// A difference of two instants.
    Timedelta {
        /// Its length in units.
        value: i64,
        /// Units of `value` in a second: a power of 1,000.
        per_second: i64,
    },
    /// A missing instant or difference.
    NotATime,
    /// Bytes.
    Bytes(Cow<'a, [u8]>),
    /// An interval between two labels.
    Interval {
        /// The lower and the upper end.
        ends: Box<[PandasLabel<'a>; 2]>,
        /// The ends that belong to it: `left`, `right`, `both`, `neither`.
        closed: &'a str,
    },
}

/// Reads a label. `None`: not a label.
pub fn label(value: PickleValue<'_>) -> Option<PandasLabel<'_>> {
    Some(match value.node() {
        PickleNode::None => PandasLabel::None,
        PickleNode::Bool(value) => PandasLabel::Bool(*value),
        PickleNode::Integer(value) => PandasLabel::Integer(*value),
        PickleNode::Float(value) => PandasLabel::Float(*value),
        PickleNode::Text(text) => PandasLabel::Text((&**text).into()),
        PickleNode::Tuple(_) => PandasLabel::Tuple(value.items()?.map(label).collect::<Option<_>>()?),
        PickleNode::Bytes(bytes) => PandasLabel::Bytes((&**bytes).into()),
        PickleNode::Call(..) => called(value)?,
        _ => return None,
    })
}

/// A label made by a call: an instant, a difference, a day, an interval, a NumPy scalar.
fn called(value: PickleValue<'_>) -> Option<PandasLabel<'_>> {
    let (module, name, arguments) = value.call()?;
    let integer = |i| arguments.item(i)?.integer();
    // Converts NumPy's number of a unit.
    let per_second = |unit| (7..=10).contains(&unit).then(|| 1000_i64.pow(unit as u32 - 7));
    let timestamp = |per_second| {
        let zoned = arguments.item(2).filter(|zone| !zone.is_none());
        let zone = zoned.map(|value| zone(value).unwrap_or_else(|| "UTC".into()));
        Some(PandasLabel::Timestamp { value: integer(0)?, per_second, zone })
    };
    match (module, name.as_str()) {
        ("datetime", "date") => days(&bytes(arguments.item(0)?)?).map(PandasLabel::Date),
        ("_codecs" | "__builtin__" | "builtins", _) => bytes(value).map(PandasLabel::Bytes),
        ("numpy._core.multiarray" | "numpy.core.multiarray", "scalar") => scalar(arguments),
        _ if !module.starts_with("pandas.") && module != "pandas" => None,
        (_, "_unpickle_timestamp") => timestamp(per_second(integer(3)?)?),
        // Before 2.0, pandas wrote only nanoseconds.
        (_, "Timestamp") => timestamp(1_000_000_000),
        (_, "_timedelta_unpickle") => {
            Some(PandasLabel::Timedelta { value: integer(0)?, per_second: per_second(integer(1)?)? })
        }
        ("pandas._libs.tslibs.nattype", "_nat_unpickle" | "__nat_unpickle") => Some(PandasLabel::NotATime),
        (_, "Interval") => {
            let [left, right] = [0, 1].map(|i| label(arguments.item(i)?));
            Some(PandasLabel::Interval { ends: Box::new([left?, right?]), closed: arguments.item(2)?.text()? })
        }
        _ => None,
    }
}

/// The label that is a NumPy scalar of a little-endian data type.
fn scalar(arguments: PickleValue<'_>) -> Option<PandasLabel<'_>> {
    let (form, _) = element(arguments.item(0)?)?;
    of_bytes(form, &bytes(arguments.item(1)?)?)
}

/// The form of an element of a NumPy data type, and its size in bytes. `None`: the elements are big-endian, or are
/// neither integers, floats, booleans nor text.
fn element(datatype: PickleValue<'_>) -> Option<(CellForm, usize)> {
    let ("numpy", name, of) = datatype.call()? else { return None };
    let PickleNode::Build(_, state) = datatype.node() else { return None };
    let order = datatype.at(*state).item(1)?.text()?;
    let code = of.item(0)?.text()?;
    let form = CellForm::of(code.as_bytes()).filter(|_| name == "dtype" && order != ">")?;
    let size: usize = code.get(1..)?.parse().ok()?;
    Some((form, if form == CellForm::Text { size.checked_mul(4)? } else { size }))
}

/// The label for the bytes of an element.
fn of_bytes(form: CellForm, bytes: &[u8]) -> Option<PandasLabel<'static>> {
    Some(match form.scalar(bytes)? {
        PickledCell::Bool(value) => PandasLabel::Bool(value),
        PickledCell::Integer(value) => PandasLabel::Integer(value),
        // The fewest digits that identify a float32.
        PickledCell::Float(value) if bytes.len() == 4 => PandasLabel::Float((value as f32).to_string().parse().ok()?),
        PickledCell::Float(value) => PandasLabel::Float(value),
        PickledCell::Text(text) => PandasLabel::Text(text),
        _ => return None,
    })
}

/// Whether a value is the call that makes a NumPy array. The content is in the state that the array gets afterwards.
pub(super) fn is_array(value: PickleValue<'_>) -> bool {
    let Some((module, name, arguments)) = value.call() else { return false };
    let class = arguments.item(0).and_then(PickleValue::symbol);
    matches!(module, "numpy._core.multiarray" | "numpy.core.multiarray")
        && name == "_reconstruct"
        && class.is_some_and(|(module, name)| module == "numpy" && name == "ndarray")
}

/// The content of a NumPy array in nested lists. `left` is the number of array elements that may still be shown.
/// `None`: too many elements, or an unsupported type, order or shape.
fn array(value: PickleValue<'_>, left: &mut usize) -> Option<Json> {
    let PickleNode::Build(_, state) = value.node() else { return None };
    let [shape, datatype, is_fortran, content] = [1, 2, 3, 4].map(|i| value.at(*state).item(i));
    let extents = shape?.items()?.take(MOST_AXES + 1).map(|extent| usize::try_from(extent.integer()?).ok());
    let extents: Vec<usize> = extents.collect::<Option<_>>()?;
    let product = |extents: &[usize]| extents.iter().try_fold(1_usize, |all, one| all.checked_mul(*one));
    let count = product(&extents)?;
    // Even empty inner lists count.
    let empty = extents.iter().position(|extent| *extent == 0).unwrap_or(extents.len());
    *left = left.checked_sub(product(&extents[..empty])?)?;
    // In Fortran order the first index runs fastest.
    if extents.len() > MOST_AXES || extents.len() > 1 && is_fortran?.bool()? {
        return None;
    }
    let flat: Vec<Json> = match content?.items() {
        Some(objects) if objects.len() == count => objects.map(|object| plain(object, left)).collect(),
        Some(_) => return None,
        None => {
            let (form, size) = element(datatype?)?;
            let content = bytes(content?)?;
            if count.checked_mul(size.max(1))? != content.len() {
                return None;
            }
            content.chunks_exact(size.max(1)).map(|bytes| of_bytes(form, bytes).map(of_label)).collect::<Option<_>>()?
        }
    };
    Some(nested(&extents, &mut flat.into_iter()))
}

/// Most axes of a displayed array.
const MOST_AXES: usize = 8;

/// Values as nested lists with these extents.
fn nested(extents: &[usize], flat: &mut impl Iterator<Item = Json>) -> Json {
    match extents {
        [] => flat.next().unwrap_or_default(),
        [extent, inner @ ..] => (0..*extent).map(|_| nested(inner, flat)).collect(),
    }
}

/// The value's bytes; older protocols store them as a text to be encoded.
fn bytes(value: PickleValue<'_>) -> Option<Cow<'_, [u8]>> {
    if let PickleNode::Bytes(bytes) = value.node() {
        return Some((&**bytes).into());
    }
    let (module, name, arguments) = value.call()?;
    match (module, name.as_str()) {
        ("_codecs", "encode") => {
            let (text, encoding) = (arguments.item(0)?.text()?, arguments.item(1)?.text()?);
            let is_latin = matches!(encoding, "latin1" | "latin-1");
            is_latin.then(|| text.chars().map(|c| u8::try_from(c).ok()).collect())?
        }
        ("__builtin__" | "builtins", "bytes") if arguments.items()?.len() == 0 => Some(Cow::Borrowed(&[])),
        _ => None,
    }
}

impl Display for PandasLabel<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            PandasLabel::None => f.write_str("None"),
            PandasLabel::Bool(value) => f.write_str(if *value { "True" } else { "False" }),
            PandasLabel::Integer(value) => value.fmt(f),
            PandasLabel::Float(value) => float(*value, f),
            PandasLabel::Text(text) => f.write_str(text),
            PandasLabel::Tuple(labels) => {
                f.write_str("(")?;
                for (i, label) in labels.iter().enumerate() {
                    f.write_str(if i > 0 { ", " } else { "" })?;
                    label.repr(f)?;
                }
                f.write_str(if labels.len() == 1 { ",)" } else { ")" })
            }
            PandasLabel::Date(day) => date(*day, f),
            PandasLabel::Timestamp { value, per_second, zone } => {
                let offset = zone.as_deref().map(|zone| offset_at(zone, value.div_euclid(*per_second)));
                instant(*value, *per_second, offset, f)?;
                offset.map_or(Ok(()), |offset| write_offset(offset, ":", f))
            }
            PandasLabel::Timedelta { value, per_second } => {
                let days = value.div_euclid(per_second * DAY);
                write!(f, "{days} days {}", if days < 0 { "+" } else { "" })?;
                clock(*value, *per_second, f)
            }
            PandasLabel::NotATime => f.write_str("NaT"),
            PandasLabel::Bytes(bytes) => {
                f.write_str("b")?;
                let characters: String = bytes.iter().map(|byte| char::from(*byte)).collect();
                quoted(&characters, |c| c.is_control() || !c.is_ascii(), f)
            }
            PandasLabel::Interval { ends, closed } => {
                let [left, right] = &**ends;
                f.write_str(if matches!(*closed, "left" | "both") { "[" } else { "(" })?;
                write!(f, "{left}, {right}{}", if matches!(*closed, "right" | "both") { "]" } else { ")" })
            }
        }
    }
}

impl PandasLabel<'_> {
    /// Writes Python's `repr`.
    fn repr(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            PandasLabel::Text(text) => quoted(text, char::is_control, f),
            PandasLabel::Date(day) => {
                let (year, month, day) = calendar::date(*day);
                write!(f, "datetime.date({year}, {month}, {day})")
            }
            PandasLabel::Timestamp { value, per_second, zone: Some(zone) } => {
                let offset = offset_at(zone, value.div_euclid(*per_second));
                f.write_str("Timestamp('")?;
                instant(*value, *per_second, Some(offset), f)?;
                write_offset(offset, "", f)?;
                write!(f, "', tz='{zone}')")
            }
            PandasLabel::Timestamp { .. } => write!(f, "Timestamp('{self}')"),
            PandasLabel::Timedelta { .. } => write!(f, "Timedelta('{self}')"),
            PandasLabel::Interval { ends, closed } => {
                f.write_str("Interval(")?;
                for end in &**ends {
                    match end {
                        PandasLabel::Timestamp { .. } => write!(f, "{end}, ")?,
                        _ => {
                            end.repr(f)?;
                            f.write_str(", ")?;
                        }
                    }
                }
                write!(f, "closed='{closed}')")
            }
            _ => self.fmt(f),
        }
    }
}

/// A pickled value as JSON: plain values, NumPy scalars and arrays as their JSON counterparts, a label or a zone as its
/// text, keys of a dict as texts. Any other value is named in angle brackets: `<decimal.Decimal>`. Floats that JSON
/// lacks become `"NaN"`, `"Infinity"`, `"-Infinity"`.
pub fn json(value: PickleValue<'_>) -> Json {
    plain(value, &mut VALUES.clone())
}

/// A value as JSON; `left` is the number of array elements that may still be shown.
fn plain(value: PickleValue<'_>, left: &mut usize) -> Json {
    match value.node() {
        PickleNode::None
        | PickleNode::Bool(_)
        | PickleNode::Integer(_)
        | PickleNode::Float(_)
        | PickleNode::Text(_) => label(value).map(of_label).unwrap_or_default(),
        PickleNode::Bytes(bytes) => String::from_utf8_lossy(bytes).into(),
        PickleNode::List(_) | PickleNode::Tuple(_) => {
            value.items().into_iter().flatten().map(|item| plain(item, left)).collect()
        }
        PickleNode::Dict(_) => {
            let entries = value.entries().into_iter().flatten().map(|(key, value)| {
                let key = label(key).map_or_else(|| class_of(key), |label| label.to_string());
                (key, plain(value, left))
            });
            Json::Object(entries.collect())
        }
        PickleNode::Build(..) if is_array(value) => array(value, left).unwrap_or_else(|| class_of(value).into()),
        PickleNode::Symbol(..) | PickleNode::Call(..) | PickleNode::Build(..) => {
            let known = label(value).map(of_label).or_else(|| zone(value).map(Json::String));
            known.unwrap_or_else(|| class_of(value).into())
        }
    }
}

/// A label as JSON: numbers, booleans and texts directly, others as their text.
fn of_label(label: PandasLabel<'_>) -> Json {
    match label {
        PandasLabel::None => Json::Null,
        PandasLabel::Bool(value) => value.into(),
        PandasLabel::Integer(integer) => match (i64::try_from(integer), u64::try_from(integer)) {
            (Ok(small), _) => small.into(),
            (_, Ok(large)) => large.into(),
            _ => integer.to_string().into(),
        },
        PandasLabel::Float(value) if value.is_nan() => "NaN".into(),
        PandasLabel::Float(value) if value.is_infinite() => (if value > 0.0 { "Infinity" } else { "-Infinity" }).into(),
        PandasLabel::Float(value) => value.into(),
        PandasLabel::Text(text) => text.into(),
        other => other.to_string().into(),
    }
}

/// The class or function that makes a value, in angle brackets.
pub fn class_of(value: PickleValue<'_>) -> String {
    match value.call() {
        // `copyreg` and NumPy make an instance of the class in their arguments.
        Some((module, name, arguments))
            if (matches!(module, "copy_reg" | "copyreg") || name == "_reconstruct")
                && arguments.item(0).is_some_and(|class| class.symbol().is_some()) =>
        {
            arguments.item(0).map_or_else(String::new, class_of)
        }
        Some((module, name, _)) => format!("<{module}.{name}>"),
        None => match value.symbol() {
            Some((module, name)) => format!("<{module}.{name}>"),
            None => format!("<{}>", value.describe()),
        },
    }
}

/// Writes a float as Python's `repr`: the shortest digits, an exponent below -4 and from 16.
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

/// Writes a text as Python's `repr`, with escapes for some characters.
fn quoted(text: &str, is_escaped: impl Fn(char) -> bool, f: &mut Formatter<'_>) -> fmt::Result {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    write!(f, "{quote}")?;
    for c in text.chars() {
        match c {
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            '\\' => f.write_str("\\\\")?,
            _ if c == quote => write!(f, "\\{c}")?,
            _ if is_escaped(c) => write!(f, "\\x{:02x}", u32::from(c))?,
            _ => write!(f, "{c}")?,
        }
    }
    write!(f, "{quote}")
}

/// Writes a day as `2020-01-31`.
fn date(day: i64, f: &mut Formatter<'_>) -> fmt::Result {
    let (year, month, day) = calendar::date(day);
    write!(f, "{year:04}-{month:02}-{day:02}")
}

/// Writes an instant as pandas does, on clocks that are `offset` seconds ahead of UTC.
fn instant(value: i64, per_second: i64, offset: Option<i64>, f: &mut Formatter<'_>) -> fmt::Result {
    let local = value.saturating_add(offset.unwrap_or(0).saturating_mul(per_second));
    date(local.div_euclid(per_second).div_euclid(DAY), f)?;
    f.write_str(" ")?;
    clock(local, per_second, f)
}

/// Writes the time of a day, with a fraction of six or nine digits if not zero.
fn clock(value: i64, per_second: i64, f: &mut Formatter<'_>) -> fmt::Result {
    let time = value.div_euclid(per_second).rem_euclid(DAY);
    let nanoseconds = value.rem_euclid(per_second) * (1_000_000_000 / per_second);
    write!(f, "{:02}:{:02}:{:02}", time / 3600, time / 60 % 60, time % 60)?;
    match nanoseconds {
        0 => Ok(()),
        _ if nanoseconds % 1000 == 0 => write!(f, ".{:06}", nanoseconds / 1000),
        _ => write!(f, ".{nanoseconds:09}"),
    }
}

/// Range of seconds in which every zone has dates: some 250,000 years.
const TOLD: std::ops::Range<i64> = -8_000_000_000_000..8_000_000_000_000;

/// Seconds by which clocks of a zone are ahead of UTC at a time; 0 if the zone is unknown, or the time very far from
/// now.
fn offset_at(zone: &str, seconds: i64) -> i64 {
    if !TOLD.contains(&seconds) {
        return 0;
    }
    let local = zone.parse().ok().and_then(|zone| as_datetime_with_timezone::<TimestampSecondType>(seconds, zone));
    local.map_or(0, |local| local.naive_local().and_utc().timestamp() - seconds)
}

/// Writes an offset as `+01:00`, with seconds if not zero.
fn write_offset(offset: i64, colon: &str, f: &mut Formatter<'_>) -> fmt::Result {
    let (sign, offset) = (if offset < 0 { '-' } else { '+' }, offset.abs());
    write!(f, "{sign}{:02}{colon}{:02}", offset / 3600, offset / 60 % 60)?;
    if offset % 60 != 0 { write!(f, "{colon}{:02}", offset % 60) } else { Ok(()) }
}

/// Reads a time zone as Arrow names it: `America/New_York`, `+05:30`, `UTC`.
///
/// It accepts names (also those of dateutil), and the classes of pytz, zoneinfo, datetime and dateutil. `None`: another
/// value, or an offset that is not in whole minutes.
pub fn zone(value: PickleValue<'_>) -> Option<String> {
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
        // The first argument is the zone's name.
        ("dateutil.tz.tz" | "dateutil.tz", "tzoffset") => offset(seconds(arguments.item(1)?)?),
        _ => None,
    }
}

/// Arrow's name for the zone of this name. Names of dateutil have a prefix, and perhaps the folder of the system's
/// zones.
pub fn named(text: &str) -> Option<String> {
    let name = match text.strip_prefix("dateutil/") {
        Some(path) => path.rsplit_once("zoneinfo/").map_or(path, |(_, name)| name),
        None => text,
    };
    (!name.is_empty()).then(|| name.into())
}

/// The seconds of a `datetime.timedelta(days, seconds, microseconds)`. `None`: it has a fraction.
fn seconds(value: PickleValue<'_>) -> Option<i64> {
    let (module, name, arguments) = value.call()?;
    let part = |i| arguments.item(i).map_or(Some(0), PickleValue::integer);
    if (module, name.as_str()) != ("datetime", "timedelta") || part(2)? != 0 {
        return None;
    }
    part(0)?.checked_mul(DAY)?.checked_add(part(1)?)
}

/// The name of an offset east of UTC. `None`: a day or more, or not in whole minutes.
fn offset(seconds: i64) -> Option<String> {
    let minutes = seconds.unsigned_abs() / 60;
    match seconds {
        0 => Some("UTC".into()),
        _ if seconds % 60 != 0 || minutes >= 24 * 60 => None,
        _ => Some(format!("{}{:02}:{:02}", if seconds < 0 { '-' } else { '+' }, minutes / 60, minutes % 60)),
    }
}
