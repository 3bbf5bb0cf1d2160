//! Appends many short texts to a vector.
//!
//! Calling `memcpy` for a text of a few bytes costs more than producing the text (measured: half of the time of a
//! column of integers). So this code first extends the vector, then stores texts 8 or 16 bytes at a time whatever their
//! length: the next text overwrites the surplus, and the end is cut off.

use std::ops::Range;

/// About how many bytes to extend the vector by.
const CHUNK_BYTES: usize = 1 << 14;

/// Number of bytes of the widest store.
pub(in crate::views::text) const SLACK: usize = 16;

/// Appends in chunks: calls `chunk` for ranges of `rows`, each with room for `most` bytes per row.
#[inline]
pub(in crate::views::text) fn append(
    out: &mut Vec<u8>,
    rows: Range<usize>,
    most: usize,
    mut chunk: impl FnMut(Range<usize>, &mut Room<'_>),
) {
    let step = (CHUNK_BYTES / most.max(1)).max(1);
    let mut end = out.len();
    let mut first = rows.start;
    while first < rows.end {
        let last = rows.end.min(first + step);
        let needed = end + (last - first) * most + SLACK;
        if out.len() < needed {
            out.resize(needed, 0);
        }
        let mut room = Room { bytes: &mut out[end..], end: 0 };
        chunk(first..last, &mut room);
        end += room.end;
        first = last;
    }
    out.truncate(end);
}

/// Room after the end of a vector, and how much of it is used.
pub(in crate::views::text) struct Room<'a> {
    bytes: &'a mut [u8],
    end: usize,
}

impl Room<'_> {
    /// Appends the first `count` (at most 8) of 8 bytes.
    #[inline]
    fn push_eight(&mut self, bytes: [u8; 8], count: usize) {
        self.bytes[self.end..self.end + 8].copy_from_slice(&bytes);
        self.end += count;
    }

    /// Appends a byte.
    #[inline]
    pub fn push(&mut self, byte: u8) {
        self.bytes[self.end] = byte;
        self.end += 1;
    }

    /// Appends `text`.
    #[inline]
    pub fn extend(&mut self, text: &[u8]) {
        self.bytes[self.end..self.end + text.len()].copy_from_slice(text);
        self.end += text.len();
    }

    /// Appends `bytes[start..end]`, with one store if the range is short and enough bytes follow.
    #[inline]
    pub fn extend_within(&mut self, bytes: &[u8], start: usize, end: usize) {
        match bytes.get(start..start + SLACK) {
            Some(sixteen) if end - start <= SLACK => {
                self.bytes[self.end..self.end + SLACK].copy_from_slice(sixteen);
                self.end += end - start;
            }
            _ => self.extend(&bytes[start..end]),
        }
    }

    /// Appends a decimal number, at most 20 bytes.
    #[inline]
    pub fn push_decimal(&mut self, negative: bool, magnitude: u64) {
        const E8: u64 = 100_000_000;
        self.bytes[self.end] = b'-';
        self.end += usize::from(negative);
        if magnitude < E8 {
            self.push_leading(magnitude);
        } else if magnitude < E8 * E8 {
            self.push_leading(magnitude / E8);
            self.push_eight(ascii(digits(magnitude % E8)), 8);
        } else {
            self.push_leading(magnitude / (E8 * E8));
            self.push_eight(ascii(digits(magnitude / E8 % E8)), 8);
            self.push_eight(ascii(digits(magnitude % E8)), 8);
        }
    }

    /// Appends a number below 10^8 without leading zeros.
    #[inline]
    fn push_leading(&mut self, number: u64) {
        let digits = digits(number);
        // The last digit stays even if it is zero.
        let zeros = ((digits | (1 << 56)).trailing_zeros() / 8) as usize;
        self.push_eight(ascii(digits >> (8 * zeros)), 8 - zeros);
    }
}

/// Returns the eight digits of a number below 10^8, one per byte, the first in the lowest: splits halves, quarters and
/// digits in parallel, multiplying by reciprocals that are exact for these ranges.
#[inline]
fn digits(number: u64) -> u64 {
    let halves = (number / 10_000) | ((number % 10_000) << 32);
    // 5243 / 2^19 is 1/100 for numbers below 10,000.
    let hundreds = ((halves * 5243) >> 19) & 0x7f_0000_007f;
    let quarters = hundreds | ((halves - hundreds * 100) << 16);
    // 103 / 2^10 is 1/10 for numbers below 100.
    let tens = ((quarters * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((quarters - tens * 10) << 8)
}

#[inline]
fn ascii(digits: u64) -> [u8; 8] {
    (digits | 0x3030_3030_3030_3030).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decimal(value: i128) -> String {
        let mut out = b"x".to_vec();
        append(&mut out, 0..1, 20, |_, room| room.push_decimal(value < 0, value.unsigned_abs() as u64));
        assert_eq!(out.remove(0), b'x');
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn decimals_at_every_power_of_ten() {
        for power in 0..20_u32 {
            for number in [10_i128.pow(power) - 1, 10_i128.pow(power), 10_i128.pow(power) + 1] {
                assert_eq!(decimal(number), number.to_string());
            }
        }
        for number in [i128::from(i64::MIN), i128::from(u64::MAX), 0] {
            assert_eq!(decimal(number), number.to_string());
        }
    }

    #[test]
    fn every_group_of_four_digits() {
        for number in 0..10_000_u64 {
            assert_eq!(ascii(digits(number * 10_001)), *format!("{number:04}{number:04}").as_bytes());
        }
    }

    proptest! {
        #[test]
        fn decimals(bits in any::<i64>(), shift in 0..64) {
            let value: i64 = bits >> shift;
            prop_assert_eq!(decimal(i128::from(value)), value.to_string());
        }

        #[test]
        fn texts_follow_each_other(texts in prop::collection::vec("[a-z]{0,40}", 0..900)) {
            let all = texts.concat();
            let mut out = Vec::new();
            let mut start = 0;
            append(&mut out, 0..texts.len(), 41, |rows, room| {
                for text in &texts[rows] {
                    room.extend_within(all.as_bytes(), start, start + text.len());
                    room.push(b'|');
                    start += text.len();
                }
            });
            prop_assert_eq!(String::from_utf8(out).unwrap(), texts.iter().map(|text| text.clone() + "|").collect::<String>());
        }
    }
}
