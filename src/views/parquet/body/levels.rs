//! Repetition and definition levels of a V1 page: the RLE/bit-packed hybrid of parquet-format's `Encodings.md`,
//! preceded by a length of 4 bytes.
//!
//! A page has one run: RLE if all its levels are equal, otherwise bit-packed. Readers therefore see two kinds only,
//! decode either at full speed, and the largest size is a function of the number of levels. Equal levels are common (a
//! nullable column without nulls, the definition levels of arrays), and RLE lets a reader skip them.

use arrow_buffer::{BooleanBuffer, NullBuffer};

use crate::views::Misfit;

/// Bytes of the length before the levels.
const PREFIX: u64 = 4;

/// The levels of a page, one for each entry.
#[derive(Debug, PartialEq)]
pub(in crate::views::parquet) enum Levels {
    /// All levels are equal.
    Equal {
        /// The level that all entries have.
        level: u8,
        /// Number of levels.
        count: usize,
    },
    /// Levels 0 and 1, not all equal.
    Bits(BooleanBuffer),
    /// Levels of any values, not all equal.
    Each(Vec<u8>),
}

/// Returns the bits of a level that is at most `most`.
pub(in crate::views::parquet) fn bit_width(most: u16) -> u32 {
    u16::BITS - most.leading_zeros()
}

/// Returns the most bytes that `count` levels of `width` bits take with their length. `None`: the number overflows.
pub(in crate::views::parquet) fn most_bytes(count: u64, width: u32) -> Option<u64> {
    if count == 0 { Some(PREFIX) } else { packed_bytes(count, width)?.checked_add(PREFIX) }
}

/// Returns the bytes that `count` equal levels take with their length.
pub(in crate::views::parquet) fn equal_bytes(count: u64, width: u32) -> Option<u64> {
    if count == 0 {
        return Some(PREFIX);
    }
    Some(PREFIX + varint_bytes(count.checked_mul(2)?) + u64::from(width.div_ceil(8)))
}

/// Returns the bytes of one bit-packed run of `count` values, header included. Values are packed in groups of eight.
pub(in crate::views::parquet) fn packed_bytes(count: u64, width: u32) -> Option<u64> {
    let groups = count.div_ceil(8);
    groups.checked_mul(u64::from(width))?.checked_add(varint_bytes(groups.checked_mul(2)? | 1))
}

/// Appends the header of a bit-packed run of `count` values.
pub(in crate::views::parquet) fn append_packed_header(count: usize, out: &mut Vec<u8>) {
    append_varint((count.div_ceil(8) as u64) << 1 | 1, out);
}

fn varint_bytes(value: u64) -> u64 {
    u64::from((u64::BITS - (value | 1).leading_zeros()).div_ceil(7))
}

/// Appends a number in groups of seven bits, the lowest first (ULEB128).
pub(in crate::views::parquet) fn append_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

impl Levels {
    /// Returns the definition levels of a flat column: 1 for each value.
    pub fn of_nulls(nulls: Option<&NullBuffer>, count: usize) -> Self {
        match nulls {
            Some(nulls) if nulls.null_count() == nulls.len() => Levels::Equal { level: 0, count },
            Some(nulls) if nulls.null_count() > 0 => Levels::Bits(nulls.inner().clone()),
            _ => Levels::Equal { level: 1, count },
        }
    }

    /// Makes levels of a list.
    pub fn of_each(levels: Vec<u8>) -> Self {
        match levels.split_first() {
            Some((first, rest)) if rest.iter().any(|level| level != first) => Levels::Each(levels),
            Some((first, _)) => Levels::Equal { level: *first, count: levels.len() },
            None => Levels::Equal { level: 0, count: 0 },
        }
    }

    /// Returns the number of levels.
    pub fn len(&self) -> usize {
        match self {
            Levels::Equal { count, .. } => *count,
            Levels::Bits(bits) => bits.len(),
            Levels::Each(levels) => levels.len(),
        }
    }

    /// Returns the number of bytes that [`Levels::append`] writes.
    pub fn bytes(&self, width: u32) -> Option<u64> {
        match self {
            Levels::Equal { count, .. } => equal_bytes(*count as u64, width),
            _ => most_bytes(self.len() as u64, width),
        }
    }

