//! Dates of the proleptic Gregorian calendar (ISO 8601), and instants as people write them.
//!
//! Written here because stored integers reach years that no date library has (chrono ends at 262,143). The rules are
//! those of H. Hinnant, "chrono-Compatible Low-Level Date Algorithms": years begin in March, so that the leap day comes
//! last.

/// Attoseconds in a second; an [`Instant`] counts attoseconds.
pub const SECOND: i128 = 1_000_000_000_000_000_000;

/// Seconds in a day.
pub const DAY: i64 = 86_400;

/// Days in 400 years.
const ERA: i64 = 146_097;

/// Days from the first of March of year 0 to 1970-01-01.
const EPOCH: i64 = 719_468;

/// Most digits of a year: enough for 64 bits of seconds, and far from overflowing 128 bits of attoseconds.
const MOST_YEAR_DIGITS: usize = 12;

/// A parsed moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instant {
    /// Attoseconds since 1970-01-01T00:00:00Z, rounded down.
    pub attoseconds: i128,
    /// Whether it is exact: no digit was rounded off.
    pub is_exact: bool,
}

/// The year, month and day of the day with this number, counted from 1970-01-01.
#[inline]
pub fn date(day: i64) -> (i64, u32, u32) {
    let (era, of_era) = (day.saturating_add(EPOCH).div_euclid(ERA), day.saturating_add(EPOCH).rem_euclid(ERA));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let is_next_year = month >= 10;
    let month = if is_next_year { month - 9 } else { month + 3 };
    (year + era * 400 + i64::from(is_next_year), month as u32, day as u32)
}

/// The number of the day with this date, counted from 1970-01-01. `None`: no such date.
pub fn day(year: i64, month: u32, day: u32) -> Option<i64> {
    if !(1..=12).contains(&month) {
        return None;
    }
    let from_march = year.checked_sub(i64::from(month <= 2))?;
    let (era, of_era) = (from_march.div_euclid(400), from_march.rem_euclid(400));
    let of_year = (153 * ((i64::from(month) + 9) % 12) + 2) / 5 + i64::from(day) - 1;
    let of_era = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    let number = era.checked_mul(ERA)?.checked_add(of_era)?.checked_sub(EPOCH)?;
    // A date that does not exist, such as February 30, converts back to another one.
    (date(number) == (year, month, day)).then_some(number)
}

/// Parses an instant: `2026-01-31`, `2026-01-31T12:00`, `2026-1-31 12:00:00.5 +2:00`; a date may also be spelled
/// `2026/1/31` or `20260131`. The default zone is UTC. `None`: not an instant.
pub fn instant(text: &str) -> Option<Instant> {
    let mut rest = Rest(text.trim());
    let sign = rest.sign().unwrap_or(1);
    let digits = rest.digits().to_owned();
    let [year, month, of_month] = match digits.split_at_checked(4) {
        Some((year, day)) if day.len() == 4 && !rest.0.starts_with(['-', '/']) => {
            [year.parse().ok()?, day[..2].parse().ok()?, day[2..].parse().ok()?]
        }
        _ => {
            let year = (1..=MOST_YEAR_DIGITS).contains(&digits.len()).then(|| digits.parse().ok())??;
            let mark = if rest.0.starts_with('/') { "/" } else { "-" };
            [year, rest.one_of(mark)?.number(1..=2)?, rest.one_of(mark)?.number(1..=2)?]
        }
    };
    let days = day(sign * year, u32::try_from(month).ok()?, u32::try_from(of_month).ok()?)?;
    let mut seconds = i128::from(days) * i128::from(DAY);
    let (mut fraction, mut is_exact) = (0, true);
    let is_joined = rest.one_of("Tt").is_some();
    let is_apart = !is_joined && rest.blanks();
    if is_joined || is_apart && rest.0.starts_with(|c: char| c.is_ascii_digit()) {
        let part = |rest: &mut Rest<'_>, most: i64| rest.number(1..=2).filter(|value| *value < most);
        seconds += i128::from(part(&mut rest, 24)?) * 3600;
        if rest.one_of(":").is_some() {
            seconds += i128::from(part(&mut rest, 60)?) * 60;
            if rest.one_of(":").is_some() {
                seconds += i128::from(part(&mut rest, 60)?);
                if rest.one_of(".").is_some() {
                    (fraction, is_exact) = rest.fraction();
                }
            }
        }
        rest.blanks();
    } else if !is_apart && !rest.0.is_empty() {
        return None;
    }
    seconds -= i128::from(rest.zone()?);
    let attoseconds = seconds.checked_mul(SECOND)?.checked_add(fraction)?;
    rest.0.is_empty().then_some(Instant { attoseconds, is_exact })
}

