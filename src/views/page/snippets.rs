//! *Read it*: a few lines for each language, with paths and names in its quotes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use arrow_schema::DataType;

use super::PagePlace;
use super::html::Html;
use crate::table::{Column, Table};
use crate::views::printable;

/// Most bytes of a tab's lines.
const MOST: usize = 4000;

/// Writes tabs, each with a language and its lines. They work without a script: radio buttons choose the tab.
pub fn tabs(snippets: &[(&'static str, String)], out: &mut Html) {
    out.raw("<div class=tabs>");
    for (at, (language, _)) in snippets.iter().enumerate() {
        let checked = if at == 0 { " checked" } else { "" };
        out.raw(&format!("<input type=radio name=t id=t{at}{checked}><label for=t{at}>{language}</label>"));
    }
    for (at, (language, lines)) in snippets.iter().enumerate() {
        out.raw(&format!("<pre class=p{at} tabindex=0 aria-label=\"{language}\">"));
        // Each line by itself, since a line feed within one would be escaped.
        for (number, line) in lines.lines().enumerate() {
            out.raw(if number > 0 { "\n" } else { "" }).text(line, MOST);
        }
        out.raw("</pre>");
    }
    out.raw("</div>\n");
}

/// The directory of a page: in its mount, or in one that the first lines make.
fn directory(place: &PagePlace) -> PathBuf {
    place.mounted.clone().unwrap_or_else(|| PathBuf::from("mnt").join(OsStr::from_bytes(&place.path)))
}

/// The table or group as an argument of commands, quoted for a shell.
fn argument(place: &PagePlace) -> String {
    let mut argument = place.source.as_os_str().as_bytes().to_vec();
    if !place.path.is_empty() {
        argument.push(b':');
        argument.extend_from_slice(&place.path);
    }
    shell(&argument)
}

/// The lines that mount the source. `None`: the page is in a mount.
fn mounting(place: &PagePlace) -> Option<(&'static str, String)> {
    let source = shell(place.source.as_os_str().as_bytes());
    place.mounted.is_none().then(|| ("mount", format!("mkdir -p mnt && hepfs mount {source} mnt")))
}

/// Whether a page shows a text without an escape.
fn is_plain(text: &str) -> bool {
    !text.contains('\u{fffd}') && printable(text) == text
}

/// A path as text, if a page shows it without an escape.
fn plain(path: &Path) -> Option<&str> {
    path.to_str().filter(|path| is_plain(path))
}

/// Whether a file of this name lies beside the page.
fn has(place: &PagePlace, name: &str) -> bool {
    place.files.iter().any(|(file, _)| file == name)
}

/// The file of a column that ends with this suffix.
fn file_of(place: &PagePlace, column: &Column, suffix: &str) -> Option<PathBuf> {
    let file = place.columns.get(&column.name)?.iter().find(|file| file.ends_with(suffix.as_bytes()))?;
    Some(directory(place).join(OsStr::from_bytes(file)))
}

/// The type of a column of numbers that measure or count something.
fn number_type(column: &Column) -> Option<&DataType> {
    let data_type = column.rows.as_ref().ok()?.data_type();
    Some(data_type).filter(|data_type| data_type.is_numeric() && !column.is_label && column.times().is_none())
}

/// How to read a table.
pub fn of_table(table: &Table, place: &PagePlace) -> Vec<(&'static str, String)> {
    let mut all: Vec<(&'static str, String)> = Vec::new();
    let directory = directory(place);
    let shown = table.columns.iter().filter(|column| column.in_table && is_plain(&column.name.to_string()));
    let shown: Vec<&Column> = shown.collect();
    // Floats first: they are measured.
    let floats = shown.iter().find(|column| number_type(column).is_some_and(DataType::is_floating));
    let example = floats.or_else(|| shown.iter().find(|column| number_type(column).is_some()));
    let (number, any) = (example.is_some(), example.or(shown.first()));
    let name = any.map(|column| column.name.to_string());
    let parquet = directory.join("table.parquet");
    if let (true, Some(path), Some(name)) = (has(place, "table.parquet"), plain(&parquet), &name) {
        let from = sql(&glob_escaped(path));
        let lines = format!("SUMMARIZE FROM {from};");
        let more = number.then(|| format!("\nSELECT avg({0}), max({0}) FROM {from};", sql_name(name)));
        all.push(("DuckDB", lines + &more.unwrap_or_default()));
        let (text, column) = (python(path), python(name));
        let lines = format!("import pandas\nframe = pandas.read_parquet({text}, columns=[{column}])");
        all.push(("pandas", lines));
        let act = if number { "mean()" } else { "n_unique()" };
        all.push((
            "polars",
            format!(
                "import polars\nframe = polars.scan_parquet({text}, glob=False)\n\
                 frame.select(polars.col({column}).{act}).collect()"
            ),
        ));
        // Python's escapes are those of R as well.
        let lines = format!("frame <- arrow::read_parquet({text}, col_select = {column})");
        all.push(("R", format!("# Once: install.packages(\"arrow\")\n{lines}")));
    }
    let [npy, txt] = [".npy", ".txt"].map(|suffix| file_of(place, any?, suffix));
    if let Some(path) = npy.as_deref().and_then(plain) {
        let lines = format!("import numpy\nvalues = numpy.load({}, mmap_mode=\"r\")", python(path));
        all.push(("NumPy", lines));
    }
    if let Some(path) = txt.filter(|_| number) {
        all.push(("shell", format!("sort -g {} | tail -3", shell(path.as_os_str().as_bytes()))));
    } else if has(place, "head.csv") {
        all.push(("shell", format!("cat {}", shell(directory.join("head.csv").as_os_str().as_bytes()))));
    }
    let argument = argument(place);
    let lines = match &name {
        Some(name) => {
            let word = condition_name(name);
            let condition =
                if number { format!("order by {word} desc limit 10") } else { format!("{word} is not null") };
            format!("hepfs query {argument} {}", shell(condition.as_bytes()))
        }
        None => format!("hepfs info {argument}"),
    };
    all.push(("no mount", lines));
    if let Some(mounting) = mounting(place) {
        // Without a mount, the lines that need no mount come first.
        all.rotate_right(1);
        all.insert(1, mounting);
    }
    all
}

/// How to read a group.
pub fn of_group(place: &PagePlace) -> Vec<(&'static str, String)> {
    let (directory, argument) = (directory(place), argument(place));
    let findings = match place.mounted {
        Some(_) => String::new(),
        None => format!("\nhepfs check {argument}"),
    };
    let mut all = vec![
        ("shell", format!("ls {}", shell(directory.as_os_str().as_bytes()))),
        ("no mount", format!("hepfs info {argument}\nhepfs ls {argument}{findings}")),
    ];
    if let Some(mounting) = mounting(place) {
        all.reverse();
        all.insert(1, mounting);
    }
    all
}

/// A word of a shell.
fn shell(text: &[u8]) -> String {
    let is_safe = text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_-./:@%+,".contains(byte));
    match std::str::from_utf8(text) {
        Ok(word) if is_safe && !text.is_empty() && !text.starts_with(b"-") => word.to_owned(),
        Ok(word) if printable(word) == word => format!("'{}'", word.replace('\'', "'\\''")),
        _ => {
            // Bash reads two digits of an escape, so a digit behind them stays one.
            let escaped = text.iter().map(|byte| match byte {
                b' '..=b'~' if !b"'\\".contains(byte) => char::from(*byte).to_string(),
                other => format!("\\x{other:02x}"),
            });
            format!("$'{}'", escaped.collect::<String>())
        }
    }
}

/// A string of Python and of R. The text is [plain](is_plain).
fn python(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A string of SQL.
fn sql(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A name in SQL.
fn sql_name(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// A path that DuckDB takes for no pattern.
fn glob_escaped(path: &str) -> String {
    path.chars()
        .map(|character| if "[*?".contains(character) { format!("[{character}]") } else { character.into() })
        .collect()
}

/// A name in a condition of `hepfs query`.
fn condition_name(name: &str) -> String {
    let mut characters = name.chars();
    let is_word = characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|character| character.is_ascii_alphanumeric() || character == '_');
    if is_word { name.to_owned() } else { format!("`{}`", name.replace('`', "``")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_language_has_its_quotes() {
        assert_eq!(shell(b"/mnt/a.b"), "/mnt/a.b");
        assert_eq!(shell(b"it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(shell(b"a\n\xff'\\"), r"$'a\x0a\xff\x27\x5c'");
        assert_eq!(shell(b"-rf"), "'-rf'");
        assert_eq!(python(r#"C:\"x""#), r#""C:\\\"x\"""#);
        assert_eq!((sql("it's"), sql_name("a\"b")), ("'it''s'".into(), "\"a\"\"b\"".into()));
        assert_eq!(glob_escaped("/a[1]/*?"), "/a[[]1]/[*][?]");
        assert_eq!((condition_name("E_1"), condition_name("a b`c")), ("E_1".into(), "`a b``c`".into()));
    }
}
