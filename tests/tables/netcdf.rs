//! netCDF-4 beyond the values of good files: dimensions that lead anywhere, attributes that make no numbers, names, and
//! what is told of it.

use serde_json::Value;

use crate::data;
use crate::support::{Mounted, hepfs};

fn json(mounted: &Mounted, path: &str) -> Value {
    serde_json::from_slice(&mounted.read(path)).unwrap()
}

/// Made: `/lost`, variables 0, 1, 2. The DIMENSION_LIST of `to_group`, `to_root`, `to_null`, `to_no_scale`, `to_gone`
/// and `itself` refers to a group, the root, nothing, a plain dataset, a deleted dataset, the variable; of
/// `to_scale_of_2` to a scale of rank 2; of `no_list` it is a text, of `numbers` integers.
#[test]
fn dimension_lists_that_lead_anywhere_are_found() {
    let mounted = Mounted::new(&[&data("hostile/bad_netcdf.h5")], &[]);
    let found = json(&mounted, "lost/metadata.json")["findings"].to_string();
    for expected in ["it leads to a group", "a dataset that is no scale", "bad object header", "a null reference"] {
        assert!(found.contains(expected), "{expected}: {found}");
    }
    for name in ["to_group", "to_root", "to_null", "to_no_scale", "to_gone", "itself", "no_list", "numbers"] {
        assert_eq!(mounted.text(format!("lost/{name}.txt")), "0\n1\n2\n", "{name}");
    }
    // A scale of two axes is a dimension all the same.
    assert_eq!(
        mounted.text("lost/tables/flat/table.csv"),
        "flat,to_scale_of_2\n\"[0.0,0.0]\",0\n\"[0.0,0.0]\",1\n,2\n"
    );
}

/// Made: `/good`, variables 1, 2, 3 on `x`. The scale factor of `zero`, `nan`, `endless` and `texts` is 0, NaN,
/// infinite, a text; `fill` has a text as `_FillValue` and 1000, −1 as missing values of uint8; `flags` two values and
/// one word; `late` and `last` are days up to 1e300 and 2^62; `julian` has another calendar, `months` a unit of no one
/// length; `odd_bool` is 0, 1, 7.
#[test]
fn attributes_that_make_no_numbers_are_found() {
    let mounted = Mounted::new(&[&data("hostile/bad_netcdf.h5")], &[]);
    let found = json(&mounted, "good/metadata.json")["findings"].to_string();
    for expected in [
        "it is 0",
        "it is NaN",
        "it is inf",
        "scale_factor is no such number",
        "_FillValue is no number",
        "missing_value is no UInt8",
        "2 values, 1 words",
        "\\\"julian\\\" is not that of ISO 8601",
        "\\\"months\\\" is no unit of one length",
    ] {
        assert!(found.contains(expected), "{expected}: {found}");
    }
    let column = |name: &str| mounted.text(format!("good/columns/{name}.txt"));
    assert_eq!(column("value"), "1\n2\n3\n");
    assert_eq!(column("zero"), "1.0\n1.0\n1.0\n");
    assert_eq!(column("nan"), "NaN\nNaN\nNaN\n");
    assert_eq!(column("odd_bool"), "false\ntrue\ntrue\n");
    // Five million days: beyond four digits of a year. 1e300 and 2^62 of them: beyond 64 bits.
    assert_eq!(column("last"), "2000-01-01T00:00:00Z\n+15689-07-14T00:00:00Z\n\n");
    assert_eq!(column("late"), "2000-01-01T00:00:00.000000Z\n+15689-07-14T00:00:00.000000Z\n\n");
    assert!(mounted.text(".hepfs/findings").contains("an instant fits 64 bits"));
}

/// Made: `/short`, a dimension `y` of five, with a variable of four values and one of two.
#[test]
fn variables_that_end_early_end_in_missing_rows() {
    let mounted = Mounted::new(&[&data("hostile/bad_netcdf.h5")], &[]);
    assert_eq!(mounted.text("short/tables/y/table.csv"), "of_2,of_4\n0,0\n1,1\n,2\n,3\n");
    assert_eq!(mounted.text("short/of_2.txt"), "0\n1\n");
    let found = json(&mounted, "short/tables/y/metadata.json")["findings"].to_string();
    assert!(found.contains("2 rows, the table has 4"), "{found}");
    // As the file has them, and what it fills with.
    let stored = mounted.read("short/tables/y/columns/of_2.raw");
    assert_eq!(stored, [0_i64, 1, 0, 0].map(i64::to_le_bytes).concat());
}

