//! AnnData beyond the values of good files: what contradicts itself is found, and harms nothing beside it.

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use serde_json::Value;

use crate::data;
use crate::support::{Mounted, hepfs};

fn json(mounted: &Mounted, path: &str) -> Value {
    serde_json::from_slice(&mounted.read(path)).unwrap()
}

fn findings(mounted: &Mounted, table: &str) -> String {
    json(mounted, &format!("{table}/metadata.json"))["findings"].to_string()
}

/// Made: `/odd`, a data frame of three rows whose `column-order` is good, long, flat, gone, .., a/b, strange, good:
/// `long` has five rows, `flat` rank 2, `gone` is absent, `..` and `a/b` are names of datasets, `strange` is an awkward
/// array; `unlisted` is in no order. `/bare` has neither `_index` nor `column-order`, and version 9.9.
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

/// A matrix without columns, a frame without any, and a dictionary that is only called `obsm`.
///
/// Made: `/single`, an AnnData with `obs` of three rows, and in `obsm` a matrix of 3 × 0, one of 3 × 2 and a frame
/// without columns; `/uns/obsm`, a dictionary beside no frame, with matrices of 3 and 5 rows.
#[test]
fn what_is_about_no_row_is_found_nowhere() {
    let path = data("hostile/bad_anndata.h5");
    let mounted = Mounted::new(&[&path], &[]);
    let csv = "index,narrow,wide\nr1,\"\",\"[0.0,1.0]\"\nr2,\"\",\"[2.0,3.0]\"\nr3,\"\",\"[4.0,5.0]\"\n";
    assert_eq!(mounted.text("single/obsm/table.csv"), csv);
    assert_eq!(json(&mounted, "single/obsm/metadata.json")["findings"], Value::Array(Vec::new()));
    assert!(!mounted.names("uns/obsm").contains(&"table.csv".to_owned()), "{:?}", mounted.names("uns/obsm"));
    let checked = hepfs(["check", "--json", path.to_str().unwrap()]);
    let report = String::from_utf8(checked.stdout).unwrap();
    assert!(report.contains("anndata/categories-twice"), "{report}");
    assert!(!report.lines().any(|line| line.contains("/uns/obsm") || line.contains("/single/obsm")), "{report}");
}

/// Before version 0.7 matrices are fields of a compound.
///
/// Made: compounds `/obs` and `/raw.var` of three rows as frames; `/obsm` of five rows, `/varm` beside no frame, and
/// `/raw.varm` of three with a field `index`, the name of its labels.
#[test]
fn compounds_of_matrices_have_the_labels_of_as_many_rows() {
    let mounted = Mounted::new(&[&data("hostile/bad_anndata_06.h5")], &[]);
    assert_eq!(mounted.text("obsm/table.csv"), format!("X_pca\n{}", "\"[0.0,0.0]\"\n".repeat(5)));
    let found = json(&mounted, "obsm/metadata.json")["findings"].clone();
    assert_eq!((&found[0]["id"], &found[0]["found"]), (&"anndata/matrix-rows".into(), &"5 rows, /obs has 3".into()));
    // Without a data frame it is a compound like any other.
    let alone = json(&mounted, "varm/metadata.json");
    assert_eq!((&alone["dialect"], &alone["findings"]), (&"structured array".into(), &Value::Array(Vec::new())));
    assert_eq!(mounted.text("raw.varm/table.csv"), "index,index.1\nr1,7\nr2,8\nr3,9\n");
    assert_eq!(mounted.text("raw.varm/where/index:eq:r2/table.csv"), "index,index.1\nr2,8\n");
}

/// What a user calls `obsm`, beside no data frame, is a group.
#[test]
fn matrices_without_an_encoding_lie_beside_a_frame() {
    let mounted = Mounted::new(&[&data("anndata_07.h5")], &[]);
    assert!(mounted.names("mod/rna/obsm").contains(&"table.csv".to_owned()));
    assert!(!mounted.names("uns/mine/obsm").contains(&"table.csv".to_owned()));
}

