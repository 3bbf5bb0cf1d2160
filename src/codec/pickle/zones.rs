//! Time zones, by the shapes in which Python's libraries pickle them.

use super::tree::Value;

/// Seconds in a day.
const DAY: i64 = 86_400;

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
