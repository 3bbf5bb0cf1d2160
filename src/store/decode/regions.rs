//! A stored selection of elements (HDF5 file format, appendix "Encoding for Dataspace and Reference") as text.
//!
//! ```text
//! 0 u32                                                         nothing
//! 1 u32 | version 1 u32 | 8 bytes | rank u32 | count u32        points of 4-byte numbers
//!         version 2 u32 | width u8 | rank u32 | count           points of numbers of that width
//! 2 u32 | version 1 u32 | 8 bytes | rank u32 | count u32        blocks of 4-byte numbers: first corner, last corner
//!         version 2 u32 | flags u8 | 4 bytes | rank u32         blocks of 8-byte numbers; with flag 1: of each
//!         version 3 u32 | flags u8 | width u8 | rank u32        dimension start, stride, count, block
//! 3 u32                                                         everything
//! ```

use std::fmt::Write;

use crate::codec::structure::Rest;

/// Most blocks or points to write out; `…` stands for the rest.
const SHOWN: u64 = 64;

/// `[a:b,c:d]` for a block, half-open; several joined by `;`; points as `[(1,2);(3,4)]`; `[...]` for everything, `[]`
/// for nothing. `None`: not a selection.
pub fn text(bytes: &[u8]) -> Option<String> {
    let mut rest = Rest(bytes);
    match rest.number(4)? {
        0 => Some("[]".into()),
        1 => {
            let width = match rest.number(4)? {
                1 => rest.skip(8).map(|()| 4)?,
                2 => rest.width()?,
                _ => return None,
            };
            let rank = rest.rank()?;
            let count = rest.number(width)?;
            points(&mut rest, width, rank, count)
        }
        2 => {
            let (is_regular, width) = rest.hyperslab()?;
            let rank = rest.rank()?;
            if is_regular {
                return regular(&mut rest, width, rank);
            }
            let count = rest.number(width)?;
            blocks(&mut rest, width, rank, count)
        }
        3 => Some("[...]".into()),
        _ => None,
    }
}

fn points(rest: &mut Rest<'_>, width: usize, rank: usize, count: u64) -> Option<String> {
    let mut text = String::from("[");
    for at in 0..count.min(SHOWN) {
        let point: Vec<String> = rest.numbers(width, rank)?.iter().map(u64::to_string).collect();
        // Writing to a string cannot fail.
        let _ = write!(text, "{}({})", if at == 0 { "" } else { ";" }, point.join(","));
    }
    Some(closed(text, count))
}

fn blocks(rest: &mut Rest<'_>, width: usize, rank: usize, count: u64) -> Option<String> {
    let mut text = String::from("[");
    for at in 0..count.min(SHOWN) {
        let (first, last) = (rest.numbers(width, rank)?, rest.numbers(width, rank)?);
        let ranges = first.iter().zip(&last).map(|(first, last)| (*first, last.saturating_add(1)));
        block(&mut text, at, ranges);
    }
    Some(closed(text, count))
}

fn regular(rest: &mut Rest<'_>, width: usize, rank: usize) -> Option<String> {
    let unlimited = u64::MAX >> (64 - 8 * width);
    let mut dimensions = Vec::with_capacity(rank);
    for _ in 0..rank {
        let [start, stride, count, block] = rest.numbers(width, 4)?.try_into().ok()?;
        if count == unlimited || block == unlimited {
            return None;
        }
        // Adjacent blocks are merged.
        let (count, block) = if stride == block { (1, count.checked_mul(block)?) } else { (count, block) };
        dimensions.push((start, stride, count, block));
    }
    let count = dimensions.iter().try_fold(1u64, |product, (_, _, count, _)| product.checked_mul(*count))?;
    let mut at = vec![0u64; rank];
    let mut text = String::from("[");
    for shown in 0..count.min(SHOWN) {
        let ranges = dimensions.iter().zip(&at).map(|((start, stride, _, block), at)| {
            let first = start.saturating_add(stride.saturating_mul(*at));
            (first, first.saturating_add(*block))
        });
        block(&mut text, shown, ranges);
        for (at, (_, _, count, _)) in at.iter_mut().zip(&dimensions).rev() {
            *at += 1;
            if *at < *count {
                break;
            }
            *at = 0;
        }
    }
    Some(closed(text, count))
}