/// Made: `/parts`, columns of three rows: `short_mask` with a mask of two; `integer_mask` with the mask 0, 1, 0; `far`
/// with the codes 1, 9, −1 of two categories; `of_codes`, whose categories are a categorical; `no_codes`; `own`, whose
/// categories are the column itself; `nowhere`, whose categories are a null reference.
#[test]
fn masks_and_categories_that_lie_cost_their_column_alone() {
    let mounted = Mounted::new(&[&data("hostile/bad_anndata.h5")], &[]);
    assert_eq!(
        mounted.text("parts/table.csv"),
        "index,integer_mask,far,own,nowhere\nr1,true,b,0,0\nr2,,,1,1\nr3,true,,2,2\n"
    );
    assert_eq!(mounted.text("parts/columns/short_mask.csv"), "short_mask\n\"\"\n2\n\"\"\n");
    let found = findings(&mounted, "parts");
    for expected in [
        "a mask of other elements",
        "3 values, a mask of 2",
        "neither an array nor values",
        "it has no codes",
        "leads nowhere",
    ] {
        assert!(found.contains(expected), "{expected}: {found}");
    }
    // The code 9; −1 says that there is none.
    let found = mounted.text(".hepfs/findings");
    assert!(found.lines().any(|line| line.contains("/parts/far")), "{found}");
}

/// Made: matrices in CSR of 3 × 4 with four values. Pointers: `falls` 0, 3, 1, 4; `beyond` 0, 1, 2, 9; `negative` 0,
/// −5, 2, 4; `many` 0, 1, 2, 4 of 2^63 − 1 rows. `uneven` has three indices, `outside` the indices 0, 99, −7, 3,
/// `empty` no value. `/wide/X` has 2^45 rows, of whose pointers the first and the last are stored.
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
        // A footer says nothing of what cannot be read, and conditions on other columns are served.
        // A small file that is opened often lies in the kernel, unless a part of it cannot be read.
        for _ in 0..5 {
            let file = std::fs::File::open(mounted.join(matrix).join("table.parquet")).unwrap();
            let footer = SerializedFileReader::new(file).unwrap();
            let told = footer.metadata().row_group(0).column(0).statistics();
            assert!(told.is_none_or(|told| told.min_bytes_opt().is_none()), "{matrix}");
        }
        assert_eq!(mounted.text(format!("{matrix}/where/value:gt:2/columns/value.txt")), "3.0\n4.0\n");
        assert!(std::fs::read(mounted.join(matrix).join("where/row:eq:1/columns/value.txt")).is_err());
    }
    assert!(findings(&mounted, "uneven").contains("4 values and 3 indices"));
    assert_eq!(mounted.text("empty/table.csv"), "row,column,value\n");
    // Of 2^45 pointers all but a few were never stored: they are neither read nor kept.
    let [names, first, last] = ["row,column,value,row_name,column_name", "0,1,2.5,r1,r2", "35184372088831,2,3.5,,r3"];
    assert_eq!(mounted.text("wide/X/table.csv"), format!("{names}\n{first}\n{last}\n"));
    assert_eq!(mounted.text("wide/X/where/row:ge:1/table.csv"), format!("{names}\n{last}\n"));
    assert_eq!(mounted.read("wide/X/table.arrow")[..6], *b"ARROW1");
    // Kept as they are.
    assert_eq!(mounted.text("outside/columns/column.txt"), "0\n99\n-7\n3\n");
    assert_eq!(mounted.text("outside/columns/row.txt"), "0\n1\n2\n2\n");
}

/// Entries of each row of `anndata_runs.h5`, in its first columns.
fn lengths() -> impl Iterator<Item = i32> {
    (0..1000).map(|row| row * 37 % 600)
}

/// Rows and columns of all entries, as `X` has them, and as `layers/by_gene` has them.
fn entries() -> [Vec<(i32, i32)>; 2] {
    let by_row: Vec<_> = lengths().zip(0..).flat_map(|(length, row)| (0..length).map(move |at| (row, at))).collect();
    let mut by_column = by_row.clone();
    by_column.sort_by_key(|(row, column)| (*column, *row));
    [by_row, by_column]
}

#[test]
fn numbers_along_the_compressed_axis_are_known_without_reading_them() {
    let mounted = Mounted::new(&[&data("anndata_runs.h5")], &[]);
    for ((matrix, sorted), entries) in [("X", "row"), ("layers/by_gene", "column")].into_iter().zip(entries()) {
        let open = || std::fs::File::open(mounted.join(format!("{matrix}/table.parquet"))).unwrap();
        let footer = SerializedFileReader::new(open()).unwrap();
        let of_entry = |entry: &(i32, i32)| if sorted == "row" { entry.0 } else { entry.1 };
        let mut start = 0;
        for group in footer.metadata().row_groups() {
            let end = start + group.num_rows() as usize;
            for (at, (of, pick)) in [("row", 0), ("column", 1)].into_iter().enumerate() {
                assert_eq!(group.column(at).column_path().string(), of);
                let bounds = group.column(at).statistics().map(|told| match told {
                    Statistics::Int32(told) => (*told.min_opt().unwrap(), *told.max_opt().unwrap()),
                    other => panic!("{other:?}"),
                });
                let values = entries[start..end].iter().map(|entry| if pick == 0 { entry.0 } else { entry.1 });
                let expected = (values.clone().min().unwrap(), values.max().unwrap());
                assert_eq!(bounds, (of == sorted).then_some(expected), "{matrix} {of} {start}");
            }
            start = end;
        }
        assert_eq!(start, entries.len());
        let rows = ParquetRecordBatchReaderBuilder::try_new(open()).unwrap().build().unwrap();
        let mut read = Vec::new();
        for batch in rows {
            let batch = batch.unwrap();
            read.extend_from_slice(batch.column_by_name(sorted).unwrap().as_primitive::<Int32Type>().values());
        }
        assert!(read.iter().eq(entries.iter().map(of_entry).collect::<Vec<_>>().iter()), "{matrix}");
    }
}

