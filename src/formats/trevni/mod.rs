//! Trevni files: an Apache format of column files, where one file is one table.
//!
//! | module | what it does |
//! | --- | --- |
//! | `file` | opens a file: its header, what is wrong with its columns |
//! | `blocks` | where the blocks of a column lie; decodes them, one by one when they are wanted |
//! | `rows` | rows of a column, of records, of lists |
//! | `avro` | the schema of Avro that a file may have been shredded by |
//! | `rules` | the rules that a file is held against |
//! | `table` | the table: which columns it has, what `metadata.json` says of them |
//!
//! Columns break into blocks at rows of their own choice, so blocks of different columns do not line up. Nothing is
//! carried from a block to the next, but to decode a block of a child takes the lengths of its parent in the same rows.

mod avro;
mod blocks;
mod file;
mod rows;
pub(super) mod rules;
mod table;

pub(super) use file::File;
