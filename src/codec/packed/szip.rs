//! Filter 4: SZIP, the adaptive Rice coding of CCSDS 121.0-B, in the framing of libhdf5 and libaec.
//!
//! ```text
//! 0         4
//! +---------+-- bits ------------------------------------------------------------------
//! | size    | interval 0: block, block, …               | interval 1: block, block, …  …
//! | u32 LE  |   block: option, [reference], samples     |
//! +---------+--------------------------------------------------------------------------
//! ```
//!
//! A chunk consists of scanlines of samples. Each scanline is an interval of whole blocks; the last block is padded.
//! With nearest-neighbour coding (NN), an interval begins with an unchanged sample, the reference, and each later
//! sample is its distance from the one before, folded into a number from 0. With entropy coding (EC), the samples
//! themselves are coded. The option of a block tells how its numbers are written:
//!
//! | option | numbers |
//! | --- | --- |
//! | 0, then bit 0 | all are 0, in a run of blocks whose length follows |
//! | 0, then bit 1 | two at a time as one unary number ([`pair`]) |
//! | 1 + k | all but the low k bits of each in unary, then the low bits of each |
//! | all ones | unchanged |
//!
//! Pixels of 32 and of 64 bits are split into bytes: the first bytes of all pixels, then the second ones, and so on, in
//! scanlines of 8-bit samples. The masks RAW, EC and LSB of the parameters add nothing to NN and MSB.

use super::bit_reader::BitReader;
use crate::codec::Error;

/// Byte order of samples of more than 8 bits: most significant byte first.
const MSB: u32 = 16;
/// Nearest-neighbour coding.
const NN: u32 = 32;
/// Most samples in a block (`H5_SZIP_MAX_PIXELS_PER_BLOCK`).
const BLOCK: usize = 32;
/// Written as the length of a run of zero blocks, this means up to the end of the segment; lengths from it on are
/// written one greater.
const REST_OF_SEGMENT: u32 = 5;
/// Number of blocks of a segment. A run of zero blocks that crosses the end of a segment states its length.
const SEGMENT: u32 = 64;

/// Decompresses `data` into `out`, by the parameters in the file; returns the bytes written.
pub(in crate::codec) fn decode(data: &[u8], out: &mut [u8], parameters: &[u32]) -> Result<usize, Error> {
    let coding = Coding::new(parameters)?;
    let (size, stream) = data.split_first_chunk::<4>().ok_or("the header is cut short")?;
    let size = u32::from_le_bytes(*size) as usize;
    let room = out.len();
    let out = out.get_mut(..size).ok_or_else(|| format!("the header says {size} bytes, more than {room}"))?;
    let planes = coding.planes();
    if !size.is_multiple_of(planes) {
        return Err(format!("the header says {size} bytes, which are no whole pixels of {planes} bytes").into());
    }
    let mut left = size.div_ceil(coding.pixel_bytes) * planes;
    let mut decoder = Decoder { coding, reader: BitReader::new(stream), block: [0; BLOCK], previous: 0, out, at: 0 };
    while left > 0 {
        let count = left.min(coding.scanline as usize);
        decoder.interval(count)?;
        left -= count;
    }
    Ok(size)
}

/// The parameters, checked.
#[derive(Clone, Copy)]
struct Coding {
    is_nearest_neighbour: bool,
    is_most_significant_first: bool,
    /// Number of samples in a block.
    block: usize,
    /// Number of samples in a scanline.
    scanline: u32,
    /// Bits of a sample.
    bits: u32,
    pixel_bytes: usize,
}

impl Coding {
    fn new(parameters: &[u32]) -> Result<Self, Error> {
        let &[mask, block, pixel_bits, scanline] = parameters else {
            return Err(format!("{} parameters, 4 expected", parameters.len()).into());
        };
        if block == 0 || block as usize > BLOCK || block % 2 == 1 {
            return Err(format!("blocks of {block} pixels, an even number up to {BLOCK} expected").into());
        }
        if scanline == 0 {
            return Err("scanlines of 0 pixels".into());
        }
        let (bits, pixel_bytes) = match pixel_bits {
            32 => (8, 4),
            64 => (8, 8),
            1..=8 => (pixel_bits, 1),
            9..=16 => (pixel_bits, 2),
            17..=31 => (pixel_bits, 4),
            _ => return Err(format!("pixels of {pixel_bits} bits, 1 to 32 or 64 expected").into()),
        };
        let (is_nearest_neighbour, is_most_significant_first) = (mask & NN != 0, mask & MSB != 0);
        Ok(Self { is_nearest_neighbour, is_most_significant_first, block: block as usize, scanline, bits, pixel_bytes })
    }

    /// Number of blocks in an interval.
    fn blocks(self) -> u32 {
        self.scanline.div_ceil(self.block as u32)
    }

    /// Number of samples in a pixel.
    fn planes(self) -> usize {
        if self.bits == 8 { self.pixel_bytes } else { 1 }
    }

