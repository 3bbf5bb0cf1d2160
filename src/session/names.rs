//! From HDF5 link names to file names: no two objects of a directory share a name, and every name can be typed.
//!
//! - Bytes 00–1F, 7F, `/` and `%` become `%XX`.
//! - A directory named `.` or `..` becomes `%2E` or `%2E.`; a file needs no such escape, since it has a suffix.
//! - A stem over 240 bytes is cut and gets `%~` and 16 hex digits of its hash.
//!
//! Since `%` itself is escaped, no other name looks like an escape.

use bstr::{BString, ByteSlice};

/// Longest stem in bytes; with the longest suffix (`.parquet`) it still fits the kernel's 255.
const LONGEST_STEM: usize = 240;

/// Length of `%~` and 16 hex digits.
const HASH_SUFFIX: usize = 18;

/// The directory name for a link name.
pub fn encode_directory(name: &[u8]) -> BString {
    match name {
        b"." => "%2E".into(),
        b".." => "%2E.".into(),
        _ => encode(name),
    }
}

/// The stem of the file names for a link name.
pub fn encode(name: &[u8]) -> BString {
    let mut encoded = Vec::with_capacity(name.len());
    for &byte in name {
        match byte {
            0x00..=0x1f | 0x7f | b'/' | b'%' => push_escape(byte, &mut encoded),
            _ => encoded.push(byte),
        }
    }
    if encoded.len() > LONGEST_STEM {
        encoded.truncate(cut(&encoded, LONGEST_STEM - HASH_SUFFIX));
        encoded.extend_from_slice(format!("%~{:016x}", hash(name)).as_bytes());
    }
    encoded.into()
}

/// The encoded name with its first byte escaped, for a name that would collide with a reserved one.
pub fn encode_reserved(name: &[u8]) -> BString {
    let encoded = encode(name);
    match encoded.split_first() {
        // A name that begins with an escape is not a reserved name.
        Some((first, rest)) if *first != b'%' => {
            let mut escaped = Vec::with_capacity(encoded.len() + 2);
            push_escape(*first, &mut escaped);
            escaped.extend_from_slice(rest);
            escaped.into()
        }
        _ => encoded,
    }
}

fn push_escape(byte: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("%{byte:02X}").as_bytes());
}

/// The position of a cut that splits neither a character nor an escape.
fn cut(encoded: &[u8], most: usize) -> usize {
    let mut end = most.min(encoded.len());
    if encoded.to_str().is_ok() {
        while end > 0 && encoded.get(end).is_some_and(|byte| byte & 0xc0 == 0x80) {
            end -= 1;
        }
    }
    for back in 1..=2 {
        if end >= back && encoded.get(end - back) == Some(&b'%') {
            return end - back;
        }
    }
    end
}

/// The shown path of a name in the directory at the shown path `above`.
pub(super) fn below(above: &BString, name: &[u8]) -> BString {
    let divider: &[u8] = if above.is_empty() { b"" } else { b"/" };
    bstr::concat([above.as_slice(), divider, name]).into()
}

/// 64 bits of MurmurHash3 x64-128, seed 0, of the link name.
pub(crate) fn hash(name: &[u8]) -> u64 {
    // Reading from a slice does not fail.
    murmur3::murmur3_x64_128(&mut std::io::Cursor::new(name), 0).map_or(0, |hash| hash as u64)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_design_section_1() {
        assert_eq!(encode(b"energy"), "energy");
        assert_eq!(encode("Länge µ".as_bytes()), "Länge µ");
        assert_eq!(encode(b"a/b%c\nd\x7f"), "a%2Fb%25c%0Ad%7F");
        assert_eq!(encode_directory(b"."), "%2E");
        assert_eq!(encode_directory(b".."), "%2E.");
        assert_eq!(encode_directory(b"..."), "...");
        assert_eq!(encode(b".."), "..");
        assert_eq!(encode(b"\xff\xfe"), BString::from(b"\xff\xfe".as_slice()));
        assert_eq!(encode_reserved(b"columns"), "%63olumns");
        assert_eq!(encode_reserved("état".as_bytes()), BString::from(b"%C3\xa9tat".as_slice()));
    }

    #[test]
    fn long_names_are_cut_at_a_character() {
        let long = "é".repeat(150);
        let encoded = encode(long.as_bytes());
        assert_eq!(encoded.len(), 222 + 18);
        assert!(encoded.to_str().is_ok());

        let escapes = encode("%".repeat(100).as_bytes());
        assert!(escapes[..222].ends_with(b"%25"), "{escapes:?}");
    }

    proptest! {
        #[test]
        fn encoded_names_are_file_names_and_differ(
            names in prop::collection::hash_set(prop::collection::vec(1u8..=255, 1..300), 2..20)
        ) {
            let mut seen = HashSet::new();
            for name in &names {
                let encoded = encode_directory(name);
                prop_assert!(!encoded.is_empty() && encoded.len() <= LONGEST_STEM);
                prop_assert!(encoded != "." && encoded != "..");
                prop_assert!(!encoded.iter().any(|byte| *byte < 0x20 || *byte == b'/' || *byte == 0x7f));
                prop_assert!(seen.insert(encoded));
            }
        }
    }
}