#[test]
fn what_is_asked_of_the_compressed_axis_decodes_little_more_than_is_shown() {
    let all = entries();
    for (matrix, asked, entries) in [("X", "row", &all[0]), ("layers/by_gene", "column", &all[1])] {
        let mounted = Mounted::new(&[&data("anndata_runs.h5")], &[]);
        let is_asked = |entry: &&(i32, i32)| (if asked == "row" { entry.0 } else { entry.1 }) == 587;
        let shown = mounted.text(format!("{matrix}/where/{asked}:eq:587/table.csv"));
        let line =
            |(row, column): &(i32, i32)| format!("{row},{column},{},cell{row},gene{column}", (row + column) % 7 + 1);
        let expected: Vec<String> = entries.iter().filter(is_asked).map(line).collect();
        assert!(!expected.is_empty());
        assert_eq!(shown.lines().skip(1).collect::<Vec<_>>(), expected, "{matrix}");
        let explained: Value = serde_json::from_str(mounted.text(".hepfs/explain").lines().next().unwrap()).unwrap();
        let blocks = entries.len().div_ceil(65_536);
        assert_eq!(explained["blocks_skipped"], blocks - 1, "{explained}");
        assert_eq!(explained["blocks_decoded"], 1, "{explained}");
        // The same by name.
        let name = if asked == "row" { "row_name:eq:cell587" } else { "column_name:eq:gene587" };
        assert_eq!(mounted.text(format!("{matrix}/where/{name}/table.csv")), shown);
        let explained: Value = serde_json::from_str(mounted.text(".hepfs/explain").lines().next().unwrap()).unwrap();
        assert_eq!(explained["blocks_skipped"], blocks - 1, "{explained}");
        // All of them.
        let many = mounted
            .text(format!("{matrix}/where/{asked}_name:prefix:{}/columns/{asked}.txt", &name[name.len() - 7..][..4]));
        assert_eq!(many.lines().count(), entries.len(), "{matrix}");
        let explained: Value = serde_json::from_str(mounted.text(".hepfs/explain").lines().next().unwrap()).unwrap();
        assert_eq!((&explained["blocks_taken_whole"], &explained["bytes_decoded"]), (&blocks.into(), &0.into()));
    }
}

#[test]
fn an_awkward_array_of_another_form_is_found_and_its_buffers_are_shown() {
    let mounted = Mounted::new(&[&data("anndata_awkward.h5")], &[]);
    let found = findings(&mounted, "uns/mixed");
    assert!(found.contains("UnionArray") && found.contains("anndata/awkward"), "{found}");
    assert_eq!(mounted.text("uns/mixed/node1-data.txt"), "1\n2\n3\n");
    assert!(mounted.names("uns/free").iter().all(|name| !name.starts_with("node")));
}

/// Made: `/sparse`, booleans stored as 0, 1, 2; `/awkward`, records of two booleans `a` (0, 2) and `b` (0, 1), beside
/// an array `spare` that its form does not name.
#[test]
fn booleans_of_a_sparse_matrix_and_of_a_field_are_found() {
    let mounted = Mounted::new(&[&data("hostile/odd_parts.h5")], &[]);
    assert_eq!(mounted.text("sparse/columns/value.txt").lines().count(), 3);
    assert_eq!(mounted.text("awkward/table.csv").lines().count(), 3);
    let findings = mounted.text(".hepfs/findings");
    let found = |path: &str| findings.lines().filter(|line| line.contains(&format!("\"path\":\"{path}\""))).count();
    assert_eq!(found("/sparse/value"), 1, "{findings}");
    // Of one of two fields.
    assert_eq!(found("/awkward"), 1, "{findings}");
    // What no form names is shown by itself.
    assert_eq!(mounted.text("awkward/spare.txt"), "0\n1\n2\n");
}
