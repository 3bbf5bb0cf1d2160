//! The table of all rules: `hepfs check --rules`, `docs/reference/rules.md`.

use crate::table::{RULES, Rule};
use crate::{dialects, formats, session};

/// All rules, in the order of the dialects.
pub(super) fn all() -> impl Iterator<Item = &'static Rule> {
    let others = formats::rules().iter().chain(RULES).chain(session::rules::ALL).copied();
    dialects::rules().chain(others)
}

/// The rules as a table in Markdown.
pub(super) fn listed() -> String {
    let row = |rule: &Rule| {
        let sections: Vec<String> =
            rule.sections.iter().map(|(revision, section)| format!("{revision} §{section}")).collect();
        let Rule { id, severity, text, hint, .. } = rule;
        format!("| `{id}` | {severity} | {} | {text} | {hint} |\n", sections.join(", "))
    };
    let head = "| id | severity | section | what holds | what to do |\n| --- | --- | --- | --- | --- |\n";
    head.to_owned() + &all().map(row).collect::<String>()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn rules_are_named_once() {
        let mut known = HashSet::new();
        for rule in all() {
            assert!(known.insert(rule.id), "{} twice", rule.id);
            let (format, words) = rule.id.split_once('/').unwrap();
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(!format.is_empty() && !words.is_empty(), "{}", rule.id);
            assert!(format.chars().chain(words.chars()).all(is_plain), "{}", rule.id);
            assert!(!rule.text.is_empty() && !rule.text.contains('|'), "{}", rule.id);
        }
    }
}
