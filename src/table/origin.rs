//! The role of a column in the software that wrote it.

use std::sync::Arc;

use arrow_schema::TimeUnit;

/// The role of a column in the software that wrote it, apart from its name and values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The text by which that software names the column.
    pub called: OriginalName,
    /// The axis of column names that this text is on. `None`: nothing is known about it.
    pub axis: Option<Arc<NameAxis>>,
    /// Whether its codes number the distinct values of a level of the row labels, and are not categories.
    pub is_level: bool,
    /// Whether a mask marks its missing values. pandas has types of its own for masked numbers and booleans.
    pub is_masked: bool,
}

/// The text that names a column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OriginalName {
    /// The column's own name.
    #[default]
    Name,
    /// This text, because the name is empty, or another column has it.
    Other(String),
    /// No text, for row labels without a name in the file.
    Nothing,
}

/// An axis of column names: the types of their texts, level by level. A name of several levels is a tuple.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameAxis {
    /// The levels, at least one.
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
        /// The unit in which they count.
        unit: TimeUnit,
        /// The time zone. `None`: no zone.
        zone: Option<String>,
    },
}
