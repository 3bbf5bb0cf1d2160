//! Recognises columns of times: integers whose attribute `units` states a unit of time, counted from a date, in the
//! form of UDUNITS that the CF conventions (§4.4) demand, such as `seconds since 1970-01-01 00:00:00 +0:00`.
//!
//! An instant is a number of equal units after an epoch, shown in the calendar of ISO 8601 (proleptic Gregorian).
//! Values stay numbers if the attribute `calendar` names a calendar that has other days, or if the epoch lies before
//! 1582-10-15 in the mixed calendar that CF calls `standard`. They also stay numbers if they count months or years,
//! which vary in length. Values whose unit counts from no date are durations, and stay numbers as well.

use arrow_schema::TimeUnit;

use super::attributes::text;
use crate::calendar::{self, DAY, Instant, SECOND, step};
use crate::catalogue::{Attribute, ByteOrder, Class, Datatype, Elements, Fill, attribute};
use crate::store::{File, Rows};
use crate::table::{Times, Unreadable};

/// 1582-10-15, the first day of the Gregorian calendar, in days from 1970-01-01.
const GREGORIAN: i64 = -141_427;

/// The unit that NumPy and Arrow abbreviate so. `None`: any other abbreviation.
pub fn unit_of(name: &str) -> Option<TimeUnit> {
    Some(match name {
        "s" => TimeUnit::Second,
        "ms" => TimeUnit::Millisecond,
        "us" => TimeUnit::Microsecond,
        "ns" => TimeUnit::Nanosecond,
        _ => return None,
    })
}

/// How a column's integers count instants, according to its attributes. `Err`: its units count from a date, but it
/// stays numbers, for this reason. `None`: its units count from no date, or times are shown as numbers.
pub fn of(file: &File, attributes: &[Attribute], rows: &dyn Rows) -> Option<Result<Times, Unreadable>> {
    if !file.store().shows_times() {
        return None;
    }
    Some(counted_by(attributes)?.and_then(|(step, epoch)| match packed_by(attributes) {
        // Packed integers are not counts of the unit.
        Some(name) => Err(format!("values are packed by {name}").into()),
        None => Times::new(step, epoch, rows.data_type()),
    }))
}

fn packed_by(attributes: &[Attribute]) -> Option<&'static str> {
    ["scale_factor", "add_offset"].into_iter().find(|name| attribute(attributes, name).is_some())
}

/// The units to be shown for a column as stored. Packed instants have none: a reader without the packing attributes
/// would take the numbers for instants.
pub fn units(attributes: &[Attribute]) -> Option<String> {
    let units = text(attributes, "units")?;
    (packed_by(attributes).is_none() || counted(&units).is_none()).then_some(units)
}

/// The calendar of a column that counts from a date. `None`: it states none, or counts from no date.
pub fn calendar(attributes: &[Attribute]) -> Option<String> {
    counted(&text(attributes, "units")?).and_then(|_| text(attributes, "calendar"))
}

/// The attoseconds of the unit, and the epoch, that these attributes state. `Err`: the units count from a date, but
/// values stay numbers, for this reason. `None`: the units count from no date.
pub fn counted_by(attributes: &[Attribute]) -> Option<Result<(i128, Instant), Unreadable>> {
    let (unit, epoch) = counted(&text(attributes, "units")?)?;
    let calendar = text(attributes, "calendar");
    Some(epoch_of(&epoch, calendar.as_deref()).and_then(|epoch| {
        let step = step(&unit).ok_or_else(|| format!("{unit:?} is no unit of one length"))?;
        Ok((step, epoch))
    }))
}

/// How a column's integers count instants, given their unit and the date from which they count. `None`: times are shown
/// as numbers.
pub fn counted_from(file: &File, unit: &str, epoch: &str, rows: &dyn Rows) -> Option<Result<Times, Unreadable>> {
    file.store().shows_times().then(|| {
        let step = step(unit).ok_or_else(|| format!("{unit:?} is no unit of one length"))?;
        Times::new(step, epoch_of(epoch, None)?, rows.data_type())
    })
}

