//! Tells members of an HDF5 file that lies in several, which HDF5's family and split drivers write: none is a file that
//! can be read alone.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;

use crate::source::Source;

/// The driver's name stands within so many bytes from the beginning: behind the superblock, or in its extension.
const BEGINNING: u64 = 4096;

/// Names of members stand within so many bytes behind that of the split driver.
const NAMES: usize = 512;

/// Members that are named.
const MOST_NAMED: usize = 6;

/// What a file is that is a member, and how to make one file of all; `None` where it is none, or that cannot be told.
pub(super) fn of(source: &Source) -> Option<String> {
    let path = source.path();
    let beginning = beginning(source).unwrap_or_default();
    if let Some(at) = beginning.find(b"NCSAmult") {
        return Some(split(path, &beginning[at..]));
    }
    if beginning.contains_str(b"NCSAfami") {
        return Some(family(path));
    }
    // A member but the first has no name of a driver.
    let first = Source::open(&numbered(path, 0)?.1).ok()?;
    (first.path() != path && self::beginning(&first)?.contains_str(b"NCSAfami")).then(|| family(path))
}

fn beginning(source: &Source) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(source.identity().size.min(BEGINNING)).ok()?];
    source.read_at(0, &mut bytes).ok()?;
    Some(bytes)
}

/// Of the split driver, and others of several drivers: the names of members are in the file, `%s` for what they share.
fn split(path: &Path, named: &[u8]) -> String {
    let named = named.get(..NAMES).unwrap_or(named);
    let templates: Vec<&[u8]> = named.split(|byte| *byte == 0).filter_map(|part| part.strip_prefix(b"%s")).collect();
    let name = path.file_name().unwrap_or_default().as_bytes();
    let shared = templates.iter().find_map(|end| name.strip_suffix(*end)).unwrap_or(b"*").as_bstr();
    let all: Vec<String> = templates.iter().map(|end| format!("{shared}{}", end.as_bstr())).collect();
    format!(
        "a member of an HDF5 file that the split driver keeps in several: {}; copy it into one, as by \
         h5py.File('{shared}', driver='split')",
        listed(&all)
    )
}

/// Of the family driver: names differ by a number, which counts from 0.
fn family(path: &Path) -> String {
    let members: Vec<String> = (0..)
        .map_while(|number| numbered(path, number).map(|(_, member)| member).filter(|member| member.exists()))
        .map(|member| member.file_name().unwrap_or_default().to_string_lossy().into_owned())
        .take(1 << 16)
        .collect();
    let pattern = numbered(path, 0).map_or_else(|| "'NAME-%d.h5'".into(), |(pattern, _)| pattern);
    format!(
        "a member of an HDF5 file that the family driver keeps in several: {}; make it one: \
         h5repart -family_to_single {pattern} WHOLE.h5",
        listed(&members)
    )
}

fn listed(names: &[String]) -> String {
    let mut text = names.iter().take(MOST_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > MOST_NAMED {
        text += &format!(", … ({} in all)", names.len());
    }
    text
}

/// The name of a family by the last number in that of a member, as HDF5 has it, and the path of another member.
fn numbered(path: &Path, number: usize) -> Option<(String, PathBuf)> {
    let name = path.file_name()?.as_bytes();
    let end = name.iter().rposition(u8::is_ascii_digit)? + 1;
    // `h5` is no number of a member.
    let end = match name[..end].strip_suffix(b".h5") {
        Some(stem) => stem.iter().rposition(u8::is_ascii_digit)? + 1,
        None => end,
    };
    let start = name[..end].iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |at| at + 1);
    let (before, width, behind) = (&name[..start], end - start, &name[end..]);
    let is_padded = width > 1 && name[start] == b'0';
    let (format, digits) = if is_padded {
        (format!("%0{width}d"), format!("{number:0width$}"))
    } else {
        ("%d".into(), number.to_string())
    };
    let member = [before, digits.as_bytes(), behind].concat();
    let pattern = [before, format.as_bytes(), behind].concat();
    Some((pattern.to_str_lossy().into_owned(), path.with_file_name(OsStr::from_bytes(&member))))
}
