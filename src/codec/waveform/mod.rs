//! Decodes waveforms of detectors: rows of samples, each encoded independently (LEGEND data format specifications,
//! "Encoded arrays").

mod sigcompress;
mod zigzag;

/// A way of encoding a waveform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// `radware_sigcompress`: differences or values, in as many bits as each section needs. The encoder added the shift
    /// to each sample.
    Sigcompress {
        /// To subtract from each sample.
        shift: i32,
    },
    /// `uleb128_zigzag_diff`: each difference as a zigzag LEB128 number.
    Zigzag,
}

impl Coding {
    /// Number of samples of a waveform, without decoding it. `None`: truncated or impossible bytes.
    pub fn samples(self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Sigcompress { .. } => sigcompress::samples(bytes),
            Self::Zigzag => zigzag::samples(bytes),
        }
    }

    /// Decodes one waveform into `out`. `None`: it is damaged, or [`Coding::samples`] differs from the length of `out`,
    /// which then holds arbitrary samples.
    pub fn decode(self, bytes: &[u8], out: &mut [i32]) -> Option<()> {
        match self {
            Self::Sigcompress { shift } => sigcompress::decode(bytes, shift, out),
            Self::Zigzag => zigzag::decode(bytes, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(coding: Coding, bytes: &[u8]) -> Option<Vec<i32>> {
        let mut out = vec![0; coding.samples(bytes)?];
        coding.decode(bytes, &mut out).unwrap();
        Some(out)
    }

    fn words(words: &[u16]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    /// Worked by hand from the specification.
    #[test]
    fn examples_come_out() {
        let zigzag = |bytes: &[u8]| decoded(Coding::Zigzag, bytes);
        assert_eq!(zigzag(&[0xc8, 1, 2, 3, 0, 0xcf, 1]), Some(vec![100, 101, 99, 99, -5]));
        assert_eq!(zigzag(&[0xd0, 0x0f, 0x80, 1, 0xff, 1]), Some(vec![1000, 1064, 936]));
        assert_eq!(zigzag(&[0x80, 0xf1, 4, 0xfd, 0xf0, 4]), Some(vec![40000, 1]));
        assert_eq!(zigzag(&[]), Some(vec![]));
        assert_eq!(zigzag(&[0x80]), None);
        assert_eq!(zigzag(&[0x80, 0x80, 0x80, 0x80, 0x80, 1]), None);
        let packed = |shift, content: &[u16]| decoded(Coding::Sigcompress { shift }, &words(content));
        assert_eq!(packed(0, &[5, 5, 2, 0x64, 0x1e00, 0]), Some(vec![100, 101, 103, 102, 100]));
        assert_eq!(packed(0, &[6, 6, 0x23, 10, 10, 0x1450]), Some(vec![10, 20, 35, 45, 60, 70]));
        assert_eq!(packed(-32768, &[3, 3, 0x22, 0x1c40, 1, 0x1000]), Some(vec![40000, 40001, 40003]));
        let full = packed(0, &[3, 3, 0x10, 0x8000, 0xffff, 0, 0xffff, 0]);
        assert_eq!(full, Some(vec![32767, -32768, 32767]));
        let mut two = vec![0x82, 0x80, 2, 5];
        two.extend([0; 16]);
        two.extend([2, 2, 5, 0]);
        assert_eq!(packed(0, &two), Some(vec![5; 130]));
    }

    #[test]
    fn what_is_damaged_is_said() {
        let packed = |content: &[u16]| decoded(Coding::Sigcompress { shift: 0 }, &words(content));
        // A width of 0 and of 17, no samples in a section, more than there should be, an end before the last word.
        for damaged in [&[5, 5, 0, 0][..], &[5, 5, 17, 0], &[5, 0, 2, 0], &[5, 6, 2, 0, 0], &[5, 5, 16, 0, 1], &[5]] {
            assert_eq!(packed(damaged), None, "{damaged:?}");
        }
        assert_eq!(packed(&[]), None);
        // Any other number of samples than there are.
        for (coding, bytes) in
            [(Coding::Zigzag, vec![2; 20]), (Coding::Sigcompress { shift: 0 }, words(&[1, 1, 16, 0, 0]))]
        {
            let samples = coding.samples(&bytes).unwrap();
            assert_eq!(coding.decode(&bytes, &mut vec![0; samples + 1]), None);
            assert_eq!(coding.decode(&bytes, &mut vec![0; samples - 1]), None);
        }
    }

    proptest! {
        #[test]
        fn differences_come_back(samples in prop::collection::vec(any::<i32>(), 0..200)) {
            let mut bytes = Vec::new();
            let mut last = 0_i32;
            for sample in &samples {
                let difference = sample.wrapping_sub(last);
                let mut number = ((difference << 1) ^ (difference >> 31)) as u32;
                while number >= 128 {
                    bytes.push(number as u8 | 128);
                    number >>= 7;
                }
                bytes.push(number as u8);
                last = *sample;
            }
            prop_assert_eq!(decoded(Coding::Zigzag, &bytes), Some(samples));
        }

        /// Numbers of all widths, packed bit by bit.
        #[test]
        fn sections_come_back(
            sections in prop::collection::vec(
                (1..=16_u32, any::<bool>(), prop::collection::vec(any::<u16>(), 1..40)),
                0..5,
            ),
            least in any::<i16>(),
        ) {
            let (mut content, mut expected) = (vec![0], Vec::new());
            for (width, differences, values) in &sections {
                let values: Vec<u16> = values.iter().map(|value| value & (u16::MAX >> (16 - width))).collect();
                let mut last = 7_i16;
                content.push((values.len() + usize::from(*differences)) as u16);
                content.push(*width as u16 + if *differences { 32 } else { 0 });
                if *differences {
                    content.push(last as u16);
                    expected.push(i32::from(last));
                }
                content.push(least as u16);
                let bits: Vec<bool> =
                    values.iter().flat_map(|value| (0..*width).rev().map(move |bit| value >> bit & 1 == 1)).collect();
                content.extend(bits.chunks(16).map(|bits| {
                    bits.iter().enumerate().fold(0, |word, (at, bit)| word | u16::from(*bit) << (15 - at))
                }));
                expected.extend(values.iter().map(|value| {
                    let sample = (*value as i16).wrapping_add(least);
                    last = if *differences { last.wrapping_add(sample) } else { sample };
                    i32::from(last)
                }));
            }
            content[0] = expected.len() as u16;
            prop_assert_eq!(decoded(Coding::Sigcompress { shift: 0 }, &words(&content)), Some(expected));
        }

        /// What is decoded is what was counted, of any bytes.
        #[test]
        fn any_bytes_are_survived(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0..3_u8, Just(255)], 0..300),
            shift in any::<i32>(),
            size in 0..40_usize,
        ) {
            for coding in [Coding::Zigzag, Coding::Sigcompress { shift }] {
                let _ = decoded(coding, &bytes);
                let whole = coding.decode(&bytes, &mut vec![0; size]).is_some();
                prop_assert_eq!(whole, coding.samples(&bytes) == Some(size));
            }
        }
    }
}
