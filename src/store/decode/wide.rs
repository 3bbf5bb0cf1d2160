//! Converts floating-point numbers of more than 64 bits, C's `long double`, to the nearest float64.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array};

use super::{Oddities, Oddity};
use crate::catalogue::{ByteOrder, FloatFormat};

/// Bits of the exponent in both formats.
const EXPONENT: u32 = 15;
/// Bias of the exponent in both formats.
const BIAS: i32 = (1 << (EXPONENT - 1)) - 1;

/// Exponent of the smallest power of two in float64.
const LEAST: i32 = -1074;

/// Numbers of `width` bytes each, 10 to 16; those that float64 cannot represent are odd.
pub(super) fn floats(
    bytes: &[u8],
    width: usize,
    order: ByteOrder,
    format: FloatFormat,
    oddities: &mut Oddities,
) -> ArrayRef {
    let mut values = Vec::with_capacity(bytes.len() / width.max(1));
    for (row, cell) in (0..).zip(bytes.chunks_exact(width.max(1))) {
        let mut wide = [0; 16];
        let used = cell.len().min(wide.len());
        match order {
            ByteOrder::Big => wide.iter_mut().zip(cell.iter().rev()).for_each(|(to, from)| *to = *from),
            _ => wide[..used].copy_from_slice(&cell[..used]),
        }
        let (value, is_exact) = read(u128::from_le_bytes(wide), format);
        if !is_exact {
            oddities.add(Oddity::Nearest, row);
        }
        values.push(value);
    }
    Arc::new(Float64Array::from(values))
}

/// The nearest float64 to the number with these bits, and whether it is exact.
fn read(bits: u128, format: FloatFormat) -> (f64, bool) {
    // Position of the point and of the sign: binary128 omits the leading bit, x87 stores it.
    let (fraction, sign) = if format == FloatFormat::Extended { (63, 79) } else { (112, 127) };
    let exponent = (bits >> (sign - EXPONENT)) as i32 & ((1 << EXPONENT) - 1);
    let below = bits & ((1 << fraction) - 1);
    let is_leading = if format == FloatFormat::Extended { bits >> fraction & 1 == 1 } else { exponent > 0 };
    let (value, is_exact) = if exponent == (1 << EXPONENT) - 1 {
        (if below == 0 { f64::INFINITY } else { f64::NAN }, true)
    } else {
        let mantissa = below | u128::from(is_leading) << fraction;
        nearest(mantissa, exponent.max(1) - BIAS - fraction)
    };
    (if bits >> sign & 1 == 1 { -value } else { value }, is_exact)
}

/// The float64 nearest to `mantissa` times a power of two (ties to even), and whether it is exact.
fn nearest(mantissa: u128, power: i32) -> (f64, bool) {
    let digits = (u128::BITS - mantissa.leading_zeros()) as i32;
    // Bits without a place: beyond 53 digits, or below the smallest power.
    let lost = (digits - f64::MANTISSA_DIGITS as i32).max(LEAST - power).max(0);
    if lost > digits {
        // Less than half of the smallest number.
        return (0.0, mantissa == 0);
    }
    let kept = mantissa.checked_shr(lost as u32).unwrap_or(0);
    let rest = mantissa - kept.checked_shl(lost as u32).unwrap_or(0);
    let half = if lost > 0 { 1 << (lost - 1) } else { 0 };
    let is_up = lost > 0 && (rest > half || rest == half && kept & 1 == 1);
    // At most 2^53, and scaling by a power of two is exact: no second rounding.
    let kept = (kept + u128::from(is_up)) as f64;
    let value = kept * power_of_two(power + lost);
    (value, rest == 0 && value.is_finite())
}