#[test]
fn a_dimension_without_values_is_no_file() {
    let mounted = Mounted::new(&[&data("netcdf.h5")], &[]);
    let metadata = json(&mounted, "cube/metadata.json");
    let member = metadata["members"].as_array().unwrap().iter().find(|member| member["name"] == "profile").unwrap();
    assert_eq!(member["shown_as"], Value::Array(Vec::new()));
    assert!(member["not_shown"].to_string().contains("a dimension of netCDF"), "{member}");
    assert!(mounted.names("cube").iter().all(|name| !name.starts_with("profile.") && !name.starts_with("nv.")));
}

/// Also of a group above; of groups of up to 4,096 links.
#[test]
fn arrays_tell_their_dimensions() {
    let mounted = Mounted::new(&[&data("netcdf.h5")], &[]);
    let dimensions = |path: &str, name: &str| {
        let metadata = json(&mounted, path);
        let member = metadata["members"].as_array().unwrap().iter().find(|member| member["name"] == name).unwrap();
        member["dimensions"].to_string()
    };
    assert_eq!(dimensions("cube/metadata.json", "rain"), r#"["time","lat","lon"]"#);
    assert_eq!(dimensions("cube/metadata.json", "late_pair"), r#"["profile","nv"]"#);
    assert_eq!(dimensions("cube/below/metadata.json", "profile_only"), r#"["profile"]"#);
    assert_eq!(json(&mounted, "station/metadata.json")["revision"], "dimension obs");
    // Also where no variable makes a table.
    let mounted = Mounted::new(&[&data("hostile/odd_parts.h5")], &[]);
    let metadata = json(&mounted, "grids/metadata.json");
    let member = metadata["members"].as_array().unwrap().iter().find(|member| member["name"] == "rain").unwrap();
    assert_eq!(member["dimensions"].to_string(), r#"["time","lat","lon"]"#);
}

#[test]
fn what_keeps_scales_in_order_is_told_to_nobody() {
    let mounted = Mounted::new(&[&data("netcdf.h5")], &[]);
    for path in ["cube/metadata.json", "station/metadata.json", "cube/tables/time/metadata.json"] {
        let text = mounted.text(path);
        for name in ["DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Dimid", "_Netcdf4Coordinates", "DIMENSION_SCALE"] {
            assert!(!text.contains(name), "{path} has {name}");
        }
    }
}

/// 1 − 1 of `int16` in steps of 0.1 from 1 on; 7 is missing, as stored.
#[test]
fn conditions_and_statistics_speak_of_what_is_shown() {
    let mounted = Mounted::new(&[&data("netcdf.h5")], &[]);
    let where_ = |condition: &str| mounted.text(format!("station/where/{condition}/columns/obs.txt"));
    assert_eq!(where_("temperature:gt:276"), "30\n60\n70\n");
    assert_eq!(where_("temperature:null"), "20\n50\n");
    assert_eq!(where_("time:lt:2001-01-01"), "40\n");
    assert_eq!(where_("quality:eq:good"), "10\n30\n80\n");
    // Twice: what was learnt answers the second time.
    assert_eq!(where_("packed_time:ge:2020-02-29T12%3A00"), "70\n80\n");
    assert_eq!(where_("packed_time:ge:2020-02-29T12%3A00"), "70\n80\n");
}

#[test]
fn numbers_are_shown_instead_of_times_on_request() {
    let mounted = Mounted::new(&[&data("netcdf.h5")], &["--times", "numbers"]);
    assert_eq!(mounted.text("station/columns/packed_time.txt"), "0.0\n1.75\n\n5.25\n7.0\n8.75\n10.5\n12.25\n14.0\n");
}

/// In tables of other kinds, too: an attribute of the column's own type.
///
/// Made: `/stated`, a HEP001 table of 0, 1, 2 twice; `_FillValue` is 1, for `a` of the column's type, for `other` of
/// int64.
#[test]
fn a_stated_fill_value_means_missing_anywhere() {
    let mounted = Mounted::new(&[&data("hostile/bad_netcdf.h5")], &[]);
    assert_eq!(mounted.text("stated/table.csv"), "a,other\n0,0\n,\n2,2\n");
}

/// What one scalar is says nothing of its neighbours. Values are those of xarray; NaN is one that is missing.
#[test]
fn each_scalar_is_read_by_its_own_attributes() {
    let mounted = Mounted::new(&[&data("netcdf_scalars.h5")], &[]);
    let values = json(&mounted, "metadata.json");
    let value = |name: &str| {
        let members = values["members"].as_array().unwrap();
        members.iter().find(|member| member["name"] == name).unwrap()["value"].clone()
    };
    for (name, text, shown) in [
        ("crs", "0\n", Value::from(0)),
        ("packed", "3.5\n", Value::from(3.5)),
        ("unsigned", "255\n", Value::from(255)),
        ("lost", "\n", Value::Null),
        ("plain", "3\n", Value::from(3)),
        ("is_on", "true\n", Value::from(true)),
    ] {
        assert_eq!((mounted.text(format!("{name}.txt")), value(name)), (text.to_owned(), shown), "{name}");
    }
}

/// As xarray has them: scalars of any file with dimension scales are decoded, and characters on one dimension are one
/// text by themselves. In a table of others on that dimension each has its row.
#[test]
fn scalars_and_characters_are_read_as_in_any_file_of_netcdf() {
    let mounted = Mounted::new(&[&data("netcdf_unmarked.h5")], &[]);
    assert_eq!(
        (mounted.text("time.txt"), mounted.text("packed.txt")),
        ("2011-06-20T00:00:00Z\n".into(), "3.5\n".into())
    );
    assert_eq!((mounted.text("start.txt"), mounted.text("start.ndjson")), ("2011-05".into(), "\"2011-05\"\n".into()));
    assert!(mounted.read("start.npy").ends_with(b"2011-05\0"));
    assert_eq!(mounted.text("table.csv"), "value,flag\n1.0,a\n2.0,b\n3.0,c\n");
}

/// As xarray has it: the second one of each is missing.
#[test]
fn texts_and_characters_are_missing_where_attributes_say_so() {
    let mounted = Mounted::new(&[&data("netcdf_scalars.h5")], &[]);
    assert_eq!(
        mounted.text("table.ndjson"),
        "{\"word\":\"a\",\"letter\":\"a\"}\n{\"word\":null,\"letter\":null}\n{\"word\":\"\",\"letter\":\"c\"}\n"
    );
}

/// As `open_dataset(decode_timedelta=True)` has it: the second one of each is none.
#[test]
fn what_xarray_writes_for_no_time_is_missing() {
    let mounted = Mounted::new(&[&data("netcdf_coded.h5")], &[]);
    assert_eq!(mounted.text("nat/table.csv"), "at,span\n2020-01-01T00:00:00.500Z,1\n,\n2020-03-01T00:00:00.000Z,3\n");
}

/// 200 is no signed byte, but one that is read without a sign; 300 is no byte at all.
#[test]
fn flags_are_of_the_type_that_is_read() {
    let mounted = Mounted::new(&[&data("netcdf_coded.h5")], &[]);
    assert_eq!(mounted.text("flags/table.csv"), "unsigned,wide,twice\nclear,0,0\ncloud,1,1\nunknown,-56,2\n");
    assert!(mounted.read("flags/table.parquet").starts_with(b"PAR1"));
    let found = json(&mounted, "flags/metadata.json")["findings"].to_string();
    assert!(found.contains("300 is no Int8") && found.contains("1 is there twice"), "{found}");
}

#[test]
fn valid_ranges_are_of_what_is_shown() {
    let path = data("netcdf_coded.h5");
    let checked = hepfs(["check", "--json", path.to_str().unwrap(), "--cache-folder", "none"]);
    let report = String::from_utf8(checked.stdout).unwrap();
    let of =
        |column: &str| report.lines().filter(|line| line.contains(&format!("/ranges/{column}\""))).collect::<Vec<_>>();
    assert!(of("packed").is_empty(), "{report}");
    for column in ["bytes", "days"] {
        assert!(matches!(of(column)[..], [line] if line.contains("1 rows, the first is row 3")), "{column}: {report}");
    }
}

#[test]
fn scalars_are_instants_and_missing_like_columns() {
    let mounted = Mounted::new(&[&data("netcdf_coded.h5")], &[]);
    assert_eq!(mounted.text("scalars/float_days.txt"), "2000-01-02T12:00:00.000000Z\n");
    assert_eq!(mounted.text("scalars/days.txt"), "2000-01-04T00:00:00Z\n");
    assert_eq!(mounted.text("scalars/unwritten.txt"), "\n");
}

/// Numbers of another calendar stay numbers in what is written of them.
#[test]
fn other_calendars_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let [parquet, back, converted] = ["x.parquet", "back.h5", "converted.h5"].map(|name| folder.path().join(name));
    let run = |arguments: &[&std::ffi::OsStr]| {
        let done = hepfs(arguments);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    let source = format!("{}:noleap", data("netcdf_coded.h5").display());
    let none = ["--cache-folder", "none"].map(std::ffi::OsStr::new);
    run(&[&["export".as_ref(), source.as_ref(), "-o".as_ref(), parquet.as_ref()], &none[..]].concat());
    run(&["import".as_ref(), parquet.as_ref(), back.as_ref()]);
    run(&[&["convert".as_ref(), source.as_ref(), converted.as_ref()], &none[..]].concat());
    for path in [&back, &converted] {
        let mounted = Mounted::new(&[path], &[]);
        let shown = mounted.names("").into_iter().find(|name| mounted.join(name).join("table.csv").exists()).unwrap();
        assert_eq!(mounted.text(format!("{shown}/table.csv")), "time,v\n0,1.0\n1,2.0\n2,3.0\n");
    }
}
