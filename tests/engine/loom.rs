//! Tables of Loom through the library, without a mount. Expected values were written by loompy.

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use hepfs::{Session, Start};

use super::data;

#[test]
fn attributes_of_rows_are_a_table() {
    let worker = Some(env!("CARGO_BIN_EXE_hepfs").into());
    let session = Session::start_with(Start { worker, ..Start::default() }).unwrap();
    let table = session.open(data("loom.h5")).unwrap().table("row_attrs").unwrap();
    let batch = table.read(0..table.rows()).unwrap();
    assert_eq!(batch.schema().field(0).name(), "Gene");
    let chosen = batch.column_by_name("Chosen").unwrap().as_primitive::<Int32Type>();
    assert_eq!(chosen.values().to_vec(), [0, 1, 0, 1, 0, 1, 0, 1]);
}
