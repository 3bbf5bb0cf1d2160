//! Rules of formats as plain data, and findings: places where a file breaks a rule. A finding is a report, never a
//! refusal.

use std::fmt;
use std::path::Path;

use bstr::BString;
use clap::ValueEnum;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::store::decode::{Oddity, TallyCount};

/// How much a broken rule matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing is wrong with the file
    Note,
    /// A recommendation (SHOULD), or a trap for readers
    Warning,
    /// A requirement (MUST)
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// A rule of a format.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// The stable name of the rule: `FORMAT/WORDS`.
    pub id: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// Revisions of the format that have the rule, each with its section; the newest last.
    pub sections: &'static [(&'static str, &'static str)],
    /// The condition that a file must meet.
    pub text: &'static str,
    /// Advice for a file that breaks the rule.
    pub hint: &'static str,
}

/// Declares rules, and `ALL` of them: `NAME: Severity "id" ["revision" "section", …] "text" => "hint";`.
macro_rules! rules {
    ($(
        $name:ident: $severity:ident $id:literal [$($revision:literal $section:literal),*]
            $text:literal => $hint:literal;
    )*) => {
        $(
            #[doc = $text]
            pub static $name: $crate::table::Rule = $crate::table::Rule {
                id: $id,
                severity: $crate::table::Severity::$severity,
                sections: &[$(($revision, $section)),*],
                text: $text,
                hint: $hint,
            };
        )*
        /// All rules declared here.
        pub static ALL: &[&$crate::table::Rule] = &[$(&$name),*];
    };
}
pub(crate) use rules;

/// A place where a file breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// The revision that judges the file, and the section of the rule in it.
    pub section: Option<(&'static str, &'static str)>,
    /// HDF5 path of the object.
    pub path: String,
    /// The state found instead.
    pub found: String,
    /// Number of rows that break the rule, and the first of them. `None`: the rule is not about rows.
    pub rows: Option<TallyCount>,
}

impl Finding {
    /// A finding under the newest revision that has the rule.
    pub fn new(path: impl Into<String>, rule: &'static Rule, found: impl Into<String>) -> Self {
        Self { rule, section: rule.sections.last().copied(), path: path.into(), found: found.into(), rows: None }
    }

    /// The same finding under another revision of the format, if this revision has the rule.
    pub fn by(self, revision: &str) -> Self {
        let own = self.rule.sections.iter().find(|(of, _)| of.starts_with(revision));
        Self { section: own.copied().or(self.section), ..self }
    }

    /// A finding about rows of an object; `column` names the column if the object has several.
    pub fn of_rows(path: impl Into<String>, column: Option<&BString>, rule: &'static Rule, rows: TallyCount) -> Self {
        let of = column.map_or_else(String::new, |column| format!(" of {column}"));
        let found = format!("{} rows{of}, the first is row {}", rows.rows, rows.first);
        Self { rows: Some(rows), ..Self::new(path, rule, found) }
    }
}

impl Finding {
    /// The finding as a JSON object, with the file that breaks the rule.
    pub fn line(&self, source: &Path) -> serde_json::Value {
        let mut line = serde_json::json!({ "source": source.display().to_string() });
        if let (Some(line), Ok(serde_json::Value::Object(own))) = (line.as_object_mut(), serde_json::to_value(self)) {
            line.extend(own);
        }
        line
    }
}

/// Shows the finding to people: `path: severity: rule; found: state [id, revision, section]; advice`.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, path, found, .. } = self;
        write!(f, "{path}: {}: {}; found: {found} [{}", rule.severity, rule.text, rule.id)?;
        if let Some((revision, section)) = self.section {
            write!(f, ", {revision} §{section}")?;
        }
        f.write_str("]")?;
        if rule.hint.is_empty() { Ok(()) } else { write!(f, "; {}", rule.hint) }
    }
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", self.rule.id)?;
        map.serialize_entry("severity", &self.rule.severity)?;
        if let Some((revision, section)) = self.section {
            map.serialize_entry("revision", revision)?;
            map.serialize_entry("section", section)?;
        }
        map.serialize_entry("path", &self.path)?;
        map.serialize_entry("rule", self.rule.text)?;
        map.serialize_entry("found", &self.found)?;
        if let Some(TallyCount { rows, first }) = self.rows {
            map.serialize_entry("rows", &rows)?;
            map.serialize_entry("first_row", &first)?;
        }
        if !self.rule.hint.is_empty() {
            map.serialize_entry("hint", self.rule.hint)?;
        }
        map.end()
    }
}

rules! {
    BOOLEAN: Error "values/boolean" [] "a boolean is 0 or 1; other values are shown as missing" => "write 0 or 1";
    CODE_NAME: Warning "values/code-name" [] "an enumeration code has a name; others are shown as numbers"
        => "add a member to the enumeration, or write a code that has one";
    CATEGORY: Error "values/category-range" []
        "a category code is less than the number of categories; others are shown as missing"
        => "write a code of a label, or the fill value where the category is missing";
    OFFSETS: Error "values/list-offsets" []
        "offsets of a list do not fall, and stay within its values; other lists are shown as missing"
        => "rewrite the offsets";
    NULL_NOT_EMPTY: Warning "values/null-list" [] "a null list has no elements; those stored are not shown"
        => "write the same offset on both sides of a null entry";
    TIME: Warning "values/time-range" []
        "an instant fits 64 bits of the unit that it is shown in; others are shown as missing"
        => "";
    UNDECODABLE: Error "values/waveform" []
        "encoded waveforms are whole and have their stated length; others are shown as missing" => "encode them again";
    ROUNDED: Warning "values/rounded" []
        "an integer is exact as float64, if other files of the dataset have floats; others are shown rounded"
        => "write the column as one type in all files";
    NEAREST: Note "values/long-double" []
        "a long double is exact as float64; others are shown as the nearest float64, and `.npy` has the stored value"
        => "";
    TEXT: Warning "values/utf8" [] "text is UTF-8; other bytes are shown as U+FFFD" => "write text in UTF-8";
    UNREADABLE: Error "file/unreadable" [] "everything that a file describes can be read"
        => "restore the file from a copy, or look for a missing filter plugin";
    TRUNCATED: Error "file/truncated" [] "a file has the length that it states"
        => "a copy or a writer stopped too early: copy the file again, or rewrite it";
}

/// The rule that a file breaks if it cannot be read for this reason.
pub(crate) fn unreadable(reason: &str) -> &'static Rule {
    if reason.contains("the file is truncated") { &TRUNCATED } else { &UNREADABLE }
}

/// The rule that an oddity breaks, for dialects without a rule of their own.
pub fn rule_of(oddity: Oddity) -> &'static Rule {
    match oddity {
        Oddity::InvalidBoolean => &BOOLEAN,
        Oddity::UnnamedCode => &CODE_NAME,
        Oddity::CategoryOutOfRange => &CATEGORY,
        Oddity::InvalidOffsets => &OFFSETS,
        Oddity::NullNotEmpty => &NULL_NOT_EMPTY,
        Oddity::TimeOutOfRange => &TIME,
        Oddity::Undecodable => &UNDECODABLE,
        Oddity::Rounded => &ROUNDED,
        Oddity::Nearest => &NEAREST,
        Oddity::InvalidText => &TEXT,
    }
}