/// How a column's integers count instants, in steps of `step` attoseconds from a day, given in days from 1970. `None`:
/// times are shown as numbers.
pub fn since(file: &File, step: i128, days: i64, rows: &dyn Rows) -> Option<Result<Times, Unreadable>> {
    let epoch = Instant { attoseconds: i128::from(days) * i128::from(DAY) * SECOND, is_exact: true };
    file.store().shows_times().then(|| Times::new(step, epoch, rows.data_type()))
}

/// How to read a datetime or timedelta of NumPy as h5py stores it: opaque, with a tag such as `NUMPY:<M8[ns]`.
#[derive(Clone, Debug, PartialEq)]
pub struct OfNumpy {
    /// The integer type as which to read it.
    pub read: Datatype,
    /// The element that means no time, `NaT`.
    pub missing: Fill,
    /// Attoseconds of the unit in which a datetime counts from 1970. `Err`: what to show as the unit of a timedelta, or
    /// of a datetime that counts months or years.
    pub step: Result<i128, Unreadable>,
}

impl OfNumpy {
    /// Reads a type by its tag. `None`: the tag is not one of NumPy's for times.
    pub fn of(stored: &Datatype) -> Option<Self> {
        let Class::Opaque { tag } = &stored.class else { return None };
        let (order, rest) = std::str::from_utf8(tag).ok()?.strip_prefix("NUMPY:")?.split_at_checked(1)?;
        let order = match order {
            "<" => ByteOrder::Little,
            ">" => ByteOrder::Big,
            _ => return None,
        };
        let (kind, unit) = rest.strip_suffix(']')?.split_once('[')?;
        let length = match unit {
            "m" => Some(60 * SECOND),
            "D" => Some(i128::from(DAY) * SECOND),
            "W" => Some(7 * i128::from(DAY) * SECOND),
            // Months and years vary in length.
            "M" | "Y" => None,
            _ => Some(step(unit)?),
        };
        let step = match (kind, length) {
            ("M8", Some(length)) => Ok(length),
            ("M8", None) => Err(format!("{} since 1970-01-01", if unit == "M" { "months" } else { "years" }).into()),
            ("m8", _) => Err(unit.to_owned().into()),
            _ => return None,
        };
        let read = Datatype::integer(8, true, order);
        (stored.size == 8).then(|| Self { read, missing: not_a_time(order), step })
    }

    /// How the integers count instants. `None`: they do not, or times are shown as numbers.
    pub fn times(&self, file: &File, rows: &dyn Rows) -> Option<Result<Times, Unreadable>> {
        let times = since(file, *self.step.as_ref().ok()?, 0, rows)?;
        Some(times.map(|times| times.in_zone(None)))
    }

    /// The unit to be shown for integers that are not instants. `None`: they are instants.
    pub fn units(&self) -> Option<String> {
        self.step.as_ref().err().map(Unreadable::to_string)
    }
}

/// The element that NumPy and pandas store where there is no time.
pub fn not_a_time(order: ByteOrder) -> Fill {
    let least = i64::MIN;
    let bytes = if order == ByteOrder::Big { least.to_be_bytes() } else { least.to_le_bytes() };
    Fill::Explicit(Elements { bytes: bytes.into(), heap: Vec::new() })
}

/// Splits `UNIT since DATE` into the unit and the date. `None`: text of another form.
fn counted(units: &str) -> Option<(String, String)> {
    let (unit, rest) = units.trim().split_once(char::is_whitespace)?;
    let (since, epoch) = rest.trim_start().split_once(char::is_whitespace)?;
    since.eq_ignore_ascii_case("since").then(|| (unit.to_owned(), epoch.trim_start().to_owned()))
}

