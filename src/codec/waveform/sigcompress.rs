//! `radware_sigcompress`: big-endian words of 16 bits.

/// Flag of a section of differences; the rest of the word is the width.
const DIFFERENCES: u16 = 32;

/// See [`Coding::samples`](super::Coding::samples).
pub(super) fn samples(bytes: &[u8]) -> Option<usize> {
    let mut words = Words { bytes };
    let total = usize::from(words.next()?);
    let mut left = total;
    while left > 0 {
        left -= words.section(left)?.count;
    }
    Some(total)
}

/// See [`Coding::decode`](super::Coding::decode).
pub(super) fn decode(bytes: &[u8], shift: i32, out: &mut [i32]) -> Option<()> {
    let mut words = Words { bytes };
    if usize::from(words.next()?) != out.len() {
        return None;
    }
    let shifted = |sample: i16| i32::from(sample).wrapping_sub(shift);
    let mut rest = out;
    while !rest.is_empty() {
        let section = words.section(rest.len())?;
        let (samples, behind) = rest.split_at_mut(section.count);
        rest = behind;
        let least = section.least;
        match section.first {
            Some(first) => {
                let (out, others) = samples.split_first_mut()?;
                *out = shifted(first);
                let mut last = first;
                unpack(section.width, section.packed, others, |value| {
                    last = last.wrapping_add((value as i16).wrapping_add(least));
                    shifted(last)
                });
            }
            None => unpack(section.width, section.packed, samples, |value| shifted((value as i16).wrapping_add(least))),
        }
    }
    Some(())
}

/// Samples that are packed in the same width.
struct Section<'a> {
    count: usize,
    width: u16,
    /// Of differences, the sample before them.
    first: Option<i16>,
    least: i16,
    packed: &'a [u8],
}

/// Words that are left.
struct Words<'a> {
    bytes: &'a [u8],
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<u16> {
        let (word, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(u16::from_be_bytes(*word))
    }

    /// The next section, of at most `most` samples and one at least.
    fn section(&mut self, most: usize) -> Option<Section<'a>> {
        let count = usize::from(self.next()?);
        let width = self.next()?;
        if count == 0 || count > most {
            return None;
        }
        let is_difference = width >= DIFFERENCES;
        let width = if is_difference { width - DIFFERENCES } else { width };
        if !(1..=16).contains(&width) {
            return None;
        }
        let first = if is_difference { Some(self.next()? as i16) } else { None };
        let least = self.next()? as i16;
        let values = count - usize::from(is_difference);
        let (packed, rest) = self.bytes.split_at_checked((values * usize::from(width)).div_ceil(16) * 2)?;
        self.bytes = rest;
        Some(Section { count, width, first, least, packed })
    }
}

/// Fills `out` with what `sample` makes of numbers of `width` bits, 1 to 16, the highest bit first.
fn unpack(width: u16, packed: &[u8], out: &mut [i32], sample: impl FnMut(u16) -> i32) {
    // Where the width is known, so are all shifts.
    macro_rules! of_width {
        ($($width:literal)*) => {
            match width {
                $($width => unpack_known::<$width>(packed, out, sample),)*
                _ => {}
            }
        };
    }
    of_width!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
}

fn unpack_known<const WIDTH: usize>(packed: &[u8], out: &mut [i32], mut sample: impl FnMut(u16) -> i32) {
    let mask = u16::MAX >> (16 - WIDTH);
    // Eight numbers take as many bytes as one has bits. Each lies in the four bytes from its first one on.
    let eights = (out.len() / 8).min(packed.len().saturating_sub(3) / WIDTH);
    let (whole, out) = out.split_at_mut(8 * eights);
    for (eight, window) in whole.chunks_exact_mut(8).zip(packed.windows(WIDTH + 3).step_by(WIDTH)) {
        for (at, out) in eight.iter_mut().enumerate() {
            let (byte, bit) = (at * WIDTH / 8, at * WIDTH % 8);
            let word = u32::from_be_bytes([window[byte], window[byte + 1], window[byte + 2], window[byte + 3]]);
            *out = sample((word >> (32 - WIDTH - bit)) as u16 & mask);
        }
    }
    let packed = packed.get(eights * WIDTH..).unwrap_or_default();
    for (out, packed) in out.chunks_mut(8).zip(packed.chunks(WIDTH)) {
        let mut bits = [0; 16];
        bits[..packed.len()].copy_from_slice(packed);
        let bits = u128::from_be_bytes(bits);
        for (at, out) in out.iter_mut().enumerate() {
            *out = sample((bits >> (128 - (at + 1) * WIDTH)) as u16 & mask);
        }
    }
}
