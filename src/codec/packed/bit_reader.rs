//! Reads numbers of any bit width, packed without gaps, the most significant bit first.

use crate::codec::Error;

/// The number in the `width` bits (1 to 64) from bit `at` on. Bits after the end of `data` are 0: the caller has
/// checked the length.
#[inline]
pub(super) fn field(data: &[u8], at: usize, width: u32) -> u64 {
    let rest = data.get(at / 8..).unwrap_or_default();
    match rest.first_chunk() {
        Some(window) if width <= 57 => u64::from_be_bytes(*window) << (at % 8) >> (64 - width),
        _ => field_at_end(rest, at % 8, width),
    }
}

/// As [`field`], for bits that span nine bytes, or near the end of `data`; `skipped` is below 8.
fn field_at_end(data: &[u8], skipped: usize, width: u32) -> u64 {
    let mut window = [0; 16];
    window.iter_mut().zip(data.iter().take(9)).for_each(|(to, from)| *to = *from);
    (u128::from_be_bytes(window) << skipped >> (128 - width)) as u64
}

/// Reads packed numbers one after the other.
pub(super) struct BitReader<'a> {
    rest: &'a [u8],
    /// Pending bits, the highest first. Bits below the first `count` may already repeat the beginning of `rest`.
    bits: u64,
    /// Number of bits in `bits` that were taken from `rest`.
    count: u32,
}

/// The stream ended within a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EndOfBits;

impl From<EndOfBits> for Error {
    fn from(_: EndOfBits) -> Self {
        "the stream is cut short".into()
    }
}

impl<'a> BitReader<'a> {
    pub fn new(data: &'a [u8]) -> Self {
        Self { rest: data, bits: 0, count: 0 }
    }

    /// Refills from `rest`: at least 56 bits, fewer only at its end.
    #[inline]
    fn refill(&mut self) {
        if let Some(next) = self.rest.first_chunk::<8>() {
            self.bits |= u64::from_be_bytes(*next) >> self.count;
            let bytes = (63 - self.count) / 8;
            self.rest = self.rest.get(bytes as usize..).unwrap_or_default();
            self.count += bytes * 8;
        } else {
            while self.count <= 56
                && let Some((byte, rest)) = self.rest.split_first()
            {
                self.bits |= u64::from(*byte) << (56 - self.count);
                self.count += 8;
                self.rest = rest;
            }
        }
    }

    /// Drops available bits, at most 63.
    #[inline]
    fn drop(&mut self, bits: u32) {
        self.bits <<= bits;
        self.count -= bits;
    }

    /// The next `width` bits, at most 32.
    #[inline]
    pub fn take(&mut self, width: u32) -> Result<u32, EndOfBits> {
        if self.count < width {
            self.refill();
            if self.count < width {
                return Err(EndOfBits);
            }
        }
        // Shifts in two steps, as `width` may be 0.
        let value = (self.bits >> 1 >> (63 - width)) as u32;
        self.drop(width);
        Ok(value)
    }

    /// Counts the 0 bits before the next 1 bit and skips all of them. The count saturates at 2^32.
    #[inline]
    pub fn zeros(&mut self) -> Result<u32, EndOfBits> {
        let mut zeros = 0u32;
        loop {
            let run = self.bits.leading_zeros();
            if run < self.count {
                self.drop(run);
                self.drop(1);
                return Ok(zeros.saturating_add(run));
            }
            zeros = zeros.saturating_add(self.count);
            (self.bits, self.count) = (0, 0);
            self.refill();
            if self.count == 0 {
                return Err(EndOfBits);
            }
        }
    }
}

/// Bits written as they are read, with spaces anywhere, and 0 bits behind them.
#[cfg(test)]
pub(super) fn bits(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|digit| *digit != b' ').map(|digit| digit - b'0').collect();
    digits.chunks(8).map(|byte| byte.iter().enumerate().map(|(i, bit)| bit << (7 - i)).sum()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bit by bit, from the definition.
    fn bit(data: &[u8], at: usize) -> u64 {
        u64::from(data.get(at / 8).copied().unwrap_or(0) >> (7 - at % 8) & 1)
    }

    fn value(data: &[u8], at: usize, width: u32) -> u64 {
        (at..at + width as usize).fold(0, |value, at| value << 1 | bit(data, at))
    }

    proptest! {
        #[test]
        fn fields_are_read_from_any_bit(
            data in prop::collection::vec(any::<u8>(), 0..30),
            at in 0usize..260,
            width in 1u32..=64,
        ) {
            prop_assert_eq!(field(&data, at, width), value(&data, at, width));
        }

        #[test]
        fn numbers_follow_each_other(
            data in prop::collection::vec(prop::sample::select(vec![0u8, 0, 0, 1, 0x80, 0xff, 0x35]), 0..60),
            widths in prop::collection::vec(0u32..=33, 0..60),
        ) {
            let mut reader = BitReader::new(&data);
            let (mut at, end) = (0, data.len() * 8);
            for width in widths {
                // 33 stands for a run of zeros.
                let (found, expected, length) = if width == 33 {
                    let run = (at..end).position(|at| bit(&data, at) == 1);
                    (reader.zeros(), run.map(|run| run as u32), run.unwrap_or(0) + 1)
                } else {
                    let fits = at + width as usize <= end;
                    (reader.take(width), fits.then(|| value(&data, at, width) as u32), width as usize)
                };
                prop_assert_eq!(found, expected.ok_or(EndOfBits));
                if expected.is_none() {
                    break;
                }
                at += length;
            }
        }
    }
}
