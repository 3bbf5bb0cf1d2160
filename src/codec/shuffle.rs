//! Filter 2 (shuffle): the bytes of elements sorted by their position in the element.

use super::Error;
use std::array::from_fn;

/// Number of elements to unshuffle at once if their size is not a power of two: those of 200 bytes stay in the first
/// cache.
const TILE: usize = 128;

/// Unshuffles elements of `size` bytes; returns the bytes written.
pub(super) fn decode(data: &[u8], out: &mut [u8], size: usize) -> Result<usize, Error> {
    if size == 0 {
        return Err("elements of 0 bytes".into());
    }
    let room = out.len();
    let out = out.get_mut(..data.len()).ok_or_else(|| format!("{} bytes, {room} expected", data.len()))?;
    let elements = data.len() / size;
    let (planes, tail) = data.split_at(elements * size);
    let (whole, rest) = out.split_at_mut(elements * size);
    rest.copy_from_slice(tail);
    if elements > 0 {
        together(|j| &planes[j * elements..][..elements], whole, size);
    }
    Ok(data.len())
}

/// Unshuffles planes that are separate slices. There are as many planes as an element has bytes, each as long as the
/// number of elements in `out`.
pub(super) fn decode_planes(planes: &[&[u8]], out: &mut [u8]) -> Result<(), Error> {
    let size = planes.len();
    if size == 0 || planes.iter().any(|plane| plane.len().checked_mul(size) != Some(out.len())) {
        return Err(format!("{size} planes of other than {} bytes together", out.len()).into());
    }
    together(|j| planes[j], out, size);
    Ok(())
}

/// Unshuffles elements of `size` bytes from as many planes, each as long as the number of elements.
fn together<'a>(plane: impl Fn(usize) -> &'a [u8], out: &mut [u8], size: usize) {
    match size {
        0 => {}
        1 => out.copy_from_slice(plane(0)),
        2 => interleave::<2, false>(from_fn(plane), out),
        4 => interleave::<4, false>(from_fn(plane), out),
        8 => interleave::<8, false>(from_fn(plane), out),
        16 => interleave::<16, false>(from_fn(plane), out),
        3 => by_parts::<2>(plane, out, size),
        5..8 => by_parts::<4>(plane, out, size),
        9..16 => by_parts::<8>(plane, out, size),
        17.. => by_parts::<16>(plane, out, size),
    }
}

/// Unshuffles elements whose size is not a power of two: parts of `N` bytes of a few elements, then the next parts.
/// Byte by byte, each write would touch another cache line.
fn by_parts<'a, const N: usize>(plane: impl Fn(usize) -> &'a [u8], out: &mut [u8], size: usize) {
    let mut parts = [[0; N]; TILE];
    for (tile, elements) in out.chunks_mut(TILE.saturating_mul(size)).enumerate() {
        let parts = &mut parts[..elements.len() / size];
        let range = tile * TILE..tile * TILE + parts.len();
        for first in (0..size).step_by(N) {
            // The last part overlaps the one before.
            let first = first.min(size - N);
            interleave::<N, false>(from_fn(|j| &plane(first + j)[range.clone()]), parts.as_flattened_mut());
            for (element, part) in elements.chunks_exact_mut(size).zip(&*parts) {
                element[first..first + N].copy_from_slice(part);
            }
        }
    }
}

/// Joins the bits of one-byte elements: row k of eight has bit k of every element, in as many bytes as there are words
/// in `out`. Both slices have the same length, a multiple of 8.
pub(super) fn decode_bits(rows: &[u8], out: &mut [u8]) {
    let length = out.len() / 8;
    interleave::<8, true>(from_fn(|k| rows.get(k * length..(k + 1) * length).unwrap_or_default()), out);
}

/// Joins elements of `N` bytes, a power of two; with `BITS`, transposes the bits of each.
fn interleave<const N: usize, const BITS: bool>(mut plane: [&[u8]; N], out: &mut [u8]) {
    let done = blocks::<N, BITS>(&plane, out);
    for bytes in &mut plane {
        *bytes = bytes.get(done..).unwrap_or_default();
    }
    single::<N, BITS>(&plane, out.get_mut(done * N..).unwrap_or_default());
}

/// Joins element by element.
fn single<const N: usize, const BITS: bool>(plane: &[&[u8]; N], out: &mut [u8]) {
    for (i, target) in out.as_chunks_mut::<N>().0.iter_mut().enumerate() {
        for (byte, plane) in target.iter_mut().zip(plane) {
            *byte = plane[i];
        }
        if BITS {
            exchange(target, |low, high, mask, shift| {
                let moved = (low >> shift ^ high) & mask;
                (low ^ moved << shift, high ^ moved)
            });
        }
    }
}