/// Appends one block.
fn block(text: &mut String, at: u64, ranges: impl Iterator<Item = (u64, u64)>) {
    let separators = std::iter::once(if at == 0 { "" } else { ";" }).chain(std::iter::repeat(","));
    for ((start, end), separator) in ranges.zip(separators) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{separator}{start}:{end}");
    }
}

fn closed(mut text: String, count: u64) -> String {
    text.push_str(if count > SHOWN { ";…]" } else { "]" });
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn nothing_and_everything() {
        assert_eq!(text(&words(&[0, 1, 0, 0])).unwrap(), "[]");
        assert_eq!(text(&words(&[3, 1, 0, 0])).unwrap(), "[...]");
        assert_eq!(text(&words(&[4, 1, 0, 0])), None);
        assert_eq!(text(&[]), None);
    }

    #[test]
    fn blocks_are_half_open() {
        assert_eq!(text(&words(&[2, 1, 0, 24, 2, 1, 0, 3, 9, 6])).unwrap(), "[0:10,3:7]");
        let two = words(&[2, 1, 0, 40, 2, 2, 0, 3, 9, 6, 20, 0, 20, 0]);
        assert_eq!(text(&two).unwrap(), "[0:10,3:7;20:21,0:1]");
        assert_eq!(text(&two[..two.len() - 1]), None, "cut short");
        let version_3 = [&words(&[2, 3])[..], &[0, 2], &words(&[1]), &[1, 0, 5, 0, 6, 0]].concat();
        assert_eq!(text(&version_3).unwrap(), "[5:7]");
    }

    #[test]
    fn regular_blocks_come_row_by_row() {
        let dimensions: Vec<u8> = [0u64, 5, 2, 1, 10, 4, 2, 3].iter().flat_map(|number| number.to_le_bytes()).collect();
        let version_2 = [&words(&[2, 2])[..], &[1], &words(&[68, 2]), &dimensions].concat();
        assert_eq!(text(&version_2).unwrap(), "[0:1,10:13;0:1,14:17;5:6,10:13;5:6,14:17]");
        let dimension = |numbers: [u16; 4]| numbers.map(u16::to_le_bytes).concat();
        let version_3 = |numbers| [&words(&[2, 3])[..], &[1, 2], &words(&[1]), &dimension(numbers)].concat();
        assert_eq!(text(&version_3([3, 2, 4, 2])).unwrap(), "[3:11]");
        assert_eq!(text(&version_3([3, 2, u16::MAX, 1])), None, "without end");
        let many = text(&version_3([0, 2, 65, 1])).unwrap();
        assert!(many.starts_with("[0:1;2:3;") && many.ends_with(";126:127;…]"), "{many}");
    }

    #[test]
    fn points_in_their_order() {
        assert_eq!(text(&words(&[1, 1, 0, 24, 2, 2, 3, 4, 1, 2])).unwrap(), "[(3,4);(1,2)]");
        let version_2 = [&words(&[1, 2])[..], &[2], &words(&[1]), &[1, 0, 7, 0]].concat();
        assert_eq!(text(&version_2).unwrap(), "[(7)]");
        assert_eq!(text(&words(&[1, 1, 0, 24, 33, 2, 3, 4, 1, 2])), None, "33 dimensions");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_long(
            kind in 0u32..4,
            version in 0u32..4,
            mut bytes in prop::collection::vec(any::<u8>(), 0..400),
        ) {
            let mut all = words(&[kind, version]);
            all.append(&mut bytes);
            prop_assert!(text(&all).is_none_or(|text| text.len() < 64 * 32 * 42));
        }
    }
}
