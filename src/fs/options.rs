//! The options of a mount, and the form of its source name for the kernel.

use std::path::PathBuf;
use std::time::Duration;

use bstr::{BString, ByteSlice};

use super::service::ListedXattrs;

/// The subtype after `fuse.` in the list of mounts.
pub(super) const SUBTYPE: &str = "hepfs";

/// Longest source name, in bytes. A longer one is cut, since mount(2) takes a single page of options.
const SOURCE_NAME_MAX: usize = 2048;

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

/// The source name for the list of mounts. It is exactly that of a single source: mount(8) compares it with fstab(5),
/// and mounts nothing a second time. But no control character stays.
pub(super) fn shown_source(name: &[u8]) -> BString {
    let mut shown = BString::default();
    for (start, end, character) in name.char_indices() {
        let bytes = &name[start..end];
        if character.is_control() {
            bytes.iter().for_each(|byte| shown.extend(format!("%{byte:02X}").into_bytes()));
        } else {
            shown.extend(bytes);
        }
    }
    if shown.len() > SOURCE_NAME_MAX {
        let cut = shown.char_indices().map(|(start, ..)| start).take_while(|start| *start <= SOURCE_NAME_MAX).last();
        shown.truncate(cut.unwrap_or_default());
        shown.extend("…".bytes());
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_name_is_exact_and_has_no_control_characters() {
        for name in ["run.h5", "a,allow_other", "é\\ 50%"] {
            assert_eq!(shown_source(name.as_bytes()), name);
        }
        assert_eq!(shown_source(b"x\xFFy"), b"x\xFFy");
        assert_eq!(shown_source("\n\u{85}".as_bytes()), "%0A%C2%85");
        assert_eq!(shown_source("é".repeat(2500).as_bytes()), format!("{}…", "é".repeat(1024)));
    }
}
