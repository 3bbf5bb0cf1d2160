//! `.npy` and `.raw`: the elements as they are stored, decompressed, with and without NumPy's header.
//!
//! Sizes are arithmetic, and a read passes on stored bytes: nothing is converted. [`NpyType::of`] says
//! how NumPy names a stored datatype, or why it has no name; `.raw` needs none.

mod dtype;
mod header;
mod stored;
#[cfg(test)]
mod tests;

pub use dtype::{NoNpy, NpyByteOrder, NpyField, NpyKind, NpyType};
pub use header::header;
pub use stored::StoredView;