/// Transposes 8 × 8 bits, as many times as a row has bytes: in blocks of 1, then 2, then 4 (Hacker's Delight, 7-3). For
/// two rows, `swap` exchanges the bits of the first in `mask << shift` with those of the second in `mask`.
///
/// It must be inlined where the registers of its rows are known, like [`weave`].
#[inline(always)]
fn exchange<R: Copy, const N: usize>(rows: &mut [R; N], swap: impl Fn(R, R, u8, usize) -> (R, R)) {
    for (mask, shift) in [(0x55, 1), (0x33, 2), (0x0f, 4)] {
        for i in 0..N / 2 {
            let (low, high) = (i + i / shift * shift, i + i / shift * shift + shift);
            (rows[low], rows[high]) = swap(rows[low], rows[high], mask, shift);
        }
    }
}

/// Joins the bytes of each element, if each register holds bytes of one plane: it interleaves register `i` with
/// register `i + N / 2` byte by byte, log2 N times. `low` interleaves the lower halves of two registers, `high` the
/// upper ones.
#[inline(always)]
fn weave<R: Copy, const N: usize>(mut registers: [R; N], low: impl Fn(R, R) -> R, high: impl Fn(R, R) -> R) -> [R; N] {
    let mut woven = 1;
    while woven < N {
        let before = registers;
        for i in 0..N / 2 {
            registers[2 * i] = low(before[i], before[i + N / 2]);
            registers[2 * i + 1] = high(before[i], before[i + N / 2]);
        }
        woven *= 2;
    }
    registers
}

/// Joins whole blocks of as many elements as a register holds bytes; returns the number of elements.
///
/// For 8-byte elements, the loop over single elements gives 3 GB/s, registers of 16 bytes give 12 GB/s. With registers
/// of 32 bytes, decoding a chunk that is also compressed with LZ4 takes five sixths of the time.
#[cfg(target_arch = "x86_64")]
fn blocks<const N: usize, const BITS: bool>(plane: &[&[u8]; N], out: &mut [u8]) -> usize {
    if std::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor supports AVX2.
        unsafe { blocks_avx2::<N, BITS>(plane, out) }
    } else {
        // SAFETY: SSE2 is part of every x86-64 processor.
        unsafe { blocks_sse2::<N, BITS>(plane, out) }
    }
}

/// As [`blocks`], in registers of 32 bytes. Interleaving stays within their halves, which are put in order at the end.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn blocks_avx2<const N: usize, const BITS: bool>(plane: &[&[u8]; N], out: &mut [u8]) -> usize {
    use std::arch::x86_64::{
        __m256i, _mm_cvtsi32_si128, _mm256_and_si256, _mm256_loadu_si256, _mm256_permute2x128_si256, _mm256_set1_epi8,
        _mm256_setzero_si256, _mm256_sll_epi64, _mm256_srl_epi64, _mm256_storeu_si256, _mm256_unpackhi_epi8,
        _mm256_unpacklo_epi8, _mm256_xor_si256,
    };
    const LANES: usize = 32;
    let mut done = 0;
    for target in out.chunks_exact_mut(LANES * N) {
        let mut registers = [_mm256_setzero_si256(); N];
        for (register, plane) in registers.iter_mut().zip(plane) {
            let bytes: &[u8; LANES] = plane[done..].first_chunk().expect("planes hold whole blocks");
            // SAFETY: 32 bytes can be read there, at any address.
            *register = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) };
        }
        if BITS {
            exchange(&mut registers, |low, high, mask, shift| {
                let (mask, shift) = (_mm256_set1_epi8(mask as i8), _mm_cvtsi32_si128(shift as i32));
                let moved = _mm256_and_si256(_mm256_xor_si256(_mm256_srl_epi64(low, shift), high), mask);
                (_mm256_xor_si256(low, _mm256_sll_epi64(moved, shift)), _mm256_xor_si256(high, moved))
            });
        }
        let registers = weave(registers, |a, b| _mm256_unpacklo_epi8(a, b), |a, b| _mm256_unpackhi_epi8(a, b));
        let store = |bytes: &mut [u8; LANES], register: __m256i| {
            // SAFETY: 32 bytes can be written there, at any address.
            unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), register) }
        };
        let (low, high) = target.split_at_mut(LANES * N / 2);
        let pairs = low.as_chunks_mut().0.iter_mut().zip(high.as_chunks_mut().0);
        for ((low, high), pair) in pairs.zip(registers.as_chunks::<2>().0) {
            store(low, _mm256_permute2x128_si256::<0x20>(pair[0], pair[1]));
            store(high, _mm256_permute2x128_si256::<0x31>(pair[0], pair[1]));
        }
        done += LANES;
    }
    done
}

