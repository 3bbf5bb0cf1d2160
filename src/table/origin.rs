//! The role of a column in the software that wrote it.

use std::sync::Arc;

use arrow_schema::TimeUnit;

/// The role of a column in the software that wrote it, beside its name and values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// By what text it is called.
    pub called: Called,
    /// The axis whose label the text is; `None` where there is nothing to tell of it.
    pub axis: Option<Arc<NameAxis>>,
    /// Its codes are places among the different values of row labels of several levels, and no categories.
    pub is_level: bool,
    /// A mask tells which of its values are missing. pandas has types of its own for such numbers and booleans.
    pub is_masked: bool,
}

/// The text that names a column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Called {
    /// Its name.
    #[default]
    Name,
    /// This one: another column has it as its name, or it is empty.
    Other(String),
    /// None: row labels to which the file gives no name.
    Nothing,
}

/// An axis of column names: what their texts stand for, level by level. The names of several levels are a tuple.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameAxis {
    /// At least one.
    pub levels: Vec<NameLevel>,
}

/// A level of column names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameLevel {
    /// The name of the level itself.
    pub name: Option<String>,
    /// The kind of its labels.
    pub kind: NameKind,
}

/// The kind of all labels of a level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// Texts.
    Text,
    /// Some texts, some integers.
    Mixed,
    /// Integers of 64 bits.
    Integer,
    /// Floats of 64 bits.
    Float,
    /// Instants, in a zone or in none.
    Instant {
        /// The unit that they count in.
        unit: TimeUnit,
        /// The zone.
        zone: Option<String>,
    },
}
