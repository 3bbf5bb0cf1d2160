//! Instants in ISO 8601: `2026-01-31T12:00:00.123Z`, without the `Z` if they have no zone. A year past 9999 or below 0
//! has a sign.

use std::ops::Range;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_buffer::NullBuffer;
use arrow_schema::TimeUnit;

use super::style::Style;
use super::{CellWriter, Frame, column_by, total_by};
use crate::calendar;

/// Number of bytes of `2026-01-31T12:00:00Z`.
const SHORTEST: usize = 20;

/// Number of bytes of the longest text: a sign and twelve digits of the year, nine digits after the point.
const LONGEST: usize = SHORTEST + 9 + 10;

/// Days from 1970-01-01 to the start and to the end of the years with four digits.
const USUAL: [i64; 2] = [-719_528, 2_932_897];

/// Returns the digits of the fraction of a second, and their power of ten.
fn digits(unit: TimeUnit) -> (usize, i64) {
    match unit {
        TimeUnit::Second => (0, 1),
        TimeUnit::Millisecond => (3, 1_000),
        TimeUnit::Microsecond => (6, 1_000_000),
        TimeUnit::Nanosecond => (9, 1_000_000_000),
    }
}

/// Returns the bytes of an instant in a year of four digits.
fn usual_length(digits: usize) -> usize {
    SHORTEST + digits + usize::from(digits > 0)
}

/// Returns the fewest and the most bytes of a value.
pub(in crate::views::text) fn lengths(unit: TimeUnit, is_zoned: bool) -> [u64; 2] {
    let (digits, per_second) = digits(unit);
    let [least, greatest] = [i64::MIN, i64::MAX].map(|value| text(value, digits, per_second).1);
    let lengths = [usual_length(digits), least.max(greatest)];
    lengths.map(|length| (length - usize::from(!is_zoned)) as u64)
}

/// Returns the text of an instant at the start of a buffer, and the length of the text.
#[inline]
fn text(value: i64, digits: usize, per_second: i64) -> ([u8; LONGEST], usize) {
    let mut out = [b'0'; LONGEST];
    let (seconds, mut fraction) = (value.div_euclid(per_second), value.rem_euclid(per_second));
    let (day, mut second) = (seconds.div_euclid(calendar::DAY), seconds.rem_euclid(calendar::DAY));
    let (year, month, of_month) = calendar::date(day);
    let is_usual = (0..10_000).contains(&year);
    let mut rest = year.unsigned_abs();
    let start = usize::from(!is_usual);
    let mut end = start + (rest.checked_ilog10().unwrap_or(0) as usize + 1).max(4);
    for at in (start..end).rev() {
        out[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    if !is_usual {
        out[0] = if year < 0 { b'-' } else { b'+' };
    }
    out[end] = b'-';
    two(&mut out, end + 1, month as u8, b'-');
    two(&mut out, end + 4, of_month as u8, b'T');
    let hour = (second / 3600) as u8;
    second %= 3600;
    two(&mut out, end + 7, hour, b':');
    two(&mut out, end + 10, (second / 60) as u8, b':');
    two(&mut out, end + 13, (second % 60) as u8, b'.');
    end += 15;
    if digits > 0 {
        end += 1 + digits;
        for at in (end - digits..end).rev() {
            out[at] = b'0' + (fraction % 10) as u8;
            fraction /= 10;
        }
    }
    out[end] = b'Z';
    (out, end + 1)
}

/// Writes two digits, and the byte `behind` them.
fn two(out: &mut [u8; LONGEST], at: usize, number: u8, behind: u8) {
    out[at] = b'0' + number / 10;
    out[at + 1] = b'0' + number % 10;
    out[at + 2] = behind;
}

/// Cells of instants in one unit.
pub(super) struct TimeCells<'a> {
    values: &'a [i64],
    digits: usize,
    per_second: i64,
    /// Range of the values whose years have four digits.
    usual: Range<i64>,
    /// Trailing bytes to drop: the `Z`, if there is no zone.
    cut: usize,
}

impl<'a> TimeCells<'a> {
    /// Returns the cells of an array. `None`: it has no instants in this unit.
    pub fn new(unit: TimeUnit, is_zoned: bool, array: &'a dyn Array) -> Option<Self> {
        let values: &[i64] = match unit {
            TimeUnit::Second => array.as_primitive_opt::<TimestampSecondType>()?.values(),
            TimeUnit::Millisecond => array.as_primitive_opt::<TimestampMillisecondType>()?.values(),
            TimeUnit::Microsecond => array.as_primitive_opt::<TimestampMicrosecondType>()?.values(),
            TimeUnit::Nanosecond => array.as_primitive_opt::<TimestampNanosecondType>()?.values(),
        };
        let (digits, per_second) = digits(unit);
        let [first, end] = USUAL.map(|day| (day * calendar::DAY).saturating_mul(per_second));
        Some(Self { values, digits, per_second, usual: first..end, cut: usize::from(!is_zoned) })
    }

    #[inline]
    fn text(&self, row: usize) -> ([u8; LONGEST], usize) {
        let (text, length) = text(self.values[row], self.digits, self.per_second);
        (text, length - self.cut)
    }

    fn bytes(&self, row: usize) -> usize {
        let is_usual = self.usual.contains(&self.values[row]);
        if is_usual { usual_length(self.digits) - self.cut } else { self.text(row).1 }
    }
}

impl<S: Style> CellWriter<S> for TimeCells<'_> {
    fn write(&self, row: usize, out: &mut Vec<u8>) {
        let (text, length) = self.text(row);
        S::clean_string(&text[..length], out);
    }

    fn length(&self, row: usize, _: &mut Vec<u8>) -> usize {
        S::clean_string_length(self.bytes(row))
    }

    fn total(&self, rows: Range<usize>, nulls: Option<&NullBuffer>) -> (u64, u64) {
        total_by(rows, nulls, |row| S::clean_string_length(self.bytes(row)) as u64)
    }

    fn column(&self, rows: Range<usize>, nulls: Option<&NullBuffer>, frame: Frame<'_>, out: &mut Vec<u8>) {
        column_by(rows, nulls, frame, out, LONGEST + 2 * S::AROUND.len(), |row, room| {
            let (text, length) = self.text(row);
            room.extend(S::AROUND);
            room.extend(&text[..length]);
            room.extend(S::AROUND);
        });
    }
}

