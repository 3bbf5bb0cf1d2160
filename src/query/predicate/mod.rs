//! Predicates that are not yet bound to a table.

pub mod expression;
pub(super) mod literal;
pub mod path;

use std::fmt;

use bstr::BString;

/// A condition on a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Predicate {
    /// All of these hold.
    All(Vec<Predicate>),
    /// At least one of these holds.
    Any(Vec<Predicate>),
    /// The inner predicate does not hold. Where it is unknown, so is this.
    Not(Box<Predicate>),
    /// A condition on one column.
    Test(Condition),
}

/// A query: the condition on rows, their order, and a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The condition on rows.
    pub predicate: Predicate,
    /// The columns to sort by, the most significant first; empty for the order of the file.
    pub order: Vec<SortKey>,
    /// Most rows to return. `None`: no limit.
    pub limit: Option<u64>,
}

/// A column to sort by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortKey {
    /// Name of the column.
    pub column: BString,
    /// Position of the name in the query.
    pub at: usize,
    /// Whether the greatest value comes first.
    pub descending: bool,
}

/// A condition on one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Name of the column's link.
    pub column: BString,
    /// Position of the name in an expression.
    pub at: usize,
    /// How the column's value is tested.
    pub operator: Operator,
    /// Operands, as many as the operator takes.
    pub values: Vec<Literal>,
}

impl Condition {
    /// Returns the error for a value or operator at position `at` that the column does not take; `what` says why.
    pub(super) fn refused(&self, at: usize, what: impl fmt::Display) -> Error {
        Error::Type { at, what: format!("{}: {what}", self.column) }
    }
}

/// A value as the user wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    /// Text of the value.
    pub text: BString,
    /// Notation of the value. `None`: it comes from a path, which does not tell numbers from text.
    pub written: Option<Written>,
    /// Position of the value in an expression.
    pub at: usize,
}

/// The notation of a value in an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// As digits, or `nan`, `inf`.
    Number,
    /// Between quotation marks.
    Text,
    /// `true` or `false`.
    Boolean,
}

/// The operator of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// The value equals the operand.
    Eq,
    /// The value differs from the operand.
    Ne,
    /// The value is less than the operand.
    Lt,
    /// The value is less than or equal to the operand.
    Le,
    /// The value is greater than the operand.
    Gt,
    /// The value is greater than or equal to the operand.
    Ge,
    /// The value lies between two operands, both included.
    Between,
    /// The value is one of the operands.
    In,
    /// The value begins with the operand.
    Prefix,
    /// The value matches a pattern with `%` and `_`.
    Like,
    /// The value is null.
    Null,
    /// The value is not null.
    Valid,
    /// The value is stored as NaN.
    Nan,
}

impl Operator {
    /// All operators.
    pub const ALL: [Self; 13] = [
        Self::Eq,
        Self::Ne,
        Self::Lt,
        Self::Le,
        Self::Gt,
        Self::Ge,
        Self::Between,
        Self::In,
        Self::Prefix,
        Self::Like,
        Self::Null,
        Self::Valid,
        Self::Nan,
    ];

    /// Returns the operator's name in a path.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eq => "eq",
            Self::Ne => "ne",
            Self::Lt => "lt",
            Self::Le => "le",
            Self::Gt => "gt",
            Self::Ge => "ge",
            Self::Between => "between",
            Self::In => "in",
            Self::Prefix => "prefix",
            Self::Like => "like",
            Self::Null => "null",
            Self::Valid => "valid",
            Self::Nan => "nan",
        }
    }

    /// Whether the operator takes this number of operands.
    pub fn takes(self, values: usize) -> bool {
        match self {
            Self::Null | Self::Valid | Self::Nan => values == 0,
            Self::Between => values == 2,
            Self::In => values > 0,
            _ => values == 1,
        }
    }
}

/// Why a predicate is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The predicate does not follow the grammar.
    #[error("{what}")]
    Syntax {
        /// Offset in the text where parsing failed.
        at: usize,
        /// The fault: often the expected text and the one found.
        what: String,
    },
    /// The column does not exist, or is not part of the table.
    #[error("{what}; columns: {known}")]
    Column {
        /// Offset of the column's name in the expression.
        at: usize,
        /// The fault of the column.
        what: String,
        /// Columns that predicates can use.
        known: String,
    },
    /// The column's type does not take this value or operator.
    #[error("{what}")]
    Type {
        /// Offset of the value or operator in the expression.
        at: usize,
        /// The column, and why the value or operator does not suit it.
        what: String,
    },
}

impl Error {
    /// Returns the offset in the text where the error lies.
    pub fn position(&self) -> usize {
        match self {
            Self::Syntax { at, .. } | Self::Column { at, .. } | Self::Type { at, .. } => *at,
        }
    }
}
