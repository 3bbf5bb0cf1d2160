//! The crate as a library. Expected values were read by h5py.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, UInt64Type};
use hepfs::{Error, OpenTable, Session, Start, TableError};

use super::data;

fn session() -> Arc<Session> {
    let worker = Some(env!("CARGO_BIN_EXE_hepfs").into());
    Session::start_with(Start { worker, ..Start::default() }).unwrap()
}

fn energies(batch: &RecordBatch) -> Vec<f32> {
    batch.column_by_name("energy").unwrap().as_primitive::<Float32Type>().values().to_vec()
}

fn table(name: &str) -> OpenTable {
    session().open(data(name)).unwrap().table("my_table").unwrap()
}

#[test]
fn rows_are_read_and_selected() {
    let table = table("seed_11_1.h5");
    assert_eq!(energies(&table.read(498..u64::MAX).unwrap()), [111.65557, 11.351805]);
    assert_eq!(table.read(500..u64::MAX).unwrap().num_rows(), 0);
    let chosen = table.select("energy > 5 and label = 'electron' order by ts").unwrap();
    assert_eq!(chosen.rows(), 143);
    let first = chosen.read(0..3).unwrap();
    assert_eq!(energies(&first), [190.02284, 230.86946, 148.68987]);
    let rows = first.column_by_name("row_id").unwrap().as_primitive::<UInt64Type>().values().to_vec();
    assert_eq!(rows, [1_000_000_000_001, 1_000_000_000_005, 1_000_000_000_008]);
}

#[test]
fn more_rows_than_memory_has_are_an_error() {
    let session = session();
    let mut claimed = 0;
    for name in ["hostile/computed_rows.h5", "hostile/rows_2_62.h5"] {
        for table in session.open(data(name)).unwrap().tables().unwrap() {
            if table.rows() >= 1 << 40 && !table.schema().fields().is_empty() {
                let error = table.read(0..table.rows()).unwrap_err();
                assert!(error.to_string().contains("more than"), "{name}: {}: {error}", table.path());
                claimed += 1;
            }
        }
    }
    assert!(claimed > 4, "{claimed}");
}

#[test]
fn files_that_are_left_out_are_named() {
    let files = [data("seed_11_1.h5"), data("hostile/truncated.h5"), data("seed_11_2.h5")];
    let table = session().table_of_many(&files, "my_table").unwrap();
    let left_out: Vec<_> = table.left_out().map(|(file, reason)| (file, !reason.is_empty())).collect();
    assert_eq!((table.rows(), left_out), (1000, vec![("truncated.h5".to_owned(), true)]));
}

#[test]
fn a_file_that_changes_is_read_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    std::fs::copy(data("seed_11_1.h5"), &path).unwrap();
    let file = session().open(&path).unwrap();
    let before = file.table("my_table").unwrap();
    std::fs::copy(data("seed_11_2.h5"), &path).unwrap();
    let error = before.read(0..500).unwrap_err();
    assert!(matches!(error, TableError::Read(Error::Stale)), "{error}");
    assert_eq!(energies(&file.table("my_table").unwrap().read(0..2).unwrap()), [85.56001, 190.02284]);
}

#[test]
fn a_search_index_teaches_the_learner_of_its_column() {
    let file = session().open(data("search_indexes_pytables.h5")).unwrap();
    let mut found = 0;
    for table in file.tables().unwrap() {
        let table = table.model();
        for form in table.indexes.iter().filter_map(|index| index.form.as_ref().ok()).filter(|form| !form.is_part) {
            let column = table.columns.iter().find(|column| column.name == form.column).unwrap();
            let (of_column, of_form) = (column.learner.as_ref().unwrap(), form.learner.as_ref().unwrap());
            assert!(Arc::ptr_eq(of_column, of_form), "{}/{}", table.path, form.column);
            assert!(Arc::ptr_eq(column.rows.as_ref().unwrap(), &form.shown));
            found += 1;
        }
    }
    assert!(found > 0);
}
