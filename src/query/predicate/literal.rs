//! Places literal values exactly among the values of a type, whatever their digits.

use crate::calendar;
use crate::table::Times;

/// Most digits of an integer that is placed exactly; one with more lies beyond all values. No column type has more than
/// 20.
const MOST_DIGITS: i64 = 30;

/// Where a literal lies among the values of a type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::query) struct Point<T> {
    /// The greatest value less than the literal.
    pub below: Option<T>,
    /// The value equal to the literal.
    pub at: Option<T>,
    /// The least value greater than the literal.
    pub above: Option<T>,
}

/// Places a decimal number, `inf` or `nan` among the integers. `None`: not a number.
pub(in crate::query) fn integer(text: &str) -> Option<Point<i128>> {
    shifted(text, 0)
}

/// As [`integer`], for the number × 10^`shift`.
fn shifted(text: &str, shift: i64) -> Option<Point<i128>> {
    // Accepts exactly the texts that parse as a number.
    let rough: f64 = text.parse().ok()?;
    if rough.is_nan() {
        return Some(Point { below: None, at: None, above: None });
    }
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let beyond = if negative {
        Point { below: None, at: None, above: Some(i128::MIN) }
    } else {
        Point { below: Some(i128::MAX), at: None, above: None }
    };
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Some(beyond);
    }
    let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    // An exponent beyond i64 is replaced by another one far out of range.
    let exponent: i64 = exponent.parse().unwrap_or(if exponent.starts_with('-') { i64::MIN / 2 } else { i64::MAX / 2 });
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    let digits = &digits[zeros..];
    if digits.is_empty() {
        return Some(whole_number(0));
    }
    // The number is 0.digits × 10^point.
    let point = (whole.len() as i64).saturating_sub(zeros as i64).saturating_add(exponent).saturating_add(shift);
    if point > MOST_DIGITS {
        return Some(beyond);
    }
    let of_whole = usize::try_from(point).unwrap_or(0);
    let whole = digits.iter().chain(std::iter::repeat(&b'0')).take(of_whole);
    let magnitude = whole.fold(0_i128, |sum, digit| sum * 10 + i128::from(digit - b'0'));
    let is_whole = digits.iter().skip(of_whole).all(|digit| *digit == b'0');
    Some(match (is_whole, negative) {
        (true, _) => whole_number(if negative { -magnitude } else { magnitude }),
        (false, false) => Point { below: Some(magnitude), at: None, above: Some(magnitude + 1) },
        (false, true) => Point { below: Some(-magnitude - 1), at: None, above: Some(-magnitude) },
    })
}

fn whole_number(value: i128) -> Point<i128> {
    Point { below: Some(value - 1), at: Some(value), above: Some(value + 1) }
}

/// Places an instant among the integers that stand for instants. `None`: not an instant.
pub(in crate::query) fn instant(text: &str, times: Times) -> Option<Point<i128>> {
    Some(placed(times.place(calendar::instant(text)?)))
}

/// Places a duration among the integers that count its unit. `None`: not a duration.
pub(in crate::query) fn duration(text: &str, times: Times) -> Option<Point<i128>> {
    Some(placed(times.place(calendar::duration(text)?)))
}

/// Makes a point of the greatest value at or before an instant or duration, and whether it equals that value.
fn placed((place, is_there): (i128, bool)) -> Point<i128> {
    let between = Point { below: Some(place), at: None, above: Some(place + 1) };
    if is_there { whole_number(place) } else { between }
}

/// Widths of floating-point types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::query) enum FloatWidth {
    Half,
    Single,
    Double,
}

/// Places a decimal number, `inf` or `nan` among the floats of a width, as doubles. `None`: not a number. A decimal
/// takes the nearest float of that width, so that it equals a value shown with these digits; a number beyond the
/// greatest float lies between that and infinity.
pub(in crate::query) fn float(text: &str, width: FloatWidth) -> Option<Point<f64>> {
    let double: f64 = text.parse().ok()?;
    let value = match width {
        FloatWidth::Half => nearest_half(text, double),
        FloatWidth::Single => f64::from(text.parse::<f32>().ok()?),
        FloatWidth::Double => double,
    };
    if value.is_nan() {
        return Some(Point { below: None, at: None, above: None });
    }
    let is_infinity = text.trim_start_matches(['+', '-']).starts_with(['i', 'I']);
    if value.is_finite() || is_infinity {
        let below = (value != f64::NEG_INFINITY).then(|| value.next_down());
        let above = (value != f64::INFINITY).then(|| value.next_up());
        return Some(Point { below, at: Some(value), above });
    }
    let greatest = match width {
        FloatWidth::Half => half::f16::MAX.to_f64(),
        FloatWidth::Single => f64::from(f32::MAX),
        FloatWidth::Double => f64::MAX,
    };
    Some(if value > 0.0 {
        Point { below: Some(greatest), at: None, above: Some(f64::INFINITY) }
    } else {
        Point { below: Some(f64::NEG_INFINITY), at: None, above: Some(-greatest) }
    })
}

