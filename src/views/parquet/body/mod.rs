//! Bodies of pages: levels and values.
//!
//! | part | task |
//! | --- | --- |
//! | `leaf` | a primitive column of the schema: size and content of its pages |
//! | `shred` | from nested arrays to the values of a leaf and their levels |
//! | `levels` | repetition and definition levels |
//! | `plain`, `dictionary` | values one after the other, or as indices |
//! | `squeezed` | room for texts of fixed width |

pub(super) mod dictionary;
pub(super) mod leaf;
pub(super) mod levels;
pub(super) mod plain;
pub(super) mod shred;
pub(super) mod squeezed;
#[cfg(test)]
mod tests;
