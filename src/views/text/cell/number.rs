//! The text of numbers, and its length.

use std::sync::OnceLock;

use arrow_buffer::ArrowNativeType;
use half::f16;

use super::CellWriter;
use super::style::Style;

/// An integer that can be written as decimal text.
pub(in crate::views::text) trait Integer: ArrowNativeType + itoa::Integer {
    /// Returns whether the integer is negative, and its magnitude.
    fn split(self) -> (bool, u64);
}

macro_rules! integers {
    ($($signed:ty),*; $($unsigned:ty),*) => {
        $(impl Integer for $signed {
            #[inline]
            fn split(self) -> (bool, u64) {
                (self < 0, i64::from(self).unsigned_abs())
            }
        })*
        $(impl Integer for $unsigned {
            #[inline]
            fn split(self) -> (bool, u64) {
                (false, u64::from(self))
            }
        })*
    };
}
integers!(i8, i16, i32, i64; u8, u16, u32, u64);

/// The powers of ten 10^k, but 0 instead of 1 so that the number 0 has one digit.
const POWERS: [u64; 20] = {
    let mut powers = [0; 20];
    let mut power = 1_u64;
    let mut k = 1;
    while k < 20 {
        power *= 10;
        powers[k] = power;
        k += 1;
    }
    powers
};

/// Returns the bytes of an integer's decimal text: the number of bits determines the number of digits, up to one.
#[inline]
pub(in crate::views::text) fn integer_length<T: Integer>(value: T) -> usize {
    let (negative, magnitude) = value.split();
    let bits = 64 - (magnitude | 1).leading_zeros() as usize;
    // 1233 / 4096 is log10(2), near enough for 64 bits; the result is at most 19.
    let digits = (bits * 1233) >> 12;
    digits + usize::from(magnitude >= POWERS[digits % POWERS.len()]) + usize::from(negative)
}

/// Appends an integer's decimal text.
#[inline]
pub(in crate::views::text) fn write_integer<T: Integer>(value: T, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// A floating-point number, written with the fewest digits that read back to the same bits; among those, the digits
/// nearest to the value. Whole numbers keep a `.0`; very large and very small ones have an exponent.
pub(in crate::views::text) trait Float: ArrowNativeType {
    /// The type that [`zmij`] formats.
    type Formatted: zmij::Float;

    /// Returns the number whose shortest text is that of `self`; finite numbers only.
    fn formatted(self) -> Self::Formatted;

    /// Returns the position in `Style::NON_FINITE`. `None`: a finite number.
    fn non_finite(self) -> Option<usize>;
}

impl Float for f64 {
    type Formatted = f64;

    #[inline]
    fn formatted(self) -> f64 {
        self
    }

    #[inline]
    fn non_finite(self) -> Option<usize> {
        if self.is_finite() { None } else { Some(kind(self)) }
    }
}

impl Float for f32 {
    type Formatted = f32;

    #[inline]
    fn formatted(self) -> f32 {
        self
    }

    #[inline]
    fn non_finite(self) -> Option<usize> {
        if self.is_finite() { None } else { Some(kind(f64::from(self))) }
    }
}

impl Float for f16 {
    type Formatted = f32;

    #[inline]
    fn formatted(self) -> f32 {
        let bits = self.to_bits();
        let magnitude = shortest_halves().get(usize::from(bits & 0x7fff)).copied().unwrap_or(f32::NAN);
        if bits >> 15 == 0 { magnitude } else { -magnitude }
    }

    #[inline]
    fn non_finite(self) -> Option<usize> {
        if self.is_finite() { None } else { Some(kind(self.to_f64())) }
    }
}

#[cold]
fn kind(value: f64) -> usize {
    if value.is_nan() {
        0
    } else if value > 0.0 {
        1
    } else {
        2
    }
}

/// Returns, for each positive half-precision number, the shortest decimal that reads back to it. There are 31,744 such
/// numbers. Their decimals have at most five digits, which single precision preserves, so the shortest text of the
/// single-precision number is the wanted one.
fn shortest_halves() -> &'static [f32] {
    static TABLE: OnceLock<Vec<f32>> = OnceLock::new();
    TABLE.get_or_init(|| (0..0x7c00).map(|bits| shortest_half(f16::from_bits(bits))).collect())
}