    /// Appends the length and the levels, of `width` bits each (1 to 8).
    ///
    /// # Errors
    /// If the length exceeds its 32 bits.
    pub fn append(&self, width: u32, out: &mut Vec<u8>) -> Result<(), Misfit> {
        let bytes = self.bytes(width).and_then(|bytes| i32::try_from(bytes - PREFIX).ok());
        let bytes = bytes.ok_or_else(|| Misfit::Size(format!("{} levels are too many for a page", self.len())))?;
        out.extend_from_slice(&bytes.to_le_bytes());
        match self {
            Levels::Equal { count: 0, .. } => {}
            Levels::Equal { level, count } => {
                append_varint((*count as u64) << 1, out);
                out.push(*level);
            }
            Levels::Bits(bits) => {
                append_packed_header(bits.len(), out);
                append_bits(bits, out);
            }
            Levels::Each(levels) => {
                append_packed_header(levels.len(), out);
                pack(levels, width, out);
            }
        }
        Ok(())
    }
}

/// Appends bits, the first in the lowest place, padded with zeros to a whole byte.
pub(in crate::views::parquet) fn append_bits(bits: &BooleanBuffer, out: &mut Vec<u8>) {
    let aligned = bits.sliced();
    let from = out.len();
    out.extend(aligned.as_slice().iter().take(bits.len().div_ceil(8)));
    let used = bits.len() % 8;
    if used > 0 && out.len() > from {
        // Bits past the last one are arbitrary.
        if let Some(last) = out.last_mut() {
            *last &= (1 << used) - 1;
        }
    }
}

/// Appends levels of `width` bits, eight to a group.
fn pack(levels: &[u8], width: u32, out: &mut Vec<u8>) {
    let width = width.clamp(1, 8) as usize;
    let (groups, rest) = levels.as_chunks::<8>();
    out.reserve((groups.len() + 1) * width);
    let word = |group: &[u8; 8]| {
        let bits = group.iter().enumerate().fold(0u64, |word, (i, level)| word | u64::from(*level) << (i * width));
        bits.to_le_bytes()
    };
    for group in groups {
        out.extend_from_slice(&word(group)[..width]);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        out.extend_from_slice(&word(&last)[..width]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(levels: &Levels, width: u32) -> Vec<u8> {
        let mut out = Vec::new();
        levels.append(width, &mut out).unwrap();
        assert_eq!(levels.bytes(width), Some(out.len() as u64));
        out
    }

    #[test]
    fn the_example_of_bit_packing_in_encodings_md() {
        // The numbers 0 to 7 with three bits each: 10001000 11000110 11111010.
        let levels = Levels::of_each((0..8).collect());
        assert_eq!(written(&levels, 3), [4, 0, 0, 0, 3, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
    }

    #[test]
    fn the_last_group_is_filled_up_with_zeros() {
        let levels = Levels::of_each(vec![1, 0, 1, 1, 1, 1, 1, 1, 1]);
        assert_eq!(written(&levels, 1), [3, 0, 0, 0, 5, 0b1111_1101, 1]);
        let levels = Levels::of_each(vec![200, 100]);
        assert_eq!(written(&levels, 8), [9, 0, 0, 0, 3, 200, 100, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn headers_grow_with_their_counts() {
        // 504 values are 63 groups, (63 << 1) | 1 = 127; 505 are 64, 129 = 0x81 0x01.
        assert_eq!(packed_bytes(504, 1), Some(1 + 63));
        assert_eq!(packed_bytes(505, 1), Some(2 + 64));
        let mut out = Vec::new();
        append_packed_header(505, &mut out);
        assert_eq!(out, [0x81, 0x01]);
        // 63 << 1 = 126; 64 << 1 = 128.
        assert_eq!(written(&Levels::Equal { level: 2, count: 63 }, 2), [2, 0, 0, 0, 126, 2]);
        assert_eq!(written(&Levels::Equal { level: 2, count: 64 }, 2), [3, 0, 0, 0, 0x80, 1, 2]);
        assert_eq!(most_bytes(u64::MAX, 8), None);
        assert_eq!(equal_bytes(u64::MAX, 1), None);
    }

    #[test]
    fn as_many_bits_as_the_largest_level_needs() {
        assert_eq!([0, 1, 2, 3, 4, 7, 8, 255].map(bit_width), [0, 1, 2, 2, 3, 3, 4, 8]);
    }

    proptest::proptest! {
        #[test]
        fn no_levels_take_more_than_foreseen(levels in proptest::collection::vec(0u8..4, 0..700)) {
            let most = most_bytes(levels.len() as u64, 2).unwrap();
            let levels = Levels::of_each(levels);
            proptest::prop_assert!(written(&levels, 2).len() as u64 <= most);
        }
    }
}
