//! PNG files (ISO/IEC 15948): arrays as images, and small pictures of arrays for pages.
//!
//! | part | task |
//! | --- | --- |
//! | `chunks` | the parts of a PNG file |
//! | `palette` | the colours of a palette |
//! | `samples` | elements of an array as numbers; a window of shades over them |
//! | `view` | a whole array as an image, whose size is arithmetic |
//! | `picture` | a picture of at most 256 × 64 pixels from a few chunks of an array |

mod chunks;
mod palette;
mod picture;
mod samples;
#[cfg(test)]
mod tests;
mod view;

pub use picture::{Colours, Picture, PicturedArray};
pub use samples::{Numbers, Shades};
pub use view::PngView;
