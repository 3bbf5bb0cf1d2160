//! Compresses texts of fixed width, nearly all of which are shown as stored. An invalid byte is shown as three
//! (U+FFFD), and the size of a file must be known before a byte of it is read. So a page has room for the texts as
//! stored; if they are longer as shown, a Huffman code with the following bounds compresses the page:
//!
//! | shown | most bits |
//! | --- | --- |
//! | U+FFFD: the bytes EF BF BD, for one stored byte or more | 3 × 3 |
//! | any other byte, which is stored as it is | 9 |
//! | a byte of a length that is 0 for every text | 3 |
//!
//! The output is a gzip member (RFC 1952) with one deflate block (RFC 1951) that has no matches and always the same
//! code.

use super::leaf::ParquetLeaf;
use crate::views::Misfit;
use crate::views::parquet::thrift::page::PageBodyParts;

/// Bytes with a code of 3 bits: zeros of lengths, and the bytes of U+FFFD.
const SHORTEST: [u8; 4] = [0, 0xef, 0xbf, 0xbd];

/// Bytes with a code of 8 bits, which make the code complete.
const SHORTER: [u8; 3] = [b' ', b'e', b't'];

/// Longest code in bits: that of all other bytes and of the end.
const LONGEST: u64 = 9;

/// Number of bits of the code of a zero.
const ZERO: u64 = 3;

/// Number of symbols of deflate's literal alphabet in use: bytes, and the end.
const CODES: usize = 257;

/// The symbol of the end.
const END: usize = 256;

/// Header of a gzip member: deflate; no name, no time, no system.
const MEMBER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// Number of bytes at the end of a gzip member: checksum and length.
const MEMBER_END: u64 = 8;

/// The code lengths in use (1, 3, 8 and 9), each with its position among deflate's 19 code length codes.
const LENGTHS: [(u8, usize); 4] = [(1, 17), (3, 13), (8, 4), (9, 6)];

/// Number of code length codes up to the last of [`LENGTHS`].
const LENGTHS_TOLD: u64 = 18;

/// Number of bits before the first code: block type, three counts, lengths of code lengths, code lengths, those of two
/// unused distances included.
const HEAD: u64 = 3 + 5 + 5 + 4 + 3 * LENGTHS_TOLD + 2 * (CODES as u64 + 2);

/// Returns the most bytes of `count` texts of `width` stored bytes each, UTF-8 or not, with their lengths, [squeezed]
/// or not. `None`: the number overflows.
///
/// [squeezed]: squeeze
pub(super) fn most_bytes(width: u64, count: u64) -> Option<u64> {
    let shown = width.checked_mul(3)?;
    let of_length = u64::from(u64::BITS - shown.leading_zeros()).div_ceil(8).min(4);
    let bits = width.checked_add(of_length)?.checked_mul(LONGEST)?.checked_add((4 - of_length) * ZERO)?;
    let bits = bits.checked_mul(count)?.checked_add(HEAD + LONGEST)?;
    let squeezed = bits.div_ceil(8) + MEMBER.len() as u64 + MEMBER_END;
    let as_stored = width.checked_add(4)?.checked_mul(count)?;
    let as_shown = shown.checked_add(4)?.checked_mul(count)?;
    Some(as_stored.max(squeezed).min(as_shown))
}

/// Writes a stream of bits, the first bit in the lowest place of the first byte.
struct Bits<'a> {
    out: &'a mut Vec<u8>,
    word: u64,
    count: u32,
}

impl Bits<'_> {
    /// Appends up to 16 bits.
    fn push(&mut self, bits: u16, count: u32) {
        self.word |= u64::from(bits) << self.count;
        self.count += count;
        if self.count >= 32 {
            self.out.extend_from_slice(&(self.word as u32).to_le_bytes());
            self.word >>= 32;
            self.count -= 32;
        }
    }

    /// Pads the last byte with zeros.
    fn end(self) {
        self.out.extend(self.word.to_le_bytes().iter().take(self.count.div_ceil(8) as usize));
    }
}

/// Returns the length in bits of the code of a byte, or of the end.
fn length_of(code: usize) -> u8 {
    let is_of = |bytes: &[u8]| bytes.iter().any(|byte| usize::from(*byte) == code);
    match code {
        _ if is_of(&SHORTEST) => ZERO as u8,
        _ if is_of(&SHORTER) => 8,
        _ => LONGEST as u8,
    }
}

/// Returns the bits and the length of each code: canonical, ordered by length (RFC 1951, 3.2.2).
fn codes() -> [(u16, u32); CODES] {
    let mut codes = [(0, 0); CODES];
    let mut next = 0_u16;
    let mut before = 0;
    for length in [ZERO as u8, 8, LONGEST as u8] {
        next <<= length - before;
        before = length;
        for (_, to) in codes.iter_mut().enumerate().filter(|(code, _)| length_of(*code) == length) {
            // A code's highest bit comes first.
            *to = (next.reverse_bits() >> (u16::BITS - u32::from(length)), u32::from(length));
            next += 1;
        }
    }
    codes
}

