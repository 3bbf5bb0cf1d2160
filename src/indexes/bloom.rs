//! Bit positions of values in the filters of a `CHUNK_BLOOM`: double hashing with MurmurHash3 (HEP001 §8.7).

use std::io::Cursor;
use std::sync::atomic::{AtomicU8, Ordering};

use arrow_array::Array;

use super::canonical;
pub use crate::table::BloomScheme as Scheme;

/// Seed of the second hash.
const SECOND: u32 = 0x9E37_79B9;

impl Scheme {
    /// Returns the two hashes of a value's canonical bytes.
    pub fn hashes(self, bytes: &[u8]) -> [u64; 2] {
        match self {
            Self::OneHash { seed } => halves(bytes, seed),
            Self::LowHigh => [halves(bytes, 0)[0], halves(bytes, SECOND)[1]],
            Self::LowLow => [halves(bytes, 0)[0], halves(bytes, SECOND)[0]],
        }
    }
}

/// Returns the low and the high 64 bits of `MurmurHash3_x64_128`.
fn halves(bytes: &[u8], seed: u32) -> [u64; 2] {
    // Reading from a slice cannot fail.
    let hash = murmur3::murmur3_x64_128(&mut Cursor::new(bytes), seed).unwrap_or_default();
    [hash as u64, (hash >> 64) as u64]
}

/// Returns the `k` bit positions of a value with these hashes, in a filter of `bits` bits. A length of 0 counts as 1.
pub fn positions(hashes: [u64; 2], k: u16, bits: u64) -> impl Iterator<Item = u64> {
    let [a, b] = hashes;
    (0..u64::from(k)).map(move |i| a.wrapping_add(i.wrapping_mul(b)) % bits.max(1))
}

/// Whether a filter may hold a value: whether all bits of the value are set. A bit outside `filter` counts as unset.
pub fn may_hold(filter: &[u8], hashes: [u64; 2], k: u16) -> bool {
    positions(hashes, k, filter.len() as u64 * 8).all(|bit| {
        let byte = usize::try_from(bit / 8).ok().and_then(|byte| filter.get(byte));
        byte.is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
    })
}

/// Sets the bits of all values of `array` in `filter`, which several threads may fill. Returns whether the type has
/// canonical bytes.
pub fn insert(filter: &[AtomicU8], array: &dyn Array, scheme: Scheme, k: u16) -> bool {
    let bits = filter.len() as u64 * 8;
    canonical::for_each(array, |_, bytes| {
        for bit in positions(scheme.hashes(bytes), k, bits) {
            if let Some(byte) = usize::try_from(bit / 8).ok().and_then(|byte| filter.get(byte)) {
                byte.fetch_or(1 << (bit % 8), Ordering::Relaxed);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;

    use super::*;

    /// Expected values: `mmh3.hash64(bytes, seed, x64arch=True, signed=False)` of mmh3 5, the reference implementation
    /// in C, and positions by its numbers in Python.
    #[test]
    fn hashes_are_those_of_the_reference() {
        let bytes: Vec<u8> = (0..40).collect();
        type Case<'a> = (&'a [u8], [u64; 2], [u64; 2], [u64; 4]);
        let cases: [Case<'_>; 4] = [
            (b"", [0, 0], [0x5255_9d26_97d5_2d8e, 0xec75_43c8_e367_16af], [0, 887, 158, 429]),
            (
                b"electron",
                [0xd6c6_d930_1c09_0f2f, 0x5af0_8b02_4a28_9e2e],
                [0x188d_2884_71be_1e4a, 0xc73f_a3f4_72c1_2295],
                [551, 164, 777, 390],
            ),
            (
                &(-7i64).to_le_bytes(),
                [0x9006_7640_d712_8708, 0x58bd_048d_8f6d_759f],
                [0x1e8f_f054_cc45_8b2a, 0xc3bc_293d_feb5_12c1],
                [888, 673, 458, 859],
            ),
            (
                &bytes,
                [0xc3a0_54d8_418c_8064, 0xa001_ca30_974c_12ad],
                [0xfcf3_22fe_5412_129e, 0xf5d7_2474_bdb6_45b2],
                [548, 782, 16, 250],
            ),
        ];
        for (bytes, seed_0, seed_second, low_high) in cases {
            assert_eq!(Scheme::OneHash { seed: 0 }.hashes(bytes), seed_0);
            assert_eq!(Scheme::OneHash { seed: SECOND }.hashes(bytes), seed_second);
            assert_eq!(Scheme::LowHigh.hashes(bytes), [seed_0[0], seed_second[1]]);
            assert_eq!(Scheme::LowLow.hashes(bytes), [seed_0[0], seed_second[0]]);
            assert_eq!(positions(Scheme::LowHigh.hashes(bytes), 4, 1000).collect::<Vec<_>>(), low_high);
        }
    }

    #[test]
    fn what_was_put_in_is_found() {
        let values = Int64Array::from(vec![Some(5), None, Some(-7)]);
        for scheme in [Scheme::LowHigh, Scheme::LowLow, Scheme::OneHash { seed: 0 }, Scheme::OneHash { seed: 9 }] {
            let filter = [const { AtomicU8::new(0) }; 16];
            assert!(insert(&filter, &values, scheme, 3));
            let filter = filter.map(AtomicU8::into_inner);
            assert!(filter.iter().map(|byte| byte.count_ones()).sum::<u32>() <= 6);
            for value in [5i64, -7] {
                assert!(may_hold(&filter, scheme.hashes(&value.to_le_bytes()), 3));
            }
            assert!((100..200i64).any(|value| !may_hold(&filter, scheme.hashes(&value.to_le_bytes()), 3)));
        }
        assert!(!may_hold(&[], [0, 0], 1));
        assert!(may_hold(&[], [0, 0], 0));
    }
}
