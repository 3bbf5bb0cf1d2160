//! Tables that only the shapes of their datasets tell of: `scripts/fixtures/shape.py` writes the file. That the rule is
//! the rule, and values are those stored: `readers/shape.rs`.

use serde_json::Value;

use crate::data;
use crate::support::{Mounted, hepfs};

fn shapes(arguments: &[&str]) -> Mounted {
    Mounted::new(&[&data("shapes.h5")], arguments)
}

fn metadata(mounted: &Mounted, group: &str) -> Value {
    serde_json::from_slice(&mounted.read(format!("{group}/metadata.json"))).unwrap()
}

#[test]
fn names_that_the_table_needs_are_escaped_and_no_others() {
    let mounted = shapes(&[]);
    let names = mounted.names("events");
    for name in [
        "%74able.csv",
        "%68ead.npy",
        "%77here",
        "%74ables",
        "table.csv",
        "table.ndjson",
        "table.parquet",
        "table.arrow",
        "head.csv",
        "where",
        "tables",
        "energy.csv",
        "one.npy",
        "scalar.txt",
        "images.npy",
        "time.csv",
    ] {
        assert!(names.iter().any(|own| own == name), "{name}: {names:?}");
    }
    assert!(!names.iter().any(|name| name == "columns" || name == "indexes.json"), "{names:?}");
    let csv = mounted.text("events/table.csv");
    let expected =
        "counts,energy,head,table\n\"[0,1,2,3]\",0.0,0,0\n\"[4,5,6,7]\",1.0,100,10\n\"[8,9,10,11]\",,200,20\n";
    assert!(csv.starts_with(expected), "{csv}");
    assert_eq!(mounted.text("events/%74able.txt"), "0\n10\n20\n30\n40\n");
    assert_eq!(mounted.text("events/tables/rows-3/table.csv"), "label,time\nx,0\ny,1\nz,2\n");
    assert_eq!(mounted.text("events/where/energy:gt:2/columns/table.txt"), "30\n40\n");
    let declared = shapes(&["--tables=declared"]);
    let names = declared.names("events");
    assert!(names.contains(&"table.csv".to_owned()) && names.contains(&"where".to_owned()), "{names:?}");
    assert!(
        !names.contains(&"head.csv".to_owned()) || declared.text("events/head.csv").starts_with("head"),
        "{names:?}"
    );
    assert_eq!(metadata(&declared, "events")["columns"], Value::Null);
}

