//! Names below `.datasets`: Hive's partition names, and names in the path of a table.
//!
//! No name in a table's path contains `=`, so none looks like a partition.

use bstr::{BStr, BString, ByteSlice};

use crate::session::names;

/// Separates the name of a table from that of a table within it, which is shown beside it. No escaped name contains it.
pub(super) const WITHIN: &str = "%2F";

/// Longest escaped value in bytes.
const LONGEST: usize = 230;

/// The directory name of a file's partition, from its path in the mount.
pub(super) fn partition(path: &BStr) -> BString {
    let text = path.to_str_lossy();
    let mut value = String::new();
    for character in text.chars() {
        // Escape everything that Hive escapes, and everything special to URLs, globs and shells.
        let is_special = character.is_ascii_control() || "\"#%'*/:=?\\{}[]^<>|&;,+".contains(character);
        if is_special { value.push_str(&format!("%{:02X}", u32::from(character))) } else { value.push(character) }
    }
    // A hash keeps truncated and non-UTF-8 names unique.
    if value.len() > LONGEST || path.to_str().is_err() {
        value.truncate(value.floor_char_boundary(LONGEST - 20));
        if let Some(escape) = value.rfind('%').filter(|escape| escape + 3 > value.len()) {
            value.truncate(escape);
        }
        value.push_str(&format!("~{:016x}", names::hash(path)));
    }
    format!("file={value}").into()
}

/// A link's name in the path of a table.
pub(super) fn component(link: &[u8]) -> BString {
    names::encode_directory(link).replace("=", "%3D").into()
}

/// Splits a shown name into the link names it stands for: several for a table within another, one empty name for the
/// root.
pub(super) fn components(name: &[u8]) -> impl Iterator<Item = BString> {
    let is_root = name == WITHIN.as_bytes();
    let parts = if is_root { vec![BString::default()] } else { name.split_str(WITHIN).map(BString::from).collect() };
    parts.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped_as_hive_does() {
        let name = |path: &str| partition(path.into()).to_string();
        assert_eq!(name("a.h5"), "file=a.h5");
        assert_eq!(name("sub/a=b %41.h5"), "file=sub%2Fa%3Db %2541.h5");
        assert_eq!(name("Länge\n.h5"), "file=Länge%0A.h5");
        assert_eq!(partition(b"x\xFF".as_bstr()).to_string().split('~').next(), Some("file=x\u{fffd}"));
        assert_ne!(partition(b"x\xFF".as_bstr()), partition(b"x\xFE".as_bstr()));
        for length in 220..280 {
            let long = name(&"/x".repeat(length));
            assert!(long.len() <= 255 && long.starts_with("file=%2Fx%2Fx"), "{long}");
            assert!(long.split('~').next().unwrap().ends_with(['x', 'F']), "{long}");
        }
    }

    #[test]
    fn no_part_of_a_path_looks_like_a_partition() {
        assert_eq!(component(b"file=x"), "file%3Dx");
        assert_eq!(component(b"a%2Fb"), "a%252Fb");
        assert_eq!(components(b"run%2Fevents").collect::<Vec<_>>(), ["run", "events"]);
        assert_eq!(components(b"run%252Fevents").collect::<Vec<_>>(), ["run%252Fevents"]);
        assert_eq!(components(b"%2F").collect::<Vec<_>>(), [""]);
    }
}
