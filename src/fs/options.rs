//! The options of a mount, and the form of its source name for the kernel.

use std::path::PathBuf;
use std::time::Duration;

use bstr::BString;

use super::service::ListedXattrs;

/// The subtype after `fuse.` in the list of mounts.
pub(super) const SUBTYPE: &str = "hepfs";

/// Longest source name, in bytes. A longer one is cut, since mount(2) takes a single page of options.
const SOURCE_NAME_MAX: usize = 512;

/// The options of a mount.
#[derive(Clone, Debug)]
pub struct MountOptions {
    /// Name of the source in `mount` and `df`; any bytes.
    pub source_name: BString,
    /// Paths of the sources: a mount over one of them would hide it from ourselves, so hepfs refuses it.
    pub sources: Vec<PathBuf>,
    /// Whether other users may use the mount, as far as the modes permit.
    pub allow_other: bool,
    /// Whether reads bypass the page cache.
    pub direct_io: bool,
    /// How long the kernel may keep names and attributes that only a change of the source can change.
    pub ttl: Duration,
    /// Size of the file system in `df`, in bytes.
    pub total_bytes: u64,
    /// Session threads; by default one for each core and two more. All but one may answer quick requests themselves.
    pub threads: Option<usize>,
    /// Longest read that we ask for, if it fits in a pipe. The kernel's own limit is `fs.fuse.max_pages_limit`, 1 MiB
    /// by default.
    pub max_read: u32,
    /// Approximate number of names that the kernel may know at a time; beyond it, we ask the kernel to forget old ones.
    /// Each takes some 300 bytes here and 1 KiB in the kernel.
    pub known_names: usize,
    /// The extended attributes that a listing has.
    pub xattrs: ListedXattrs,
}

impl Default for MountOptions {
    fn default() -> Self {
        Self {
            source_name: BString::from(SUBTYPE),
            sources: Vec::new(),
            allow_other: false,
            direct_io: false,
            ttl: Duration::from_secs(60),
            total_bytes: 0,
            threads: None,
            max_read: 1 << 20,
            known_names: 200_000,
            xattrs: ListedXattrs::default(),
        }
    }
}

/// Encodes a source name as one option on one line: `,` would end it, and `\` is an escape to the helper.
pub(super) fn encode_source_name(name: &[u8]) -> String {
    let mut encoded = String::new();
    for part in name.utf8_chunks() {
        for character in part.valid().chars() {
            if matches!(character, ',' | '\\' | '%') || character.is_control() {
                encoded.extend(character.to_string().bytes().map(|byte| format!("%{byte:02X}")));
            } else {
                encoded.push(character);
            }
        }
        encoded.extend(part.invalid().iter().map(|byte| format!("%{byte:02X}")));
    }
    if encoded.len() > SOURCE_NAME_MAX {
        let cut = encoded.floor_char_boundary(SOURCE_NAME_MAX);
        encoded.truncate(cut);
        encoded.push('…');
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_name_stays_one_option() {
        assert_eq!(encode_source_name(b"run.h5"), "run.h5");
        assert_eq!(encode_source_name(b"a,allow_other"), "a%2Callow_other");
        assert_eq!(encode_source_name("é\\ 50%\n\u{85}".as_bytes()), "é%5C 50%25%0A%C2%85");
        assert_eq!(encode_source_name(b"x\xFFy"), "x%FFy");
        assert!(encode_source_name(&[b','; 5000]).len() <= SOURCE_NAME_MAX + 3);
    }
}