#[test]
fn metadata_says_what_was_guessed_and_left_out() {
    let mounted = shapes(&[]);
    let events = metadata(&mounted, "events");
    assert_eq!([&events["recognised_by"], &events["dialect"], &events["revision"]], ["shape", "shape", "rule 7"]);
    let left_out: Vec<String> =
        events["left_out"].as_array().unwrap().iter().map(|one| one["name"].to_string()).collect();
    assert_eq!(left_out, [r#""images""#, r#""label""#, r#""one""#, r#""scalar""#, r#""time""#]);
    assert!(metadata(&mounted, "grid")["no_table"].as_str().unwrap().contains("a grid"));
    assert!(metadata(&mounted, "few")["no_table"].as_str().unwrap().contains("up to 3 rows"));
    assert!(metadata(&mounted, "numbered")["no_table"].as_str().unwrap().contains("items of a list"));
    assert!(metadata(&mounted, "settings")["no_table"].as_str().unwrap().contains("20 single values: a record"));
    assert!(metadata(&mounted, "empty")["no_table"].as_str().unwrap().contains("have no rows"));
    assert!(!mounted.names("plot").contains(&"table.csv".to_owned()));
    assert!(metadata(&mounted, "mesh")["no_table"].as_str().unwrap().contains("origin has a number for each of 3"));
    assert!(shapes(&["--tables=loose"]).names("few").contains(&"table.csv".to_owned()));
}

#[test]
fn arrays_beside_many_columns_are_columns() {
    let mounted = shapes(&[]);
    let csv = mounted.text("swath/table.csv");
    assert!(csv.starts_with("lat,lon,spectrum,time\n10.0,20.0,\"[0,1,2,3]\",0.0\n"), "{csv}");
    assert_eq!(metadata(&mounted, "swath")["left_out"][0]["name"], "wavelength");
}

#[test]
fn members_of_one_length_that_are_not_of_one_thing_are_no_table() {
    let mounted = shapes(&[]);
    for (group, reason) in [
        ("compressed", "owners_indptr points into what is beside it"),
        ("corners", "3 datasets of one kind have 3 rows"),
        ("files", "2 datasets of one kind have 2 rows"),
        ("characters", "single characters: texts"),
        ("series", "items of a list"),
        ("matrix", "score has two axes as long as other datasets: a grid"),
        ("vectors", "4 datasets of one kind have 3 rows"),
        ("axes", "5 single values: a record"),
        ("edges/indexes", "a group called indexes serves"),
        ("types", "names of 3 datasets of 5 rows do not describe them"),
        ("tagged", "items of a list"),
        ("coefficients", "items of a list"),
        ("mostly", "2 datasets have 5 rows, and 1 others have not"),
    ] {
        let said = &metadata(&mounted, group)["no_table"];
        assert!(said.as_str().is_some_and(|said| said.contains(reason)), "{group}: {said}");
    }
    for group in ["columns", "fields", "chains"] {
        assert!(!mounted.names(group).contains(&"table.csv".to_owned()), "{group}");
    }
    assert!(mounted.text("replicates/table.csv").starts_with("bs10,bs11,bs8,bs9\n0.0,0.0,0.0,0.0\n2.0,3.0,0.0,1.0\n"));
}

#[test]
fn compounds_are_one_table_where_their_fields_are_alike() {
    let mounted = Mounted::new(&[&data("shapes_compounds.h5")], &[]);
    assert!(metadata(&mounted, "kinds")["no_table"].as_str().unwrap().contains("tables beside each other"));
    assert_eq!(metadata(&mounted, "ranks")["columns"][0]["name"], "score");
}

#[test]
fn the_row_set_of_most_members_is_the_table() {
    let mounted = shapes(&[]);
    let csv = mounted.text("chain/table.csv");
    assert!(csv.starts_with("accepted,plaquette,trajectory\n\"[1.0,1.0]\",\"[0.0,0.0]\",0\n"), "{csv}");
}

/// Rows are along the axis that is longer than all others.
#[test]
fn arrays_without_a_line_are_a_table() {
    let mounted = shapes(&[]);
    let csv = mounted.text("hits/table.csv");
    assert!(csv.starts_with("adc,position\n\"[0,1]\",\"[0.0,1.0,2.0]\"\n\"[2,3]\","), "{csv}");
    assert_eq!(metadata(&mounted, "hits")["left_out"][0]["reason"], "0 rows, the table has 6");
}

#[test]
fn images_are_columns() {
    let mounted = shapes(&[]);
    assert_eq!(mounted.text("letters/where/shows:eq:f/columns/shows.txt"), "f\n");
    let row = mounted.text("letters/where/shows:eq:f/table.ndjson");
    assert!(row.starts_with("{\"image\":[[3200,3201,"), "{row}");
    assert!(row.ends_with(",4798,4799]],\"shows\":\"f\"}\n"), "{row}");
}

#[test]
fn vectors_label_no_axis_of_a_grid() {
    let mounted = shapes(&[]);
    let csv = mounted.text("atoms/table.csv");
    assert!(csv.starts_with("energy,number,position\n0.0,0,\"[0.0,1.0,2.0]\"\n"), "{csv}");
}

#[test]
fn texts_label_no_axis_of_a_grid() {
    let mounted = shapes(&[]);
    assert_eq!(
        mounted.text("sites/table.csv"),
        "cost,mean,name,open,state\n0.0,0.0,a,true,0\n1.0,2.0,b,true,0\n2.0,4.0,c,true,0\n3.0,6.0,d,true,0\n"
    );
}

/// An array of one element a row is a column of elements, not of lists; its own files keep its shape.
#[test]
fn rows_of_one_element_are_values() {
    let mounted = shapes(&[]);
    let expected = "gain,name,train\n0.5,a,10\n,b,11\n1.5,c,12\n,d,13\n2.5,e,14\n3.5,f,15\n";
    assert_eq!(mounted.text("tall/table.csv"), expected);
    assert_eq!(mounted.text("tall/where/train:ge:14/table.csv"), "gain,name,train\n2.5,e,14\n3.5,f,15\n");
    assert!(mounted.text("tall/train.ndjson").starts_with("[10]\n[11]\n"));
    assert_eq!(metadata(&mounted, "tall")["left_out"][0]["reason"], "one value beside longer ones");
}

#[test]
fn groups_beside_each_other_are_one_table() {
    let mounted = shapes(&[]);
    let csv = mounted.text("data/tables/ALL/table.csv");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 16);
    assert_eq!(lines[..2], ["group,action,reward", "demo_0,\"[0.0,0.0]\",0"]);
    assert_eq!([lines[5], lines[15]], ["demo_2,\"[2.0,2.0]\",200", "demo_10,\"[10.0,10.0]\",1005"]);
    assert_eq!(mounted.text("data/tables/ALL/where/group:eq:demo_2/columns/reward.txt"), "200\n201\n202\n203\n204\n");
    let metadata = metadata(&mounted, "data/tables/ALL");
    assert_eq!(metadata["left_out"][0]["name"], "demo_7");
    assert!(Mounted::new(&[&data("lh5.h5")], &["--tables=declared"]).names("").len() > 2);
    // No format tells of this one, though each of its tables says what it is.
    let has_all = |options: &[&str]| Mounted::new(&[&data("pandas3.h5")], options).names("").contains(&"tables".into());
    assert!(has_all(&[]) && !has_all(&["--tables=declared"]));
}

/// The first two are no tables by themselves: one row, and as many rows as columns. Beside others they are.
#[test]
fn groups_that_are_not_alike_hide_none_that_are() {
    let mounted = shapes(&[]);
    let groups = mounted.text("uneven/tables/ALL/columns/group.txt");
    let runs = [1, 7, 20, 20].into_iter().enumerate().map(|(run, rows)| format!("run_{run}\n").repeat(rows));
    assert_eq!(groups, runs.collect::<String>());
    assert_eq!(mounted.text("uneven/tables/ALL/where/group:eq:run_1/columns/reward.txt"), "1.0\n".repeat(7));
    let metadata = metadata(&mounted, "uneven/tables/ALL");
    let left_out = metadata["left_out"].as_array().unwrap();
    let left_out: Vec<_> = left_out.iter().map(|left| [&left["name"], &left["reason"]]).collect();
    assert_eq!(left_out, [["run_4", "other units"]]);
    assert_eq!(metadata["columns"][2]["units"], "V");
}

#[test]
fn groups_that_hurt_are_listed() {
    let mounted = shapes(&[]);
    let names = mounted.names("huge");
    assert!(names.contains(&"where".to_owned()), "{names:?}");
    let huge = metadata(&mounted, "huge");
    assert_eq!([&huge["rows"], &huge["columns"][0]["in_table"]], [&Value::from(1_u64 << 62), &Value::from(true)]);
    let wide = metadata(&mounted, "wide");
    assert_eq!(wide["rows"], 9);
    let columns: Vec<&Value> = wide["columns"].as_array().unwrap().iter().map(|column| &column["name"]).collect();
    assert_eq!(columns, ["a", "d"]);
    // Too long to be one value, and no reason to fail before.
    assert!(std::fs::File::open(mounted.join("wide/where/a:eq:1/columns/d.txt")).is_ok());
}

#[test]
fn datasets_of_many_files_keep_their_places() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.h5", "b.h5"] {
        std::fs::copy(data("shapes.h5"), folder.path().join(name)).unwrap();
    }
    let mounted = Mounted::new(&[folder.path()], &[]);
    let files = ["file=a.h5", "file=b.h5"];
    assert_eq!(mounted.names(".datasets/events/%2F"), files);
    assert_eq!(mounted.names(".datasets/events/energy"), files);
    assert_eq!(mounted.names(".datasets/events/tables/rows-3"), files);
    assert!(mounted.read(".datasets/events/%2F/file=b.h5/part-0.parquet").starts_with(b"PAR1"));
}