/// Appends `bytes` as a gzip member.
fn squeeze(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&MEMBER);
    let mut bits = Bits { out, word: 0, count: 0 };
    // The last block, with a dynamic code: 257 symbols, 2 distances.
    bits.push(0b101, 3);
    bits.push(0, 5);
    bits.push(1, 5);
    bits.push(LENGTHS_TOLD as u16 - 4, 4);
    for position in 0..LENGTHS_TOLD as usize {
        bits.push(if LENGTHS.iter().any(|(_, used)| *used == position) { 2 } else { 0 }, 3);
    }
    let mut tell = |length: u8| {
        let which = LENGTHS.iter().position(|(told, _)| *told == length).unwrap_or(0) as u16;
        bits.push(which.reverse_bits() >> 14, 2);
    };
    (0..CODES).for_each(|code| tell(length_of(code)));
    tell(1);
    tell(1);
    let codes = codes();
    for byte in bytes {
        let (code, count) = codes[usize::from(*byte)];
        bits.push(code, count);
    }
    bits.push(codes[END].0, codes[END].1);
    bits.end();
    out.extend_from_slice(&libdeflater::crc32(bytes).to_le_bytes());
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
}

impl ParquetLeaf {
    /// Converts the page body of version 1 at the end of `out`, from `from` on, to version 2: levels without their
    /// lengths, and values compressed if the whole would exceed `room` bytes.
    ///
    /// # Errors
    /// A malformed body.
    pub fn to_version_2(&self, from: usize, room: usize, out: &mut Vec<u8>) -> Result<PageBodyParts, Misfit> {
        let mut at = from;
        let [repetition, definition] = [self.max_repetition, self.max_definition].map(|most| {
            if most == 0 {
                return Ok(0);
            }
            let length = out.get(at..).and_then(|rest| rest.first_chunk()).map(|length| u32::from_le_bytes(*length));
            let length = length.ok_or_else(|| Misfit::Array("a page without levels".into()))?;
            out.drain(at..at + 4);
            at += length as usize;
            Ok::<u32, Misfit>(length)
        });
        let (repetition, definition) = (repetition?, definition?);
        let whole = u32::try_from(out.len() - from).map_err(|error| Misfit::Size(error.to_string()))?;
        let is_compressed = whole as usize > room;
        if is_compressed {
            let values = out.split_off(at.min(out.len()));
            squeeze(&values, out);
        }
        Ok(PageBodyParts { repetition, definition, whole, is_compressed })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Texts in PLAIN encoding.
    fn plain(cells: &[Vec<u8>]) -> Vec<u8> {
        let mut out = Vec::new();
        for cell in cells {
            let text = String::from_utf8_lossy(cell);
            out.extend_from_slice(&(text.len() as u32).to_le_bytes());
            out.extend_from_slice(text.as_bytes());
        }
        out
    }

    fn check(width: u64, cells: &[Vec<u8>]) {
        let (bytes, most) = (plain(cells), most_bytes(width, cells.len() as u64).unwrap());
        let mut squeezed = Vec::new();
        squeeze(&bytes, &mut squeezed);
        let needed = squeezed.len().min(bytes.len()) as u64;
        assert!(needed <= most, "{needed} bytes where {most} were foreseen: {} of {width}", cells.len());
        let mut unpacked = vec![0; bytes.len()];
        let length = libdeflater::Decompressor::new().gzip_decompress(&squeezed, &mut unpacked).unwrap();
        assert!(length == bytes.len() && unpacked == bytes);
        let deflated = &squeezed[MEMBER.len()..squeezed.len() - MEMBER_END as usize];
        let mut unpacked = vec![0; bytes.len()];
        let unpack = miniz_oxide::inflate::decompress_slice_iter_to_slice;
        assert_eq!(unpack(&mut unpacked, std::iter::once(deflated), false, true), Ok(bytes.len()));
        assert!(unpacked == bytes);
    }

    #[test]
    fn the_code_has_no_gaps() {
        let sum: u32 = (0..CODES).map(|code| 1 << (9 - length_of(code))).sum();
        assert_eq!(sum, 1 << 9);
    }

    #[test]
    fn texts_of_any_bytes_have_room() {
        let cells = |width: usize, cell: &dyn Fn(usize) -> u8, count: usize| -> Vec<Vec<u8>> {
            (0..count).map(|row| (0..width).map(|at| cell(row * width + at)).collect()).collect()
        };
        for (width, count) in
            [(1, 0), (1, 1), (1, 4000), (3, 700), (16, 5000), (85, 90), (86, 90), (300, 50), (70_000, 3)]
        {
            check(width as u64, &cells(width, &|_| 0xff, count));
            check(width as u64, &cells(width, &|at| [b'a', 0xff][at % 2], count));
            check(width as u64, &cells(width, &|at| [0xc3, 0xa9][at % 2], count));
            check(width as u64, &cells(width, &|at| ((at * 97) >> 3) as u8, count));
            // Texts of nine bits a byte, and as many bytes of U+FFFD as there may be.
            check(width as u64, &cells(width, &|at| b"abcd"[at % 4], count));
            check(width as u64, &cells(width, &|at| [0xf0, 0x9f, 0x98][at % 3], count));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_have_room(
            width in 1usize..40,
            rows in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..60),
        ) {
            let cells: Vec<Vec<u8>> = rows.into_iter().map(|cell| cell[..cell.len().min(width)].to_vec()).collect();
            check(width as u64, &cells);
        }
    }

    #[test]
    fn room_is_what_is_stored_and_little_more() {
        assert_eq!(most_bytes(16, 32_768), Some(32_768 * 162 / 8 + 18 + 75));
        assert_eq!(most_bytes(8, 1000), Some(12_000));
        assert_eq!(most_bytes(16, 1), Some(52));
        assert_eq!(most_bytes(u64::MAX / 8, 1000), None);
    }
}
