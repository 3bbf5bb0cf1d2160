//! The choice of extended attributes that a listing has.

use bstr::{BStr, BString};

use super::NAME_MAX;
use crate::fs::Xattrs;

/// The kernel's limits on one value and on the list of all names (`XATTR_SIZE_MAX`, `XATTR_LIST_MAX`).
const MOST: usize = 65_536;

/// Default limit on the listed attributes, in bytes. A copy asks for the listed ones, and fails if the other file
/// system has no room: ext4 has some 4 KB for all attributes of a file, those of other programs included.
const SHORT: usize = 2048;

/// Bytes that a file system keeps of each attribute beside name and value: `struct ext4_xattr_entry`.
const ENTRY: usize = 16;

/// The extended attribute with the number of unlisted ones.
const LEFT_OUT: &str = "user.hepfs.left_out";

/// Bytes that a file system keeps of [`LEFT_OUT`].
const LEFT_OUT_BYTES: usize = ENTRY + 16 + 8;

/// The most used attributes, listed first.
const FIRST: [&str; 8] = [
    "user.hepfs.name",
    "user.units",
    "user.units_vocabulary",
    "user.description",
    "user.long_name",
    "user.standard_name",
    "user.title",
    "user.TITLE",
];

/// The extended attributes that a mount lists. Except with `None`, the others can still be read by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ListedXattrs {
    /// Those that fit into 2 KiB with their values, so that any file system can hold a copy
    #[default]
    Short,
    /// As many as the kernel passes on: 64 KiB of names
    All,
    /// None, not even by name
    None,
}

impl ListedXattrs {
    /// The value under a name, if the kernel can pass it on.
    pub(super) fn value(self, all: &dyn Xattrs, name: &BStr) -> Option<Vec<u8>> {
        if self == Self::None || !is_name(name) {
            return None;
        }
        if name == LEFT_OUT {
            let left_out = self.listed(all).1;
            return (left_out > 0).then(|| left_out.to_string().into_bytes());
        }
        all.value(name).filter(|value| value.len() <= MOST)
    }

    /// The listed names, each with a NUL behind it, and the number of unlisted ones.
    pub(super) fn listed(self, all: &dyn Xattrs) -> (Vec<u8>, usize) {
        let (mut list, mut left_out) = (Vec::new(), 0);
        let mut room = match self {
            Self::Short => SHORT - LEFT_OUT_BYTES,
            Self::All => MOST - LEFT_OUT.len() - 1,
            Self::None => return (list, 0),
        };
        let mut names: Vec<BString> = all.names();
        names.retain(|name| name != LEFT_OUT);
        names.sort_by_key(|name| FIRST.iter().position(|first| name == first).unwrap_or(FIRST.len()));
        for name in names {
            let bytes = match self {
                // No later attribute is shorter.
                Self::Short if room < ENTRY => None,
                Self::Short => all.value(name.as_ref()).map(|value| taken(&name, &value)),
                _ => all.value(name.as_ref()).filter(|value| value.len() <= MOST).map(|_| name.len() + 1),
            };
            match bytes.filter(|bytes| *bytes <= room && is_name(&name)) {
                Some(bytes) => {
                    room -= bytes;
                    list.extend_from_slice(&name);
                    list.push(0);
                }
                None => left_out += 1,
            }
        }
        if left_out > 0 {
            list.extend_from_slice(LEFT_OUT.as_bytes());
            list.push(0);
        }
        (list, left_out)
    }
}

/// Approximate bytes that a file system takes for an extended attribute.
fn taken(name: &[u8], value: &[u8]) -> usize {
    ENTRY + name.len().next_multiple_of(4) + value.len().next_multiple_of(4)
}

/// Whether the kernel passes on this name: it has no NUL inside, and begins with the `user.` namespace.
fn is_name(name: &[u8]) -> bool {
    name.starts_with(b"user.") && name.len() > b"user.".len() && name.len() <= NAME_MAX && !name.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[u8]) -> Vec<&str> {
        list.split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
            .map(|name| str::from_utf8(name).unwrap())
            .collect()
    }

    #[test]
    fn the_most_used_are_listed_first_and_the_rest_is_counted() {
        let mut all: Vec<(BString, Vec<u8>)> =
            (0..100).map(|at| (format!("user.note {at:02}").into(), vec![b'x'; 30])).collect();
        all.insert(3, ("user.long".into(), vec![b'x'; 3000]));
        all.push(("user.units".into(), b"GeV".to_vec()));
        all.push(("user.hepfs.name".into(), b"energy".to_vec()));
        all.push(("user.hepfs.left_out".into(), b"forged".to_vec()));
        let (list, left_out) = ListedXattrs::Short.listed(&all);
        let listed = names(&list);
        assert_eq!(listed[..4], ["user.hepfs.name", "user.units", "user.note 00", "user.note 01"]);
        assert_eq!(listed.last(), Some(&"user.hepfs.left_out"));
        assert_eq!(listed.len() - 1 + left_out, 103);
        let value = |name: &str| ListedXattrs::Short.value(&all, name.into());
        let bytes: usize = listed.iter().map(|name| name.len() + value(name).unwrap().len()).sum();
        assert!(bytes <= SHORT && bytes > SHORT / 2, "{bytes}");
        assert_eq!(value("user.hepfs.left_out"), Some(left_out.to_string().into_bytes()));
        // All of them answer by name.
        assert_eq!(value("user.note 99").map(|value| value.len()), Some(30));
        assert_eq!(value("user.long").map(|value| value.len()), Some(3000));
        let (list, left_out) = ListedXattrs::All.listed(&all);
        assert_eq!((names(&list).len(), left_out), (103, 0));
        assert_eq!(ListedXattrs::None.listed(&all), (Vec::new(), 0));
        assert_eq!(ListedXattrs::None.value(&all, "user.units".into()), None);
    }

    #[test]
    fn what_the_kernel_cannot_pass_on_is_counted() {
        let all: Vec<(BString, Vec<u8>)> = vec![
            ("user.units".into(), Vec::new()),
            ("user.huge".into(), vec![0; MOST + 1]),
            (format!("user.{}", "n".repeat(300)).into(), Vec::new()),
        ];
        for listed in [ListedXattrs::Short, ListedXattrs::All] {
            assert_eq!(listed.listed(&all), (b"user.units\0user.hepfs.left_out\0".to_vec(), 2));
            assert_eq!(listed.value(&all, "user.huge".into()), None);
        }
        assert_eq!(ListedXattrs::All.value(&all[..1].to_vec(), LEFT_OUT.into()), None);
    }
}
