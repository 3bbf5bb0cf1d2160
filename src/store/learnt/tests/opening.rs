//! An opening of a source that is no HDF5 file.

use std::fs;
use std::sync::Arc;

use arrow_array::Int32Array;
use tempfile::TempDir;

use super::super::{Content, Opening};
use super::{ID, memory};
use crate::catalogue::ColumnId;
use crate::source::Source;
use crate::store::{Options, Store};

fn opened(content: Content) -> (TempDir, Arc<Opening>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, b"neither HDF5 nor anything else").unwrap();
    let store = Store::new(Options { kept_folder: Some(folder.path().join("kept")), ..Options::default() });
    (folder, Opening::new(store, Arc::new(Source::open(&path).unwrap()), content))
}

#[test]
fn a_column_has_one_learner_whatever_its_path() {
    let (_folder, opening) = opened(Content::Fixed);
    let rows = memory(Arc::new(Int32Array::from(vec![1, 2, 3])));
    let first = opening.learner("/b/x", ID, &rows).unwrap();
    assert!(Arc::ptr_eq(&first, &opening.learner("/a/x", ID, &rows).unwrap()));
    assert_eq!(first.path(), "/b/x");
    let field = opening.learner("/a/x.1", ColumnId { field: 1, ..ID }, &rows).unwrap();
    assert!(!Arc::ptr_eq(&first, &field));
    // Shown with missing values by another dialect, it has other statistics.
    let nullable =
        opening.learner("/c/x", ID, &memory(Arc::new(Int32Array::from(vec![1, 2, 3]))).nullable(true)).unwrap();
    assert!(!Arc::ptr_eq(&first, &nullable));
    let paths: Vec<String> = opening.learners().iter().map(|learner| learner.path().to_owned()).collect();
    assert_eq!(paths, ["/a/x.1", "/b/x", "/c/x"]);
}

#[test]
fn notes_stay_as_long_as_the_source_is_open() {
    let (_folder, opening) = opened(Content::Fixed);
    assert!(opening.recall("a verdict").is_none());
    opening.note("a verdict", b"true", false);
    assert_eq!(opening.recall("a verdict").as_deref(), Some(&b"true"[..]));
    assert!(opening.shows("a column", true));
    assert!(opening.shows("a column", false));
}

#[test]
fn nothing_is_kept_where_the_identity_does_not_stand_for_the_content() {
    let rows = memory(Arc::new(Int32Array::from(vec![1, 2, 3])));
    for content in [Content::Growing, Content::Scattered] {
        let (_folder, opening) = opened(content);
        assert!(opening.learner("/x", ID, &rows).is_none());
        assert!(opening.why_not_kept().is_some());
        assert!(!opening.keep("a verdict", b"true"));
    }
}