/// Parses the instant from which units count.
fn epoch_of(epoch: &str, calendar: Option<&str>) -> Result<Instant, Unreadable> {
    let calendar = calendar.map(str::to_ascii_lowercase);
    let calendar = calendar.as_deref().unwrap_or("standard");
    if !matches!(calendar, "standard" | "gregorian" | "proleptic_gregorian") {
        return Err(format!("the calendar {calendar:?} is not that of ISO 8601").into());
    }
    let instant = calendar::instant(epoch).ok_or_else(|| format!("{epoch:?} is no date"))?;
    let is_early = instant.attoseconds < i128::from(GREGORIAN) * i128::from(DAY) * SECOND;
    match is_early && calendar != "proleptic_gregorian" {
        true => Err(format!("{epoch:?} is a date of the Julian calendar").into()),
        false => Ok(instant),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_count_from_a_date() {
        let counted = |units| counted(units).map(|(unit, epoch)| (step(&unit), epoch_of(&epoch, None).is_ok()));
        assert_eq!(counted("seconds since 1970-01-01 00:00:00 +0:00"), Some((Some(SECOND), true)));
        assert_eq!(counted(" Days Since 1-1-1"), Some((Some(86_400 * SECOND), false)));
        assert_eq!(counted("days \t since  2000-01-01"), Some((Some(86_400 * SECOND), true)));
        assert_eq!(counted("\u{b5}s since 2000-01-01T00:00:00Z"), Some((Some(SECOND / 1_000_000), true)));
        for units in
            ["ms since 1970/01/01", "ms since 19700101", "ms since 1970/1/1 00:00:00", "ms since 19700101 12:00 UTC"]
        {
            assert_eq!(counted(units), Some((Some(SECOND / 1_000), true)), "{units}");
        }
        assert_eq!(counted("Ms since 2000-01-01"), Some((None, true)));
        assert_eq!(counted("months since 2000-01-01"), Some((None, true)));
        assert_eq!(counted("seconds"), None);
        assert_eq!(counted("m since"), None);
        assert_eq!(counted("keV per 2000-01-01"), None);
    }

    #[test]
    fn tags_of_numpy_are_times() {
        let of = |tag: &str, size| OfNumpy::of(&Datatype { size, class: Class::Opaque { tag: tag.into() } });
        let known = |tag| of(tag, 8).map(|of| (of.step, matches!(of.read.class, Class::Integer { .. })));
        assert_eq!(known("NUMPY:<M8[ns]"), Some((Ok(SECOND / 1_000_000_000), true)));
        assert_eq!(known("NUMPY:>M8[m]"), Some((Ok(60 * SECOND), true)));
        assert_eq!(known("NUMPY:>M8[D]"), Some((Ok(i128::from(DAY) * SECOND), true)));
        assert_eq!(known("NUMPY:<m8[us]"), Some((Err("us".into()), true)));
        assert_eq!(known("NUMPY:<M8[W]"), Some((Ok(604_800 * SECOND), true)));
        assert_eq!(known("NUMPY:<M8[M]"), Some((Err("months since 1970-01-01".into()), true)));
        assert_eq!(known("NUMPY:<m8[Y]"), Some((Err("Y".into()), true)));
        for odd in
            ["NUMPY:<M8[ps]", "NUMPY:<M8[25s]", "NUMPY:<M8", "NUMPY:|V8", "NUMPY:", "NUMPY:\u{e9}M8[s]", "<M8[s]"]
        {
            assert_eq!(known(odd), None, "{odd}");
        }
        assert_eq!(of("NUMPY:<M8[s]", 4), None);
    }

    #[test]
    fn calendars_have_their_days() {
        let known = |calendar| epoch_of("1582-10-14", calendar).is_ok();
        assert!(known(Some("proleptic_gregorian")) && !known(None) && !known(Some("Gregorian")));
        assert!(epoch_of("1582-10-15", Some("standard")).is_ok());
        for calendar in ["noleap", "365_day", "360_day", "julian", "all_leap", "none", "tai"] {
            assert!(epoch_of("2000-01-01", Some(calendar)).is_err());
        }
        assert_eq!(calendar::day(1582, 10, 15), Some(GREGORIAN));
    }
}
