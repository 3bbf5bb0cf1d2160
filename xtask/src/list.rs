//! Lists scripts with the first line of their documentation.

use std::fs;
use std::path::{Path, PathBuf};

/// Lists the programs of a folder, a line for each.
pub fn folder(folder: &Path) -> Result<String, String> {
    let mut lines = String::new();
    for (name, path) in programs(folder)? {
        let text = document(&path)?;
        lines += &format!("    {name:<16} {}\n", text.lines().next().unwrap_or_default());
    }
    Ok(lines)
}

/// Names and paths of the programs of a folder, in order.
pub fn programs(folder: &Path) -> Result<Vec<(String, PathBuf)>, String> {
    let failed = |error| format!("{}: {error}", folder.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_file() && name != "__init__" {
            found.push((name, path));
        }
    }
    found.sort();
    Ok(found)
}

/// The documentation at the head of a file: a docstring of Python, or the first comment of a shell or Rust.
pub fn document(path: &Path) -> Result<String, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    if let Some((_, rest)) = text.split_once("\"\"\"") {
        return Ok(rest.split("\"\"\"").next().unwrap_or_default().trim_end().to_owned() + "\n");
    }
    let comment = |line: &str| {
        let line = line.strip_prefix('#').or_else(|| line.strip_prefix("//"))?;
        // A comment, and no `#!`, `#[…]` or doc comment of an item.
        if line.is_empty() { Some(String::new()) } else { line.strip_prefix(' ').map(str::to_owned) }
    };
    let lines = text.lines().map(comment).skip_while(Option::is_none).map_while(|line| line);
    Ok(lines.map(|line| line + "\n").collect())
}
