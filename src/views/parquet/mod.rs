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
//! | have places: `REQUIRED`, fixed width, byte indices | of up to R rows, exact | takes rows, as stored if possible |
//! | are bounded: nullable, fixed texts | slots of up to 1 MiB, padded | renders pages, [kept](super::rendered) |
//! | the same of fixed texts, as stored | of version 2; texts that outgrow them are compressed | renders pages, kept |
//! | have any length: texts, lists | up to 65,536 rows, 1 MiB; [measured](crate::store::pass) | renders pages, kept |
//!
//! | part | what it does |
//! | --- | --- |
//! | `thrift` | Thrift's compact protocol in fixed widths; page headers and schema |
//! | `body` | bodies of pages |
//! | `layout` | where everything lies |
//! | `columns` | how columns become leaf columns: what is known before a value is read |
//! | `sizes` | what takes a pass |
//! | `footer` | footer, page index, Bloom filters, of lengths that do not depend on values |
//! | `wanted`, `view` | the file |
//! | `labelled` | a column chunk of categories to keep, with all labels |
//! | `compressed`, `partitioned` | the same rows as a file to keep; as one for each value of some columns |

mod body;
mod columns;
mod compressed;
mod footer;
mod labelled;
mod layout;
mod partitioned;
mod sizes;
#[cfg(test)]
mod tests;
mod thrift;
mod view;

pub use columns::ParquetColumn;
pub use compressed::{CompressError, compress};
pub use partitioned::{Partitioning, partition};
pub use view::ParquetView;
