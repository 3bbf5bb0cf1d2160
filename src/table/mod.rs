//! The model of a table.
