//! Recognises the members of an HDF5 file that HDF5's family or split driver keeps in several files, none of which can
//! be read alone.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;

use crate::source::{Interrupt, Source};

/// Bytes at the beginning of a file in which to find the driver's name, which is after the superblock, or in its
/// extension.
const BEGINNING: u64 = 4096;

/// Bytes after the split driver's name in which to find the suffixes of members.
const NAMES: usize = 512;

/// Most members to name in a message.
const MOST_NAMED: usize = 6;

/// Most numbers to try for the members of a family.
const MOST_MEMBERS: usize = 1 << 16;

/// Most numbers of missing members, one after the other, before the search ends.
const MOST_LACKING: usize = 64;

/// Most names in a folder to examine when looking for the member that names this one.
const MOST_LISTED: usize = 1 << 16;

/// Most files to open when looking for the member that names this one.
const MOST_OPENED: usize = 16;

/// Describes a file that is a member, and how to join all members. `None`: it is not a member, or cannot be recognised
/// as one.
pub(super) fn of(source: &Source, interrupt: &Interrupt) -> Option<String> {
    let (path, folder) = (source.path(), source.folder()?);
    let beginning = beginning(source, interrupt).unwrap_or_default();
    if let Some(at) = beginning.find(b"NCSAmult") {
        return Some(split(path, &templates(&beginning[at..])));
    }
    if beginning.contains_str(b"NCSAfami") {
        return Some(family(path));
    }
    // Only the first member of a family has the name of the driver in it.
    let first = numbered(path, 0).and_then(|(_, first)| Source::open(&first).ok());
    let first = first.filter(|first| first.path() != path).and_then(|first| self::beginning(&first, interrupt));
    if first.is_some_and(|first| first.contains_str(b"NCSAfami")) {
        return Some(family(path));
    }
    beside(path, folder, interrupt).map(|templates| split(path, &templates))
}

/// Finds the metadata member that belongs to a data member: a sibling file whose driver names it. Returns the suffixes
/// of all members.
fn beside(path: &Path, folder: &Path, interrupt: &Interrupt) -> Option<Vec<Vec<u8>>> {
    let name = path.file_name()?.as_bytes();
    let shared = &name[..name.iter().rposition(|byte| matches!(byte, b'-' | b'.')).filter(|at| *at > 0)?];
    // All names may have a further suffix in common: `a-r.h5`.
    let shared =
        shared.rfind_byteset(b"-").filter(|at| *at > 0 && name.ends_with(b".h5")).map_or(shared, |at| &shared[..at]);
    let others = std::fs::read_dir(folder);
    let named =
        others.ok()?.flatten().take(MOST_LISTED).filter(|other| other.file_name().as_bytes().starts_with(shared));
    named.take(MOST_OPENED).find_map(|other| {
        let beginning = beginning(&Source::open(&other.path()).ok()?, interrupt)?;
        let templates = templates(&beginning[beginning.find(b"NCSAmult")?..]);
        let of_other = templates.iter().find_map(|end| {
            let other = other.file_name();
            other.as_bytes().strip_suffix(end.as_slice()).map(<[u8]>::to_vec)
        })?;
        let is_named = templates.iter().any(|end| [of_other.as_slice(), end].concat() == name);
        is_named.then_some(templates)
    })
}

/// Reads the suffixes of the names of members, which follow `%s` in the metadata of the driver. They come from the file
/// and end up in a command and in paths, so none are returned if one has unusual bytes.
fn templates(named: &[u8]) -> Vec<Vec<u8>> {
    let named = named.get(..NAMES).unwrap_or(named);
    let suffixes = named.split(|byte| *byte == 0).filter_map(|part| part.strip_prefix(b"%s"));
    let suffixes: Vec<Vec<u8>> = suffixes.map(<[u8]>::to_vec).collect();
    let are_usual =
        suffixes.iter().flatten().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'));
    if are_usual { suffixes } else { Vec::new() }
}

fn beginning(source: &Source, interrupt: &Interrupt) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(source.identity().size.min(BEGINNING)).ok()?];
    source.read_at(0, &mut bytes, interrupt).ok()?;
    Some(bytes)
}

/// Describes a member that the split driver, or the multi driver, keeps.
fn split(path: &Path, templates: &[Vec<u8>]) -> String {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let shared = templates.iter().find_map(|end| name.strip_suffix(end.as_slice())).unwrap_or(b"*").as_bstr();
    let all: Vec<String> = templates.iter().map(|end| format!("{shared}{}", end.as_bstr())).collect();
    let lacking: Vec<String> = all.iter().filter(|name| !path.with_file_name(name).exists()).cloned().collect();
    let mut all = if all.is_empty() { "with unusual names".to_owned() } else { listed(&all) };
    if !lacking.is_empty() {
        all += &format!(" (not there: {})", listed(&lacking));
    }
    match templates {
        [meta, raw] => {
            let usual = meta == b"-m.h5" && raw == b"-r.h5";
            let (meta, raw) = (meta.as_bstr(), raw.as_bstr());
            let names = if usual { String::new() } else { format!(", meta_ext=b'{meta}', raw_ext=b'{raw}'") };
            format!(
                "a member of an HDF5 file that the split driver keeps in several: {all}; copy it into one, as by \
                 h5py.File('{shared}', driver='split'{names})"
            )
        }
        _ => format!(
            "a member of an HDF5 file that the multi driver keeps in several: {all}; copy it into one by a program \
             that opens it with H5Pset_fapl_multi"
        ),
    }
}

/// Describes a member that the family driver keeps: names differ in a number, counted from 0.
fn family(path: &Path) -> String {
    let what = "a member of an HDF5 file that the family driver keeps in several";
    let exists = |number: usize| numbered(path, number).map(|(_, member)| member).filter(|member| member.exists());
    let own = (0..MOST_MEMBERS).find(|number| exists(*number).is_some_and(|member| member == path));
    let (Some((pattern, _)), Some(own)) = (numbered(path, 0), own) else {
        return format!("{what}; names of members differ by a number, from 0 on, which this name lacks");
    };
    let mut last = own;
    while let Some(next) = (last + 1..last + MOST_LACKING).find(|number| exists(*number).is_some()) {
        last = next;
    }
    let name = |member: PathBuf| member.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let members: Vec<String> = (0..=last).filter_map(exists).map(name).collect();
    let lacking: Vec<String> = (0..=last)
        .filter(|number| exists(*number).is_none())
        .filter_map(|number| numbered(path, number).map(|(_, member)| name(member)))
        .collect();
    let all = listed(&members);
    if !lacking.is_empty() {
        return format!("{what}: {all}; not there: {}, without which it cannot be read", listed(&lacking));
    }
    format!("{what}: {all}; make it one: h5repart -family_to_single {} WHOLE.h5", shell_word(&pattern))
}

fn listed(names: &[String]) -> String {
    let mut text = names.iter().take(MOST_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > MOST_NAMED {
        text += &format!(", … ({} in all)", names.len());
    }
    text
}

/// Returns the name of a family in HDF5's notation, and the path of member `number`, going by the last number in a
/// member's name. `None`: the name has no number.
fn numbered(path: &Path, number: usize) -> Option<(String, PathBuf)> {
    let name = path.file_name()?.as_bytes();
    let end = name.iter().rposition(u8::is_ascii_digit)? + 1;
    // The digit in `.h5` is not the number of a member.
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

/// Quotes a text as a word of a shell command, if it needs quotes.
pub fn shell_word(text: &str) -> String {
    let is_plain = text.chars().all(|character| character.is_alphanumeric() || "/._-+:@%,=".contains(character));
    if is_plain { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
