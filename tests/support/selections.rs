//! What `scripts/fixtures/selection.py` says that selections hold, held against the program.

use std::path::Path;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::support::{Mounted, hepfs};

/// Asks every query of `folder/selections.json` by `hepfs query`, and by a path below `where/` where it has one.
pub fn check(folder: &Path) {
    let source = folder.join("selections.h5");
    let text = std::fs::read(folder.join("selections.json")).unwrap();
    let queries: Vec<Value> = serde_json::from_slice(&text).unwrap();
    let mounted = Mounted::new(&[&source], &["--no-header"]);
    for query in &queries {
        let (table, expression) = (query["table"].as_str().unwrap(), query["expression"].as_str().unwrap());
        let place = format!("{}:{table}", source.display());
        let output = hepfs(["query", &place, expression, "--columns", "row", "--no-header", "--cache-folder", "none"]);
        assert!(output.status.success(), "{query}: {}", String::from_utf8_lossy(&output.stderr));
        matches(query, &output.stdout);
        if let Some(path) = query["path"].as_str() {
            matches(query, &mounted.read(format!("{table}/where/{path}/columns/row.csv")));
        }
    }
    let errors = mounted.text(".hepfs/errors");
    assert!(errors.is_empty(), "{errors}");
}

fn matches(query: &Value, rows: &[u8]) {
    let digest: String = Sha256::digest(rows).iter().map(|byte| format!("{byte:02x}")).collect();
    let text = String::from_utf8_lossy(rows);
    let first: Vec<&str> = text.lines().take(5).collect();
    assert_eq!(digest, query["sha256"], "{query}: {} rows, {first:?}", text.lines().count());
}