    /// Number of bits that hold the option of a block.
    fn option_bits(self) -> u32 {
        match self.bits {
            1..=8 => 3,
            9..=16 => 4,
            _ => 5,
        }
    }

    /// The largest sample.
    fn largest(self) -> u32 {
        u32::MAX >> (32 - self.bits)
    }
}

struct Decoder<'a> {
    coding: Coding,
    reader: BitReader<'a>,
    /// The numbers of a block; later its samples.
    block: [u32; BLOCK],
    /// The sample before this block.
    previous: u32,
    out: &'a mut [u8],
    /// Position in `out` of the next sample.
    at: usize,
}

impl Decoder<'_> {
    /// Decodes an interval of which `count` samples are wanted; the rest is the last block's padding.
    fn interval(&mut self, count: usize) -> Result<(), Error> {
        let size = self.coding.block;
        let (mut index, mut left) = (0, count);
        while left > 0 {
            let is_referenced = self.coding.is_nearest_neighbour && index == 0;
            let run = self.numbers(index, is_referenced)?;
            if self.coding.is_nearest_neighbour {
                self.undo_distances(is_referenced);
            }
            self.store(size.min(left));
            left -= size.min(left);
            index += run;
            if run > 1 {
                self.block = [if self.coding.is_nearest_neighbour { self.previous } else { 0 }; BLOCK];
                for _ in 1..run {
                    // Stops if a run passes the end of the chunk.
                    let count = size.min(left);
                    self.store(count);
                    left -= count;
                }
            }
        }
        Ok(())
    }

    /// Reads the numbers of a block; if `is_referenced`, the first is a reference. Returns the number of blocks if it
    /// begins a run of zero blocks, else 1.
    fn numbers(&mut self, index: u32, is_referenced: bool) -> Result<u32, Error> {
        let (reader, bits) = (&mut self.reader, self.coding.bits);
        let Some(block) = self.block.get_mut(..self.coding.block) else { return Err("a block is too long".into()) };
        let option = reader.take(self.coding.option_bits())?;
        if option == u32::MAX >> (32 - self.coding.option_bits()) {
            for number in block {
                *number = reader.take(bits)?;
            }
            return Ok(1);
        }
        let is_in_pairs = option == 0 && reader.take(1)? == 1;
        let numbers = match block {
            [reference, numbers @ ..] if is_referenced => {
                *reference = reader.take(bits)?;
                numbers
            }
            numbers => numbers,
        };
        if is_in_pairs {
            // Pairs begin at the reference, whose pair stores only the second number.
            if is_referenced && let Some(second) = numbers.first_mut() {
                *second = pair(reader.zeros()?)?.1;
            }
            for two in numbers.get_mut(usize::from(is_referenced)..).unwrap_or_default().as_chunks_mut::<2>().0 {
                *two = pair(reader.zeros()?)?.into();
            }
        } else if option == 0 {
            numbers.fill(0);
            return self.run(index);
        } else {
            let low = option - 1;
            for number in &mut *numbers {
                *number = reader.zeros()? << low;
            }
            if low > 0 {
                for number in numbers {
                    *number |= reader.take(low)?;
                }
            }
        }
        Ok(1)
    }

    /// Reads the number of zero blocks that begin with block `index`.
    fn run(&mut self, index: u32) -> Result<u32, Error> {
        let left = self.coding.blocks() - index;
        let run = match self.reader.zeros()?.saturating_add(1) {
            REST_OF_SEGMENT => left.min(SEGMENT - index % SEGMENT),
            long if long > REST_OF_SEGMENT => long - 1,
            short => short,
        };
        if run > left {
            return Err(format!("{run} zero blocks from block {index} of {}", self.coding.blocks()).into());
        }
        Ok(run)
    }

    /// Turns the numbers of a block, each a distance from the sample before, into samples.
    fn undo_distances(&mut self, is_referenced: bool) {
        let largest = self.coding.largest();
        let middle = largest / 2 + 1;
        let mut previous = self.previous;
        let mut distances = self.block.iter_mut().take(self.coding.block);
        if is_referenced && let Some(reference) = distances.next() {
            previous = *reference;
        }
        for number in distances {
            // Distances up and down alternate until one end of the range is reached.
            let distance = *number;
            let mirror = if previous & middle == 0 { 0 } else { largest };
            previous = if distance.div_ceil(2) > previous ^ mirror {
                distance ^ mirror
            } else {
                // Odd numbers lead down, even ones up.
                previous.wrapping_add(distance >> 1 ^ (distance & 1).wrapping_neg())
            };
            *number = previous;
        }
        self.previous = previous;
    }

    /// Writes the first `count` samples of the block.
    fn store(&mut self, count: usize) {
        let samples = self.block.get(..count).unwrap_or_default();
        let coding = self.coding;
        let out = self.out.get_mut(self.at..).unwrap_or_default();
        match (coding.pixel_bytes, coding.is_most_significant_first) {
            (planes, _) if coding.planes() > 1 => return self.store_planes(count, planes),
            (1, _) => put(out, samples, |sample| [sample as u8]),
            (2, true) => put(out, samples, |sample| (sample as u16).to_be_bytes()),
            (2, false) => put(out, samples, |sample| (sample as u16).to_le_bytes()),
            (_, true) => put(out, samples, u32::to_be_bytes),
            (_, false) => put(out, samples, u32::to_le_bytes),
        }
        self.at += count * coding.pixel_bytes;
    }

    /// As [`Decoder::store`], for samples that are single bytes of pixels with `planes` bytes.
    fn store_planes(&mut self, count: usize, planes: usize) {
        let mut samples = self.block.get(..count).unwrap_or_default();
        while !samples.is_empty() {
            let places = self.out.get_mut(self.at..).unwrap_or_default().iter_mut().step_by(planes);
            let (now, later) = samples.split_at(samples.len().min(places.len()));
            places.zip(now).for_each(|(place, sample)| *place = *sample as u8);
            self.at += now.len() * planes;
            if self.at < self.out.len() || now.is_empty() {
                break;
            }
            // After the last pixel, the next bytes of all pixels follow.
            self.at = self.at + 1 - self.out.len();
            samples = later;
        }
    }
}

