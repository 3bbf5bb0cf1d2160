//! Filter 32004: LZ4 blocks in the framing of the HDF5 plugin.
//!
//! ```text
//! 0        8           12
//! +--------+-----------+------------------+---------+------------------+--
//! | size   | block     | stored length 0  | block 0 | stored length 1  | …
//! | u64 BE | u32 BE    | u32 BE           |         | u32 BE           |
//! +--------+-----------+------------------+---------+------------------+--
//! ```
//!
//! A block whose stored length is its own length is stored uncompressed.

/// Decompresses `data` into `out`; returns the bytes written.
pub(super) fn decode(data: &[u8], out: &mut [u8]) -> Result<usize, String> {
    let mut rest = data;
    let size = u64::from_be_bytes(take(&mut rest)?);
    let block = u32::from_be_bytes(take(&mut rest)?) as usize;
    let room = out.len();
    let out = usize::try_from(size)
        .ok()
        .and_then(|size| out.get_mut(..size))
        .ok_or_else(|| format!("the header says {size} bytes, more than the {room} expected"))?;
    if block == 0 && !out.is_empty() {
        return Err("blocks of 0 bytes".into());
    }
    for piece in out.chunks_mut(block.max(1)) {
        let stored = u32::from_be_bytes(take(&mut rest)?) as usize;
        let (input, tail) = rest.split_at_checked(stored).ok_or("a block ends after the chunk does")?;
        rest = tail;
        if stored == piece.len() {
            piece.copy_from_slice(input);
        } else {
            let n = lz4_flex::block::decompress_into(input, piece).map_err(|error| error.to_string())?;
            if n != piece.len() {
                return Err(format!("a block gave {n} bytes, {} expected", piece.len()));
            }
        }
    }
    Ok(out.len())
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], String> {
    let (head, tail) = rest.split_first_chunk().ok_or("a header is cut short")?;
    *rest = tail;
    Ok(*head)
}
