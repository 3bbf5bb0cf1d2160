//! Filter 6: numbers as their distances from the smallest one, each in as many bits as the largest distance takes.
//!
//! ```text
//! 0         4            5          13         21
//! +---------+------------+----------+----------+-----------------------
//! | bits    | size of    | smallest | unused   | numbers, the most
//! | u32 LE  | smallest   | LE       |          | significant bit first
//! +---------+------------+----------+----------+-----------------------
//! ```
//!
//! If the dataset has a fill value, the number with all bits set stands for it. Floating-point numbers were multiplied
//! by a power of ten and rounded to integers; the smallest is stored unchanged. Numbers as wide as the type are stored
//! unpacked.

use super::bit_reader::field;
use crate::codec::Error;

/// Bytes before the numbers.
const HEADER: usize = 21;
/// Number of parameters that libhdf5 stores, those of the fill value included.
const PARAMETERS: usize = 20;

/// Unpacks `data` into `out`, by the parameters in the file; returns the bytes written.
pub(in crate::codec) fn decode(data: &[u8], out: &mut [u8], parameters: &[u32]) -> Result<usize, Error> {
    let parameters = <&[u32; PARAMETERS]>::try_from(parameters)
        .map_err(|_| format!("{} parameters, {PARAMETERS} expected", parameters.len()))?;
    let [scale_type, factor, elements, class, size, _, order, is_filled, fill_low, fill_high, ..] = *parameters;
    let is_float = match (class, scale_type, size) {
        (0, 2, 1 | 2 | 4 | 8) => false,
        (1, 0, 4 | 8) => true,
        _ => return Err(format!("scale type {scale_type} for class {class} of {size} bytes").into()),
    };
    let room = out.len();
    // The writer chose the number of bits: at full width nothing is packed.
    if !is_float && factor == size * 8 {
        let out = out.get_mut(..data.len()).ok_or_else(|| format!("{} bytes, more than {room}", data.len()))?;
        out.copy_from_slice(data);
        return Ok(data.len());
    }
    let bytes = (elements as usize).checked_mul(size as usize);
    let out = bytes.and_then(|bytes| out.get_mut(..bytes));
    let out = out.ok_or_else(|| format!("{elements} elements of {size} bytes, more than {room}"))?;
    let (header, packed) = data.split_first_chunk::<HEADER>().ok_or("the header is cut short")?;
    let [a, b, c, d, smallest_size, smallest @ ..] = header;
    let bits = u32::from_le_bytes([*a, *b, *c, *d]);
    if bits > size * 8 {
        return Err(format!("numbers of {bits} bits for a type of {size} bytes").into());
    }
    if (elements as usize).checked_mul(bits as usize).is_none_or(|bits| bits.div_ceil(8) > packed.len()) {
        return Err(
            format!("{elements} numbers of {bits} bits do not fit into the {} bytes stored", packed.len()).into()
        );
    }
    let mut minimum = [0; 8];
    minimum.iter_mut().zip(smallest).take((*smallest_size).into()).for_each(|(to, from)| *to = *from);
    let scale = Scale {
        bits,
        minimum: u64::from_le_bytes(minimum),
        fill: (is_filled == 1).then_some(u64::from(fill_high) << 32 | u64::from(fill_low)),
        is_big_endian: order == 1,
    };
    if is_float {
        scale.floats(packed, out, size, factor.cast_signed());
    } else {
        scale.integers(packed, out, size);
    }
    Ok(out.len())
}

/// How numbers were packed.
struct Scale {
    /// Bits of a number.
    bits: u32,
    minimum: u64,
    fill: Option<u64>,
    is_big_endian: bool,
}

impl Scale {
    fn integers(&self, packed: &[u8], out: &mut [u8], size: u32) {
        let minimum = self.minimum;
        match size {
            1 => self.unpack(packed, out, |number| [number.wrapping_add(minimum) as u8]),
            2 => self.unpack(packed, out, |number| (number.wrapping_add(minimum) as u16).to_le_bytes()),
            4 => self.unpack(packed, out, |number| (number.wrapping_add(minimum) as u32).to_le_bytes()),
            _ => self.unpack(packed, out, |number| number.wrapping_add(minimum).to_le_bytes()),
        }
    }

