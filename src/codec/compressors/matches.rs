//! The two operations of LZ77 decompressors: copy bytes from the input, and from the output.
//!
//! Both give `None` if the input ends, if a copy begins before the output does, or if the output is full. They must be
//! inlined: in most streams a call copies about ten bytes. Up to 32 bytes are copied in one or two registers of 16, if
//! both sides have room; the next call overwrites the excess.

use crate::codec::Error;

/// The error for a stream in which one of these functions failed.
pub(in crate::codec) fn damaged(room: usize) -> Error {
    format!("the stream is damaged, or gives more than {room} bytes").into()
}

/// Takes the next byte.
#[inline(always)]
pub(in crate::codec) fn byte(input: &mut &[u8]) -> Option<usize> {
    let (byte, rest) = input.split_first()?;
    *input = rest;
    Some(usize::from(*byte))
}

/// Adds the following bytes to `start`, up to and including the first below 255.
#[inline(always)]
pub(in crate::codec) fn lengthened(input: &mut &[u8], start: usize) -> Option<usize> {
    let mut number = start;
    loop {
        let more = byte(input)?;
        number += more;
        if more < 255 {
            return Some(number);
        }
    }
}

/// Copies the next `length` bytes of the input to position `at`.
#[inline(always)]
pub(in crate::codec) fn literal(input: &mut &[u8], length: usize, out: &mut [u8], at: usize) -> Option<()> {
    let target = out.get_mut(at..)?;
    if length <= 16 && wide::<16>(input, target) || length <= 32 && wide::<32>(input, target) {
        *input = &input[length..];
        return Some(());
    }
    let (source, rest) = input.split_at_checked(length)?;
    target.get_mut(..length)?.copy_from_slice(source);
    *input = rest;
    Some(())
}

#[inline(always)]
fn wide<const N: usize>(source: &[u8], target: &mut [u8]) -> bool {
    let (Some(source), Some(target)) = (source.first_chunk::<N>(), target.first_chunk_mut::<N>()) else { return false };
    *target = *source;
    true
}

/// Writes to position `at` the `length` bytes that begin `distance` bytes before it; source and destination may
/// overlap.
#[inline(always)]
pub(in crate::codec) fn repeat(out: &mut [u8], at: usize, distance: usize, length: usize) -> Option<()> {
    let from = at.checked_sub(distance).filter(|from| *from < at)?;
    if length > out.len().checked_sub(at)? {
        return None;
    }
    if distance < length {
        overlap(out, at, from, length);
    } else if !(length <= 16 && wide_within::<16>(out, from, at) || length <= 32 && wide_within::<32>(out, from, at)) {
        out.copy_within(from..from + length, at);
    }
    Some(())
}

/// Reads all bytes before writing any, so source and destination may overlap.
#[inline(always)]
fn wide_within<const N: usize>(out: &mut [u8], from: usize, at: usize) -> bool {
    let Some(bytes) = out[from..].first_chunk::<N>().copied() else { return false };
    let Some(target) = out[at..].first_chunk_mut::<N>() else { return false };
    *target = bytes;
    true
}

/// Repeats the bytes between `from` and `at` until `length` bytes are written.
#[inline(never)]
fn overlap(out: &mut [u8], at: usize, from: usize, length: usize) {
    if at - from == 1 {
        let byte = out[from];
        out[at..at + length].fill(byte);
        return;
    }
    let mut done = 0;
    while done < length {
        // The part to repeat doubles with every step.
        let step = (at - from + done).min(length - done);
        out.copy_within(from..from + step, at + done);
        done += step;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn copies_of_any_distance_are_those_of_single_bytes(
            data in prop::collection::vec(any::<u8>(), 120..200),
            at in 0usize..210,
            distance in 0usize..210,
            length in 0usize..210,
        ) {
            let mut out = data.clone();
            let done = repeat(&mut out, at, distance, length);
            if distance == 0 || distance > at || at + length > data.len() {
                prop_assert!(done.is_none());
                prop_assert_eq!(&out, &data);
            } else {
                prop_assert!(done.is_some());
                let mut expected = data;
                for i in at..at + length {
                    expected[i] = expected[i - distance];
                }
                prop_assert_eq!(&out[..at + length], &expected[..at + length]);
            }
        }

        #[test]
        fn literals_are_taken_from_the_input(
            data in prop::collection::vec(any::<u8>(), 0..80),
            length in 0usize..90,
            at in 0usize..90,
        ) {
            let (mut input, mut out) = (&data[..], [0; 80]);
            let done = literal(&mut input, length, &mut out, at);
            if length > data.len() || at + length > out.len() {
                prop_assert!(done.is_none());
            } else {
                prop_assert!(done.is_some());
                prop_assert_eq!(&out[at..at + length], &data[..length]);
                prop_assert_eq!(input, &data[length..]);
            }
        }
    }
}