fn shortest_half(half: f16) -> f32 {
    let exact = half.to_f64();
    for digits in 0..5 {
        // The text has the form `d.ddde-x`: the nearest decimal of digits + 1 digits.
        let text = format!("{exact:.digits$e}");
        let Some((mantissa, exponent)) = text.split_once('e') else { continue };
        let (Ok(mantissa), Ok(exponent)) = (mantissa.replace('.', "").parse::<i64>(), exponent.parse::<i64>()) else {
            continue;
        };
        // Where the spacing of half-precision numbers changes, the nearest decimal may miss while its neighbour hits.
        let decimals = [mantissa, mantissa + 1, mantissa - 1]
            .into_iter()
            .filter_map(|mantissa| format!("{mantissa}e{}", exponent - digits as i64).parse::<f64>().ok())
            .filter(|&decimal| f16::from_f64(decimal).to_bits() == half.to_bits());
        let found = decimals.min_by(|a, b| (a - exact).abs().total_cmp(&(b - exact).abs()));
        if let Some(decimal) = found {
            return decimal as f32;
        }
    }
    half.to_f32()
}

/// Cells of decimals with `scale` digits after the point.
pub(super) struct Decimals<'a> {
    pub values: &'a [i128],
    pub scale: usize,
}

impl<S: Style> CellWriter<S> for Decimals<'_> {
    fn write(&self, row: usize, out: &mut Vec<u8>) {
        let value = self.values[row];
        let digits = format!("{:0width$}", value.unsigned_abs(), width = self.scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - self.scale);
        if value < 0 {
            out.push(b'-');
        }
        out.extend_from_slice(whole.as_bytes());
        if !fraction.is_empty() {
            out.push(b'.');
            out.extend_from_slice(fraction.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn half(bits: u16) -> String {
        zmij::Buffer::new().format(f16::from_bits(bits).formatted()).to_owned()
    }

    /// Expected: `numpy.format_float_positional` / `str` of `numpy.float16`, NumPy 2.
    #[test]
    fn halves_are_shortest() {
        assert_eq!(half(0x0000), "0.0");
        assert_eq!(half(0x8000), "-0.0");
        assert_eq!(half(0x3c00), "1.0");
        assert_eq!(half(0x2e66), "0.1");
        assert_eq!(half(0x3555), "0.3333");
        assert_eq!(half(0x7bff), "65500.0");
        assert_eq!(half(0xfbff), "-65500.0");
        assert_eq!(half(0x0001), "6e-8");
        assert_eq!(half(0x0400), "0.00006104");
        assert_eq!(half(0x6800), "2048.0");
    }

    #[test]
    fn every_half_reads_back() {
        for bits in (0..=u16::MAX).filter(|&bits| f16::from_bits(bits).is_finite()) {
            let text = half(bits);
            assert_eq!(f16::from_f64(text.parse::<f64>().unwrap()).to_bits(), bits, "{text}");
            assert!(text.len() <= 16, "{text}");
        }
    }

    #[test]
    fn integer_lengths_at_every_power_of_ten() {
        assert_eq!(integer_length(0_u64), 1);
        for power in 1..20_u32 {
            let number = 10_u64.pow(power);
            assert_eq!(integer_length(number), power as usize + 1);
            assert_eq!(integer_length(number - 1), power as usize);
        }
        assert_eq!(integer_length(u64::MAX), 20);
        assert_eq!(integer_length(i64::MIN), 20);
        assert_eq!(integer_length(i8::MIN), 4);
    }

    proptest! {
        #[test]
        fn integer_length_is_that_of_the_text(value in any::<i64>(), shift in 0..64) {
            let value: i64 = value >> shift;
            prop_assert_eq!(integer_length(value), value.to_string().len());
            prop_assert_eq!(integer_length(value as u64), (value as u64).to_string().len());
        }

        #[test]
        fn floats_read_back(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            let text = zmij::Buffer::new().format(value).to_owned();
            prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), bits);
            prop_assert!(text.len() <= 24);
            let single = f32::from_bits(bits as u32);
            prop_assume!(single.is_finite());
            let text = zmij::Buffer::new().format(single).to_owned();
            prop_assert_eq!(text.parse::<f32>().unwrap().to_bits(), single.to_bits());
            prop_assert!(text.len() <= 16, "{}", text);
        }
    }
}