/// Parses a length of time, returned as the instant that long after 1970: `10 min`, `1.5 h`, `2 days`, and pandas' `1
/// days 02:03:04`, `-1 days +23:59:59.5`. `None`: not a length of time.
pub fn duration(text: &str) -> Option<Instant> {
    let mut rest = Rest(text.trim());
    let mut sign = rest.sign().unwrap_or(1);
    let mut sum = Instant { attoseconds: 0, is_exact: true };
    let mut is_first = true;
    while is_first || !rest.0.is_empty() {
        rest.blanks();
        let own = if is_first { None } else { rest.sign() };
        let whole: i128 = rest.digits().parse().ok()?;
        let (length, is_exact) = match rest.one_of(":") {
            Some(rest) => {
                // The sign before the days does not apply to the clock that follows.
                sign = own.unwrap_or(if is_first { sign } else { 1 });
                rest.clock(whole)?
            }
            None if own.is_some() => return None,
            None => {
                let (fraction, is_whole) = if rest.one_of(".").is_some() { rest.fraction() } else { (0, true) };
                rest.blanks();
                let end = rest.0.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.0.len());
                let (unit, behind) = rest.0.split_at(end);
                rest.0 = behind;
                let step = step(unit)?;
                // A unit divides a second or is a whole number of seconds, so that the product fits in 128 bits.
                let (part, beyond) = match step / SECOND {
                    0 => (fraction * step / SECOND, fraction * step % SECOND),
                    seconds => (fraction * seconds, 0),
                };
                (whole.checked_mul(step)?.checked_add(part)?, is_whole && beyond == 0)
            }
        };
        // Rounds down for either sign.
        let length = if sign < 0 { -length - i128::from(!is_exact) } else { length };
        sum.attoseconds = sum.attoseconds.checked_add(length)?;
        sum.is_exact &= is_exact;
        is_first = false;
    }
    Some(sum)
}

/// Attoseconds of a unit of time, spelled as UDUNITS spells it.
pub fn step(unit: &str) -> Option<i128> {
    // `Ms` is a megasecond.
    let lower = if unit.chars().count() > 2 { unit.to_lowercase() } else { unit.to_owned() };
    Some(match lower.as_str() {
        "ns" | "nsec" | "nsecs" | "nanosec" | "nanosecs" | "nanosecond" | "nanoseconds" => SECOND / 1_000_000_000,
        // Unicode has two characters for micro, which look alike.
        "us" | "\u{b5}s" | "\u{3bc}s" | "usec" | "usecs" | "microsec" | "microsecs" | "microsecond"
        | "microseconds" => SECOND / 1_000_000,
        "ms" | "msec" | "msecs" | "millisec" | "millisecs" | "millisecond" | "milliseconds" => SECOND / 1_000,
        "s" | "sec" | "secs" | "second" | "seconds" => SECOND,
        "min" | "mins" | "minute" | "minutes" => 60 * SECOND,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600 * SECOND,
        "d" | "day" | "days" => i128::from(DAY) * SECOND,
        _ => return None,
    })
}

/// The part of a text that is not parsed yet.
struct Rest<'a>(&'a str);

