//! Pages to look at: `index.html` of tables, groups and roots. `cargo xtask check pages` looks at them in a browser.

use std::fs;

use crate::data;
use crate::support::{Mounted, must};

#[test]
fn each_directory_of_a_file_has_a_page_of_the_size_that_stat_says() {
    let sources = ["units.h5", "pandas3.h5", "names_arrays.h5", "shapes.h5", "netcdf.h5", "arrays.h5"].map(data);
    let mounted = Mounted::new(&sources.each_ref().map(|source| source.as_path()), &[]);
    let pages = mounted.found(&["-name", "index.html", "-printf", "%P\n"]);
    assert!(pages.len() > 40, "{pages:?}");
    // All sizes before the first byte: reading a page may not be what makes its size right.
    let sizes: Vec<u64> = pages.iter().map(|page| fs::metadata(mounted.join(page)).unwrap().len()).collect();
    let mut wrong = Vec::new();
    for (page, size) in pages.iter().zip(sizes) {
        let bytes = mounted.read(page);
        let is_page = bytes.starts_with(b"<!doctype html>") && !bytes.contains(&0);
        if bytes.len() as u64 != size || !is_page {
            wrong.push(format!("{page}: {} bytes, {size} by stat", bytes.len()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Not where rows are selected, nor in one table of many files; a folder is listed by the browser.
    assert!(!mounted.names("units.h5/t/where/mass:gt:0").contains(&"index.html".to_owned()));
    assert!(fs::metadata(mounted.join("units.h5/t/where/mass:gt:0/index.html")).is_err());
    assert!(!mounted.names("").contains(&"index.html".to_owned()));
    let datasets = must("find", [mounted.join(".datasets").as_os_str(), "-name".as_ref(), "index.html".as_ref()]);
    assert_eq!(datasets, "");
}

#[test]
fn a_page_names_its_place_and_stays_while_the_file_does() {
    let mounted = Mounted::new(&[&data("units.h5")], &[]);
    let (root, table) = (mounted.text("index.html"), mounted.text("t/index.html"));
    assert!(root.contains("t/index.html") && table.contains("../index.html"), "{root}");
    assert!(table.contains(&mounted.join("t/table.parquet").display().to_string()));
    assert!(table.contains("../.hepfs/findings"));
    // Statistics learnt afterwards change nothing.
    mounted.read("t/table.parquet");
    mounted.read("t/table.csv");
    assert_eq!((mounted.text("index.html"), mounted.text("t/index.html")), (root, table.clone()));
    // Without statistics, the page is the same but for the paths.
    let [one, other] = [(); 2].map(|()| {
        let mounted = Mounted::new(&[&data("units.h5")], &["--parquet-stats", "off"]);
        mounted.read("t/table.csv");
        mounted.text("t/index.html").replace(&mounted.path().display().to_string(), "mnt")
    });
    assert_eq!(one, other);
}

#[test]
fn html_is_a_format() {
    let mounted = Mounted::new(&[&data("names_arrays.h5")], &["--formats", "csv"]);
    assert!(!mounted.names("").contains(&"index.html".to_owned()));
    let mounted = Mounted::new(&[&data("names_arrays.h5")], &["--formats", "html"]);
    assert!(mounted.names("").contains(&"index.html".to_owned()));
    assert!(!mounted.names("").iter().any(|name| name.ends_with(".csv")));
}
