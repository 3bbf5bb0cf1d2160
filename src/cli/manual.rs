//! The reference of all commands, `docs/reference/commands.md`, made from clap's definitions.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::{Arg, Command, CommandFactory};

use super::{Arguments, GROUPS, NOTES};

/// The page, from the root of the repository.
const PAGE: &str = "docs/reference/commands.md";

/// The beginning of the page.
const HEAD: &str = "\
<!-- Generated; `UPDATE=1 cargo test --lib commands_are_documented` rewrites it from the help texts in src. -->

# Commands

`hepfs COMMAND --help` prints the same, `hepfs help reading` the options of all commands that read files.

";

/// Options of one heading, as rows of a table.
type Rows = String;

/// Options with a heading of their own: the heading, and the rows below it.
type Groups = Vec<(String, Rows)>;

/// The whole page.
fn page() -> String {
    let mut root = Arguments::command();
    root.build();
    let mut commands = Vec::new();
    let names = GROUPS.iter().flat_map(|(_, examples)| examples.iter()).filter_map(|line| line.split(' ').nth(1));
    for name in names {
        collect(root.find_subcommand(name).unwrap_or_else(|| panic!("{name} is in GROUPS")), &mut commands);
    }

    let mut uses: BTreeMap<(String, Rows), usize> = BTreeMap::new();
    commands.iter().flat_map(|command| groups(command)).for_each(|group| *uses.entry(group).or_default() += 1);
    let mut page = HEAD.to_owned();
    NOTES.iter().for_each(|note| page.push_str(&format!("- {note}\n")));
    page.push_str("\n| command | purpose |\n| --- | --- |\n");
    for command in &commands {
        let (name, about) = (title(command), text(command.get_about().map(ToString::to_string)));
        let _ = writeln!(page, "| [`{name}`](#{}) | {about} |", anchor(name));
    }
    let mut shared: Groups = Vec::new();
    for command in &commands {
        let (common, own): (Groups, Groups) = groups(command).into_iter().partition(|group| uses[group] > 1);
        section(&mut page, command, &common, &own);
        shared.extend(common.into_iter().filter(|group| !shared.contains(group)).collect::<Groups>());
    }
    page.push_str("\n## Options of several commands\n");
    for (heading, rows) in shared {
        let _ = write!(page, "\n### {heading}\n\n{}", table("option", &rows));
    }
    page
}

/// The command and the commands below it.
fn collect<'a>(command: &'a Command, into: &mut Vec<&'a Command>) {
    into.push(command);
    command.get_subcommands().filter(|command| command.get_name() != "help").for_each(|below| collect(below, into));
}

/// Writes the section on one command.
fn section(page: &mut String, command: &Command, common: &Groups, own: &Groups) {
    let about = text(command.get_long_about().or(command.get_about()).map(ToString::to_string));
    let (first, more) = about.split_once("\n\n").unwrap_or((&about, ""));
    let about = format!("{first}.\n\n{more}");
    let _ = write!(page, "\n## {}\n\n{}\n", title(command), about.trim_end());
    if command.has_subcommands() {
        return;
    }
    let usage = command.clone().render_usage().to_string();
    let usage: Vec<&str> = usage.lines().map(|line| line.trim_start_matches("Usage:").trim()).collect();
    let _ = write!(page, "\n```text\n{}\n```\n", usage.join("\n"));
    let shown = || command.get_arguments().filter(|argument| is_shown(argument));
    let arguments: Rows = shown().filter(|argument| argument.is_positional()).map(row).collect();
    let is_plain = |argument: &&Arg| !argument.is_positional() && argument.get_help_heading().is_none();
    let options: Rows = shown().filter(is_plain).map(row).collect();
    for (name, rows) in [("argument", arguments), ("option", options)] {
        if !rows.is_empty() {
            let _ = write!(page, "\n{}", table(name, &rows));
        }
    }
    for (heading, rows) in own {
        let _ = write!(page, "\n{heading}:\n\n{}", table("option", rows));
    }
    if !common.is_empty() {
        let links: Vec<String> =
            common.iter().map(|(heading, _)| format!("[{heading}](#{})", anchor(heading))).collect();
        let _ = writeln!(page, "\nOptions shared with other commands: {}.", links.join(", "));
    }
    if let Some(examples) = command.get_after_help() {
        let _ = write!(page, "\n```text\n{examples}\n```\n");
    }
}

/// The options of a command by their headings, in the order of the command.
fn groups(command: &Command) -> Groups {
    let mut groups: Groups = Vec::new();
    for argument in command.get_arguments().filter(|argument| is_shown(argument)) {
        let Some(heading) = argument.get_help_heading() else { continue };
        match groups.iter_mut().find(|(known, _)| known == heading) {
            Some((_, rows)) => rows.push_str(&row(argument)),
            None => groups.push((heading.to_owned(), row(argument))),
        }
    }
    groups
}

/// Whether the page has this argument: those of every command are in its head.
fn is_shown(argument: &Arg) -> bool {
    !argument.is_hide_set() && !["help", "version", "verbose"].contains(&argument.get_id().as_str())
}

/// The name of a command: `hepfs index build`.
fn title(command: &Command) -> &str {
    command.get_bin_name().unwrap_or_default()
}

/// The anchor of a heading.
fn anchor(heading: &str) -> String {
    heading.to_lowercase().replace(' ', "-")
}

/// Puts the head of a table above its rows.
fn table(name: &str, rows: &str) -> String {
    format!("| {name} | default | meaning |\n| --- | --- | --- |\n{rows}")
}

/// Writes an argument as a row: its names, its default, its help and its values.
fn row(argument: &Arg) -> String {
    let short = argument.get_short().map(|short| format!("`-{short}`, ")).unwrap_or_default();
    let help = text(argument.get_long_help().or(argument.get_help()).map(ToString::to_string));
    let (mut help, mut default) = match help.split_once("[default: ").map(|(help, rest)| (help, rest.split_once(']'))) {
        Some((before, Some((default, after)))) => (before.trim_end().to_owned() + after, default.to_owned()),
        _ => (help, String::new()),
    };
    let takes_values = argument.get_action().takes_values();
    if takes_values && !argument.is_hide_default_value_set() && !argument.get_default_values().is_empty() {
        let values = argument.get_default_values().iter().map(|value| format!("`{}`", value.display()));
        default = values.collect::<Vec<_>>().join(", ");
    }
    if takes_values && !argument.is_hide_possible_values_set() {
        for value in argument.get_possible_values() {
            let (mark, name) = (if help.ends_with('`') { ", " } else { "<br>" }, value.get_name());
            let _ = match value.get_help() {
                Some(said) => write!(help, "<br>`{name}`: {said}"),
                None => write!(help, "{mark}`{name}`"),
            };
        }
    }
    let cell = |text: &str| text.replace('|', "\\|").replace("\n\n", "<br>").replace('\n', " ");
    format!("| {short}`{}` | {} | {} |\n", cell(&argument.to_string()), cell(&default), cell(&help))
}

/// A text of the help as Markdown: stars outside of backquotes are stars.
fn text(help: Option<String>) -> String {
    let help = help.unwrap_or_default();
    let parts = help.split('`').enumerate();
    let parts = parts.map(|(at, part)| if at % 2 == 0 { part.replace('*', "\\*") } else { part.to_owned() });
    parts.collect::<Vec<_>>().join("`")
}

/// The page in the repository is the one that the definitions give.
#[test]
fn commands_are_documented() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let made = page();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == made, "{PAGE} is not that of the help: UPDATE=1 cargo test --lib commands_are_documented");
}
