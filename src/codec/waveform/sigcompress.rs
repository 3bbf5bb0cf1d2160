//! `radware_sigcompress`: big-endian words of 16 bits.

/// Flag of a section of differences; the rest of the word is the width.
const DIFFERENCES: u16 = 32;

/// See [`Coding::decode`](super::Coding::decode).
pub(super) fn decode(bytes: &[u8], shift: i32, most: usize, out: &mut Vec<i32>) -> Option<()> {
    let mut words = Words { bytes };
    let mut left = usize::from(words.next()?);
    if left > most {
        return None;
    }
    while left > 0 {
        let count = usize::from(words.next()?);
        let width = words.next()?;
        if count == 0 || count > left {
            return None;
        }
        let is_difference = width >= DIFFERENCES;
        let width = u32::from(if is_difference { width - DIFFERENCES } else { width });
        if !(1..=16).contains(&width) {
            return None;
        }
        let shifted = |sample: i16| i32::from(sample).wrapping_sub(shift);
        if is_difference {
            let mut last = words.next()? as i16;
            let least = words.next()? as i16;
            out.push(shifted(last));
            words.packed(count - 1, width, |value| {
                last = last.wrapping_add(value as i16).wrapping_add(least);
                out.push(shifted(last));
            })?;
        } else {
            let least = words.next()? as i16;
            words.packed(count, width, |value| out.push(shifted((value as i16).wrapping_add(least))))?;
        }
        left -= count;
    }
    Some(())
}

/// Words that are left.
struct Words<'a> {
    bytes: &'a [u8],
}

impl Words<'_> {
    fn next(&mut self) -> Option<u16> {
        let (word, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(u16::from_be_bytes(*word))
    }

    /// Takes `count` numbers of `width` bits, at most 16, the highest bit first; they end with a word.
    fn packed(&mut self, count: usize, width: u32, mut take: impl FnMut(u16)) -> Option<()> {
        let (mut bits, mut held) = (0_u32, 0_u32);
        let mask = (1_u32 << width) - 1;
        for _ in 0..count {
            if held < width {
                bits = bits << 16 | u32::from(self.next()?);
                held += 16;
            }
            held -= width;
            take((bits >> held & mask) as u16);
        }
        Some(())
    }
}
