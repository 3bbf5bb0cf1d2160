//! Recognises HDF5 files by their signature; names do not count.

use crate::source::{Error, Source};

/// The HDF5 signature (format specification, II.A).
const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";

/// Whether a file has the HDF5 signature: at 0, 512, 1024, 2048, … as the format allows.
///
/// # Errors
/// Where the file cannot be read.
pub(in crate::fs::tree) fn is_in(source: &Source) -> Result<bool, Error> {
    let size = source.identity().size;
    let offsets = std::iter::once(0).chain((9..u64::BITS).map(|power| 1u64 << power));
    for offset in offsets.take_while(|offset| offset.saturating_add(SIGNATURE.len() as u64) <= size) {
        let mut found = [0; SIGNATURE.len()];
        source.read_at(offset, &mut found)?;
        if found == *SIGNATURE {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_found_where_the_format_allows_it() {
        for (offset, expected) in [(0, true), (512, true), (1024, true), (4096, true), (100, false), (1536, false)] {
            let file = tempfile::NamedTempFile::new().unwrap();
            let mut bytes = vec![b'x'; offset];
            bytes.extend_from_slice(SIGNATURE);
            std::fs::write(file.path(), bytes).unwrap();
            assert_eq!(is_in(&Source::open(file.path()).unwrap()).unwrap(), expected, "at {offset}");
        }
        let short = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(short.path(), &SIGNATURE[..7]).unwrap();
        assert!(!is_in(&Source::open(short.path()).unwrap()).unwrap());
    }
}
