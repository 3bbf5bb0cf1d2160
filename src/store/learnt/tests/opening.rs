//! An opening of a source that is no HDF5 file.

use std::fs;
use std::sync::{Arc, Barrier};

use arrow_array::{ArrayRef, Int32Array};
use arrow_schema::DataType;
use tempfile::TempDir;

use super::super::{Content, Opening};
use super::{ID, memory};
use crate::catalogue::ColumnId;
use crate::source::{Interrupt, Source};
use crate::store::statistics::{GRAIN, Scalar, Summary};
use crate::store::{Error, Options, RowRange, Rows, Store};

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

/// Very many rows that say what they are.
#[derive(Debug)]
struct Zeros;

impl Rows for Zeros {
    fn len(&self) -> u64 {
        GRAIN << 18
    }

    fn data_type(&self) -> &DataType {
        &DataType::Int32
    }

    fn nullable(&self) -> bool {
        false
    }

    fn array(&self, range: RowRange, _: &Interrupt) -> Result<ArrayRef, Error> {
        Ok(Arc::new(Int32Array::from_iter_values(range.map(|_| 0))))
    }

    fn summary(&self, range: RowRange, _: &Interrupt) -> Result<Option<Summary>, Error> {
        let zero = Some(Scalar::Int(0));
        Ok(Some(Summary { rows: range.end - range.start, nulls: 0, nans: 0, min: zero.clone(), max: zero }))
    }

    fn stored_width(&self) -> Option<u64> {
        None
    }

    fn append_stored(&self, _: u64, _: usize, _: &mut Vec<u8>, _: &Interrupt) -> Result<(), Error> {
        unreachable!("nobody reads them")
    }

    fn natural_rows(&self) -> Option<u64> {
        None
    }
}

#[test]
fn everyone_who_asked_finds_what_was_told() {
    let (_folder, opening) = opened(Content::Fixed);
    let learner = opening.learner("/x", ID, &Zeros).unwrap();
    let together = Barrier::new(3);
    let ask = || {
        together.wait();
        learner.ask(&Zeros, &Interrupt::new()).unwrap();
        learner.known().is_some()
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(ask)).collect();
        assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
    });
}