/// As [`blocks`], in registers of 16 bytes.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
fn blocks_sse2<const N: usize, const BITS: bool>(plane: &[&[u8]; N], out: &mut [u8]) -> usize {
    use std::arch::x86_64::{
        _mm_and_si128, _mm_cvtsi32_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_set1_epi8, _mm_setzero_si128,
        _mm_sll_epi64, _mm_srl_epi64, _mm_unpackhi_epi8, _mm_unpackhi_epi64, _mm_unpacklo_epi8, _mm_xor_si128,
    };
    const LANES: usize = 16;
    let mut done = 0;
    for target in out.chunks_exact_mut(LANES * N) {
        let mut registers = [_mm_setzero_si128(); N];
        for (register, plane) in registers.iter_mut().zip(plane) {
            let bytes = u128::from_le_bytes(*plane[done..].first_chunk().expect("planes hold whole blocks"));
            *register = _mm_set_epi64x((bytes >> 64) as i64, bytes as i64);
        }
        if BITS {
            exchange(&mut registers, |low, high, mask, shift| {
                let (mask, shift) = (_mm_set1_epi8(mask as i8), _mm_cvtsi32_si128(shift as i32));
                let moved = _mm_and_si128(_mm_xor_si128(_mm_srl_epi64(low, shift), high), mask);
                (_mm_xor_si128(low, _mm_sll_epi64(moved, shift)), _mm_xor_si128(high, moved))
            });
        }
        let registers = weave(registers, |a, b| _mm_unpacklo_epi8(a, b), |a, b| _mm_unpackhi_epi8(a, b));
        for (register, bytes) in registers.iter().zip(target.as_chunks_mut().0) {
            let low = _mm_cvtsi128_si64(*register) as u64;
            let high = _mm_cvtsi128_si64(_mm_unpackhi_epi64(*register, *register)) as u64;
            *bytes = (u128::from(high) << 64 | u128::from(low)).to_le_bytes();
        }
        done += LANES;
    }
    done
}

/// On other processors, the loop over single elements does all the work.
#[cfg(not(target_arch = "x86_64"))]
fn blocks<const N: usize, const BITS: bool>(_: &[&[u8]; N], _: &mut [u8]) -> usize {
    0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition: byte j of element i comes from place j × elements + i; what is left over stays behind.
    fn reference(data: &[u8], size: usize) -> Vec<u8> {
        let elements = data.len() / size;
        (0..data.len())
            .map(|at| if at < elements * size { data[at % size * elements + at / size] } else { data[at] })
            .collect()
    }

    proptest! {
        #[test]
        fn bytes_go_where_the_definition_puts_them(
            data in prop::collection::vec(any::<u8>(), 0..6000),
            size in 1usize..70,
        ) {
            let mut out = vec![0; data.len()];
            prop_assert_eq!(decode(&data, &mut out, size), Ok(data.len()));
            prop_assert_eq!(out, reference(&data, size));
            let elements = data.len() / size;
            let planes: Vec<_> = (0..size).map(|j| &data[j * elements..][..elements]).collect();
            let mut out = vec![0; elements * size];
            prop_assert_eq!(decode_planes(&planes, &mut out), Ok(()));
            prop_assert_eq!(&out, &reference(&data[..elements * size], size));
            prop_assert!(decode_planes(&planes, &mut vec![0; out.len() + 1]).is_err());
        }
    }

    /// Each kind of registers does what the loop over single elements does, and says how much that was.
    #[cfg(target_arch = "x86_64")]
    fn same<const N: usize, const BITS: bool>(data: &[u8]) {
        let elements = data.len() / N;
        let planes: [&[u8]; N] = std::array::from_fn(|j| &data[j * elements..][..elements]);
        let mut expected = vec![0; elements * N];
        single::<N, BITS>(&planes, &mut expected);
        if !BITS {
            assert_eq!(expected, reference(&data[..elements * N], N));
        }
        let check = |lanes: usize, done: usize, out: &[u8]| {
            assert_eq!(done, elements / lanes * lanes);
            assert_eq!(out[..done * N], expected[..done * N]);
            assert!(out[done * N..].iter().all(|byte| *byte == 0));
        };
        let mut out = vec![0; elements * N];
        // SAFETY: SSE2 is part of every x86-64 processor.
        check(16, unsafe { blocks_sse2::<N, BITS>(&planes, &mut out) }, &out);
        if std::is_x86_feature_detected!("avx2") {
            out.fill(0);
            // SAFETY: the processor was asked.
            check(32, unsafe { blocks_avx2::<N, BITS>(&planes, &mut out) }, &out);
        }
    }

    #[cfg(target_arch = "x86_64")]
    proptest! {
        #[test]
        fn registers_of_any_width_do_what_the_loop_does(data in prop::collection::vec(any::<u8>(), 0..2000)) {
            same::<2, false>(&data);
            same::<4, false>(&data);
            same::<8, false>(&data);
            same::<16, false>(&data);
            same::<8, true>(&data);
        }
    }

    #[test]
    fn elements_larger_than_the_chunk_leave_it_as_it_is() {
        let mut out = [0; 3];
        assert_eq!(decode(&[1, 2, 3], &mut out, 8), Ok(3));
        assert_eq!(out, [1, 2, 3]);
        assert!(decode(&[1, 2, 3], &mut out, 0).is_err());
        assert!(decode(&[1, 2, 3, 4], &mut out, 2).is_err());
    }
}
