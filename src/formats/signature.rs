//! Recognises the format of a file by its signature, whatever the file is called.

use super::{Format, members};
use crate::codec::trevni;
use crate::source::{Error, Interrupt, Source};

/// The HDF5 signature (format specification, II.A).
const HDF5: &[u8; 8] = b"\x89HDF\r\n\x1a\n";

/// Greatest version byte that Trevni may have: a letter would belong to a text that begins with the same characters.
const LAST_VERSION: u8 = 0x1f;

/// Signatures of formats that are taken for HDF5, each with a hint for the user.
const RELATIVES: [(&[u8], &str); 5] = [
    (b"CDF\x01", CLASSIC),
    (b"CDF\x02", CLASSIC),
    (b"CDF\x05", CLASSIC),
    (b"\x0e\x03\x13\x01", "; it is HDF4, which `h4toh5 OLD NEW` makes HDF5"),
    (b"MATLAB 5.0 MAT-file", "; it is a MAT-file before 7.3, which `save -v7.3` writes as HDF5"),
];
const CLASSIC: &str = "; it is classic netCDF, which `nccopy -k nc4 OLD NEW` makes HDF5";

impl Format {
    /// Describes a file of an unknown format, in words to be appended to a message; empty if nothing is known about it.
    pub fn relative(source: &Source, interrupt: &Interrupt) -> String {
        let relative = RELATIVES.iter().find(|(signature, _)| {
            let mut first = vec![0; signature.len()];
            source.identity().size >= first.len() as u64
                && source.read_at(0, &mut first, interrupt).is_ok()
                && first == *signature
        });
        match relative {
            Some((_, what)) => (*what).into(),
            None => Self::part(source, interrupt).map_or_else(String::new, |what| format!("; it is {what}")),
        }
    }

    /// Describes a file that is a member of a split HDF5 file. `None`: it is not one.
    pub fn part(source: &Source, interrupt: &Interrupt) -> Option<String> {
        members::of(source, interrupt)
    }

    /// Recognises the format of a file. `None`: it is unknown. The HDF5 signature may stand at byte 0, 512, 1024, 2048,
    /// …, other signatures only at 0.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of(source: &Source, interrupt: &Interrupt) -> Result<Option<Self>, Error> {
        let size = source.identity().size;
        let mut first = [0; 4];
        if size >= first.len() as u64 {
            source.read_at(0, &mut first, interrupt)?;
            let [magic @ .., version] = first;
            if magic == trevni::MAGIC && version <= LAST_VERSION {
                return Ok(Some(Self::Trevni));
            }
        }
        let offsets = std::iter::once(0).chain((9..u64::BITS).map(|power| 1u64 << power));
        for offset in offsets.take_while(|offset| offset.saturating_add(HDF5.len() as u64) <= size) {
            let mut found = [0; HDF5.len()];
            source.read_at(offset, &mut found, interrupt)?;
            if found == *HDF5 {
                return Ok(Some(Self::Hdf5));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn of(path: &Path) -> Option<Format> {
        Format::of(&Source::open(path).unwrap(), &Interrupt::new()).unwrap()
    }

    #[test]
    fn the_signature_is_found_where_the_format_allows_it() {
        let hdf5 = Some(Format::Hdf5);
        for (offset, expected) in [(0, hdf5), (512, hdf5), (1024, hdf5), (4096, hdf5), (100, None), (1536, None)] {
            let file = tempfile::NamedTempFile::new().unwrap();
            let mut bytes = vec![b'x'; offset];
            bytes.extend_from_slice(HDF5);
            std::fs::write(file.path(), bytes).unwrap();
            assert_eq!(of(file.path()), expected, "at {offset}");
        }
        let trevni = Some(Format::Trevni);
        for (bytes, expected) in [
            (&HDF5[..7], None),
            (b"Trv\x02", trevni),
            (b"Trv\x01rest", trevni),
            (b"Trv\x07", trevni),
            (b"Trv", None),
            (b"Trve", None),
            (b"\0Trv\x02", None),
        ] {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), bytes).unwrap();
            assert_eq!(of(file.path()), expected, "{bytes:?}");
        }
    }
}