fn put<const N: usize>(out: &mut [u8], samples: &[u32], bytes: impl Fn(u32) -> [u8; N]) {
    let (places, rest) = out.as_chunks_mut();
    places.iter_mut().zip(samples).for_each(|(place, sample)| *place = bytes(*sample));
    // libaec handles the bytes of 3-byte elements as 4-byte samples, the last of which may be cut.
    if let Some(last) = samples.get(places.len()) {
        rest.iter_mut().zip(bytes(*last)).for_each(|(place, byte)| *place = byte);
    }
}

/// Number of valid pair codes: pairs with a sum of at most 12.
const PAIRS: usize = 91;

/// Two numbers in one code: codes are ordered by the sum, then by the second number.
fn pair(code: u32) -> Result<(u32, u32), Error> {
    const TABLE: [(u8, u8); PAIRS] = {
        let mut table = [(0, 0); PAIRS];
        let (mut sum, mut second) = (0, 0);
        let mut code = 0;
        while code < PAIRS {
            table[code] = (sum - second, second);
            (sum, second) = if second == sum { (sum + 1, 0) } else { (sum, second + 1) };
            code += 1;
        }
        table
    };
    let (first, second) = *TABLE.get(code as usize).ok_or_else(|| format!("a pair of code {code}"))?;
    Ok((first.into(), second.into()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::bit_reader::bits;
    use super::*;

    #[test]
    fn pairs_are_counted_by_their_sum() {
        let first: Vec<_> = (0..6).map(|code| pair(code).unwrap()).collect();
        assert_eq!(first, [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2)]);
        assert_eq!(pair(90), Ok((0, 12)));
        assert!(pair(91).is_err());
    }

    #[test]
    fn a_chunk_by_hand() {
        // NN, 8 bits, blocks of 2 in scanlines of 4: option 1 (k = 0) with reference 5 and distance 1, which is 1 down;
        // then one block of zeros.
        let stream = [vec![4, 0, 0, 0], bits("001 00000101 01 000 0 1")].concat();
        let mut out = [0; 4];
        assert_eq!(decode(&stream, &mut out, &[NN, 2, 8, 4]), Ok(4));
        assert_eq!(out, [5, 4, 4, 4]);
        assert!(decode(&stream[..5], &mut out, &[NN, 2, 8, 4]).is_err());
        assert!(decode(&stream, &mut out[..3], &[NN, 2, 8, 4]).is_err());
    }

    #[test]
    fn parameters_out_of_range_are_named() {
        let message = |parameters: &[u32]| decode(&[0; 9], &mut [0; 8], parameters).unwrap_err().to_string();
        assert_eq!(message(&[NN, 8, 8]), "3 parameters, 4 expected");
        assert_eq!(message(&[NN, 7, 8, 8]), "blocks of 7 pixels, an even number up to 32 expected");
        assert_eq!(message(&[NN, 8, 40, 8]), "pixels of 40 bits, 1 to 32 or 64 expected");
        assert_eq!(message(&[NN, 8, 8, 0]), "scanlines of 0 pixels");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            mut data in prop::collection::vec(any::<u8>(), 0..300),
            size in 0u8..=255,
            mask in 0u32..64,
            block in 0u32..20,
            bits in 0u32..66,
            scanline in prop_oneof![0u32..200, any::<u32>()],
        ) {
            if let Some(header) = data.first_chunk_mut::<4>() {
                *header = [size, 0, 0, 0];
            }
            let _ = decode(&data, &mut [0; 255], &[mask, block * 2, bits, scanline]);
        }
    }
}
