//! The parts of a PNG file: its signature, and chunks of a length, a name, data and a checksum.

/// The first bytes of every PNG file.
const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// Bytes of a chunk besides its data: length, name, CRC-32.
pub(super) const AROUND_CHUNK: u64 = 12;

/// How pixels are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColourType {
    /// One sample: a shade of grey.
    Grey = 0,
    /// Three samples: red, green, blue.
    Rgb = 2,
    /// One sample: a place in the palette.
    Palette = 3,
}

/// Appends a chunk: `data` appends its data.
pub(super) fn push_chunk(name: &[u8; 4], out: &mut Vec<u8>, data: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend([0; 4]);
    out.extend(name);
    data(out);
    let length = (out.len() - start - 8) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    let sum = libdeflater::crc32(&out[start + 4..]);
    out.extend(sum.to_be_bytes());
}

/// Appends the signature and the header of an image that is not interlaced.
pub(super) fn push_header(width: u32, height: u32, colour: ColourType, bits: u8, out: &mut Vec<u8>) {
    out.extend(SIGNATURE);
    push_chunk(b"IHDR", out, |out| {
        out.extend(width.to_be_bytes());
        out.extend(height.to_be_bytes());
        out.extend([bits, colour as u8, 0, 0, 0]);
    });
}

/// Appends the chunk that makes grey 0 of eight bits transparent.
pub(super) fn push_transparent_zero(out: &mut Vec<u8>) {
    push_chunk(b"tRNS", out, |out| out.extend([0, 0]));
}

/// Appends the chunk that ends the file.
pub(super) fn push_end(out: &mut Vec<u8>) {
    push_chunk(b"IEND", out, |_| {});
}