#[test]
fn a_listing_asks_for_nothing_more() {
    let asked = |tables: &str, group: &str| {
        let mounted = shapes(&[tables]);
        mounted.names(group);
        let stats = mounted.text(".hepfs/stats");
        let asked = stats.lines().find_map(|line| line.strip_prefix("catalogue_asked ")).unwrap().trim();
        asked.parse::<u64>().unwrap()
    };
    for group in ["events", "grid", "huge"] {
        assert_eq!(asked("--tables=shape", group), asked("--tables=declared", group), "{group}");
    }
}

/// A guess takes nothing away from who asks for the only table.
#[test]
fn a_query_takes_the_only_table_that_is_declared() {
    let output = hepfs(["query".into(), data("shapes.h5").display().to_string(), "n > 1".into()]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "n,f\n3,4.5\n", "{output:?}");
}

#[test]
fn info_says_which_groups_nearly_were_tables() {
    let info = |arguments: &[&str]| {
        let place = data("shapes.h5");
        let place = place.display().to_string();
        let output = hepfs(arguments.iter().map(|argument| argument.replace("FILE", &place)));
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let all = info(&["info", "FILE"]);
    assert!(all.contains("table events: 5 rows, 4 columns (by shape, rule 7)"), "{all}");
    assert!(all.contains("table tables/ALL: 15 rows, 3 columns (by shape, groups beside each other)"), "{all}");
    assert!(all.contains("array one: int64, [1], 8 bytes; no column: one value beside longer ones"), "{all}");
    assert!(!all.contains("nearly a table"), "{all}");
    let grid = info(&["info", "FILE:grid"]);
    assert!(grid.contains("nearly a table: /grid: image has two axes as long as other datasets: a grid"), "{grid}");
}
