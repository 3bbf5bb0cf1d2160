//! Filter 2: the bytes of elements sorted by their position in the element.

/// Puts the bytes of elements of `size` bytes back together; returns the bytes written.
pub(super) fn decode(data: &[u8], out: &mut [u8], size: usize) -> Result<usize, String> {
    if size == 0 {
        return Err("elements of 0 bytes".into());
    }
    let room = out.len();
    let out = out.get_mut(..data.len()).ok_or_else(|| format!("{} bytes, {room} expected", data.len()))?;
    let elements = data.len() / size;
    let (planes, tail) = data.split_at(elements * size);
    let (whole, rest) = out.split_at_mut(elements * size);
    rest.copy_from_slice(tail);
    match size {
        1 => whole.copy_from_slice(planes),
        2 => interleave::<2>(planes, whole),
        4 => interleave::<4>(planes, whole),
        8 => interleave::<8>(planes, whole),
        16 => interleave::<16>(planes, whole),
        _ => scatter(planes, whole, size),
    }
    Ok(data.len())
}

/// Elements handled at once: a vector register's worth of each plane.
const LANES: usize = 16;

fn interleave<const N: usize>(planes: &[u8], out: &mut [u8]) {
    let elements = out.len() / N;
    if elements == 0 {
        return;
    }
    let mut plane: [&[u8]; N] = [&[]; N];
    for (slot, bytes) in plane.iter_mut().zip(planes.chunks_exact(elements)) {
        *slot = bytes;
    }
    let blocks = elements / LANES;
    let (whole, rest) = out.split_at_mut(blocks * LANES * N);
    for (block, target) in whole.chunks_exact_mut(LANES * N).enumerate() {
        let mut lanes = [[0u8; LANES]; N];
        for (lane, bytes) in lanes.iter_mut().zip(&plane) {
            lane.copy_from_slice(&bytes[block * LANES..][..LANES]);
        }
        for i in 0..LANES {
            for j in 0..N {
                target[i * N + j] = lanes[j][i];
            }
        }
    }
    for (i, target) in rest.chunks_exact_mut(N).enumerate() {
        for (byte, plane) in target.iter_mut().zip(&plane) {
            *byte = plane[blocks * LANES + i];
        }
    }
}

fn scatter(planes: &[u8], out: &mut [u8], size: usize) {
    let elements = out.len() / size;
    if elements == 0 {
        return;
    }
    for (j, plane) in planes.chunks_exact(elements).enumerate() {
        for (target, byte) in out.iter_mut().skip(j).step_by(size).zip(plane) {
            *target = *byte;
        }
    }
}
