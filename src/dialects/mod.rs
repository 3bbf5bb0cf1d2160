//! Ways of keeping a table.
