//! Virtual Parquet files: every byte is a function of the columns, and all but the lengths of texts and lists is
//! arithmetic.
//!
//! ```text
//! PAR1
//! row group                    of R rows, a power of two
//!   column chunk               one for each leaf column
//!     dictionary page          header of 33 bytes, body; where there is a dictionary
//!     data page                header, padding in it, body: levels and values
//!     …
//!   gap                        up to 4 KiB, so that cells of 64 KiB and more begin on a page of memory
//!   …
//! page index                   bounds of the pages of each column chunk; their places; where chunks have several
//! Bloom filters                of columns of labels that have a BITMAP, a room for each column chunk
//! footer                       schema; an entry of constant length for each chunk; key-values
//! length of the footer, PAR1
//! ```
//!
//! Three kinds of data pages:
//!
//! | rows of a leaf | pages | a read |
//! | --- | --- | --- |
//! | have their places: `REQUIRED` and of fixed width, bytes as indices | of up to R rows, exact | takes the rows under it; as stored where the file's bytes are the cells |
//! | are bounded: can be missing, texts of fixed length | in slots of up to 1 MiB; what is left over is padding in the header | renders pages, kept in the [cache](super::rendered) |
//! | have any length: texts, lists | of up to 65,536 rows and 1 MiB, or one value; [measured](crate::store::pass) | renders pages |
//!
//! | part | what it does |
//! | --- | --- |
//! | `hints`, `shape`, `leaf` | how a column becomes leaf columns |
//! | `shred`, `levels`, `plain`, `dictionary` | bodies of pages |
//! | `thrift`, `page`, `schema`, `keys`, `summary`, `column_index`, `page_index`, `filters`, `footer` | metadata, of lengths that do not depend on values |
//! | `columns`, `sizes`, `layout` | what is known before values are read, what takes a pass, where everything lies |
//! | `wanted`, `view` | the file |

#[cfg(test)]
mod body_tests;
mod column_index;
mod columns;
mod dictionary;
mod filters;
mod footer;
#[cfg(test)]
mod index_tests;
mod keys;
mod layout;
mod leaf;
mod levels;
mod page;
mod page_index;
mod plain;
mod schema;
mod shape;
mod shred;
mod sizes;
mod summary;
#[cfg(test)]
mod tests;
mod thrift;
mod view;
mod wanted;

pub use columns::ParquetColumn;
pub use view::ParquetView;
