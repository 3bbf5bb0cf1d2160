//! Numbers and instants as people read them: four digits, in groups of three.

use crate::activity::words;
use crate::calendar;

/// Numbers from here on have no groups, since they would be too long.
const LONG: u64 = 1_000_000_000_000_000;

/// Smaller numbers have a power of ten.
const LEAST_PLAIN: f64 = 1e-3;

/// A whole number: `-1 204`.
pub fn whole(number: i128) -> String {
    let sign = if number < 0 { "-" } else { "" };
    match u64::try_from(number.unsigned_abs()) {
        Ok(size) if size < LONG => format!("{sign}{}", words::count(size)),
        _ => number.to_string(),
    }
}

/// Half of an odd number: `-2.5`.
pub fn half(odd: i128) -> String {
    // The whole part of -0.5 has no sign of its own.
    let sign = if odd == -1 { "-" } else { "" };
    format!("{sign}{}.5", whole(odd / 2))
}

/// A number with the digits that tell it apart from others within `span`: four, or more.
pub fn real_within(number: f64, span: f64) -> String {
    let (size, finest) = (number.abs(), span / 1000.0);
    // Below that, four digits suffice; from 10^15 on a float has no digits behind the point.
    if !(size.is_finite() && finest > 0.0 && finest.is_finite()) || size < finest * 1e4 || size >= 1e15 {
        return real(number);
    }
    let behind = -finest.log10().floor();
    if size < LEAST_PLAIN {
        return power_of_ten(number, (behind + size.log10().floor()).clamp(2.0, 9.0) as usize);
    }
    grouped(number, behind.clamp(0.0, 9.0) as usize)
}

/// A number of seven digits, without groups: `12.01662`, as C's `%.7g`. `behind`: fewest digits behind the point of a
/// number below 10^11, such as an instant in seconds.
pub fn seven(number: f64, behind: usize) -> String {
    let size = number.abs();
    let plain = 1e-4..if behind > 0 { 1e11 } else { 1e7 };
    match size {
        _ if size == 0.0 || !size.is_finite() => number.to_string(),
        _ if !plain.contains(&size) => power_of_ten(number, 6),
        _ => {
            let digits = ((6 - size.log10().floor() as i32).max(0) as usize).max(behind);
            without_zeros(&format!("{number:.digits$}")).to_owned()
        }
    }
}

/// A number of four digits: `0.001036`, `29 459`, `1.23e-7`.
pub fn real(number: f64) -> String {
    let size = number.abs();
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if size.is_infinite() {
        return if number < 0.0 { "-∞" } else { "∞" }.to_owned();
    }
    if size == 0.0 {
        return "0".to_owned();
    }
    if !(LEAST_PLAIN..1e6).contains(&size) {
        return power_of_ten(number, 2);
    }
    grouped(number, (3 - size.log10().floor() as i32).max(0) as usize)
}

/// A number with a power of ten, with at most `digits` digits behind the point: `1.23e-7`.
fn power_of_ten(number: f64, digits: usize) -> String {
    let text = format!("{number:.digits$e}");
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{}e{power}", without_zeros(digits))
}

/// A number with at most `digits` digits behind the point, those before it in groups.
fn grouped(number: f64, digits: usize) -> String {
    let text = format!("{number:.digits$}");
    let text = without_zeros(&text);
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |text| ("-", text));
    let (before, behind) = text.split_at(text.find('.').unwrap_or(text.len()));
    format!("{sign}{}{behind}", before.parse().map_or_else(|_| before.to_owned(), words::count))
}

fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// The time of a second of a day: `06:00:00`.
fn clock(second: i64) -> String {
    format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

/// The parts of a second, to three digits.
fn fraction(rest: i128, per_second: i64) -> String {
    if per_second < 1000 { String::new() } else { format!(".{:03}", rest * 1000 / i128::from(per_second)) }
}

/// The day of an instant: `2026-01-31`.
fn date(day: i64) -> String {
    let (year, month, day) = calendar::date(day);
    format!("{year:04}-{month:02}-{day:02}")
}

/// An instant, counted in parts of a second: `2026-01-31 06:00:00`. `span`, in the same parts, tells how many digits
/// distinguish it from others; `short` leaves out the parts that others share.
pub fn instant(number: i128, per_second: i64, span: i128, short: bool) -> String {
    let (per_second_wide, day) = (i128::from(per_second), i128::from(calendar::DAY));
    let (seconds, rest) = (number.div_euclid(per_second_wide), number.rem_euclid(per_second_wide));
    // Instants are 64-bit integers, so days and seconds of a day are too.
    let (of, second) = (seconds.div_euclid(day) as i64, seconds.rem_euclid(day) as i64);
    let (date, clock) = (date(of), clock(second));
    let span = span / per_second_wide;
    let fraction = if span < 10 { fraction(rest, per_second) } else { String::new() };
    match short {
        true if span >= 400 * day => date,
        true if span >= day => format!("{} {}", date.get(date.len() - 5..).unwrap_or(&date), &clock[..5]),
        true => clock + &fraction,
        false => format!("{date} {clock}{fraction}"),
    }
}

/// An instant in seconds since 1970, to the minute: `2026-01-31 06:00`.
pub fn minute(seconds: i64) -> String {
    let (day, second) = (seconds.div_euclid(calendar::DAY), seconds.rem_euclid(calendar::DAY));
    format!("{} {}", date(day), &clock(second)[..5])
}

/// A day, counted from 1970.
pub fn day(number: i128) -> String {
    i64::try_from(number).map_or_else(|_| number.to_string(), date)
}

/// A time of day, counted in parts of a second: `06:00:00.123`.
pub fn time_of_day(number: i128, per_second: i64) -> String {
    let (seconds, rest) = (number.div_euclid(per_second.into()), number.rem_euclid(per_second.into()));
    format!("{}{}", clock(seconds as i64), fraction(rest, per_second))
}

/// A share: `2.1 %`.
pub fn share(part: u64, of: u64) -> String {
    if part == 0 || of == 0 {
        return "0 %".to_owned();
    }
    if part == of {
        return "100 %".to_owned();
    }
    let share = part as f64 / of as f64 * 100.0;
    match share {
        share if share < 0.05 => "< 0.05 %".to_owned(),
        share if share >= 99.95 => "> 99.9 %".to_owned(),
        share => format!("{share:.1} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        let numbers = [0.0, 0.001_036_4, -6.124, 29_458.7, 999_999.4, 1e6, 1.234e-7, f64::MAX, 21.5, 5e-324, 100.0];
        let texts =
            ["0", "0.001036", "-6.124", "29 459", "999 999", "1e6", "1.23e-7", "1.8e308", "21.5", "4.94e-324", "100"];
        assert_eq!(numbers.map(real), texts);
        assert_eq!([f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(real), ["NaN", "∞", "-∞"]);
        let numbers = [0, -1_204, i128::from(u64::MAX), i128::from(i64::MIN)];
        let texts = ["0", "-1 204", "18446744073709551615", "-9223372036854775808"];
        assert_eq!(numbers.map(whole), texts);
        // As C's %.7g.
        let numbers = [12.016_622_183, 0.1, 0.0, 1e7, -1.234_567_89e-9, 9_999_999.7, f64::INFINITY, f64::NAN, 100.0];
        let texts = ["12.01662", "0.1", "0", "1e7", "-1.234568e-9", "10000000", "inf", "NaN", "100"];
        assert_eq!(numbers.map(|number| seven(number, 0)), texts);
        // As C's %.4f, without zeros at the end.
        let numbers = [1_679_102_554.814_31, -12_345_678.0, 0.1, 99_999_999_999.96, 1.5e11];
        assert_eq!(
            numbers.map(|number| seven(number, 4)),
            ["1679102554.8143", "-12345678", "0.1", "99999999999.96", "1.5e11"]
        );
    }

    #[test]
    fn numbers_that_lie_close_together_have_more_digits() {
        let texts = [1_679_102_554.81, 1_679_102_555.0, -20.0].map(|number| real_within(number, 0.15));
        assert_eq!(texts, ["1 679 102 554.81", "1 679 102 555", "-20"]);
        assert_eq!(real_within(1_679_102_554.81, 1e7), "1 679 102 555");
        assert_eq!([0.0, 1e9, f64::MAX].map(|span| real_within(5.432_109_8, span)), ["5.432", "5.432", "5.432"]);
        assert_eq!(real_within(1.000_000_123, 1e-7), "1.000000123");
        assert_eq!(real_within(f64::INFINITY, 1.0), "∞");
        let texts = [9.623_45e-8, -1.04e-7, 0.0].map(|number| real_within(number, 8e-9));
        assert_eq!(texts, ["9.6235e-8", "-1.04e-7", "0"]);
    }

    #[test]
    fn instants_have_the_digits_that_tell_them_apart() {
        let (number, second) = (1_769_839_200_007_212_625, 1_000_000_000);
        let of_seconds = |seconds: i128, short| instant(number, second as i64, seconds * second, short);
        assert_eq!(of_seconds(10_000, false), "2026-01-31 06:00:00");
        assert_eq!(of_seconds(5, false), "2026-01-31 06:00:00.007");
        assert_eq!(
            [5, 10_000, 200_000, 40_000_000].map(|span| of_seconds(span, true)),
            ["06:00:00.007", "06:00:00", "01-31 06:00", "2026-01-31"]
        );
        assert_eq!(instant(i64::MIN.into(), 1, 0, false), "-292277022657-01-27 08:29:52");
        assert_eq!((day(-1), time_of_day(21_600_123, 1000)), ("1969-12-31".into(), "06:00:00.123".into()));
    }

    #[test]
    fn shares_are_never_rounded_to_none_or_all() {
        assert_eq!([0, 1, 21, 999, 1000].map(|part| share(part, 1000)), ["0 %", "0.1 %", "2.1 %", "99.9 %", "100 %"]);
        assert_eq!((share(1, 1 << 40), share((1 << 40) - 1, 1 << 40)), ("< 0.05 %".into(), "> 99.9 %".into()));
    }
}
