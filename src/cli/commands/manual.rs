//! `hepfs manual FOLDER`: writes manual pages.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::cli::{Error, GROUPS, HELP_READING, NOTES, READING, command};

/// The definition of a string for apostrophes, which comes once at the top of a page.
const PREAMBLE: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";

/// Write manual pages of all commands into a folder
#[derive(Debug, Args)]
#[command(hide = true)]
pub(in crate::cli) struct Arguments {
    /// The folder, which is created if need be
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

pub(in crate::cli) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let folder = &arguments.folder;
    fs::create_dir_all(folder).map_err(Error::io(folder.display().to_string()))?;
    for (name, page) in pages().map_err(Error::io("manual pages"))? {
        let path = folder.join(name);
        fs::write(&path, page).map_err(Error::io(path.display().to_string()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// All pages, each with its file name.
///
/// # Errors
/// Writing to memory has none.
fn pages() -> io::Result<Vec<(String, String)>> {
    let root = command().disable_help_subcommand(true);
    let mut root = root.subcommand_help_heading("COMMANDS").subcommand_value_name("COMMAND");
    root.build();
    let (mut pages, mut waiting) = (Vec::new(), vec![&root]);
    while let Some(command) = waiting.pop() {
        pages.push(page(command)?);
        waiting.extend(command.get_subcommands().filter(|below| !below.is_hide_set() || below.get_name() == READING));
    }
    Ok(pages)
}

/// The page of a command, with its file name.
fn page(command: &Command) -> io::Result<(String, String)> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let is_root = !name.contains('-');
    // Without a date, the same program writes the same bytes. Only quotes make it an argument that is empty.
    let man = Man::new(command.clone()).title(name.to_uppercase()).date("\"\"").manual("hepfs");
    let man = man.source(concat!("hepfs ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    let mut end = Roff::new();
    if is_root {
        end.control("SH", ["NOTES"]);
        for note in NOTES {
            end.control("IP", ["\\(bu", "2"]).text([roman(note)]);
        }
        end.control("SH", ["EXAMPLES"]);
        literal(&mut end, GROUPS.iter().flat_map(|(_, examples)| examples.iter().copied()));
    }
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    for part in after.split("\n\n").filter(|_| !is_root) {
        match part.split_once(":\n") {
            Some((heading, lines)) => {
                end.control("SH", [heading.to_uppercase().as_str()]);
                literal(&mut end, lines.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)));
            }
            None => {
                end.control("SH", ["NOTES"]).text([roman(part.replace(HELP_READING, "hepfs-reading(1)"))]);
            }
        }
    }
    let parent = name.rsplit_once('-').map(|(parent, _)| parent);
    let below = command.get_subcommands().filter(|below| !below.is_hide_set()).filter_map(Command::get_display_name);
    let reading = Some("hepfs-reading").filter(|_| after.contains(HELP_READING));
    let others: Vec<String> = parent.into_iter().chain(below).chain(reading).map(|name| format!("{name}(1)")).collect();
    end.control("SH", ["SEE ALSO"]).text([roman(others.join(", "))]);
    end.to_writer(&mut text)?;
    // Between the help of an option and its values, one request instead of three.
    let text = String::from_utf8_lossy(&text).replace(PREAMBLE, "").replace(".br\n\n.br\n", ".sp\n");
    Ok((man.get_filename(), format!("{PREAMBLE}{text}")))
}

/// Adds lines that are not to be filled: their columns matter.
fn literal<'a>(page: &mut Roff, lines: impl Iterator<Item = &'a str>) {
    page.control("nf", []);
    lines.for_each(|line| {
        page.text([roman(line)]);
    });
    page.control("fi", []);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of a command's page and of those below it.
    fn collect(command: &Command, name: &str, into: &mut Vec<String>) {
        into.push(format!("{name}.1"));
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            collect(below, &format!("{name}-{}", below.get_name()), into);
        }
    }

    #[test]
    fn each_visible_command_has_a_page() {
        let pages = pages().unwrap();
        let mut wanted = vec!["hepfs-reading.1".to_owned()];
        collect(&command(), "hepfs", &mut wanted);
        let mut names: Vec<&String> = pages.iter().map(|(name, _)| name).collect();
        wanted.sort();
        names.sort();
        assert_eq!(names, wanted.iter().collect::<Vec<_>>());
        assert!(wanted.contains(&"hepfs-index-build.1".to_owned()));
        for (name, page) in &pages {
            let title = name.trim_end_matches(".1").to_uppercase();
            let title = format!(".TH {title} 1 \"\" \"hepfs {}\" hepfs\n", env!("CARGO_PKG_VERSION"));
            assert!(page.contains(&title), "{page}");
            for section in [".SH NAME\nhepfs", ".SH SYNOPSIS\n", ".SH DESCRIPTION\n", ".SH \"SEE ALSO\"\nh"] {
                assert!(page.contains(section), "{name} has no {section}: {page}");
            }
        }
        let page = |name: &str| &pages.iter().find(|(known, _)| known == name).unwrap().1;
        // Columns stay columns.
        assert!(page("hepfs-mount.1").contains("\n├── run_042/                   a table\n"));
        assert!(page("hepfs-ls.1").contains("\\-\\-cache\\-folder: hepfs\\-reading(1)\n"));
        assert!(page("hepfs-reading.1").contains("\\fB\\-\\-cache\\-folder\\fR"));
        assert_eq!(super::pages().unwrap(), pages);
    }
}
