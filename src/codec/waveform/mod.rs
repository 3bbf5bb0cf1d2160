//! Decodes waveforms of detectors: rows of samples, each encoded by itself (LEGEND data format specifications,
//! "Encoded arrays").

mod sigcompress;
mod zigzag;

/// A way of encoding a waveform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// `radware_sigcompress`: differences or values in as many bits as each section needs. The shift was added to each
    /// sample before.
    Sigcompress {
        /// Taken from each sample.
        shift: i32,
    },
    /// `uleb128_zigzag_diff`: each difference as a zigzag LEB128 number.
    Zigzag,
}

impl Coding {
    /// Appends the samples of one waveform to `out`, at most `most` of them; `None`, with any number appended, where
    /// the bytes end early, say what cannot be, or hold more.
    pub fn decode(self, bytes: &[u8], most: usize, out: &mut Vec<i32>) -> Option<()> {
        match self {
            Self::Sigcompress { shift } => sigcompress::decode(bytes, shift, most, out),
            Self::Zigzag => zigzag::decode(bytes, most, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(coding: Coding, bytes: &[u8]) -> Option<Vec<i32>> {
        let mut out = Vec::new();
        coding.decode(bytes, 1000, &mut out).map(|()| out)
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
        assert_eq!(packed(&[1001, 1, 16, 0, 0]), None);
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

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300), shift in any::<i32>()) {
            let _ = decoded(Coding::Zigzag, &bytes);
            let _ = decoded(Coding::Sigcompress { shift }, &bytes);
        }
    }
}