/// Returns the nearest 16-bit float to a decimal whose nearest double is `double`. That double may lie halfway between
/// two such floats where the decimal does not; besides, `half::f16::from_f64` rounds twice.
fn nearest_half(text: &str, double: f64) -> f64 {
    /// Fractional bits of the smallest value halfway between two floats.
    const FRACTION: i32 = 25;
    let magnitude = double.abs();
    if magnitude == 0.0 || magnitude > f64::from(1 << 17) {
        return if magnitude == 0.0 { double } else { f64::INFINITY.copysign(double) };
    }
    // Distance of neighbouring floats here: 1/1024 of the power of two below. Dividing and multiplying by it is exact.
    let power = f64::from_bits(magnitude.to_bits() & f64::INFINITY.to_bits());
    let step = half::f16::MIN_POSITIVE_SUBNORMAL.to_f64().max(power / 1024.0);
    let steps = magnitude / step;
    let mut rounded = steps.round_ties_even();
    if steps.fract() == 0.5 {
        // The halfway point × 10^25, which is an integer.
        let halfway = (double * f64::from(1 << FRACTION)) as i128 * 5_i128.pow(FRACTION as u32);
        let place = shifted(text, FRACTION.into());
        let beside = place.filter(|place| place.at != Some(halfway)).and_then(|place| place.below);
        if let Some(below) = beside {
            let is_farther = (below >= halfway) == (double > 0.0);
            rounded = if is_farther { steps.ceil() } else { steps.floor() };
        }
    }
    let nearest = rounded * step;
    let is_past = nearest > half::f16::MAX.to_f64();
    if is_past { f64::INFINITY.copysign(double) } else { nearest.copysign(double) }
}

/// Returns the bytes that hexadecimal digits stand for. `None`: other characters, or an odd number of digits.
pub fn hexadecimal(text: &[u8]) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.iter().map(|byte| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn between(below: i128) -> Option<Point<i128>> {
        Some(Point { below: Some(below), at: None, above: Some(below + 1) })
    }

    #[test]
    fn decimals_lie_where_they_lie() {
        assert_eq!(integer("5"), Some(whole_number(5)));
        assert_eq!(integer("-5.000"), Some(whole_number(-5)));
        assert_eq!(integer("1.5e1"), Some(whole_number(15)));
        assert_eq!(integer("15000e-3"), Some(whole_number(15)));
        assert_eq!(integer("0e99999999999999999999"), Some(whole_number(0)));
        assert_eq!(integer("5.5"), between(5));
        assert_eq!(integer("-5.5"), between(-6));
        assert_eq!(integer("-.5"), between(-1));
        assert_eq!(integer("1e-400"), between(0));
        assert_eq!(integer("18446744073709551615"), Some(whole_number(u64::MAX.into())));
        assert_eq!(integer("9007199254740993"), Some(whole_number(9_007_199_254_740_993)));
        assert_eq!(integer("1e400").unwrap().below, Some(i128::MAX));
        assert_eq!(integer("-inf").unwrap().above, Some(i128::MIN));
        assert_eq!(integer("NaN").unwrap().at, None);
        for text in ["", "-", "5x", "0x10", " 5", "1_000", "e5", "."] {
            assert_eq!(integer(text), None, "{text:?}");
        }
    }

    #[test]
    fn decimals_are_the_nearest_float_of_their_width() {
        assert_eq!(float("0.1", FloatWidth::Single).unwrap().at, Some(f64::from(0.1_f32)));
        assert_eq!(float("0.1", FloatWidth::Double).unwrap().at, Some(0.1));
        assert_eq!(float("1e39", FloatWidth::Single).unwrap().below, Some(f64::from(f32::MAX)));
        assert_eq!(float("1e39", FloatWidth::Single).unwrap().at, None);
        assert_eq!(float("-1e400", FloatWidth::Double).unwrap().above, Some(f64::MIN));
        assert_eq!(float("inf", FloatWidth::Half).unwrap().at, Some(f64::INFINITY));
        assert_eq!(float("inf", FloatWidth::Half).unwrap().above, None);
        assert_eq!(float("five", FloatWidth::Double), None);
    }

    /// Expected values: exact fractions in Python (`scripts/hepfs_tools/selecting/truth.py`, `nearest`).
    #[test]
    fn decimals_are_rounded_to_halves_once() {
        let half = |text: &str| float(text, FloatWidth::Half).unwrap();
        assert_eq!(half("65519.999").at, Some(65504.0));
        assert_eq!(half("-65519.99999999999999999999").at, Some(-65504.0));
        assert_eq!((half("65520").at, half("65520").below), (None, Some(65504.0)));
        assert_eq!(half("-65520").above, Some(-65504.0));
        assert_eq!(half("1.00048828125").at, Some(1.0));
        assert_eq!(half("1.00048828125000000000000000001").at, Some(1.0009765625));
        assert_eq!(half("1.00146484374999999999999999999").at, Some(1.0009765625));
        assert_eq!(half("-1.00146484375").at, Some(-1.001953125));
        assert_eq!(half("2.98023223876953125e-8").at, Some(0.0));
        assert_eq!(half("2.980232238769531250000000000000001e-8").at, Some(5.960464477539063e-8));
        assert_eq!(half("0.1").at, Some(0.0999755859375));
        assert_eq!(half("1e-400").at, Some(0.0));
        assert_eq!(half("1e400").below, Some(65504.0));
    }

    proptest! {
        #[test]
        fn integers_and_floats_agree(whole in -(1_i64 << 50)..1 << 50, eighths in 0..8_u8) {
            let exact = whole as f64 + f64::from(eighths) / 8.0;
            let point = integer(&format!("{exact:?}")).unwrap();
            prop_assert_eq!(point.at.is_some(), eighths == 0);
            prop_assert_eq!(point.at.or(point.below), Some(i128::from(whole)));
        }
    }
}
