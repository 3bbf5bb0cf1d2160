//! The bits of elements, sorted by their position in the element, as Bitshuffle and Blosc store them.
//!
//! For n elements (a multiple of 8) of s bytes each, row 8 j + k holds bit k of byte j of every element. It has n / 8
//! bytes:
//!
//! ```text
//!  row 0          row 1          ...   row 8 s - 1
//! +--------------+--------------+-----+--------------+
//! | bit 0, byte 0| bit 1, byte 0| ... | bit 7, last  |
//! +--------------+--------------+-----+--------------+
//! ```
//!
//! So the eight rows for one byte of the elements are words of eight bytes, shuffled by position. Decoding unshuffles
//! each word and transposes its 8 × 8 bits, which gives the bytes of all elements, still shuffled by position.

use super::Error;
use super::shuffle;
use super::space::{Space, lend};

thread_local! {
    static PLANES: Space = const { Space::new(Vec::new()) };
}

/// Undoes the transposition of bits for elements of `size` bytes. Both slices have the same length, a multiple of 8
/// elements.
pub(super) fn decode(data: &[u8], out: &mut [u8], size: usize) -> Result<(), Error> {
    if size == 0 {
        return Err("elements of 0 bytes".into());
    }
    if data.len() != out.len() || !data.len().is_multiple_of(size.saturating_mul(8)) {
        return Err(format!("{} bytes are no multiple of 8 elements of {size}", data.len()).into());
    }
    if size == 1 {
        shuffle::decode_bits(data, out);
        return Ok(());
    }
    let elements = data.len() / size;
    lend(&PLANES, data.len(), |planes| {
        for (rows, plane) in data.chunks(elements.max(1)).zip(planes.chunks_mut(elements.max(1))) {
            shuffle::decode_bits(rows, plane);
        }
        shuffle::decode(planes, out, size).map(|_| ())
    })
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition, bit by bit.
    pub(crate) fn encode(data: &[u8], size: usize) -> Vec<u8> {
        let elements = data.len() / size;
        let mut out = vec![0; data.len()];
        for (at, byte) in data.iter().enumerate() {
            let (element, position) = (at / size, at % size);
            for bit in 0..8 {
                let row = (position * 8 + bit) * (elements / 8);
                out[row + element / 8] |= (byte >> bit & 1) << (element % 8);
            }
        }
        out
    }

    proptest! {
        #[test]
        fn bits_go_where_the_definition_puts_them(
            data in prop::collection::vec(any::<u8>(), 0..2000),
            size in 1usize..20,
        ) {
            let data = &data[..data.len() / (8 * size) * 8 * size];
            let mut out = vec![0; data.len()];
            prop_assert_eq!(decode(&encode(data, size), &mut out, size), Ok(()));
            prop_assert_eq!(&out, data);
        }
    }

    #[test]
    fn what_is_no_multiple_of_eight_elements_is_an_error() {
        assert!(decode(&[0; 15], &mut [0; 15], 1).is_err());
        assert!(decode(&[0; 16], &mut [0; 8], 1).is_err());
        assert!(decode(&[0; 16], &mut [0; 16], 0).is_err());
        assert!(decode(&[0; 16], &mut [0; 16], usize::MAX).is_err());
        assert_eq!(decode(&[], &mut [], 3), Ok(()));
    }
}