impl Rest<'_> {
    /// Consumes one of these characters.
    fn one_of(&mut self, characters: &str) -> Option<&mut Self> {
        self.0 = self.0.strip_prefix(|c| characters.contains(c))?;
        Some(self)
    }

    /// Consumes blanks; returns whether there were any.
    fn blanks(&mut self) -> bool {
        let before = self.0.len();
        self.0 = self.0.trim_start();
        self.0.len() < before
    }

    fn sign(&mut self) -> Option<i64> {
        let sign = if self.0.starts_with('-') { -1 } else { 1 };
        self.one_of("+-").map(|_| sign)
    }

    fn digits(&mut self) -> &str {
        let end = self.0.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.0.len());
        let (digits, rest) = self.0.split_at(end);
        self.0 = rest;
        digits
    }

    fn number(&mut self, digits: std::ops::RangeInclusive<usize>) -> Option<i64> {
        let found = self.digits();
        digits.contains(&found.len()).then(|| found.parse().ok())?
    }

    /// Consumes the digits after a decimal point. Returns them in attoseconds, and whether that is exact.
    fn fraction(&mut self) -> (i128, bool) {
        let digits = self.digits();
        let (known, beyond) = digits.split_at(digits.len().min(18));
        let missing = 18_u32.saturating_sub(known.len() as u32);
        let value = known.bytes().fold(0, |value, digit| value * 10 + i128::from(digit - b'0'));
        (value * 10_i128.pow(missing), beyond.bytes().all(|digit| digit == b'0'))
    }

    /// Consumes the rest of a time such as `02:03:04.5`, from the minutes on. Returns the whole time in attoseconds,
    /// and whether that is exact.
    fn clock(&mut self, hours: i128) -> Option<(i128, bool)> {
        let minutes = self.number(2..=2).filter(|minutes| *minutes < 60)?;
        let seconds = self.one_of(":")?.number(2..=2).filter(|seconds| *seconds < 60)?;
        let (fraction, is_exact) = if self.one_of(".").is_some() { self.fraction() } else { (0, true) };
        let seconds = hours.checked_mul(3_600)?.checked_add(i128::from(minutes * 60 + seconds))?;
        Some((seconds.checked_mul(SECOND)?.checked_add(fraction)?, is_exact))
    }

    /// Consumes a zone: `Z`, `UTC`, `+02:00`, `+0200`, `-6`. Returns its seconds ahead of UTC; 0 if the text ends here.
    fn zone(&mut self) -> Option<i64> {
        for utc in ["Z", "z", "UTC", "GMT"] {
            if let Some(rest) = self.0.strip_prefix(utc) {
                self.0 = rest;
                return Some(0);
            }
        }
        if self.0.is_empty() {
            return Some(0);
        }
        let sign = self.sign();
        let digits = self.digits().to_owned();
        let (hours, minutes) = match digits.len() {
            1 | 2 if self.one_of(":").is_some() => (digits.as_str(), self.digits().to_owned()),
            1 | 2 => (digits.as_str(), "0".to_owned()),
            3 | 4 => (&digits[..digits.len() - 2], digits[digits.len() - 2..].to_owned()),
            _ => return None,
        };
        let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
        let seconds = (hours < 24 && minutes < 60).then_some(hours * 3600 + minutes * 60)?;
        // An offset without a sign has no direction, unless it is zero.
        if seconds == 0 { Some(0) } else { Some(sign? * seconds) }
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Datelike, NaiveDate};
    use proptest::prelude::*;

    use super::*;

    fn exact(text: &str) -> Option<i128> {
        instant(text).map(|instant| {
            assert!(instant.is_exact, "{text}");
            instant.attoseconds
        })
    }

    #[test]
    fn instants_are_written_in_many_ways() {
        let noon = DateTime::parse_from_rfc3339("2026-01-31T12:00:00Z").unwrap().timestamp();
        let noon = i128::from(noon) * SECOND;
        for text in [
            "2026-01-31T12:00:00Z",
            "2026-01-31 12:00",
            "2026-1-31 12",
            "+2026-01-31T12:00:00.000",
            "2026-01-31 14:00:00 +2:00",
            "2026-01-31T14:00:00+0200",
            "2026-01-31 06:00:0.0 -6",
            " 2026-01-31 12:0:0 UTC ",
            "2026-01-31 17:30:00+05:30",
            "2026-01-31 12:00:0.0 0:00",
            "2026-01-31 12:00:00 00",
            "2026/01/31 12:00",
            "2026/1/31T14:00:00+02:00",
            "20260131 12",
            "20260131T12:00:00Z",
        ] {
            assert_eq!(exact(text), Some(noon), "{text}");
        }
        assert_eq!(exact("2026-01-31"), Some(noon - 12 * 3600 * SECOND));
        assert_eq!(exact("2026-01-31 +1:00"), Some(noon - 13 * 3600 * SECOND));
        assert_eq!(exact("1970-01-01T00:00:00.123456789012345678"), Some(123_456_789_012_345_678));
        assert_eq!(exact("1969-12-31T23:59:59.5"), Some(-SECOND / 2));
        let between = instant("1970-01-01T00:00:00.0000000000000000001").unwrap();
        assert_eq!(between, Instant { attoseconds: 0, is_exact: false });
        for text in [
            "",
            "2026",
            "2026-01",
            "2026-02-30",
            "2026-13-01",
            "2026-01-31T",
            "2026-01-31T24:00",
            "2026-01-31 12:60",
            "2026-01-31x",
            "2026-01-31T12:00:00+24:00",
            "2026-01-31T12:00:60",
            "26-1-",
            "1700000000",
            "20260230",
            "2026/01-31",
            "2026-01/31",
            "202601311",
            "2026-01-31 12:",
            "2026-01-31 12:00:00 6:00",
            "2026-01-31 12:00 CET",
            "9999999999999-01-01",
            "2026-01-31T12:00:00+",
            "２０２６-01-01",
        ] {
            assert_eq!(instant(text), None, "{text:?}");
        }
    }

    /// Expected: `pandas.Timedelta(text).value`.
    #[test]
    fn durations_are_those_of_pandas() {
        let ns = |text: &str| {
            duration(text).map(|length| (length.attoseconds.div_euclid(SECOND / 1_000_000_000), length.is_exact))
        };
        for (text, expected) in [
            ("10 min", 600_000_000_000),
            ("1.5 h", 5_400_000_000_000),
            ("1.5h", 5_400_000_000_000),
            ("2 days", 172_800_000_000_000),
            ("1 days 02:03:04", 93_784_000_000_000),
            ("1 days 02:03:04.000000005", 93_784_000_000_005),
            ("02:03:04.5", 7_384_500_000_000),
            ("100:00:00", 360_000_000_000_000),
            ("-1 days +23:59:59.5", -500_000_000),
            ("-1 days 02:03:04", -79_016_000_000_000),
            ("1h 30min", 5_400_000_000_000),
            ("3 us", 3_000),
            ("0.25 us", 250),
            ("-90 s", -90_000_000_000),
        ] {
            assert_eq!(ns(text), Some((expected, true)), "{text}");
        }
        assert_eq!(duration("-0.0000000000000000001 s"), Some(Instant { attoseconds: -1, is_exact: false }));
        for text in [
            "",
            "10",
            "min",
            "1.5",
            "10 months",
            "1 days 2:3:4",
            "02:03",
            "02:60:00",
            "1 days -1 s",
            "1 days,",
            "9e9 s",
            "1 h x",
        ] {
            assert_eq!(duration(text), None, "{text:?}");
        }
        assert_eq!(duration(&format!("{} days", i128::MAX)), None);
    }

    proptest! {
        #[test]
        fn days_are_those_of_chrono(day_number in -95_000_000..95_000_000_i64) {
            let chrono = NaiveDate::from_num_days_from_ce_opt((day_number + 719_163) as i32).unwrap();
            let expected = (i64::from(chrono.year()), chrono.month(), chrono.day());
            prop_assert_eq!(date(day_number), expected);
            prop_assert_eq!(day(expected.0, expected.1, expected.2), Some(day_number));
        }

        #[test]
        fn every_day_has_one_date(number in i64::MIN / 86_400..i64::MAX / 86_400) {
            let (year, month, of_month) = date(number);
            prop_assert_eq!(day(year, month, of_month), Some(number));
        }

        #[test]
        fn no_other_dates_are_there(year in -260_000..260_000_i64, month in 0..15_u32, of_month in 0..34_u32) {
            let chrono = NaiveDate::from_ymd_opt(year as i32, month, of_month);
            let expected = chrono.map(|date| i64::from(date.num_days_from_ce()) - 719_163);
            prop_assert_eq!(day(year, month, of_month), expected);
        }

        #[test]
        fn whatever_is_written_is_answered(text in "[-+0-9TZ:. ]{0,40}|.{0,20}") {
            let _ = instant(&text);
        }

        #[test]
        fn whatever_is_written_as_a_length_is_answered(text in "[-+0-9:. a-z]{0,40}|.{0,20}") {
            let _ = duration(&text);
        }
    }
}
