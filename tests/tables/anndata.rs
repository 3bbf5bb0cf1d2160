//! AnnData beyond the values of good files: what contradicts itself is found, and harms nothing beside it.

use serde_json::Value;

use crate::data;
use crate::support::Mounted;

fn json(mounted: &Mounted, path: &str) -> Value {
    serde_json::from_slice(&mounted.read(path)).unwrap()
}

fn findings(mounted: &Mounted, table: &str) -> String {
    json(mounted, &format!("{table}/metadata.json"))["findings"].to_string()
}

#[test]
fn columns_that_contradict_their_frame_are_found() {
    let mounted = Mounted::new(&[&data("hostile/bad_anndata.h5")], &[]);
    assert_eq!(mounted.text("odd/table.csv"), "index,good,..,a/b,unlisted\nr1,1,0,0.5,7\nr2,2,0,1.5,8\nr3,3,0,2.5,9\n");
    let found = findings(&mounted, "odd");
    for expected in [
        "5 rows, the table has 3",
        "a dataset of rank 2, not 1",
        "gone: there is no such member",
        "1 that are not listed: unlisted",
        "strange",
    ] {
        assert!(found.contains(expected), "{expected}: {found}");
    }
    // What is no column is shown by itself; what is one of another length among the columns.
    assert!(mounted.names("odd").contains(&"flat.npy".to_owned()), "{:?}", mounted.names("odd"));
    assert_eq!(mounted.text("odd/columns/long.txt"), "0\n1\n2\n3\n4\n");
    assert_eq!(mounted.text("bare/table.csv"), "index,n\nr1,4\nr2,5\nr3,6\n");
    let found = findings(&mounted, "bare");
    assert!(found.contains("9.9") && found.contains("_index") && found.contains("column-order"), "{found}");
}

#[test]
fn masks_and_categories_that_lie_cost_their_column_alone() {
    let mounted = Mounted::new(&[&data("hostile/bad_anndata.h5")], &[]);
    assert_eq!(
        mounted.text("parts/table.csv"),
        "index,integer_mask,far,own,nowhere\nr1,true,b,0,0\nr2,,,1,1\nr3,true,,2,2\n"
    );
    assert_eq!(mounted.text("parts/columns/short_mask.csv"), "short_mask\n\"\"\n2\n\"\"\n");
    let found = findings(&mounted, "parts");
    for expected in ["3 values, a mask of 2", "neither an array nor values", "it has no codes", "leads nowhere"] {
        assert!(found.contains(expected), "{expected}: {found}");
    }
    // The code 9; −1 says that there is none.
    let found = mounted.text(".hepfs/findings");
    assert!(found.lines().any(|line| line.contains("/parts/far")), "{found}");
}

#[test]
fn pointers_that_lie_cost_the_numbers_of_rows_alone() {
    let mounted = Mounted::new(&[&data("hostile/bad_anndata.h5")], &[]);
    for (matrix, reason) in [("beyond", "[9]"), ("many", "4 pointers")] {
        assert_eq!(mounted.text(format!("{matrix}/table.csv")), "column,value\n0,1.0\n1,2.0\n2,3.0\n3,4.0\n");
        let found = findings(&mounted, matrix);
        assert!(found.contains(reason), "{found}");
    }
    // The ends are right: reading says what lies between.
    for (matrix, reason) in [("falls", "pointer 2 is 1 after 3"), ("negative", "pointer 1 is -5")] {
        assert!(std::fs::read(mounted.join(matrix).join("columns/row.txt")).is_err());
        let errors = mounted.text(".hepfs/errors");
        assert!(errors.contains(reason), "{errors}");
        assert_eq!(mounted.text(format!("{matrix}/columns/value.txt")), "1.0\n2.0\n3.0\n4.0\n");
    }
    assert!(findings(&mounted, "uneven").contains("4 values and 3 indices"));
    assert_eq!(mounted.text("empty/table.csv"), "row,column,value\n");
    // Kept as they are.
    assert_eq!(mounted.text("outside/columns/column.txt"), "0\n99\n-7\n3\n");
    assert_eq!(mounted.text("outside/columns/row.txt"), "0\n1\n2\n2\n");
}