/// Two to the power of `power`, at least the smallest power.
fn power_of_two(power: i32) -> f64 {
    match power {
        1024.. => f64::INFINITY,
        -1022.. => f64::from_bits(((power + 1023) as u64) << 52),
        _ => f64::from_bits(1 << (power - LEAST).max(0)),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Float64Type;

    use super::*;

    /// The bits of a number, and NumPy's result for `astype("f8")`.
    fn same(format: FloatFormat, bits: u128, expected: f64, is_exact: bool) {
        for (order, width) in [(ByteOrder::Little, 16), (ByteOrder::Big, 16), (ByteOrder::Little, 10)] {
            if width == 10 && format == FloatFormat::Quadruple {
                continue;
            }
            let mut bytes = bits.to_le_bytes()[..width].to_vec();
            if order == ByteOrder::Big {
                bytes.reverse();
            }
            let mut odd = Oddities::new();
            let read = floats(&bytes, width, order, format, &mut odd);
            let read = read.as_primitive::<Float64Type>().value(0);
            let is_same = read.to_bits() == expected.to_bits() || read.is_nan() && expected.is_nan();
            assert!(is_same, "{bits:#x} is {read:e}, expected {expected:e}");
            assert_eq!(odd.is_empty(), is_exact, "{bits:#x}");
        }
    }

    #[test]
    fn numbers_of_x87_are_the_nearest() {
        let same = |bits, expected, is_exact| same(FloatFormat::Extended, bits, expected, is_exact);
        same(0x3fff_8000_0000_0000_0000, 1.0, true);
        same(0xc000_a000_0000_0000_0000, -2.5, true);
        same(0, 0.0, true);
        same(0x8000_0000_0000_0000_0000, -0.0, true);
        same(0x7fff_8000_0000_0000_0000, f64::INFINITY, true);
        same(0xffff_8000_0000_0000_0000, f64::NEG_INFINITY, true);
        same(0x7fff_c000_0000_0000_0000, f64::NAN, true);
        // 0.1 and 1/3 to 64 digits.
        same(0x3ffb_cccc_cccc_cccc_cccd, 0.1, false);
        same(0x3ffd_aaaa_aaaa_aaaa_aaab, 1.0 / 3.0, false);
        // Ties go to the even number.
        same(0x3fff_8000_0000_0000_0400, 1.0, false);
        same(0x3fff_8000_0000_0000_0c00, 1.0 + 2.0 * f64::EPSILON, false);
        same(0x3fff_8000_0000_0000_0401, 1.0 + f64::EPSILON, false);
        // Out of range of float64 in both directions, and its smallest numbers.
        same(0x7ffe_ffff_ffff_ffff_ffff, f64::INFINITY, false);
        same(0x43fe_ffff_ffff_ffff_f800, f64::MAX, true);
        same(0x43fe_ffff_ffff_ffff_fc00, f64::INFINITY, false);
        same(0x0000_0000_0000_0000_0001, 0.0, false);
        same(0x3bcd_8000_0000_0000_0000, f64::from_bits(1), true);
        same(0x3bcc_8000_0000_0000_0000, 0.0, false);
        same(0x3bcc_8000_0000_0000_0001, f64::from_bits(1), false);
        same(0x3c01_8000_0000_0000_0000, f64::MIN_POSITIVE, true);
    }

    #[test]
    fn numbers_of_binary128_are_the_nearest() {
        let same = |bits, expected, is_exact| same(FloatFormat::Quadruple, bits, expected, is_exact);
        same(0x3fff << 112, 1.0, true);
        same(0xc000_4000 << 96, -2.5, true);
        same(0x7fff << 112, f64::INFINITY, true);
        same(0x7fff_8000 << 96, f64::NAN, true);
        same(0x3ffb_9999_9999_9999_9999_9999_9999_999a, 0.1, false);
        same(0x3fff << 112 | 1 << 59, 1.0, false);
        same(0x3fff << 112 | 1 << 59 | 1, 1.0 + f64::EPSILON, false);
        same(1, 0.0, false);
        same(0x3bcd << 112, f64::from_bits(1), true);
    }
}