    /// Repeats the arithmetic of libhdf5 in the type itself: a division and an addition, each rounded.
    fn floats(&self, packed: &[u8], out: &mut [u8], size: u32, digits: i32) {
        if size == 4 {
            let (minimum, power) = (f32::from_bits(self.minimum as u32), 10f32.powf(digits as f32));
            self.unpack(packed, out, |number| (number as i32 as f32 / power + minimum).to_le_bytes());
        } else {
            let (minimum, power) = (f64::from_bits(self.minimum), 10f64.powf(digits.into()));
            self.unpack(packed, out, |number| (number as i64 as f64 / power + minimum).to_le_bytes());
        }
    }

    /// Makes little-endian elements of `N` bytes from the numbers with `element`.
    fn unpack<const N: usize>(&self, packed: &[u8], out: &mut [u8], element: impl Fn(u64) -> [u8; N]) {
        let places = out.as_chunks_mut::<N>().0;
        if self.bits as usize == N * 8 {
            places.iter_mut().zip(packed.as_chunks::<N>().0).for_each(|(place, stored)| *place = *stored);
        } else {
            // The number with all bits set means the fill value. With 0 bits, every number does.
            let fill = self.fill.map(|fill| fill.to_le_bytes().first_chunk().copied().unwrap_or([0; N]));
            let filled = (1 << self.bits) - 1;
            for (i, place) in places.iter_mut().enumerate() {
                let number = if self.bits == 0 { 0 } else { field(packed, i * self.bits as usize, self.bits) };
                *place = match fill {
                    Some(fill) if number == filled => fill,
                    _ => element(number),
                };
            }
        }
        if self.is_big_endian {
            places.iter_mut().for_each(|place| place.reverse());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::bit_reader::bits;
    use super::*;

    /// Parameters of numbers of `size` bytes, little-endian.
    fn parameters(class: u32, elements: u32, size: u32, fill: Option<u32>) -> [u32; PARAMETERS] {
        let mut all = [0; PARAMETERS];
        all[..5].copy_from_slice(&[if class == 0 { 2 } else { 0 }, 0, elements, class, size]);
        all[7..9].copy_from_slice(&[u32::from(fill.is_some()), fill.unwrap_or(0)]);
        all
    }

    fn stored(bits: u8, smallest: &[u8], numbers: &[u8]) -> Vec<u8> {
        let mut data = vec![bits, 0, 0, 0, smallest.len() as u8];
        data.extend(smallest);
        data.resize(HEADER, 0);
        [&data, numbers].concat()
    }

    #[test]
    fn distances_are_added_to_the_smallest_and_all_bits_are_the_fill_value() {
        let data = stored(3, &(-2i64).to_le_bytes(), &bits("000 101 111"));
        let mut out = [0; 6];
        assert_eq!(decode(&data, &mut out, &parameters(0, 3, 2, None)), Ok(6));
        assert_eq!(out, [0xfe, 0xff, 3, 0, 5, 0]);
        assert_eq!(decode(&data, &mut out, &parameters(0, 3, 2, Some(1000))), Ok(6));
        assert_eq!(out[4..], 1000u16.to_le_bytes());
        assert_eq!(
            decode(&data[..22], &mut out, &parameters(0, 3, 2, None)).unwrap_err().to_string(),
            "3 numbers of 3 bits do not fit into the 1 bytes stored"
        );
    }

    #[test]
    fn parameters_out_of_range_are_named() {
        let data = stored(17, &[0; 8], &[0; 50]);
        let message = |parameters: &[u32]| decode(&data, &mut [0; 8], parameters).unwrap_err().to_string();
        assert_eq!(message(&parameters(0, 4, 2, None)), "numbers of 17 bits for a type of 2 bytes");
        assert_eq!(message(&parameters(0, 4, 3, None)), "scale type 2 for class 0 of 3 bytes");
        assert_eq!(message(&parameters(1, 4, 2, None)), "scale type 0 for class 1 of 2 bytes");
        assert_eq!(message(&parameters(0, 4, 4, None)), "4 elements of 4 bytes, more than 8");
        assert_eq!(message(&[2, 0, 4]), "3 parameters, 20 expected");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            mut data in prop::collection::vec(any::<u8>(), 0..300),
            bits in 0u8..66,
            start in prop::collection::vec(prop_oneof![0u32..9, any::<u32>()], 10),
            elements in 0u32..40,
        ) {
            if let Some(header) = data.first_chunk_mut::<4>() {
                *header = [bits, 0, 0, 0];
            }
            let mut parameters = [0; PARAMETERS];
            parameters[..10].copy_from_slice(&start);
            parameters[2] = elements;
            let _ = decode(&data, &mut [0; 256], &parameters);
        }
    }
}