/// Cells of days since 1970-01-01, written as dates.
pub(super) struct Days<'a>(pub &'a [i32]);

impl<S: Style> CellWriter<S> for Days<'_> {
    fn write(&self, row: usize, out: &mut Vec<u8>) {
        let (text, length) = text(i64::from(self.0[row]) * calendar::DAY, 0, 1);
        // A date has neither the time of day nor the `Z`.
        S::clean_string(&text[..length - "T00:00:00Z".len()], out);
    }
}

/// Cells of times of day, in units of 10^-`digits` s.
pub(super) struct TimesOfDay {
    pub values: Vec<i64>,
    pub digits: usize,
}

impl<S: Style> CellWriter<S> for TimesOfDay {
    fn write(&self, row: usize, out: &mut Vec<u8>) {
        let (value, per_second) = (self.values[row], 10i64.pow(self.digits as u32));
        let (seconds, fraction) = (value.div_euclid(per_second), value.rem_euclid(per_second));
        let [hours, minutes] = [seconds.div_euclid(3600), seconds.rem_euclid(3600) / 60];
        let digits = self.digits;
        let text = format!("{hours:02}:{minutes:02}:{:02}.{fraction:0digits$}", seconds.rem_euclid(60));
        S::clean_string(text.as_bytes(), out);
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, SecondsFormat};
    use proptest::prelude::*;

    use super::*;

    fn shown(value: i64, unit: TimeUnit) -> String {
        let (digits, per_second) = digits(unit);
        let (text, length) = text(value, digits, per_second);
        let shown = String::from_utf8(text[..length].to_vec()).unwrap();
        let [least, most] = lengths(unit, true);
        assert!((least..=most).contains(&(length as u64)), "{shown}");
        shown
    }

    /// Expected: `numpy.datetime_as_string`, with a sign before years past 9999 and four digits in each, as ISO 8601
    /// has them.
    #[test]
    fn the_ends_of_64_bits() {
        assert_eq!(shown(i64::MIN, TimeUnit::Nanosecond), "1677-09-21T00:12:43.145224192Z");
        assert_eq!(shown(i64::MAX, TimeUnit::Nanosecond), "2262-04-11T23:47:16.854775807Z");
        assert_eq!(shown(i64::MAX, TimeUnit::Microsecond), "+294247-01-10T04:00:54.775807Z");
        assert_eq!(shown(i64::MIN + 1, TimeUnit::Microsecond), "-290308-12-21T19:59:05.224193Z");
        assert_eq!(shown(i64::MAX, TimeUnit::Millisecond), "+292278994-08-17T07:12:55.807Z");
        assert_eq!(shown(i64::MIN + 1, TimeUnit::Millisecond), "-292275055-05-16T16:47:04.193Z");
        assert_eq!(shown(-62_167_219_201, TimeUnit::Second), "-0001-12-31T23:59:59Z");
        assert_eq!(shown(-62_167_219_200, TimeUnit::Second), "0000-01-01T00:00:00Z");
        assert_eq!(shown(253_402_300_799, TimeUnit::Second), "9999-12-31T23:59:59Z");
        assert_eq!(shown(253_402_300_800, TimeUnit::Second), "+10000-01-01T00:00:00Z");
    }

    proptest! {
        #[test]
        fn chrono_says_the_same(seconds in -62_167_219_200..253_402_300_800_i64, nanoseconds in any::<i64>()) {
            let chrono = DateTime::from_timestamp(seconds, 0).unwrap();
            let expected = chrono.to_rfc3339_opts(SecondsFormat::Secs, true);
            prop_assert_eq!(shown(seconds, TimeUnit::Second), expected);
            let expected = DateTime::from_timestamp_nanos(nanoseconds).to_rfc3339_opts(SecondsFormat::Nanos, true);
            prop_assert_eq!(shown(nanoseconds, TimeUnit::Nanosecond), expected);
        }
    }
}
