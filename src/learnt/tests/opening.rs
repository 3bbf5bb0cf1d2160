//! An opening of a source that is not HDF5.

use std::fs;
use std::sync::{Arc, Barrier};

use arrow_array::{ArrayRef, Int32Array};
use arrow_schema::DataType;
use tempfile::TempDir;

use super::super::Learner;
use super::{ID, memory};
use crate::catalogue::ColumnId;
use crate::source::{Interrupt, Source};
use crate::store::statistics::{GRAIN, Scalar, Summary};
use crate::store::{Error, Facts, Opening, Options, RowRange, Rows, SourceConstancy, Store, Summaries};

fn opened(content: SourceConstancy) -> (TempDir, Arc<Opening>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, b"neither HDF5 nor anything else").unwrap();
    let store = Store::new(Options { kept_folder: Some(folder.path().join("kept")), ..Options::default() });
    (folder, Opening::new(store, Arc::new(Source::open(&path).unwrap()), content))
}

#[test]
fn a_column_has_one_learner_whatever_its_path() {
    let (_folder, opening) = opened(SourceConstancy::Fixed);
    let rows = memory(Arc::new(Int32Array::from(vec![1, 2, 3])));
    let first = Learner::of(&opening, "/b/x", ID, &rows).unwrap();
    assert!(Arc::ptr_eq(&first, &Learner::of(&opening, "/a/x", ID, &rows).unwrap()));
    assert_eq!(first.path(), "/b/x");
    let field = Learner::of(&opening, "/a/x.1", ColumnId { field: 1, ..ID }, &rows).unwrap();
    assert!(!Arc::ptr_eq(&first, &field));
    // Shown with missing values by another dialect, it has other statistics.
    let nullable =
        Learner::of(&opening, "/c/x", ID, &memory(Arc::new(Int32Array::from(vec![1, 2, 3]))).nullable(true)).unwrap();
    assert!(!Arc::ptr_eq(&first, &nullable));
    let paths: Vec<String> = Learner::all_of(&opening).iter().map(|learner| learner.path().to_owned()).collect();
    assert_eq!(paths, ["/a/x.1", "/b/x", "/c/x"]);
}

/// A mount receives requests for the sizes of very many short columns.
#[test]
fn learners_of_a_few_rows_go_unless_they_are_used_or_shown() {
    let (_folder, opening) = opened(SourceConstancy::Fixed);
    let values: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let rows = memory(values.clone());
    let learner = |field| Learner::of(&opening, "/x", ColumnId { field, ..ID }, &rows).unwrap();
    let shown = Arc::downgrade(&learner(0));
    learner(0).observe(0, &values);
    assert!(learner(0).shown().is_some());
    // Decided, but there is nothing to show.
    assert!(learner(1).shown().is_none());
    let (unshown, used) = (Arc::downgrade(&learner(1)), learner(2));
    let long = Arc::downgrade(&Learner::of(&opening, "/z", ColumnId { field: 3, ..ID }, &zeros()).unwrap());
    for field in 4..40_000 {
        drop(learner(field));
    }
    let left = Learner::all_of(&opening).len();
    assert!(left < 10_000, "{left} learners");
    assert!(shown.upgrade().is_some() && long.upgrade().is_some() && unshown.upgrade().is_none());
    assert!(Arc::ptr_eq(&used, &learner(2)));
    assert_eq!(learner(0).shown().map(|shown| shown.rows()), Some(3));
}

#[test]
fn where_very_many_are_not_kept_no_more_are_looked_for() {
    let (folder, opening) = opened(SourceConstancy::Fixed);
    // Facts about a source that was just written are not cached.
    std::thread::sleep(std::time::Duration::from_millis(100));
    let source = Arc::new(Source::open(&folder.path().join("a")).unwrap());
    let opening = Opening::new(opening.store().clone(), source, SourceConstancy::Fixed);
    assert!(opening.keep("there", b"bytes"));
    for at in 0..Opening::MOST_SMALL {
        assert_eq!(opening.kept_of_few("there").as_deref(), Some(&b"bytes"[..]), "what is found does not count");
        assert!(opening.kept_of_few(&format!("{at}")).is_none());
    }
    assert!(opening.kept_of_few("there").is_none());
    assert!(opening.kept("there").is_some());
}

#[test]
fn notes_stay_as_long_as_the_source_is_open() {
    let (_folder, opening) = opened(SourceConstancy::Fixed);
    assert!(opening.recall("a verdict").is_none());
    opening.note("a verdict", b"true", false);
    assert_eq!(opening.recall("a verdict").as_deref(), Some(&b"true"[..]));
    assert!(opening.shows("a column", true));
    assert!(opening.shows("a column", false));
}

#[test]
fn nothing_is_kept_where_the_identity_does_not_stand_for_the_content() {
    let rows = memory(Arc::new(Int32Array::from(vec![1, 2, 3])));
    for content in [SourceConstancy::Growing, SourceConstancy::Scattered] {
        let (_folder, opening) = opened(content);
        assert!(Learner::of(&opening, "/x", ID, &rows).is_none());
        assert!(opening.why_not_kept().is_some());
        assert!(!opening.keep("a verdict", b"true"));
    }
}

/// Very many rows that say what they are.
#[derive(Debug)]
struct Zeros(Facts);

fn zeros() -> Zeros {
    Zeros(Facts::new(GRAIN << 18, DataType::Int32))
}

impl Rows for Zeros {
    fn facts(&self) -> &Facts {
        &self.0
    }

    fn array(&self, range: RowRange, _: &Interrupt) -> Result<ArrayRef, Error> {
        Ok(Arc::new(Int32Array::from_iter_values(range.map(|_| 0))))
    }

    fn known(&self) -> Option<&dyn Summaries> {
        Some(self)
    }
}

impl Summaries for Zeros {
    fn summary(&self, range: RowRange, _: &Interrupt) -> Result<Option<Summary>, Error> {
        let zero = Some(Scalar::Int(0));
        Ok(Some(Summary { rows: range.end - range.start, nulls: 0, nans: 0, min: zero.clone(), max: zero }))
    }
}

#[test]
fn everyone_who_asked_finds_what_was_told() {
    let (_folder, opening) = opened(SourceConstancy::Fixed);
    let zeros = zeros();
    let learner = Learner::of(&opening, "/x", ID, &zeros).unwrap();
    let together = Barrier::new(3);
    let ask = || {
        together.wait();
        learner.ask(&zeros, &Interrupt::new()).unwrap();
        learner.known().is_some()
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(ask)).collect();
        assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
    });
}
