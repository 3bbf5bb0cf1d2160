//! `SOURCE[:path]`: a place in a source, as a mount would show it.

use std::path::{Path, PathBuf};

use super::Error;
use super::options::Reading;
use crate::fs::tree;
use crate::fs::{Kind, NodeRef};
use crate::source::Interrupt;

/// A node found without mounting.
pub(super) struct Place {
    /// The node.
    pub node: NodeRef,
    /// Its name for messages.
    pub name: String,
}

/// Splits `SOURCE[:path]` at the last colon that leaves the name of something that exists.
fn split(text: &str) -> (PathBuf, String) {
    if Path::new(text).exists() {
        return (text.into(), String::new());
    }
    let at = text.char_indices().rev().find(|(at, c)| *c == ':' && Path::new(&text[..*at]).exists());
    match at {
        Some((at, _)) => (text[..at].into(), text[at + 1..].to_owned()),
        None => (text.into(), String::new()),
    }
}

impl Place {
    /// Finds a place.
    ///
    /// # Errors
    /// Where the source cannot be opened, or shows no such name.
    pub fn find(text: &str, reading: &Reading) -> Result<Self, Error> {
        let (source, path) = split(text);
        let context = reading.context()?;
        let interrupt = Interrupt::new();
        let mut node = tree::root(&context, std::slice::from_ref(&source), &interrupt)?;
        let failed = |error| Error::Tree { path: text.to_owned(), error };
        for part in path.split('/').filter(|part| !part.is_empty()) {
            node = node.lookup(part.as_bytes(), &interrupt).map_err(failed)?;
        }
        Ok(Self { node, name: text.to_owned() })
    }

    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        self.node.attributes().kind == Kind::Directory
    }

    /// As an error about this place.
    pub fn failed(&self, error: crate::fs::Error) -> Error {
        Error::Tree { path: self.name.clone(), error }
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn the_path_begins_after_the_last_colon_of_a_file_that_exists() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a:b.h5");
        std::fs::write(&file, "").unwrap();
        let text = file.display().to_string();
        assert_eq!(split(&text), (file.clone(), String::new()));
        assert_eq!(split(&format!("{text}:run/columns")), (file, "run/columns".into()));
        assert_eq!(split("none:x"), ("none:x".into(), String::new()));
    }
}
