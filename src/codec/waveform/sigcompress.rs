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
    let mut rest = out;
    while !rest.is_empty() {
        let section = words.section(rest.len())?;
        let (samples, behind) = rest.split_at_mut(section.count);
        rest = behind;
        let least = section.least;
        // Sums wrap like words.
        let shown = |sample: u16| i32::from(sample as i16).wrapping_sub(shift);
        match section.first {
            Some(first) => {
                let (out, others) = samples.split_first_mut()?;
                *out = shown(first);
                let mut last = first;
                unpack(section.width, section.packed, others, |values| {
                    let sums = sums(values.map(|value| value.wrapping_add(least)));
                    let samples = sums.map(|sum| sum.wrapping_add(last));
                    last = samples[7];
                    samples.map(shown)
                });
            }
            None => unpack(section.width, section.packed, samples, |values| {
                values.map(|value| shown(value.wrapping_add(least)))
            }),
        }
    }
    Some(())
}

/// Replaces each number by the sum of it and all before it, in three vector steps.
fn sums(numbers: [u16; 8]) -> [u16; 8] {
    [1, 2, 4].iter().fold(numbers, |sums, &step| {
        std::array::from_fn(|at| if at < step { sums[at] } else { sums[at].wrapping_add(sums[at - step]) })
    })
}

/// Samples packed in the same width.
struct Section<'a> {
    count: usize,
    width: u16,
    /// The sample before the first difference. `None`: the section holds values.
    first: Option<u16>,
    least: u16,
    packed: &'a [u8],
}

/// The remaining words.
struct Words<'a> {
    bytes: &'a [u8],
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<u16> {
        let (word, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(u16::from_be_bytes(*word))
    }

    /// The next section, of at least one and at most `most` samples.
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
        let first = if is_difference { Some(self.next()?) } else { None };
        let least = self.next()?;
        let values = count - usize::from(is_difference);
        let (packed, rest) = self.bytes.split_at_checked((values * usize::from(width)).div_ceil(16) * 2)?;
        self.bytes = rest;
        Some(Section { count, width, first, least, packed })
    }
}

/// Unpacks numbers of `width` bits, 1 to 16, the highest bit first; `samples` turns eight at a time into samples for
/// `out`. Numbers after the end are arbitrary.
fn unpack(width: u16, packed: &[u8], out: &mut [i32], samples: impl FnMut([u16; 8]) -> [i32; 8]) {
    // A constant width makes all shifts constant.
    macro_rules! of_width {
        ($($width:literal)*) => {
            match width {
                $($width => unpack_known::<$width>(packed, out, samples),)*
                _ => {}
            }
        };
    }
    of_width!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
}

fn unpack_known<const WIDTH: usize>(packed: &[u8], out: &mut [i32], mut samples: impl FnMut([u16; 8]) -> [i32; 8]) {
    let mask = u16::MAX >> (16 - WIDTH);
    // Eight numbers take as many bytes as one has bits.
    let (eights, last) = out.as_chunks_mut::<8>();
    let mut packed = packed;
    for eight in eights {
        *eight = samples(match (packed.first_chunk(), packed.first_chunk::<18>()) {
            (Some(word), _) if WIDTH <= 8 => {
                let bits = u64::from_be_bytes(*word);
                std::array::from_fn(|at| (bits >> (64 - (at + 1) * WIDTH)) as u16 & mask)
            }
            // Each number lies in the four bytes from its first one, all below byte 18.
            (_, Some(window)) => std::array::from_fn(|at| {
                let (byte, bit) = (at * WIDTH / 8, at * WIDTH % 8);
                let word = u32::from_be_bytes([window[byte], window[byte + 1], window[byte + 2], window[byte + 3]]);
                (word >> (32 - WIDTH - bit)) as u16 & mask
            }),
            _ => last_of::<WIDTH>(packed),
        });
        packed = packed.get(WIDTH..).unwrap_or_default();
    }
    if !last.is_empty() {
        last.copy_from_slice(&samples(last_of::<WIDTH>(packed))[..last.len()]);
    }
}

/// Unpacks eight numbers, with zeros after the end.
fn last_of<const WIDTH: usize>(packed: &[u8]) -> [u16; 8] {
    let mut bits = [0; 16];
    let length = packed.len().min(WIDTH);
    bits[..length].copy_from_slice(&packed[..length]);
    let bits = u128::from_be_bytes(bits);
    std::array::from_fn(|at| (bits >> (128 - (at + 1) * WIDTH)) as u16 & (u16::MAX >> (16 - WIDTH)))
}
