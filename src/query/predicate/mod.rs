//! Predicates before they meet a table.

pub mod expression;
pub(super) mod literal;
pub mod path;

use std::fmt;

use bstr::BString;

/// A condition on a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Predicate {
    /// All of these.
    All(Vec<Predicate>),
    /// One of these.
    Any(Vec<Predicate>),
    /// Not this; of a row of which this is unknown, that is unknown as well.
    Not(Box<Predicate>),
    /// A condition on one column.
    Test(Condition),
}

/// The rows asked for, their order, and how many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The condition that they satisfy.
    pub predicate: Predicate,
    /// The columns that order them, the most significant first; without any, the order of the file.
    pub order: Vec<Order>,
    /// How many at most.
    pub limit: Option<u64>,
}

/// A column that rows are ordered by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Its name.
    pub column: BString,
    /// Where the name stands in an expression.
    pub at: usize,
    /// The greatest value first.
    pub descending: bool,
}

/// A condition on one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Name of the column's link.
    pub column: BString,
    /// Where the name stands in an expression.
    pub at: usize,
    /// The comparison with its value.
    pub operator: Operator,
    /// Operands: as many as the operator takes.
    pub values: Vec<Literal>,
}

impl Condition {
    /// Refuses a value or the operator, as one that the column's type does not have.
    pub(super) fn refused(&self, at: usize, what: impl fmt::Display) -> Error {
        Error::Type { at, what: format!("{}: {what}", self.column) }
    }
}

/// A value as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    /// Its text.
    pub text: BString,
    /// How it was written; `None` in a path, where nothing tells numbers from text.
    pub written: Option<Written>,
    /// Where it stands in an expression.
    pub at: usize,
}

/// How a value was written in an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// As digits, or `nan`, `inf`.
    Number,
    /// Between quotation marks.
    Text,
    /// `true` or `false`.
    Boolean,
}

/// A comparison with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// It equals.
    Eq,
    /// It differs.
    Ne,
    /// It is less.
    Lt,
    /// It is less or equal.
    Le,
    /// It is greater.
    Gt,
    /// It is greater or equal.
    Ge,
    /// It lies between two values, or is one of them.
    Between,
    /// It is one of some values.
    In,
    /// It begins so.
    Prefix,
    /// It matches a pattern with `%` and `_`.
    Like,
    /// It is missing.
    Null,
    /// It is not missing.
    Valid,
    /// It is NaN as stored.
    Nan,
}

impl Operator {
    /// All of them.
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

    /// Its name in a path.
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

    /// Whether the operator takes this number of values.
    pub fn takes(self, values: usize) -> bool {
        match self {
            Self::Null | Self::Valid | Self::Nan => values == 0,
            Self::Between => values == 2,
            Self::In => values > 0,
            _ => values == 1,
        }
    }
}

/// Why a predicate makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It does not follow the grammar.
    #[error("{what}")]
    Syntax {
        /// Byte of the text where it stops making sense.
        at: usize,
        /// The expected and the found text.
        what: String,
    },
    /// There is no such column, or it has no place in the table.
    #[error("{what}; columns: {known}")]
    Column {
        /// Byte of the expression where its name begins.
        at: usize,
        /// The fault.
        what: String,
        /// Columns that can be asked about.
        known: String,
    },
    /// A value or an operator that the column's type does not have.
    #[error("{what}")]
    Type {
        /// Byte of the expression.
        at: usize,
        /// Column, rule, value.
        what: String,
    },
}

impl Error {
    /// Byte of the text where it stops making sense.
    pub fn position(&self) -> usize {
        match self {
            Self::Syntax { at, .. } | Self::Column { at, .. } | Self::Type { at, .. } => *at,
        }
    }
}
